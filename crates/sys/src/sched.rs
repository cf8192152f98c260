//! Scheduling policy and affinity of threads.
//!
//! The policy is set with the raw system call, because musl's `sched_setscheduler` always returns ENOSYS.

use std::{fmt, io, str::FromStr};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::convert;

/// A scheduling policy and its parameters.
///
/// The text form is that of the command line: `other`, `fifo:90`, `rr:50`, `deadline:RUNTIME/DEADLINE/PERIOD` (with
/// units).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Normal time sharing (SCHED_OTHER).
    Other,
    /// First in, first out, at priority 1 to 99.
    Fifo(u8),
    /// Round robin, at priority 1 to 99.
    RoundRobin(u8),
    /// Earliest deadline first: run for `runtime_ns` within `deadline_ns` of each `period_ns`.
    Deadline {
        /// CPU time granted each period, ns; at least 1024.
        runtime_ns: u64,
        /// Relative deadline, ns; between runtime and period.
        deadline_ns: u64,
        /// Period, ns.
        period_ns: u64,
    },
    /// A policy that punctual never sets (batch, idle, etc.), with the kernel's number.
    Unknown(u32),
}

impl Policy {
    /// True if the kernel runs such a thread before all normal threads.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo(_) | Self::RoundRobin(_) | Self::Deadline { .. })
    }

    /// The priority, 1 to 99; `None` for a policy without one.
    #[must_use]
    pub fn priority(self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(priority),
            Self::Other | Self::Deadline { .. } | Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
            Self::Deadline { runtime_ns, deadline_ns, period_ns } => {
                write!(f, "deadline:{runtime_ns}ns/{deadline_ns}ns/{period_ns}ns")
            }
            Self::Unknown(number) => write!(f, "policy {number}"),
        }
    }
}

/// Why a policy could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No such policy.
    #[error(
        "unknown policy `{0}`: use fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD (e.g. deadline:200us/1ms/1ms), or other"
    )]
    Unknown(String),
    /// A real-time policy without a priority.
    #[error("`{0}` needs a priority of 1 to 99, e.g. {0}:90")]
    NoPriority(String),
    /// The priority is not 1 to 99.
    #[error("the priority must be 1 to 99, e.g. fifo:90 (got `{0}`)")]
    Priority(String),
    /// The three times of a deadline policy are missing or inconsistent.
    #[error(
        "`{0}` is not deadline:RUNTIME/DEADLINE/PERIOD with 1024 ns <= runtime <= deadline <= period, e.g. deadline:200us/1ms/1ms"
    )]
    Deadline(String),
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, parameter) = text.split_once(':').unwrap_or((text, ""));
        let priority = || match parameter.parse() {
            _ if parameter.is_empty() => Err(PolicyError::NoPriority(name.to_owned())),
            Ok(priority @ 1..=99) => Ok(priority),
            _ => Err(PolicyError::Priority(parameter.to_owned())),
        };
        match name {
            "other" if parameter.is_empty() => Ok(Self::Other),
            "fifo" => priority().map(Self::Fifo),
            "rr" => priority().map(Self::RoundRobin),
            "deadline" => deadline(parameter).ok_or_else(|| PolicyError::Deadline(text.to_owned())),
            _ => Err(PolicyError::Unknown(text.to_owned())),
        }
    }
}

fn deadline(parameter: &str) -> Option<Policy> {
    let times: Vec<u64> = parameter.split('/').map(time_ns).collect::<Option<_>>()?;
    match times[..] {
        [runtime_ns, deadline_ns, period_ns]
            if (1024..=deadline_ns).contains(&runtime_ns) && deadline_ns <= period_ns =>
        {
            Some(Policy::Deadline { runtime_ns, deadline_ns, period_ns })
        }
        _ => None,
    }
}

/// Parses a whole number with a unit (`ns`, `us`, `ms`, `s`).
fn time_ns(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let unit = match &text[digits..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

/// Sets the policy of the calling thread. The ordinary policy gets niceness 0, or the thread's own if that is higher:
/// to lower it takes a right that a user of nice(1) does not have.
///
/// # Errors
/// EPERM without permission, or if a deadline thread is pinned; EBUSY if the deadline bandwidth is exhausted.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    let niceness = rustix::process::getpriority_process(None)?;
    set_policy_by_number(0, policy, niceness.max(0))
}

/// Gives the calling thread the ordinary policy if it has a real-time one, and returns that one.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn leave_realtime() -> io::Result<Option<Policy>> {
    let before = policy()?;
    match before {
        Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline { .. } => {
            set_policy(Policy::Other).map(|()| Some(before))
        }
        Policy::Other | Policy::Unknown(_) => Ok(None),
    }
}

/// Sets the policy of the thread with this id. Its niceness is kept.
///
/// # Errors
/// The errors of [`set_policy`]; ESRCH if there is no such thread.
pub fn set_policy_of(thread_id: u32, policy: Policy) -> io::Result<()> {
    let thread = i32::try_from(thread_id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let niceness = rustix::process::getpriority_process(Some(thread))?;
    set_policy_by_number(thread.as_raw_nonzero().get(), policy, niceness)
}

/// Thread id 0 is the calling thread.
fn set_policy_by_number(thread: i32, policy: Policy, niceness: i32) -> io::Result<()> {
    // SAFETY: sched_attr is plain old data, so all zeroes is a valid value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    attr.size = convert::size::<libc::sched_attr>();
    match policy {
        Policy::Other => {
            attr.sched_policy = libc::SCHED_OTHER as u32;
            attr.sched_nice = niceness;
        }
        Policy::Fifo(priority) => {
            attr.sched_policy = libc::SCHED_FIFO as u32;
            attr.sched_priority = priority.into();
        }
        Policy::RoundRobin(priority) => {
            attr.sched_policy = libc::SCHED_RR as u32;
            attr.sched_priority = priority.into();
        }
        Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
            attr.sched_policy = libc::SCHED_DEADLINE as u32;
            attr.sched_runtime = runtime_ns;
            attr.sched_deadline = deadline_ns;
            attr.sched_period = period_ns;
        }
        Policy::Unknown(_) => return Err(io::ErrorKind::InvalidInput.into()),
    }
    // SAFETY: the kernel reads `attr.size` bytes from a live, initialised sched_attr.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attr, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads the policy of the calling thread from the kernel.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn policy() -> io::Result<Policy> {
    // For the kernel, 0 is the calling thread.
    policy_of(0)
}

/// Reads the policy of the thread with this id from the kernel.
///
/// # Errors
/// The kernel's error: ESRCH if the thread has ended.
pub fn policy_of(thread_id: u32) -> io::Result<Policy> {
    // SAFETY: sched_attr is plain old data, so all zeroes is a valid value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = convert::size::<libc::sched_attr>();
    // SAFETY: the kernel writes at most the given size into a live sched_attr.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, thread_id, &raw mut attr, size, 0) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let priority = u8::try_from(attr.sched_priority).unwrap_or(u8::MAX);
    Ok(match attr.sched_policy.cast_signed() {
        libc::SCHED_OTHER => Policy::Other,
        libc::SCHED_FIFO => Policy::Fifo(priority),
        libc::SCHED_RR => Policy::RoundRobin(priority),
        libc::SCHED_DEADLINE => Policy::Deadline {
            runtime_ns: attr.sched_runtime,
            deadline_ns: attr.sched_deadline,
            period_ns: attr.sched_period,
        },
        _ => Policy::Unknown(attr.sched_policy),
    })
}

/// Reads the niceness of the thread with this id.
///
/// # Errors
/// ESRCH if the thread has ended.
pub fn niceness_of(thread_id: u32) -> io::Result<i32> {
    let thread = i32::try_from(thread_id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::getpriority_process(Some(thread))?)
}

/// Restricts the calling thread to `cpus`.
///
/// # Errors
/// EINVAL if none of the CPUs is online and allowed, EBUSY for a deadline thread.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    set_affinity_of(None, cpus)
}

/// Restricts a thread to `cpus`: the one with this id, or the calling thread.
///
/// # Errors
/// The errors of [`set_affinity`]; ESRCH if there is no such thread, EPERM if it belongs to another user, EINVAL for a
/// per-CPU kernel thread.
pub fn set_affinity_of(thread_id: Option<u32>, cpus: &[u32]) -> io::Result<()> {
    let thread = match thread_id {
        None => None,
        Some(number) => Some(i32::try_from(number).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?),
    };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(thread, &set)?)
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// The kernel's error.
pub fn affinity() -> io::Result<Vec<u32>> {
    affinity_of(None)
}

/// The CPUs that a thread may run on: the one with this id, or the calling thread.
///
/// # Errors
/// The kernel's error: ESRCH if the thread has ended.
pub fn affinity_of(thread_id: Option<u32>) -> io::Result<Vec<u32>> {
    let thread_id = thread_id.and_then(|id| Pid::from_raw(id.cast_signed()));
    let set = sched_getaffinity(thread_id)?;
    Ok((0..).zip(0..CpuSet::MAX_CPU).filter(|&(_, cpu)| set.is_set(cpu)).map(|(number, _)| number).collect())
}

/// Sets the niceness of the calling thread, -20 (most CPU time) to 19; returns the previous value.
///
/// # Errors
/// EACCES if the value is below the current one and the process has no CAP_SYS_NICE.
pub fn set_niceness(niceness: i32) -> io::Result<i32> {
    let before = rustix::process::getpriority_process(None)?;
    rustix::process::setpriority_process(None, niceness)?;
    Ok(before)
}

/// The id of the calling thread in the pid namespace of its process.
#[must_use]
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The CPU that the calling thread runs on now.
#[must_use]
pub fn current_cpu() -> u32 {
    // rustix would make a system call to find the vDSO in the middle of the caller's loop, so this uses libc.
    // SAFETY: the call has no arguments and accesses no memory of ours.
    unsafe { libc::sched_getcpu().cast_unsigned() }
}

/// Timer slack of the calling thread, ns: the time by which the kernel may delay the end of a sleep. It has no effect
/// on real-time threads.
#[must_use]
pub fn timer_slack_ns() -> u64 {
    rustix::thread::current_timer_slack().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_round_trip() {
        for text in ["other", "fifo:1", "fifo:99", "rr:50", "deadline:200000ns/1000000ns/1000000ns"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        let deadline = Policy::Deadline { runtime_ns: 200_000, deadline_ns: 1_000_000, period_ns: 1_000_000 };
        assert_eq!("deadline:200us/1ms/1ms".parse(), Ok(deadline));
    }

    #[test]
    fn explains_invalid_policies() {
        for (text, expected) in [
            ("fif:3", "unknown policy `fif:3`"),
            ("fifo", "`fifo` needs a priority of 1 to 99, e.g. fifo:90"),
            ("rr:", "`rr` needs a priority of 1 to 99, e.g. rr:90"),
            ("fifo:0", "(got `0`)"),
            ("rr:100", "(got `100`)"),
            ("deadline:1ms/1us/1ms", "is not deadline:RUNTIME/DEADLINE/PERIOD"),
            ("deadline:5/6/7", "is not deadline:RUNTIME/DEADLINE/PERIOD"),
            ("deadline:1ns/1ms/1ms", "1024 ns <= runtime"),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn sets_the_policy_of_another_thread_and_keeps_its_niceness() {
        std::thread::scope(|scope| {
            let (id_sender, id) = std::sync::mpsc::channel();
            let (end, until) = std::sync::mpsc::channel::<()>();
            let other = scope.spawn(move || {
                set_niceness(5).unwrap();
                id_sender.send(thread_id()).unwrap();
                // Blocks until the sender is dropped.
                let _ = until.recv();
                (policy().unwrap(), set_niceness(5).unwrap())
            });
            set_policy_of(id.recv().unwrap(), Policy::Other).unwrap();
            drop(end);
            assert_eq!(other.join().unwrap(), (Policy::Other, 5));
        });
        assert!(set_policy_of(0, Policy::Other).is_err());
    }

    #[test]
    fn sets_and_reads_back_policy_and_affinity() {
        std::thread::spawn(|| {
            set_policy(Policy::Other).unwrap();
            assert_eq!(policy().unwrap(), Policy::Other);
            let all = affinity().unwrap();
            set_affinity(&all[..1]).unwrap();
            assert_eq!(affinity().unwrap(), all[..1]);
        })
        .join()
        .unwrap();
    }
}
