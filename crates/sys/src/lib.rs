//! The kernel as safe types: the one room where `unsafe` lives, each block with its SAFETY line.
//!
//! One module a subject. What rustix already offers safely is used as it is.

pub mod alloc_guard;
pub mod clock;
pub mod memory;
pub mod sched;
pub mod signal;
