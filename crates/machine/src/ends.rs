//! The two ends of a measurement within one machine: network namespaces joined by a virtual cable.

use std::{
    io,
    net::Ipv4Addr,
    thread,
    time::{Duration, Instant},
};

use sys::{link::Links, netns::Namespace};
use thiserror::Error;

/// Of TEST-NET-1 (RFC 5737), which nobody routes.
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PREFIX: u8 = 30;

/// The kernel starts the queues of a new link within milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Two network namespaces joined by a virtual cable, ready for the first packet: both ends are up, know each other's
/// Ethernet address, and send nothing of their own.
///
/// They are gone when this is dropped and the sockets in them are closed, and when the process ends, killed or not.
#[derive(Debug)]
pub struct Ends {
    /// Where measuring is done from.
    pub near: End,
    /// What it is done with.
    pub far: End,
}

/// One end of the cable.
#[derive(Debug)]
pub struct End {
    /// Where it is: sockets are to be opened by [`Namespace::run`].
    pub namespace: Namespace,
    /// The name of the interface inside.
    pub interface: String,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its IP address.
    pub address: Ipv4Addr,
    /// Its number inside.
    pub index: u32,
}

/// Why there are no ends.
#[derive(Debug, Error)]
pub enum EndsError {
    /// This process lacks the right.
    #[error(
        "no right to make network namespaces: run as root (sudo), or in a container with --cap-add=SYS_ADMIN,NET_ADMIN"
    )]
    Forbidden,
    /// The kernel lacks namespaces or veth.
    #[error(
        "this kernel cannot make {what}: load the driver with `sudo modprobe veth`, or build it with CONFIG_NET_NS and CONFIG_VETH"
    )]
    NotSupported {
        /// What it cannot make.
        what: &'static str,
    },
    /// The kernel answered with another error.
    #[error("cannot {what} ({source}): measure between two machines instead")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
}

impl Ends {
    /// Makes them.
    ///
    /// # Errors
    /// [`EndsError`]; nothing is left behind then.
    pub fn make() -> Result<Self, EndsError> {
        let [near, far] = [Namespace::new(), Namespace::new()];
        let (near, far) = (near.map_err(cannot(NAMESPACE))?, far.map_err(cannot(NAMESPACE))?);
        near.run(|| Links::open()?.veth_pair("near", "far", &far)).and_then(|made| made).map_err(cannot(CABLE))?;
        let mut near = End::find(near, "near", NEAR)?;
        let mut far = End::find(far, "far", FAR)?;
        near.set_up(&far)?;
        far.set_up(&near)?;
        near.wait()?;
        far.wait()?;
        Ok(Self { near, far })
    }
}

impl End {
    fn find(namespace: Namespace, interface: &str, address: Ipv4Addr) -> Result<Self, EndsError> {
        let what = "find one end of the cable";
        let link = namespace.run(|| Links::open()?.find(interface)).and_then(|link| link).map_err(cannot(what))?;
        let mac = link.mac.ok_or_else(|| cannot(what)(io::ErrorKind::InvalidData.into()))?;
        Ok(Self { namespace, interface: link.name, mac, address, index: link.index })
    }

    fn set_up(&mut self, other: &Self) -> Result<(), EndsError> {
        let set_up = || {
            let mut links = Links::open()?;
            links.without_ipv6(self.index)?;
            links.set_up(&self.interface)?;
            links.add_address(self.index, self.address, PREFIX)?;
            links.add_neighbour(self.index, other.address, other.mac)
        };
        self.namespace.run(set_up).and_then(|done| done).map_err(cannot("set up one end of the cable"))
    }

    /// Waits until the kernel has started the queue: before, it drops what is sent.
    fn wait(&self) -> Result<(), EndsError> {
        let wait = || {
            let (mut links, since) = (Links::open()?, Instant::now());
            while !links.find(&self.interface)?.is_operational {
                if since.elapsed() > PATIENCE {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        self.namespace.run(wait).and_then(|done| done).map_err(cannot("get the cable to work"))
    }
}

const NAMESPACE: &str = "make a network namespace";
const CABLE: &str = "make a virtual cable";

fn cannot(what: &'static str) -> impl Fn(io::Error) -> EndsError {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => EndsError::Forbidden,
        io::ErrorKind::Unsupported => EndsError::NotSupported { what: "virtual cables (veth)" },
        io::ErrorKind::InvalidInput if what == NAMESPACE => EndsError::NotSupported { what: "network namespaces" },
        _ => EndsError::Failed { what, source },
    }
}

/// Tests that need root.
#[cfg(test)]
mod rights {
    use std::{fs, net::UdpSocket};

    use super::*;

    /// Frames that an end has sent, as the kernel counts them.
    fn sent(end: &End) -> u64 {
        let table = end.namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{}:", end.interface))).unwrap();
        line.split_whitespace().nth(9).unwrap().parse().unwrap()
    }

    #[test]
    fn a_packet_crosses_both_ways_and_nothing_else_does() {
        let ends = Ends::make().unwrap();
        let socket = |end: &End| {
            let socket = end.namespace.run(|| UdpSocket::bind((end.address, 4711))).unwrap().unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            socket
        };
        let (near, far) = (socket(&ends.near), socket(&ends.far));
        // Time for router solicitations, group reports and probes of addresses, had they not been kept off.
        thread::sleep(Duration::from_millis(1500));
        assert_eq!((sent(&ends.near), sent(&ends.far)), (0, 0));
        let mut buffer = [0; 16];
        for (from, to) in [(&near, &far), (&far, &near)] {
            assert_eq!(from.send_to(b"on time", to.local_addr().unwrap()).unwrap(), 7);
            assert_eq!(to.recv_from(&mut buffer).unwrap(), (7, from.local_addr().unwrap()));
        }
        assert_eq!((sent(&ends.near), sent(&ends.far)), (1, 1), "no question for an address before the first packet");
    }

    #[test]
    fn the_ends_are_strangers_to_this_network_and_to_each_other() {
        let ends = Ends::make().unwrap();
        let find = |name: &'static str| move || Links::open().unwrap().find(name);
        assert_eq!(find("near")().unwrap_err().kind(), find("no-such-if0")().unwrap_err().kind());
        assert!(ends.near.namespace.run(find("far")).unwrap().is_err());
        let far = ends.far.namespace.run(find("far")).unwrap().unwrap();
        assert_eq!((far.index, far.mac, far.kind.as_deref()), (ends.far.index, Some(ends.far.mac), Some("veth")));
        assert!(far.is_operational);
        let lo = ends.near.namespace.run(find("lo")).unwrap().unwrap();
        assert!(lo.is_up);
        // A second pair is another pair.
        let others = Ends::make().unwrap();
        assert_ne!(others.near.mac, ends.near.mac);
    }

    #[test]
    fn a_panic_inside_comes_out_and_what_is_inside_stays_there() {
        let namespace = Namespace::new().unwrap();
        let panicked = std::panic::catch_unwind(|| namespace.run(|| panic!("inside")));
        assert!(panicked.is_err());
        assert_eq!(namespace.run(|| 7).unwrap(), 7);
    }
}
