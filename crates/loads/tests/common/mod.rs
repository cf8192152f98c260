//! Shared by the tests that run loads: starting them through the example program, and reading /proc.

#![allow(dead_code, reason = "each test program uses only a part")]
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use loads::{LoadSpec, Running};
use machine::CpuList;
use record::LoadProof;

/// The example `load`, which cargo builds before it runs the tests.
pub fn exe() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let exe = tests.parent().unwrap().parent().unwrap().join("examples/load");
    assert!(exe.exists(), "build it first: cargo build -p punctual-loads --example load");
    exe
}

pub fn cpus(list: &str) -> CpuList {
    list.parse().unwrap()
}

/// Online CPUs of this machine.
pub fn online() -> CpuList {
    machine::usable_cpus(&machine::Root::system(), None).unwrap()
}

pub fn start(spec: &str) -> Result<Running, loads::LoadError> {
    let spec: LoadSpec = spec.parse().unwrap();
    Running::start(&exe(), &[spec], &online())
}

/// Runs one load for 0.3 s; longer, if a busy machine gave it no CPU time.
pub fn proof(spec: &str) -> LoadProof {
    for milliseconds in [300, 1000] {
        let proof = proof_of(spec, milliseconds);
        if proof.ran {
            return proof;
        }
    }
    proof_of(spec, 4000)
}

fn proof_of(spec: &str, milliseconds: u64) -> LoadProof {
    let running = start(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    pause(milliseconds);
    running.stop().remove(0)
}

pub fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// Waits up to 20 s for a condition.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        pause(10);
    }
}

/// Waits until a load has used 0.1 s of CPU time, so that it must have done some operations.
pub fn let_it_work(worker: &Process) {
    eventually("the load gets CPU time", || worker.cpu_ticks() >= 10);
}

pub fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that needs root; panics if it fails.
pub fn as_root(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let output = run(Command::new(words[0]).args(&words[1..]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{command}` needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN: {stderr}");
}

/// A process as /proc shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    parent: u32,
    start_time: String,
    zombie: bool,
    pub command: String,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some(Self {
            pid,
            parent: fields[1].parse().ok()?,
            start_time: fields[19].to_owned(),
            zombie: fields[0] == "Z",
            command: String::from_utf8_lossy(&command).replace('\0', " "),
        })
    }

    fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| Self::read(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// True if this process still runs; false if another process has its pid.
    pub fn runs(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.start_time == self.start_time && !now.zombie)
    }

    /// Its CPU time, in ticks of 1/100 s.
    fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// The ids of its threads.
    pub fn threads(&self) -> Vec<u32> {
        let entries = fs::read_dir(format!("/proc/{}/task", self.pid)).unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// The value of a line of a thread's status, e.g. `Cpus_allowed_list`.
    pub fn status(&self, thread: u32, key: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/task/{thread}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{key} in {status}")).trim().to_owned()
    }

    /// Real-time priority and policy of a thread; 0 and 0 for an ordinary one.
    pub fn scheduling(&self, thread: u32) -> (u32, u32) {
        let stat = fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.pid)).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        (fields[37].parse().unwrap(), fields[38].parse().unwrap())
    }
}

/// All descendants of `parent`.
pub fn below(parent: u32) -> Vec<Process> {
    let all = Process::all();
    let mut found: Vec<Process> = all.iter().filter(|process| process.parent == parent).cloned().collect();
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].pid;
        found.extend(all.iter().filter(|process| process.parent == parent).cloned());
        next += 1;
    }
    found
}

/// The worker that this test program started for `spec`.
pub fn worker_of(spec: &str) -> Process {
    let wanted = format!(" __load {spec} --cpus ");
    let mut workers = below(std::process::id());
    workers.retain(|process| process.command.contains(&wanted));
    assert_eq!(workers.len(), 1, "one worker of {spec}: {workers:?}");
    workers.remove(0)
}

/// A number in a file.
pub fn number(path: impl AsRef<Path>) -> u64 {
    let path = path.as_ref();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.trim().parse().unwrap()
}
