//! The watched program: a running process, or a command that is started for the run.

use std::{
    ffi::OsString,
    io,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use machine::Root;
use rustix::process::{Pid, Signal, kill_process};
use sys::{
    child::{Ended, try_reap},
    held::Held,
};

use crate::error::RunError;

/// The program to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The process with this id, or the process of the thread with this id.
    Pid(u32),
    /// A command with its arguments; at least one word.
    Command(Vec<OsString>),
}

/// The reasons why a program cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// No process has that id.
    #[error("there is no process {0}: choose one that `ps -e` lists")]
    NoProcess(u32),
    /// There is no such command.
    #[error("there is no command `{0}`: check its name, or give its whole path")]
    NotFound(String),
    /// The file is not a program or is not executable.
    #[error("cannot run `{command}` ({source}): check it with `ls -l`, and make it executable with `chmod +x`")]
    NotRun {
        /// The command.
        command: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl From<ProgramError> for RunError {
    fn from(error: ProgramError) -> Self {
        Self::Program(error.into())
    }
}

/// Longest time to wait for a program to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// The watched program.
#[derive(Debug)]
pub struct Program {
    pub pid: u32,
    /// Its command line; the name of a kernel thread.
    pub command: String,
    words: Vec<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A process that was already running. Its start time, in clock ticks since boot, detects a reused id.
    Found { started: Option<u64> },
    /// A command that waits for [`Program::start`].
    Held(Option<Held>),
    /// A command that was started.
    Child { pid: Pid, gone: bool, ended: Option<Ended> },
}

impl Program {
    /// Finds the process, or prepares the command, which waits for [`Program::start`].
    pub fn prepare(target: &Target, root: &Root) -> Result<Self, ProgramError> {
        match target {
            &Target::Pid(id) => Self::find(id, root),
            Target::Command(words) => Self::hold(words),
        }
    }

    fn find(id: u32, root: &Root) -> Result<Self, ProgramError> {
        let status = root.read(&format!("proc/{id}/status")).ok_or(ProgramError::NoProcess(id))?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let pid = field("Tgid:").and_then(|tgid| tgid.parse().ok()).unwrap_or(id);
        let bytes = root.read_bytes(&format!("proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> =
            bytes.split(|&byte| byte == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
        let command = match &words[..] {
            [] => field("Name:").unwrap_or_default().to_owned(),
            words => record::shell::command(words),
        };
        match stat(root, pid) {
            Some(Stat { ended: false, started, .. }) => {
                Ok(Self { pid, command, words: Vec::new(), kind: Kind::Found { started } })
            }
            _ => Err(ProgramError::NoProcess(id)),
        }
    }

    fn hold(words: &[OsString]) -> Result<Self, ProgramError> {
        let in_utf8: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let command = record::shell::command(&in_utf8);
        let Some((program, arguments)) = words.split_first() else { return Err(ProgramError::NotFound(command)) };
        let mut process = Command::new(program);
        process.args(arguments);
        let held = Held::start(process).map_err(|source| ProgramError::NotRun { command: command.clone(), source })?;
        let pid = held.pid().as_raw_nonzero().get().unsigned_abs();
        Ok(Self { pid, command, words: in_utf8, kind: Kind::Held(Some(held)) })
    }

    /// Starts a prepared command; does nothing for a running process.
    pub fn start(&mut self) -> Result<(), ProgramError> {
        let Kind::Held(held) = &mut self.kind else { return Ok(()) };
        let Some(held) = held.take() else { return Ok(()) };
        let command = self.command.clone();
        let pid = held.go().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ProgramError::NotFound(command),
            _ => ProgramError::NotRun { command, source },
        })?;
        self.kind = Kind::Child { pid, gone: false, ended: None };
        Ok(())
    }

    /// The words of a command that is started for the run; empty for a running process.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// True if the program is a command that is started for the run.
    pub fn is_command(&self) -> bool {
        !matches!(self.kind, Kind::Found { .. })
    }

    /// True if the program has ended.
    pub fn has_ended(&mut self, root: &Root) -> bool {
        match &mut self.kind {
            Kind::Found { started } => stat(root, self.pid).is_none_or(|stat| stat.ended || stat.started != *started),
            Kind::Held(_) => false,
            Kind::Child { pid, gone, ended } => {
                if !*gone {
                    match try_reap(*pid) {
                        Ok(None) => {}
                        Ok(how) => (*gone, *ended) = (true, how),
                        // Other code has already reaped it.
                        Err(_) => *gone = true,
                    }
                }
                *gone
            }
        }
    }

    /// Exit status, or as an error the signal, of a command that has ended.
    pub fn exit(&self) -> Option<Result<i32, i32>> {
        match &self.kind {
            Kind::Child { ended, .. } => ended.map(|ended| ended.how),
            _ => None,
        }
    }

    /// Ends a command that still runs. Returns false if the command still runs after that.
    pub fn end(&mut self, root: &Root) -> bool {
        let Kind::Child { pid, .. } = self.kind else { return true };
        let begun = Instant::now();
        let mut signalled = false;
        while !self.has_ended(root) {
            if !signalled {
                // This fails only if the command has already ended.
                let _ = kill_process(pid, Signal::TERM);
                signalled = true;
            }
            if begun.elapsed() > TERM_TIMEOUT {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// State of a process or thread from `/proc/ID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// True for a zombie: ended, but not yet reaped.
    pub ended: bool,
    /// True if it runs or is ready to run.
    pub runnable: bool,
    /// Start time, in clock ticks since boot.
    pub started: Option<u64>,
    /// Real-time priority, 1 to 99; 0 for other policies.
    pub priority: u8,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// Number of the policy.
    pub policy: u32,
}

/// Number of the deadline policy in include/uapi/linux/sched.h of Linux.
pub const DEADLINE: u32 = 6;

impl Stat {
    /// Its own priority as the kernel counts, without one that it inherits from a thread that waits for it.
    pub fn own_priority(&self) -> i32 {
        match (self.policy, self.priority) {
            (DEADLINE, _) => -1,
            (_, 0) => 120 + self.nice,
            (_, priority) => 99 - i32::from(priority),
        }
    }
}

/// Reads the state of a process or thread; `None` if it does not exist.
pub fn stat(root: &Root, id: u32) -> Option<Stat> {
    let text = root.read(&format!("proc/{id}/stat"))?;
    // The name, in brackets, may contain any characters. After it come the fields of proc(5) from the third on.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok());
    Some(Stat {
        ended: matches!(fields.first(), Some(&("Z" | "X"))),
        runnable: fields.first() == Some(&"R"),
        started: number(22),
        priority: number(40).and_then(|priority| u8::try_from(priority).ok()).unwrap_or(0),
        nice: fields.get(19 - 3).and_then(|nice| nice.parse().ok()).unwrap_or(0),
        policy: number(41).and_then(|policy| u32::try_from(policy).ok()).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with a process 42 that has two threads.
    fn machine() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for id in [42, 43] {
            fs::create_dir_all(root.path(&format!("proc/{id}"))).unwrap();
            fs::write(root.path(&format!("proc/{id}/status")), "Name:\tamp (1) x\nTgid:\t42\nPid:\t43\n").unwrap();
            let fields: Vec<String> = (4..=52).map(|field: u32| field.to_string()).collect();
            fs::write(root.path(&format!("proc/{id}/stat")), format!("{id} (amp (1) x) S {}", fields.join(" ")))
                .unwrap();
        }
        fs::write(root.path("proc/42/cmdline"), b"./amp\0--cab\0a b.wav\0").unwrap();
        (folder, root)
    }

    #[test]
    fn finds_a_process_by_the_id_of_any_thread() {
        let (_folder, root) = machine();
        let program = Program::prepare(&Target::Pid(43), &root).unwrap();
        assert_eq!((program.pid, program.command.as_str()), (42, "./amp --cab 'a b.wav'"));
        assert!(!program.is_command() && program.exit().is_none());
        let expected = Stat { ended: false, runnable: false, started: Some(22), priority: 40, nice: 19, policy: 41 };
        assert_eq!(stat(&root, 42), Some(expected));
        assert_eq!(expected.own_priority(), 99 - 40);
        assert_eq!(Stat { priority: 0, nice: -5, ..expected }.own_priority(), 115);
        fs::remove_file(root.path("proc/42/cmdline")).unwrap();
        assert_eq!(Program::prepare(&Target::Pid(42), &root).unwrap().command, "amp (1) x", "a kernel thread");
    }

    #[test]
    fn detects_ended_processes_and_reused_ids() {
        let (_folder, root) = machine();
        let mut program = Program::prepare(&Target::Pid(42), &root).unwrap();
        assert!(!program.has_ended(&root));
        let stat = fs::read_to_string(root.path("proc/42/stat")).unwrap();
        fs::write(root.path("proc/42/stat"), stat.replace(" 22 ", " 99 ")).unwrap();
        assert!(program.has_ended(&root), "another process uses its id");
        fs::write(root.path("proc/42/stat"), stat.replace(") S", ") Z")).unwrap();
        assert!(program.has_ended(&root));
        let error = Program::prepare(&Target::Pid(42), &root).unwrap_err().to_string();
        assert_eq!(error, "there is no process 42: choose one that `ps -e` lists");
        assert!(Program::prepare(&Target::Pid(7), &root).is_err());
    }

    #[test]
    fn a_command_waits_runs_and_reports_its_exit() {
        let root = Root::system();
        let words = |words: &[&str]| Target::Command(words.iter().map(OsString::from).collect());
        let mut program = Program::prepare(&words(&["sh", "-c", "exit 7"]), &root).unwrap();
        assert!(!program.has_ended(&root) && program.is_command());
        program.start().unwrap();
        while !program.has_ended(&root) {
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!((program.exit(), program.end(&root)), (Some(Ok(7)), true));

        let mut endless = Program::prepare(&words(&["sleep", "1000"]), &root).unwrap();
        endless.start().unwrap();
        assert!(endless.end(&root));
        assert_eq!(endless.exit(), Some(Err(15)));

        let mut nothing = Program::prepare(&words(&["no-such-command", "x"]), &root).unwrap();
        let error = nothing.start().unwrap_err().to_string();
        assert_eq!(error, "there is no command `no-such-command x`: check its name, or give its whole path");
    }
}
