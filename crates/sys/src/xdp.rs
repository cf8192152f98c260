//! AF_XDP: frames between a program's own memory and one queue of an interface, past the kernel's network stack.
//!
//! | module | holds |
//! |---|---|
//! | `ring` | a queue in memory that the kernel reads and writes, too, with the program at one end and the kernel at the other |
//! | `socket` | the socket: its memory for frames, and four rings |
//! | `bpf` | what the kernel is asked about programs |
//! | `program` | the program that gives the socket its frames, and takes itself off |
//! | `send`, `receive` | one direction each |
//!
//! Numbers and layouts are those of the kernel's `if_xdp.h`, `if_link.h` and `bpf.h`, where libc has none.

mod bpf;
mod program;
mod receive;
mod ring;
mod send;
mod socket;

use std::io;

use thiserror::Error;

pub use program::Hook;
pub use receive::{XdpDrops, XdpReceiver};
pub use send::XdpSender;

/// Whether frames are copied between the socket's memory and the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// As the driver likes it best.
    AsOffered,
    /// Always; any driver can.
    Always,
    /// Never; few drivers can.
    Never,
}

/// What failed.
#[derive(Debug, Error)]
#[error("{step:?}: {source}")]
pub struct XdpError {
    /// Doing what.
    pub step: Step,
    /// What the kernel answered.
    pub source: io::Error,
}

/// What is done for a socket, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Finding the interface: ENODEV when there is none such, `InvalidInput` when it is not Ethernet, EPERM without
    /// CAP_NET_RAW.
    Interface,
    /// Loading the program: EPERM without CAP_BPF and CAP_NET_ADMIN.
    Program,
    /// Attaching it: EBUSY or EEXIST where another is attached, EPERM without CAP_NET_ADMIN, EINVAL before Linux 5.9.
    Attach,
    /// Making the socket: EAFNOSUPPORT where the kernel has no AF_XDP, EPERM without CAP_NET_RAW.
    Socket,
    /// Giving it memory: ENOBUFS where too little may be locked.
    Memory,
    /// Binding it to the queue: EBUSY where another socket has it, EINVAL where there is no such queue, EOPNOTSUPP where
    /// the driver cannot do without copying.
    Bind,
}

impl Step {
    fn failed(self, source: impl Into<io::Error>) -> XdpError {
        XdpError { step: self, source: source.into() }
    }
}
