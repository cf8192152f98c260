use std::{fs, io::Write, os::unix::fs::PermissionsExt, path::PathBuf};

use super::*;
use crate::frame::Sender;

/// An emulator that only prints, and a kernel for it.
struct Fake {
    folder: tempfile::TempDir,
    guest: Guest,
}

impl Fake {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let emulator = folder.path().join("emulator");
        fs::write(&emulator, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&emulator, fs::Permissions::from_mode(0o755)).unwrap();
        let guest = Guest { emulator: Some(emulator), timeout: Duration::from_secs(20), ..Guest::default() };
        Self { folder, guest }
    }

    /// One whose console says this.
    fn saying(console: &str, then: &str) -> Self {
        let fake = Self::new("");
        let said = fake.path("console");
        fs::write(&said, console).unwrap();
        let script = format!("#!/bin/sh\ncat {}\n{then}\n", said.display());
        fs::write(fake.path("emulator"), script).unwrap();
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self) -> (Result<Outcome, GuestError>, String) {
        let kernel = self.path("bzImage");
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        fs::write(&kernel, image).unwrap();
        let program = self.path("program");
        // The head of a static program for x86-64.
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = 62;
        fs::write(&program, elf).unwrap();
        let image = Image::open(&kernel).unwrap();
        let initramfs = Initramfs::new(image.arch, &program).unwrap();
        let mut heard = String::new();
        let outcome = run(&self.guest, &image, &initramfs, &mut |said| match said {
            Event::Console(line) => heard += &format!("console {line}\n"),
            Event::Booted(release) => heard += &format!("booted {release}\n"),
            Event::Stdout(piece) => heard += &format!("out {}\n", String::from_utf8_lossy(piece)),
            Event::Stderr(piece) => heard += &format!("err {}\n", String::from_utf8_lossy(piece)),
        });
        (outcome, heard)
    }

    fn error(&self) -> String {
        self.run().0.unwrap_err().to_string()
    }
}

fn files() -> Vec<u8> {
    let mut tree = Tree::default();
    tree.file("a.punctual.json", "{}");
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&tree.to_archive()).unwrap();
    packed.finish().unwrap()
}

fn frames(frames: &[(Kind, &[u8])]) -> String {
    let mut console = Vec::new();
    let mut sender = Sender::new(&mut console);
    frames.iter().for_each(|(kind, content)| sender.send(*kind, content).unwrap());
    String::from_utf8(console).unwrap()
}

#[test]
fn a_guest_brings_back_output_files_and_status() {
    let packed = files();
    let told = frames(&[
        (Kind::Hello, b"6.12.0-rt"),
        (Kind::Out, b"lateness"),
        (Kind::Err, b"progress"),
        (Kind::Files, &packed),
        (Kind::End, b"2"),
    ]);
    // The emulator that does not end by itself is ended.
    let (outcome, heard) = Fake::saying(&format!("[0.1] \x1b[2Jbooting\r\n{told}"), "sleep 60").run();
    let outcome = outcome.unwrap();
    assert_eq!(outcome.status, 2);
    assert_eq!(outcome.files.read("a.punctual.json"), Some(&b"{}"[..]));
    assert_eq!(heard, "console [0.1] [2Jbooting\nbooted 6.12.0-rt\nout lateness\nerr progress\n");
    assert!(outcome.wall < Duration::from_secs(20));
}

#[test]
fn what_is_missing_is_an_error_with_the_last_lines() {
    let packed = files();
    let no_end = frames(&[(Kind::Hello, b"6.12"), (Kind::Files, &packed)]);
    let error = Fake::saying(&format!("[1.0] odd\n{no_end}"), "").error();
    assert!(error.contains("before its end mark") && error.contains("[1.0] odd"), "{error}");
    let cut = frames(&[(Kind::Files, &packed[..packed.len() / 2]), (Kind::End, b"0")]);
    assert!(Fake::saying(&cut, "").error().contains("did not arrive whole"));
    let lines = frames(&[(Kind::Hello, b"6.12"), (Kind::Out, b"x"), (Kind::End, b"0")]);
    let lost: String = lines.lines().filter(|line| !line.contains(":O:")).map(|line| format!("{line}\n")).collect();
    assert!(Fake::saying(&lost, "").error().contains("frame 2 arrived where 1 was due"));
}

#[test]
fn a_panic_a_refusal_and_silence_are_told_apart() {
    let panic =
        "[ 2.0] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n[ 2.1] CPU: 0\n";
    let error = Fake::saying(panic, "").error();
    assert!(error.starts_with("the kernel panicked: VFS: Unable to mount root fs"), "{error}");
    assert!(error.contains("CONFIG_BLK_DEV_INITRD") && error.contains("[ 2.1] CPU: 0"), "{error}");
    let long: String = (0..50).map(|line| format!("[ 3.{line}] Call Trace {line}\n")).collect();
    let error =
        Fake::saying(&format!("{long}[ 4.0] Kernel panic - not syncing: System is deadlocked on memory\n{long}"), "")
            .error();
    assert!(error.contains("--memory") && error.contains("Call Trace 49") && error.lines().count() < 25, "{error}");
    let refused = Fake::new("echo 'qemu: no such device: isa-nothing' >&2; exit 1").error();
    assert!(refused.ends_with("refused: qemu: no such device: isa-nothing"), "{refused}");
    let silent = Fake::new("exit 0").error();
    assert!(silent.contains("CONFIG_SERIAL_8250_CONSOLE"), "{silent}");
}

#[test]
fn time_is_up() {
    let mut fake = Fake::saying("[0.1] booting\n", "sleep 60");
    fake.guest.timeout = Duration::from_secs(1);
    let error = fake.error();
    assert!(
        error.contains("not done after 1 s: give it more with --timeout") && error.contains("[0.1] booting"),
        "{error}"
    );
    let mut mute = Fake::new("sleep 60");
    mute.guest.timeout = Duration::from_secs(1);
    assert!(mute.error().contains("no output from the kernel within 1 s"));
}

#[test]
fn what_the_guest_could_not_do_is_told() {
    let told = frames(&[(Kind::Hello, b"6.12"), (Kind::Failure, b"cannot load hold.ko")]);
    assert_eq!(Fake::saying(&told, "").error(), "inside the guest: cannot load hold.ko");
}

#[test]
fn an_emulator_that_is_not_installed_is_named_with_its_package() {
    let error = GuestError::NoQemu { arch: Arch::Arm64 }.to_string();
    assert!(error.contains("apt-get install") && error.contains("qemu-system-arm"), "{error}");
}
