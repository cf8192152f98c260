//! Running the binary in a scratch folder and reading its record.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use record::Record;
use tempfile::TempDir;

/// The binary under test.
pub const PUNCTUAL: &str = env!("CARGO_BIN_EXE_punctual");

/// A scratch folder to run in.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The record that `--record a` writes.
    pub fn record_path(&self) -> PathBuf {
        self.path().join("a.punctual.json")
    }

    pub fn record(&self) -> Record {
        record::file::read(&self.record_path()).expect("a readable record")
    }

    /// The command with these arguments, split at spaces, in this folder.
    pub fn punctual(&self, arguments: &str) -> Command {
        let mut command = Command::new(PUNCTUAL);
        command.args(arguments.split_whitespace()).current_dir(self.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &str) -> Run {
        Run(self.punctual(arguments).output().expect("the binary runs"))
    }

    /// Measures with `--quiet --record a`, expects `status`, and gives the record.
    pub fn measure(&self, status: i32, arguments: &str) -> Record {
        self.run(&format!("measure timer --quiet --record a {arguments}")).expect_status(status);
        self.record()
    }
}

/// What a run printed and how it ended.
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

/// Waits until `condition` holds, at most 20 s.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(20), "waited 20 s in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process that the test started.
pub fn signal(child: &std::process::Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
}

/// Stops a process that the test started, and waits until each of its threads is: a signal takes effect when a thread
/// leaves the kernel.
pub fn stop(child: &std::process::Child) {
    signal(child, "STOP");
    let stopped = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.expect("a thread").path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    let tasks = format!("/proc/{}/task", child.id());
    wait_until("it is stopped", || std::fs::read_dir(&tasks).expect("its threads").all(stopped));
}

/// The CPU that a test may measure: the last one online.
pub fn last_cpu() -> u32 {
    std::thread::available_parallelism().map_or(0, |count| count.get() as u32 - 1)
}

/// Held by tests that take a CPU for themselves, or away.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    // A test that failed while it held the lock has nothing that could be in disorder.
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
