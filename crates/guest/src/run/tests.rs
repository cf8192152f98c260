use std::{fs, io::Write, os::unix::fs::PermissionsExt, path::PathBuf};

use super::*;
use crate::frame::Sender;

/// An emulator that only prints, and a matching kernel.
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

    /// An emulator that prints this console output and then runs `then`.
    fn with_console(console: &str, then: &str) -> Self {
        let fake = Self::new("");
        let output = fake.path("console");
        fs::write(&output, console).unwrap();
        let script = format!("#!/bin/sh\ncat {}\n{then}\n", output.display());
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
        // The header of a static program for x86-64.
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = 62;
        fs::write(&program, elf).unwrap();
        let image = Image::open(&kernel).unwrap();
        let initramfs = Initramfs::new(image.arch, &program).unwrap();
        let mut events = String::new();
        let outcome = run(&self.guest, &image, &initramfs, &mut |event| match event {
            Event::Console(line) => events += &format!("console {line}\n"),
            Event::Booted(release) => events += &format!("booted {release}\n"),
            Event::Stdout(piece) => events += &format!("out {}\n", String::from_utf8_lossy(piece)),
            Event::Stderr(piece) => events += &format!("err {}\n", String::from_utf8_lossy(piece)),
        });
        (outcome, events)
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
fn returns_output_files_and_status() {
    let packed = files();
    let console = frames(&[
        (Kind::Hello, b"6.12.0-rt"),
        (Kind::Out, b"lateness"),
        (Kind::Err, b"progress"),
        (Kind::Files, &packed),
        (Kind::End, b"2"),
    ]);
    // An emulator that does not exit is killed.
    let (outcome, events) = Fake::with_console(&format!("[0.1] \x1b[2Jbooting\r\n{console}"), "sleep 60").run();
    let outcome = outcome.unwrap();
    assert_eq!(outcome.status, 2);
    assert_eq!(outcome.files.read("a.punctual.json"), Some(&b"{}"[..]));
    assert_eq!(events, "console [0.1] [2Jbooting\nbooted 6.12.0-rt\nout lateness\nerr progress\n");
    assert!(outcome.wall < Duration::from_secs(20));
}

#[test]
fn bounds_lines_and_files() {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&[0; 2 << 20]).unwrap();
    let bomb = frames(&[(Kind::Files, &packed.finish().unwrap()), (Kind::End, b"0")]);
    let error = Fake::with_console(&bomb, "").error();
    assert!(error.contains("more than 1 MiB"), "{error}");
    let lines = lines_of(io::repeat(b'x').take(3 * LINE_MAX + 1));
    let lengths: Vec<u64> = lines.iter().map(|line| line.len() as u64).collect();
    assert_eq!(lengths, [LINE_MAX, LINE_MAX, LINE_MAX, 1]);
    let messages = text_of(io::repeat(b'x').take(3 * MESSAGES_MAX));
    assert_eq!(messages.recv().unwrap().len() as u64, MESSAGES_MAX);
}

#[test]
fn reports_missing_data_with_the_last_lines() {
    let packed = files();
    let no_end = frames(&[(Kind::Hello, b"6.12"), (Kind::Files, &packed)]);
    let error = Fake::with_console(&format!("[1.0] odd\n{no_end}"), "").error();
    assert!(error.contains("the guest ended early") && error.contains("[1.0] odd"), "{error}");
    let cut = frames(&[(Kind::Files, &packed[..packed.len() / 2]), (Kind::End, b"0")]);
    assert!(Fake::with_console(&cut, "").error().contains("are incomplete"));
    let lines = frames(&[(Kind::Hello, b"6.12"), (Kind::Out, b"x"), (Kind::End, b"0")]);
    let lost: String = lines.lines().filter(|line| !line.contains(":O:")).map(|line| format!("{line}\n")).collect();
    assert!(Fake::with_console(&lost, "").error().contains("frame 2 arrived instead of frame 1"));
}

#[test]
fn distinguishes_panic_failure_and_silence() {
    let panic =
        "[ 2.0] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n[ 2.1] CPU: 0\n";
    let error = Fake::with_console(panic, "").error();
    assert!(error.starts_with("the kernel panicked: VFS: Unable to mount root fs"), "{error}");
    assert!(error.contains("CONFIG_BLK_DEV_INITRD") && error.contains("[ 2.1] CPU: 0"), "{error}");
    let long: String = (0..50).map(|line| format!("[ 3.{line}] Call Trace {line}\n")).collect();
    let error = Fake::with_console(
        &format!("{long}[ 4.0] Kernel panic - not syncing: System is deadlocked on memory\n{long}"),
        "",
    )
    .error();
    assert!(error.contains("--memory") && error.contains("Call Trace 49") && error.lines().count() < 25, "{error}");
    let failed = Fake::new("echo 'qemu: no such device: isa-nothing' >&2; exit 1").error();
    assert!(failed.ends_with("failed: qemu: no such device: isa-nothing"), "{failed}");
    let silent = Fake::new("exit 0").error();
    assert!(silent.contains("image is complete") && silent.contains("CONFIG_SERIAL_8250_CONSOLE"), "{silent}");
}

#[test]
fn reports_timeouts() {
    let mut fake = Fake::with_console("[0.1] booting\n", "sleep 60");
    fake.guest.timeout = Duration::from_secs(1);
    let error = fake.error();
    assert!(
        error.contains("did not finish within 1 s: increase --timeout") && error.contains("[0.1] booting"),
        "{error}"
    );
    let mut mute = Fake::new("sleep 60");
    mute.guest.timeout = Duration::from_secs(1);
    assert!(mute.error().contains("no output from the kernel within 1 s"));
}

#[test]
fn reports_failures_inside_the_guest() {
    let console = frames(&[(Kind::Hello, b"6.12"), (Kind::Failure, b"cannot load hold.ko")]);
    assert_eq!(Fake::with_console(&console, "").error(), "inside the guest: cannot load hold.ko");
}

#[test]
fn names_the_package_of_a_missing_emulator() {
    let error = GuestError::NoQemu { arch: Arch::Arm64 }.to_string();
    assert!(error.contains("apt-get install") && error.contains("qemu-system-arm"), "{error}");
}
