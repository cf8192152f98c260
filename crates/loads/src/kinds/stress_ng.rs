//! Runs an installed stress-ng with the user's arguments.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{ChildStderr, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use machine::CpuList;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sys::child::{reap, signal_when_parent_ends, try_reap};
use sys::sched::Policy;

use super::kind::{Job, Kind, LoadKind, Plan};
use crate::{LoadError, SpecError, meter::Meter};

/// stress-ng ends within this time if an argument is wrong.
const REFUSED_WITHIN: Duration = Duration::from_millis(400);
/// Time that stress-ng has to end and to print its figures.
const STOP_WITHIN: Duration = Duration::from_secs(8);

/// stress-ng with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StressNg {
    /// At least one argument.
    pub arguments: Vec<String>,
}

impl LoadKind for StressNg {
    const KIND: Kind = Kind {
        name: "stress-ng",
        description: "an installed stress-ng with your arguments",
        options: &[("ARGUMENTS", "everything after the colon, split at spaces: `stress-ng:--cpu 2 --vm 1`")],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let arguments: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        if arguments.is_empty() {
            let missing = "load `stress-ng` needs arguments, e.g. `stress-ng:--cpu 2 --vm 1`";
            return Err(SpecError::Invalid(missing.to_owned()));
        }
        Ok(Self { arguments })
    }

    fn options(&self) -> String {
        self.arguments.join(" ")
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        plan(&self.arguments, cpus)
    }

    fn is_busy(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("--cpu 2 --vm 1", Self { arguments: ["--cpu", "2", "--vm", "1"].map(Into::into).into() })]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{collection::vec, prelude::*};

        vec("[-a-z0-9,=:/]{1,9}", 1..4).prop_map(|arguments| Self { arguments }).boxed()
    }
}

fn plan(arguments: &[String], cpus: &CpuList) -> Result<Plan, LoadError> {
    let mut stress = Process::start(arguments)?;
    thread::sleep(REFUSED_WITHIN);
    if stress.has_ended() {
        let printed = stress.take_printed();
        let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it ended at once");
        let cause = printed.lines().find(|line| line.contains("error") || line.contains("nvalid")).unwrap_or(last);
        return Err(failed(&format!("{}; see `man stress-ng`", cause.trim())));
    }
    let work = move |meter: &Meter| stress.watch(meter);
    let job = Job { cpus: cpus.clone(), policy: Policy::Other, work: Box::new(work) };
    Ok(Plan::new("bogo operations", vec![job]))
}

/// A running stress-ng in its own process group, which is killed on drop.
struct Process {
    pid: Pid,
    reaped: bool,
    printed: Option<thread::JoinHandle<String>>,
}

impl Process {
    /// Starts stress-ng. Its stressors inherit the CPUs of this thread, and it is killed when this thread ends.
    fn start(arguments: &[String]) -> Result<Self, LoadError> {
        let mut command = Command::new("stress-ng");
        command.args(arguments).arg("--metrics").process_group(0);
        // The default is the current folder, which may not be writable.
        if !arguments.iter().any(|argument| argument.starts_with("--temp-path")) {
            command.arg("--temp-path").arg(std::env::temp_dir());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // TERM rather than KILL, so that stress-ng ends its stressors and removes its files.
        let child = signal_when_parent_ends(&mut command, Signal::TERM).spawn();
        let mut child = child.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed("it is not installed; `sudo apt-get install stress-ng`"),
            _ => failed(&format!("{error}; `sudo apt-get install --reinstall stress-ng`")),
        })?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let printed = Some(thread::spawn(move || read_both(stdout, stderr)));
        Ok(Self { pid: Pid::from_child(&child), reaped: false, printed })
    }

    fn has_ended(&mut self) -> bool {
        self.reaped = self.reaped || !matches!(try_reap(self.pid), Ok(None));
        self.reaped
    }

    /// Waits until the load must stop, and reads the figures that stress-ng then prints.
    fn watch(mut self, meter: &Meter) -> Result<(), LoadError> {
        while meter.pause(Duration::from_millis(100)) {
            if self.has_ended() {
                meter.set(bogo_operations(&self.take_printed()));
                return Err(failed("it ended before the measurement; leave --timeout and --*-ops out"));
            }
        }
        // INT makes the main process stop the stressors and print. Its pid cannot be reused before it is reaped.
        let _ = kill_process(self.pid, Signal::INT);
        let deadline = Instant::now() + STOP_WITHIN;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        meter.set(bogo_operations(&self.take_printed()));
        Ok(())
    }

    /// Ends stress-ng if it still runs, and returns all that it printed.
    fn take_printed(&mut self) -> String {
        self.end();
        self.printed.take().and_then(|printed| printed.join().ok()).unwrap_or_default()
    }

    fn end(&mut self) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = reap(self.pid);
            self.reaped = true;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_both(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> String {
    let errors = thread::spawn(move || read_all(stderr));
    let mut text = read_all(stdout);
    text.push_str(&errors.join().unwrap_or_default());
    text
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sums the operations of all stressors in the output of `--metrics`. After the pid in brackets a line has the name of
/// the stressor, its operations, and at least four figures with a decimal point.
fn bogo_operations(printed: &str) -> u64 {
    let operations_of = |line: &str| {
        let mut words = line.split_once("] ")?.1.split_whitespace().skip(1);
        let operations = words.next()?.parse::<u64>().ok()?;
        let figures = words.take(4).filter(|word| word.contains('.') && word.parse::<f64>().is_ok()).count();
        (figures == 4).then_some(operations)
    };
    printed.lines().filter_map(operations_of).sum()
}

fn failed(reason: &str) -> LoadError {
    LoadError::Failed { load: StressNg::KIND.name, reason: format!("cannot run stress-ng: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_operations_over_stressors() {
        let version_0_15 = "\
stress-ng: info:  [8943] dispatching hogs: 1 cpu, 1 vm
stress-ng: metrc: [8943] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s CPU used per
stress-ng: metrc: [8943]                           (secs)    (secs)    (secs)   (real time) (usr+sys time) instance (%)
stress-ng: metrc: [8943] cpu                1418      1.00      1.00      0.00      1417.27        1421.21        99.72
stress-ng: metrc: [8943] vm                70953      1.01      0.68      0.33     70060.22       70509.22        99.36
stress-ng: info:  [8943] successful run completed in 1.01s";
        assert_eq!(bogo_operations(version_0_15), 1418 + 70953);
        let version_0_9 = "stress-ng: info:  [12] cpu    50   1.00   0.99   0.00    50.00    50.51";
        assert_eq!(bogo_operations(version_0_9), 50);
        assert_eq!(bogo_operations(""), 0);
    }
}
