//! Checks of a whole plan.

use crate::Cores;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use super::{Plan, phase::Length};
use crate::probe::{PERIOD_MAX_NS, PERIOD_MIN_NS, PlanError, Probe, RunShape};

impl Plan {
    /// Checks ranges and combinations of options.
    ///
    /// # Errors
    /// When an option, a period or a length is out of range, or two options contradict each other.
    pub fn check(&self) -> Result<(), PlanError> {
        let probe = self.probe.definition();
        probe.check()?;
        let periods_ns: Vec<u64> = self.phases.iter().map(|phase| phase.period_ns).collect();
        probe.check_run(&RunShape { policy: self.policy, clock: self.clock, periods_ns: &periods_ns })?;
        if self.core.use_evl() {
            self.check_evl()?;
        }
        if !self.until_decided.is_empty() && self.phases.len() > 1 {
            return Err(PlanError::UntilDecided(self.phases.len()));
        }
        for phase in &self.phases {
            let of_threads = phase.threads.iter().map(|thread| thread.period_ns);
            let mut periods_ns = of_threads.chain([phase.period_ns]);
            if let Some(period_ns) = periods_ns.find(|period_ns| !(PERIOD_MIN_NS..=PERIOD_MAX_NS).contains(period_ns)) {
                return Err(PlanError::Period(period_ns));
            }
            if matches!(phase.length, Length::Duration(0) | Length::Samples(0)) {
                return Err(PlanError::Length);
            }
        }
        Ok(())
    }

    fn check_evl(&self) -> Result<(), PlanError> {
        self.probe.definition().properties().evl?;
        if self.core == Cores::Both && !matches!(self.probe, Probe::Timer(_)) {
            return Err(PlanError::BothCores);
        }
        if self.clock != Clock::Monotonic || self.wait != Wait::Nanosleep || self.timerlat {
            return Err(PlanError::EvlWait);
        }
        let policies = self.phases.iter().flat_map(|phase| &phase.threads).map(|thread| thread.policy);
        let fits = policies.chain([self.policy]).all(|policy| matches!(policy, Policy::Fifo(_)));
        fits.then_some(()).ok_or(PlanError::EvlPolicy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::{
            PhasePlan,
            tests::{phase, plan},
        },
        probe::{InterruptProbe, NoiseProbe, PERIOD_MAX_NS, Probe, ThreadPlan, ThreadsProbe},
    };

    #[test]
    fn refuses_periods_and_lengths_out_of_range() {
        let check = |period_ns, length| plan(vec![phase(period_ns, length)]).check();
        assert_eq!(check(999, Length::UntilStopped), Err(PlanError::Period(999)));
        assert_eq!(check(PERIOD_MAX_NS + 1, Length::UntilStopped), Err(PlanError::Period(PERIOD_MAX_NS + 1)));
        assert_eq!(check(1_000, Length::Samples(0)), Err(PlanError::Length));
        assert_eq!(check(PERIOD_MAX_NS, Length::Duration(1)), Ok(()));
        let servo = ThreadPlan { role: "servo".to_owned(), cpu: 0, policy: Policy::Fifo(90), period_ns: 0 };
        let with_threads = PhasePlan { threads: vec![servo], ..phase(1_000, Length::UntilStopped) };
        assert_eq!(plan(vec![with_threads]).check(), Err(PlanError::Period(0)));
    }

    #[test]
    fn only_a_run_of_one_phase_ends_when_decided() {
        let profiles = analysis::profiles()[..1].to_vec();
        let of = |count| {
            let phases = vec![phase(1_000_000, Length::Duration(1)); count];
            Plan { until_decided: profiles.clone(), ..plan(phases) }.check()
        };
        assert_eq!((of(1), of(3)), (Ok(()), Err(PlanError::UntilDecided(3))));
    }

    #[test]
    fn refuses_what_the_evl_core_cannot_do() {
        let plan =
            Plan { core: Cores::Evl, policy: Policy::Fifo(90), ..plan(vec![phase(1_000_000, Length::Samples(1))]) };
        assert_eq!(plan.check(), Ok(()));
        assert_eq!(plan.scenario().core.as_deref(), Some("evl"));
        let check = |plan: Plan| plan.check();
        let both = Plan { core: Cores::Both, ..plan.clone() };
        assert_eq!(check(both.clone()), Ok(()));
        let scenario = both.scenario();
        assert_eq!(
            (scenario.core.as_deref(), scenario.wait.as_str()),
            (Some("both"), "nanosleep in-band, evl out-of-band")
        );
        let named = Probe::Threads(ThreadsProbe::default());
        assert_eq!(check(Plan { probe: named, ..both.clone() }), Err(PlanError::BothCores));
        assert_eq!(check(Plan { clock: Clock::Tai, ..both }), Err(PlanError::EvlWait));
        assert_eq!(check(Plan { policy: Policy::Other, ..plan.clone() }), Err(PlanError::EvlPolicy));
        assert_eq!(check(Plan { clock: Clock::Tai, ..plan.clone() }), Err(PlanError::EvlWait));
        assert_eq!(check(Plan { wait: Wait::Timerfd, ..plan.clone() }), Err(PlanError::EvlWait));
        let interrupts = |source: &str, core| {
            let probe = InterruptProbe { source: source.parse().unwrap(), ..InterruptProbe::default() };
            check(Plan { probe: Probe::Interrupt(Box::new(probe)), core, ..plan.clone() })
        };
        assert_eq!(interrupts("gpio:0/1", Cores::Evl), Ok(()));
        assert_eq!(interrupts("gpio:0/1", Cores::Both), Err(PlanError::BothCores), "a line has one reader");
        assert_eq!(interrupts("pps:0", Cores::Evl), Err(PlanError::EvlSource));
        let noise = Probe::Noise(NoiseProbe::default());
        assert_eq!(check(Plan { probe: noise, ..plan.clone() }), Err(PlanError::EvlProbe));
        let servo = ThreadPlan { role: "servo".to_owned(), cpu: 0, policy: Policy::RoundRobin(9), period_ns: 1 };
        let phases = vec![PhasePlan { threads: vec![servo], ..phase(1, Length::Samples(1)) }];
        assert_eq!(check(Plan { phases, ..plan }), Err(PlanError::EvlPolicy));
    }
}
