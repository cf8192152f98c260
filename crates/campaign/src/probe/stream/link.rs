//! Watches the link of a talker's interface: without a carrier, the kernel accepts frames and drops them.

use std::time::Duration;

use machine::{Root, nic::wait_for_link};
use probes::stream::Monitor;
use record::{Caveat, Reason, counted};

/// Time in which a link returns after a setting of its card was changed or put back: negotiation takes 2 to 4 s.
const NEGOTIATED_WITHIN: Duration = Duration::from_secs(5);

/// True if the interface is up, but has no carrier, and gets none within 5 s; false if it has one, or if the kernel does not
/// report it.
pub fn stays_without_carrier(interface: &str) -> bool {
    !wait_for_link(interface, NEGOTIATED_WITHIN, |link| !link.is_up || link.has_carrier != Some(false))
}

/// True if the interface has no carrier; false if it has one, or if the kernel does not report it.
fn lacks_carrier(root: &Root, interface: &str) -> bool {
    root.number::<u8>(&format!("sys/class/net/{interface}/carrier")) == Some(0)
}

/// The state of a link at one time. Counters are those since the interface was created.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LinkState {
    lacks_carrier: bool,
    /// Losses of the carrier; `None` if the kernel does not count them (before Linux 4.16).
    losses: Option<u64>,
    /// Frames that the interface sent, of all programs.
    sent: Option<u64>,
}

impl LinkState {
    fn read(root: &Root, interface: &str) -> Self {
        let count = |file: &str| root.number(&format!("sys/class/net/{interface}/{file}"));
        Self {
            lacks_carrier: lacks_carrier(root, interface),
            losses: count("carrier_down_count"),
            sent: count("statistics/tx_packets"),
        }
    }
}

/// Compares the link at the end of the stream with that at its start.
#[derive(Debug)]
pub(super) struct LinkMonitor {
    root: Root,
    interface: String,
    start: LinkState,
    end: Option<LinkState>,
}

impl LinkMonitor {
    /// Reads the state at the start.
    pub fn start(root: &Root, interface: &str) -> Self {
        let start = LinkState::read(root, interface);
        Self { root: root.clone(), interface: interface.to_owned(), start, end: None }
    }

    /// The reason in words if the link had no carrier at some time; `None` if it always had one.
    fn problem(&self) -> Option<String> {
        let (start, end, interface) = (&self.start, self.end.as_ref()?, &self.interface);
        let losses = end.losses.zip(start.losses).map_or(0, |(end, start)| end.saturating_sub(start));
        let at = match (start.lacks_carrier, end.lacks_carrier) {
            (true, true) => Some("at the start and at the end"),
            (true, false) => Some("at the start"),
            (false, true) => Some("at the end"),
            (false, false) => None,
        };
        let text = match (losses, at) {
            (0, None) => return None,
            (0, Some(at)) => format!("{interface} had no carrier {at}"),
            (losses, None) => format!("{interface} lost its carrier {} during the run", counted(losses, "time")),
            (losses, Some(at)) => {
                format!("{interface} lost its carrier {} during the run, and had none {at}", counted(losses, "time"))
            }
        };
        let sent = end.sent.zip(start.sent).map_or_else(String::new, |(end, start)| {
            format!("; the interface sent {} of all programs", counted(end.saturating_sub(start), "frame"))
        });
        Some(format!("{text}: the kernel accepted frames that never left this machine{sent}"))
    }
}

impl Monitor for LinkMonitor {
    fn finish(&mut self) {
        self.end = Some(LinkState::read(&self.root, &self.interface));
    }

    fn caveat(&self) -> Option<Caveat> {
        None
    }

    fn reason(&self) -> Option<Reason> {
        Some(Reason {
            id: "stream.no_carrier".to_owned(),
            text: self.problem()?,
            remedy: format!(
                "check the cable and the device at its other end, then run again: ip -s link show {}",
                self.interface
            ),
        })
    }

    /// The record of a talker has no figures of the link.
    fn add_to(&self, _: &mut record::Talker) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_carrier_is_a_reason() {
        let state = |lacks_carrier, losses, sent| LinkState { lacks_carrier, losses, sent };
        let problem = |start, end| {
            let root = Root::system();
            LinkMonitor { root, interface: "eth0".to_owned(), start, end: Some(end) }.problem().unwrap_or_default()
        };
        let good = state(false, Some(3), Some(1_000));
        assert_eq!(problem(good.clone(), state(false, Some(3), Some(2_000))), "");
        assert_eq!(problem(state(false, None, None), state(false, None, None)), "");
        let pulled = problem(good.clone(), state(true, Some(4), Some(2_200)));
        assert!(
            pulled.starts_with("eth0 lost its carrier 1 time during the run, and had none at the end:"),
            "{pulled}"
        );
        assert!(pulled.ends_with("the interface sent 1,200 frames of all programs"), "{pulled}");
        let back = problem(good, state(false, Some(5), None));
        assert!(back.starts_with("eth0 lost its carrier 2 times during the run:"), "{back}");
        let old = problem(state(true, None, None), state(false, None, None));
        assert!(old.starts_with("eth0 had no carrier at the start:"), "{old}");
    }
}
