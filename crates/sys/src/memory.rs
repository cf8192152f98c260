//! Memory that is there before it is needed.

use std::{hint::black_box, io};

use rustix::mm::{MlockAllFlags, mlockall};

/// Brings all memory that the process has at this moment into place, and locks it there.
///
/// Memory that comes later is not locked: a limit that suffices for what is there would make its allocation fail.
///
/// # Errors
/// ENOMEM or EPERM where the right (`RLIMIT_MEMLOCK`, `CAP_IPC_LOCK`) does not suffice.
pub fn lock_what_is_there() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT)?)
}

/// Touches `BYTES` of the calling thread's stack, so that no page of it is missing later.
#[inline(never)]
pub fn touch_stack<const BYTES: usize>() {
    let mut pages = [0_u8; BYTES];
    for page in pages.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(&mut pages);
}
