//! The clocks of one machine: what they follow, and how closely as far as that can be known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

    /// The port whose time is taken: that which follows, or the first of a grandmaster's.
    fn working(&self) -> Option<&PtpPort> {
        self.ports.iter().find(|port| self.is_grandmaster || port.state == "SLAVE")
    }
}

/// How the system clock stands to the grandmaster of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToGrandmaster<'a> {
    /// The grandmaster.
    pub grandmaster: &'a str,
    /// PTP domain.
    pub domain: u8,
    /// Whole seconds that PTP's time is ahead of the system clock: 37 for a system clock at UTC.
    pub seconds: i64,
    /// How far the two may be apart beside those, ns, as far as both ends can tell: what the two directions of the path
    /// differ by is not in it.
    pub error_ns: u64,
    /// What it is made of.
    pub words: String,
}

impl Clocks {
    /// How the system clock stands to PTP's grandmaster.
    ///
    /// With stamps of the kernel, ptp4l keeps the system clock itself; its offset is the error. With stamps of the network
    /// card it keeps the card's clock, and how far the system clock is from that comes on top.
    ///
    /// # Errors
    /// A sentence that says why it is not known.
    pub fn to_grandmaster(&self) -> Result<ToGrandmaster<'_>, String> {
        if let Some(what) = &self.broken {
            return Err(what.clone());
        }
        let Some(ptp) = &self.ptp else {
            let reason = self.unknown.iter().find(|reason| reason.contains("ptp4l"));
            return Err(reason.cloned().unwrap_or_else(|| "ptp4l does not run here".to_owned()));
        };
        let port = ptp.working().filter(|_| ptp.is_synchronised());
        let port = port.ok_or_else(|| format!("ptp4l follows nobody: {}", ptp.ports_in_words()))?;
        let known = |seconds, error_ns: u64, words| ToGrandmaster {
            grandmaster: &ptp.grandmaster,
            domain: ptp.domain,
            seconds,
            error_ns,
            words,
        };
        let in_hardware = port.stamps_in_hardware.or_else(|| self.hardware.is_empty().then_some(false));
        let offset = format!("ptp4l's offset {} ns", ptp.offset_ns);
        match in_hardware {
            None => Err("ptp4l does not tell which clock it keeps".to_owned()),
            Some(false) => {
                let seconds = if ptp.is_tai { i64::from(ptp.utc_offset_s) } else { 0 };
                Ok(known(seconds, ptp.offset_ns, offset))
            }
            Some(true) => {
                let (device, ahead) = self.clock_of(port)?;
                if ahead.seconds != 0 && ahead.seconds != i64::from(ptp.utc_offset_s) {
                    let wrong = ahead.seconds;
                    return Err(format!("the system clock does not follow {device}, which is {wrong} s ahead of it"));
                }
                let words = format!(
                    "{offset}, system clock {} ns from {device}, read within {} ns",
                    ahead.apart_ns, ahead.window_ns
                );
                Ok(known(ahead.seconds, ptp.offset_ns.saturating_add(ahead.error_ns()), words))
            }
        }
    }

    /// The clock that a port's stamps are of.
    fn clock_of(&self, port: &PtpPort) -> Result<(&str, &Ahead), String> {
        let named = port.clock.as_ref().and_then(|name| self.hardware.iter().find(|clock| clock.device == *name));
        let clock = match (named, self.hardware.as_slice()) {
            (Some(clock), _) => clock,
            (None, [only]) if port.clock.is_none() => only,
            _ => return Err(format!("which clock port {} of ptp4l keeps is not known", port.number)),
        };
        let ahead = clock.ahead.as_ref();
        let ahead = ahead.ok_or_else(|| {
            let path = format!("/dev/{}", clock.device);
            let reason = self.unknown.iter().find(|reason| reason.contains(&path));
            reason.cloned().unwrap_or_else(|| format!("{path} was not compared with the system clock"))
        })?;
        Ok((&clock.device, ahead))
    }

    /// Takes in a later look at the same machine: the worst figures stay, and what was lost or changed in between is noted.
    pub fn take_in(&mut self, later: &Self) {
        self.looks += later.looks;
        let broken = self.broken.take().or_else(|| later.broken.clone()).or_else(|| change(self, later));
        self.broken = broken;
        self.kernel = match (self.kernel.take(), &later.kernel) {
            (Some(before), Some(after)) => Some(KernelClock {
                synchronised: before.synchronised && after.synchronised,
                max_error_ns: before.max_error_ns.max(after.max_error_ns),
                expected_error_ns: before.expected_error_ns.max(after.expected_error_ns),
                ..*after
            }),
            (before, after) => before.or_else(|| after.clone()),
        };
        if let (Some(ptp), Some(after)) = (&mut self.ptp, &later.ptp) {
            ptp.offset_ns = ptp.offset_ns.max(after.offset_ns);
            ptp.path_delay_ns = ptp.path_delay_ns.max(after.path_delay_ns);
        }
        for clock in &mut self.hardware {
            let after = later.hardware.iter().find(|after| after.device == clock.device);
            if let (Some(ahead), Some(after)) = (&mut clock.ahead, after.and_then(|after| after.ahead.as_ref())) {
                ahead.apart_ns = ahead.apart_ns.max(after.apart_ns);
                ahead.window_ns = ahead.window_ns.max(after.window_ns);
            }
        }
    }
}

/// What changed so much that times before and after cannot be compared.
fn change(before: &Clocks, after: &Clocks) -> Option<String> {
    let ptp = match (&before.ptp, &after.ptp) {
        (None, _) => None,
        (Some(_), None) => Some("ptp4l no longer answers".to_owned()),
        (Some(ptp), Some(now)) if ptp.grandmaster != now.grandmaster => {
            Some(format!("the grandmaster changed from {} to {}", ptp.grandmaster, now.grandmaster))
        }
        (Some(ptp), Some(now)) if ptp.is_synchronised() && !now.is_synchronised() => {
            Some(format!("ptp4l lost its master: {}", now.ports_in_words()))
        }
        (Some(_), Some(_)) => None,
    };
    let stepped = |clock: &HardwareClock| {
        let now = after.hardware.iter().find(|now| now.device == clock.device)?.ahead.as_ref()?;
        let was = clock.ahead.as_ref()?.seconds;
        let (device, now) = (&clock.device, now.seconds);
        (was != now).then(|| format!("{device} was {was} s and then {now} s ahead of the system clock"))
    };
    ptp.or_else(|| before.hardware.iter().find_map(stepped))
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

    #[test]
    fn stamps_of_the_kernel_need_no_other_clock() {
        let clocks = follower("gm", 701);
        let to = clocks.to_grandmaster().unwrap();
        assert_eq!((to.grandmaster, to.seconds, to.error_ns), ("gm", 37, 701));
    }

    #[test]
    fn stamps_of_a_card_add_how_far_its_clock_is_away() {
        let clocks = card("gm", 40, 37_000_000_200);
        let to = clocks.to_grandmaster().unwrap();
        assert_eq!((to.seconds, to.error_ns), (37, 40 + 200 + 400), "{}", to.words);
        let astray = card("gm", 40, 5_000_000_200).to_grandmaster().unwrap_err();
        assert_eq!(astray, "the system clock does not follow ptp0, which is 5 s ahead of it");
    }

    #[test]
    fn what_is_not_known_has_a_reason_and_no_figure() {
        let reason = |clocks: &Clocks| clocks.to_grandmaster().unwrap_err();
        assert_eq!(reason(&Clocks::default()), "ptp4l does not run here");
        let silent = Clocks { unknown: vec!["ptp4l does not answer".to_owned()], ..Clocks::default() };
        assert_eq!(reason(&silent), "ptp4l does not answer");

        let mut listening = follower("gm", 0);
        listening.ptp.as_mut().unwrap().ports = vec![port("LISTENING", Some(false))];
        assert_eq!(reason(&listening), "ptp4l follows nobody: port 1 is LISTENING");

        let mut unread = card("gm", 40, 0);
        unread.hardware[0].ahead = None;
        assert_eq!(reason(&unread), "/dev/ptp0 was not compared with the system clock");
        unread.unknown.push("/dev/ptp0 may not be read".to_owned());
        assert_eq!(reason(&unread), "/dev/ptp0 may not be read");

        let mut untold = card("gm", 40, 0);
        untold.ptp.as_mut().unwrap().ports[0].stamps_in_hardware = None;
        assert_eq!(reason(&untold), "ptp4l does not tell which clock it keeps");

        let mut two = card("gm", 40, 0);
        two.hardware.push(HardwareClock { device: "ptp1".to_owned(), ..two.hardware[0].clone() });
        assert_eq!(reason(&two), "which clock port 1 of ptp4l keeps is not known");
        two.ptp.as_mut().unwrap().ports[0].clock = Some("ptp1".to_owned());
        assert!(two.to_grandmaster().unwrap().words.contains("from ptp1"));
    }

    #[test]
    fn later_looks_keep_the_worst() {
        let mut clocks = card("gm", 40, 37_000_000_200);
        clocks.take_in(&card("gm", 90, 36_999_999_500));
        clocks.take_in(&card("gm", 10, 37_000_000_000));
        assert_eq!(clocks.looks, 3);
        assert_eq!(clocks.to_grandmaster().unwrap().error_ns, 90 + 500 + 400);
    }

    #[test]
    fn what_breaks_in_between_is_told() {
        let after = |later: Clocks| {
            let mut clocks = card("gm", 40, 0);
            clocks.take_in(&later);
            // What is well again afterwards does not mend it.
            clocks.take_in(&card("gm", 40, 0));
            clocks.to_grandmaster().unwrap_err()
        };
        assert_eq!(after(card("other", 40, 0)), "the grandmaster changed from gm to other");
        assert_eq!(after(Clocks::default()), "ptp4l no longer answers");
        assert_eq!(after(card("gm", 40, 1_000_000_000)), "ptp0 was 0 s and then 1 s ahead of the system clock");
        let mut lost = card("gm", 40, 0);
        lost.ptp.as_mut().unwrap().ports = vec![port("UNCALIBRATED", Some(true))];
        assert_eq!(after(lost), "ptp4l lost its master: port 1 is UNCALIBRATED");
    }
}
