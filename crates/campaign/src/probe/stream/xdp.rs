//! AF_XDP: its modes, and its errors with their remedies.

use std::{fmt, io, str::FromStr};

use rustix::io::Errno;
use sys::xdp::{Step, XdpError};

use super::error::StreamError;

/// The AF_XDP mode of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenXdp {
    /// The best mode that the driver supports.
    AsOffered,
    /// Zero-copy; fails if the driver does not support it.
    ZeroCopy,
    /// After the kernel has allocated a buffer for each frame, which works with any driver.
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
        found.ok_or_else(|| format!("must be one of {} (got {text:?})", NAMES.map(|(name, _)| name).join(", ")))
    }
}

/// The reasons why a stream cannot use AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpRefusal {
    /// The kernel does not support AF_XDP.
    #[error("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): leave out --receive, and use --mode send")]
    NoSuchSockets,
    /// The right to load programs or to send raw frames is missing.
    #[error("AF_XDP needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK: start as root (sudo)")]
    NoRight,
    /// The driver does not support zero-copy.
    #[error("the driver of {0} does not support zero-copy: use xdp instead of xdp-zerocopy")]
    NoZeroCopy(String),
    /// Another socket uses the queue.
    #[error(
        "another AF_XDP socket uses queue {queue} of {interface}: end that program, or name another queue with --queue"
    )]
    QueueTaken {
        /// The interface.
        interface: String,
        /// Its queue.
        queue: u32,
    },
    /// The interface has fewer queues.
    #[error(
        "{interface} has no queue {queue}: `ethtool --show-channels {interface}` shows their number, counted from 0"
    )]
    NoSuchQueue {
        /// The interface.
        interface: String,
        /// The requested queue.
        queue: u32,
    },
    /// The interface has another XDP program.
    #[error("{0} has another XDP program: see `ip link show {0}`, and remove it with `sudo ip link set {0} xdp off`")]
    OtherProgram(String),
    /// The kernel reported another error.
    #[error("cannot {doing} for AF_XDP on {interface} ({source}): leave out --receive, and use --mode send")]
    Failed {
        /// The step that failed.
        doing: &'static str,
        /// The interface.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// Translates an error of AF_XDP.
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
        Step::Memory => "allocate memory for the socket",
        Step::Bind => "bind the socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_names() {
        for how in [ListenXdp::AsOffered, ListenXdp::ZeroCopy, ListenXdp::Generic] {
            assert_eq!(how.to_string().parse(), Ok(how));
        }
        assert!("socket".parse::<ListenXdp>().unwrap_err().contains("xdp, xdp-zerocopy, xdp-generic"));
    }

    #[test]
    fn each_refusal_names_a_remedy() {
        let message = |step, errno: Errno| {
            let error = XdpError { step, source: errno.into() };
            refusal("eth0", 3, error).to_string()
        };
        assert!(message(Step::Interface, Errno::NODEV).contains("there is no interface eth0"));
        assert!(message(Step::Program, Errno::PERM).contains("start as root"));
        assert!(message(Step::Memory, Errno::NOBUFS).contains("CAP_IPC_LOCK"));
        assert!(message(Step::Attach, Errno::BUSY).contains("sudo ip link set eth0 xdp off"));
        assert!(message(Step::Socket, Errno::AFNOSUPPORT).contains("use --mode send"));
        assert!(message(Step::Bind, Errno::OPNOTSUPP).contains("use xdp instead of xdp-zerocopy"));
        assert!(message(Step::Bind, Errno::BUSY).contains("another AF_XDP socket uses queue 3 of eth0"));
        assert!(message(Step::Bind, Errno::INVAL).contains("eth0 has no queue 3"));
        assert!(message(Step::Bind, Errno::NETDOWN).contains("cannot bind the socket for AF_XDP on eth0"));
    }
}
