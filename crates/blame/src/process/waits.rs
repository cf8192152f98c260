//! What a thread is doing in the kernel, and thus what it waits for when it sleeps.

use record::CycleCause;

use super::calls::{self, Call, Lock, Source};
use crate::event::PrevState;

/// A page fault that waits does so before it has used this CPU time, ns. Later the thread has left the fault.
const MOST_FAULT_CPU_NS: u64 = 50_000;

/// What a thread does in the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InKernel {
    /// The system call; `None` outside, and in calls that are not traced.
    call: Option<InCall>,
    /// The lock of the kernel that it waits for.
    contends: Option<Lock>,
    /// CPU time of the thread at its last page fault, ns, if that was the last event that shows why it entered the
    /// kernel.
    faulted_at_ns: Option<u64>,
    /// True if it submitted a request to a block device in this call or page fault.
    requested_disk: bool,
    /// The last system call, which `restart_syscall` continues.
    last: Option<InCall>,
}

/// A system call in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct InCall {
    pub call: Call,
    number: u32,
    pub source: Source,
    /// The clock of its timeout, as the kernel numbers clocks.
    pub clock: u64,
    /// The end of its timeout; `None` if it is unknown.
    pub timeout: Option<Timeout>,
    /// True if the call ended a cycle, so that the next one starts after it.
    pub is_release: bool,
    /// True if the thread has left the CPU in it.
    pub has_waited: bool,
}

/// The end of a timeout, ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeout {
    /// The end that the program asked for.
    pub expires_ns: u64,
    /// The latest end within the timer slack of the thread.
    pub latest_ns: u64,
}

impl InCall {
    /// The call with this number and these arguments.
    pub fn new(number: u32, call: Call, arguments: [u64; 3]) -> Self {
        Self {
            call,
            number,
            source: Source::of(number, arguments),
            clock: Call::clock(number, arguments),
            timeout: None,
            is_release: false,
            has_waited: false,
        }
    }

    /// Its name; empty if it is not traced.
    pub fn name(&self) -> &'static str {
        calls::name(self.number)
    }

    /// True if the call executes another program.
    pub fn is_exec(&self) -> bool {
        matches!(self.name(), "execve" | "execveat")
    }
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
    /// The start of a child process.
    Child,
    Continue,
    Unknown,
}

impl InKernel {
    /// The call that a thread enters: for `restart_syscall`, the one that it continues.
    pub fn entered(&self, entered: InCall) -> InCall {
        let last = self.last.filter(|_| entered.call == Call::Restart);
        last.map_or(entered, |last| InCall { timeout: None, is_release: false, has_waited: false, ..last })
    }

    /// Enters a system call.
    pub fn enter(&mut self, call: InCall) {
        *self = Self { call: Some(call), ..Self::default() };
    }

    /// Leaves the system call, and returns it.
    pub fn leave(&mut self) -> Option<InCall> {
        let call = self.call.take();
        *self = Self { last: call.or(self.last), ..Self::default() };
        call
    }

    /// The current system call.
    pub fn call(&self) -> Option<InCall> {
        self.call
    }

    /// Notes the first timer that starts in a call: it ends the wait. Returns true if it is the first one.
    pub fn note_timeout(&mut self, timeout: Timeout) -> bool {
        let Some(InCall { timeout: known @ None, .. }) = &mut self.call else { return false };
        *known = Some(timeout);
        true
    }

    /// Notes that the thread leaves the CPU to wait.
    pub fn note_wait(&mut self) {
        if let Some(call) = &mut self.call {
            call.has_waited = true;
        }
    }

    /// Notes a page fault after this CPU time of the thread, ns.
    pub fn note_page_fault(&mut self, cpu_ns: u64) {
        (self.faulted_at_ns, self.requested_disk) = (Some(cpu_ns), false);
    }

    pub fn note_disk_request(&mut self) {
        self.requested_disk = true;
    }

    pub fn set_contends(&mut self, lock: Option<Lock>) {
        self.contends = lock;
    }

    /// True if the thread gives up the CPU.
    pub fn is_yield(&self) -> bool {
        self.call.is_some_and(|call| call.call == Call::Yield)
    }

    /// Notes that the current call ends a cycle.
    pub fn set_release(&mut self) {
        if let Some(call) = &mut self.call {
            call.is_release = true;
        }
    }

    /// True if the thread, of this process, wakes those who wait at the address of this lock.
    pub fn releases(&self, lock: Lock, process: Option<u32>) -> bool {
        let call = self.call.map(|call| call.call);
        matches!(call, Some(Call::WakeAt { address, scope, .. }) if lock.is_at(address, scope, process))
    }

    /// What the thread waits for if it sleeps now, after this CPU time, ns.
    pub fn wait_for(&self, prev_state: PrevState, cpu_ns: u64) -> WaitFor {
        let interruptible = prev_state == PrevState::Sleeping;
        match (self.call.map(|call| call.call), self.contends) {
            _ if prev_state == PrevState::Stopped => WaitFor::Continue,
            (Some(Call::TakeLock(lock)), _) if interruptible => WaitFor::Lock(lock),
            (_, Some(lock)) => WaitFor::KernelLock(lock),
            (None, _) if self.is_in_fault(cpu_ns) && !interruptible => WaitFor::Page,
            _ if self.requested_disk && !interruptible => WaitFor::Disk,
            _ if self.is_in_fault(cpu_ns) && !interruptible => WaitFor::Page,
            (Some(Call::Sync), _) => WaitFor::Disk,
            (Some(Call::Spawn), _) => WaitFor::Child,
            (Some(Call::Sleep { .. }), _) => WaitFor::Sleep,
            _ if interruptible => WaitFor::Event,
            _ => WaitFor::Unknown,
        }
    }

    /// True if the thread handles a page fault. The kernel traces only the start of a fault.
    fn is_in_fault(&self, cpu_ns: u64) -> bool {
        self.faulted_at_ns.is_some_and(|at_ns| self.requested_disk || cpu_ns.saturating_sub(at_ns) < MOST_FAULT_CPU_NS)
    }

    /// True if the thread waits in a way that may take longer than its program wants.
    pub fn sleeps_unsafely(&self, wait_for: WaitFor) -> bool {
        is_unsafe_sleep(wait_for, self.call.map(|call| call.call), self.call_name())
    }

    /// Name of the current system call; empty if there is none.
    pub fn call_name(&self) -> &'static str {
        self.call.map_or("", |call| call.name())
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
            Self::Event | Self::Child => CycleCause::Event,
            Self::Continue => CycleCause::Stopped,
            Self::Unknown => CycleCause::Unknown,
        }
    }
}

/// True if the wait may be longer than the program wants: it is neither for a futex, nor for `epoll_wait`, nor until a
/// time on an allowed clock.
fn is_unsafe_sleep(wait_for: WaitFor, call: Option<Call>, name: &str) -> bool {
    match wait_for {
        WaitFor::Sleep => !matches!(call, Some(Call::Sleep { absolute: true, allowed_clock: true })),
        WaitFor::Event => !name.is_empty() && !name.starts_with("futex") && !name.starts_with("epoll"),
        WaitFor::Disk => true,
        // A page fault is a breach of its own, and the other waits are not the thread's decision.
        WaitFor::Lock(_)
        | WaitFor::KernelLock(_)
        | WaitFor::Page
        | WaitFor::Child
        | WaitFor::Continue
        | WaitFor::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_safe_until_a_time_on_an_allowed_clock() {
        let sleep = |absolute, allowed_clock| {
            is_unsafe_sleep(WaitFor::Sleep, Some(Call::Sleep { absolute, allowed_clock }), "clock_nanosleep")
        };
        assert_eq!([sleep(true, true), sleep(true, false), sleep(false, true)], [false, true, true]);
        let event = |name| is_unsafe_sleep(WaitFor::Event, Some(Call::Other), name);
        assert_eq!(["futex", "epoll_wait", "poll", "read", ""].map(event), [false, false, true, true, false]);
    }
}
