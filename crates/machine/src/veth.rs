//! Two network namespaces joined by a veth pair, to measure within one machine.

use std::{
    io,
    net::Ipv4Addr,
    thread,
    time::{Duration, Instant},
};

use sys::{link::Links, netns::Namespace};
use thiserror::Error;

/// Addresses of TEST-NET-1 (RFC 5737), which is never routed.
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PREFIX: u8 = 30;

/// Time limit for the new link, whose queues the kernel starts within milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Two network namespaces joined by a veth pair, ready for the first packet. Both links are up, know the other's
/// Ethernet address, and send no traffic of their own.
///
/// The namespaces are deleted when this is dropped and their sockets are closed, or when the process ends for any
/// reason.
#[derive(Debug)]
pub struct VethPair {
    /// The end that measures.
    pub near: VethEnd,
    /// The peer.
    pub far: VethEnd,
}

/// One end of a veth pair.
#[derive(Debug)]
pub struct VethEnd {
    /// Its network namespace: open sockets in it with [`Namespace::run`].
    pub namespace: Namespace,
    /// Name of its interface in the namespace.
    pub interface: String,
    /// Ethernet address.
    pub mac: [u8; 6],
    /// IP address.
    pub address: Ipv4Addr,
    /// Index of the interface in the namespace.
    pub index: u32,
}

/// Error: no veth pair could be made.
#[derive(Debug, Error)]
pub enum VethError {
    /// This process lacks a capability.
    #[error(
        "no right to create network namespaces: run as root (sudo), or in a container with --cap-add=SYS_ADMIN,NET_ADMIN"
    )]
    Forbidden,
    /// The kernel lacks network namespaces or veth.
    #[error(
        "this kernel does not support {what}: load the driver with `sudo modprobe veth`, or build it with CONFIG_NET_NS and CONFIG_VETH"
    )]
    NotSupported {
        /// The missing feature.
        what: &'static str,
    },
    /// The kernel returned another error.
    #[error("cannot {what} ({source}): measure between two machines instead")]
    Failed {
        /// The failed operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl VethPair {
    /// Creates the namespaces and the veth pair.
    ///
    /// # Errors
    /// [`VethError`]; nothing remains then.
    pub fn create() -> Result<Self, VethError> {
        let [near, far] = [Namespace::new(), Namespace::new()];
        let (near, far) = (near.map_err(cannot(NAMESPACE))?, far.map_err(cannot(NAMESPACE))?);
        near.run(|| Links::open()?.veth_pair("near", "far", &far)).and_then(|made| made).map_err(cannot(VETH))?;
        let mut near = VethEnd::find(near, "near", NEAR)?;
        let mut far = VethEnd::find(far, "far", FAR)?;
        near.configure(&far)?;
        far.configure(&near)?;
        near.wait_until_operational()?;
        far.wait_until_operational()?;
        Ok(Self { near, far })
    }
}

impl VethEnd {
    fn find(namespace: Namespace, interface: &str, address: Ipv4Addr) -> Result<Self, VethError> {
        let what = "find one end of the veth pair";
        let link = namespace.run(|| Links::open()?.find(interface)).and_then(|link| link).map_err(cannot(what))?;
        let mac = link.mac.ok_or_else(|| cannot(what)(io::ErrorKind::InvalidData.into()))?;
        Ok(Self { namespace, interface: link.name, mac, address, index: link.index })
    }

    fn configure(&mut self, other: &Self) -> Result<(), VethError> {
        let configure = || {
            let mut links = Links::open()?;
            links.without_ipv6(self.index)?;
            links.set_up(&self.interface)?;
            links.add_address(self.index, self.address, PREFIX)?;
            links.add_neighbour(self.index, other.address, other.mac)
        };
        self.namespace.run(configure).and_then(|done| done).map_err(cannot("configure one end of the veth pair"))
    }

    /// Waits until the kernel has started the queue. Before that it drops all packets.
    fn wait_until_operational(&self) -> Result<(), VethError> {
        let wait = || {
            let (mut links, since) = (Links::open()?, Instant::now());
            while !links.find(&self.interface)?.is_operational {
                if since.elapsed() > TIMEOUT {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        self.namespace.run(wait).and_then(|done| done).map_err(cannot("bring the veth pair up"))
    }
}

const NAMESPACE: &str = "create a network namespace";
const VETH: &str = "create a veth pair";

fn cannot(what: &'static str) -> impl Fn(io::Error) -> VethError {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => VethError::Forbidden,
        io::ErrorKind::Unsupported => VethError::NotSupported { what: "veth pairs" },
        io::ErrorKind::InvalidInput if what == NAMESPACE => VethError::NotSupported { what: "network namespaces" },
        _ => VethError::Failed { what, source },
    }
}

/// Tests that need root.
#[cfg(test)]
mod rights {
    use std::{fs, net::UdpSocket};

    use super::*;

    /// Frames that an end has sent, as the kernel counts them.
    fn sent(end: &VethEnd) -> u64 {
        let table = end.namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{}:", end.interface))).unwrap();
        line.split_whitespace().nth(9).unwrap().parse().unwrap()
    }

    #[test]
    fn carries_packets_both_ways_and_no_other_traffic() {
        let pair = VethPair::create().unwrap();
        let socket = |end: &VethEnd| {
            let socket = end.namespace.run(|| UdpSocket::bind((end.address, 4711))).unwrap().unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            socket
        };
        let (near, far) = (socket(&pair.near), socket(&pair.far));
        // Time for router solicitations, group reports and address probes, which must not be sent.
        thread::sleep(Duration::from_millis(1500));
        assert_eq!((sent(&pair.near), sent(&pair.far)), (0, 0));
        let mut buffer = [0; 16];
        for (from, to) in [(&near, &far), (&far, &near)] {
            assert_eq!(from.send_to(b"on time", to.local_addr().unwrap()).unwrap(), 7);
            assert_eq!(to.recv_from(&mut buffer).unwrap(), (7, from.local_addr().unwrap()));
        }
        assert_eq!((sent(&pair.near), sent(&pair.far)), (1, 1), "no address resolution before the first packet");
    }

    #[test]
    fn namespaces_are_separate_from_the_host_and_from_each_other() {
        let pair = VethPair::create().unwrap();
        let find = |name: &'static str| move || Links::open().unwrap().find(name);
        assert_eq!(find("near")().unwrap_err().kind(), find("no-such-if0")().unwrap_err().kind());
        assert!(pair.near.namespace.run(find("far")).unwrap().is_err());
        let far = pair.far.namespace.run(find("far")).unwrap().unwrap();
        assert_eq!((far.index, far.mac, far.kind.as_deref()), (pair.far.index, Some(pair.far.mac), Some("veth")));
        assert!(far.is_operational);
        let lo = pair.near.namespace.run(find("lo")).unwrap().unwrap();
        assert!(lo.is_up);
        // A second pair has other addresses.
        let other_pair = VethPair::create().unwrap();
        assert_ne!(other_pair.near.mac, pair.near.mac);
    }

    #[test]
    fn panic_in_a_namespace_reaches_the_caller() {
        let namespace = Namespace::new().unwrap();
        let panicked = std::panic::catch_unwind(|| namespace.run(|| panic!("inside")));
        assert!(panicked.is_err());
        assert_eq!(namespace.run(|| 7).unwrap(), 7);
    }
}
