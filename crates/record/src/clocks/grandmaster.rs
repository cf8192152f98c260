//! Offset of the system clock from the PTP grandmaster.

use super::{Ahead, Clocks, Ptp, PtpPort};

/// Offset of the system clock from the grandmaster of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToGrandmaster<'a> {
    /// Identity of the grandmaster.
    pub grandmaster: &'a str,
    /// PTP domain.
    pub domain: u8,
    /// Whole seconds by which PTP time is ahead of the system clock: 37 for a system clock at UTC.
    pub seconds: i64,
    /// Largest possible difference apart from those seconds, ns, as far as both ends can know: the asymmetry of the
    /// path is not included.
    pub error_ns: u64,
    /// The terms of that error, in words.
    pub words: String,
}

impl Clocks {
    /// Determines the offset of the system clock from the PTP grandmaster.
    ///
    /// With timestamps of the kernel, ptp4l disciplines the system clock itself, so its offset is the error. With
    /// those of the network card it disciplines the card's clock, and the offset of the system clock from that clock is
    /// added.
    ///
    /// # Errors
    /// One sentence that says why the offset is unknown.
    pub fn to_grandmaster(&self) -> Result<ToGrandmaster<'_>, String> {
        if let Some(change) = &self.broken {
            return Err(change.clone());
        }
        let Some(ptp) = &self.ptp else {
            let reason = self.unknown.iter().find(|reason| reason.contains("ptp4l"));
            return Err(reason.cloned().unwrap_or_else(|| "ptp4l does not run here".to_owned()));
        };
        let port = ptp.active_port().filter(|_| ptp.is_synchronised());
        let port = port.ok_or_else(|| format!("ptp4l follows no master: {}", ptp.ports_in_words()))?;
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
            None => Err("ptp4l does not report which clock it disciplines".to_owned()),
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

    /// Returns the clock that stamps the packets of a port.
    fn clock_of(&self, port: &PtpPort) -> Result<(&str, &Ahead), String> {
        let named = port.clock.as_ref().and_then(|name| self.hardware.iter().find(|clock| clock.device == *name));
        let clock = match (named, self.hardware.as_slice()) {
            (Some(clock), _) => clock,
            (None, [only]) if port.clock.is_none() => only,
            _ => return Err(format!("the clock that port {} of ptp4l disciplines is unknown", port.number)),
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
    /// Returns the port that the time comes from: the slave port, or the first port of a grandmaster.
    fn active_port(&self) -> Option<&PtpPort> {
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
    fn kernel_time_stamps_need_no_hardware_clock() {
        let clocks = follower("gm", 701);
        let to = clocks.to_grandmaster().unwrap();
        assert_eq!((to.grandmaster, to.seconds, to.error_ns), ("gm", 37, 701));
    }

    #[test]
    fn hardware_time_stamps_add_the_offset_of_the_card() {
        let clocks = card("gm", 40, 37_000_000_200);
        let to = clocks.to_grandmaster().unwrap();
        assert_eq!((to.seconds, to.error_ns), (37, 40 + 200 + 400), "{}", to.words);
        let unrelated = card("gm", 40, 5_000_000_200).to_grandmaster().unwrap_err();
        assert_eq!(unrelated, "the system clock does not follow ptp0, which is 5 s ahead of it");
    }

    #[test]
    fn an_unknown_offset_has_a_reason() {
        let reason = |clocks: &Clocks| clocks.to_grandmaster().unwrap_err();
        assert_eq!(reason(&Clocks::default()), "ptp4l does not run here");
        let silent = Clocks { unknown: vec!["ptp4l does not answer".to_owned()], ..Clocks::default() };
        assert_eq!(reason(&silent), "ptp4l does not answer");

        let mut listening = follower("gm", 0);
        listening.ptp.as_mut().unwrap().ports = vec![port("LISTENING", Some(false))];
        assert_eq!(reason(&listening), "ptp4l follows no master: port 1 is LISTENING");

        let mut unread = card("gm", 40, 0);
        unread.hardware[0].ahead = None;
        assert_eq!(reason(&unread), "/dev/ptp0 was not compared with the system clock");
        unread.unknown.push("/dev/ptp0 may not be read".to_owned());
        assert_eq!(reason(&unread), "/dev/ptp0 may not be read");

        let mut unreported = card("gm", 40, 0);
        unreported.ptp.as_mut().unwrap().ports[0].stamps_in_hardware = None;
        assert_eq!(reason(&unreported), "ptp4l does not report which clock it disciplines");

        let mut two = card("gm", 40, 0);
        two.hardware.push(HardwareClock { device: "ptp1".to_owned(), ..two.hardware[0].clone() });
        assert_eq!(reason(&two), "the clock that port 1 of ptp4l disciplines is unknown");
        two.ptp.as_mut().unwrap().ports[0].clock = Some("ptp1".to_owned());
        assert!(two.to_grandmaster().unwrap().words.contains("from ptp1"));
    }
}
