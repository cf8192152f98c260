//! `setup`: the file of limits, below another root.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use super::harness::Scratch;

const FOLDER: &str = "image/etc/security/limits.d";

/// The folder of a system image, and the path of its file.
fn image() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let folder = scratch.path().join(FOLDER);
    fs::create_dir_all(&folder).unwrap();
    fs::write(scratch.path().join("image/etc/passwd"), "alice:x:1000:1000::/home/alice:/bin/sh\n").unwrap();
    (scratch, folder.join("90-punctual.conf"))
}

#[test]
fn writes_only_with_yes_and_undoes_exactly_that() {
    let (scratch, file) = image();
    let asked = scratch.run("setup --root image --account alice");
    assert!(asked.expect_status(1).stderr().contains("standard input is not a terminal: add --yes"));
    let shown = asked.stdout();
    assert!(
        shown.contains("alice - rtprio 99") && shown.contains("image/etc/security/limits.d/90-punctual.conf"),
        "{shown}"
    );
    assert!(!file.exists(), "nothing is written without yes");

    scratch.run("setup --root image --account alice --yes").expect_status(0);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("alice - rtprio 99\nalice - memlock unlimited\n"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(
        scratch.run("setup --root image --account alice --yes").expect_status(0).stdout(),
        "nothing to change\n"
    );
    let group = scratch.run("setup --root image --account @audio --yes");
    assert!(group.expect_status(0).stderr().contains("etc/group does not list audio"), "{}", group.stderr());

    assert!(scratch.run("setup --root image --undo").expect_status(1).stdout().starts_with("remove "));
    assert!(file.exists());
    scratch.run("setup --root image --undo --yes").expect_status(0);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 0);
    assert_eq!(scratch.run("setup --root image --undo --yes").expect_status(0).stdout(), "nothing to change\n");
}

#[test]
fn what_somebody_else_wrote_is_left_and_reported() {
    let (scratch, file) = image();
    scratch.run("setup --root image --account alice --yes").expect_status(0);
    let changed = fs::read_to_string(&file).unwrap() + "bob - rtprio 50\n";
    fs::write(&file, &changed).unwrap();
    for arguments in ["--undo", "--account carol"] {
        let run = scratch.run(&format!("setup --root image --yes {arguments}"));
        assert!(run.expect_status(1).stderr().contains("is not as `punctual setup` writes it"), "{}", run.stderr());
        assert_eq!(fs::read_to_string(&file).unwrap(), changed);
    }
}

#[test]
fn wrong_names_and_folders_are_refused() {
    let (scratch, _) = image();
    for (arguments, status, error) in [
        ("--account a:b", 64, "must be a user, or a group with @"),
        ("--root nowhere", 1, "nowhere is not a folder"),
        ("--capabilities --root image", 64, "cannot be used with"),
        ("--undo --account alice", 64, "cannot be used with"),
    ] {
        let run = scratch.run(&format!("setup {arguments}"));
        assert!(run.expect_status(status).stderr().contains(error), "{}", run.stderr());
    }
    fs::remove_dir_all(scratch.path().join(FOLDER)).unwrap();
    let run = scratch.run("setup --root image --yes");
    assert!(run.expect_status(1).stderr().contains("limits.d does not exist"), "{}", run.stderr());
}
