//! `setup --capabilities`, which root can set, and the rights of a user who runs that binary.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    process::Command,
};

use super::super::harness::{PUNCTUAL, Scratch, Start};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

#[test]
fn capabilities_of_the_binary_are_set_and_removed() {
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    let setup = |arguments: &[&str]| {
        let output = Command::new(&binary).arg("setup").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    assert!(setup(&["--capabilities", "--yes"]).starts_with("set the capabilities cap_sys_nice,cap_ipc_lock+ep of "));
    assert_eq!(setup(&["--capabilities", "--yes"]), "nothing to change\n");
    assert!(setup(&["--capabilities", "--undo", "--yes"]).starts_with("remove the capabilities"));
    assert_eq!(setup(&["--capabilities", "--undo", "--yes"]), "nothing to change\n");
}

/// The start time of a process, clock ticks after boot.
fn start_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

#[test]
fn a_journal_gives_a_user_no_rights_over_threads_of_others() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    let setup = Command::new(&binary).args(["setup", "--capabilities", "--yes"]).output().unwrap();
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    let folder = scratch.path().join("runtime/punctual");
    fs::create_dir_all(&folder).unwrap();
    let mut of_root = Command::new("sleep").arg("60").start();
    let (thread, boot) = (of_root.id(), fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap());
    let cpus = sys::sched::affinity_of(Some(thread)).unwrap();
    let journal = serde_json::json!({
        "process": 999_999_999, "start_ticks": 1, "boot_id": boot.trim(), "purpose": "irq_priority",
        "undo": [
            { "what": "policy", "thread": thread, "start_ticks": start_ticks(thread), "name": "sleep",
              "before": "fifo:10", "during": "other" },
            { "what": "masks", "shielded": "0", "online": "0-1", "by_groups": true,
              "before": { "0": [[thread, start_ticks(thread)]] } },
        ]
    });
    let path = folder.join("999999999-1-irq-priority.json");
    fs::write(&path, journal.to_string()).unwrap();
    for path in [folder.parent().unwrap(), &folder, &path] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut restore = Command::new(&binary);
    restore.arg("restore").env("XDG_RUNTIME_DIR", folder.parent().unwrap()).uid(NOBODY).gid(NOBODY);
    let output = restore.output().unwrap();
    let policy = sys::sched::policy_of(thread).unwrap().to_string();
    let cpus_after = sys::sched::affinity_of(Some(thread)).unwrap();
    of_root.kill().unwrap();
    of_root.wait().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let refused =
        format!("thread {thread} (sleep): Operation not permitted (os error 1): set it back to fifo:10 as root");
    assert!(text.contains(&refused), "{text}");
    assert!(text.contains(&format!("task {thread} (sleep): Operation not permitted")), "{text}");
    assert_eq!((policy.as_str(), cpus_after), ("other", cpus));
}
