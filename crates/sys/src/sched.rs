//! Scheduling policy and affinity of the calling thread, set and read back.
//!
//! The policy goes through the raw system call: musl's `sched_setscheduler` answers ENOSYS whatever it is asked.

use std::{fmt, io, str::FromStr};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// A scheduling policy with its parameters.
///
/// Written as on the command line: `other`, `fifo:90`, `rr:50`, `deadline:RUNTIME/DEADLINE/PERIOD` (with units).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Ordinary time sharing.
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
    /// A policy that punctual does not set (batch, idle, …), by its number in the kernel.
    Unknown(u32),
}

impl Policy {
    /// Whether the kernel runs such a thread before every ordinary one.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo(_) | Self::RoundRobin(_) | Self::Deadline { .. })
    }

    /// Its priority, 1 to 99; `None` where it has none.
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

/// Why a policy could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No such policy.
    #[error(
        "unknown policy `{0}`: use fifo:1-99, rr:1-99, deadline:RUNTIME/DEADLINE/PERIOD (as deadline:200us/1ms/1ms), or other"
    )]
    Unknown(String),
    /// The priority is not 1 to 99.
    #[error("priority `{0}` is not between 1 and 99: use fifo:90, for example")]
    Priority(String),
    /// The three times of a deadline policy do not fit.
    #[error(
        "`{0}` is not RUNTIME/DEADLINE/PERIOD with 1024 ns <= runtime <= deadline <= period: use deadline:200us/1ms/1ms, for example"
    )]
    Deadline(String),
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, parameter) = text.split_once(':').unwrap_or((text, ""));
        let priority = || match parameter.parse() {
            Ok(priority @ 1..=99) => Ok(priority),
            _ => Err(PolicyError::Priority(parameter.to_owned())),
        };
        match name {
            "other" if parameter.is_empty() => Ok(Self::Other),
            "fifo" => priority().map(Self::Fifo),
            "rr" => priority().map(Self::RoundRobin),
            "deadline" => deadline(parameter).ok_or_else(|| PolicyError::Deadline(parameter.to_owned())),
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

/// A whole number with its unit (`ns`, `us`, `ms`, `s`).
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

/// Sets the policy of the calling thread.
///
/// # Errors
/// What the kernel answered: EPERM without the right, or where a deadline thread is pinned; EBUSY when the deadline
/// bandwidth is spent.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    set_policy_by_number(0, policy, 0)
}

/// Sets the policy of a thread of this number, which keeps its niceness.
///
/// # Errors
/// As [`set_policy`]; ESRCH when there is no such thread.
pub fn set_policy_of(thread_id: u32, policy: Policy) -> io::Result<()> {
    let thread = i32::try_from(thread_id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let niceness = rustix::process::getpriority_process(Some(thread))?;
    set_policy_by_number(thread.as_raw_nonzero().get(), policy, niceness)
}

/// 0 names the calling thread.
fn set_policy_by_number(thread: i32, policy: Policy, niceness: i32) -> io::Result<()> {
    // SAFETY: sched_attr is plain old data, for which all zeroes is a valid value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    attr.size = size_of::<libc::sched_attr>() as u32;
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

/// The policy of the calling thread as the kernel has it.
///
/// # Errors
/// What the kernel answered; it has no reason to refuse.
pub fn policy() -> io::Result<Policy> {
    // SAFETY: sched_attr is plain old data, for which all zeroes is a valid value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given size into a live sched_attr; 0 names the calling thread.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size_of::<libc::sched_attr>() as u32, 0) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let priority = attr.sched_priority as u8;
    Ok(match attr.sched_policy as i32 {
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

/// Lets the calling thread run on `cpus` only.
///
/// # Errors
/// What the kernel answered: EINVAL when none of the CPUs is online and allowed; EBUSY for a deadline thread.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    set_affinity_of(None, cpus)
}

/// Lets a thread run on `cpus` only: that of this number, or the calling one.
///
/// # Errors
/// As [`set_affinity`]; ESRCH when there is no such thread, EPERM when it is another user's, EINVAL when it is a thread of
/// the kernel that belongs to its CPU.
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
/// What the kernel answered.
pub fn affinity() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

/// Sets the niceness of the calling thread, -20 (most of the CPU) to 19; answers what it was.
///
/// # Errors
/// When the right is missing: root or CAP_SYS_NICE to go below the present one.
pub fn set_niceness(niceness: i32) -> io::Result<i32> {
    let before = rustix::process::getpriority_process(None)?;
    rustix::process::setpriority_process(None, niceness)?;
    Ok(before)
}

/// The calling thread, as the kernel numbers it in the process's own pid namespace.
#[must_use]
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The CPU that the calling thread runs on at this moment.
#[must_use]
pub fn current_cpu() -> u32 {
    // Of libc, since rustix looks for the kernel's vDSO with a system call of its own, in the middle of the loop that asks.
    // SAFETY: the call takes nothing and touches no memory of ours.
    unsafe { libc::sched_getcpu() as u32 }
}

/// Timer slack of the calling thread, ns: how much later than asked the kernel may end its sleeps. Real-time threads
/// have none, whatever this says.
#[must_use]
pub fn timer_slack_ns() -> u64 {
    rustix::thread::current_timer_slack().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_read_as_they_are_written() {
        for text in ["other", "fifo:1", "fifo:99", "rr:50", "deadline:200000ns/1000000ns/1000000ns"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        let deadline = Policy::Deadline { runtime_ns: 200_000, deadline_ns: 1_000_000, period_ns: 1_000_000 };
        assert_eq!("deadline:200us/1ms/1ms".parse(), Ok(deadline));
    }

    #[test]
    fn wrong_policies_are_explained() {
        for (text, expected) in [
            ("fif:3", "unknown policy `fif:3`"),
            ("fifo", "priority `` is not"),
            ("fifo:0", "priority `0`"),
            ("rr:100", "priority `100`"),
            ("deadline:1ms/1us/1ms", "is not RUNTIME/DEADLINE/PERIOD"),
            ("deadline:5/6/7", "is not RUNTIME/DEADLINE/PERIOD"),
            ("deadline:1ns/1ms/1ms", "1024 ns <= runtime"),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_policy_of_another_thread_is_set_and_its_niceness_kept() {
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let (end, until) = std::sync::mpsc::channel::<()>();
            let other = scope.spawn(move || {
                set_niceness(5).unwrap();
                tell.send(thread_id()).unwrap();
                // It ends with the sender.
                let _ = until.recv();
                (policy().unwrap(), set_niceness(5).unwrap())
            });
            set_policy_of(told.recv().unwrap(), Policy::Other).unwrap();
            drop(end);
            assert_eq!(other.join().unwrap(), (Policy::Other, 5));
        });
        assert!(set_policy_of(0, Policy::Other).is_err());
    }

    #[test]
    fn the_ordinary_policy_is_granted_and_read_back() {
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
