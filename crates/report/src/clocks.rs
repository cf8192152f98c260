//! The sources of a machine's clocks as text.

use record::Clocks;

use crate::blame::unsigned;

/// The source of the system clock with its error, and the offsets of the hardware clocks.
pub(crate) fn in_words(clocks: &Clocks) -> String {
    let mut words = vec![system(clocks)];
    for clock in &clocks.hardware {
        let name = clock.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        words.push(match &clock.ahead {
            Some(ahead) if ahead.seconds == 0 => {
                format!("{}{name} {} from it", clock.device, unsigned(ahead.apart_ns))
            }
            Some(ahead) => {
                format!("{}{name} {} s and {} from it", clock.device, ahead.seconds, unsigned(ahead.apart_ns))
            }
            None => format!("{}{name} not readable", clock.device),
        });
    }
    words.retain(|words| !words.is_empty());
    words.join(", ")
}

fn system(clocks: &Clocks) -> String {
    match (clocks.to_grandmaster(), &clocks.kernel) {
        (Ok(to), _) => {
            format!("system clock {} from PTP grandmaster {}", unsigned(to.error_ns), to.grandmaster)
        }
        (Err(why), _) if clocks.ptp.is_some() => format!("system clock not tied to PTP: {why}"),
        (_, Some(kernel)) if kernel.synchronised => {
            let by =
                if clocks.programs.is_empty() { String::new() } else { format!(" by {}", clocks.programs.join(", ")) };
            format!("system clock synchronised{by}, claimed error {}", unsigned(kernel.max_error_ns))
        }
        (_, Some(_)) => "system clock not synchronised".to_owned(),
        (_, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use record::{Ahead, HardwareClock, KernelClock, Ptp, PtpPort};

    use super::*;

    #[test]
    fn describes_each_state() {
        let kernel = KernelClock { synchronised: true, max_error_ns: 3_500_000, ..KernelClock::default() };
        let mut clocks = Clocks { kernel: Some(kernel), programs: vec!["chronyd".to_owned()], ..Clocks::default() };
        assert_eq!(in_words(&clocks), "system clock synchronised by chronyd, claimed error 3.5 ms");
        clocks.kernel = Some(KernelClock::default());
        assert_eq!(in_words(&clocks), "system clock not synchronised");

        let port = |state: &str| PtpPort { number: 1, state: state.to_owned(), ..PtpPort::default() };
        let ptp =
            |state| Ptp { grandmaster: "gm".to_owned(), offset_ns: 254, ports: vec![port(state)], ..Ptp::default() };
        clocks.ptp = Some(ptp("SLAVE"));
        assert_eq!(in_words(&clocks), "system clock 254 ns from PTP grandmaster gm");
        clocks.ptp = Some(ptp("LISTENING"));
        let clock = |device: &str, ahead| HardwareClock { device: device.to_owned(), name: None, ahead };
        clocks.hardware = vec![clock("ptp0", Some(Ahead::of(37_000_001_000, 0))), clock("ptp1", None)];
        assert_eq!(
            in_words(&clocks),
            "system clock not tied to PTP: ptp4l follows no master: port 1 is LISTENING, ptp0 37 s and 1 us from it, \
             ptp1 not readable"
        );
        assert_eq!(in_words(&Clocks::default()), "");
    }
}
