//! Options of `measure noise`.

use analysis::format_exact;
use campaign::probe::{Definition, NoiseProbe, noise::THRESHOLD_NS};
use clap::Args;
use machine::CpuList;
use sys::sched::Policy;

use super::{Common, Placement, duration, period};

/// Options of `measure noise`.
#[derive(Debug, Args)]
pub struct Noise {
    /// CPUs to measure, as the kernel writes a list (0,2-3); every online CPU if not given, isolated ones included.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Time between two readings of the clock above which they are a gap.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = format_exact(THRESHOLD_NS))]
    pub threshold: u64,
    /// other, or a real-time policy to see what disturbs a real-time thread: fifo:1-99, rr:1-99.
    #[arg(long, default_value_t = NoiseProbe::default().policy(None))]
    pub policy: Policy,
    /// How long a stretch of looking takes together with the rest after it.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = format_exact(NoiseProbe::default().period_ns))]
    pub period: u64,
    /// How long each stretch of looking takes; a real-time thread must rest for 5 % of the period [default: 95 % of the
    /// period].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub runtime: Option<u64>,
    /// Where things run.
    #[command(flatten)]
    pub placement: Placement,
    /// What every measurement has.
    #[command(flatten)]
    pub common: Common,
}
