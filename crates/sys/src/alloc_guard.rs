//! An allocator that aborts when a thread allocates where it promised not to. For test builds.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, within which the calling thread promises not to allocate or free.
///
/// The promise is checked where [`AllocGuard`] is the global allocator; elsewhere it costs two stores.
pub fn without_allocation<T>(work: impl FnOnce() -> T) -> T {
    FORBIDDEN.set(true);
    let result = work();
    FORBIDDEN.set(false);
    result
}

/// The system's allocator, but the process aborts when a promise given to [`without_allocation`] is broken.
pub struct AllocGuard;

fn check() {
    // A thread that is ending has no such variable any more, and promises nothing.
    if FORBIDDEN.try_with(Cell::get).unwrap_or(false) {
        std::process::abort();
    }
}

// SAFETY: every call goes on unchanged to the system's allocator, which keeps the contract; `check` does not allocate.
unsafe impl GlobalAlloc for AllocGuard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        check();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
