//! The errors of `punctual lab`. Guests are tested in `lab/`.

use std::{
    fs::{self, File},
    process::Command,
};

use crate::harness::Scratch;

/// A folder with files that pass for an x86 kernel, an arm64 kernel and a static program.
fn with_kernel() -> Scratch {
    let scratch = Scratch::new();
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    fs::write(scratch.path().join("bzImage"), image).unwrap();
    let mut image = vec![0; 0x400];
    image[0x38..0x3c].copy_from_slice(b"ARM\x64");
    fs::write(scratch.path().join("Image"), image).unwrap();
    let mut program = vec![0; 64];
    program[..6].copy_from_slice(b"\x7fELF\x02\x01");
    program[18] = 62;
    fs::write(scratch.path().join("static"), program).unwrap();
    scratch
}

#[test]
fn refuses_files_that_cannot_be_booted() {
    let scratch = with_kernel();
    let at = |name: &str| scratch.path().join(name);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    // Sparse, so it takes no space.
    File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
    for (arguments, expected) in [
        ("--kernel nowhere", "cannot read nowhere"),
        ("--kernel /dev/zero", "cannot read /dev/zero: it is not a regular file: choose another one"),
        ("--kernel static", "is not a kernel image: give an x86 bzImage"),
        ("--kernel bzImage --binary bzImage", "is not a program"),
        ("--kernel bzImage --binary /dev/zero", "cannot read /dev/zero: it is not a regular file: choose another one"),
        ("--kernel bzImage --binary pipe", "cannot read pipe: it is not a regular file: choose another one"),
        ("--kernel bzImage --binary huge", "cannot read huge: it is larger than 512 MiB, the most that is read"),
        ("--kernel bzImage --binary /bin/sh", "the static one built by `make dist`, dist/punctual-x86_64"),
        ("--kernel Image --binary static", "give --binary dist/punctual-aarch64, built by `make dist`"),
        ("--kernel bzImage --binary static --record nowhere/a", "cannot write nowhere/a.punctual.json"),
    ] {
        let run = scratch.run(&format!("lab {arguments}"));
        let errors = run.expect_status(1).stderr();
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{arguments}: {errors}");
    }
}

#[test]
fn a_missing_emulator_is_reported_with_its_package() {
    let scratch = with_kernel();
    let mut command = scratch.punctual("lab --quiet --kernel bzImage --binary static --no-record");
    // The program also searches the sbin folders, whatever PATH is; they contain no emulator.
    let output = command.env("PATH", scratch.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("qemu-system-x86_64 is not installed: ") && errors.contains("apt-get install"), "{errors}");
}

/// An archive of the guest's files in the newc format (cpio(5)), as raw deflate data (RFC 1951) that is not compressed.
fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tree = guest::Tree::default();
    files.iter().for_each(|(name, bytes)| tree.file(name, *bytes));
    let archive = tree.to_archive();
    let mut packed = Vec::new();
    for block in archive.chunks(0xffff) {
        let length = u16::try_from(block.len()).unwrap();
        packed.extend([&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes(), block].concat());
    }
    // An empty last block.
    packed.extend([1, 0, 0, 0xff, 0xff]);
    packed
}

#[test]
fn a_guest_chooses_no_name_of_a_file() {
    let scratch = with_kernel();
    let at = |name: &str| scratch.path().join(name);
    let record = record::Record { schema: record::SCHEMA.to_owned(), ..record::Record::default() };
    let hostile = "ev\u{1b}[2J\nPASS";
    let files: [(&str, &[u8]); 8] = [
        (".bashrc", b"guest"),
        ("../up", b"guest"),
        ("x/authorized_keys", b"guest"),
        (hostile, b"guest"),
        ("a.trace.dat", b"first"),
        ("b.trace.dat", b"second"),
        ("mine.csv", b"guest"),
        ("x.punctual.json", &record::file::to_json(&record)),
    ];
    let mut console = Vec::new();
    let mut sender = guest::frame::Sender::new(&mut console);
    sender.send(guest::frame::Kind::Files, &packed(&files)).unwrap();
    sender.send(guest::frame::Kind::End, b"0").unwrap();
    fs::write(at("console"), console).unwrap();
    fs::write(at("qemu-system-x86_64"), format!("#!/bin/sh\ncat {}\n", at("console").display())).unwrap();
    fs::set_permissions(at("qemu-system-x86_64"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir(at("out")).unwrap();
    for mine in ["out/.bashrc", "out/run.csv"] {
        fs::write(at(mine), "mine").unwrap();
    }
    let mut command = scratch.punctual("lab --quiet --kernel bzImage --binary static --record out/run");
    let path = format!("{}:/usr/bin:/bin", scratch.path().display());
    let run = crate::harness::Run(command.env("PATH", path).output().unwrap());
    let errors = run.expect_status(0).stderr();
    let mut names: Vec<_> = fs::read_dir(at("out")).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    let expected = [".bashrc", "run-2.trace.dat", "run.csv", "run.punctual.html", "run.punctual.json", "run.trace.dat"];
    assert_eq!(names, expected);
    for mine in ["out/.bashrc", "out/run.csv"] {
        assert_eq!(fs::read_to_string(at(mine)).unwrap(), "mine");
    }
    assert_eq!(fs::read_to_string(at("out/run-2.trace.dat")).unwrap(), "second");
    assert!(!at("up").exists() && errors.contains("4 other files of the guest are not saved"), "{errors}");
    assert!(errors.contains("mine.csv is not saved") && !errors.contains(['\u{1b}']), "{errors}");
    assert!(!errors.lines().any(|line| line.starts_with("PASS")), "{errors}");
}

#[test]
fn the_error_of_the_emulator_is_quoted() {
    let scratch = with_kernel();
    let emulator = scratch.path().join("qemu-system-x86_64");
    fs::write(&emulator, "#!/bin/sh\necho 'qemu: cannot set up guest memory' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&emulator, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = scratch.punctual("lab --quiet --kernel bzImage --binary static --no-record");
    let output = command.env("PATH", format!("{}:/usr/bin:/bin", scratch.path().display())).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("qemu-system-x86_64 failed: qemu: cannot set up guest memory"), "{errors}");
}

#[test]
fn a_kernel_that_does_not_boot_is_named_and_the_others_continue() {
    let scratch = with_kernel();
    let run = scratch.run("lab --quiet --kernel static nowhere --binary static --no-record");
    let errors = run.expect_status(1).stderr();
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].starts_with("error: static: ") && lines[1].starts_with("error: nowhere: "), "{errors}");
}

#[test]
fn a_bisection_without_its_commits_is_refused() {
    let scratch = with_kernel();
    let bisect = "lab --bisect a b --kernel bzImage --binary static";
    scratch.run(bisect).expect_status(64);
    let run = scratch.run(&format!("{bisect} --build true"));
    let errors = run.expect_status(1).stderr();
    assert!(errors.contains("\"a\" is not a commit of the repository in this folder"), "{errors}");
    let run = scratch.run("lab --bisect a b --kernel /boot/bzImage --binary static --build true");
    let errors = run.expect_status(64).stderr();
    assert!(errors.contains("--kernel must be a path in the working tree"), "{errors}");
    assert!(!scratch.path().join("tree").exists());
}
