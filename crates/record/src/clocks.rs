//! The clocks of one machine: what they follow, and how closely as far as that can be known.

mod grandmaster;
mod looks;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::grandmaster::ToGrandmaster;

/// What the clocks of a machine follow. What could not be learned is absent, and [`unknown`](Self::unknown) says why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Clocks {
    /// What the kernel thinks of its system clock.
    pub kernel: Option<KernelClock>,
    /// What ptp4l tells.
    pub ptp: Option<Ptp>,
    /// Clocks of network cards and the like, against the system clock.
    pub hardware: Vec<HardwareClock>,
    /// Programs that run and may set clocks: `ptp4l`, `phc2sys`, `ts2phc`, `chronyd`, …
    pub programs: Vec<String>,
    /// How often all this was looked at; the figures are the worst of them.
    pub looks: u32,
    /// What could not be learned, and why: a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What happened between two looks, so that times before and after cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// What the kernel thinks of its system clock (`adjtimex`). A program tells it, so it is a claim, not a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelClock {
    /// Whether some program says that it keeps the clock right.
    pub synchronised: bool,
    /// Largest error that it claims, grown by 500 ns for each ms since, ns. 16 s stand for none.
    pub max_error_ns: u64,
    /// Error that it expects, ns.
    pub expected_error_ns: u64,
    /// How far TAI is ahead of the system clock, s; 0 where nobody set it.
    pub tai_offset_s: i64,
}

/// What ptp4l tells over its management socket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ptp {
    /// PTP domain, 0 to 255.
    pub domain: u8,
    /// Whether it is a gPTP (IEEE 802.1AS) instance: transportSpecific is 1.
    pub is_gptp: bool,
    /// The clock that all follow, as `5a666e.fffe.d25bdc`.
    pub grandmaster: String,
    /// Whether that is this very machine.
    pub is_grandmaster: bool,
    /// Boundaries between the grandmaster and here.
    pub steps: u16,
    /// Largest distance to the master that ptp4l measured, ns.
    pub offset_ns: u64,
    /// Mean time of a message between the master and here, ns; absent where ptp4l has none. What the two directions
    /// differ by cannot be seen; half of it is missing from the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_delay_ns: Option<u64>,
    /// How far PTP's time is ahead of UTC as the grandmaster tells, s.
    pub utc_offset_s: i16,
    /// Whether the time is TAI, from which UTC is made with that offset; else it has any epoch, commonly UTC's.
    pub is_tai: bool,
    /// Its ports.
    pub ports: Vec<PtpPort>,
}

/// A port of ptp4l.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtpPort {
    /// Its number, from 1.
    pub number: u16,
    /// Its state in the words of IEEE 1588: `SLAVE`, `MASTER`, `LISTENING`, `UNCALIBRATED`, …
    pub state: String,
    /// Its interface, where ptp4l tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Whether the network card takes the stamps, or the kernel; absent where ptp4l does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps_in_hardware: Option<bool>,
    /// The interface's clock, as `ptp0`, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

/// A clock in hardware (PHC), against the system clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareClock {
    /// `ptp0`, which is `/dev/ptp0`.
    pub device: String,
    /// Its driver's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How far it is ahead of the system clock; absent where it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Ahead>,
}

/// How far a clock is ahead of the system clock: whole seconds, as between TAI and UTC, and what remains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ahead {
    /// The nearest whole number of seconds.
    pub seconds: i64,
    /// Largest distance from that, ns; at most half a second.
    pub apart_ns: u64,
    /// Time between the two readings of the system clock around the clock's own, ns. Half of it is the error.
    pub window_ns: u64,
}

impl Ahead {
    /// From one reading: `ahead_ns` is the clock minus the middle of the window.
    #[must_use]
    pub fn of(ahead_ns: i64, window_ns: u64) -> Self {
        const SECOND: i64 = 1_000_000_000;
        let below = ahead_ns.div_euclid(SECOND);
        let rest = ahead_ns.rem_euclid(SECOND);
        let (seconds, apart) = if rest * 2 > SECOND { (below + 1, SECOND - rest) } else { (below, rest) };
        Self { seconds, apart_ns: apart.unsigned_abs(), window_ns }
    }

    /// How far the two clocks may be apart beside the whole seconds, ns.
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.apart_ns.saturating_add(self.window_ns.div_ceil(2))
    }
}

impl Ptp {
    /// Whether it keeps its clock at the grandmaster's, or is the grandmaster itself.
    #[must_use]
    pub fn is_synchronised(&self) -> bool {
        let is = |state: &str| self.ports.iter().any(|port| port.state == state);
        if self.is_grandmaster { is("MASTER") || is("GRAND_MASTER") } else { is("SLAVE") }
    }

    /// Its ports with their states: `port 1 (eth0) is SLAVE`.
    #[must_use]
    pub fn ports_in_words(&self) -> String {
        let word = |port: &PtpPort| {
            let interface = port.interface.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
            format!("port {}{interface} is {}", port.number, port.state)
        };
        let words: Vec<String> = self.ports.iter().map(word).collect();
        if words.is_empty() { "it told of no port".to_owned() } else { words.join(", ") }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn port(state: &str, in_hardware: Option<bool>) -> PtpPort {
        PtpPort { number: 1, state: state.to_owned(), stamps_in_hardware: in_hardware, ..PtpPort::default() }
    }

    /// A machine that follows `grandmaster` with stamps of the kernel.
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

    /// The same with stamps of a network card, whose clock is `ahead_ns` ahead of the system clock.
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
    fn whole_seconds_and_the_rest() {
        let of = |ns| {
            let Ahead { seconds, apart_ns, .. } = Ahead::of(ns, 0);
            (seconds, apart_ns)
        };
        assert_eq!((of(37_000_000_120), of(36_999_999_880)), ((37, 120), (37, 120)));
        assert_eq!((of(-5), of(-37_000_000_005), of(500_000_000)), ((0, 5), (-37, 5), (0, 500_000_000)));
        assert_eq!((of(i64::MAX).0, of(i64::MIN).0), (9_223_372_037, -9_223_372_037));
        assert_eq!(Ahead::of(100, 801).error_ns(), 501, "half a window, rounded up");
    }
}
