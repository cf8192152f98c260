//! The system calls in which a thread waits, and the object of each wait.

use sys::syscall::WAITING;

/// A lock that a thread waits for, such as a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lock {
    pub address: u64,
    pub scope: Scope,
    /// True if its holder inherits the priority of those who wait for it.
    pub inherits_priority: bool,
    /// Its holder when the wait began, in the pid namespace of the program; `None` if the lock does not contain it.
    pub owner: Option<u32>,
    /// The process that uses it at this address; `None` if that is unknown.
    pub process: Option<u32>,
}

/// The threads that can hold a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The threads of one process.
    Process,
    /// The threads of several processes, where the lock may have different addresses.
    Shared,
    /// All, because it is a lock of the kernel.
    Kernel,
}

impl Lock {
    /// A lock of the kernel.
    pub fn of_kernel(address: u64) -> Self {
        Self { address, scope: Scope::Kernel, inherits_priority: false, owner: None, process: None }
    }

    /// True if it may be another futex word with the value of a lock: the word does not contain its holder.
    pub fn can_be_other(&self) -> bool {
        self.scope != Scope::Kernel && !self.inherits_priority && self.owner.is_none()
    }

    /// True if it can be the lock at this address of a process, or of an unknown one.
    pub fn is_at(&self, address: u64, scope: Scope, process: Option<u32>) -> bool {
        /// The smallest page of all architectures. A shared lock has the same position in a page everywhere.
        const PAGE: u64 = 4 << 10;
        let is_same_process = self.process.zip(process).map(|(one, other)| one == other);
        let same = match (scope, is_same_process) {
            (Scope::Shared, None | Some(false)) => self.address % PAGE == address % PAGE,
            (Scope::Process, Some(false)) => false,
            (Scope::Shared | Scope::Process | Scope::Kernel, _) => self.address == address,
        };
        same && self.scope == scope
    }

    /// True if it can be the same lock.
    pub fn is(&self, other: &Self) -> bool {
        self.is_at(other.address, other.scope, other.process)
    }
}

/// A system call that can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// A sleep for a time, or until a time if `absolute`. Real-time threads may use its clock if `allowed_clock`.
    Sleep { absolute: bool, allowed_clock: bool },
    /// A wait for a lock of the program.
    TakeLock(Lock),
    /// Waits at this address until another thread changes its value, which is no lock.
    AwaitChange { address: u64 },
    /// Wakes threads that wait at this address; more than one if `all`. A mutex wakes only one.
    WakeAt { address: u64, scope: Scope, all: bool },
    /// Gives up the CPU.
    Yield,
    /// Sets the policy of the thread with this id; 0 for the calling thread.
    SetPolicy { tid: u64 },
    /// The end of a signal handler.
    SignalReturn,
    /// A wait for a block device.
    Sync,
    /// The start of a process or thread, or of another program.
    Spawn,
    /// The rest of a wait that a signal interrupted.
    Restart,
    /// Any other call.
    Other,
}

/// Flags and operations of futex(2), from include/uapi/linux/futex.h.
mod futex {
    pub const COMMAND: u64 = 0x7f;
    pub const PRIVATE: u64 = 0x80;
    pub const CLOCK_REALTIME: u64 = 0x100;
    pub const WAIT: u64 = 0;
    pub const WAKE: u64 = 1;
    pub const WAKE_OP: u64 = 5;
    pub const LOCK_PI: u64 = 6;
    pub const UNLOCK_PI: u64 = 7;
    pub const WAIT_BITSET: u64 = 9;
    pub const WAKE_BITSET: u64 = 10;
    pub const LOCK_PI2: u64 = 13;
    pub const WAITERS: u64 = 0x8000_0000;
    pub const TID_MASK: u64 = 0x3fff_ffff;
}

/// The largest thread id (PID_MAX_LIMIT in include/linux/threads.h).
const MAX_TID: u64 = 4 << 20;
/// `TIMER_ABSTIME` of clock_nanosleep(2).
const ABSOLUTE: u64 = 1;
/// Numbers of clocks, from include/uapi/linux/time.h.
pub(super) const REALTIME: u64 = 0;
pub(super) const MONOTONIC: u64 = 1;
pub(super) const BOOTTIME: u64 = 7;
pub(super) const TAI: u64 = 11;
/// The clocks of sleeps that the kernel's monitor `sleep` allows (Linux 6.18, kernel/trace/rv/monitors/sleep). Setting
/// CLOCK_REALTIME also changes CLOCK_TAI, which is CLOCK_REALTIME plus a number of seconds, but slots of a network need
/// this clock.
const ALLOWED_CLOCKS: [u64; 2] = [MONOTONIC, TAI];

impl Call {
    /// The call with this number and these arguments.
    pub fn of(number: u32, [first, second, third]: [u64; 3]) -> Self {
        match name(number) {
            "futex" => Self::of_futex(first, second, third & u64::from(u32::MAX)),
            "nanosleep" => Self::Sleep { absolute: false, allowed_clock: true },
            "clock_nanosleep" => {
                Self::Sleep { absolute: second & ABSOLUTE != 0, allowed_clock: ALLOWED_CLOCKS.contains(&first) }
            }
            "sched_setscheduler" | "sched_setattr" | "sched_setparam" => Self::SetPolicy { tid: first },
            "sched_yield" => Self::Yield,
            "rt_sigreturn" => Self::SignalReturn,
            "fsync" | "fdatasync" | "msync" | "sync_file_range" | "sync" | "syncfs" => Self::Sync,
            "fork" | "vfork" | "clone" | "clone3" | "execve" | "execveat" => Self::Spawn,
            "restart_syscall" => Self::Restart,
            // Without file descriptors, only the timeout ends the wait.
            "poll" | "ppoll" if second == 0 => Self::Sleep { absolute: false, allowed_clock: true },
            "select" | "pselect6" if first == 0 => Self::Sleep { absolute: false, allowed_clock: true },
            _ => Self::Other,
        }
    }

    /// The clock of its timeout, as the kernel numbers clocks.
    pub fn clock(number: u32, [first, second, _]: [u64; 3]) -> u64 {
        match name(number) {
            "clock_nanosleep" => first,
            "futex" if second & futex::CLOCK_REALTIME != 0 => REALTIME,
            _ => MONOTONIC,
        }
    }

    /// The same call of a thread of this process, if that is known.
    pub fn in_process(self, process: Option<u32>) -> Self {
        match self {
            Self::TakeLock(lock) => Self::TakeLock(Lock { process, ..lock }),
            other => other,
        }
    }

    fn of_futex(address: u64, operation: u64, value: u64) -> Self {
        let scope = if operation & futex::PRIVATE == 0 { Scope::Shared } else { Scope::Process };
        let lock = Lock { address, scope, inherits_priority: false, owner: owner(value), process: None };
        match operation & futex::COMMAND {
            // glibc waits in this way for the end of a thread, at a word with its id, which is small in a container.
            futex::WAIT_BITSET if scope == Scope::Shared && matches!(value, 2 | 3) => Self::AwaitChange { address },
            futex::LOCK_PI | futex::LOCK_PI2 => Self::TakeLock(Lock { inherits_priority: true, owner: None, ..lock }),
            futex::WAIT | futex::WAIT_BITSET if is_locked(value) => Self::TakeLock(lock),
            futex::WAKE | futex::WAKE_BITSET => Self::WakeAt { address, scope, all: value != 1 },
            futex::WAKE_OP | futex::UNLOCK_PI => Self::WakeAt { address, scope, all: false },
            futex::WAIT | futex::WAIT_BITSET => Self::AwaitChange { address },
            _ => Self::Other,
        }
    }
}

/// True if a lock that has waiters contains this value. glibc and Rust store 2, and rwlocks of glibc 3. Robust locks
/// and those of musl store the id of the holder, or EBUSY, with a flag; locks of glibc with a priority ceiling store it
/// before the 2.
fn is_locked(value: u64) -> bool {
    matches!(value, 2 | 3) || owner(value).is_some() || has_ceiling(value)
}

/// True if a lock with the protocol PTHREAD_PRIO_PROTECT that has waiters contains this value. Source:
/// PTHREAD_MUTEX_PRIO_CEILING_SHIFT of glibc (sysdeps/nptl/bits/pthreadtypes-arch.h, nptl/pthreadP.h).
fn has_ceiling(value: u64) -> bool {
    const CEILING_SHIFT: u32 = 19;
    (1..=99).contains(&(value >> CEILING_SHIFT)) && value % (1 << CEILING_SHIFT) == 2
}

/// The holder of a lock that contains this value; `None` for the locks that do not contain it.
fn owner(value: u64) -> Option<u32> {
    let owner = value & futex::TID_MASK;
    let stored = value & futex::WAITERS != 0 && (1..=MAX_TID).contains(&owner);
    u32::try_from(owner).ok().filter(|_| stored)
}

/// The object that a thread waits for: a system call with its first argument, which is a file descriptor or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source {
    number: u32,
    object: u64,
}

impl Source {
    /// The object of a call with these arguments.
    pub fn of(number: u32, [first, ..]: [u64; 3]) -> Self {
        // A condition variable of glibc has two words, which its waiters use in turn.
        let object = if name(number) == "futex" { first & !7 } else { first };
        Self { number, object }
    }
}

/// Name of a system call; empty if it is not traced.
pub(super) fn name(number: u32) -> &'static str {
    WAITING.iter().find(|call| call.number == number).map_or("", |call| call.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str) -> u32 {
        WAITING.iter().find(|call| call.name == name).unwrap().number
    }

    #[test]
    fn a_mutex_is_told_from_a_condition_variable() {
        let futex = |command: u64, value: u64| Call::of(number("futex"), [0x70, command | 0x80, value]);
        let scope = Scope::Process;
        let lock = |inherits_priority, owner| {
            Call::TakeLock(Lock { address: 0x70, scope, inherits_priority, owner, process: None })
        };
        assert_eq!(futex(futex::WAIT, 2), lock(false, None), "glibc");
        assert_eq!(futex(futex::WAIT_BITSET, 2), lock(false, None), "Rust");
        assert_eq!(futex(futex::WAIT, 3), lock(false, None), "a rwlock of glibc");
        assert_eq!(futex(futex::WAIT, 0x8000_0010), lock(false, Some(0x10)), "musl");
        let robust = futex(futex::WAIT, 0xffff_ffff_8000_1234);
        assert_eq!(robust, lock(false, Some(0x1234)), "a robust lock; only 32 bits count");
        assert_eq!(futex(futex::WAIT, 60 << 19 | 2), lock(false, None), "a priority ceiling of 60");
        assert_eq!(futex(futex::WAIT, 60 << 19 | 1), Call::AwaitChange { address: 0x70 });
        assert_eq!(futex(futex::LOCK_PI, 0), lock(true, None));
        let join = Call::of(number("futex"), [0x70, futex::WAIT_BITSET | futex::CLOCK_REALTIME, 2]);
        assert_eq!(join, Call::AwaitChange { address: 0x70 }, "pthread_join of thread 2");
        assert_eq!(futex(futex::WAIT, 0), Call::AwaitChange { address: 0x70 }, "a condition variable");
        assert_eq!(futex(futex::WAIT, 0xffff_ffff), Call::AwaitChange { address: 0x70 }, "a parked thread of Rust");
        assert_eq!(futex(futex::UNLOCK_PI, 0), Call::WakeAt { address: 0x70, scope, all: false });
        assert_eq!(futex(futex::WAKE, 0x7fff_ffff), Call::WakeAt { address: 0x70, scope, all: true });
        let shared = Call::of(number("futex"), [0x70, futex::WAKE, 1]);
        assert_eq!(shared, Call::WakeAt { address: 0x70, scope: Scope::Shared, all: false });
        let sleep = |absolute, allowed_clock| Call::Sleep { absolute, allowed_clock };
        let until = |clock| Call::of(number("clock_nanosleep"), [clock, 1, 0]);
        assert_eq!([MONOTONIC, TAI].map(until), [sleep(true, true); 2]);
        assert_eq!([REALTIME, BOOTTIME].map(until), [sleep(true, false); 2]);
        assert_eq!(Call::of(number("clock_nanosleep"), [0, 0, 0]), sleep(false, false));
        assert_eq!(Call::of(number("sched_setscheduler"), [7, 1, 0]), Call::SetPolicy { tid: 7 });
        assert_eq!(Call::of(number("ppoll"), [0, 0, 0]), sleep(false, true));
        assert_eq!(Call::of(number("ppoll"), [0x70, 1, 0]), Call::Other);
        assert_eq!((Call::of(99_999, [0; 3]), name(99_999)), (Call::Other, ""));
    }

    #[test]
    fn a_shared_lock_may_have_another_address_in_another_process() {
        let lock = |address, scope| Lock { address, scope, inherits_priority: false, owner: None, process: None };
        let is = |scope, other| lock(0x7f00_1040, scope).is(&lock(other, scope));
        assert!(is(Scope::Shared, 0x7e00_2040) && !is(Scope::Shared, 0x7e00_2080));
        assert!(!is(Scope::Process, 0x7e00_2040) && is(Scope::Process, 0x7f00_1040));
        assert!(!lock(0x40, Scope::Shared).is(&lock(0x40, Scope::Process)));
        let of = |process, address, scope| Lock { process: Some(process), ..lock(address, scope) };
        assert!(!of(1, 0x7f00_1040, Scope::Shared).is(&of(1, 0x7e00_2040, Scope::Shared)), "in the same process");
        assert!(of(1, 0x7f00_1040, Scope::Shared).is(&of(2, 0x7e00_2040, Scope::Shared)));
        assert!(!of(1, 0x40, Scope::Process).is(&of(2, 0x40, Scope::Process)));
    }
}
