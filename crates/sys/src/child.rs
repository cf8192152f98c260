//! Child processes that end with their parent, and their resource usage as counted by the kernel.

use std::{io, os::unix::process::CommandExt, process::Command, time::Duration};

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use crate::usage::cpu_time;

/// The exit status of a child and the resources it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The exit status, or the number of the signal that killed the child.
    pub how: Result<i32, i32>,
    /// CPU time, user and system, of the child and of all descendants that were waited for.
    pub cpu_time: Duration,
    /// Peak resident memory of any of these processes, bytes. An upper bound: it includes the memory that the parent
    /// had resident when it started the child.
    pub peak_memory_bytes: u64,
}

/// Lets the kernel send `signal` to the child when the thread that started the child ends.
pub fn signal_when_parent_ends(command: &mut Command, signal: Signal) -> &mut Command {
    let bind = move || Ok(set_parent_process_death_signal(Some(signal))?);
    // SAFETY: between fork and exec the closure makes one system call; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(bind) }
}

/// Makes the child ignore SIGINT, so that Ctrl-C reaches only the parent, which ends the child in order.
pub fn ignore_interrupts(command: &mut Command) -> &mut Command {
    let ignore = || {
        // SAFETY: SIG_IGN runs no code, and signal(2) is async-signal-safe, so it may be called between fork and exec.
        let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec the closure makes one system call; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(ignore) }
}

/// Reaps the child `pid` if it has ended; `None` while it runs.
///
/// # Errors
/// The error of wait4(2): ECHILD if `pid` is not a child of this process or was already reaped.
pub fn try_reap(pid: Pid) -> io::Result<Option<Ended>> {
    reap_with(pid, libc::WNOHANG)
}

/// Waits for the child `pid` to end and reaps it.
///
/// # Errors
/// The errors of [`try_reap`].
pub fn reap(pid: Pid) -> io::Result<Ended> {
    loop {
        match reap_with(pid, 0) {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn reap_with(pid: Pid, options: i32) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: rusage is plain old data, so all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, initialised values that the kernel may write.
    let answer = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, options, &raw mut usage) };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => {
            let how =
                if libc::WIFSIGNALED(status) { Err(libc::WTERMSIG(status)) } else { Ok(libc::WEXITSTATUS(status)) };
            // The unit of `ru_maxrss` is KiB on Linux.
            let peak_memory_bytes = usage.ru_maxrss.unsigned_abs() * 1024;
            Ok(Some(Ended { how, cpu_time: cpu_time(&usage), peak_memory_bytes }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(command: &mut Command) -> Pid {
        Pid::from_child(&command.spawn().unwrap())
    }

    #[test]
    fn reports_exit_status_and_cpu_time() {
        let mut busy = Command::new("sh");
        let script =
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; (while [ $i -gt 0 ]; do i=$((i-1)); done); exit 7";
        let ended = reap(pid(busy.args(["-c", script]))).unwrap();
        assert_eq!(ended.how, Ok(7));
        assert!(ended.cpu_time > Duration::ZERO);
    }

    #[test]
    fn reaps_a_killed_child_but_not_a_running_one() {
        let child = pid(Command::new("sleep").arg("60"));
        assert_eq!(try_reap(child).unwrap(), None);
        rustix::process::kill_process(child, Signal::KILL).unwrap();
        assert_eq!(reap(child).unwrap().how, Err(libc::SIGKILL));
        assert!(reap(child).is_err(), "a second reap must fail");
    }

    #[test]
    fn child_gets_the_signal_when_its_parent_thread_ends() {
        let child = std::thread::spawn(|| pid(signal_when_parent_ends(Command::new("sleep").arg("60"), Signal::TERM)));
        assert_eq!(reap(child.join().unwrap()).unwrap().how, Err(libc::SIGTERM));
    }

    #[test]
    fn child_survives_sigint() {
        let mut command = Command::new("sh");
        let mut child = ignore_interrupts(command.args(["-c", "kill -INT $$; exit 7"])).spawn().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn peak_memory_includes_touched_memory() {
        let peak = |script| reap(pid(Command::new("sh").args(["-c", script]))).unwrap().peak_memory_bytes;
        let small = peak("true");
        let large = peak("x=$(head -c 40000000 /dev/zero | tr '\\0' x); exit 0");
        assert!(large > small + 30_000_000, "{large:?} {small:?}");
    }
}
