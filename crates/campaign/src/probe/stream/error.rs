//! Why a stream cannot be sent or received, each reason with its remedy.

use std::{io, path::PathBuf};

use machine::{nic::LaunchError, veth::VethError};
use rustix::io::Errno;

use super::XdpRefusal;

/// The part of a link, per cent, that streams may take: IEEE Std 802.1Q leaves the rest to others.
pub const LINK_PERCENT: u64 = 75;

/// Why a stream cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The name is nobody's.
    #[error("there is no interface {0}: see `ip link`, or use --self to try it without one")]
    NoSuchInterface(String),
    /// Radio has no slots.
    #[error("{0} is wireless, and a stream needs a cable: name a wired interface, see `ip link`")]
    Wireless(String),
    /// Not Ethernet.
    #[error("{0} is no Ethernet interface: name a wired one (see `ip link`), or use --self to stay on this machine")]
    NotEthernet(String),
    /// It is down.
    #[error("{0} is down: sudo ip link set {0} up")]
    Down(String),
    /// The frames are too long for it.
    #[error("{interface} takes {mtu} bytes, and a frame carries {needed}: sudo ip link set {interface} mtu 1500")]
    Mtu {
        /// The interface.
        interface: String,
        /// What it takes, bytes.
        mtu: u64,
        /// What a frame carries, bytes.
        needed: u64,
    },
    /// The stream would take more of the link than it may.
    #[error(
        "the stream needs {needed_kbit} kbit/s, and streams may take {LINK_PERCENT} % of the {link_mbit} Mbit/s of {interface}: use a longer --period, or a faster link"
    )]
    Bandwidth {
        /// The interface.
        interface: String,
        /// What the stream needs, kbit/s.
        needed_kbit: u64,
        /// What the link has, Mbit/s.
        link_mbit: u64,
    },
    /// No right to raw frames.
    #[error(
        "raw frames need the right CAP_NET_RAW: start as root, or `sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"`"
    )]
    NoRight,
    /// The two namespaces could not be made.
    #[error(transparent)]
    VethPair(#[from] VethError),
    /// AF_XDP was asked for, and cannot be had.
    #[error(transparent)]
    Xdp(#[from] XdpRefusal),
    /// Launch times take another right.
    #[error(
        "launch times need the rights CAP_NET_RAW and CAP_NET_ADMIN: start as root, or `sudo setcap cap_net_admin,cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"`"
    )]
    NoRightToTimes,
    /// The interface does not keep frames until their launch times.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Nor can an own one.
    #[error(
        "the virtual cable of --self cannot keep frames until their launch times ({0}): load the ETF discipline with `sudo modprobe sch_etf`, or build a kernel with CONFIG_NET_SCH_ETF"
    )]
    NoEtf(io::Error),
    /// Its capture could not be written.
    #[error("cannot write the capture {}: {source}; choose another place with --capture FILE", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel answered with another error.
    #[error("cannot open a socket for frames on {interface} ({source}): see `ip -details link show {interface}`")]
    Socket {
        /// The interface.
        interface: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// What the kernel's refusal of a socket on an interface means.
pub fn socket(interface: &str, error: io::Error) -> StreamError {
    let interface = interface.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => StreamError::NoRight,
        Some(Errno::NODEV | Errno::NXIO) => StreamError::NoSuchInterface(interface),
        Some(Errno::NETDOWN) => StreamError::Down(interface),
        None if error.kind() == io::ErrorKind::InvalidInput => StreamError::NotEthernet(interface),
        _ => StreamError::Socket { interface, source: error },
    }
}
