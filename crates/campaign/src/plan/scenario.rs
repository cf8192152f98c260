//! A plan as the record describes it.

use std::time::Duration;

use crate::Cores;
use record::{AskedThread, Phase, Scenario};

use super::{
    Plan,
    phase::{Length, PhasePlan},
};
use crate::probe::{Probe, ThreadPlan};

impl Plan {
    /// The policy of all threads; if they differ, the policy of each role.
    fn policy_in_words(&self) -> String {
        if let Probe::RoundTrip(probe) = &self.probe {
            return format!("{} for sender, {} for receiver", self.policy, probe.receive_policy);
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

    /// The plan as the record describes it.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        Scenario {
            probe: self.probe.definition().properties().name.to_owned(),
            cpus: self.cpus.as_ref().map(ToString::to_string),
            policy: self.policy_in_words(),
            clock: self.clock.to_string(),
            wait: match self.core {
                Cores::Linux => self.wait.to_string(),
                Cores::Evl => self.core.to_string(),
                Cores::Both => format!("{} in-band, evl out-of-band", self.wait),
            },
            core: (self.core != Cores::Linux).then(|| self.core.to_string()),
            offset_ns: self.offset_ns,
            threshold_ns: self.phases.first().map_or(0, |phase| self.threshold_at(phase.period_ns)),
            hold_cpu_awake: self.hold_cpu_awake,
            settings: self.settings.iter().map(ToString::to_string).collect(),
            timerlat: self.timerlat,
            profiles: self.profiles.clone(),
            limit_ns: self.limit_ns,
            until_decided: !self.until_decided.is_empty(),
            // Only `measure process` has them.
            limits: None,
            extra: record::Extra::new(),
        }
    }
}

impl PhasePlan {
    /// The record of the phase before it runs. `start` is the time since the run began.
    pub(crate) fn to_record(&self, start: Duration) -> Phase {
        let (planned_ns, planned_samples) = match self.length {
            Length::Duration(duration_ns) => (Some(duration_ns), None),
            Length::Samples(samples) => (None, Some(samples)),
            Length::UntilStopped => (None, None),
        };
        Phase {
            name: self.name.clone(),
            period_ns: self.period_ns,
            start_ns: u64::try_from(start.as_nanos()).unwrap_or(u64::MAX),
            planned_ns,
            planned_samples,
            threads: self.threads.iter().map(ThreadPlan::to_record).collect(),
            asked_loads: self.loads.iter().map(ToString::to_string).collect(),
            ..Phase::default()
        }
    }
}

impl ThreadPlan {
    /// The record of the thread as it was requested.
    fn to_record(&self) -> AskedThread {
        let Self { role, cpu, policy, period_ns } = self.clone();
        AskedThread { role, cpu, policy: policy.to_string(), period_ns }
    }
}

#[cfg(test)]
mod tests {
    use sys::sched::Policy;

    use super::*;
    use crate::{
        plan::tests::{phase, plan},
        probe::ThreadsProbe,
    };

    #[test]
    fn lists_policies_that_differ() {
        let thread = |role: &str, priority| ThreadPlan {
            role: role.to_owned(),
            cpu: 0,
            policy: Policy::Fifo(priority),
            period_ns: 25_000,
        };
        let scenario = |threads| {
            let plan = plan(vec![PhasePlan { threads, ..phase(1, Length::UntilStopped) }]);
            Plan { probe: Probe::Threads(ThreadsProbe::default()), ..plan }.scenario()
        };
        let two = scenario(vec![thread("base", 90), thread("servo", 89)]);
        assert_eq!((two.probe.as_str(), two.policy.as_str()), ("threads", "fifo:90 for base, fifo:89 for servo"));
        assert_eq!(scenario(vec![thread("t1", 90), thread("t2", 90)]).policy, "fifo:90");
    }
}
