//! Errors of streams, each with its remedy.

use std::{io, path::PathBuf};

use machine::{
    nic::{LaunchError, NoStamps},
    veth::VethError,
};
use probes::stream::maap::ClaimError;
use rustix::io::Errno;

use crate::probe::xdp::XdpRefusal;

/// The part of a link, per cent, that streams may take: IEEE Std 802.1Q leaves the rest to others.
pub const LINK_PERCENT: u64 = 75;

/// The reasons why a stream cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// No interface has that name.
    #[error("there is no interface {0}: see `ip link`, or use --self to measure without one")]
    NoSuchInterface(String),
    /// The interface is wireless, so it cannot keep slots.
    #[error("{0} is wireless, but a stream needs a wired interface: see `ip link`")]
    Wireless(String),
    /// The interface is not Ethernet.
    #[error(
        "{0} is not an Ethernet interface: name a wired one (see `ip link`), or use --self to stay on this machine"
    )]
    NotEthernet(String),
    /// The interface is down.
    #[error("{0} is down: sudo ip link set {0} up")]
    Down(String),
    /// The interface has no carrier: the kernel would accept frames and drop them.
    #[error(
        "{0} has no carrier, so no frame can leave it: plug in its cable, and switch on the device at the other end"
    )]
    NoCarrier(String),
    /// The frames are too long for the interface.
    #[error(
        "frames of {needed} bytes exceed the MTU of {interface} ({mtu} bytes): sudo ip link set {interface} mtu 1500"
    )]
    Mtu {
        /// The interface.
        interface: String,
        /// Its MTU, bytes.
        mtu: u64,
        /// Payload of a frame, bytes.
        needed: u64,
    },
    /// The stream exceeds the share of the link that streams may use.
    #[error(
        "the stream needs {needed_kbit} kbit/s, but streams may use only {LINK_PERCENT} % of the {link_mbit} Mbit/s of \
         {interface}: use a longer --period, or a faster link"
    )]
    Bandwidth {
        /// The interface.
        interface: String,
        /// Bandwidth of the stream, kbit/s.
        needed_kbit: u64,
        /// Speed of the link, Mbit/s.
        link_mbit: u64,
    },
    /// The right to send raw frames is missing.
    #[error(
        "raw frames need CAP_NET_RAW: start as root, or `sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \
         \"$(command -v punctual)\"`"
    )]
    NoRight,
    /// The two network namespaces could not be created.
    #[error(transparent)]
    VethPair(#[from] VethError),
    /// AF_XDP was requested, but is not available.
    #[error(transparent)]
    Xdp(#[from] XdpRefusal),
    /// The right to set launch times is missing.
    #[error(
        "launch times need CAP_NET_RAW and CAP_NET_ADMIN: start as root, or `sudo setcap \
         cap_net_admin,cap_net_raw,cap_sys_nice,cap_ipc_lock+ep \"$(command -v punctual)\"`"
    )]
    NoRightToTimes,
    /// The interface does not support launch times.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The clock of the network card cannot be read.
    #[error("cannot read the clock of the network card, {} ({source}): run as root, or use --stamps all", clock.display())]
    CardClock {
        /// Its device.
        clock: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The network card has no timestamps of sent frames.
    #[error(transparent)]
    Stamps(#[from] NoStamps),
    /// The veth pair does not support launch times.
    #[error(
        "the veth pair of --self does not support launch times ({0}): load the ETF queueing discipline with `sudo \
         modprobe sch_etf`, or build a kernel with CONFIG_NET_SCH_ETF"
    )]
    NoEtf(io::Error),
    /// The clock does not follow PTP.
    #[error(
        "this machine's clock did not come within {} of PTP time: {why}; start ptp4l, and phc2sys if the card has a clock: \
         `punctual check nic` shows both",
        analysis::format_unsigned_ns(*limit_ns)
    )]
    NotSynchronised {
        /// The required limit, ns.
        limit_ns: u64,
        /// The last reason.
        why: String,
    },
    /// The destination addresses were not claimed.
    #[error(transparent)]
    Maap(ClaimError),
    /// The capture could not be written.
    #[error("cannot write the capture {}: {source}; choose another file with --capture FILE", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The kernel reported another error.
    #[error("cannot open a socket for frames on {interface} ({source}): see `ip -details link show {interface}`")]
    Socket {
        /// The interface.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// Translates the kernel's error about a socket on an interface.
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
