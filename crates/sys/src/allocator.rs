//! A global allocator that ends the process with one sentence if memory is used up.

use std::{
    alloc::{GlobalAlloc, Layout},
    io::Write,
};

/// Exit status for an error.
const FAILED: i32 = 1;

/// An allocator that never returns null. The standard library would abort the process instead and print a backtrace,
/// which needs memory, too.
#[derive(Debug)]
pub struct OrExit<A>(pub A);

impl<A> OrExit<A> {
    fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
        if memory.is_null() {
            exit_without_memory(bytes);
        }
        memory
    }
}

// SAFETY: every call is passed unchanged to the inner allocator, which fulfils the contract; `checked` returns its
// pointer or does not return.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OrExit<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc`.
        Self::checked(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc_zeroed`.
        Self::checked(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::realloc`.
        Self::checked(unsafe { self.0.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::dealloc`.
        unsafe { self.0.dealloc(memory, layout) }
    }
}

/// Prints the error without allocating, and ends the process as after any other error.
#[cold]
fn exit_without_memory(bytes: usize) -> ! {
    let mut text = [0_u8; 160];
    let mut rest = &mut text[..];
    // Longer texts are cut.
    let _ = writeln!(
        rest,
        "error: cannot allocate {bytes} bytes: give the process more memory (see `ulimit -v`), or end other programs"
    );
    let left = rest.len();
    let length = text.len() - left;
    // Nothing can be done if standard error is closed.
    let _ = rustix::io::write(rustix::stdio::stderr(), &text[..length]);
    // SAFETY: _exit ends the process and touches no memory of it.
    unsafe { libc::_exit(FAILED) }
}
