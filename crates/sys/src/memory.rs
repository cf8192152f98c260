//! Locks and prefaults memory, so that no page fault occurs while measuring.

use std::{hint::black_box, io};

use rustix::mm::{MlockAllFlags, mlockall};

/// Faults in and locks all memory that the process has mapped so far.
///
/// Later mappings are not locked. With MCL_FUTURE, a memlock limit that suffices now could make a later allocation
/// fail.
///
/// # Errors
/// ENOMEM or EPERM if `RLIMIT_MEMLOCK` is too small and the process has no `CAP_IPC_LOCK`.
pub fn lock_current_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT)?)
}

/// Touches `BYTES` of the calling thread's stack, so that these pages cause no page faults later.
#[inline(never)]
pub fn touch_stack<const BYTES: usize>() {
    let mut pages = [0_u8; BYTES];
    for page in pages.chunks_mut(4096) {
        page[0] = 1;
    }
    black_box(&mut pages);
}
