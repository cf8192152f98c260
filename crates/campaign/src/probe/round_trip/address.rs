//! The address of a peer, as a user writes it.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    str::FromStr,
};

/// Default port of the answering end.
pub const UDP_PORT: u16 = 7125;

/// A machine by its name or address, and the port on which it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address.
    pub host: String,
    /// Its port, 1 to 65535.
    pub port: u16,
}

/// The reasons why the address of a peer is wrong.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text has no valid port.
    #[error("the port in `{0}` must be 1 to 65535: write HOST, HOST:{UDP_PORT} or [ADDRESS]:{UDP_PORT}")]
    Port(String),
    /// The text has no valid name or address.
    #[error("`{0}` has no valid host: write HOST, HOST:{UDP_PORT} or [ADDRESS]:{UDP_PORT}")]
    Host(String),
    /// The text is no name or address without a port.
    #[error("`{0}` is no host: write a name or an address without a port, e.g. 192.0.2.1")]
    NoHost(String),
    /// The name cannot be resolved.
    #[error("cannot resolve the host `{host}`: use its address, or check with `getent hosts {host}`")]
    Unknown {
        /// The name.
        host: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The name has no address.
    #[error("the host `{0}` has no address: use an address, e.g. 192.0.2.1")]
    NoAddress(String),
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads `HOST[:PORT]`; an IPv6 address with a port needs brackets.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (host, port) = match text.rsplit_once(':') {
            _ if is_literal(text) || text.starts_with('[') && text.ends_with(']') => (text, UDP_PORT),
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

/// True for an address. That of an IPv6 link has a zone: `fe80::1%eth0`.
fn is_literal(host: &str) -> bool {
    host.split('%').next().is_some_and(|address| address.parse::<IpAddr>().is_ok())
}

impl Address {
    /// True if the host is an address and no name.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        is_literal(&self.host)
    }

    /// Resolves the name to a socket address.
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub fn resolve(&self) -> Result<SocketAddr, AddressError> {
        let Self { host, port } = self;
        let unknown = |source| AddressError::Unknown { host: host.clone(), source };
        let mut found = (host.as_str(), *port).to_socket_addrs().map_err(unknown)?;
        found.next().ok_or_else(|| AddressError::NoAddress(host.clone()))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let zone = match address {
            SocketAddr::V6(address) if address.scope_id() != 0 => format!("%{}", address.scope_id()),
            SocketAddr::V6(_) | SocketAddr::V4(_) => String::new(),
        };
        Self { host: format!("{}{zone}", address.ip()), port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// A machine by its name or address, without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(String);

impl FromStr for Host {
    type Err = AddressError;

    /// Reads a name or an address; an IPv6 address has no brackets.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let is_name = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || ":/[]".contains(c));
        if is_name || is_literal(text) { Ok(Self(text.to_owned())) } else { Err(AddressError::NoHost(text.to_owned())) }
    }
}

impl Host {
    /// Resolves the name. The port is 0.
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub fn resolve(&self) -> Result<SocketAddr, AddressError> {
        Address { host: self.0.clone(), port: 0 }.resolve()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacAddress(pub [u8; 6]);

impl FromStr for MacAddress {
    type Err = String;

    /// Reads 12 hexadecimal digits, ignoring the separators `:`, `-` and `.`.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits: String = text.chars().filter(|c| !":-.".contains(*c)).collect();
        let is_hex = digits.len() == 12 && digits.chars().all(|c| c.is_ascii_hexdigit());
        let number = u64::from_str_radix(&digits, 16).ok().filter(|_| is_hex);
        let number = number.ok_or_else(|| "must be six bytes, e.g. 02:00:00:00:00:02".to_owned())?;
        let [_, _, mac @ ..] = number.to_be_bytes();
        Ok(Self(mac))
    }
}

/// Parses the Ethernet address of one machine.
///
/// # Errors
/// It is no Ethernet address, or a group address: a switch sends frames to a group to all ports.
pub fn parse_machine(text: &str) -> Result<MacAddress, String> {
    let address: MacAddress = text.parse()?;
    // The first bit on the wire (IEEE 802).
    let is_group = address.0[0] & 1 == 1;
    if is_group { Err("is a group address: name one machine".to_owned()) } else { Ok(address) }
}

/// Parses the EtherType of frames that are sent or answered, e.g. `0x88b5`.
///
/// # Errors
/// Those of [`parse_ethertype`]; or the kernel or the network takes such frames for itself: VLAN tags (0x8100, 0x88a8,
/// 0x9100) and MAC control such as PAUSE (0x8808).
pub fn parse_own_ethertype(text: &str) -> Result<u16, String> {
    match parse_ethertype(text)? {
        0x8100 | 0x88a8 | 0x9100 => Err("is the EtherType of a VLAN tag: use --vlan, and e.g. 0x88b5".to_owned()),
        0x8808 => Err("is the EtherType of PAUSE frames, which stop a link: use e.g. 0x88b5".to_owned()),
        ethertype => Ok(ethertype),
    }
}

/// Parses an EtherType, e.g. `0x88b5`.
///
/// # Errors
/// It is no number with `0x`, or below 0x0600, which would be a length.
pub fn parse_ethertype(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("0x").map(|digits| u16::from_str_radix(digits, 16));
    let number = number.and_then(Result::ok).filter(|number| *number >= 0x600);
    number.ok_or_else(|| "must be 0x0600 to 0xffff, e.g. 0x88b5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hosts_and_ports() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:7125"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("::1", "[::1]:7125"),
            ("[::1]:9", "[::1]:9"),
            ("[::1]", "[::1]:7125"),
            // The zone of the loopback interface, which has number 1.
            ("[fe80::1%1]:9", "[fe80::1%1]:9"),
            ("fe80::1%1", "[fe80::1%1]:7125"),
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
            assert!(error.contains("has no valid host"), "{text}: {error}");
        }
    }
}

#[cfg(test)]
mod host_tests {
    use super::*;

    #[test]
    fn frames_go_to_one_machine_and_are_no_control_frames() {
        assert_eq!(parse_machine("02:00:00:00:00:02"), Ok(MacAddress([2, 0, 0, 0, 0, 2])));
        for group in ["ff:ff:ff:ff:ff:ff", "01:80:c2:00:00:01", "91:e0:f0:00:fe:01"] {
            assert!(parse_machine(group).unwrap_err().contains("a group address: name one machine"), "{group}");
        }
        assert_eq!(parse_own_ethertype("0x88b5"), Ok(0x88b5));
        for refused in ["0x8100", "0x88a8", "0x9100", "0x8808", "0x100"] {
            assert!(parse_own_ethertype(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_host_has_no_port() {
        for host in ["board-b", "192.0.2.1", "::1", "fe80::1%eth0"] {
            assert_eq!(host.parse::<Host>().unwrap().to_string(), host);
        }
        for text in ["", "board-b:7125", "[::1]:7125", "a b", "::1:x", "http://a"] {
            assert!(text.parse::<Host>().unwrap_err().to_string().contains("without a port"), "{text}");
        }
        let loopback = "::1".parse::<Host>().unwrap().resolve().unwrap();
        assert_eq!((loopback.ip().is_loopback(), loopback.port()), (true, 0));
    }
}
