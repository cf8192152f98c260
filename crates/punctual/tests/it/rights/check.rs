//! `check nic` on virtual interfaces in network namespaces of the test.

use std::{
    fs,
    io::Read,
    process::{Child, Command, Output, Stdio},
};

use machine::veth::{VethEnd, VethPair};
use serde_json::Value;

use crate::harness::{PUNCTUAL, Scratch, alone, wait_until};

#[test]
fn a_veth_and_its_stored_answers_give_the_same_findings() {
    let ends = VethPair::create().unwrap();
    let scratch = Scratch::new();
    let near = |arguments: &[&str]| {
        let mut command = Command::new(PUNCTUAL);
        command.args(["check", "nic", "near", "--json"]).args(arguments).current_dir(scratch.path());
        // A child inherits the namespace of the thread that starts it.
        ends.near.namespace.run(move || command.output().unwrap()).unwrap()
    };
    let output = near(&["--keep-answers", "kept"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed: Vec<&Value> =
        seen["findings"].as_array().unwrap().iter().filter(|finding| finding["state"] == "fail").collect();
    // The kernel of this machine may fail, but a veth that is up must not.
    assert!(failed.iter().all(|finding| finding["id"] == "kernel.preempt"), "{failed:?}");
    assert_eq!(output.status.code(), Some(if failed.is_empty() { 0 } else { 2 }));
    assert_eq!(seen["interface"]["hardware"], "software");
    assert_eq!(seen["interface"]["eee"], "not_supported");
    assert_eq!(seen["interface"]["index"], ends.near.index);
    let mac = ends.near.mac.map(|byte| format!("{byte:02x}")).join(":");
    assert_eq!(seen["interface"]["mac"], mac.as_str());
    let queues = seen["interface"]["qdiscs"]["known"].as_array().unwrap();
    assert_eq!(queues[0]["kind"], "noqueue", "the only queue of this interface: {queues:?}");

    // The interface exists only in its namespace, and in the stored answers.
    scratch.run("check nic near").expect_status(1);
    let kept = scratch.run("check nic near --root kept --json");
    let kept: Value = serde_json::from_str(&kept.stdout()).unwrap();
    let parts =
        ["mac", "mtu", "counts", "mode", "features", "channels", "rings", "eee", "qdiscs", "xdp", "napis", "stamping"];
    for part in parts {
        assert_eq!(kept["interface"][part], seen["interface"][part], "{part}");
    }
    assert!(fs::read_dir(scratch.path().join("kept/netlink/near")).unwrap().count() >= 13);
}

#[test]
fn an_interface_that_is_down_fails() {
    let namespace = sys::netns::Namespace::new().unwrap();
    let other = sys::netns::Namespace::new().unwrap();
    namespace.run(|| sys::link::veth_pair("down", "other", &other)).unwrap().unwrap();
    let output =
        namespace.run(|| Command::new(PUNCTUAL).args(["check", "nic", "down", "--json"]).output().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = seen["findings"].as_array().unwrap().iter().find(|finding| finding["state"] == "fail").unwrap();
    assert_eq!(failed["id"], "nic.link.carrier", "the first failure");
    assert_eq!(failed["remedy"], "sudo ip link set down up");
}

/// Runs the binary in the namespace: a child inherits the namespace of the thread that starts it.
fn inside(end: &VethEnd, arguments: &[&str]) -> Output {
    end.namespace.run(|| Command::new(PUNCTUAL).args(arguments).output().unwrap()).unwrap()
}

/// True if a check in the namespace reports TCP segmentation offload.
fn has_tso(end: &VethEnd) -> bool {
    let output = inside(end, &["check", "nic", &end.interface, "--json"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let active = seen["interface"]["features"]["known"]["active"].as_array().unwrap();
    active.iter().any(|name| name == "tx-tcp-segmentation")
}

/// The messages of a process that has ended.
fn errors_of(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn settings_of_a_run_are_restored_also_after_a_crash() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let scratch = Scratch::new();
    // The command reads /sys, which shows the namespace in which it was mounted.
    let measure = |settings: &str, duration: &str| {
        let words = "measure stream talk near --quiet --record a --policy other";
        let script =
            format!("mount -t sysfs sysfs /sys && exec {PUNCTUAL} {words} --nic {settings} --duration {duration}");
        let start = || {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", &script]).current_dir(scratch.path());
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
        };
        ends.near.namespace.run(start).unwrap().expect("unshare, of util-linux")
    };
    // An invalid run writes its record, too.
    let wait = |mut child: Child| {
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 4)), "{status}: {}", errors_of(&mut child));
    };

    assert!(has_tso(&ends.near));
    wait(measure("tso=off,gro=off", "200ms"));
    let settings: Vec<_> = scratch.record().settings.into_iter().filter(|s| s.name.starts_with("near ")).collect();
    let values: Vec<_> =
        settings.iter().map(|s| [&*s.name, &*s.before, &*s.during, s.after.as_deref().unwrap()]).collect();
    assert_eq!(values, [["near tso", "on", "off", "on"], ["near gro", "off", "off", "off"]]);
    assert!(has_tso(&ends.near));

    let mut killed = measure("tso=off", "60s");
    wait_until("the offload is off", || {
        assert_eq!(killed.try_wait().unwrap(), None, "it ended: {}", errors_of(&mut killed));
        !has_tso(&ends.near)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!has_tso(&ends.near), "the process that would restore it was killed");
    // From another namespace it cannot be restored, and stays in the journal. Other runs try to restore it as well.
    let outside = scratch.run("restore");
    let stdout = outside.stdout();
    assert!(stdout.contains("near tso, in another network namespace: run `sudo nsenter --net=/proc/"), "{stdout}");
    outside.expect_status(1);
    assert!(!has_tso(&ends.near));
    let restored = inside(&ends.near, &["restore"]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert!(has_tso(&ends.near), "{}", String::from_utf8_lossy(&restored.stdout));

    // A setting that the driver does not support makes the run invalid.
    wait(measure("eee=off", "200ms"));
    let record = scratch.record();
    let reason = record.validity.reasons.iter().find(|reason| reason.id == "nic.refused").unwrap();
    assert!(reason.text.contains("the driver of near cannot change eee"), "{}", reason.text);
}
