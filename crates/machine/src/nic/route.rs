//! The interface that packets to an address leave through.

use std::{io, net::IpAddr};

use sys::link::Links;
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
