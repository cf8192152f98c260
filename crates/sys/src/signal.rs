//! Counts the signals that ask this process to end instead of ending it, and ignores SIGXFSZ.

use std::{
    io,
    sync::atomic::{AtomicI32, AtomicU32, Ordering},
};

/// The signals that end a process by default, and are sent by others: by a user, a lost terminal, a limit of the system
/// (`ulimit -t`), or a timer. SIGQUIT still ends a process that does not answer.
const ENDING: [(libc::c_int, &str); 12] = [
    (libc::SIGINT, "SIGINT"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (libc::SIGSTKFLT, "SIGSTKFLT"),
];

static REQUESTS: AtomicU32 = AtomicU32::new(0);
/// The first signal, or [`KEY`]; 0 for none.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// A request of the user that is no signal.
const KEY: i32 = -1;

extern "C" fn count(signal: libc::c_int) {
    // The first reason counts, also if it is no signal.
    if REQUESTS.load(Ordering::SeqCst) == 0 {
        let _ = FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    }
    // After the name, which others read once there is a request.
    if is_from_user(signal) {
        REQUESTS.fetch_add(1, Ordering::SeqCst);
    } else {
        REQUESTS.fetch_max(1, Ordering::SeqCst);
    }
}

/// True if the signal discards a run as the second one. The kernel and the shell both send SIGHUP for one lost terminal,
/// and SIGXCPU comes once a second.
fn is_from_user(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGTERM)
}

/// Installs handlers that count SIGINT and SIGTERM, and any number of other signals that end a process as one request.
/// Signals other than these two stay ignored if they are, as by `nohup`.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn count_termination() -> io::Result<()> {
    // Without SA_RESTART, a signal interrupts a wait in the main thread, which then checks the count.
    ending().filter(|&signal| is_from_user(signal) || !is_ignored(signal)).try_for_each(|signal| handle(signal, count))
}

/// The signals that [`count_termination`] counts.
fn ending() -> impl Iterator<Item = libc::c_int> {
    ENDING.into_iter().map(|(signal, _)| signal).chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: sigaction is plain old data, so all zeroes is a valid value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action, the call only writes to `now`, which is live.
    let answer = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    answer == 0 && now.sa_sigaction == libc::SIG_IGN
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
    // SAFETY: the handlers do nothing but change atomics, which is async-signal-safe; `action` is live for the call.
    match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Requests the end of this process as a signal does, for another reason.
pub fn request_termination() {
    REQUESTS.fetch_add(1, Ordering::SeqCst);
}

/// Requests the end of this process because the user pressed a key. Has no effect after another request, so that a key
/// does not discard a run as a second signal does.
pub fn request_termination_by_key() {
    // Before the request, after which others read the reason.
    let _ = FIRST.compare_exchange(0, KEY, Ordering::SeqCst, Ordering::SeqCst);
    let _ = REQUESTS.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
}

/// True if [`request_termination_by_key`] was the first request.
#[must_use]
pub fn is_ended_by_key() -> bool {
    FIRST.load(Ordering::SeqCst) == KEY
}

/// The number of requests so far to end the process.
#[must_use]
pub fn termination_requests() -> u32 {
    REQUESTS.load(Ordering::SeqCst)
}

/// The name of the signal that requested the end, such as `SIGHUP`; `None` if there is no request, or if
/// [`request_termination`] or [`request_termination_by_key`] came first.
#[must_use]
pub fn ending_signal() -> Option<String> {
    let first = FIRST.load(Ordering::SeqCst);
    let known = ENDING.iter().find(|&&(signal, _)| signal == first).map(|&(_, name)| name.to_owned());
    (first > 0).then(|| known.unwrap_or_else(|| format!("SIGRTMIN+{}", first - libc::SIGRTMIN())))
}

/// Blocks the signals that [`count_termination`] counts in the calling thread, so that they interrupt another thread.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn block_termination_here() -> io::Result<()> {
    // SAFETY: sigset_t is plain old data that sigemptyset initialises; each call gets a live pointer to it.
    let answer = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        ending().for_each(|signal| _ = libc::sigaddset(&raw mut set, signal));
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

/// The signal that interrupts a system call of one thread. By default it has no effect, so that one that comes late is
/// harmless.
const INTERRUPTING: libc::c_int = libc::SIGURG;

/// Lets [`interrupt_thread`] interrupt the system calls of the calling thread.
///
/// # Errors
/// The kernel's error; none is expected.
pub fn allow_interruption_here() -> io::Result<()> {
    handle(INTERRUPTING, pass)?;
    // SAFETY: sigset_t is plain old data that sigemptyset initialises; each call gets a live pointer to it.
    let answer = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, INTERRUPTING);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

/// Interrupts the waiting system call of a thread of this process, so that the call fails with EINTR. Has no effect on a
/// thread that is not in a system call, or has ended; the caller repeats it if the thread must notice.
pub fn interrupt_thread(thread_id: u32) {
    // SAFETY: the call has no memory arguments. It reaches only threads of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread_id, INTERRUPTING) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_system_call_of_a_thread_is_interrupted() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            allow_interruption_here().unwrap();
            sender.send(crate::sched::thread_id()).unwrap();
            rustix::io::read(&reader, &mut [0; 1])
        });
        let thread_id = receiver.recv().unwrap();
        while !waiting.is_finished() {
            interrupt_thread(thread_id);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(waiting.join().unwrap(), Err(rustix::io::Errno::INTR));
        // It has ended.
        interrupt_thread(thread_id);
    }

    #[test]
    fn the_first_signal_is_named_and_only_a_second_one_of_the_user_counts() {
        let set = |signal, action| {
            // SAFETY: SIG_IGN and SIG_DFL run no code of this process.
            assert_ne!(unsafe { libc::signal(signal, action) }, libc::SIG_ERR);
        };
        // As if started by a terminal, also below nohup and as a background job of a shell.
        [libc::SIGHUP, libc::SIGINT].into_iter().for_each(|signal| set(signal, libc::SIG_DFL));
        set(libc::SIGUSR2, libc::SIG_IGN);
        count_termination().unwrap();
        assert!(is_ignored(libc::SIGUSR2), "as nohup ignores SIGHUP");
        assert_eq!((termination_requests(), ending_signal()), (0, None));
        let send = |signal| {
            // SAFETY: the handler of the signal only changes atomics, and raise(3) returns after it.
            assert_eq!(unsafe { libc::raise(signal) }, 0);
            (termination_requests(), ending_signal().unwrap_or_default())
        };
        for signal in [libc::SIGHUP, libc::SIGHUP, libc::SIGXCPU, libc::SIGRTMIN() + 2] {
            assert_eq!(send(signal), (1, "SIGHUP".to_owned()));
        }
        request_termination_by_key();
        assert_eq!(termination_requests(), 1, "a key discards nothing");
        assert!(!is_ended_by_key());
        assert_eq!(send(libc::SIGINT), (2, "SIGHUP".to_owned()));
        FIRST.store(0, Ordering::SeqCst);
        REQUESTS.store(0, Ordering::SeqCst);
        request_termination_by_key();
        assert_eq!((termination_requests(), ending_signal(), is_ended_by_key()), (1, None, true));
        assert_eq!(send(libc::SIGINT), (2, String::new()), "Ctrl-C discards a run that a key ends");
    }
}
