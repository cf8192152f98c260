//! The first process inside a guest: sets the stage, runs the command, sends back what came of it, and ends the machine.

use std::{
    ffi::CStr,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use flate2::{Compression, write::DeflateEncoder};
use rustix::{
    mount::{MountFlags, mount},
    process::{Pid, WaitOptions, wait},
    system::{RebootCommand, finit_module, reboot, sethostname},
    termios::tcdrain,
};

use crate::{
    cpio::Tree,
    frame::{Kind, Sender},
    initramfs::{JOB, Job, OUT},
};

/// The hidden command that makes our program the first process of a guest.
pub const COMMAND: &str = "__guest";
/// The kernel's messages come back under this name, where the kernel lets us read them.
pub const KERNEL_LOG: &str = "kernel.log";

/// File systems: what, where, with which options, and whether nothing goes without it.
const MOUNTS: [(&str, &str, Option<&CStr>, bool); 9] = [
    ("proc", "/proc", None, true),
    ("sysfs", "/sys", None, true),
    ("devtmpfs", "/dev", None, false),
    ("tmpfs", "/tmp", None, false),
    ("tmpfs", "/run", None, false),
    ("tmpfs", "/dev/shm", None, false),
    ("devpts", "/dev/pts", None, false),
    ("tracefs", "/sys/kernel/tracing", None, false),
    ("debugfs", "/sys/kernel/debug", None, false),
];

/// How long output that is still on its way is waited for, once the command has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// Whether this process is the first one of a guest of ours, and nothing else: not of a container, for one.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1 && Path::new(JOB).exists()
}

/// Does the guest's job and ends the machine.
///
/// # Errors
/// Returns at all only where this is no guest of ours, or the machine cannot be ended.
pub fn run() -> io::Result<()> {
    if !is_init() {
        return Err(io::Error::other("only the first process of a lab guest can do this"));
    }
    let mounted = mount_all();
    let console = OpenOptions::new().read(true).write(true).open("/dev/console")?;
    let sender = Arc::new(Mutex::new(Sender::new(console.try_clone()?)));
    let said = mounted.and_then(|()| work(&sender));
    let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    match said {
        Ok(status) => sender.send(Kind::End, status.to_string().as_bytes())?,
        Err(reason) => sender.send(Kind::Failure, reason.as_bytes())?,
    }
    tcdrain(&console)?;
    // The emulator ends where the machine would begin anew; that works without ACPI, too.
    reboot(RebootCommand::Restart)?;
    Ok(())
}

type Shared = Arc<Mutex<Sender<File>>>;

/// Everything from the greeting to the files; the exit status of the command, or why it could not be run.
fn work(sender: &Shared) -> Result<i32, String> {
    let release = fs::read("/proc/sys/kernel/osrelease").unwrap_or_default();
    send(sender, Kind::Hello, release.trim_ascii_end()).map_err(|error| error.to_string())?;
    // From here on the kernel's messages wait in its log, where they tear no frame; a panic still reaches the console.
    let _ = fs::write("/proc/sys/kernel/printk", "1");
    // Bringing up the loopback through sysfs takes no socket; IFF_UP is 1.
    let _ = fs::write("/sys/class/net/lo/flags", "1");
    let _ = sethostname(b"lab");
    let job = fs::read(JOB).map_err(|error| format!("cannot read {JOB}: {error}"))?;
    let job: Job = serde_json::from_slice(&job).map_err(|error| format!("{JOB} is no job: {error}"))?;
    for module in &job.modules {
        load(module).map_err(|error| format!("cannot load {module}: {error}; dmesg: {}", last_message()))?;
    }
    let status = run_command(&job, sender)?;
    send_files(sender).map_err(|error| format!("cannot send the files: {error}"))?;
    Ok(status)
}

fn mount_all() -> Result<(), String> {
    for (kind, at, options, needed) in MOUNTS {
        let _ = fs::create_dir_all(at);
        match mount(kind, at, kind, MountFlags::empty(), options) {
            // A kernel may have put its device nodes there by itself.
            Ok(()) | Err(rustix::io::Errno::BUSY) => {}
            Err(error) if needed => return Err(format!("cannot mount {kind} on {at}: {error}")),
            Err(_) => {}
        }
    }
    if mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MountFlags::empty(), None).is_err() {
        mount_cgroup_v1();
    }
    Ok(())
}

/// One hierarchy a controller, for kernels without version 2.
fn mount_cgroup_v1() {
    let _ = mount("tmpfs", "/sys/fs/cgroup", "tmpfs", MountFlags::empty(), None);
    for (name, options) in [("cpu", c"cpu"), ("cpuset", c"cpuset")] {
        let at = format!("/sys/fs/cgroup/{name}");
        let _ = fs::create_dir_all(&at);
        let _ = mount("cgroup", at.as_str(), "cgroup", MountFlags::empty(), options);
    }
}

fn load(module: &str) -> io::Result<()> {
    match finit_module(File::open(module)?, c"", 0) {
        // Built in, or loaded by the kernel itself already.
        Err(rustix::io::Errno::EXIST) => Ok(()),
        answer => Ok(answer?),
    }
}

/// Runs the command to its end, and reaps whatever else ends meanwhile.
fn run_command(job: &Job, sender: &Shared) -> Result<i32, String> {
    let [program, arguments @ ..] = job.command.as_slice() else { return Err("there is no command".to_owned()) };
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(OUT)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let (done, all_done) = mpsc::channel::<()>();
    if let Some(out) = child.stdout.take() {
        forward(out, Kind::Out, sender, done.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, Kind::Err, sender, done);
    }
    let status = reap_until(Pid::from_child(&child)).map_err(|error| format!("cannot wait for {program}: {error}"))?;
    // The channel closes when both have read to the end, unless a process that is left behind keeps them open.
    let _ = all_done.recv_timeout(DRAIN);
    Ok(status)
}

/// Sends what comes out of a pipe as it comes.
fn forward(mut pipe: impl Read + Send + 'static, kind: Kind, sender: &Shared, done: mpsc::Sender<()>) {
    let sender = Arc::clone(sender);
    thread::spawn(move || {
        let mut piece = vec![0; crate::frame::CONTENT_MAX];
        while let Ok(len @ 1..) = pipe.read(&mut piece) {
            if send(&sender, kind, &piece[..len]).is_err() {
                break;
            }
        }
        drop(done);
    });
}

fn send(sender: &Shared, kind: Kind, content: &[u8]) -> io::Result<()> {
    sender.lock().unwrap_or_else(PoisonError::into_inner).send(kind, content)
}

/// Reaps children until `child` has ended; its exit status, or 128 and the signal as shells have it.
fn reap_until(child: Pid) -> io::Result<i32> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                let signal = status.terminating_signal().unwrap_or(0);
                return Ok(status.exit_status().unwrap_or(128 + signal));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends the files below the folder of results, and the kernel's log, as one compressed archive.
fn send_files(sender: &Shared) -> io::Result<()> {
    let mut tree = Tree::default();
    collect(Path::new(OUT), &mut tree)?;
    tree.file(KERNEL_LOG, kernel_log());
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&tree.to_archive())?;
    send(sender, Kind::Files, &packed.finish()?)
}

fn collect(folder: &Path, tree: &mut Tree) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = fs::symlink_metadata(&path)?;
        if kind.is_dir() {
            collect(&path, tree)?;
        } else if kind.is_file() {
            let name = path.strip_prefix(OUT).unwrap_or(&path).to_string_lossy().into_owned();
            tree.file(&name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// The kernel's messages since boot, one a line, with the level and the time of each in front, as `/dev/kmsg` has them.
fn kernel_log() -> Vec<u8> {
    let mut log = Vec::new();
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let Ok(mut kmsg) = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg") else { return log };
    let mut message = vec![0; 8192];
    loop {
        match kmsg.read(&mut message) {
            Ok(0) => return log,
            Ok(len) => log.extend_from_slice(&message[..len]),
            // Overwritten in the meantime: the next one is there.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(_) => return log,
        }
    }
}

fn last_message() -> String {
    let log = kernel_log();
    let text = String::from_utf8_lossy(&log);
    text.lines()
        .rfind(|line| line.contains(';'))
        .and_then(|line| line.split_once(';'))
        .map_or_else(String::new, |(_, text)| text.to_owned())
}
