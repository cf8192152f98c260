//! Wake-ups of several threads, each with its own name, period and CPU.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use machine::CpuList;
use probes::probe_threads::ProbeThreads;
use sys::sched::Policy;

use super::{
    check::{PlanError, THREADS_MAX},
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing,
    },
    timer::{GUARD_REMEDIES, POLICY},
};

/// Default priority of the thread with the shortest period.
const HIGHEST_PRIORITY: u8 = 90;

/// Options of the threads probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadsProbe {
    /// The threads; at least one, and their names are unique.
    pub threads: Vec<ThreadAsk>,
}

impl Default for ThreadsProbe {
    fn default() -> Self {
        Self { threads: ThreadAsk::base_and_servo() }
    }
}

/// A thread as the user requests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadAsk {
    /// Its name in the record: `base`, `servo`.
    pub role: String,
    /// Time between its deadlines, ns.
    pub period_ns: u64,
    /// Its CPU; `None` if the user names none.
    pub cpu: Option<u32>,
    /// Its policy; `None` if the user names none.
    pub policy: Option<Policy>,
}

impl ThreadAsk {
    /// The two threads of a machine-tool controller: step pulses every 25 us, position every 1 ms.
    #[must_use]
    pub fn base_and_servo() -> Vec<Self> {
        let thread = |role: &str, period_ns| Self { role: role.to_owned(), period_ns, cpu: None, policy: None };
        vec![thread("base", 25_000), thread("servo", 1_000_000)]
    }
}

impl Definition for ThreadsProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: "threads",
            network: Network::None,
            has_late_wake_ups: true,
            measures_trace_cost: true,
            guard_remedies: GUARD_REMEDIES,
            awaits_device: false,
            pacer_failed: None,
            evl: Ok(()),
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(POLICY)
    }

    fn period_ns(&self) -> u64 {
        self.threads.iter().map(|thread| thread.period_ns).min().unwrap_or(1)
    }

    fn timing(&self, period_ns: u64) -> Timing {
        Timing::of_sleeper(period_ns)
    }

    fn placement(&self) -> PlacementRule {
        let count = self.threads.len();
        PlacementRule {
            roles: self.threads.iter().map(|thread| thread.role.clone()).collect(),
            by_thread: Some(count..=count),
            threads: if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") },
            remedy: "write as many `threads` of kind = \"threads\", or cpus = \"each\"",
            takes_best_cpu: false,
            measured: usize::MAX,
        }
    }

    fn place(&mut self, cpus: Vec<u32>, machine: &PlacementContext<'_>) -> Vec<u32> {
        for (thread, cpu) in self.threads.iter_mut().zip(cpus.iter().cycle()) {
            thread.cpu = Some(*cpu);
            thread.policy = match (thread.policy, machine.policy) {
                (Some(Policy::Fifo(priority)), Some(Policy::RoundRobin(_))) => Some(Policy::RoundRobin(priority)),
                (own, of_the_placement) => own.or(of_the_placement),
            };
        }
        cpus
    }

    fn threads(&self, _policy: Policy) -> Vec<ThreadPlan> {
        place(&self.threads, 0)
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(None)
    }

    fn files(&self, _record_path: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.threads.len() > THREADS_MAX {
            return Err(PlanError::TooManyThreads(self.threads.len()));
        }
        let mut names = HashSet::new();
        let twice = self.threads.iter().find(|thread| !names.insert(&thread.role));
        twice.map_or(Ok(()), |thread| Err(PlanError::SameName(thread.role.clone())))
    }

    fn check_run(&self, _run: &RunShape<'_>) -> Result<(), PlanError> {
        Ok(())
    }

    fn prepare(&self, _context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(None)
    }
}

/// Completes the requests: threads without a CPU go to `default_cpu`, and threads without a policy get a priority by
/// their period, the shorter the higher.
#[must_use]
pub fn place(asks: &[ThreadAsk], default_cpu: u32) -> Vec<ThreadPlan> {
    let by_period = |period_ns: u64| {
        let mut shorter: Vec<u64> = asks.iter().map(|ask| ask.period_ns).filter(|&other| other < period_ns).collect();
        shorter.sort_unstable();
        shorter.dedup();
        let below = u8::try_from(shorter.len()).unwrap_or(u8::MAX);
        Policy::Fifo(HIGHEST_PRIORITY.saturating_sub(below).max(1))
    };
    asks.iter()
        .map(|ask| ThreadPlan {
            role: ask.role.clone(),
            cpu: ask.cpu.unwrap_or(default_cpu),
            policy: ask.policy.unwrap_or_else(|| by_period(ask.period_ns)),
            period_ns: ask.period_ns,
        })
        .collect()
}

/// `count` equal threads, assigned to the CPUs in turn; empty without CPUs.
#[must_use]
pub fn spread(count: usize, period_ns: u64, policy: Policy, cpus: &CpuList) -> Vec<ThreadPlan> {
    let cpus = cpus.iter().collect::<Vec<_>>().into_iter().cycle();
    let named = |(number, cpu)| ThreadPlan { role: format!("thread-{number}"), cpu, policy, period_ns };
    (1..=count).zip(cpus).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuList {
        list.parse().unwrap()
    }

    #[test]
    fn a_shorter_period_gets_a_higher_priority() {
        let placed = place(&ThreadAsk::base_and_servo(), 3);
        let threads: Vec<_> = placed.iter().map(|t| (t.role.as_str(), t.cpu, t.policy, t.period_ns)).collect();
        assert_eq!(threads, [("base", 3, Policy::Fifo(90), 25_000), ("servo", 3, Policy::Fifo(89), 1_000_000)]);
    }

    #[test]
    fn equal_periods_share_a_priority_and_given_policies_are_kept() {
        let mut asks = ThreadAsk::base_and_servo();
        asks.push(ThreadAsk { role: "other".to_owned(), cpu: Some(1), ..asks[1].clone() });
        asks[0].policy = Some(Policy::Fifo(40));
        let threads: Vec<_> = place(&asks, 0).iter().map(|t| (t.cpu, t.policy)).collect();
        assert_eq!(threads, [(0, Policy::Fifo(40)), (0, Policy::Fifo(89)), (1, Policy::Fifo(89))]);
        let many: Vec<_> =
            (1..200).map(|n| ThreadAsk { period_ns: n * 1000, policy: None, ..asks[0].clone() }).collect();
        assert_eq!(place(&many, 0).last().unwrap().policy, Policy::Fifo(1));
    }

    #[test]
    fn many_threads_are_spread_over_the_cpus() {
        let placed = spread(5, 1000, Policy::Other, &cpus("1,3"));
        assert_eq!(placed.iter().map(|t| t.cpu).collect::<Vec<_>>(), [1, 3, 1, 3, 1]);
        assert_eq!(placed[4].role, "thread-5");
        assert!(spread(5, 1000, Policy::Other, &CpuList::new()).is_empty());
    }
}
