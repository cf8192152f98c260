//! The place of a judge, as on the command line.

use std::{fmt, str::FromStr};

/// Speed of the serial line without another one, bit/s: that of the firmware without `BAUD`.
pub const BAUD: u32 = 1_000_000;
/// TCP port of latmon.
pub const LATMON_PORT: u16 = 2306;

/// The place of a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeAddress {
    /// The judge of punctual at a serial line.
    Serial {
        /// The device: `/dev/ttyACM0`.
        path: String,
        /// Speed, bit/s.
        baud: u32,
    },
    /// A board that runs latmon.
    Latmon {
        /// Name or address of the board.
        host: String,
        /// TCP port.
        port: u16,
    },
}

/// A text that does not name a judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a judge: write a serial line such as /dev/ttyACM0 or /dev/ttyUSB0,115200, or HOST[:PORT] of latmon"
)]
pub struct AddressError(String);

impl FromStr for JudgeAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parsed = if text.starts_with('/') { serial(text) } else { latmon(text) };
        parsed.ok_or_else(|| AddressError(text.to_owned()))
    }
}

fn serial(text: &str) -> Option<JudgeAddress> {
    let (path, baud) = match text.split_once(',') {
        Some((path, baud)) => (path, baud.parse().ok().filter(|&baud| baud > 0)?),
        None => (text, BAUD),
    };
    (path.len() > 1 && path.chars().all(|letter| !letter.is_control()))
        .then(|| JudgeAddress::Serial { path: path.to_owned(), baud })
}

fn latmon(text: &str) -> Option<JudgeAddress> {
    let in_brackets = || {
        let (host, rest) = text.strip_prefix('[')?.split_once(']')?;
        Some((host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) }))
    };
    let (host, port) = match text.split_once(':') {
        _ if text.starts_with('[') => in_brackets()?,
        // An IPv6 address without brackets has no port.
        Some((_, rest)) if rest.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let port = port.map_or(Some(LATMON_PORT), |port| port.parse().ok().filter(|&port| port > 0))?;
    let is_host = |letter: u8| letter.is_ascii_alphanumeric() || b".-_:%".contains(&letter);
    (!host.is_empty() && host.bytes().all(is_host)).then(|| JudgeAddress::Latmon { host: host.to_owned(), port })
}

impl fmt::Display for JudgeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial { path, baud: BAUD } => f.write_str(path),
            Self::Serial { path, baud } => write!(f, "{path},{baud}"),
            Self::Latmon { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Latmon { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_places_and_prints_them() {
        let serial = |path: &str, baud| JudgeAddress::Serial { path: path.to_owned(), baud };
        let latmon = |host: &str, port| JudgeAddress::Latmon { host: host.to_owned(), port };
        for (text, expected, printed) in [
            ("/dev/ttyACM0", serial("/dev/ttyACM0", 1_000_000), "/dev/ttyACM0"),
            ("/dev/ttyUSB1,115200", serial("/dev/ttyUSB1", 115_200), "/dev/ttyUSB1,115200"),
            ("frdm.local", latmon("frdm.local", 2306), "frdm.local:2306"),
            ("192.0.2.7:99", latmon("192.0.2.7", 99), "192.0.2.7:99"),
            ("fe80::1%eth0", latmon("fe80::1%eth0", 2306), "[fe80::1%eth0]:2306"),
            ("[::1]:7", latmon("::1", 7), "[::1]:7"),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), printed);
            assert_eq!(printed.parse(), Ok(expected));
        }
        for wrong in [
            "",
            "/",
            "/dev/ttyACM0,",
            "/dev/ttyACM0,0",
            "/dev/ttyACM0,x",
            "host:",
            "host:0",
            "host:70000",
            "a b",
            "[::1",
        ] {
            let error = wrong.parse::<JudgeAddress>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}` is not a judge: write")), "{error}");
        }
    }
}
