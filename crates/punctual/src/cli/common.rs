//! Options that measurements share: [`Common`] for all of them, [`WakeUps`] for those with deadlines.

use campaign::{Action, Cores};
use std::path::PathBuf;

use clap::Args;
use loads::LoadSpec;
use machine::{CpuList, tune::Choice};
use sys::clock::{Clock, Wait};

use super::{Blame, Extent, OutputOptions, duration};
use crate::output::RecordFiles;

/// Options of all measurements.
#[derive(Debug, Args)]
pub struct Common {
    /// Measure for this long [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// Measure until Ctrl-C.
    #[arg(long, conflicts_with = "duration")]
    pub endless: bool,
    /// Run this load, e.g. cpu or switch:10us; repeatable.
    ///
    /// `punctual loads` lists them: cpu, cache, memory, switch, timer, disk, net, irq, stress-ng:ARGS and idle.
    #[arg(long = "load", value_name = "LOAD")]
    pub loads: Vec<LoadSpec>,
    /// Run loads on these CPUs [default: measured ones].
    #[arg(long, value_name = "LIST")]
    pub load_cpus: Option<CpuList>,
    /// Keep the measured CPUs out of idle states.
    ///
    /// Without it, idle states are not changed.
    #[arg(long)]
    pub hold_cpu_awake: bool,
    /// Change this setting, ID or ID=VALUE; repeatable.
    ///
    /// `punctual tune --full` lists them, e.g. cpu.governor=performance or cpu.max_freq=1000MHz. They are restored after
    /// the run. Settings of CPUs change the measured CPUs only.
    #[arg(long = "setting", value_name = "ID[=VALUE]", value_parser = super::tune::choice)]
    pub settings: Vec<Choice>,
    /// Causes by trace, deep, counters, off [default: auto].
    ///
    /// --blame without a value means trace.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "trace")]
    pub blame: Blame,
    /// The record.
    #[command(flatten)]
    pub record: RecordOptions,
    /// Also write FILE; its suffix is the format; repeatable.
    ///
    /// json, csv, hgrm, hlog, html, md, xml (JUnit), lava, prom, sarif or tex; `-` prints JSON on standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
    /// The latency that no wake-up or gap may reach, ns. Set by `punctual pod`; not an option.
    #[arg(skip)]
    pub limit_ns: Option<u64>,
}

/// The number of rounds.
#[derive(Debug, Args)]
pub struct Rounds {
    /// Measure this many times, one record each.
    ///
    /// --record names the folder of the records. --against is then judged as by `punctual compare`, with intervals.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        conflicts_with = "endless"
    )]
    pub rounds: Option<u32>,
}

/// The path of the record and of its HTML report.
#[derive(Debug, Args)]
pub struct RecordOptions {
    /// Name the record and report [default: HOST-DATE-TIME].
    ///
    /// FILE.punctual.json and FILE.punctual.html are written to this folder unless FILE is a path.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Write neither record nor report.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
}

impl RecordOptions {
    /// The files of the run.
    pub fn files(&self) -> anyhow::Result<RecordFiles> {
        RecordFiles::choose(self.record.as_deref(), self.no_record)
    }
}

/// Options of measurements with deadlines.
#[derive(Debug, Args)]
pub struct WakeUps {
    /// Judge by the limits of this profile; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// End at PASS or FAIL; --duration is the longest time.
    ///
    /// The verdict must be shown at 95 %.
    #[arg(long, requires_all = ["profiles", "duration"])]
    pub until_decided: bool,
    /// Compare with a reference, record or LAST; repeatable.
    ///
    /// `punctual references` lists the published figures.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// A spike is later than this [default: 100us or period].
    ///
    /// A wake-up that is later counts as a spike. The default is the shorter of the two.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// Also run the kernel's timerlat tracer.
    ///
    /// It measures the latency of a timer interrupt and of the kernel thread that it wakes. Its threads have a higher
    /// priority (FIFO 95) than the probe and delay it.
    #[arg(long)]
    pub timerlat: bool,
    /// Stop at the first later wake-up, and save the trace.
    ///
    /// A wake-up later than this ends the run.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stop_on: Option<u64>,
    /// Write the trace to this file [default: HOST-DATE-TIME].
    ///
    /// The file HOST-DATE-TIME.trace.dat in this folder is for trace-cmd and KernelShark.
    #[arg(long, value_name = "FILE", requires = "stop_on")]
    pub stop_trace: Option<PathBuf>,
    /// Run this shell command after --stop-on has stopped.
    ///
    /// PUNCTUAL_TRACE and PUNCTUAL_RECORD contain the file names.
    #[arg(long, value_name = "COMMAND", requires = "stop_on")]
    pub stop_run: Option<String>,
    /// At spikes: trace, stop, command:CMD, signal:NAME:PID.
    ///
    /// Repeatable. A spike is later than --threshold. An ordinary thread acts up to 40 ms later, at most 25 times a
    /// second and CPU. `trace` or `trace:PREFIX` saves the kernel's trace of the time before it for trace-cmd and
    /// KernelShark, at most 10 times. A command runs in a shell with the rights of punctual, one at a time;
    /// PUNCTUAL_PLACE, PUNCTUAL_LATENESS_NS, PUNCTUAL_AT_NS and PUNCTUAL_CULPRIT describe the spike. The record counts
    /// the actions.
    #[arg(long, value_name = "ACTION")]
    pub on_spike: Vec<Action>,
    /// Do the actions of --on-spike only at the first spike.
    #[arg(long, requires = "on_spike")]
    pub on_spike_once: bool,
    /// Use clock realtime, tai, boottime [default: monotonic].
    ///
    /// Deadlines and wake-ups are times of this clock.
    #[arg(long)]
    pub clock: Option<Clock>,
    /// Wait by nanosleep or timerfd.
    ///
    /// The way in which threads wait for their deadlines.
    #[arg(long, default_value = "nanosleep")]
    pub wait: Wait,
    /// Schedule by linux, evl or both.
    ///
    /// evl and both need a kernel with the EVL core (Xenomai 4). both runs one thread of each on every measured CPU,
    /// half a period apart, and compares them; only for `measure timer`.
    #[arg(long, default_value = "linux")]
    pub core: Cores,
}
