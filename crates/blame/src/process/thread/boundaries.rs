//! The begin and the end of a thread's cycles.

use record::{CycleCause, Rule};

use super::{Thread, Waiting, WokenBy};
use crate::process::{
    cycles::Released,
    releases::Rank,
    selection::RunConfig,
    waits::{InCall, WaitFor},
};

/// A timer that expired longer ago may have been stopped before: the end of timers is not traced, ns.
const OLD_NS: u64 = 500_000;

impl Thread {
    /// Ends the cycle that was complete when the current wait began, if that was a wait for the next release. `by` ends
    /// the wait now: only then it is known if it was an answer to the thread itself. Its cycles start with the most
    /// regular of its waits; all others, and those for a lock, are part of a cycle.
    pub(super) fn complete_before_wait(&mut self, at_ns: u64, by: &WokenBy, config: &RunConfig) {
        let Some(Waiting { wait_for: WaitFor::Event, source, since_ns, .. }) = self.waiting else { return };
        self.fd_timer.note_wait(since_ns, at_ns, source);
        if !self.knows_calls(config) || self.is_marked {
            return;
        }
        let before = self.releases.rank();
        let for_timer = before == Rank::Timer && self.fd_timer.is_source(source);
        let expired = for_timer && self.fd_timer.expires_until(at_ns).is_some();
        let within = source.is_some_and(|source| self.releases.is_within_cycle(source, by.is_answer));
        let completes = if expired || within { expired } else { self.releases.note(Rank::Event) || for_timer };
        if !completes {
            self.releases.note_wait_within(by.is_answer);
        }
        if completes && before != self.releases.rank() {
            // It no longer sleeps regularly: the cycle since its last sleep consists of several.
            self.cycles.cut_to_events();
        } else if completes {
            if self.cycles.count() == 0 {
                self.cycles.starts(self.period_ns);
            }
            self.releases.end_at(since_ns);
            self.cycles.complete_cut(since_ns, self.releases.rank() > Rank::Event);
            self.end_cycle(at_ns, config);
        }
    }

    /// Ends the cycle before the current wait at the end of the run, unless the wait is probably part of it.
    pub(super) fn complete_at_end(&mut self, at_ns: u64, config: &RunConfig) {
        let source = self.waiting.and_then(|waiting| waiting.source);
        let is_release = |source| self.releases.may_start_with(source) || self.fd_timer.is_source(Some(source));
        let is_answer = source.is_some_and(|source| !is_release(source));
        self.complete_before_wait(at_ns, &WokenBy { is_answer, ..WokenBy::default() }, config);
    }

    /// Handles the end of a sleep that its cycles start after.
    pub(super) fn end_sleep(&mut self, at_ns: u64, call: InCall, config: &RunConfig) {
        /// The error of times that are converted from another clock, ns.
        const PRECISION_NS: u64 = 20_000;
        match call.timeout.filter(|timeout| timeout.expires_ns > at_ns + PRECISION_NS) {
            Some(timeout) => {
                self.interrupted_sleep = Some((timeout.expires_ns, at_ns));
                self.cycles.begin_tentatively(Released::at(at_ns));
            }
            None => self.begin_cycle(Released::by_timeout(at_ns, call.timeout), config),
        }
    }

    /// Handles the end of a wait for an event. A cycle begins if its cycles start with events, or with this timer.
    pub(super) fn end_event_wait(&mut self, at_ns: u64, call: Option<InCall>, is_answer: bool, config: &RunConfig) {
        if self.cycles.begun_ns().is_some() {
            return;
        }
        let source = call.map(|call| call.source);
        let expired = self.fd_timer.expires_until(at_ns);
        let begins = match self.releases.rank() {
            Rank::Event => true,
            Rank::Timer => expired.is_some() && self.fd_timer.is_source(source),
            Rank::Relative | Rank::Absolute => false,
        };
        if !begins {
            if self.cycles.count() > 0 {
                self.releases.note_outside();
            }
            return;
        }
        if let Some(source) = source.filter(|_| self.releases.rank() == Rank::Event) {
            self.releases.begin_with(source, is_answer, at_ns);
        }
        self.fd_timer.has_released = true;
        if self.releases.rank() == Rank::Event && expired.is_some_and(|expires_ns| at_ns - expires_ns > OLD_NS) {
            self.releases.note_old_expiry();
        }
        let released = match expired {
            Some(expires_ns) => Released { at_ns: expires_ns, latest_ns: expires_ns, ..Released::at(at_ns) },
            None => Released::by_timeout(at_ns, call.and_then(|call| call.timeout)),
        };
        self.begin_cycle(released, config);
    }

    /// True if it started in the run and has not run yet.
    pub(super) fn is_new(&self) -> bool {
        self.started_by.is_some() && self.cpu.is_none()
    }

    /// Ends its cycle, if one goes on. The time before its first wait, and that from its last release to its end, are
    /// cycles only if it has no others.
    pub(super) fn end_cycle(&mut self, at_ns: u64, config: &RunConfig) {
        self.cycles.complete_cut(at_ns, false);
        if self.is_exiting && !self.is_marked && self.cycles.count() > 0 {
            return self.cycles.drop_end(config);
        }
        if self.cycles.is_start() && !self.is_exiting {
            return self.cycles.drop_start();
        }
        let response_ns = self.cycles.end(config, self.period_ns);
        if response_ns.zip(self.deadline_ns).is_some_and(|(response_ns, deadline_ns)| response_ns > deadline_ns) {
            self.note_breach(Rule::Deadline, "", at_ns, config);
        }
    }

    /// Notes that the current wait was a stop, if it was outside of system calls and the control group was frozen: the
    /// kernel lets a frozen thread wait on its way back to the program.
    pub(super) fn note_freeze(&mut self, at_ns: u64, config: &RunConfig) {
        let process = self.process;
        if let Some(waiting) = &mut self.waiting
            && waiting.source.is_none()
            && config.freezes.stopped_ns(process, waiting.since_ns, at_ns) > 0
        {
            waiting.wait_for = WaitFor::Continue;
        }
    }

    /// Begins a cycle, unless one goes on. A release before the run counts from the start of the run.
    pub(super) fn begin_cycle(&mut self, released: Released, config: &RunConfig) {
        let at_ns = released.at_ns.max(config.start_ns).max(self.since_ns);
        if self.cycles.begun_ns().is_none() {
            if let Some(before_ns) = self.cycles.last_begun_ns() {
                self.releases.note_distance(at_ns.saturating_sub(before_ns));
            }
            self.sleep_ns.take().into_iter().for_each(|ns| self.releases.note_sleep(ns));
        }
        let at_ns = at_ns.min(released.noticed_ns);
        let was_frozen = config.freezes.stopped_ns(self.process, at_ns, released.noticed_ns) > 0;
        let late_by = if was_frozen { CycleCause::Stopped } else { released.late_by };
        self.cycles.begin(Released { at_ns, late_by, ..released }, self.period_ns);
    }
}
