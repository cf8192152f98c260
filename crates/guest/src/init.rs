//! The first process inside a guest: mounts file systems, runs the command, returns its results and stops the machine.

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

/// The hidden command that runs our program as the first process of a guest.
pub const COMMAND: &str = "__guest";
/// The name of the kernel log among the returned files.
pub const KERNEL_LOG: &str = "kernel.log";

/// File systems: type, mount point, options, and whether mounting it is mandatory.
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

/// Maximum wait for remaining output after the command has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// True if this process is the first one of a guest, and not, for example, of a container.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1 && Path::new(JOB).exists()
}

/// Runs the guest's job and stops the machine.
///
/// # Errors
/// Returns only if this is not a guest, or if the machine cannot be stopped.
pub fn run() -> io::Result<()> {
    if !is_init() {
        return Err(io::Error::other("this command only works as the first process of a guest"));
    }
    let mounted = mount_all();
    let console = OpenOptions::new().read(true).write(true).open("/dev/console")?;
    let sender = Arc::new(Mutex::new(Sender::new(console.try_clone()?)));
    let result = mounted.and_then(|()| run_job(&sender));
    let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    match result {
        Ok(status) => sender.send(Kind::End, status.to_string().as_bytes())?,
        Err(reason) => sender.send(Kind::Failure, reason.as_bytes())?,
    }
    tcdrain(&console)?;
    // QEMU exits on restart (`-no-reboot`), which also works without ACPI.
    reboot(RebootCommand::Restart)?;
    Ok(())
}

type Shared = Arc<Mutex<Sender<File>>>;

/// Runs the job and sends all results. Returns the exit status of the command, or the reason why it could not run.
fn run_job(sender: &Shared) -> Result<i32, String> {
    let release = fs::read("/proc/sys/kernel/osrelease").unwrap_or_default();
    send(sender, Kind::Hello, release.trim_ascii_end()).map_err(|error| error.to_string())?;
    // Keeps kernel messages in the log from now on, so that they do not interrupt frames. A panic still reaches the
    // console.
    let _ = fs::write("/proc/sys/kernel/printk", "1");
    // Sets the loopback up through sysfs, which needs no socket; IFF_UP is 1.
    let _ = fs::write("/sys/class/net/lo/flags", "1");
    let _ = sethostname(b"lab");
    let job = fs::read(JOB).map_err(|error| format!("cannot read {JOB}: {error}"))?;
    let job: Job = serde_json::from_slice(&job).map_err(|error| format!("{JOB} is malformed: {error}"))?;
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
            // The kernel may have mounted devtmpfs already.
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

/// Mounts one hierarchy per controller, for kernels without cgroup v2.
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
        // Built in, or already loaded by the kernel.
        Err(rustix::io::Errno::EXIST) => Ok(()),
        answer => Ok(answer?),
    }
}

/// Runs the command to its end and reaps all orphaned processes.
fn run_command(job: &Job, sender: &Shared) -> Result<i32, String> {
    let [program, arguments @ ..] = job.command.as_slice() else { return Err("the job has no command".to_owned()) };
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
    // The channel closes once both pipes are at their end. A remaining background process can keep the pipes open.
    let _ = all_done.recv_timeout(OUTPUT_TIMEOUT);
    Ok(status)
}

/// Forwards the data of a pipe as it arrives.
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

/// Reaps children until `child` has ended. Returns its exit status, or 128 plus the signal number as in shells.
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

/// Sends the result files and the kernel log as one compressed archive.
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

/// The kernel messages since boot in the format of `/dev/kmsg`: one per line, prefixed with level and time.
#[must_use]
pub fn kernel_log() -> Vec<u8> {
    let mut log = Vec::new();
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let Ok(mut kmsg) = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg") else { return log };
    let mut message = vec![0; 8192];
    loop {
        match kmsg.read(&mut message) {
            Ok(0) => return log,
            Ok(len) => log.extend_from_slice(&message[..len]),
            // Messages were overwritten meanwhile; the next read returns the oldest one left.
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
