//! The errors of `punctual lab`. Guests are tested in `lab/`.

use std::fs;

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
    for (arguments, expected) in [
        ("--kernel nowhere", "cannot read nowhere"),
        ("--kernel static", "is not a kernel image: give an x86 bzImage"),
        ("--kernel bzImage --binary bzImage", "is not a program"),
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
