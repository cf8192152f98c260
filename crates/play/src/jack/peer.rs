//! The clients or ports that our JACK client connects to.

use std::fmt;

use sys::jack::{Client, Direction, JackError};
use thiserror::Error;

/// Start of the device names that mean JACK rather than a card.
const PREFIX: &str = "jack";

/// The clients or ports that our JACK client connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// The server's card: `jack`.
    Card,
    /// Nothing, so that another program can make the connections: `jack:none`.
    Unconnected,
    /// A client or a port of this name: `jack:NAME`.
    Named(String),
}

impl Peer {
    /// Parses a device name; `None` if it is not one of JACK.
    #[must_use]
    pub fn parse(device: &str) -> Option<Self> {
        match device.strip_prefix(PREFIX)? {
            "" => Some(Self::Card),
            ":none" => Some(Self::Unconnected),
            named => named.strip_prefix(':').filter(|name| !name.is_empty()).map(|name| Self::Named(name.to_owned())),
        }
    }

    /// The ports of this peer in one direction.
    pub(super) fn ports(&self, client: &Client, direction: Direction) -> Result<Vec<String>, PortError> {
        if *self == Self::Unconnected {
            return Ok(Vec::new());
        }
        let all = client.ports(direction, *self == Self::Card);
        let ports: Vec<_> = all.iter().filter(|port| self.owns(port)).cloned().collect();
        if ports.is_empty() {
            let available = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            return Err(PortError::Missing { wanted: self.to_string(), usage: usage(direction), available });
        }
        Ok(ports)
    }

    fn owns(&self, port: &str) -> bool {
        match self {
            Self::Card => true,
            Self::Unconnected => false,
            Self::Named(name) => port.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Card => f.write_str("a card"),
            Self::Unconnected => f.write_str("nothing"),
            Self::Named(name) => write!(f, "`{name}`"),
        }
    }
}

fn usage(direction: Direction) -> &'static str {
    if direction == Direction::Output { "capture from" } else { "play to" }
}

/// Why the ports cannot be connected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortError {
    /// The server refused a request.
    #[error(transparent)]
    Jack(#[from] JackError),
    /// The server has no such port.
    #[error(
        "JACK has no port of {wanted} to {usage} (available: {available}): choose one with jack:NAME, or use jack:none"
    )]
    Missing {
        /// The client or port that was wanted.
        wanted: String,
        /// The use of the port.
        usage: &'static str,
        /// The ports that exist.
        available: String,
    },
    /// The input number is too large.
    #[error("JACK has only {count} ports of {wanted} to capture from: choose --input 1 to {count}")]
    TooFew {
        /// Number of ports.
        count: usize,
        /// The client or port that was wanted.
        wanted: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_device_names() {
        let named = |name: &str| Some(Peer::Named(name.to_owned()));
        for (device, peer) in [
            ("jack", Some(Peer::Card)),
            ("jack:none", Some(Peer::Unconnected)),
            ("jack:guitarix", named("guitarix")),
            ("jack:system:capture_2", named("system:capture_2")),
            ("jack:", None),
            ("jackpot", None),
            ("hw:0", None),
        ] {
            assert_eq!(Peer::parse(device), peer, "{device}");
        }
    }

    #[test]
    fn a_name_matches_a_whole_client_or_port() {
        let owns = |name: &str, port| Peer::Named(name.to_owned()).owns(port);
        assert!(owns("amp", "amp:out") && owns("amp:out", "amp:out"));
        assert!(!owns("amp", "ampere:out") && !owns("amp:out", "amp:out_2") && !owns("out", "amp:out"));
        assert!(Peer::Card.owns("system:capture_1") && !Peer::Unconnected.owns("system:capture_1"));
    }
}
