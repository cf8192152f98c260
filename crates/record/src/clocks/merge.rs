//! Merging several readings of one machine's clocks.

use super::{Clocks, HardwareClock, KernelClock};

impl Clocks {
    /// Merges a later reading of the same machine: keeps the worst figures and notes a change in between.
    pub fn merge(&mut self, later: &Self) {
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

/// Describes a change after which earlier and later times cannot be compared.
fn change(before: &Clocks, after: &Clocks) -> Option<String> {
    let ptp = match (&before.ptp, &after.ptp) {
        (None, _) => None,
        (Some(_), None) => Some("ptp4l no longer answers".to_owned()),
        (Some(ptp), Some(now)) if ptp.grandmaster != now.grandmaster => {
            Some(format!("the grandmaster changed from {} to {}", ptp.grandmaster, now.grandmaster))
        }
        (Some(ptp), Some(now)) if ptp.is_synchronised() && !now.is_synchronised() => {
            Some(format!("ptp4l lost its master clock: {}", now.ports_in_words()))
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
mod tests {
    use super::*;
    use crate::clocks::tests::{card, port};

    #[test]
    fn keeps_the_worst_of_several_readings() {
        let mut clocks = card("gm", 40, 37_000_000_200);
        clocks.merge(&card("gm", 90, 36_999_999_500));
        clocks.merge(&card("gm", 10, 37_000_000_000));
        assert_eq!(clocks.looks, 3);
        assert_eq!(clocks.to_grandmaster().unwrap().error_ns, 90 + 500 + 400);
    }

    #[test]
    fn reports_a_change_between_two_readings() {
        let after = |later: Clocks| {
            let mut clocks = card("gm", 40, 0);
            clocks.merge(&later);
            // A later good reading does not undo this.
            clocks.merge(&card("gm", 40, 0));
            clocks.to_grandmaster().unwrap_err()
        };
        assert_eq!(after(card("other", 40, 0)), "the grandmaster changed from gm to other");
        assert_eq!(after(Clocks::default()), "ptp4l no longer answers");
        assert_eq!(after(card("gm", 40, 1_000_000_000)), "ptp0 was 0 s and then 1 s ahead of the system clock");
        let mut lost = card("gm", 40, 0);
        lost.ptp.as_mut().unwrap().ports = vec![port("UNCALIBRATED", Some(true))];
        assert_eq!(after(lost), "ptp4l lost its master clock: port 1 is UNCALIBRATED");
    }
}
