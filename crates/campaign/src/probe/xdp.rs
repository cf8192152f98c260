//! AF_XDP of streams and round trips: its modes, and its errors with their remedies.

use std::{fmt, io, str::FromStr};

use machine::{Root, kernel_version, nic::receive_queues};
use rustix::io::Errno;
use sys::xdp::{Copying, Hook, Step, XdpError, XdpReceiver};

/// Highest number of a queue.
pub const QUEUE_MAX: u32 = 4095;

/// The AF_XDP mode of an end that receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    /// The best mode that the driver supports.
    AsOffered,
    /// Zero-copy; fails if the driver does not support it.
    ZeroCopy,
    /// After the kernel has allocated a buffer for each frame, which works with any driver.
    Generic,
}

const NAMES: [(&str, XdpMode); 3] =
    [("xdp", XdpMode::AsOffered), ("xdp-zerocopy", XdpMode::ZeroCopy), ("xdp-generic", XdpMode::Generic)];

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, known)| known == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for XdpMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text).map(|(_, how)| *how);
        found.ok_or_else(|| format!("must be one of {} (got {text:?})", NAMES.map(|(name, _)| name).join(", ")))
    }
}

impl XdpMode {
    /// The hook of the program, `None` for the best one of the driver, and the copy mode.
    pub(crate) fn hook(self) -> (Option<Hook>, Copying) {
        match self {
            Self::AsOffered => (None, Copying::AsOffered),
            Self::ZeroCopy => (Some(Hook::Native), Copying::Never),
            Self::Generic => (Some(Hook::Generic), Copying::Always),
        }
    }
}

/// The granted copy mode and hook for the record.
pub(crate) fn granted(receiver: &XdpReceiver) -> String {
    let copying = if receiver.is_zero_copy() { "zero-copy" } else { "copy" };
    let hook = match receiver.hook() {
        Hook::Native => "native",
        Hook::Generic => "generic",
    };
    format!("xdp {copying} {hook}")
}

/// A note that the device distributes frames among several queues; `None` if it has one queue.
pub(crate) fn queue_note(interface: &str, queue: u32) -> Option<String> {
    let queues = receive_queues(&Root::system(), interface).filter(|&queues| queues > 1)?;
    Some(format!(
        "{interface} receives on {queues} queues, and only frames of queue {queue} are measured: to get all on one \
         queue, sudo ethtool -L {interface} combined 1"
    ))
}

/// The first kernel whose generic hook protects the fill ring that several sockets share (commit a1356ac7749c).
const PROTECTS_SHARED_RING: (u32, u32) = (6, 15);

/// A note that the sockets of several traffic classes are not protected from each other; `None` if they are. Two CPUs that
/// receive at the same time can then take one buffer for two frames.
pub(crate) fn shared_ring_note(root: &Root, interface: &str, queue: u32, hook: Hook, sockets: usize) -> Option<String> {
    let release = root.read("proc/sys/kernel/osrelease")?;
    let release = release.trim();
    let is_protected = kernel_version(release)? >= PROTECTS_SHARED_RING;
    if is_protected || hook != Hook::Generic || sockets < 2 || !receives_on_several_cpus(root, interface, queue) {
        return None;
    }
    let (major, minor) = PROTECTS_SHARED_RING;
    Some(format!(
        "Linux {release} may not protect the buffers that the {sockets} traffic classes share with xdp-generic (fixed in \
         {major}.{minor}), and several CPUs can receive from {interface} at the same time, so frames can be lost or \
         overwritten: use `xdp` if the driver has it, one traffic class, or a newer kernel"
    ))
}

/// True if several CPUs can receive frames of a queue at the same time: those of RPS, or with a virtual interface those of
/// the senders. False for an interface of a namespace that `/sys` does not show, as is that of `--self`, where one thread
/// sends.
fn receives_on_several_cpus(root: &Root, interface: &str, queue: u32) -> bool {
    let folder = format!("sys/class/net/{interface}");
    if !root.exists(&format!("{folder}/device")) {
        return root.exists(&folder);
    }
    let mask = root.read(&format!("{folder}/queues/rx-{queue}/rps_cpus")).unwrap_or_default();
    mask.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum::<u32>() > 1
}

/// The reasons why an interface or a process cannot use AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpRefusal {
    /// The kernel does not support AF_XDP.
    #[error("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): measure by sockets, without xdp")]
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
    #[error(
        "{0} has another XDP program: end the program that attached it, or remove it with `sudo ip link set {0} xdp off`; \
         `ip link show {0}` shows it"
    )]
    OtherProgram(String),
    /// There is no such interface.
    #[error("there is no interface {0}: `ip link` lists them")]
    NoSuchInterface(String),
    /// The interface is not Ethernet.
    #[error("{0} is not an Ethernet interface: choose a wired one; `ip link` lists them")]
    NotEthernet(String),
    /// The frames are too long for the interface.
    #[error(
        "frames with {needed} bytes after the Ethernet header exceed the MTU of {interface} ({mtu} bytes): use a size of {} \
         or less", mtu.saturating_sub(*headers)
    )]
    Mtu {
        /// The interface.
        interface: String,
        /// Its MTU, bytes.
        mtu: usize,
        /// Bytes after the Ethernet header.
        needed: usize,
        /// Headers among them, bytes.
        headers: usize,
    },
    /// The interface is down.
    #[error("{0} is down: sudo ip link set {0} up")]
    Down(String),
    /// The kernel reported another error.
    #[error("cannot {doing} for AF_XDP on {interface} ({source}): measure by sockets, without xdp")]
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
pub(crate) fn refusal(interface: &str, queue: u32, error: XdpError) -> XdpRefusal {
    let name = || interface.to_owned();
    let XdpError { step, source } = error;
    match (step, Errno::from_io_error(&source)) {
        (Step::Interface, Some(Errno::NODEV | Errno::NXIO)) => XdpRefusal::NoSuchInterface(name()),
        (Step::Interface, None) if source.kind() == io::ErrorKind::InvalidInput => XdpRefusal::NotEthernet(name()),
        (_, Some(Errno::NETDOWN)) => XdpRefusal::Down(name()),
        (_, Some(Errno::PERM | Errno::ACCESS)) => XdpRefusal::NoRight,
        (Step::Socket, Some(Errno::AFNOSUPPORT)) => XdpRefusal::NoSuchSockets,
        (Step::Memory, Some(Errno::NOBUFS)) => XdpRefusal::NoRight,
        (Step::Bind, Some(Errno::OPNOTSUPP)) => XdpRefusal::NoZeroCopy(name()),
        (Step::Bind, Some(Errno::BUSY)) => XdpRefusal::QueueTaken { interface: name(), queue },
        (Step::Bind, Some(Errno::INVAL)) if queue > 0 => XdpRefusal::NoSuchQueue { interface: name(), queue },
        (Step::Attach, Some(Errno::BUSY | Errno::EXIST)) => XdpRefusal::OtherProgram(name()),
        _ => XdpRefusal::Failed { doing: doing(step), interface: name(), source },
    }
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
        for how in [XdpMode::AsOffered, XdpMode::ZeroCopy, XdpMode::Generic] {
            assert_eq!(how.to_string().parse(), Ok(how));
        }
        assert!("socket".parse::<XdpMode>().unwrap_err().contains("xdp, xdp-zerocopy, xdp-generic"));
    }

    #[test]
    fn old_kernels_do_not_protect_the_shared_ring_of_several_receiving_cpus() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.12.0-rt\n");
        write("sys/class/net/veth0/address", "");
        write("sys/class/net/eth0/device/vendor", "");
        write("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000001\n");
        write("sys/class/net/eth0/queues/rx-1/rps_cpus", "00000000,00000006\n");
        let note = |interface, queue, hook, sockets| shared_ring_note(&root, interface, queue, hook, sockets);
        let expected = "Linux 6.12.0-rt may not protect the buffers that the 2 traffic classes share";
        for (interface, queue) in [("veth0", 0), ("eth0", 1)] {
            let found = note(interface, queue, Hook::Generic, 2).unwrap();
            assert!(found.starts_with(expected) && found.contains(interface), "{found}");
            assert_eq!(note(interface, queue, Hook::Generic, 1), None);
            assert_eq!(note(interface, queue, Hook::Native, 2), None);
        }
        assert_eq!(note("eth0", 0, Hook::Generic, 2), None, "one CPU");
        assert_eq!(note("near", 0, Hook::Generic, 2), None, "not in this namespace");
        write("proc/sys/kernel/osrelease", "6.15.0\n");
        assert_eq!(note("veth0", 0, Hook::Generic, 2), None);
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
        assert!(message(Step::Socket, Errno::AFNOSUPPORT).contains("measure by sockets"));
        assert!(message(Step::Bind, Errno::OPNOTSUPP).contains("use xdp instead of xdp-zerocopy"));
        assert!(message(Step::Bind, Errno::BUSY).contains("another AF_XDP socket uses queue 3 of eth0"));
        assert!(message(Step::Bind, Errno::INVAL).contains("eth0 has no queue 3"));
        assert!(message(Step::Bind, Errno::NETDOWN).contains("sudo ip link set eth0 up"));
        assert!(message(Step::Bind, Errno::NOMEM).contains("cannot bind the socket for AF_XDP on eth0"));
    }
}
