//! A closed standard output.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before the standard library, which replaces a closed standard output by `/dev/null`. Writes to it would succeed.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK: extern "C" fn() = check;

extern "C" fn check() {
    // SAFETY: the call only looks up the descriptor, and has no other argument.
    let answer = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_CLOSED.store(answer == -1, Ordering::Relaxed);
}

/// True if standard output was closed when the process started, as by `>&-`.
#[must_use]
pub fn is_stdout_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}
