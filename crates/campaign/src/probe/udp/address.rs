//! Where a peer is, as people write it.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    str::FromStr,
};

/// Port of the answering end unless asked otherwise.
pub const UDP_PORT: u16 = 7125;

/// A machine by its name or address, and the port on which it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address.
    pub host: String,
    /// Its port, 1 to 65535.
    pub port: u16,
}

/// Why there is no such peer.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text names no machine, or no port.
    #[error("`{0}` has no port of 1 to 65535 behind its colon: write HOST, HOST:{UDP_PORT} or [ADDRESS]:{UDP_PORT}")]
    Port(String),
    /// Nothing stands before the colon.
    #[error("`{0}` names no machine: write HOST, HOST:{UDP_PORT} or [ADDRESS]:{UDP_PORT}")]
    Host(String),
    /// No machine has that name.
    #[error("no machine is known as `{host}`: use its address, or check with `getent hosts {host}`")]
    Unknown {
        /// The name.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// A name without an address.
    #[error("`{0}` has no address: use an address itself, as 192.0.2.1")]
    NoAddress(String),
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads `HOST[:PORT]`; an address of version 6 with a port stands in brackets.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (host, port) = match text.rsplit_once(':') {
            _ if text.parse::<IpAddr>().is_ok() => (text, UDP_PORT),
            Some((host, port)) => (host, port.parse().unwrap_or(0)),
            None => (text, UDP_PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match (host, port) {
            (_, 0) => Err(AddressError::Port(text.to_owned())),
            ("", _) => Err(AddressError::Host(text.to_owned())),
            _ if host.contains(|c: char| c.is_whitespace() || c == '/') => Err(AddressError::Host(text.to_owned())),
            _ => Ok(Self { host: host.to_owned(), port }),
        }
    }
}

impl Address {
    /// The address by number.
    ///
    /// # Errors
    /// When no machine has that name.
    pub fn resolve(&self) -> Result<SocketAddr, AddressError> {
        let Self { host, port } = self;
        let unknown = |source| AddressError::Unknown { host: host.clone(), source };
        let mut found = (host.as_str(), *port).to_socket_addrs().map_err(unknown)?;
        found.next().ok_or_else(|| AddressError::NoAddress(host.clone()))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:7125"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("::1", "[::1]:7125"),
            ("[::1]:9", "[::1]:9"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(
                (address.to_string(), address.resolve().unwrap().to_string()),
                (expected.into(), expected.into())
            );
            assert_eq!(Address::from(address.resolve().unwrap()), address);
        }
        for text in ["127.0.0.1:0", "127.0.0.1:", "host:x", "host:65536"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("1 to 65535"), "{text}: {error}");
        }
        for text in ["", ":9", "[]:9", "two words", "eth0/1"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("names no machine"), "{text}: {error}");
        }
    }
}
