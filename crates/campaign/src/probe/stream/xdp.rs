//! AF_XDP: how a stream can have it, and what to do where it cannot.

use std::{fmt, io, str::FromStr};

use rustix::io::Errno;
use sys::xdp::{Step, XdpError};

use super::error::StreamError;

/// How a listener has AF_XDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenXdp {
    /// As the driver likes it best.
    AsOffered,
    /// Without copying frames, or not at all.
    ZeroCopy,
    /// After the kernel has made a buffer for each frame, which any driver can.
    Generic,
}

const NAMES: [(&str, ListenXdp); 3] =
    [("xdp", ListenXdp::AsOffered), ("xdp-zerocopy", ListenXdp::ZeroCopy), ("xdp-generic", ListenXdp::Generic)];

impl fmt::Display for ListenXdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, known)| known == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for ListenXdp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text).map(|(_, how)| *how);
        found.ok_or_else(|| format!("{text:?} is none of {}", NAMES.map(|(name, _)| name).join(", ")))
    }
}

/// Why a stream cannot have AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpRefusal {
    /// The kernel has none.
    #[error("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): leave out --receive, and use --mode send")]
    NoSuchSockets,
    /// No right to programs or raw frames.
    #[error("AF_XDP needs the rights CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK: start as root (sudo)")]
    NoRight,
    /// Frames cannot but be copied.
    #[error("the driver of {0} copies each frame between its memory and ours: use xdp instead of xdp-zerocopy")]
    NoZeroCopy(String),
    /// Somebody else's socket is there.
    #[error(
        "another AF_XDP socket has queue {queue} of {interface}: end the program that holds it, or name another with --queue"
    )]
    QueueTaken {
        /// The interface.
        interface: String,
        /// Its queue.
        queue: u32,
    },
    /// It has fewer queues.
    #[error("{interface} has no queue {queue}: `ethtool --show-channels {interface}` tells how many, counted from 0")]
    NoSuchQueue {
        /// The interface.
        interface: String,
        /// The queue asked for.
        queue: u32,
    },
    /// Somebody else's program is there.
    #[error("{0} has another XDP program: see `ip link show {0}`, and take it off with `sudo ip link set {0} xdp off`")]
    OtherProgram(String),
    /// The kernel answered with another error.
    #[error("cannot {doing} for AF_XDP on {interface} ({source}): leave out --receive, and use --mode send")]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// The interface.
        interface: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// The error in words, with what to do.
pub(super) fn refusal(interface: &str, queue: u32, error: XdpError) -> StreamError {
    let name = || interface.to_owned();
    let XdpError { step, source } = error;
    let refusal = match (step, Errno::from_io_error(&source)) {
        (Step::Interface, _) => return super::error::socket(interface, source),
        (_, Some(Errno::PERM | Errno::ACCESS)) => XdpRefusal::NoRight,
        (Step::Socket, Some(Errno::AFNOSUPPORT)) => XdpRefusal::NoSuchSockets,
        (Step::Memory, Some(Errno::NOBUFS)) => XdpRefusal::NoRight,
        (Step::Bind, Some(Errno::OPNOTSUPP)) => XdpRefusal::NoZeroCopy(name()),
        (Step::Bind, Some(Errno::BUSY)) => XdpRefusal::QueueTaken { interface: name(), queue },
        (Step::Bind, Some(Errno::INVAL)) if queue > 0 => XdpRefusal::NoSuchQueue { interface: name(), queue },
        (Step::Attach, Some(Errno::BUSY | Errno::EXIST)) => XdpRefusal::OtherProgram(name()),
        _ => XdpRefusal::Failed { doing: doing(step), interface: name(), source },
    };
    refusal.into()
}

fn doing(step: Step) -> &'static str {
    match step {
        Step::Interface => "find the interface",
        Step::Program => "load the program",
        Step::Attach => "attach the program",
        Step::Socket => "make a socket",
        Step::Memory => "give memory to the socket",
        Step::Bind => "bind the socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for how in [ListenXdp::AsOffered, ListenXdp::ZeroCopy, ListenXdp::Generic] {
            assert_eq!(how.to_string().parse(), Ok(how));
        }
        assert!("socket".parse::<ListenXdp>().unwrap_err().contains("xdp, xdp-zerocopy, xdp-generic"));
    }

    #[test]
    fn each_refusal_names_its_remedy() {
        let told = |step, errno: Errno| {
            let error = XdpError { step, source: errno.into() };
            refusal("eth0", 3, error).to_string()
        };
        assert!(told(Step::Interface, Errno::NODEV).contains("there is no interface eth0"));
        assert!(told(Step::Program, Errno::PERM).contains("start as root"));
        assert!(told(Step::Memory, Errno::NOBUFS).contains("CAP_IPC_LOCK"));
        assert!(told(Step::Attach, Errno::BUSY).contains("sudo ip link set eth0 xdp off"));
        assert!(told(Step::Socket, Errno::AFNOSUPPORT).contains("use --mode send"));
        assert!(told(Step::Bind, Errno::OPNOTSUPP).contains("use xdp instead of xdp-zerocopy"));
        assert!(told(Step::Bind, Errno::BUSY).contains("another AF_XDP socket has queue 3 of eth0"));
        assert!(told(Step::Bind, Errno::INVAL).contains("eth0 has no queue 3"));
        assert!(told(Step::Bind, Errno::NETDOWN).contains("cannot bind the socket for AF_XDP on eth0"));
    }
}
