//! `setup --capabilities`, which root can set, and `setup` of a user who may not.

use std::{fs, process::Command};

use super::super::harness::{PUNCTUAL, Scratch};

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
