//! The stack of the main thread.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The stack that the main thread may need, bytes.
const NEEDED_BYTES: u64 = 1 << 20;
/// The usual limit, bytes.
const USUAL_BYTES: u64 = 8 << 20;

/// Raises a limit of the main thread's stack (`ulimit -s`) that is too low. The kernel applies it at once.
///
/// # Errors
/// The limit in KiB, if it is too low and this process may not raise it.
pub fn raise_limit() -> Result<(), u64> {
    let limit = getrlimit(Resource::Stack);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= NEEDED_BYTES {
        return Ok(());
    }
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    let raised = |current: u64| Rlimit { current: Some(current), maximum: limit.maximum.map(|most| most.max(current)) };
    // Root may also raise the upper limit.
    match setrlimit(Resource::Stack, raised(USUAL_BYTES)) {
        Ok(()) => Ok(()),
        Err(_) if allowed >= NEEDED_BYTES => {
            setrlimit(Resource::Stack, raised(allowed.min(USUAL_BYTES))).map_err(|_| current >> 10)
        }
        Err(_) => Err(current >> 10),
    }
}
