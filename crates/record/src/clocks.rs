//! The clocks of one machine: their sources and errors.

mod grandmaster;
mod merge;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::grandmaster::ToGrandmaster;

/// The clocks of a machine. A fact that could not be determined is absent, and `unknown` says why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Clocks {
    /// The kernel's view of its system clock; absent if it could not be read.
    pub kernel: Option<KernelClock>,
    /// State of ptp4l; absent if it does not run or does not answer.
    pub ptp: Option<Ptp>,
    /// Hardware clocks, e.g. of network cards, compared with the system clock.
    pub hardware: Vec<HardwareClock>,
    /// Running programs that may set clocks: `ptp4l`, `phc2sys`, `ts2phc`, `chronyd`, …
    pub programs: Vec<String>,
    /// Number of readings; the figures are the worst of them.
    pub looks: u32,
    /// Facts that could not be determined and why, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// A change between two readings after which earlier and later times cannot be compared; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// The kernel's view of its system clock (`adjtimex`). Another program sets these values, so they are claims, not
/// measurements.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelClock {
    /// True if a program claims to keep the clock synchronised.
    pub synchronised: bool,
    /// Largest error that is claimed, ns; it grows by 500 ns per ms since the last update. 16 s means no claim.
    pub max_error_ns: u64,
    /// Expected error, ns.
    pub expected_error_ns: u64,
    /// Offset of TAI from the system clock, s; 0 if no program set it.
    pub tai_offset_s: i64,
}

/// State of ptp4l, from its management socket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ptp {
    /// PTP domain, 0 to 255.
    pub domain: u8,
    /// True if it is a gPTP (IEEE 802.1AS) instance: transportSpecific is 1.
    pub is_gptp: bool,
    /// Identity of the grandmaster: `5a666e.fffe.d25bdc`.
    pub grandmaster: String,
    /// True if this machine is the grandmaster.
    pub is_grandmaster: bool,
    /// Number of boundary clocks between the grandmaster and this machine (stepsRemoved).
    pub steps: u16,
    /// Largest offset from the master that ptp4l measured, ns.
    pub offset_ns: u64,
    /// Mean path delay between the master and this machine, ns; absent if ptp4l has none. The asymmetry of the path
    /// cannot be measured; half of it is missing from the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_delay_ns: Option<u64>,
    /// Offset of PTP time from UTC according to the grandmaster, s.
    pub utc_offset_s: i16,
    /// True if PTP time is TAI, so that UTC follows from the offset; otherwise its epoch is arbitrary, commonly UTC's.
    pub is_tai: bool,
    /// Its ports.
    pub ports: Vec<PtpPort>,
}

/// A port of ptp4l.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtpPort {
    /// Port number, from 1.
    pub number: u16,
    /// Port state in the terms of IEEE 1588: `SLAVE`, `MASTER`, `LISTENING`, `UNCALIBRATED`, …
    pub state: String,
    /// Network interface; absent if ptp4l does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// True for timestamps of the network card, false for those of the kernel; absent if ptp4l does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps_in_hardware: Option<bool>,
    /// The interface's hardware clock: `ptp0`; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

/// A hardware clock (PHC), compared with the system clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareClock {
    /// Device name: `ptp0` for `/dev/ptp0`.
    pub device: String,
    /// The driver's name for the clock; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Offset from the system clock; absent if the clock cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Ahead>,
}

/// Offset of a clock from the system clock: whole seconds, e.g. the offset between TAI and UTC, and the remainder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ahead {
    /// The nearest whole number of seconds.
    pub seconds: i64,
    /// Largest deviation from those whole seconds, ns; at most half a second.
    pub apart_ns: u64,
    /// Time between the two readings of the system clock before and after the reading of the hardware clock, ns. Half
    /// of it is the reading error.
    pub window_ns: u64,
}

impl Ahead {
    /// Creates it from one reading: `ahead_ns` is the clock minus the middle of the window.
    #[must_use]
    pub fn of(ahead_ns: i64, window_ns: u64) -> Self {
        const SECOND: i64 = 1_000_000_000;
        let below = ahead_ns.div_euclid(SECOND);
        let rest = ahead_ns.rem_euclid(SECOND);
        let (seconds, apart) = if rest * 2 > SECOND { (below + 1, SECOND - rest) } else { (below, rest) };
        Self { seconds, apart_ns: apart.unsigned_abs(), window_ns }
    }

    /// Largest possible difference of the two clocks apart from the whole seconds, ns.
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.apart_ns.saturating_add(self.window_ns.div_ceil(2))
    }
}

impl Ptp {
    /// True if ptp4l follows the grandmaster or is the grandmaster.
    #[must_use]
    pub fn is_synchronised(&self) -> bool {
        let is = |state: &str| self.ports.iter().any(|port| port.state == state);
        if self.is_grandmaster { is("MASTER") || is("GRAND_MASTER") } else { is("SLAVE") }
    }

    /// Describes the ports with their states: `port 1 (eth0) is SLAVE`.
    #[must_use]
    pub fn ports_in_words(&self) -> String {
        let word = |port: &PtpPort| {
            let interface = port.interface.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
            format!("port {}{interface} is {}", port.number, port.state)
        };
        let words: Vec<String> = self.ports.iter().map(word).collect();
        if words.is_empty() { "it reported no port".to_owned() } else { words.join(", ") }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn port(state: &str, in_hardware: Option<bool>) -> PtpPort {
        PtpPort { number: 1, state: state.to_owned(), stamps_in_hardware: in_hardware, ..PtpPort::default() }
    }

    /// A machine that follows `grandmaster` with timestamps of the kernel.
    pub(crate) fn follower(grandmaster: &str, offset_ns: u64) -> Clocks {
        let ptp = Ptp {
            grandmaster: grandmaster.to_owned(),
            steps: 1,
            offset_ns,
            path_delay_ns: Some(1500),
            utc_offset_s: 37,
            is_tai: true,
            ports: vec![port("SLAVE", Some(false))],
            ..Ptp::default()
        };
        Clocks { ptp: Some(ptp), looks: 1, ..Clocks::default() }
    }

    /// The same with timestamps of a network card, whose clock is `ahead_ns` ahead of the system clock.
    pub(crate) fn card(grandmaster: &str, offset_ns: u64, ahead_ns: i64) -> Clocks {
        let mut clocks = follower(grandmaster, offset_ns);
        if let Some(ptp) = &mut clocks.ptp {
            ptp.ports = vec![port("SLAVE", Some(true))];
        }
        let ahead = Some(Ahead::of(ahead_ns, 800));
        clocks.hardware = vec![HardwareClock { device: "ptp0".to_owned(), name: None, ahead }];
        clocks
    }

    #[test]
    fn splits_an_offset_into_seconds_and_remainder() {
        let of = |ns| {
            let Ahead { seconds, apart_ns, .. } = Ahead::of(ns, 0);
            (seconds, apart_ns)
        };
        assert_eq!((of(37_000_000_120), of(36_999_999_880)), ((37, 120), (37, 120)));
        assert_eq!((of(-5), of(-37_000_000_005), of(500_000_000)), ((0, 5), (-37, 5), (0, 500_000_000)));
        assert_eq!((of(i64::MAX).0, of(i64::MIN).0), (9_223_372_037, -9_223_372_037));
        assert_eq!(Ahead::of(100, 801).error_ns(), 501, "half of the window, rounded up");
    }
}
