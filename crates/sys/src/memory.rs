//! Memory that is there before it is needed.

use std::{hint::black_box, io};

use rustix::mm::{MlockAllFlags, mlockall};

/// Locks all memory of the process, that which is still to come included.
///
/// # Errors
/// ENOMEM or EPERM where the right (`RLIMIT_MEMLOCK`, `CAP_IPC_LOCK`) does not suffice.
pub fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
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
