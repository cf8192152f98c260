//! Noise: gaps in a loop that reads a clock and never sleeps, one on each CPU.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use probes::{probe_threads::ProbeThreads, timer::Fraction};
use sys::sched::Policy;

use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing,
    },
    timer::{GUARD_REMEDIES, one_on_each_cpu},
};

/// Default share of each period that the loop runs, per cent. By default the kernel limits real-time threads to the
/// same share.
pub const SHARE_PERCENT: u64 = 95;
/// Default length above which an interruption is a gap, ns.
pub const THRESHOLD_NS: u64 = 1_000;
/// Range of the time that a real-time thread may run without sleeping, ns.
const SPIN_NS: RangeInclusive<u64> = 1..=950_000_000;

/// Options of the noise probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoiseProbe {
    /// Duration of one run of the loop and the sleep after it, ns.
    pub period_ns: u64,
    /// Duration of one run of the loop, ns; `None` for [`SHARE_PERCENT`] of the period.
    pub runtime_ns: Option<u64>,
}

impl Default for NoiseProbe {
    fn default() -> Self {
        Self { period_ns: 100_000_000, runtime_ns: None }
    }
}

impl NoiseProbe {
    /// Time that the loop runs in each period, ns.
    #[must_use]
    pub fn runtime_at(&self, period_ns: u64) -> u64 {
        self.runtime_ns.unwrap_or_else(|| period_ns.saturating_mul(SHARE_PERCENT) / 100)
    }

    fn check_period(&self, policy: Policy, period_ns: u64) -> Result<(), PlanError> {
        let runtime_ns = self.runtime_at(period_ns);
        let sleeps = runtime_ns <= period_ns.saturating_mul(SHARE_PERCENT) / 100 && runtime_ns <= *SPIN_NS.end();
        match policy {
            _ if runtime_ns < *SPIN_NS.start() || runtime_ns > period_ns => Err(PlanError::Runtime),
            Policy::Deadline { .. } => Err(PlanError::NoiseDeadline),
            policy if policy.is_realtime() && !sleeps => Err(PlanError::NoRest),
            Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Other | Policy::Unknown(_) => Ok(()),
        }
    }
}

impl Definition for NoiseProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: record::NOISE,
            network: Network::None,
            has_late_wake_ups: true,
            measures_trace_cost: false,
            guard_remedies: GUARD_REMEDIES,
            awaits_device: false,
            pacer_failed: None,
            evl: Err(PlanError::EvlProbe),
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(Policy::Other)
    }

    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn timing(&self, period_ns: u64) -> Timing {
        Timing {
            threshold_ns: THRESHOLD_NS,
            fraction: Fraction::default(),
            noise_loop_ns: Some(self.runtime_at(period_ns)),
        }
    }

    fn placement(&self) -> PlacementRule {
        one_on_each_cpu()
    }

    fn place(&mut self, cpus: Vec<u32>, _machine: &PlacementContext<'_>) -> Vec<u32> {
        cpus
    }

    fn threads(&self, _policy: Policy) -> Vec<ThreadPlan> {
        Vec::new()
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(None)
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn check(&self) -> Result<(), PlanError> {
        // The policy is not known yet, so only the range of the runtime can be checked.
        self.check_period(Policy::Other, self.period_ns)
    }

    fn check_run(&self, run: &RunShape<'_>) -> Result<(), PlanError> {
        run.periods_ns.iter().try_for_each(|period_ns| self.check_period(run.policy, *period_ns))
    }

    fn prepare(&self, _context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinning_real_time_thread_must_sleep() {
        let check = |policy, runtime_ns, period_ns| {
            NoiseProbe { period_ns, runtime_ns }.check_run(&RunShape {
                policy,
                clock: sys::clock::Clock::Monotonic,
                periods_ns: &[period_ns],
            })
        };
        let fifo = Policy::Fifo(90);
        assert_eq!(check(fifo, None, 100), Ok(()));
        assert_eq!(check(fifo, Some(96), 100), Err(PlanError::NoRest));
        assert_eq!(check(fifo, None, 2_000_000_000), Err(PlanError::NoRest), "1.9 s at a time");
        assert_eq!(check(Policy::Other, Some(100), 100), Ok(()), "the scheduler can preempt it");
        assert_eq!(check(Policy::Other, Some(101), 100), Err(PlanError::Runtime));
        assert_eq!(check(Policy::Other, Some(0), 100), Err(PlanError::Runtime));
        let deadline = Policy::Deadline { runtime_ns: 2000, deadline_ns: 3000, period_ns: 4000 };
        assert_eq!(check(deadline, None, 100), Err(PlanError::NoiseDeadline));
    }
}
