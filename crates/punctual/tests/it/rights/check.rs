//! Checks of interfaces that the test makes, in namespaces of their own.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use machine::ends::{End, Ends};
use serde_json::Value;

use crate::harness::{PUNCTUAL, Scratch, alone, wait_until};

#[test]
fn a_veth_is_checked_where_it_is_and_what_was_kept_says_the_same() {
    let ends = Ends::make().unwrap();
    let scratch = Scratch::new();
    let near = |arguments: &[&str]| {
        let mut command = Command::new(PUNCTUAL);
        command.args(["check", "nic", "near", "--json"]).args(arguments).current_dir(scratch.path());
        // A child is in the namespace of the thread that starts it.
        ends.near.namespace.run(move || command.output().unwrap()).unwrap()
    };
    let output = near(&["--keep-answers", "kept"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed: Vec<&Value> =
        seen["findings"].as_array().unwrap().iter().filter(|finding| finding["state"] == "fail").collect();
    // The kernel of this machine may fail, a veth that is up does not.
    assert!(failed.iter().all(|finding| finding["id"] == "kernel.preempt"), "{failed:?}");
    assert_eq!(output.status.code(), Some(if failed.is_empty() { 0 } else { 2 }));
    assert_eq!(seen["interface"]["hardware"], "software");
    assert_eq!(seen["interface"]["eee"], "not_supported");
    assert_eq!(seen["interface"]["index"], ends.near.index);
    let mac = ends.near.mac.map(|byte| format!("{byte:02x}")).join(":");
    assert_eq!(seen["interface"]["mac"], mac.as_str());
    let queues = seen["interface"]["qdiscs"]["known"].as_array().unwrap();
    assert_eq!(queues[0]["kind"], "noqueue", "the only one of this interface: {queues:?}");

    // From outside there is no such interface; from the files there is.
    scratch.run("check nic near").expect_status(1);
    let kept = scratch.run("check nic near --root kept --json");
    let kept: Value = serde_json::from_str(&kept.stdout()).unwrap();
    let told =
        ["mac", "mtu", "counts", "mode", "features", "channels", "rings", "eee", "qdiscs", "xdp", "napis", "stamping"];
    for part in told {
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
    assert_eq!(failed["id"], "nic.link.carrier", "the first in their order");
    assert_eq!(failed["remedy"], "sudo ip link set down up");
}

/// Runs the binary inside: a child is in the namespace of the thread that starts it.
fn inside(end: &End, arguments: &[&str]) -> Output {
    end.namespace.run(|| Command::new(PUNCTUAL).args(arguments).output().unwrap()).unwrap()
}

/// Whether segments are cut by the interface, as a check from inside tells.
fn cuts_segments(end: &End) -> bool {
    let output = inside(end, &["check", "nic", &end.interface, "--json"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let active = seen["interface"]["features"]["known"]["active"].as_array().unwrap();
    active.iter().any(|name| name == "tx-tcp-segmentation")
}

#[test]
fn what_a_measurement_sets_is_put_back_also_after_a_crash() {
    let _alone = alone();
    let ends = Ends::make().unwrap();
    let scratch = Scratch::new();
    // A stream's interface is looked up in /sys, which shows the namespace that it was mounted in.
    let measure = |settings: &str, duration: &str| {
        let words = "measure stream talk near --quiet --record a --policy other";
        let script =
            format!("mount -t sysfs sysfs /sys && exec {PUNCTUAL} {words} --nic {settings} --duration {duration}");
        let start = || {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", &script]).current_dir(scratch.path()).stdout(Stdio::null()).spawn()
        };
        ends.near.namespace.run(start).unwrap().expect("unshare, of util-linux")
    };

    assert!(cuts_segments(&ends.near));
    measure("tso=off,gro=off", "200ms").wait().unwrap();
    let settings: Vec<_> = scratch.record().settings.into_iter().filter(|s| s.name.starts_with("near ")).collect();
    let told: Vec<_> =
        settings.iter().map(|s| [&*s.name, &*s.before, &*s.during, s.after.as_deref().unwrap()]).collect();
    assert_eq!(told, [["near tso", "on", "off", "on"], ["near gro", "off", "off", "off"]]);
    assert!(cuts_segments(&ends.near));

    let mut killed = measure("tso=off", "60s");
    wait_until("it is set", || !cuts_segments(&ends.near));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!cuts_segments(&ends.near), "nobody is left to put it back");
    // From elsewhere it is not reached, and stays promised; whoever measures meanwhile tries the same.
    let elsewhere = scratch.run("restore");
    let told = elsewhere.stdout();
    assert!(told.contains("near tso, which is in another network namespace: run `sudo nsenter --net=/proc/"), "{told}");
    elsewhere.expect_status(1);
    assert!(!cuts_segments(&ends.near));
    let restored = inside(&ends.near, &["restore"]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert!(cuts_segments(&ends.near));

    // What the driver does not know is said, and makes the run invalid.
    measure("eee=off", "200ms").wait().unwrap();
    let record = scratch.record();
    let reason = record.validity.reasons.iter().find(|reason| reason.id == "nic.refused").unwrap();
    assert!(reason.text.contains("the driver of near has no eee"), "{}", reason.text);
}
