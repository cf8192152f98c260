//! Runs punctual.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use record::{Histogram, Machine, Noise, Record};
use sys::child::Ended;

use crate::{
    run::{Run, run},
    scenario::{Length, PERIOD_US, Scenario},
};

/// Exit codes for pass, limit exceeded, inconclusive and invalid: in each case there is a record.
const ACCEPTED: [i32; 4] = [0, 2, 3, 4];
const REMEDY: &str = "build it with: make bench";

/// The program under test.
#[derive(Debug, Clone)]
pub struct Punctual {
    binary: PathBuf,
    /// Blame mode: off by default, because cyclictest has nothing like it.
    blame: &'static str,
}

/// Results of one run.
#[derive(Debug)]
pub struct Seen {
    /// One sample per wake-up, ns.
    pub lateness: Histogram,
    /// Wake-ups.
    pub cycles: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// Time from just before the start of the program to the first sample of the last CPU, ns. Only valid for runs of
    /// one wake-up per CPU.
    pub to_first_sample_ns: i64,
    /// Notes of the series, e.g. that the guard throttled a thread.
    pub notes: Vec<String>,
    /// Resource usage of the whole program.
    pub usage: Ended,
    /// The machine, from the record.
    pub machine: Machine,
    /// Version of punctual.
    pub version: String,
}

impl Punctual {
    /// The program at this path.
    pub fn new(binary: &Path) -> Self {
        Self { binary: binary.to_owned(), blame: "off" }
    }

    /// The same program, finding culprits in the kernel's trace.
    pub fn with_blame(&self) -> Self {
        Self { blame: "trace", ..self.clone() }
    }

    /// Size of the binary, bytes.
    pub fn size(&self) -> Result<u64> {
        Ok(self.binary.metadata().with_context(|| format!("cannot read {}; {REMEDY}", self.binary.display()))?.len())
    }

    /// The command for a scenario.
    pub fn command(&self, scenario: &Scenario) -> Command {
        let mut command = self.every_cpu(scenario.period_us, scenario.length);
        command.args(["--cpus", &scenario.cpu.to_string()]);
        command
    }

    /// Runs `scenario`.
    pub fn measure(&self, scenario: &Scenario) -> Result<Seen> {
        seen(&mut self.command(scenario))
    }

    /// Measures all CPUs.
    pub fn measure_every_cpu(&self, period_us: u64, length: Length) -> Result<Seen> {
        seen(&mut self.every_cpu(period_us, length))
    }

    /// The command for `count` identical threads on every CPU.
    pub fn threads(&self, count: u64, period_us: u64, seconds: u64) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["measure", "threads", "--quiet", "--no-record", "--json", "--policy", "fifo:90"]);
        command.args(["--hold-cpu-awake", &format!("--blame={}", self.blame), "--threads", &count.to_string()]);
        command.args(["--period", &format!("{period_us}us"), "--duration", &format!("{seconds}s")]);
        command
    }

    /// Measures the noise of one CPU at the lowest real-time priority.
    pub fn noise(&self, cpu: u32, seconds: u64) -> Result<Noise> {
        let mut command = Command::new(&self.binary);
        command.args(["measure", "noise", "--quiet", "--no-record", "--json", "--blame=off", "--policy", "fifo:1"]);
        command.args(["--cpus", &cpu.to_string(), "--duration", &format!("{seconds}s")]);
        let record = recorded(&mut command)?.0;
        let noise = record.series.into_iter().next().and_then(|series| series.kind.noise().cloned());
        noise.context("punctual's record has no noise")
    }

    /// Measures round trips of datagrams to an echo of its own, from the time when each datagram was sent.
    pub fn round_trips(&self, cpu: u32, far_cpu: u32, period_us: u64, count: u64, bytes: u64) -> Result<Histogram> {
        let mut command = self.udp(cpu, period_us, count, bytes);
        command.args(["--self", "--echo-policy", "fifo:97", "--echo-cpu", &far_cpu.to_string()]);
        from_sent(&mut command)
    }

    /// The same to an echo at another address.
    pub fn round_trips_to(&self, peer: &str, cpu: u32, period_us: u64, count: u64, bytes: u64) -> Result<Histogram> {
        from_sent(self.udp(cpu, period_us, count, bytes).arg(peer))
    }

    /// Measures round trips of a kind (`udp` or `round-trip`) between two namespaces of this machine, with these options,
    /// from the time when each was sent.
    pub fn own_round_trips(
        &self,
        kind: &str,
        [cpu, far_cpu]: [u32; 2],
        count: u64,
        more: &[&str],
    ) -> Result<Histogram> {
        let mut command = self.trips(kind, cpu, PERIOD_US, count);
        command.args(["--self", "--echo-policy", "fifo:97", "--echo-cpu", &far_cpu.to_string()]).args(more);
        from_sent(&mut command)
    }

    fn udp(&self, cpu: u32, period_us: u64, count: u64, bytes: u64) -> Command {
        let mut command = self.trips("udp", cpu, period_us, count);
        command.args(["--size", &bytes.to_string()]);
        command
    }

    fn trips(&self, kind: &str, cpu: u32, period_us: u64, count: u64) -> Command {
        let mut command = self.with(&["measure", kind, "--quiet", "--no-record", "--json", "--blame=off"]);
        command.args(["--policy", "fifo:98", "--receive-policy", "fifo:97", "--cpu", &cpu.to_string()]);
        command.args(["--period", &format!("{period_us}us"), "--samples", &count.to_string()]);
        command
    }

    /// Analyses a capture. Returns the record and the resource usage.
    pub fn capture(&self, file: &Path) -> Result<(Record, Ended)> {
        let mut command = self.with(&["capture"]);
        command.arg(file).args(["--quiet", "--json"]);
        let (record, run) = recorded(&mut command)?;
        Ok((record, run.usage))
    }

    /// The program with these arguments.
    pub fn with(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        command
    }

    /// Runs the program with these arguments to its end.
    pub fn run(&self, arguments: &[&str]) -> Result<Run> {
        run(&mut self.with(arguments), &ACCEPTED, REMEDY)
    }

    fn every_cpu(&self, period_us: u64, length: Length) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["measure", "timer", "--quiet", "--no-record", "--json"]);
        command.arg(format!("--blame={}", self.blame));
        // Memory is locked by default.
        command.args(["--policy", "fifo:90", "--hold-cpu-awake", "--period", &format!("{period_us}us")]);
        match length {
            Length::Cycles(cycles) => command.args(["--samples", &cycles.to_string()]),
            Length::Seconds(seconds) => command.args(["--duration", &format!("{seconds}s")]),
        };
        command
    }
}

fn from_sent(command: &mut Command) -> Result<Histogram> {
    let record = recorded(command)?.0;
    if !record.validity.valid {
        bail!("round trips were measured without the requested rights; run as root: make bench");
    }
    let found = record.series.into_iter().find_map(|series| series.kind.round_trip()?.from_sent.clone());
    Ok(found.context("punctual's record has no round trips")?.histogram)
}

/// Runs a command, and parses the record that it prints.
pub fn recorded(command: &mut Command) -> Result<(Record, Run)> {
    let run = run(command, &ACCEPTED, REMEDY)?;
    let record = serde_json::from_str(&run.stdout).context("punctual printed no record")?;
    Ok((record, run))
}

fn seen(command: &mut Command) -> Result<Seen> {
    let (record, run) = recorded(command)?;
    check_grants(&record)?;
    let first_samples = record.series.iter().map(|series| series.first_deadline_ns + series.max_ns.unwrap_or_default());
    let last_first_ns = first_samples.max().context("punctual's record has no series")?;
    let mut lateness = Histogram::default();
    record.series.iter().for_each(|series| lateness.merge(&series.raw));
    Ok(Seen {
        cycles: record.series.iter().map(|series| series.samples).sum(),
        missed: record.series.iter().map(|series| series.missed).sum(),
        to_first_sample_ns: last_first_ns - run.started_ns,
        notes: record.series.iter().flat_map(|series| series.notes.clone()).collect(),
        usage: run.usage,
        machine: record.machine,
        version: record.tool.version,
        lateness,
    })
}

/// Refuses runs without the requested policy and memory lock, because they cannot be compared. cyclictest ends with an
/// error in this case.
fn check_grants(record: &Record) -> Result<()> {
    for series in &record.series {
        let granted = &series.granted;
        if granted.policy != "fifo:90" || !granted.memory_locked || granted.cpu_awake.is_none() {
            bail!("{} was measured without the requested rights; run as root: make bench", series.place());
        }
    }
    Ok(())
}
