//! Actions at spikes, while the measurement goes on: a trace file, a signal, a command, or the end of the run.
//!
//! An ordinary thread of the run acts, up to 40 ms after the spike. Commands run and files are written in a thread of
//! their own, one at a time; a spike meanwhile is skipped.

use std::{
    fmt, io,
    process::{Command, ExitStatus, Stdio},
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use blame::Watch;
use record::{
    Caveat, Spike,
    file::{FileError, check_writable},
    grouped,
    visible::{self, Passes},
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sys::sched;

/// Time that the last command or file has to end after the run.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Largest number of trace files of a run, because each can take several MiB for each CPU.
pub const MAX_TRACES: u64 = 10;

/// The signals with a name in `--on-spike`.
const SIGNALS: [(&str, Signal); 8] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("TERM", Signal::TERM),
    ("STOP", Signal::STOP),
    ("CONT", Signal::CONT),
    ("KILL", Signal::KILL),
];

/// An action at a spike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// End the run.
    Stop,
    /// Write the kernel's trace of the time before the spike to a file for trace-cmd and KernelShark.
    Trace {
        /// Start of the file names; `None` for [`OnSpike::trace_prefix`].
        prefix: Option<String>,
    },
    /// Run this shell command, with the rights of punctual.
    Command(String),
    /// Send a signal to a process.
    Signal {
        /// Its name without `SIG`.
        name: &'static str,
        /// The signal.
        signal: Signal,
        /// The process.
        pid: Pid,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => write!(f, "stop"),
            Self::Trace { prefix: None } => write!(f, "trace"),
            Self::Trace { prefix: Some(prefix) } => write!(f, "trace:{prefix}"),
            Self::Command(command) => write!(f, "command:{command}"),
            Self::Signal { name, pid, .. } => write!(f, "signal:{name}:{pid}"),
        }
    }
}

impl FromStr for Action {
    type Err = String;

    /// Reads `trace`, `trace:PREFIX`, `stop`, `command:SHELL COMMAND` or `signal:NAME:PID`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no action: write trace, stop, command:COMMAND or signal:NAME:PID");
        match text.split_once(':') {
            None if text == "stop" => Ok(Self::Stop),
            None if text == "trace" => Ok(Self::Trace { prefix: None }),
            Some(("trace", prefix)) if !prefix.is_empty() => Ok(Self::Trace { prefix: Some(prefix.to_owned()) }),
            Some(("command", command)) if !command.trim().is_empty() => Ok(Self::Command(command.to_owned())),
            Some(("signal", signal)) => {
                let (name, pid) = signal.split_once(':').ok_or_else(wrong)?;
                let known = SIGNALS.into_iter().find(|&(known, _)| known == name.strip_prefix("SIG").unwrap_or(name));
                let (name, signal) = known.ok_or_else(|| {
                    let names: Vec<_> = SIGNALS.iter().map(|&(name, _)| name).collect();
                    format!("no signal {name:?}: choose one of {}", names.join(", "))
                })?;
                let pid = pid.parse().ok().filter(|&pid: &i32| pid > 0).and_then(Pid::from_raw);
                let pid = pid.ok_or_else(|| format!("{text:?} has no process id: write signal:{name}:PID"))?;
                Ok(Self::Signal { name, signal, pid })
            }
            _ => Err(wrong()),
        }
    }
}

/// The actions of a run at spikes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnSpike {
    /// The actions, in this order.
    pub actions: Vec<Action>,
    /// True for each spike; false for the first one only.
    pub repeated: bool,
    /// Start of the names of trace files, if the action has none.
    pub trace_prefix: String,
}

impl OnSpike {
    /// True if an action needs the kernel's trace.
    #[must_use]
    pub fn needs_trace(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Trace { .. }))
    }

    /// Checks, before the run, that the actions can be carried out.
    ///
    /// # Errors
    /// A trace file cannot be written, or a process cannot get a signal.
    pub fn check(&self) -> Result<(), OnSpikeError> {
        for action in &self.actions {
            match action {
                Action::Trace { prefix } => {
                    let prefix = prefix.as_deref().unwrap_or(&self.trace_prefix);
                    check_writable(trace_file(prefix, 1).as_ref())?;
                }
                Action::Signal { pid, .. } => {
                    test_kill_process(*pid).map_err(|error| OnSpikeError::Process(*pid, error.into()))?;
                }
                Action::Stop | Action::Command(_) => {}
            }
        }
        Ok(())
    }
}

/// The reasons why an action could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum OnSpikeError {
    /// A trace could not be written.
    #[error("--on-spike trace: {0}")]
    File(#[from] FileError),
    /// A process could not get the signal.
    #[error("--on-spike signal: process {0} cannot get a signal ({1}): choose one of yours that `ps -e` lists")]
    Process(Pid, io::Error),
}

/// Acts at the spikes of a run.
#[derive(Debug)]
pub struct Actor {
    actions: Vec<Running>,
    repeated: bool,
    has_acted: bool,
    stop: bool,
}

/// An action with its results so far.
#[derive(Debug)]
struct Running {
    action: Action,
    /// Start of the names of trace files.
    trace_prefix: String,
    worker: Option<Worker>,
    /// Number of times that the action began.
    begun: u64,
    results: Arc<Mutex<Results>>,
    /// Spikes while the worker was busy.
    skipped_busy: u64,
    /// Spikes after the last trace file.
    skipped_full: u64,
}

#[derive(Debug, Default)]
struct Results {
    done: u64,
    failed: u64,
    /// Reason of the first failure.
    why: String,
}

/// A thread that executes jobs one after the other.
#[derive(Debug)]
struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

/// Returns the reason of a failure.
type Job = Box<dyn FnOnce() -> Result<(), String> + Send>;

type Environment = [(&'static str, String); 4];

impl Actor {
    /// Prepares the actions.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(plan: &OnSpike) -> io::Result<Self> {
        let start = |action: &Action| Running::start(action.clone(), &plan.trace_prefix);
        let actions = plan.actions.iter().map(start).collect::<io::Result<_>>()?;
        Ok(Self { actions, repeated: plan.repeated, has_acted: false, stop: false })
    }

    /// Acts if there is a new spike. Of several, the latest wake-up counts. `watch` has the trace.
    pub fn act(&mut self, place: &str, spikes: &[Spike], watch: &mut Watch) {
        let Some(worst) = spikes.iter().max_by_key(|spike| spike.lateness_ns) else { return };
        // The threads count their last wake-ups after an action has ended the run.
        if self.stop || self.has_acted && !self.repeated {
            return;
        }
        self.has_acted = true;
        for running in &mut self.actions {
            self.stop |= running.action == Action::Stop;
            running.act(place, worst, watch);
        }
    }

    /// True if an action ends the run.
    pub fn stops(&self) -> bool {
        self.stop
    }

    /// Waits for the last commands, and describes the results, one caveat for each action.
    pub fn finish(self) -> Vec<Caveat> {
        self.actions.into_iter().map(Running::finish).collect()
    }
}

impl Running {
    fn start(action: Action, trace_prefix: &str) -> io::Result<Self> {
        let results = Arc::<Mutex<Results>>::default();
        let worker = match &action {
            Action::Command(_) | Action::Trace { .. } => Some(Worker::start(Arc::clone(&results))?),
            Action::Stop | Action::Signal { .. } => None,
        };
        let trace_prefix = match &action {
            Action::Trace { prefix: Some(prefix) } => prefix.clone(),
            _ => trace_prefix.to_owned(),
        };
        Ok(Self { action, trace_prefix, worker, begun: 0, results, skipped_busy: 0, skipped_full: 0 })
    }

    fn act(&mut self, place: &str, spike: &Spike, watch: &mut Watch) {
        if self.begun > ended(&self.results) {
            self.skipped_busy += 1;
            return;
        }
        let job: Result<Job, String> = match &self.action {
            Action::Stop => Ok(Box::new(|| Ok(()))),
            Action::Signal { signal, pid, .. } => {
                let sent = kill_process(*pid, *signal).map_err(|error| error.to_string());
                Ok(Box::new(move || sent))
            }
            Action::Command(command) => {
                let (command, environment) = (command.clone(), environment(place, spike));
                Ok(Box::new(move || run_command(&command, environment)))
            }
            Action::Trace { .. } if self.begun == MAX_TRACES => {
                self.skipped_full += 1;
                return;
            }
            Action::Trace { .. } => {
                let path = trace_file(&self.trace_prefix, self.begun + 1);
                let write = |trace: blame::Snapshot| -> Job {
                    Box::new(move || trace.write(path.as_ref()).map_err(|error| error.to_string()))
                };
                watch.snapshot().map(write).map_err(|error| error.to_string())
            }
        };
        self.begun += 1;
        match (job, &self.worker) {
            (Ok(job), Some(worker)) => worker.execute(job, &self.results),
            (Ok(job), None) => add(&self.results, job()),
            (Err(why), _) => add(&self.results, Err(why)),
        }
    }

    fn finish(self) -> Caveat {
        let still_runs = self.worker.is_some_and(|worker| !worker.finish());
        let Results { done, failed, why } = &*self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = format!("--on-spike {}: done {}", self.action, times(*done));
        match (&self.action, *done) {
            (Action::Trace { .. }, 1) => text.push_str(&format!(", see {}", trace_file(&self.trace_prefix, 1))),
            (Action::Trace { .. }, 2..) => {
                let [first, last] = [1, self.begun].map(|number| trace_file(&self.trace_prefix, number));
                text.push_str(&format!(", see {first} to {last}"));
            }
            _ => {}
        }
        if *failed > 0 {
            text.push_str(&format!(", failed {} ({why})", times(*failed)));
        }
        if self.skipped_busy > 0 {
            text.push_str(&format!(", skipped {} because the last one still ran", times(self.skipped_busy)));
        }
        if self.skipped_full > 0 {
            text.push_str(&format!(", skipped {} because a run writes {MAX_TRACES} files", times(self.skipped_full)));
        }
        if still_runs {
            text.push_str("; the last one still runs");
        }
        Caveat { kind: "on_spike".to_owned(), text }
    }
}

impl Worker {
    fn start(results: Arc<Mutex<Results>>) -> io::Result<Self> {
        let (jobs, receiver) = mpsc::channel::<Job>();
        let thread = thread::Builder::new().name("on-spike".to_owned()).stack_size(256 << 10).spawn(move || {
            // The thread that reads the samples has a lower niceness, which a command must not inherit. Without the
            // right to change it, it was not lowered.
            let _ = sched::set_niceness(0);
            receiver.into_iter().for_each(|job| add(&results, job()));
        })?;
        Ok(Self { jobs, thread })
    }

    fn execute(&self, job: Job, results: &Mutex<Results>) {
        if self.jobs.send(job).is_err() {
            add(results, Err("the thread for it has ended".to_owned()));
        }
    }

    /// Waits for the last job. Returns false if it still runs.
    fn finish(self) -> bool {
        drop(self.jobs);
        let until = Instant::now() + END_WITHIN;
        while !self.thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        self.thread.is_finished()
    }
}

/// Counts the result of an action.
fn add(results: &Mutex<Results>, result: Result<(), String>) {
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    match result {
        Ok(()) => results.done += 1,
        Err(why) => {
            results.failed += 1;
            if results.failed == 1 {
                results.why = why;
            }
        }
    }
}

/// Number of actions that have ended.
fn ended(results: &Mutex<Results>) -> u64 {
    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
    results.done + results.failed
}

/// Name of the trace file with this number, from 1.
fn trace_file(prefix: &str, number: u64) -> String {
    format!("{prefix}-{number}.trace.dat")
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

/// The facts that a command gets.
fn environment(place: &str, spike: &Spike) -> Environment {
    let culprit = spike.culprits.first().map_or_else(String::new, |culprit| culprit.cause.title());
    [
        ("PUNCTUAL_PLACE", place.to_owned()),
        ("PUNCTUAL_LATENESS_NS", spike.lateness_ns.to_string()),
        ("PUNCTUAL_AT_NS", spike.at_ns.to_string()),
        ("PUNCTUAL_CULPRIT", culprit),
    ]
}

/// Runs a command; the error is the reason why it failed.
fn run_command(command: &str, environment: Environment) -> Result<(), String> {
    match shell(command, environment) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs a command. Its output goes to standard error, because standard output may be a document; on a terminal it would
/// damage the live view.
fn shell(command: &str, environment: Environment) -> io::Result<ExitStatus> {
    let (mut output, writer) = io::pipe()?;
    // The command owns the only other ends of the pipe, so that its output ends with it.
    let mut child = Command::new("sh")
        .args(["-c", command])
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    let mut stderr = visible::stderr(Passes::Text);
    let copied = match stderr.is_terminal() {
        true => io::copy(&mut output, &mut io::sink()),
        false => io::copy(&mut output, &mut stderr),
    };
    // A command must not wait for a reader after an error of standard error.
    drop(output);
    let status = child.wait()?;
    copied.map(|_| status)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn spike(lateness_ns: i64) -> Spike {
        Spike { lateness_ns, at_ns: 7, ..Spike::default() }
    }

    fn actor(action: &str, repeated: bool) -> Actor {
        let actions = vec![action.parse().unwrap()];
        Actor::start(&OnSpike { actions, repeated, trace_prefix: "board".to_owned() }).unwrap()
    }

    fn untraced() -> Watch {
        Watch::start(blame::BlameMode::Off, &machine::Root::system(), &[], false).unwrap()
    }

    #[test]
    fn actions_are_read_and_written() {
        for text in ["stop", "trace", "trace:/tmp/late", "command:logger late: $PUNCTUAL_PLACE", "signal:USR1:17"] {
            assert_eq!(text.parse::<Action>().unwrap().to_string(), text);
        }
        assert_eq!("signal:SIGUSR1:17".parse::<Action>().unwrap().to_string(), "signal:USR1:17");
        for (wrong, says) in [
            ("", "write trace, stop, command:COMMAND or signal:NAME:PID"),
            ("halt", "write trace, stop, command:COMMAND or signal:NAME:PID"),
            ("trace:", "write trace, stop, command:COMMAND or signal:NAME:PID"),
            ("command: ", "write trace, stop, command:COMMAND or signal:NAME:PID"),
            ("signal:USR1", "write trace, stop, command:COMMAND or signal:NAME:PID"),
            ("signal:usr1:3", "choose one of HUP, INT, USR1"),
            ("signal:USR1:0", "write signal:USR1:PID"),
            ("signal:USR1:-1", "write signal:USR1:PID"),
            ("signal:USR1:99999999999", "write signal:USR1:PID"),
        ] {
            let error = wrong.parse::<Action>().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_command_gets_the_worst_spike() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen");
        let command =
            format!("command:echo $PUNCTUAL_PLACE $PUNCTUAL_LATENESS_NS $PUNCTUAL_AT_NS >> {}", path.display());
        let (mut actor, mut watch) = (actor(&command, false), untraced());
        actor.act("CPU 1", &[], &mut watch);
        actor.act("CPU 1", &[spike(5), spike(9)], &mut watch);
        actor.act("CPU 1", &[spike(10)], &mut watch);
        let caveats = actor.finish();
        assert_eq!(fs::read_to_string(path).unwrap(), "CPU 1 9 7\n");
        assert!(caveats[0].text.ends_with(": done once"), "{caveats:?}");
    }

    #[test]
    fn failures_and_skipped_spikes_are_counted() {
        let mut watch = untraced();
        let mut act = |mut actor: Actor, count: u32| {
            (0..count).for_each(|_| actor.act("CPU 0", &[spike(5)], &mut watch));
            (actor.stops(), actor.finish().remove(0).text)
        };
        let (_, text) = act(actor("command:sleep 0.5; exit 3", true), 3);
        assert!(
            text.ends_with("failed once (exit status: 3), skipped 2 times because the last one still ran"),
            "{text}"
        );
        // The kernel's largest process id is 2^22, so there is no such process.
        let (_, text) = act(actor("signal:USR1:2147483647", true), 2);
        assert!(text.contains("done 0 times, failed 2 times (No such process"), "{text}");
        let (stops, text) = act(actor("stop", false), 1);
        assert!(stops && text.ends_with("done once"), "{text}");
        let (_, text) = act(actor("trace", true), 12);
        assert!(text.contains("done 0 times, failed 10 times (") && text.contains("skipped 2 times because"), "{text}");
    }
}
