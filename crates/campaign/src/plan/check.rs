//! What is wrong with a plan: what types alone cannot say.

use probes::timer::Core;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use super::{Length, NOISE_SHARE_PERCENT, PERIOD_MAX_NS, Plan, Probe};
use crate::{
    audio::{FRAMES, PERIODS, RATES_HZ},
    stream::OFFSET_PERCENT,
};

/// A real-time thread spins for at most so long at a time, ns.
const SPIN_MAX_NS: u64 = 950_000_000;

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The period is 0 or above an hour.
    #[error("the period must be longer than 0 and at most 1h: 1ms, for example")]
    Period,
    /// The noise probe is to spin for nothing, or for longer than its period.
    #[error("the noise probe looks for a part of each period: a runtime of 95ms in a period of 100ms, for example")]
    Runtime,
    /// A real-time thread that spins would leave too little of its CPU to the rest of the machine.
    #[error(
        "a real-time thread that never sleeps hangs the machine: let it rest for 5 % of each period, and look for at most \
         950ms at a time, with a period of 1s and a runtime of 950ms, for example; or choose the policy other"
    )]
    NoRest,
    /// The kernel takes the CPU from a deadline thread that spins.
    #[error(
        "the noise probe cannot run under a deadline policy, which ends its budget as a gap: choose the policy fifo:90 or other"
    )]
    NoiseDeadline,
    /// An answer is to be waited for in no time, or for too long.
    #[error("the timeout must be longer than 0 and at most 1m: 1s, for example")]
    Timeout,
    /// A real-time thread that spins would hang its CPU.
    #[error(
        "a real-time thread that never sleeps hangs its CPU: receive with --receive-policy other, on a CPU of its own, or \
         without --spin"
    )]
    SpinningReceiver,
    /// The virtual cable has no network card.
    #[error("the virtual cable of --self has no network card that could stamp: use --stamps all, or a peer elsewhere")]
    CardOfOwnPeer,
    /// Nothing is there to be set.
    #[error(
        "nothing goes over an interface here, so none can be set: leave out --nic and --irq-priority, or go over a network card"
    )]
    NoInterface,
    /// A talker would wake earlier than it may.
    #[error(
        "the wake-up offset must leave the talker {} % of each period to sleep, or a real-time thread hangs its CPU: use a \
         shorter one, or a longer period",
        100 - OFFSET_PERCENT
    )]
    WakeupOffset,
    /// The kernel pins no deadline thread.
    #[error(
        "both ends of a stream are pinned to their CPUs, which the kernel refuses to deadline threads: choose the policy fifo:90"
    )]
    StreamDeadline,
    /// Where an observer would stand, it would see no frame.
    #[error(
        "a capture on this machine would see no frame: --receive xdp takes them before it does, and on the sending interface \
         bypass and xdp pass it by: use --mode send and --receive socket, or capture with a tap"
    )]
    CaptureHidden,
    /// The captures of two phases would lie in one file.
    #[error("one file holds the capture of one phase: run them one by one")]
    CaptureOfPhases,
    /// No card plays so.
    #[error(
        "audio is played in periods of {} to {} frames at {} to {} Hz, of which a card holds {} to {}: --frames 64 --rate \
         48000 --periods 2, for example",
        FRAMES.start(), FRAMES.end(), RATES_HZ.start(), RATES_HZ.end(), PERIODS.start(), PERIODS.end()
    )]
    Audio,
    /// A card's stamps are of one clock only.
    #[error(
        "a sound card stamps the monotonic clock, so the deadlines are its, too: leave the clock out, or choose monotonic"
    )]
    CardClock,
    /// Launch times are of one clock only.
    #[error("launch times are CLOCK_TAI's, so the slots must be, too: leave the clock out, or choose tai")]
    LaunchClock,
    /// The probe makes system calls, which threads of the EVL core cannot.
    #[error(
        "threads of the EVL core can wait and play, but neither send nor spin: ask for it with `measure timer`, `threads` or \
         `audio`"
    )]
    EvlProbe,
    /// The drivers of sound cards are Linux's.
    #[error(
        "threads of the EVL core cannot wait for a sound card, whose driver is Linux's: leave out --core evl, or --device"
    )]
    EvlCard,
    /// The EVL core has its own way to wait, on its own clock.
    #[error(
        "the EVL core has its own way to wait, on the monotonic clock: leave out --clock, --wait and --timerlat with --core evl"
    )]
    EvlWait,
    /// The EVL core has no such policy.
    #[error(
        "the EVL core schedules by priority, first in, first out: choose a policy of fifo:1 to fifo:99, as fifo:90"
    )]
    EvlPolicy,
    /// The length of a phase is 0.
    #[error("the run would end before its first sample: choose a duration of 10s or 10000 samples, for example")]
    Length,
}

impl Plan {
    /// Checks what types alone cannot say.
    ///
    /// # Errors
    /// When a period or a length is out of range, or a thread would spin for too long.
    pub fn check(&self) -> Result<(), PlanError> {
        if let Probe::Udp(udp) = &self.probe {
            udp.check()?;
        }
        if matches!((&self.probe, self.policy), (Probe::Stream(_), Policy::Deadline { .. })) {
            return Err(PlanError::StreamDeadline);
        }
        if matches!(&self.probe, Probe::Stream(stream) if stream.has_launch_times()) && self.clock != Clock::Tai {
            return Err(PlanError::LaunchClock);
        }
        if self.core == Core::Evl {
            self.check_evl()?;
        }
        if let Probe::Stream(stream) = &self.probe
            && stream.capture.is_some()
        {
            match self.phases.len() {
                _ if stream.is_hidden() => return Err(PlanError::CaptureHidden),
                0 | 1 => {}
                _ => return Err(PlanError::CaptureOfPhases),
            }
        }
        for phase in &self.phases {
            self.check_spinning(phase.period_ns)?;
            if let Probe::Audio(audio) = &self.probe {
                audio.check(self.clock, phase.period_ns)?;
            }
            if matches!(&self.probe, Probe::Stream(stream) if !stream.offset_fits(self.policy, phase.period_ns)) {
                return Err(PlanError::WakeupOffset);
            }
            let of_threads = phase.threads.iter().map(|thread| thread.period_ns);
            if of_threads.chain([phase.period_ns]).any(|period_ns| !(1..=PERIOD_MAX_NS).contains(&period_ns)) {
                return Err(PlanError::Period);
            }
            if matches!(phase.length, Length::Duration(0) | Length::Samples(0)) {
                return Err(PlanError::Length);
            }
        }
        Ok(())
    }

    fn check_evl(&self) -> Result<(), PlanError> {
        let policies = || self.phases.iter().flat_map(|phase| &phase.threads).map(|thread| thread.policy);
        if !matches!(self.probe, Probe::Timer | Probe::Audio(_)) {
            Err(PlanError::EvlProbe)
        } else if matches!(&self.probe, Probe::Audio(audio) if audio.device.is_some()) {
            Err(PlanError::EvlCard)
        } else if self.clock != Clock::Monotonic || self.wait != Wait::Nanosleep || self.timerlat {
            Err(PlanError::EvlWait)
        } else if policies().chain([self.policy]).any(|policy| !matches!(policy, Policy::Fifo(_))) {
            Err(PlanError::EvlPolicy)
        } else {
            Ok(())
        }
    }

    fn check_spinning(&self, period_ns: u64) -> Result<(), PlanError> {
        let Some(runtime_ns) = self.runtime_ns(period_ns) else { return Ok(()) };
        let rests = runtime_ns <= period_ns.saturating_mul(NOISE_SHARE_PERCENT) / 100 && runtime_ns <= SPIN_MAX_NS;
        match self.policy {
            _ if runtime_ns == 0 || runtime_ns > period_ns => Err(PlanError::Runtime),
            Policy::Deadline { .. } => Err(PlanError::NoiseDeadline),
            policy if policy.is_realtime() && !rests => Err(PlanError::NoRest),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{
        PhasePlan, ThreadPlan,
        tests::{phase, plan},
    };

    #[test]
    fn periods_and_lengths_out_of_range_are_refused() {
        let check = |period_ns, length| plan(vec![phase(period_ns, length)]).check();
        assert_eq!(check(0, Length::UntilStopped), Err(PlanError::Period));
        assert_eq!(check(PERIOD_MAX_NS + 1, Length::UntilStopped), Err(PlanError::Period));
        assert_eq!(check(1, Length::Samples(0)), Err(PlanError::Length));
        assert_eq!(check(PERIOD_MAX_NS, Length::Duration(1)), Ok(()));
        let servo = ThreadPlan { role: "servo".to_owned(), cpu: 0, policy: Policy::Fifo(90), period_ns: 0 };
        let with_threads = PhasePlan { threads: vec![servo], ..phase(1, Length::UntilStopped) };
        assert_eq!(plan(vec![with_threads]).check(), Err(PlanError::Period));
    }

    #[test]
    fn of_the_evl_core_is_asked_what_it_can() {
        let plan =
            Plan { core: Core::Evl, policy: Policy::Fifo(90), ..plan(vec![phase(1_000_000, Length::Samples(1))]) };
        assert_eq!(plan.check(), Ok(()));
        assert_eq!(plan.scenario().core.as_deref(), Some("evl"));
        let check = |plan: Plan| plan.check();
        assert_eq!(check(Plan { policy: Policy::Other, ..plan.clone() }), Err(PlanError::EvlPolicy));
        assert_eq!(check(Plan { clock: Clock::Tai, ..plan.clone() }), Err(PlanError::EvlWait));
        assert_eq!(check(Plan { wait: Wait::Timerfd, ..plan.clone() }), Err(PlanError::EvlWait));
        let noise = Probe::Noise { runtime_ns: None };
        assert_eq!(check(Plan { probe: noise, ..plan.clone() }), Err(PlanError::EvlProbe));
        let servo = ThreadPlan { role: "servo".to_owned(), cpu: 0, policy: Policy::RoundRobin(9), period_ns: 1 };
        let phases = vec![PhasePlan { threads: vec![servo], ..phase(1, Length::Samples(1)) }];
        assert_eq!(check(Plan { phases, ..plan }), Err(PlanError::EvlPolicy));
    }

    #[test]
    fn a_real_time_thread_that_spins_must_rest() {
        let check = |policy, runtime_ns, period_ns| {
            let plan = plan(vec![phase(period_ns, Length::UntilStopped)]);
            Plan { policy, probe: Probe::Noise { runtime_ns }, ..plan }.check()
        };
        let fifo = Policy::Fifo(90);
        assert_eq!(check(fifo, None, 100), Ok(()));
        assert_eq!(check(fifo, Some(96), 100), Err(PlanError::NoRest));
        assert_eq!(check(fifo, None, 2_000_000_000), Err(PlanError::NoRest), "1.9 s at a time");
        assert_eq!(check(Policy::Other, Some(100), 100), Ok(()), "the scheduler takes its CPU from it");
        assert_eq!(check(Policy::Other, Some(101), 100), Err(PlanError::Runtime));
        assert_eq!(check(Policy::Other, Some(0), 100), Err(PlanError::Runtime));
        let deadline = Policy::Deadline { runtime_ns: 2000, deadline_ns: 3000, period_ns: 4000 };
        assert_eq!(check(deadline, None, 100), Err(PlanError::NoiseDeadline));
    }
}
