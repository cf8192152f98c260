//! Runs without rights or without disk space.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use record::Outcome;

use crate::harness::{PUNCTUAL, Scratch, Start, alone, last_cpu, signal, wait_until};

const NOBODY: u32 = 65_534;

#[test]
fn an_ordinary_user_gets_an_invalid_run_with_a_remedy() {
    let _alone = alone();
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let output = Command::new(&binary)
        .args("measure timer --record a --cpus 0 --samples 50".split(' '))
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let record = scratch.record();
    assert_eq!(record.verdict.unwrap().outcome, Outcome::Invalid);
    assert_eq!((record.series[0].samples, record.series[0].granted.policy.as_str()), (50, "other"));
    let reason = &record.validity.reasons[0];
    assert_eq!(reason.id, "policy.refused");
    assert!(reason.remedy.contains("setcap") || reason.remedy.contains("--cap-add"), "{}", reason.remedy);
    assert!(stdout.contains("INVALID"), "{stdout}");
    let said = |text: &str| stdout.matches(text).count();
    assert!(said(" setup") == 1 && said("sudo setcap") == 1 || said("--cap-add") > 0, "both ways, said once: {stdout}");
}

#[test]
fn granted_rights_are_read_back() {
    let _alone = alone();
    let record = Scratch::new().measure(0, &format!("--cpus {} --policy rr:7 --samples 50", last_cpu()));
    let granted = &record.series[0].granted;
    assert_eq!((granted.policy.as_str(), granted.memory_locked, granted.timer_slack_ns), ("rr:7", true, 0));
    assert_eq!(granted.cpus, last_cpu().to_string());
}

#[test]
fn a_deadline_thread_cannot_be_pinned() {
    let _alone = alone();
    let unpinned = Scratch::new().measure(0, "--policy deadline:200us/1ms/1ms --samples 50");
    assert_eq!(unpinned.series[0].granted.policy, "deadline:200000ns/1000000ns/1000000ns");
    assert_eq!(unpinned.series[0].cpu, None);
    if last_cpu() > 0 {
        let pinned = Scratch::new().measure(4, "--cpus 0 --policy deadline:200us/1ms/1ms --samples 50");
        assert_eq!(pinned.validity.reasons[0].id, "cpu.not_pinned");
    }
}

#[test]
fn a_full_disk_loses_no_record() {
    let _alone = alone();
    let scratch = Scratch::new();
    let small = TinyDisk::mount(&scratch.path().join("small"), 64);
    let fill = |kib: usize| fs::write(small.0.join("filler"), vec![1; kib * 1024]);
    fill(60).unwrap();
    let run = scratch.run("measure timer --quiet --cpus 0 --policy other --samples 50 --record small/a");
    run.expect_status(1);
    assert!(run.stderr().contains("No space left on device"), "{}", run.stderr());

    // There is space for the first write, but not for the last one.
    fs::remove_file(small.0.join("filler")).unwrap();
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = scratch.punctual("measure timer --quiet --cpus 0 --policy other --endless --record small/a");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.env("TMPDIR", &elsewhere).start();
    wait_until("the first write", || small.0.join("a.punctual.json").exists());
    while fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(small.0.join("filler"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[1; 1024]))
        .is_ok()
    {}
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the record is in"), "{stderr}");
    assert!(record::file::read(&elsewhere.join("a.punctual.json")).unwrap().series[0].samples > 0);
    assert!(record::file::read(&small.0.join("a.punctual.json")).is_ok(), "the first record is whole");
}

#[test]
fn a_trace_that_does_not_fit_on_the_disk_is_an_error() {
    let _alone = alone();
    let scratch = Scratch::new();
    let small = TinyDisk::mount(&scratch.path().join("small"), 16);
    let options = "--quiet --no-record --cpus 0 --stop-on 1ns --stop-trace small/t.dat";
    let run = scratch.run(&format!("measure timer {options}"));
    run.expect_status(1);
    assert!(run.stderr().contains("the trace of --stop-on is missing: "), "{}", run.stderr());
    assert!(!small.0.join("t.dat").exists(), "a part of the trace");
}

/// A mounted file system of a few KiB; unmounted when dropped.
struct TinyDisk(std::path::PathBuf);

impl TinyDisk {
    fn mount(at: &Path, kib: usize) -> Self {
        fs::create_dir(at).unwrap();
        let size = format!("size={kib}k");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status().unwrap();
        assert!(status.success(), "the right to mount: run as root");
        Self(at.to_owned())
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
