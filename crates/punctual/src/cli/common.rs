//! Options that the measurements share: [`Common`] for all of them, [`WakeUps`] for those whose threads wake at deadlines.

use std::path::PathBuf;

use clap::Args;
use loads::LoadSpec;
use machine::CpuList;
use probes::timer::Core;
use sys::clock::{Clock, Wait};

use super::{Blame, Talk, duration};

/// Options that every measurement has.
#[derive(Debug, Args)]
pub struct Common {
    /// How long to measure [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<u64>,
    /// Measure until Ctrl-C.
    #[arg(long, conflicts_with = "duration")]
    pub endless: bool,
    /// What runs beside the probe: cpu, cache, memory, switch:10us, timer, disk, net, irq, stress-ng:ARGS, idle; can be
    /// repeated. `punctual loads` lists them.
    #[arg(long = "load", value_name = "LOAD")]
    pub loads: Vec<LoadSpec>,
    /// CPUs that loads may use [default: the measured ones].
    #[arg(long, value_name = "LIST")]
    pub load_cpus: Option<CpuList>,
    /// Hold the measured CPUs out of their idle states; as found if not given.
    #[arg(long)]
    pub hold_cpu_awake: bool,
    /// How to look for the culprits of spikes.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "trace")]
    pub blame: Blame,
    /// Where the record goes, its name ending in .punctual.json [default: HOST-DATE-TIME.punctual.json in this folder].
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep no record.
    #[arg(long, conflicts_with = "record")]
    pub no_record: bool,
    /// Write the result there too, in the format of the extension: json, csv, hgrm or html; `-` is JSON on standard
    /// output; can be repeated.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// How to talk.
    #[command(flatten)]
    pub talk: Talk,
}

/// Options of the measurements whose threads sleep until a deadline.
#[derive(Debug, Args)]
pub struct WakeUps {
    /// A use whose limits decide the verdict, by name or as a TOML file; can be repeated. `punctual profiles` lists them.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Lay a published reference, or another record, beside the result; can be repeated. `punctual references` lists them.
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Vec<String>,
    /// Lateness above which a wake-up is a spike [default: 100us, or the period where that is less].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub threshold: Option<u64>,
    /// Run the kernel's own timerlat tracer beside the probe: how late a timer's interrupt comes, and how late a thread of
    /// the kernel runs then. Its threads run above the probe (FIFO 95) and delay it, so it is off unless asked for.
    #[arg(long)]
    pub timerlat: bool,
    /// End with the first wake-up that is later, and keep the kernel's trace of what led to it.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stop_on: Option<u64>,
    /// Where that trace goes, for trace-cmd and KernelShark [default: HOST-DATE-TIME.trace.dat in this folder].
    #[arg(long, value_name = "FILE", requires = "stop_on")]
    pub stop_trace: Option<PathBuf>,
    /// Shell command to run once stopped; PUNCTUAL_TRACE and PUNCTUAL_RECORD name the files.
    #[arg(long, value_name = "COMMAND", requires = "stop_on")]
    pub stop_run: Option<String>,
    /// monotonic, realtime, tai or boottime [default: monotonic].
    #[arg(long)]
    pub clock: Option<Clock>,
    /// nanosleep or timerfd.
    #[arg(long, default_value = "nanosleep")]
    pub wait: Wait,
    /// Who schedules the measuring threads: linux, or evl where the kernel has the EVL core (Xenomai 4).
    #[arg(long, default_value = "linux")]
    pub core: Core,
}
