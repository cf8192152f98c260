//! Checks of interfaces that the test makes, in namespaces of their own.

use std::{fs, process::Command};

use machine::ends::Ends;
use serde_json::Value;

use crate::harness::{PUNCTUAL, Scratch};

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
