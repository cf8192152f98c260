//! Actions at spikes, while the measurement goes on: a signal, a command, or the end of the run.
//!
//! An ordinary thread of the run acts, up to 40 ms after the spike. Commands run in a thread of their own, one at a
//! time; a spike during a command starts no other.

use std::{
    fmt, io,
    process::{Command, ExitStatus, Stdio},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, SyncSender, TrySendError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use record::{
    Caveat, Spike,
    visible::{self, Passes},
};
use rustix::process::{Pid, Signal, kill_process};
use sys::sched;

/// Time that the last command has to end after the run.
const END_WITHIN: Duration = Duration::from_secs(5);

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
            Self::Command(command) => write!(f, "command:{command}"),
            Self::Signal { name, pid, .. } => write!(f, "signal:{name}:{pid}"),
        }
    }
}

impl FromStr for Action {
    type Err = String;

    /// Reads `stop`, `command:SHELL COMMAND` or `signal:NAME:PID`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no action: write stop, command:COMMAND or signal:NAME:PID");
        match text.split_once(':') {
            None if text == "stop" => Ok(Self::Stop),
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
}

/// Acts at the spikes of a run.
#[derive(Debug)]
pub struct Actor {
    actions: Vec<Running>,
    repeated: bool,
    has_acted: bool,
    stop: bool,
}

#[derive(Debug)]
struct Running {
    action: Action,
    /// Receives the environment of each command.
    runner: Option<(SyncSender<Environment>, JoinHandle<()>)>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    failed: AtomicU64,
    /// Spikes during a command.
    skipped: AtomicU64,
}

type Environment = [(&'static str, String); 4];

impl Actor {
    /// Prepares the actions.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(plan: &OnSpike) -> io::Result<Self> {
        let actions = plan.actions.iter().cloned().map(Running::start).collect::<io::Result<_>>()?;
        Ok(Self { actions, repeated: plan.repeated, has_acted: false, stop: false })
    }

    /// Acts if there is a new spike. Of several, the latest wake-up counts.
    pub fn act(&mut self, place: &str, spikes: &[Spike]) {
        let Some(worst) = spikes.iter().max_by_key(|spike| spike.lateness_ns) else { return };
        if self.has_acted && !self.repeated {
            return;
        }
        self.has_acted = true;
        for running in &mut self.actions {
            self.stop |= running.action == Action::Stop;
            running.act(place, worst);
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
    fn start(action: Action) -> io::Result<Self> {
        let counts = Arc::<Counts>::default();
        let runner = match &action {
            Action::Command(command) => Some(start_runner(command.clone(), Arc::clone(&counts))?),
            Action::Stop | Action::Signal { .. } => None,
        };
        Ok(Self { action, runner, counts })
    }

    fn act(&mut self, place: &str, spike: &Spike) {
        let count = match &self.action {
            Action::Stop => &self.counts.done,
            Action::Signal { signal, pid, .. } => match kill_process(*pid, *signal) {
                Ok(()) => &self.counts.done,
                Err(_) => &self.counts.failed,
            },
            Action::Command(_) => {
                let Some((sender, _)) = &self.runner else { return };
                match sender.try_send(environment(place, spike)) {
                    // The runner counts it.
                    Ok(()) | Err(TrySendError::Disconnected(_)) => return,
                    Err(TrySendError::Full(_)) => &self.counts.skipped,
                }
            }
        };
        count.fetch_add(1, Relaxed);
    }

    fn finish(self) -> Caveat {
        let still_runs = self.runner.is_some_and(|(sender, thread)| {
            drop(sender);
            let until = Instant::now() + END_WITHIN;
            while !thread.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(5));
            }
            !thread.is_finished()
        });
        let [done, failed, skipped] =
            [&self.counts.done, &self.counts.failed, &self.counts.skipped].map(|count| count.load(Relaxed));
        let mut text = format!("--on-spike {}: done {}", self.action, times(done));
        if failed > 0 {
            text.push_str(&format!(", failed {}", times(failed)));
        }
        if skipped > 0 {
            text.push_str(&format!(", skipped {} because the last command still ran", times(skipped)));
        }
        if still_runs {
            text.push_str("; the last command still runs");
        }
        Caveat { kind: "on_spike".to_owned(), text }
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
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

/// Starts the thread that runs a command once for each environment that it receives.
fn start_runner(command: String, counts: Arc<Counts>) -> io::Result<(SyncSender<Environment>, JoinHandle<()>)> {
    // Without a buffer, sending fails while a command runs.
    let (sender, receiver) = mpsc::sync_channel::<Environment>(0);
    let thread = thread::Builder::new().name("on-spike".to_owned()).stack_size(256 << 10).spawn(move || {
        // The thread that reads the samples has a lower niceness, which a command must not inherit. Without the right to
        // change it, it was not lowered.
        let _ = sched::set_niceness(0);
        for environment in receiver {
            let ended = shell(&command, environment);
            let count = if ended.is_ok_and(|status| status.success()) { &counts.done } else { &counts.failed };
            count.fetch_add(1, Relaxed);
        }
    })?;
    Ok((sender, thread))
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
        Actor::start(&OnSpike { actions: vec![action.parse().unwrap()], repeated }).unwrap()
    }

    #[test]
    fn actions_are_read_and_written() {
        for text in ["stop", "command:logger late: $PUNCTUAL_PLACE", "signal:USR1:17"] {
            assert_eq!(text.parse::<Action>().unwrap().to_string(), text);
        }
        assert_eq!("signal:SIGUSR1:17".parse::<Action>().unwrap().to_string(), "signal:USR1:17");
        for (wrong, says) in [
            ("", "write stop, command:COMMAND or signal:NAME:PID"),
            ("halt", "write stop, command:COMMAND or signal:NAME:PID"),
            ("command: ", "write stop, command:COMMAND or signal:NAME:PID"),
            ("signal:USR1", "write stop, command:COMMAND or signal:NAME:PID"),
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
        let mut actor = actor(&command, false);
        actor.act("CPU 1", &[]);
        // The thread may not wait for work yet.
        thread::sleep(Duration::from_millis(200));
        actor.act("CPU 1", &[spike(5), spike(9)]);
        actor.act("CPU 1", &[spike(10)]);
        let caveats = actor.finish();
        assert_eq!(fs::read_to_string(path).unwrap(), "CPU 1 9 7\n");
        assert!(caveats[0].text.ends_with(": done once"), "{caveats:?}");
    }

    #[test]
    fn failures_and_skipped_spikes_are_counted() {
        let mut slow = actor("command:sleep 0.5; false", true);
        thread::sleep(Duration::from_millis(200));
        (0..3).for_each(|_| slow.act("CPU 0", &[spike(5)]));
        let text = slow.finish().remove(0).text;
        assert!(text.contains("failed once") && text.contains("skipped 2 times because"), "{text}");
        // The kernel's largest process id is 2^22, so there is no such process.
        let mut gone = actor("signal:USR1:2147483647", true);
        (0..2).for_each(|_| gone.act("CPU 0", &[spike(5)]));
        assert!(gone.finish()[0].text.ends_with("done 0 times, failed 2 times"));
        let mut stop = actor("stop", false);
        assert!(!stop.stops());
        stop.act("CPU 0", &[spike(5)]);
        assert!(stop.stops());
    }
}
