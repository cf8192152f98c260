//! The plan of a run.
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

use crate::Cores;
use analysis::Profile;
use machine::{
    CpuList,
    nic::NicSettings,
    tune::{self, Choice, Setting},
};
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

pub use self::phase::{Length, PhasePlan};
use crate::{on_spike::OnSpike, probe::Probe};

/// A run: its probe, CPUs, policy and settings, and its phases with their loads.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// The probe with its options.
    pub probe: Probe,
    /// CPUs to measure; `None` for every CPU that is online and allowed.
    pub cpus: Option<CpuList>,
    /// CPUs for loads that name none; `None` for the measured CPUs.
    pub load_cpus: Option<CpuList>,
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// Method by which the threads wait for their deadlines.
    pub wait: Wait,
    /// The core that schedules them.
    pub core: Cores,
    /// Shift between the grids of neighbouring CPUs, ns.
    pub offset_ns: u64,
    /// Lateness above which a wake-up is a spike, ns; `None` for 100 us, or for a shorter period that period. For the
    /// noise probe this is the length of a gap, and `None` is 1 us.
    pub threshold_ns: Option<u64>,
    /// CPUs that other work is moved off for the run. By default these are the measured CPUs, and loads use the others;
    /// `cpus` and `load_cpus` change that.
    pub shield: Option<CpuList>,
    /// True to keep the measured CPUs out of their idle states.
    pub hold_cpu_awake: bool,
    /// Settings of the machine for the run; those of CPUs change the measured CPUs only.
    pub settings: Vec<Choice>,
    /// Settings whose values were read before, and are applied as they are.
    pub planned_settings: Vec<Setting>,
    /// The right to change settings, if this process has it for longer than the run; `None` to take it for the run.
    pub tune_lock: Option<tune::Lock>,
    /// Settings of the network interface that the probe uses.
    pub nic: NicPlan,
    /// Method of finding the culprits of spikes.
    pub blame: blame::BlameMode,
    /// True to measure the cost of tracing after the run, which takes half a second. Probes with
    /// `measures_trace_cost` can.
    pub blame_cost: bool,
    /// True to run the kernel's timerlat tracer at the same time.
    pub timerlat: bool,
    /// When to end early and keep the trace.
    pub stop_on: Option<StopOn>,
    /// Actions at spikes.
    pub on_spike: OnSpike,
    /// The parts of the run in their order; at least one.
    pub phases: Vec<PhasePlan>,
    /// Names of the profiles that decide the verdict.
    pub profiles: Vec<String>,
    /// The latency that no wake-up or gap may reach, ns; `None` without such a limit.
    pub limit_ns: Option<u64>,
    /// The run ends as soon as the verdict on these profiles is decided; empty for a run that lasts its length.
    pub until_decided: Vec<Profile>,
    /// File that the record is written to during the run; `None` to keep it only in memory.
    pub record_path: Option<PathBuf>,
    /// The punctual binary, which runs itself for each load.
    pub executable: PathBuf,
    /// Time between two progress reports; `None` for no reports.
    pub watch_every: Option<Duration>,
}

impl Plan {
    /// A plan with defaults: the policy of the probe, all CPUs that are online and allowed, no changes on the machine,
    /// and no record file. These defaults are defined only here.
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
            core: Cores::Linux,
            offset_ns: 0,
            threshold_ns: None,
            shield: None,
            hold_cpu_awake: false,
            settings: Vec::new(),
            planned_settings: Vec::new(),
            tune_lock: None,
            nic: NicPlan::default(),
            blame: blame::BlameMode::Auto,
            blame_cost: false,
            timerlat: false,
            stop_on: None,
            on_spike: OnSpike::default(),
            phases,
            profiles: Vec::new(),
            limit_ns: None,
            until_decided: Vec::new(),
            record_path: None,
            executable: PathBuf::new(),
            watch_every: None,
        }
    }
}

impl Plan {
    /// Lateness above which a wake-up is a spike at `period_ns`, ns. The default is
    /// [`Timing::threshold_ns`](crate::probe::Timing).
    #[must_use]
    pub fn threshold_at(&self, period_ns: u64) -> i64 {
        let threshold_ns = self.threshold_ns.unwrap_or_else(|| self.probe.definition().timing(period_ns).threshold_ns);
        // A wake-up that ends the run is a spike.
        let threshold_ns = self.stop_on.as_ref().map_or(threshold_ns, |stop_on| threshold_ns.min(stop_on.lateness_ns));
        i64::try_from(threshold_ns).unwrap_or(i64::MAX)
    }
}

/// Settings of a network interface for the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicPlan {
    /// Driver settings, e.g. interrupt coalescing.
    pub values: NicSettings,
    /// Priority of the threads that serve it, 1 to 99 under SCHED_FIFO; `None` leaves them as they are. For the interrupt
    /// probe, it is that of the interrupt threads of its source.
    pub irq_priority: Option<u8>,
}

impl NicPlan {
    /// True if nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.irq_priority.is_none()
    }
}

/// When to end a run early, and where to write the trace of the time before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOn {
    /// Lateness above which the run ends, ns.
    pub lateness_ns: u64,
    /// File for the trace, in the format of trace-cmd.
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
    fn the_default_threshold_is_100_us_or_a_shorter_period() {
        assert_eq!(plan(vec![]).threshold_at(1_000_000), 100_000);
        assert_eq!(plan(vec![]).threshold_at(25_000), 25_000);
        assert_eq!(Plan { threshold_ns: Some(7), ..plan(vec![]) }.threshold_at(25_000), 7);
    }
}
