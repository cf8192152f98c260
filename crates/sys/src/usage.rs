//! CPU usage of a thread as counted by the kernel.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The usage of a thread since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time, user and system, ns.
    pub cpu_time_ns: u64,
    /// Voluntary context switches.
    pub sleeps: u64,
}

impl ThreadUsage {
    /// The usage of the calling thread.
    #[must_use]
    pub fn so_far() -> Self {
        // SAFETY: rusage is plain old data, so all zeroes is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes into a live rusage; the call cannot fail for the calling thread.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        Self {
            cpu_time_ns: u64::try_from(cpu_time(&usage).as_nanos()).unwrap_or(u64::MAX),
            sleeps: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        }
    }
}

/// CPU time that the calling thread has used until now, ns (CLOCK_THREAD_CPUTIME_ID). [`ThreadUsage`] can lag behind by
/// one tick.
#[must_use]
pub fn thread_cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// CPU time, user and system.
pub(crate) fn cpu_time(usage: &libc::rusage) -> Duration {
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_cpu_time_and_sleeps() {
        let before = ThreadUsage::so_far();
        while ThreadUsage::so_far().cpu_time_ns < before.cpu_time_ns + 2_000_000 {}
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(ThreadUsage::so_far().sleeps >= before.sleeps + 3);
        assert!(thread_cpu_time_ns() >= ThreadUsage::so_far().cpu_time_ns.saturating_sub(1_000_000));
    }
}
