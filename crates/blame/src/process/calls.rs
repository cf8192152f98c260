//! What a thread waits for, according to its system calls.

use sys::syscall::WAITING;

/// A lock of the program, such as a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lock {
    pub address: u64,
    /// True if its holder inherits the priority of those who wait for it.
    pub inherits_priority: bool,
}

/// A system call that can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// A sleep for a time, or until a time if `absolute`; `steady` if nobody can set its clock.
    Sleep { absolute: bool, steady: bool },
    /// A wait for a lock of the program.
    TakeLock(Lock),
    /// Waits at this address until another thread changes its value, which is no lock.
    AwaitChange { address: u64 },
    /// Wakes those who wait at this address; more than one if `all`, which no lock does.
    WakeAt { address: u64, all: bool },
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
/// The clocks that nobody can set.
const STEADY_CLOCKS: [u64; 2] = [MONOTONIC, TAI];

impl Call {
    /// The call with this number and these arguments.
    pub fn of(number: u32, [first, second, third]: [u64; 3]) -> Self {
        match name(number) {
            "futex" => Self::of_futex(first, second & futex::COMMAND, third & u64::from(u32::MAX)),
            "nanosleep" => Self::Sleep { absolute: false, steady: true },
            "clock_nanosleep" => {
                Self::Sleep { absolute: second & ABSOLUTE != 0, steady: STEADY_CLOCKS.contains(&first) }
            }
            "sched_setscheduler" | "sched_setattr" | "sched_setparam" => Self::SetPolicy { tid: first },
            "sched_yield" => Self::Yield,
            "rt_sigreturn" => Self::SignalReturn,
            "fsync" | "fdatasync" | "msync" | "sync_file_range" | "sync" | "syncfs" => Self::Sync,
            "fork" | "vfork" | "clone" | "clone3" | "execve" | "execveat" => Self::Spawn,
            "restart_syscall" => Self::Restart,
            // Without file descriptors, only the timeout ends the wait.
            "poll" | "ppoll" if second == 0 => Self::Sleep { absolute: false, steady: true },
            "select" | "pselect6" if first == 0 => Self::Sleep { absolute: false, steady: true },
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

    fn of_futex(address: u64, command: u64, value: u64) -> Self {
        match command {
            futex::LOCK_PI | futex::LOCK_PI2 => Self::TakeLock(Lock { address, inherits_priority: true }),
            futex::WAIT | futex::WAIT_BITSET if is_locked(value) => {
                Self::TakeLock(Lock { address, inherits_priority: false })
            }
            futex::WAKE | futex::WAKE_BITSET => Self::WakeAt { address, all: value != 1 },
            futex::WAKE_OP | futex::UNLOCK_PI => Self::WakeAt { address, all: false },
            futex::WAIT | futex::WAIT_BITSET => Self::AwaitChange { address },
            _ => Self::Other,
        }
    }
}

/// True if a lock that has waiters contains this value. glibc and Rust store 2. Robust locks and those of musl store
/// the id of the holder, or EBUSY, with a flag.
fn is_locked(value: u64) -> bool {
    let owner = value & futex::TID_MASK;
    value == 2 || value & futex::WAITERS != 0 && (1..=MAX_TID).contains(&owner)
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
        let lock = |inherits_priority| Call::TakeLock(Lock { address: 0x70, inherits_priority });
        assert_eq!(futex(futex::WAIT, 2), lock(false), "glibc");
        assert_eq!(futex(futex::WAIT_BITSET, 2), lock(false), "Rust");
        assert_eq!(futex(futex::WAIT, 0x8000_0010), lock(false), "musl");
        assert_eq!(futex(futex::WAIT, 0xffff_ffff_8000_1234), lock(false), "a robust lock; only 32 bits count");
        assert_eq!(futex(futex::LOCK_PI, 0), lock(true));
        assert_eq!(futex(futex::WAIT, 0), Call::AwaitChange { address: 0x70 }, "a condition variable");
        assert_eq!(futex(futex::WAIT, 0xffff_ffff), Call::AwaitChange { address: 0x70 }, "a parked thread of Rust");
        assert_eq!(futex(futex::UNLOCK_PI, 0), Call::WakeAt { address: 0x70, all: false });
        assert_eq!(futex(futex::WAKE, 0x7fff_ffff), Call::WakeAt { address: 0x70, all: true });
        assert_eq!(Call::of(number("clock_nanosleep"), [1, 1, 0]), Call::Sleep { absolute: true, steady: true });
        assert_eq!(Call::of(number("clock_nanosleep"), [0, 0, 0]), Call::Sleep { absolute: false, steady: false });
        assert_eq!(Call::of(number("sched_setscheduler"), [7, 1, 0]), Call::SetPolicy { tid: 7 });
        assert_eq!(Call::of(number("ppoll"), [0, 0, 0]), Call::Sleep { absolute: false, steady: true });
        assert_eq!(Call::of(number("ppoll"), [0x70, 1, 0]), Call::Other);
        assert_eq!((Call::of(99_999, [0; 3]), name(99_999)), (Call::Other, ""));
    }
}
