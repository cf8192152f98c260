//! The wake-up offset of a talker: given, or measured on this machine.

use std::{fmt, str::FromStr};

/// Duration of the calibration, ns.
pub const CALIBRATION_NS: u64 = 5_000_000_000;

/// The wake-up offset: the time that a talker wakes before its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeupOffset {
    /// This time, ns.
    Given(u64),
    /// The time that this machine needs, found by measuring wake-ups for [`CALIBRATION_NS`] before the first frame.
    Auto,
}

impl WakeupOffset {
    /// The offset, ns; 0 before calibration.
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
    fn reads_times_and_auto() {
        assert_eq!(("8us".parse(), "auto".parse()), (Ok(WakeupOffset::Given(8_000)), Ok(WakeupOffset::Auto)));
        assert!("automatic".parse::<WakeupOffset>().is_err());
        for text in ["0us", "8us", "auto"] {
            assert_eq!(text.parse::<WakeupOffset>().unwrap().to_string(), text);
        }
    }
}
