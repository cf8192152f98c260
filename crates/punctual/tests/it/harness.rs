//! Runs the binary in a temporary folder and reads its record.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write, stderr},
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use record::Record;
use tempfile::TempDir;

/// The binary under test.
pub const PUNCTUAL: &str = env!("CARGO_BIN_EXE_punctual");

/// A temporary folder to run in.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of the record that `--record a` writes.
    pub fn record_path(&self) -> PathBuf {
        self.path().join("a.punctual.json")
    }

    pub fn record(&self) -> Record {
        record::file::read(&self.record_path()).expect("a readable record")
    }

    /// A command that runs in this folder; the arguments are split at spaces.
    pub fn punctual(&self, arguments: &str) -> Command {
        let mut command = Command::new(PUNCTUAL);
        command.args(arguments.split_whitespace()).current_dir(self.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command.env("PATH", path_with_sudo());
        command
    }

    /// Runs the command and waits for its end.
    pub fn run(&self, arguments: &str) -> Run {
        Run(self.punctual(arguments).output().expect("the binary runs"))
    }

    /// Runs `measure timer --quiet --record a`, checks the exit status and returns the record.
    pub fn measure(&self, status: i32, arguments: &str) -> Record {
        self.run(&format!("measure timer --quiet --record a {arguments}")).expect_status(status);
        self.record()
    }
}

/// The search path with a `sudo` at its end.
fn path_with_sudo() -> OsString {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/path");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::env::split_paths(&path).chain([folder])).expect("a path without colons")
}

/// The output and the exit status of a run.
pub struct Run(pub Output);

impl Run {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    #[track_caller]
    pub fn expect_status(&self, status: i32) -> &Self {
        assert_eq!(self.0.status.code(), Some(status), "{}\n{}", self.stdout(), self.stderr());
        self
    }
}

/// A process that a test started. It is killed when this is dropped, which a failed assertion does.
pub struct Started(Option<Child>);

/// Starts processes that end with the test.
pub trait Start {
    fn start(&mut self) -> Started;
}

impl Start for Command {
    fn start(&mut self) -> Started {
        let name = self.get_program().to_owned();
        Started(Some(self.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", name.display()))))
    }
}

impl Started {
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        self.0.take().expect("not waited for").wait_with_output()
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("not waited for")
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("not waited for")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // The process may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until `condition` holds; panics after 60 s, which only a hanging program takes.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited 60 s: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process that the test started.
pub fn signal(child: &Child, name: &str) {
    signal_process(&child.id().to_string(), name);
}

/// Sends a signal to a process with this id, which a test or punctual started.
pub fn signal_process(id: &str, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), id]).status().expect("kill runs");
    assert!(status.success());
}

/// Stops a process that the test started, and waits until each of its threads is stopped: the signal takes effect when
/// a thread leaves the kernel.
pub fn stop(child: &Child) {
    signal(child, "STOP");
    let is_stopped = |thread: &PathBuf| {
        let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    wait_until("every thread is stopped", || threads(child).iter().all(is_stopped));
}

/// Continues a stopped process, and waits until its measuring thread has counted what happened meanwhile: until the
/// thread has gone to sleep for some further deadlines.
pub fn resume(child: &Child, role: &str) {
    let is_measuring =
        |thread: &PathBuf| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with(role));
    let thread = threads(child).into_iter().find(is_measuring).unwrap_or_else(|| panic!("no thread {role}"));
    let sleeps = || {
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:\t"));
        count.and_then(|count| count.parse::<u64>().ok()).expect("a count of switches")
    };
    let before = sleeps();
    signal(child, "CONT");
    wait_until("the measuring thread is back", || sleeps() >= before + 4);
}

/// The folders of a process's threads in /proc.
pub fn threads(child: &Child) -> Vec<PathBuf> {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).expect("the threads of a process");
    threads.map(|thread| thread.expect("a thread").path()).collect()
}

/// Reports a test that cannot run here. Not by eprintln!, whose output is hidden when a test passes.
pub fn skip(reason: &str) {
    let _ = writeln!(stderr(), "\nSKIPPED: {reason}");
}

/// The CPU that a test may measure: the last one online.
pub fn last_cpu() -> u32 {
    std::thread::available_parallelism().map_or(0, |count| u32::try_from(count.get()).expect("few CPUs") - 1)
}

/// A lock for tests that need a CPU for themselves, or take one away from others.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    // The lock protects no data that a failed test could leave inconsistent.
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn a_started_process_ends_when_it_is_dropped() {
    let started = Command::new("sleep").arg("60").start();
    let process = PathBuf::from(format!("/proc/{}", started.id()));
    assert!(process.exists());
    drop(started);
    assert!(!process.exists());
}
