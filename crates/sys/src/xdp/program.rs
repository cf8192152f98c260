//! The XDP program: redirects the frames of one queue that a filter selects to its sockets and passes all other frames on.
//!
//! The program is attached by a BPF link. The kernel detaches it when the last descriptor of the link is closed, at the
//! latest when the process ends for any reason.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::io::Errno;

use super::{Step, XdpError, bpf, filter::XdpFilter};

/// The point in the receive path where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// In the driver, before the kernel allocates a buffer for the frame.
    Native,
    /// After the buffer is allocated. Every driver supports this.
    Generic,
}

impl Hook {
    /// The matching XDP_FLAGS_* of `if_link.h`.
    fn flags(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }
}

/// A program that is attached to an interface until this is dropped.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
    sockets: OwnedFd,
    /// The hook at which the program runs.
    pub hook: Hook,
}

impl Attached {
    /// Attaches the program to the interface with this index, at `hook` or at the best hook that the driver supports.
    /// The program has `sockets` sockets, and passes the frames of each on until it is registered.
    pub fn to(
        interface: u32,
        filter: &XdpFilter,
        queue: u32,
        hook: Option<Hook>,
        sockets: u32,
    ) -> Result<Self, XdpError> {
        let failed = |error| Step::Program.failed(error);
        let map = bpf::socket_map(sockets).map_err(failed)?;
        let program = bpf::load(&filter.program(queue, map.as_fd()), "frames_to_xdp").map_err(failed)?;
        let attach = |hook: Hook| bpf::attach(program.as_fd(), interface, hook.flags()).map(|link| (link, hook));
        let attached = match hook {
            Some(hook) => attach(hook),
            None => attach(Hook::Native).or_else(|error: io::Error| match Errno::from_io_error(&error) {
                // These errors are not caused by a missing feature of the driver.
                Some(Errno::BUSY | Errno::EXIST | Errno::PERM | Errno::ACCESS) => Err(error),
                _ => attach(Hook::Generic),
            }),
        };
        let (link, hook) = attached.map_err(|error| Step::Attach.failed(error))?;
        Ok(Self { _link: link, sockets: map, hook })
    }

    /// Registers the socket with this number, which must be bound to the queue.
    pub fn redirect_to(&self, number: u32, socket: BorrowedFd) -> Result<(), XdpError> {
        bpf::put_socket(self.sockets.as_fd(), number, socket).map_err(|error| Step::Program.failed(error))
    }
}
