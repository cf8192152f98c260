//! What is asked for.
//!
//! | module | holds |
//! |---|---|
//! | `probe` | what the measuring threads do |
//! | `phase` | one part of a run |
//! | `duration` | how long a run takes |
//! | `check` | what is wrong with a plan |
//! | `told` | a plan as the record tells it |

mod check;
mod duration;
mod phase;
mod probe;
mod told;

use std::{path::PathBuf, time::Duration};

use machine::CpuList;
use probes::timer::Core;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

pub use self::{
    check::PlanError,
    phase::{Length, PhasePlan, ThreadPlan},
    probe::{NOISE_PERIOD_NS, NOISE_SHARE_PERCENT, Probe},
};
use crate::NicPlan;

/// Longest period, ns: one hour.
pub const PERIOD_MAX_NS: u64 = 3_600_000_000_000;

/// A run: what measures, where and how, and what runs beside it, phase after phase.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// What the measuring threads do.
    pub probe: Probe,
    /// CPUs to measure; `None` for every CPU that is online and allowed.
    pub cpus: Option<CpuList>,
    /// CPUs that loads may use where they do not say so themselves; `None` for the measured ones.
    pub load_cpus: Option<CpuList>,
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// How the threads wait.
    pub wait: Wait,
    /// Who schedules them.
    pub core: Core,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; `None` for 100 us, or the period where that is less. Of the noise
    /// probe the length above which a gap is one; `None` for 1 us.
    pub threshold_ns: Option<u64>,
    /// CPUs that all else is moved off for the run. They are the measured ones, and loads use the others, unless `cpus` and
    /// `load_cpus` say otherwise.
    pub shield: Option<CpuList>,
    /// Whether to hold the measured CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// How the interface is set for the run that datagrams or frames go over.
    pub nic: NicPlan,
    /// How to look for the culprits of spikes.
    pub blame: blame::Asked,
    /// Whether to measure after the run what looking costs; that takes half a second.
    pub blame_cost: bool,
    /// Whether to run the kernel's timerlat tracer beside the probe.
    pub timerlat: bool,
    /// When to end early and keep the trace.
    pub stop_on: Option<StopOn>,
    /// The parts of the run in their order; at least one.
    pub phases: Vec<PhasePlan>,
    /// Names of the profiles that decide the verdict.
    pub profiles: Vec<String>,
    /// Where the record is kept while the run goes on; `None` to keep it in memory alone.
    pub record_path: Option<PathBuf>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// How often to report progress; `None` for never.
    pub watch_every: Option<Duration>,
}

/// When to end a run early, and what to do with the trace that led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOn {
    /// Lateness above which the run ends, ns.
    pub lateness_ns: u64,
    /// Where the trace goes, in the format of trace-cmd.
    pub trace_path: PathBuf,
}

/// Plans that tests begin with.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn phase(period_ns: u64, length: Length) -> PhasePlan {
        PhasePlan { name: "rest".to_owned(), period_ns, length, loads: Vec::new(), threads: Vec::new() }
    }

    pub fn plan(phases: Vec<PhasePlan>) -> Plan {
        Plan {
            command: Vec::new(),
            probe: Probe::Timer,
            cpus: None,
            load_cpus: None,
            policy: Policy::Other,
            clock: Clock::Monotonic,
            wait: Wait::Nanosleep,
            core: Core::Linux,
            offset_ns: 0,
            threshold_ns: None,
            shield: None,
            hold_cpu_awake: false,
            nic: NicPlan::default(),
            blame: blame::Asked::Auto,
            blame_cost: true,
            timerlat: false,
            stop_on: None,
            phases,
            profiles: Vec::new(),
            record_path: None,
            executable: PathBuf::new(),
            watch_every: None,
        }
    }
}
