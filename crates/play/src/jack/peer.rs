//! Whom a client is connected to, and which ports that means.

use sys::jack::{Client, Direction, JackError};
use thiserror::Error;

/// What the name of a device begins with, and is, where cards are meant.
const PREFIX: &str = "jack";

/// Whom we are connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// The server's card: `jack`.
    Card,
    /// Nobody, so that another program can connect us: `jack:none`.
    Nobody,
    /// A client or a port of this name: `jack:NAME`.
    Named(String),
}

impl Peer {
    /// What the name of a device means, if it is one of JACK's.
    #[must_use]
    pub fn parse(device: &str) -> Option<Self> {
        match device.strip_prefix(PREFIX)? {
            "" => Some(Self::Card),
            ":none" => Some(Self::Nobody),
            named => named.strip_prefix(':').filter(|name| !name.is_empty()).map(|name| Self::Named(name.to_owned())),
        }
    }

    /// Its ports, of all that there are.
    pub(super) fn among(&self, client: &Client, direction: Direction) -> Result<Vec<String>, PortError> {
        if *self == Self::Nobody {
            return Ok(Vec::new());
        }
        let all = client.ports(direction, *self == Self::Card);
        let ports: Vec<_> = all.iter().filter(|port| self.is_of(port)).cloned().collect();
        match ports.is_empty() {
            true => Err(PortError::None { wanted: self.to_string(), way: way(direction), there: listed(&all) }),
            false => Ok(ports),
        }
    }

    fn is_of(&self, port: &str) -> bool {
        match self {
            Self::Card => true,
            Self::Nobody => false,
            Self::Named(name) => port.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')),
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Card => f.write_str("a card"),
            Self::Nobody => f.write_str("nobody"),
            Self::Named(name) => write!(f, "`{name}`"),
        }
    }
}

fn way(direction: Direction) -> &'static str {
    if direction == Direction::Output { "capture from" } else { "play to" }
}

fn listed(ports: &[String]) -> String {
    if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
}

/// Why what was asked for cannot be connected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortError {
    /// The server has something against it.
    #[error(transparent)]
    Jack(#[from] JackError),
    /// There is no such port.
    #[error("JACK has no port of {wanted} to {way}, there are {there}: choose one, as jack:NAME, or jack:none")]
    None {
        /// Whose.
        wanted: String,
        /// What for.
        way: &'static str,
        /// What there is.
        there: String,
    },
    /// There are not so many.
    #[error("JACK has {there} ports of {wanted} to capture from: choose one of them, as --input 1")]
    Few {
        /// How many.
        there: usize,
        /// Whose.
        wanted: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_name_whom_we_are_connected_to() {
        let named = |name: &str| Some(Peer::Named(name.to_owned()));
        for (device, peer) in [
            ("jack", Some(Peer::Card)),
            ("jack:none", Some(Peer::Nobody)),
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
    fn a_name_is_that_of_a_client_or_of_a_port() {
        let is_of = |name: &str, port| Peer::Named(name.to_owned()).is_of(port);
        assert!(is_of("amp", "amp:out") && is_of("amp:out", "amp:out"));
        assert!(!is_of("amp", "ampere:out") && !is_of("amp:out", "amp:out_2") && !is_of("out", "amp:out"));
        assert!(Peer::Card.is_of("system:capture_1") && !Peer::Nobody.is_of("system:capture_1"));
    }
}
