//! `punctual measure`: one module for each probe, and functions that the probes share.

mod audio;
mod interrupt;
mod noise;
mod process;
pub mod round_trip;
pub mod stream;
mod threads;
mod timer;

use std::{path::Path, process::Command};

use analysis::Profile;
use anyhow::{Context, bail};
use campaign::{Length, OnSpike, PhasePlan, Plan, Probe, StopOn, ThreadPlan, UNWRITTEN_TRACE};
use loads::LoadSpec;
use record::{Outcome, Record};
use report::Style;

use crate::{
    cli::{Common, Measure, WakeUps},
    cmd::rounds,
    exit::Usage,
    output::{self, RecordFiles},
};

pub fn run(probe: &Measure) -> anyhow::Result<u8> {
    if let Some(rounds) = probe.rounds() {
        return rounds::run(rounds, probe.common(), probe.against());
    }
    match probe {
        Measure::Process(options) => process::run(options),
        Measure::Timer(options) => timer::run(options),
        Measure::Threads(options) => threads::run(options),
        Measure::Noise(options) => noise::run(options),
        Measure::Udp(options) => round_trip::udp(options),
        Measure::Ping(options) => round_trip::ping(options),
        Measure::RoundTrip(options) => round_trip::mirror(options),
        Measure::Stream(options) => stream::run(options),
        Measure::Interrupt(options) => interrupt::run(options),
        Measure::Audio(options) => audio::run(options),
    }
}

/// The plan of a measurement, to be repeated in rounds. Its options say that no record is written.
///
/// # Errors
/// It is invalid, or of a kind that cannot be repeated in rounds.
pub fn plan_of(probe: &Measure) -> anyhow::Result<Plan> {
    if probe.rounds().is_some() {
        return Err(Usage("a round is one measurement: leave out --rounds".to_owned()).into());
    }
    let files = RecordFiles::choose(None, true)?;
    match probe {
        Measure::Timer(options) => timer::plan(options, &files),
        Measure::Threads(options) if options.matrix => {
            Err(Usage("a round is one measurement: leave out --matrix".to_owned()).into())
        }
        Measure::Threads(options) => threads::plan(options, &files),
        Measure::Noise(options) => noise::plan(options, &files),
        Measure::Udp(options) => round_trip::Ready::prepare(&options.shared, round_trip::to_echo(options)?)?.plan(),
        Measure::Ping(options) => round_trip::Ready::prepare(&options.shared, round_trip::to_device(options)?)?.plan(),
        Measure::RoundTrip(options) => {
            round_trip::Ready::prepare(&options.shared, round_trip::to_mirror(options)?)?.plan()
        }
        Measure::Stream(options) => stream::plan_of_rounds(options),
        Measure::Interrupt(options) if options.list => {
            Err(Usage("a round measures one source: leave out --list, and name it with --source".to_owned()).into())
        }
        Measure::Interrupt(options) => interrupt::plan(options, &files),
        Measure::Audio(options) if options.find_buffer.is_some() => {
            Err(Usage("a round measures one buffer size: replace --find-buffer with --frames N".to_owned()).into())
        }
        Measure::Audio(options) => audio::plan(options, &files),
        Measure::Process(_) => {
            let text = "process cannot be measured in rounds, because a program does different work in each: start the \
                        program, and measure a timer with its period meanwhile, e.g. timer --period 1ms";
            Err(Usage(text.to_owned()).into())
        }
    }
}

/// The loads to run. `--load idle` is the same as no `--load`.
fn loads(common: &Common) -> Vec<LoadSpec> {
    let idle = common.loads.iter().all(|spec| spec.load.is_idle());
    if idle { Vec::new() } else { common.loads.clone() }
}

/// The name of a phase with these loads.
fn phase_name(loads: &[LoadSpec]) -> String {
    if loads.is_empty() { "rest" } else { "load" }.to_owned()
}

fn length(common: &Common) -> Length {
    match common.duration {
        _ if common.endless => Length::UntilStopped,
        Some(duration_ns) => Length::Duration(duration_ns),
        None => Length::default(),
    }
}

/// A phase with the loads of the shared options.
fn phase(common: &Common, period_ns: u64, length: Length, threads: Vec<ThreadPlan>) -> PhasePlan {
    let loads = loads(common);
    PhasePlan { name: phase_name(&loads), period_ns, length, loads, threads }
}

/// An error for --load-cpus without a load. `is_idle` is true if the measurement has no loads by default.
fn check_load_cpus(common: &Common, is_idle: bool) -> Result<(), Usage> {
    match &common.load_cpus {
        Some(cpus) if common.loads.is_empty() && is_idle => {
            Err(Usage(format!("--load-cpus {cpus} has no effect without a load: add --load, e.g. --load cpu")))
        }
        _ => Ok(()),
    }
}

/// A plan with the options of all measurements.
fn plan(common: &Common, files: &RecordFiles, probe: Probe, phases: Vec<PhasePlan>) -> anyhow::Result<Plan> {
    check_load_cpus(common, phases.iter().all(|phase| phase.loads.is_empty()))?;
    Ok(Plan {
        command: output::command_line(),
        load_cpus: common.load_cpus.clone(),
        hold_cpu_awake: common.hold_cpu_awake,
        settings: common.settings.clone(),
        blame: common.blame.into(),
        limit_ns: common.limit_ns,
        record_path: files.record.clone(),
        executable: output::executable()?,
        watch_every: output::watch_every(common.output),
        ..Plan::new(probe, phases)
    })
}

/// The profiles whose verdict ends the run; none if it lasts its length.
fn until_decided(requested: bool, profiles: &[String]) -> anyhow::Result<Vec<Profile>> {
    if requested { output::find_profiles(profiles) } else { Ok(Vec::new()) }
}

impl WakeUps {
    /// Applies these options to a plan.
    fn apply(&self, plan: Plan) -> anyhow::Result<Plan> {
        let trace_path = || self.stop_trace.clone().unwrap_or_else(|| output::default_name("trace.dat").into());
        Ok(Plan {
            clock: self.clock.unwrap_or(plan.clock),
            wait: self.wait,
            core: self.core,
            threshold_ns: self.threshold,
            timerlat: self.timerlat,
            stop_on: self.stop_on.map(|lateness_ns| StopOn { lateness_ns, trace_path: trace_path() }),
            on_spike: OnSpike {
                actions: self.on_spike.clone(),
                repeated: !self.on_spike_once,
                trace_prefix: output::host_and_time(),
            },
            profiles: self.profiles.clone(),
            until_decided: until_decided(self.until_decided, &self.profiles)?,
            ..plan
        })
    }

    /// The exit status: that of the record, unless --stop-on ended the run. An error if its trace is missing.
    fn status(&self, record: &Record, results: &Results) -> anyhow::Result<u8> {
        match stopped_trace(record) {
            Some(trace) => self.finish_stopped(results, trace),
            None => match record.caveats.iter().find(|caveat| caveat.kind == UNWRITTEN_TRACE) {
                Some(caveat) if self.stop_on.is_some() => bail!("the trace of --stop-on is missing: {}", caveat.text),
                _ => Ok(output::status(record)),
            },
        }
    }

    /// Prints the path of the trace, runs the command of --stop-run, and returns the status of an exceeded limit.
    fn finish_stopped(&self, results: &Results, trace: &str) -> anyhow::Result<u8> {
        if !results.options.output.quiet {
            say!("trace   {trace}   (kernelshark {trace}, or: trace-cmd report {trace})");
        }
        if let Some(command) = &self.stop_run {
            let record = results.files.record.as_deref().unwrap_or(Path::new(""));
            let status = Command::new("sh")
                .args(["-c", command])
                .env("PUNCTUAL_TRACE", trace)
                .env("PUNCTUAL_RECORD", record)
                .status()
                .context("cannot start a shell for --stop-run")?;
            if !status.success() {
                say!("note: the command of --stop-run failed: {status}");
            }
        }
        Ok(Outcome::Fail.exit_status())
    }
}

/// The path of the trace of a run that --stop-on ended.
fn stopped_trace(record: &Record) -> Option<&str> {
    record.blame.as_ref()?.stopped_trace.as_deref()
}

/// Files for the results of a measurement. They are checked before it begins.
struct Results<'a> {
    options: &'a Common,
    files: RecordFiles,
}

impl<'a> Results<'a> {
    fn prepare(options: &'a Common) -> anyhow::Result<Self> {
        Ok(Self { options, files: options.record.files()?.with_exports(&options.exports)? })
    }

    /// Writes the record and its exports, and prints the page.
    fn deliver(&self, record: &Record, page: impl FnOnce(&Style, usize) -> String) -> anyhow::Result<()> {
        output::deliver(self.options.output, self.options.extent, record, &self.files, page)
    }
}
