//! Safe wrappers around Linux system calls and kernel interfaces. Apart from `amp::simd`, only this crate contains
//! `unsafe` code; each block has one SAFETY line.
//!
//! Each module covers one subject. Where rustix already has a safe wrapper, callers use rustix directly.

#![allow(unsafe_code, reason = "system calls; each block states why it is sound")]

pub mod alloc_guard;
pub mod allocator;
pub mod child;
pub mod clock;
pub mod console;
mod control;
mod convert;
pub mod counter;
pub mod elf;
pub mod evl;
pub mod held;
pub mod hwstamp;
pub mod interrupt;
pub mod jack;
pub mod kexec;
pub mod link;
pub mod mapping;
pub mod memory;
pub mod native;
pub mod netlink;
pub mod netns;
pub mod packet;
pub mod pcm;
pub mod qdisc;
mod region;
pub mod sched;
pub mod signal;
pub mod stack;
pub mod stdio;
pub mod syscall;
pub mod timekeeping;
pub mod udp;
pub mod usage;
pub mod xdp;
