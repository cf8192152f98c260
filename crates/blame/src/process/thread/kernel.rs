//! What a thread does in the kernel: system calls, page faults, signals.

use record::{CycleCause, Rule};

use super::{State, Thread, TimePart};
use crate::process::{
    calls::{Call, Lock, Rank, Scope},
    cycles::{Cycles, Released},
    selection::RunConfig,
};

/// The signal handlers in progress.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Handler {
    depth: u32,
    /// CPU time of the thread when the outermost one began, ns.
    from_ns: u64,
}

impl Thread {
    /// Handles its entry into a system call.
    pub fn enters(&mut self, at_ns: u64, number: u32, call: Call, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        let rank = match call {
            Call::SignalReturn => return self.leave_handler(),
            Call::Sleep { absolute: true, .. } => Some(Rank::Absolute),
            Call::Sleep { absolute: false, .. } => Some(Rank::Relative),
            // The deadline policy: the work of this period is complete.
            Call::Yield if self.task.priority < 0 => Some(Rank::Absolute),
            Call::SetPolicy { .. }
            | Call::Yield
            | Call::TakeLock(_)
            | Call::WakeAt { .. }
            | Call::Sync
            | Call::Other => None,
        };
        let before = self.releases.rank();
        let is_release = rank.is_some_and(|rank| self.releases.note(rank));
        if is_release && !self.is_marked {
            self.end_cycle(at_ns, config);
            self.handler = Handler::default();
            if before != self.releases.rank() {
                self.cycles.starts(self.period_ns);
            }
        }
        self.in_kernel.enter(number, call, is_release);
    }

    /// Handles its return from a system call. A sleep that was over before it began starts the next cycle here.
    pub fn leaves(&mut self, at_ns: u64, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        let Some(call) = self.in_kernel.leave().filter(|call| call.is_release) else { return };
        if self.is_marked {
            return;
        }
        let now_ns = self.accounted_ns;
        let due_ns = call.expires_ns.map_or(now_ns, |expires_ns| expires_ns.min(now_ns));
        let released = Released { at_ns: due_ns, noticed_ns: now_ns, late_by: CycleCause::PreviousCycle };
        self.begin_cycle(released, config);
    }

    /// Handles the start of a timer in it.
    pub fn starts_timer(&mut self, at_ns: u64, expires_ns: i64) {
        self.in_kernel.note_timer(at_ns, expires_ns);
    }

    /// Handles a page fault of it. The kernel traces only its start: the fault lasts until the next event at most.
    pub fn faults(&mut self, at_ns: u64, config: &RunConfig) {
        if !self.runs_at(at_ns) {
            return;
        }
        // Tracing a fault takes about as long as the fault.
        self.fault_ns = config.fault_ns.saturating_mul(2);
        self.in_kernel.note_page_fault();
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
            self.begin_cycle(Released { at_ns: now_ns, noticed_ns: now_ns, late_by: CycleCause::LateTimer }, config);
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
        lock.scope == Scope::Kernel || lock.owner == Some(self.tid()) || self.in_kernel.releases(lock)
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
