//! Counts SIGINT and SIGTERM instead of ending the process, and ignores SIGXFSZ.

use std::{
    io,
    sync::atomic::{AtomicU32, Ordering},
};

static REQUESTS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

/// Installs handlers that count SIGINT and SIGTERM.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn count_termination() -> io::Result<()> {
    // Without SA_RESTART, a signal interrupts a wait in the main thread, which then checks the count.
    [libc::SIGINT, libc::SIGTERM].into_iter().try_for_each(|signal| handle(signal, count))
}

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail with EFBIG instead of ending the process. Programs
/// that this process starts have the default again, because the signal is handled, not ignored.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn return_file_size_errors() -> io::Result<()> {
    handle(libc::SIGXFSZ, pass)
}

extern "C" fn pass(_signal: libc::c_int) {}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: sigaction is plain old data, so all zeroes is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // SAFETY: both handlers do nothing but add to an atomic, which is async-signal-safe; `action` is live for the call.
    match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Requests the end of this process, with the same effect as SIGTERM.
pub fn request_termination() {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

/// The number of requests so far to end the process.
#[must_use]
pub fn termination_requests() -> u32 {
    REQUESTS.load(Ordering::Relaxed)
}

/// Blocks SIGINT and SIGTERM in the calling thread, so that they interrupt another thread.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn block_termination_here() -> io::Result<()> {
    // SAFETY: sigset_t is plain old data that sigemptyset initialises; each call gets a live pointer to it.
    let answer = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}
