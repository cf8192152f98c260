//! The sums of a thread's times, and its recent past.

use std::{iter, mem};

use record::ThreadTimes;

use super::{State, Thread, Waiting};
use crate::{
    Task,
    process::{
        history::{Activity, Interval},
        locks::{Holder, WaitsForLock},
        waits::WaitFor,
    },
};

/// The parts of a thread's time.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimePart {
    Running,
    Ready,
    Preempted,
    Blocked,
    Unknown,
}

impl Thread {
    /// This thread as the holder of a lock between these times, ns on CLOCK_MONOTONIC.
    pub fn as_holder(&self, from_ns: u64, to_ns: u64) -> Holder<'_> {
        let start_ns = self.accounted_ns.max(from_ns);
        let now = Interval { from_ns: start_ns, to_ns, activity: self.activity() };
        let now = iter::once(now).filter(move |interval| interval.from_ns < to_ns);
        let task = Task { priority: self.own_priority(), ..self.task };
        Holder { task, intervals: Box::new(now.chain(self.history.within(from_ns, to_ns))) }
    }

    /// Its current activity.
    fn activity(&self) -> Activity {
        match (self.state, self.waiting) {
            (State::Running, _) => Activity::Ran,
            (State::Ready { .. } | State::Preempted { .. }, _) => Activity::NoCpu { by: self.rivals.now },
            (State::Blocked, waiting) => match (self.waits_for_lock(), waiting) {
                (Some(WaitsForLock { lock, .. }), Some(Waiting { released_by, .. })) => {
                    Activity::TookLock { lock, from: released_by }
                }
                (None, Some(Waiting { wait_for: WaitFor::Sleep | WaitFor::Event, .. })) => Activity::Slept,
                _ => Activity::Waited,
            },
            (State::Unobserved | State::Ended, _) => Activity::Unknown,
        }
    }

    /// Accounts for the time up to `at_ns`, when an event does not fit its state. If the event shows that it runs, the
    /// switch to its CPU is missing.
    pub(super) fn account_unknown(&mut self, at_ns: u64) {
        self.is_switch_missing = true;
        self.account_for(at_ns, TimePart::Unknown);
        self.cycles.cut();
    }

    /// Accounts for the time up to `at_ns` in its current state.
    pub(super) fn account_until(&mut self, at_ns: u64) {
        let part = match self.state {
            State::Running => TimePart::Running,
            State::Ready { .. } => TimePart::Ready,
            State::Preempted { .. } => TimePart::Preempted,
            State::Blocked => TimePart::Blocked,
            State::Unobserved if self.asleep => TimePart::Blocked,
            State::Unobserved => TimePart::Unknown,
            State::Ended => return,
        };
        self.account_for(at_ns, part);
    }

    pub(super) fn account_for(&mut self, at_ns: u64, part: TimePart) {
        let passed_ns = at_ns.saturating_sub(self.accounted_ns);
        let activity = if let TimePart::Unknown = part { Activity::Unknown } else { self.activity() };
        self.history.add(Interval { from_ns: self.accounted_ns, to_ns: self.accounted_ns + passed_ns, activity });
        self.accounted_ns += passed_ns;
        let fault_ns = mem::take(&mut self.fault_ns).min(passed_ns);
        if let Some(open) = self.cycles.now().filter(|_| activity == Activity::Ran) {
            open.parts.faults_ns += fault_ns;
        }
        let in_cycle = self.cycles.now().map(|open| &mut open.times);
        for times in [Some(&mut self.times), in_cycle].into_iter().flatten() {
            *part.of(times) += passed_ns;
        }
    }
}

impl TimePart {
    fn of(self, times: &mut ThreadTimes) -> &mut u64 {
        match self {
            Self::Running => &mut times.running_ns,
            Self::Ready => &mut times.ready_ns,
            Self::Preempted => &mut times.preempted_ns,
            Self::Blocked => &mut times.blocked_ns,
            Self::Unknown => &mut times.unknown_ns,
        }
    }
}
