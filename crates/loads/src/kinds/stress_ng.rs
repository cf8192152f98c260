//! stress-ng, where it is installed, with the user's arguments.

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

use super::{Job, Plan};
use crate::{LoadError, worker::Meter};

/// A wrong argument ends stress-ng within this time.
const REFUSED_WITHIN: Duration = Duration::from_millis(400);
/// How long it may take to end and to print its figures.
const STOP_WITHIN: Duration = Duration::from_secs(8);

pub(super) fn plan(arguments: &[String], cpus: &CpuList) -> Result<Plan, LoadError> {
    let mut stress = StressNg::start(arguments)?;
    thread::sleep(REFUSED_WITHIN);
    if stress.has_ended() {
        let printed = stress.take_printed();
        let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it ended at once");
        let cause = printed.lines().find(|line| line.contains("error") || line.contains("nvalid")).unwrap_or(last);
        return Err(failed(&format!("{}; see `man stress-ng`", cause.trim())));
    }
    let work = move |meter: &Meter| stress.watch(meter);
    Ok(Plan::new("bogo operations", vec![Job { cpus: cpus.clone(), work: Box::new(work) }]))
}

/// A running stress-ng in a process group of its own, which goes when this is dropped.
struct StressNg {
    pid: Pid,
    reaped: bool,
    printed: Option<thread::JoinHandle<String>>,
}

impl StressNg {
    /// Its stressors inherit the CPUs of this thread, and its life hangs on it.
    fn start(arguments: &[String]) -> Result<Self, LoadError> {
        let mut command = Command::new("stress-ng");
        command.args(arguments).arg("--metrics").process_group(0);
        // Its own choice is the current folder, which may not be writable.
        if !arguments.iter().any(|argument| argument.starts_with("--temp-path")) {
            command.arg("--temp-path").arg(std::env::temp_dir());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // TERM, not KILL: it takes its stressors and its files with it.
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

    /// Waits until the work is to stop, and takes the figures that stress-ng prints then.
    fn watch(mut self, meter: &Meter) -> Result<(), LoadError> {
        while meter.pause(Duration::from_millis(100)) {
            if self.has_ended() {
                meter.set(bogo_operations(&self.take_printed()));
                return Err(failed("it ended before the measurement; leave --timeout and --*-ops out"));
            }
        }
        // Its main process stops the others in order and prints; the number is its own until it is reaped.
        let _ = kill_process(self.pid, Signal::INT);
        let deadline = Instant::now() + STOP_WITHIN;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        meter.set(bogo_operations(&self.take_printed()));
        Ok(())
    }

    /// All that it printed, after its end, which this brings about if need be.
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

impl Drop for StressNg {
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

/// The sum over all stressors of what `--metrics` prints: after the process number in brackets a line has the
/// stressor's name, its operations, and at least four figures with a decimal point.
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
    LoadError::Program { load: "stress-ng", program: "stress-ng", reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_summed_over_stressors() {
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
