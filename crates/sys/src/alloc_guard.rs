//! A global allocator for test builds. It aborts the process if a thread allocates where it must not.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, during which the calling thread must not allocate or free memory.
///
/// This is checked only if [`AllocGuard`] is the global allocator. Otherwise the call costs two stores.
pub fn without_allocation<T>(work: impl FnOnce() -> T) -> T {
    FORBIDDEN.set(true);
    let result = work();
    FORBIDDEN.set(false);
    result
}

/// The system allocator, with an abort on any allocation inside [`without_allocation`].
pub struct AllocGuard;

fn check() {
    // The thread-local variable no longer exists in a thread that is ending.
    if FORBIDDEN.try_with(Cell::get).unwrap_or(false) {
        std::process::abort();
    }
}

// SAFETY: every call is passed unchanged to the system allocator, which fulfils the contract; `check` does not
// allocate.
unsafe impl GlobalAlloc for AllocGuard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check();
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        check();
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
