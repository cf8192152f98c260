//! What a thread does in the kernel: system calls, page faults, signals.

use std::mem;

use record::{CycleCause, Rule};

use super::{State, Thread, accounting::TimePart};
use crate::process::{
    calls::{BOOTTIME, Call, Lock, MONOTONIC, REALTIME, Scope, Source},
    cycles::{Cycles, Released},
    locks::Wait,
    releases::Rank,
    selection::RunConfig,
    waits::{InCall, Timeout},
};

/// The signal handlers in progress.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Handler {
    depth: u32,
    /// CPU time of the thread when the outermost one began, ns.
    from_ns: u64,
}

/// The timer of a timerfd that the thread reads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FdTimer {
    /// Address of the timer that the thread read last.
    read: Option<u64>,
    /// Its next expiry, ns on CLOCK_MONOTONIC.
    expires_ns: Option<u64>,
    /// The wait for its expiry.
    source: Option<Source>,
    /// The wait during which it expired; `None` after it is read.
    expired_in: Option<Source>,
    /// The wait during which it expired last, if that is not `source`: after an overrun, or because `source` is wrong.
    other_source: Option<Source>,
    /// True if a cycle began since the timer was read.
    pub has_released: bool,
}

impl FdTimer {
    /// True if the thread waits for the timer in this way.
    pub fn is_source(&self, source: Option<Source>) -> bool {
        self.source.is_some() && self.source == source
    }

    /// Notes a wait of the thread, ns on CLOCK_MONOTONIC.
    pub fn note_wait(&mut self, since_ns: u64, at_ns: u64, source: Option<Source>) {
        if self.expires_ns.is_some_and(|expires_ns| (since_ns..=at_ns).contains(&expires_ns)) {
            self.expired_in = source;
        }
    }

    /// Notes that the timer is read, after it expired in this wait; `None` if it expired outside of one.
    fn note_reading(&mut self, expired_in: Option<Source>) {
        let other = expired_in.filter(|&expired_in| self.source.is_some_and(|source| source != expired_in));
        if other.is_none() || other == self.other_source {
            self.source = expired_in.or(self.source);
        }
        self.other_source = other;
    }

    /// The expiry of the timer, if it is not after `at_ns` and no cycle has begun with it, ns on CLOCK_MONOTONIC.
    pub fn expires_until(&self, at_ns: u64) -> Option<u64> {
        self.expires_ns.filter(|&expires_ns| expires_ns <= at_ns && !self.has_released)
    }
}

impl Thread {
    /// Handles its entry into a system call.
    pub fn enters(&mut self, at_ns: u64, entered: InCall, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        self.decide_on_sleep(at_ns, None, config);
        let mut entered = self.in_kernel.entered(entered);
        let rank = match entered.call {
            Call::SignalReturn => return self.leave_handler(),
            Call::Sleep { absolute: true, .. } => Some(Rank::Absolute),
            Call::Sleep { absolute: false, .. } => Some(Rank::Relative),
            // The deadline policy: the work of this period is complete.
            Call::Yield if self.task.priority < 0 => Some(Rank::Absolute),
            Call::Spawn if entered.is_exec() => {
                self.cycles.starts_again();
                None
            }
            Call::SetPolicy { .. }
            | Call::Yield
            | Call::TakeLock(_)
            | Call::AwaitChange { .. }
            | Call::WakeAt { .. }
            | Call::Sync
            | Call::Spawn
            | Call::Restart
            | Call::Other => None,
        };
        entered.is_release = rank.is_some_and(|rank| self.waits_for_release(at_ns, rank, config));
        self.in_kernel.enter(entered);
    }

    /// Handles the start of a wait of this kind. Returns true if the next cycle starts after it.
    fn waits_for_release(&mut self, at_ns: u64, rank: Rank, config: &RunConfig) -> bool {
        let before = self.releases.rank();
        let is_release = self.releases.note(rank);
        if is_release && !self.is_marked {
            self.may_continue_sleep = self.cycles.is_tentative();
            if !self.may_continue_sleep {
                self.end_or_drop_cycle(at_ns, before, config);
            }
            self.handler = Handler::default();
            if before != self.releases.rank() {
                self.cycles.starts(self.period_ns);
            }
        }
        is_release
    }

    /// True if it leaves the CPU in a call that gives up the CPU until the next period, which `sched_yield` does under
    /// the deadline policy. Its policy at the entry into the call may be unknown, because it was set since its last
    /// switch.
    pub(super) fn yields_until_release(&mut self, at_ns: u64, config: &RunConfig) -> bool {
        let yields = self.task.priority < 0 && self.in_kernel.is_yield();
        let is_known = self.in_kernel.call().is_some_and(|call| call.is_release);
        if yields && !is_known && self.waits_for_release(at_ns, Rank::Absolute, config) {
            self.in_kernel.set_release();
        }
        yields
    }

    /// Ends the cycle, if one goes on. If another kind of wait started it, and it contains a wait, that may have been the
    /// one for the next cycle.
    fn end_or_drop_cycle(&mut self, at_ns: u64, before: Rank, config: &RunConfig) {
        self.cycles.complete_cut(at_ns, true);
        if before != self.releases.rank() && self.cycles.contains_wait() {
            self.cycles.drop_change(at_ns);
        } else {
            self.end_cycle(at_ns, config);
        }
    }

    /// Decides if a sleep continues the one that a signal interrupted, as soon as its end is known (ns on
    /// CLOCK_MONOTONIC), or nothing can show it any more. Otherwise the thread has done the work of a cycle in between.
    pub(super) fn decide_on_sleep(&mut self, at_ns: u64, expires_ns: Option<u64>, config: &RunConfig) {
        /// Longest time from a reading of the clock to the start of the timer, ns.
        const DELAY_NS: u64 = 100_000;
        if !mem::take(&mut self.may_continue_sleep) {
            return;
        }
        let is_continued = expires_ns.zip(self.interrupted_sleep).is_some_and(|(expires_ns, (before_ns, woken_ns))| {
            // A program that sleeps for the rest of the time adds the time that it was awake.
            let awake_ns = at_ns.saturating_sub(woken_ns) + DELAY_NS;
            (before_ns..=before_ns.saturating_add(awake_ns)).contains(&expires_ns)
        });
        if is_continued {
            self.cycles.drop_tentative(at_ns);
        } else {
            self.end_cycle(at_ns, config);
        }
    }

    /// Handles its return from a system call. A sleep that was over before it began starts the next cycle here.
    pub fn leaves(&mut self, at_ns: u64, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        self.decide_on_sleep(at_ns, None, config);
        let Some(call) = self.in_kernel.leave() else { return };
        let now_ns = self.accounted_ns;
        // A wait for a time that is over, as in a loop with pthread_cond_timedwait or with a timerfd that is set each time.
        let is_over = !call.has_waited && call.timeout.is_some_and(|timeout| timeout.expires_ns <= now_ns);
        let expired_ns = self.fd_timer.expires_until(now_ns).filter(|_| !call.has_waited);
        let is_overdue_event = (is_over || expired_ns.is_some()) && self.releases.began_with(call.source);
        if self.is_marked || !(call.is_release || is_overdue_event) {
            return;
        }
        if is_overdue_event {
            self.end_cycle(at_ns, config);
        }
        if self.cycles.begun_ns().is_some() {
            return;
        }
        if !is_over && call.is_release && call.timeout.is_some() {
            return self.end_sleep(now_ns, call, config);
        }
        let released = match expired_ns.filter(|_| is_overdue_event) {
            Some(expires_ns) => {
                self.fd_timer.has_released = true;
                Released { at_ns: expires_ns, ..Released::at(now_ns) }
            }
            None => Released::by_timeout(now_ns, call.timeout),
        };
        let was_stopped = self.stopped_until_ns > released.at_ns;
        let late_by = if was_stopped { CycleCause::Stopped } else { CycleCause::PreviousCycle };
        self.begin_cycle(Released { latest_ns: released.at_ns, late_by, ..released }, config);
    }

    /// Handles the start of a timer in it, with its earliest and latest expiry on the timer's clock, ns.
    pub fn starts_timer(&mut self, at_ns: u64, [expires_ns, latest_ns]: [i64; 2], config: &RunConfig) {
        let Some(call) = self.in_kernel.call() else { return };
        let Some(at_expiry_ns) = config.clocks.to_monotonic(call.clock, expires_ns, at_ns) else { return };
        let slack_ns = latest_ns.saturating_sub(expires_ns).max(0).unsigned_abs();
        let timeout = Timeout { expires_ns: at_expiry_ns, latest_ns: at_expiry_ns.saturating_add(slack_ns) };
        if !self.in_kernel.note_timeout(timeout) {
            return;
        }
        match call.call {
            Call::Sleep { absolute: true, .. } => self.releases.note_time(at_expiry_ns),
            // The rest of a sleep that a signal interrupted has no duration of its own.
            Call::Sleep { absolute: false, .. } if call.is_release && !self.may_continue_sleep => {
                self.sleep_ns = Some(at_expiry_ns.saturating_sub(at_ns));
            }
            _ => {}
        }
        self.decide_on_sleep(at_ns, Some(at_expiry_ns), config);
    }

    /// Handles the start of the timer of a timerfd in it: it arms the timer, or reads the expiries of a periodic one. If
    /// it did not wait for the expiry, because its previous cycle took too long, the next cycle starts here.
    pub fn starts_fd_timer(&mut self, at_ns: u64, timer: u64, expires_ns: i64, config: &RunConfig) {
        let call = self.in_kernel.call().filter(|_| self.in_kernel.call_name() == "read");
        if call.is_some() {
            self.fd_timer.read = Some(timer);
        } else if self.fd_timer.read.is_some_and(|read| read != timer) {
            // Another timer, e.g. a watchdog that is armed in each cycle and never read.
            return;
        }
        // The event does not name the timer's clock.
        let on_clock = |clock| config.clocks.to_monotonic(clock, expires_ns, at_ns);
        let near = [MONOTONIC, REALTIME, BOOTTIME].into_iter().filter_map(on_clock);
        let Some(next_ns) = near.min_by_key(|ns| ns.abs_diff(at_ns)) else { return };
        let before_ns = self.fd_timer.expires_ns.replace(next_ns);
        let has_released = mem::take(&mut self.fd_timer.has_released);
        let Some(call) = call else { return };
        self.releases.note_timer(call.source);
        let expired_in = self.fd_timer.expired_in.take();
        self.fd_timer.note_reading(if call.has_waited { Some(call.source) } else { expired_in });
        if self.fd_timer.source.is_some() {
            self.releases.note_timer_wait();
        }
        let before = self.releases.rank();
        let is_release = self.releases.note(Rank::Timer);
        let Some(before_ns) = before_ns.filter(|_| !has_released && is_release && !self.is_marked) else { return };
        self.end_or_drop_cycle(at_ns, before, config);
        let now_ns = self.accounted_ns;
        // One reading answers all expiries since the last one.
        let due_ns = before_ns.min(now_ns);
        let released = Released { at_ns: due_ns, latest_ns: due_ns, ..Released::at(now_ns) };
        self.begin_cycle(Released { late_by: CycleCause::PreviousCycle, ..released }, config);
    }

    /// Handles that the futex word at this address turned out to be no lock.
    pub fn forget_lock(&mut self, address: u64) {
        if self.locks.forget(address) {
            // It waited for events in this cycle, so it consists of several.
            self.cycles.cut();
        }
    }

    /// Notes a wait for a lock that has ended. Returns true if the word is no lock: in several waits in a row, without
    /// another sleep or event of this thread in between, the holder slept most of the time. A thread that does this
    /// waits for its own next cycle, not for the release, and this thread would have no cycles.
    pub fn waits_for_sleeper(&mut self, wait: &Wait) -> bool {
        /// Number of waits that show it.
        const ENOUGH: u32 = 3;
        let address = wait.lock.address;
        let before = if self.slept_on.0 == address { self.slept_on.1 } else { 0 };
        let count = if wait.holder_slept() { before + 1 } else { 0 };
        self.slept_on = (address, count);
        count >= ENOUGH && wait.lock.can_be_other()
    }

    /// CPU time so far, ns. `at_ns` is the time on CLOCK_MONOTONIC.
    pub fn cpu_ns(&self, at_ns: u64) -> u64 {
        let since_ns = if self.state == State::Running { at_ns.saturating_sub(self.accounted_ns) } else { 0 };
        self.times.running_ns + since_ns
    }

    /// The start of its current cycle, ns on CLOCK_MONOTONIC.
    pub fn cycle_begun_ns(&self) -> Option<u64> {
        self.cycles.begun_ns()
    }

    /// Handles a page fault of it. The kernel traces only its start: the fault lasts until the next event at most.
    pub fn faults(&mut self, at_ns: u64, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        // Tracing a fault takes about as long as the fault.
        self.fault_ns = config.fault_ns.saturating_mul(2);
        self.in_kernel.note_page_fault(self.times.running_ns);
        self.page_faults += 1;
        self.note_breach(Rule::PageFault, "", at_ns, config);
        if let Some(open) = self.cycles.now() {
            open.parts.page_faults += 1;
        }
    }

    /// Handles a mark at the start or end of a cycle. From its first mark on, only marks delimit its cycles.
    pub fn is_at_mark(&mut self, at_ns: u64, begins: bool, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        if !self.is_marked {
            self.is_marked = true;
            self.cycles = Cycles::default();
        }
        self.end_cycle(at_ns, config);
        self.marks_ends |= !begins;
        if begins {
            let now_ns = self.accounted_ns;
            self.begin_cycle(Released::at(now_ns), config);
        }
    }

    /// Handles the delivery of a signal to it.
    pub fn receives_signal(&mut self, at_ns: u64, handled: bool) {
        if !handled || !self.runs_at(at_ns) {
            return;
        }
        if self.handler.depth == 0 {
            self.handler.from_ns = self.times.running_ns;
        }
        self.handler.depth += 1;
        self.signals += 1;
        if let Some(open) = self.cycles.now() {
            open.parts.signals += 1;
        }
    }

    fn leave_handler(&mut self) {
        let Handler { depth, from_ns } = self.handler;
        self.handler.depth = depth.saturating_sub(1);
        if depth == 1
            && let Some(open) = self.cycles.now()
        {
            open.parts.handlers_ns += self.times.running_ns.saturating_sub(from_ns);
        }
    }

    /// Handles its request to a block device.
    pub fn requests_disk(&mut self) {
        self.in_kernel.note_disk_request();
    }

    /// Handles the start of its wait for a lock of the kernel; the end if `lock` is `None`.
    pub fn contends(&mut self, lock: Option<Lock>) {
        self.in_kernel.set_contends(lock);
    }

    /// True if its wake-up of a thread that waits for this lock releases the lock: it wakes those who wait at the address
    /// of the lock, or it is the holder, which the kernel replaces when it ends.
    pub fn releases_lock(&self, lock: Lock) -> bool {
        lock.scope == Scope::Kernel || lock.owner == Some(self.tid()) || self.in_kernel.releases(lock, self.process)
    }

    /// True if it is in a system call that can wake others.
    pub fn is_in_call(&self) -> bool {
        self.in_kernel.call().is_some()
    }

    /// Handles an event that shows that it is on a CPU. Returns false if the event is ignored.
    fn runs_at(&mut self, at_ns: u64) -> bool {
        if at_ns < self.since_ns || self.state == State::Ended {
            return false;
        }
        let at_ns = at_ns.max(self.accounted_ns);
        match self.state {
            State::Unobserved | State::Running => self.account_for(at_ns, TimePart::Running),
            State::Ready { .. } | State::Preempted { .. } | State::Blocked => self.account_unknown(at_ns),
            State::Ended => return false,
        }
        (self.state, self.waiting) = (State::Running, None);
        true
    }
}
