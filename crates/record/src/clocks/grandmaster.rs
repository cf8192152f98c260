//! How the system clock stands to PTP's grandmaster.

use super::{Ahead, Clocks, Ptp, PtpPort};

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
}

impl Ptp {
    /// The port whose time is taken: that which follows, or the first of a grandmaster's.
    fn working(&self) -> Option<&PtpPort> {
        self.ports.iter().find(|port| self.is_grandmaster || port.state == "SLAVE")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::{
        HardwareClock,
        tests::{card, follower, port},
    };

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
}
