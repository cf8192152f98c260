//! The wake-up offset of a talker: given, or measured on this machine.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use record::Calibration;

/// Shortest and longest calibration, ns.
const CALIBRATION_NS: RangeInclusive<u64> = 250_000_000..=5_000_000_000;
/// A calibration takes this part of the run that follows it.
const PART_OF_RUN: u64 = 4;

/// The wake-up offset: the time that a talker wakes before its slot. The default is the same for commands and campaign
/// files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WakeupOffset {
    /// This time, ns.
    Given(u64),
    /// The time that this machine needs, found by measuring wake-ups for [`calibration_ns`] before the first frame.
    #[default]
    Auto,
    /// The knee of the curve that [`WakeupOffset::Auto`] measures: nearly as few late frames, with less spinning.
    Knee,
}

/// Duration of the calibration before a run of `run_ns`, ns: a quarter of the run, 250 ms to 5 s. A run without a planned
/// duration (`None`) has the longest one.
#[must_use]
pub fn calibration_ns(run_ns: Option<u64>) -> u64 {
    let (least_ns, most_ns) = (*CALIBRATION_NS.start(), *CALIBRATION_NS.end());
    run_ns.map_or(most_ns, |run_ns| (run_ns / PART_OF_RUN).clamp(least_ns, most_ns))
}

impl WakeupOffset {
    /// The offset, ns; 0 before calibration.
    #[must_use]
    pub fn ns(self) -> u64 {
        match self {
            Self::Given(ns) => ns,
            Self::Auto | Self::Knee => 0,
        }
    }

    /// The offset that a calibration found, ns. The talker hands its frames over `delta_ns` before the slot or earlier: 0
    /// unless frames have launch times.
    #[must_use]
    pub fn calibrated_ns(self, calibration: &Calibration, delta_ns: u64, period_ns: u64) -> u64 {
        match self {
            Self::Given(ns) => ns,
            Self::Auto if delta_ns > 0 => calibration.wanted_ns.saturating_add(delta_ns).min(period_ns),
            Self::Auto => calibration.wanted_ns,
            Self::Knee => calibration.knee_ns.unwrap_or(calibration.wanted_ns),
        }
    }
}

impl FromStr for WakeupOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "knee" => Ok(Self::Knee),
            "0" => Ok(Self::Given(0)),
            _ => analysis::parse_ns(text).map(Self::Given).map_err(|error| format!("{error}, or auto or knee")),
        }
    }
}

impl fmt::Display for WakeupOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(0) => f.write_str("0us"),
            Self::Given(ns) => f.write_str(&analysis::format_exact(*ns)),
            Self::Auto => f.write_str("auto"),
            Self::Knee => f.write_str("knee"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_auto_and_knee() {
        assert_eq!(("8us".parse(), "auto".parse()), (Ok(WakeupOffset::Given(8_000)), Ok(WakeupOffset::Auto)));
        assert_eq!("0".parse(), Ok(WakeupOffset::Given(0)), "the usual way to turn it off");
        assert!("automatic".parse::<WakeupOffset>().is_err());
        for text in ["0us", "8us", "auto", "knee"] {
            assert_eq!(text.parse::<WakeupOffset>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_calibration_takes_a_quarter_of_the_run() {
        let lengths_ns = [Some(100_000_000), Some(3_000_000_000), Some(3_600_000_000_000), None].map(calibration_ns);
        assert_eq!(lengths_ns, [250_000_000, 750_000_000, 5_000_000_000, 5_000_000_000]);
    }

    #[test]
    fn launch_times_add_the_delta_of_their_queueing_discipline() {
        let calibration = Calibration { wanted_ns: 40_000, knee_ns: Some(12_000), ..Calibration::default() };
        let of = |offset: WakeupOffset, delta_ns| offset.calibrated_ns(&calibration, delta_ns, 125_000);
        assert_eq!((of(WakeupOffset::Auto, 0), of(WakeupOffset::Knee, 0)), (40_000, 12_000));
        assert_eq!((of(WakeupOffset::Auto, 50_000), of(WakeupOffset::Auto, 200_000)), (90_000, 125_000));
        assert_eq!(of(WakeupOffset::Given(7), 50_000), 7, "a given offset remains as it is");
    }
}
