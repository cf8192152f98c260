//! The kernel as safe types: the one room where `unsafe` lives, each block with its SAFETY line.
//!
//! One module a subject. What rustix already offers safely is used as it is.

#![allow(unsafe_code, reason = "system calls; each block states why it is sound")]

pub mod alloc_guard;
pub mod child;
pub mod clock;
pub mod counter;
pub mod elf;
pub mod evl;
pub mod file;
pub mod held;
pub mod hwstamp;
pub mod jack;
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
pub mod timekeeping;
pub mod udp;
pub mod usage;
pub mod xdp;
