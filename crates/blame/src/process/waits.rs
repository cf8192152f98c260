//! What a thread is doing in the kernel, and thus what it waits for when it sleeps.

use record::CycleCause;

use super::{
    calls::{self, Call, Lock, Rank},
    rules,
};
use crate::event::PrevState;

/// What a thread does in the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InKernel {
    /// The system call; `None` outside, and in calls that are not traced.
    call: Option<InCall>,
    /// The lock of the kernel that it waits for.
    contends: Option<Lock>,
    /// True if a page fault was its last event that shows why it entered the kernel.
    faulted: bool,
    /// True if it submitted a request to a block device in this call or page fault.
    requested_disk: bool,
}

/// A system call in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct InCall {
    pub call: Call,
    number: u32,
    /// The time that the sleep should end, ns on CLOCK_MONOTONIC; `None` if unknown.
    pub expires_ns: Option<u64>,
    /// True if the call ended a cycle, so that the next one starts after it.
    pub is_release: bool,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitFor {
    Lock(Lock),
    KernelLock(Lock),
    Page,
    Disk,
    Sleep,
    Event,
    Continue,
    Unknown,
}

impl InKernel {
    /// Enters a system call. `is_release`: the call ends a cycle, whether it sleeps or not.
    pub fn enter(&mut self, number: u32, call: Call, is_release: bool) {
        *self = Self { call: Some(InCall { call, number, expires_ns: None, is_release }), ..Self::default() };
    }

    /// Leaves the system call, and returns it.
    pub fn leave(&mut self) -> Option<InCall> {
        let call = self.call.take();
        *self = Self::default();
        call
    }

    /// The current system call.
    pub fn call(&self) -> Option<InCall> {
        self.call
    }

    /// Notes the first timer that starts in a sleep: it ends the sleep. The time of a timer on another clock is ignored:
    /// only CLOCK_MONOTONIC has times near `now_ns`.
    pub fn note_timer(&mut self, now_ns: u64, expires_ns: i64) {
        /// The longest sleep whose end is used, and the longest time that a deadline may be in the past, ns.
        const NEAR_NS: u64 = 3_600_000_000_000;
        let Some(InCall { call: Call::Sleep { .. }, expires_ns: known @ None, .. }) = &mut self.call else { return };
        *known = u64::try_from(expires_ns).ok().filter(|expires_ns| expires_ns.abs_diff(now_ns) < NEAR_NS);
    }

    pub fn note_page_fault(&mut self) {
        self.faulted = true;
    }

    pub fn note_disk_request(&mut self) {
        self.requested_disk = true;
    }

    pub fn set_contends(&mut self, lock: Option<Lock>) {
        self.contends = lock;
    }

    /// True if the thread gives up the CPU until its next period.
    pub fn yields_until_release(&self) -> bool {
        self.call.is_some_and(|call| call.call == Call::Yield && call.is_release)
    }

    /// True if the thread wakes those who wait at this address.
    pub fn releases(&self, lock: Lock) -> bool {
        let call = self.call.map(|call| call.call);
        matches!(call, Some(Call::WakeAt { address, scope }) if lock.is_at(address, scope))
    }

    /// What the thread waits for if it sleeps now.
    pub fn wait_for(&self, prev_state: PrevState) -> WaitFor {
        let interruptible = prev_state == PrevState::Sleeping;
        match (self.call.map(|call| call.call), self.contends) {
            _ if prev_state == PrevState::Stopped => WaitFor::Continue,
            (Some(Call::TakeLock(lock)), _) if interruptible => WaitFor::Lock(lock),
            (_, Some(lock)) => WaitFor::KernelLock(lock),
            (None, _) if self.faulted && !interruptible => WaitFor::Page,
            _ if self.requested_disk && !interruptible => WaitFor::Disk,
            _ if self.faulted && !interruptible => WaitFor::Page,
            (Some(Call::Sync), _) => WaitFor::Disk,
            (Some(Call::Sleep { .. }), _) => WaitFor::Sleep,
            _ if interruptible => WaitFor::Event,
            _ => WaitFor::Unknown,
        }
    }

    /// The rank of the wait, if it may end a cycle.
    pub fn rank(&self, wait_for: WaitFor) -> Option<Rank> {
        (wait_for == WaitFor::Event).then_some(Rank::Event)
    }

    /// True if the thread waits in a way that may take longer than its program wants.
    pub fn sleeps_unsafely(&self, wait_for: WaitFor) -> bool {
        rules::is_unsafe_sleep(wait_for, self.call.map(|call| call.call), self.call_name())
    }

    /// Name of the current system call; empty if there is none.
    pub fn call_name(&self) -> &'static str {
        self.call.map_or("", |call| calls::name(call.number))
    }
}

impl WaitFor {
    /// The cause of a cycle's time in this wait.
    pub fn cause(self) -> CycleCause {
        match self {
            Self::Lock(_) => CycleCause::LockHeld,
            Self::KernelLock(_) => CycleCause::KernelLock,
            Self::Page => CycleCause::PageFaults,
            Self::Disk => CycleCause::Disk,
            Self::Sleep => CycleCause::Sleep,
            Self::Event => CycleCause::Event,
            Self::Continue => CycleCause::Stopped,
            Self::Unknown => CycleCause::Unknown,
        }
    }
}
