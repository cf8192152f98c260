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
    /// Measure these CPUs, e.g. 0,2-3 [default: every online CPU, including isolated ones].
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Count a gap if two readings of the clock are further apart than this.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = format_exact(THRESHOLD_NS))]
    pub threshold: u64,
    /// Measure with this policy: other, fifo:1-99 or rr:1-99.
    #[arg(long, default_value_t = NoiseProbe::default().policy(None))]
    pub policy: Policy,
    /// Repeat measuring and sleeping with this period.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = format_exact(NoiseProbe::default().period_ns))]
    pub period: u64,
    /// Measure for this part of each period; a real-time thread must sleep for at least 5 % [default: 95 % of the
    /// period].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub runtime: Option<u64>,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}
