//! Files that root writes in a folder that others can write to: links and pipes of other users are not followed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, lchown, symlink},
    path::Path,
    process::Command,
};

use crate::harness::{Run, Scratch};

/// An unprivileged user: nobody.
const OTHER: Option<u32> = Some(65534);

/// A folder with a sticky folder `shared` and a private folder `private` with a file `victim`.
fn with_shared_folder() -> Scratch {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    for (name, mode) in [("shared", 0o1777), ("private", 0o700)] {
        fs::create_dir(at(name)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(at("private/victim"), "mine").unwrap();
    scratch
}

/// Creates a link that belongs to another user.
fn foreign_link(to: impl AsRef<Path>, link: &Path) {
    symlink(to, link).unwrap();
    lchown(link, OTHER, None).unwrap();
}

#[track_caller]
fn expect_untouched(scratch: &Scratch) {
    let names: Vec<_> = fs::read_dir(scratch.path().join("private")).unwrap().map(|file| file.unwrap()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read_to_string(scratch.path().join("private/victim")).unwrap(), "mine");
}

/// Runs a command in the shared folder.
fn run_in_shared(scratch: &Scratch, arguments: &str) -> Run {
    Run(scratch.punctual(arguments).current_dir(scratch.path().join("shared")).output().unwrap())
}

#[test]
fn rendering_sends_nothing_to_a_pipe_or_device_of_another_user() {
    let scratch = with_shared_folder();
    let at = |name: &str| scratch.path().join(name);
    let model =
        r#"{"version":"0.5.4","architecture":"Linear","config":{"receptive_field":1,"bias":false},"weights":[1.0]}"#;
    fs::write(at("m.nam"), model).unwrap();
    let mut wav = b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\xbb\0\0\0\x77\x01\0\x02\0\x10\0data".to_vec();
    wav.extend([&8_u32.to_le_bytes()[..], &[0; 8]].concat());
    fs::write(at("in.wav"), wav).unwrap();
    assert!(Command::new("mkfifo").arg(at("shared/pipe")).status().unwrap().success());
    chown(at("shared/pipe"), OTHER, None).unwrap();
    let run = run_in_shared(&scratch, "amp render ../in.wav pipe --model ../m.nam");
    assert!(run.expect_status(1).stderr().contains("pipe or device of another user"), "{}", run.stderr());
    // A link is replaced, whatever it leads to.
    for to in ["/dev/full", "../private/victim"] {
        foreign_link(to, &at("shared/out.wav"));
        run_in_shared(&scratch, "amp render ../in.wav out.wav --model ../m.nam").expect_status(0);
        assert!(fs::symlink_metadata(at("shared/out.wav")).unwrap().is_file());
        fs::remove_file(at("shared/out.wav")).unwrap();
    }
    expect_untouched(&scratch);
    symlink("/dev/null", at("shared/out.wav")).unwrap();
    run_in_shared(&scratch, "amp render ../in.wav out.wav --model ../m.nam").expect_status(0);
    run_in_shared(&scratch, "amp render ../in.wav /dev/stdout --model ../m.nam").expect_status(0);
}

#[test]
fn man_pages_follow_no_links_of_other_users() {
    let scratch = with_shared_folder();
    let at = |name: &str| scratch.path().join(name);
    foreign_link("../private/victim", &at("shared/punctual-run.1"));
    run_in_shared(&scratch, "generate man .").expect_status(0);
    assert!(fs::symlink_metadata(at("shared/punctual-run.1")).unwrap().is_file());
    foreign_link("../private", &at("shared/man"));
    let run = run_in_shared(&scratch, "generate man man");
    assert!(run.expect_status(1).stderr().contains("man is a symbolic link of another user"), "{}", run.stderr());
    expect_untouched(&scratch);
}

#[test]
fn a_record_and_a_campaign_go_to_no_folder_that_another_user_chose() {
    let scratch = with_shared_folder();
    let campaign = r#"name = "tiny"
order = "sequential"
rest = "1s"
[[probe]]
name = "t"
period = "1ms"
duration = "2s"
[[probe]]
name = "u"
period = "1ms"
duration = "2s"
[[placement]]
name = "all"
cpus = "0"
"#;
    fs::write(scratch.path().join("c.toml"), campaign).unwrap();
    foreign_link("../private", &scratch.path().join("shared/zz"));
    for arguments in [
        "run ../c.toml --dir zz --quiet",
        "run ../c.toml --dir zz/ --quiet",
        "measure timer --samples 1 --record zz/a --quiet",
        "measure timer --samples 1 --no-record --export zz/a.csv --quiet",
    ] {
        let run = run_in_shared(&scratch, arguments);
        assert!(run.expect_status(1).stderr().contains("zz is a symbolic link of another user"), "{}", run.stderr());
    }
    expect_untouched(&scratch);
}
