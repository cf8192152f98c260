//! What a run is asked for.
//!
//! | module | contains |
//! |---|---|
//! | `phase` | one part of a run |
//! | `duration` | how long a run takes |
//! | `check` | checks of a whole plan |
//! | `scenario` | a plan as the record describes it |

mod check;
mod duration;
mod phase;
mod scenario;

use std::{path::PathBuf, time::Duration};

use machine::{CpuList, nic::NicSettings};
use probes::timer::{Core, Fraction};
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

pub use self::phase::{Length, PhasePlan};
use crate::probe::Probe;

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
    pub blame: blame::BlameMode,
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

impl Plan {
    /// The plan of a run that asks for nothing else: the policy is that of the probe, the CPUs are all that are online and
    /// allowed, nothing of the machine is changed, and no record is kept. The only place where these defaults are set.
    #[must_use]
    pub fn new(probe: Probe, phases: Vec<PhasePlan>) -> Self {
        Self {
            command: Vec::new(),
            cpus: None,
            load_cpus: None,
            policy: probe.definition().policy(None),
            probe,
            clock: Clock::Monotonic,
            wait: Wait::Nanosleep,
            core: Core::Linux,
            offset_ns: 0,
            threshold_ns: None,
            shield: None,
            hold_cpu_awake: false,
            nic: NicPlan::default(),
            blame: blame::BlameMode::Auto,
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

impl Plan {
    /// The part of a period beyond its whole ns.
    pub(crate) fn fraction(&self, period_ns: u64) -> Fraction {
        self.probe.definition().fraction(period_ns)
    }

    /// What is a spike at `period_ns`, ns, as [`Definition::threshold_ns`](crate::probe::Definition::threshold_ns) says.
    #[must_use]
    pub fn threshold_at(&self, period_ns: u64) -> i64 {
        let threshold_ns = self.threshold_ns.unwrap_or_else(|| self.probe.definition().threshold_ns(period_ns));
        // A wake-up that ends the run is a spike.
        let threshold_ns = self.stop_on.as_ref().map_or(threshold_ns, |stop_on| threshold_ns.min(stop_on.lateness_ns));
        i64::try_from(threshold_ns).unwrap_or(i64::MAX)
    }
}

/// How a network interface is set for the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicPlan {
    /// Its values.
    pub values: NicSettings,
    /// Priority of the threads that serve it, 1 to 99 under SCHED_FIFO; `None` leaves them as they are.
    pub irq_priority: Option<u8>,
}

impl NicPlan {
    /// True if nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.irq_priority.is_none()
    }
}

/// When to end a run early, and where to keep the trace that led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOn {
    /// Lateness above which the run ends, ns.
    pub lateness_ns: u64,
    /// Where the trace goes, in the format of trace-cmd.
    pub trace_path: PathBuf,
}

/// Plans for tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::probe::TimerProbe;

    pub fn phase(period_ns: u64, length: Length) -> PhasePlan {
        PhasePlan { name: "rest".to_owned(), period_ns, length, loads: Vec::new(), threads: Vec::new() }
    }

    pub fn plan(phases: Vec<PhasePlan>) -> Plan {
        Plan { policy: Policy::Other, ..Plan::new(Probe::Timer(TimerProbe::default()), phases) }
    }

    #[test]
    fn a_spike_is_above_100_us_or_a_period() {
        assert_eq!(plan(vec![]).threshold_at(1_000_000), 100_000);
        assert_eq!(plan(vec![]).threshold_at(25_000), 25_000);
        assert_eq!(Plan { threshold_ns: Some(7), ..plan(vec![]) }.threshold_at(25_000), 7);
    }
}
