//! The interface that packets to an address leave through.

use std::{
    io,
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use sys::link::{Link, Links};
use thiserror::Error;

/// Error: there is no interface for an address.
#[derive(Debug, Error)]
pub enum RouteError {
    /// The address belongs to this machine.
    #[error("{0} is an address of this machine, so its packets use no network card: name another machine")]
    ThisMachine(IpAddr),
    /// The address has no route.
    #[error("no route to {address} ({source}): compare with `ip route get {address}`")]
    NoRoute {
        /// The address.
        address: IpAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// No machine has that address.
    #[error(
        "no machine on {interface} answers for the address {neighbour}: start it, and compare with `ip neigh show dev \
         {interface}`"
    )]
    NoNeighbour {
        /// The machine itself, or the router on the route to it.
        neighbour: IpAddr,
        /// The interface on the route.
        interface: String,
    },
}

/// Time limit for the answer of a neighbour: the kernel asks three times, once a second.
const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(3);

/// The next machine on the route to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHop {
    /// The interface on the route.
    pub link: Link,
    /// The Ethernet address of the machine, or of the router to it.
    pub mac: [u8; 6],
}

/// The next machine on the route to this address, whose Ethernet address the kernel finds as for its own packets.
///
/// # Errors
/// [`RouteError`].
pub fn next_hop(address: IpAddr) -> Result<NextHop, RouteError> {
    let failed = |source| RouteError::NoRoute { address, source };
    let mut links = Links::open().map_err(failed)?;
    let (link, neighbour) = links.next_hop(address).map_err(failed)?;
    if link.hardware == super::ARPHRD_LOOPBACK {
        return Err(RouteError::ThisMachine(address));
    }
    let since = Instant::now();
    loop {
        if let Some(mac) = links.neighbour(link.index, neighbour).map_err(failed)? {
            return Ok(NextHop { link, mac });
        }
        if since.elapsed() > NEIGHBOUR_TIMEOUT {
            return Err(RouteError::NoNeighbour { neighbour, interface: link.name });
        }
        links.find_neighbour(link.index, neighbour).map_err(failed)?;
        thread::sleep(NEIGHBOUR_TIMEOUT / 60);
    }
}

/// The interface that packets to this address leave through.
///
/// # Errors
/// [`RouteError`].
pub fn outgoing_interface(address: IpAddr) -> Result<String, RouteError> {
    let link = Links::open().and_then(|mut links| links.towards(address));
    let link = link.map_err(|source| RouteError::NoRoute { address, source })?;
    if link.hardware == super::ARPHRD_LOOPBACK { Err(RouteError::ThisMachine(address)) } else { Ok(link.name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_address_has_no_interface() {
        let error = outgoing_interface([127, 0, 0, 1].into()).unwrap_err();
        assert!(matches!(error, RouteError::ThisMachine(_)), "{error}");
    }
}
