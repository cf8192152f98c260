//! What a child process or a thread cost, as the kernel counted it.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    process::{Child, ExitStatus},
    time::Duration,
};

/// What a thread has used since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time, user and system, ns.
    pub cpu_time_ns: u64,
    /// How often it gave up its CPU of its own accord.
    pub sleeps: u64,
}

impl ThreadUsage {
    /// What the calling thread has used.
    #[must_use]
    pub fn so_far() -> Self {
        // SAFETY: rusage is plain old data, for which all zeroes is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes into a live rusage; it cannot fail for the calling thread.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let cpu_time = duration(usage.ru_utime) + duration(usage.ru_stime);
        Self { cpu_time_ns: cpu_time.as_nanos() as u64, sleeps: usage.ru_nvcsw as u64 }
    }
}

/// The cost of a child and of those of its descendants that were waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, user and system.
    pub cpu_time: Duration,
    /// Largest resident memory, bytes. Never too small, but it takes in what the parent had resident at the start.
    pub peak_memory_bytes: u64,
}

/// Waits for the child to end and reaps it.
///
/// # Errors
/// What the kernel answered: ECHILD when something else reaped it before.
pub fn wait(child: Child) -> io::Result<(ExitStatus, Usage)> {
    // Nothing may read from or write to it any more.
    let pid = child.id();
    drop(child);
    let mut status = 0;
    // SAFETY: rusage is plain old data, for which all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, initialised values that the kernel may write.
    while unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let cpu_time = duration(usage.ru_utime) + duration(usage.ru_stime);
    // Linux counts in KiB.
    let peak_memory_bytes = usage.ru_maxrss as u64 * 1024;
    Ok((ExitStatus::from_raw(status), Usage { cpu_time, peak_memory_bytes }))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn shell(script: &str) -> (ExitStatus, Usage) {
        wait(Command::new("sh").args(["-c", script]).spawn().unwrap()).unwrap()
    }

    #[test]
    fn work_costs_cpu_time_and_the_status_is_told() {
        let (status, idle) = shell("exit 3");
        assert_eq!(status.code(), Some(3));
        let (_, busy) = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        assert!(busy.cpu_time > idle.cpu_time * 4, "{busy:?} {idle:?}");
    }

    #[test]
    fn memory_that_is_filled_counts() {
        let (_, small) = shell("true");
        let (_, large) = shell("x=$(head -c 40000000 /dev/zero | tr '\\0' x); exit 0");
        assert!(large.peak_memory_bytes > small.peak_memory_bytes + 30_000_000, "{large:?} {small:?}");
    }
}
