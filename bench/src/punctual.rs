//! One run of punctual.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use record::{Histogram, Machine, Noise, Record};
use sys::child::Ended;

use crate::{
    run::{Run, run},
    scenario::{Length, Scenario},
};

/// Pass, limit exceeded, inconclusive, invalid: in each case the record is there, and says what ran.
const ACCEPTED: [i32; 4] = [0, 2, 3, 4];
const REMEDY: &str = "build it with: make bench";

/// The program under test.
#[derive(Debug, Clone)]
pub struct Punctual {
    binary: PathBuf,
    /// How it looks for culprits; cyclictest does not, so neither does punctual beside it.
    blame: &'static str,
}

/// What one run saw, and what it cost.
#[derive(Debug)]
pub struct Seen {
    /// One entry a wake-up, ns.
    pub lateness: Histogram,
    /// Wake-ups.
    pub cycles: u64,
    /// Deadlines that passed meanwhile.
    pub missed: u64,
    /// Of a run of one wake-up a CPU: from just before the start of the program to the last of these samples, ns.
    pub to_first_sample_ns: i64,
    /// What the record remarks on: a guard that stepped in.
    pub notes: Vec<String>,
    /// The cost of the whole program.
    pub usage: Ended,
    /// Where it ran.
    pub machine: Machine,
    /// Its version.
    pub version: String,
}

impl Punctual {
    /// The program at `binary`.
    pub fn new(binary: &Path) -> Self {
        Self { binary: binary.to_owned(), blame: "off" }
    }

    /// The same program, but looking for culprits in the kernel's trace.
    pub fn with_blame(&self) -> Self {
        Self { blame: "trace", ..self.clone() }
    }

    /// Size of its file, bytes.
    pub fn size(&self) -> Result<u64> {
        Ok(self.binary.metadata().with_context(|| format!("cannot read {}; {REMEDY}", self.binary.display()))?.len())
    }

    /// The command of a scenario.
    pub fn command(&self, scenario: &Scenario) -> Command {
        let mut command = self.every_cpu(scenario.period_us, scenario.length);
        command.args(["--cpus", &scenario.cpu.to_string()]);
        command
    }

    /// Measures `scenario`.
    pub fn measure(&self, scenario: &Scenario) -> Result<Seen> {
        seen(&mut self.command(scenario))
    }

    /// Measures every CPU.
    pub fn measure_every_cpu(&self, period_us: u64, length: Length) -> Result<Seen> {
        seen(&mut self.every_cpu(period_us, length))
    }

    /// The command of so many threads alike on every CPU.
    pub fn threads(&self, count: u64, period_us: u64, seconds: u64) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["measure", "threads", "--quiet", "--no-record", "--json", "--policy", "fifo:90"]);
        command.args(["--hold-cpu-awake", &format!("--blame={}", self.blame), "--threads", &count.to_string()]);
        command.args(["--period", &format!("{period_us}us"), "--duration", &format!("{seconds}s")]);
        command
    }

    /// What the noise probe saw of one CPU, at the lowest real-time priority.
    pub fn noise(&self, cpu: u32, seconds: u64) -> Result<Noise> {
        let mut command = Command::new(&self.binary);
        command.args(["measure", "noise", "--quiet", "--no-record", "--json", "--blame=off", "--policy", "fifo:1"]);
        command.args(["--cpus", &cpu.to_string(), "--duration", &format!("{seconds}s")]);
        let record = recorded(&mut command)?.0;
        let noise = record.series.into_iter().next().and_then(|series| series.kind.noise().cloned());
        noise.context("punctual saw no noise")
    }

    /// Round trips of datagrams between two ends of its own, from when each was sent.
    pub fn round_trips(&self, cpu: u32, far_cpu: u32, period_us: u64, count: u64, bytes: u64) -> Result<Histogram> {
        let mut command = self.udp(cpu, period_us, count, bytes);
        command.args(["--self", "--echo-policy", "fifo:97", "--echo-cpu", &far_cpu.to_string()]);
        from_sent(&mut command)
    }

    /// The same to an answering end elsewhere.
    pub fn round_trips_to(&self, peer: &str, cpu: u32, period_us: u64, count: u64, bytes: u64) -> Result<Histogram> {
        from_sent(self.udp(cpu, period_us, count, bytes).arg(peer))
    }

    fn udp(&self, cpu: u32, period_us: u64, count: u64, bytes: u64) -> Command {
        let mut command = self.with(&["measure", "udp", "--quiet", "--no-record", "--json", "--blame=off"]);
        command.args(["--policy", "fifo:98", "--receive-policy", "fifo:97", "--cpu", &cpu.to_string()]);
        command.args(["--size", &bytes.to_string(), "--period", &format!("{period_us}us")]);
        command.args(["--samples", &count.to_string()]);
        command
    }

    /// What a capture of the wire tells, and what it cost.
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

    fn every_cpu(&self, period_us: u64, length: Length) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["measure", "timer", "--quiet", "--no-record", "--json"]);
        command.arg(format!("--blame={}", self.blame));
        // Memory it locks without being asked.
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
        bail!("round trips were measured without the rights that were asked for; run as root: make bench");
    }
    let found = record.series.into_iter().find_map(|series| series.kind.round_trip()?.from_sent.clone());
    Ok(found.context("punctual measured no round trip")?.histogram)
}

/// Runs it, and reads the record that it printed.
pub fn recorded(command: &mut Command) -> Result<(Record, Run)> {
    let run = run(command, &ACCEPTED, REMEDY)?;
    let record = serde_json::from_str(&run.stdout).context("punctual printed no record")?;
    Ok((record, run))
}

fn seen(command: &mut Command) -> Result<Seen> {
    let (record, run) = recorded(command)?;
    refuse_other_than_asked(&record)?;
    let first_samples = record.series.iter().map(|series| series.first_deadline_ns + series.max_ns.unwrap_or_default());
    let last_first_ns = first_samples.max().context("punctual measured no CPU")?;
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

/// Two programs compare only if both ran as they were asked to; cyclictest ends with an error when it may not.
fn refuse_other_than_asked(record: &Record) -> Result<()> {
    for series in &record.series {
        let granted = &series.granted;
        if granted.policy != "fifo:90" || !granted.memory_locked || granted.cpu_awake.is_none() {
            bail!("{} was measured without the rights that were asked for; run as root: make bench", series.place());
        }
    }
    Ok(())
}
