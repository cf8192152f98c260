//! A plan as the record tells it.

use std::time::Duration;

use probes::timer::Core;
use record::{AskedThread, Phase, Scenario};

use super::{Length, PhasePlan, Plan, Probe, ThreadPlan};

impl Plan {
    /// What measures: `timer`, or `threads` where they have places of their own; `noise`, `udp`, `stream`, `audio`.
    fn probe(&self) -> &'static str {
        match &self.probe {
            Probe::Noise { .. } => "noise",
            Probe::Udp(_) => "udp",
            Probe::Stream(_) => "stream",
            Probe::Audio(_) => "audio",
            Probe::Timer if self.phases.iter().any(|phase| !phase.threads.is_empty()) => "threads",
            Probe::Timer => "timer",
        }
    }

    /// The policy of all threads, or that of each role.
    fn policy_in_words(&self) -> String {
        if let Probe::Udp(udp) = &self.probe {
            return format!("{} for sender, {} for receiver", self.policy, udp.policy);
        }
        let threads = self.phases.first().map_or(&[][..], |phase| &phase.threads);
        match threads.split_first() {
            None => self.policy.to_string(),
            Some((first, rest)) if rest.iter().all(|thread| thread.policy == first.policy) => first.policy.to_string(),
            Some(_) => {
                let each = threads.iter().map(|thread| format!("{} for {}", thread.policy, thread.role));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// The plan as the record tells it.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        Scenario {
            probe: self.probe().to_owned(),
            cpus: self.cpus.as_ref().map(ToString::to_string),
            policy: self.policy_in_words(),
            clock: self.clock.to_string(),
            wait: if self.core == Core::Linux { self.wait.to_string() } else { self.core.to_string() },
            core: (self.core != Core::Linux).then(|| self.core.to_string()),
            offset_ns: self.offset_ns,
            threshold_ns: self.phases.first().map_or(0, |phase| self.threshold_at(phase.period_ns)),
            hold_cpu_awake: self.hold_cpu_awake,
            timerlat: self.timerlat,
            profiles: self.profiles.clone(),
            extra: record::Extra::new(),
        }
    }
}

impl PhasePlan {
    /// The phase as the record tells it before it has run; it begins `start` after the run did.
    pub(crate) fn told(&self, start: Duration) -> Phase {
        Phase {
            name: self.name.clone(),
            period_ns: self.period_ns,
            start_ns: start.as_nanos() as u64,
            planned_ns: match self.length {
                Length::Duration(duration_ns) => Some(duration_ns),
                _ => None,
            },
            threads: self.threads.iter().map(ThreadPlan::told).collect(),
            asked_loads: self.loads.iter().map(ToString::to_string).collect(),
            ..Phase::default()
        }
    }
}

impl ThreadPlan {
    /// The thread as the record tells it.
    fn told(&self) -> AskedThread {
        let Self { role, cpu, policy, period_ns } = self.clone();
        AskedThread { role, cpu, policy: policy.to_string(), period_ns }
    }
}

#[cfg(test)]
mod tests {
    use sys::sched::Policy;

    use super::*;
    use crate::plan::tests::{phase, plan};

    #[test]
    fn threads_of_their_own_are_told_with_their_policies() {
        let thread = |role: &str, priority| ThreadPlan {
            role: role.to_owned(),
            cpu: 0,
            policy: Policy::Fifo(priority),
            period_ns: 25_000,
        };
        let told = |threads| plan(vec![PhasePlan { threads, ..phase(1, Length::UntilStopped) }]).scenario();
        let scenario = told(vec![thread("base", 90), thread("servo", 89)]);
        assert_eq!(
            (scenario.probe.as_str(), scenario.policy.as_str()),
            ("threads", "fifo:90 for base, fifo:89 for servo")
        );
        assert_eq!(told(vec![thread("t1", 90), thread("t2", 90)]).policy, "fifo:90");
    }
}
