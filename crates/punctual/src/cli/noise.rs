//! Options of `measure noise`.

use analysis::format_exact;
use campaign::probe::{Definition, NoiseProbe, noise::THRESHOLD_NS};
use clap::Args;
use machine::CpuList;
use sys::sched::Policy;

use super::{Common, Placement, Rounds, duration, period};

/// Options of `measure noise`.
#[derive(Debug, Args)]
pub struct Noise {
    /// Measure these CPUs, e.g. 0,2-3 [default: all online].
    ///
    /// Isolated CPUs are included.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Count gaps longer than this.
    ///
    /// A gap is the time between two readings of the clock.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = format_exact(THRESHOLD_NS))]
    pub threshold: u64,
    /// Use policy fifo:N, rr:N or other.
    ///
    /// The priority N is 1 to 99.
    #[arg(long, default_value_t = NoiseProbe::default().policy(None))]
    pub policy: Policy,
    /// Measure and sleep with this period.
    #[arg(long, value_name = "TIME", value_parser = period, default_value = format_exact(NoiseProbe::default().period_ns))]
    pub period: u64,
    /// Measure for this part of each period [default: 95 %].
    ///
    /// A real-time thread must sleep for at least 5 %.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub runtime: Option<u64>,
    /// Judge by the limits of this profile; repeatable.
    ///
    /// A name (`punctual profiles` lists them) or a TOML file. The verdict is that of a thread that polls: a gap longer
    /// than the limit is a stall.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// End at PASS or FAIL; --duration is the longest time.
    ///
    /// The verdict must be shown at 95 %.
    #[arg(long, requires_all = ["profiles", "duration"])]
    pub until_decided: bool,
    /// Placement of threads.
    #[command(flatten)]
    pub placement: Placement,
    /// The number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Options of all measurements.
    #[command(flatten)]
    pub common: Common,
}
