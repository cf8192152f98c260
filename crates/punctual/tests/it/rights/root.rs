//! `--root` with the root of another process.

use std::process::Command;

use crate::harness::Scratch;

/// Without links, the path of the root is `/`, which has other mounts.
#[test]
fn the_root_of_other_mounts_is_not_taken_for_this_one() {
    let mut other = Command::new("unshare").args(["--mount", "sleep", "60"]).spawn().expect("unshare, of util-linux");
    let root = format!("/proc/{}/root", other.id());
    let scratch = Scratch::new();
    let is_other = || {
        let mounts = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).unwrap();
        mounts(&other.id().to_string()) != mounts("self")
    };
    while !is_other() {
        std::thread::yield_now();
    }
    for command in ["check", "machine", "tune"] {
        let run = scratch.run(&format!("{command} --root {root}"));
        let expected = format!("{root} leads to another root, which has no path here: run punctual in it");
        assert!(run.expect_status(1).stderr().contains(&expected), "{}", run.stderr());
    }
    other.kill().unwrap();
    other.wait().unwrap();
}
