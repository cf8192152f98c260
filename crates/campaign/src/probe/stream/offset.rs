//! How long before its slot a talker wakes: as asked for, or as long as this machine needs.

use std::{fmt, str::FromStr};

/// How long the wake-ups are measured that an offset is taken from, ns.
pub const CALIBRATION_NS: u64 = 5_000_000_000;

/// How long before its slot a talker wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeupOffset {
    /// So long, ns.
    Given(u64),
    /// As long as this machine needs: [`CALIBRATION_NS`] of wake-ups tell, before the first frame.
    Auto,
}

impl WakeupOffset {
    /// The offset, ns; 0 while it is not known yet.
    #[must_use]
    pub fn ns(self) -> u64 {
        match self {
            Self::Given(ns) => ns,
            Self::Auto => 0,
        }
    }
}

impl Default for WakeupOffset {
    fn default() -> Self {
        Self::Given(0)
    }
}

impl FromStr for WakeupOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => analysis::parse_ns(text).map(Self::Given).map_err(|error| format!("{error}, or auto")),
        }
    }
}

impl fmt::Display for WakeupOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(0) => f.write_str("0us"),
            Self::Given(ns) => f.write_str(&analysis::format_exact(*ns)),
            Self::Auto => f.write_str("auto"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_a_time_or_the_machines_own() {
        assert_eq!(("8us".parse(), "auto".parse()), (Ok(WakeupOffset::Given(8_000)), Ok(WakeupOffset::Auto)));
        assert!("automatic".parse::<WakeupOffset>().is_err());
        for text in ["0us", "8us", "auto"] {
            assert_eq!(text.parse::<WakeupOffset>().unwrap().to_string(), text);
        }
    }
}
