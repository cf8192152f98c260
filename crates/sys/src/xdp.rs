//! AF_XDP: exchanges frames between the program's memory and one queue of an interface, bypassing the kernel's network
//! stack.
//!
//! | module | contents |
//! |---|---|
//! | `ring` | single-producer, single-consumer rings shared with the kernel |
//! | `socket` | sockets of one queue with their frame memory and rings |
//! | `shared` | the rings that these sockets share |
//! | `bpf` | the bpf(2) system call |
//! | `filter` | the frames for the socket, as instructions of the XDP program |
//! | `program` | the XDP program that redirects frames to the socket, and its attachment |
//! | `send`, `receive` | the two directions |
//!
//! Numbers and layouts that libc lacks are those of the kernel's `if_xdp.h`, `if_link.h` and `bpf.h`.

mod bpf;
mod filter;
mod program;
mod receive;
mod ring;
mod send;
mod shared;
mod socket;

use std::io;

use thiserror::Error;

pub use filter::XdpFilter;
pub use program::Hook;
pub use receive::{XdpDrops, XdpReceiver, exchange};
pub use send::XdpSender;

/// The copy mode between the socket's memory and the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// The best mode that the driver supports.
    AsOffered,
    /// Copy mode, which every driver supports.
    Always,
    /// Zero-copy mode, which few drivers support.
    Never,
}

/// An error with the step that failed.
#[derive(Debug, Error)]
#[error("{step:?}: {source}")]
pub struct XdpError {
    /// The failed step.
    pub step: Step,
    /// The kernel's error.
    pub source: io::Error,
}

/// The steps of opening a socket, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Look up the interface: ENODEV if it does not exist, `InvalidInput` if it is not Ethernet, EPERM without
    /// CAP_NET_RAW.
    Interface,
    /// Load the program: EPERM without CAP_BPF and CAP_NET_ADMIN.
    Program,
    /// Attach the program: EBUSY or EEXIST if another one is attached, EPERM without CAP_NET_ADMIN, EINVAL before Linux
    /// 5.9.
    Attach,
    /// Create the socket: EAFNOSUPPORT if the kernel has no AF_XDP, EPERM without CAP_NET_RAW.
    Socket,
    /// Register its memory: ENOBUFS if the limit for locked memory is too low.
    Memory,
    /// Bind it to the queue: EBUSY if another socket uses the queue, EINVAL if there is no such queue, EOPNOTSUPP if
    /// the driver has no zero-copy mode.
    Bind,
}

impl Step {
    fn failed(self, source: impl Into<io::Error>) -> XdpError {
        XdpError { step: self, source: source.into() }
    }
}
