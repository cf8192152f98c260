//! Checks that a NIC can stamp the frames of a measurement.

use std::path::PathBuf;

use thiserror::Error;

use super::{
    super::Root,
    answers::{Answers, Reading},
    ethtool::{Stamping, stamping},
};

/// Error: hardware timestamps are not available.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoStamps {
    /// The NIC stamps no sent or no received frames.
    #[error(
        "{interface} has no hardware timestamps for sent and received frames (it has {}): use --stamps all, or another card; see `ethtool -T {interface}`",
        list(.has)
    )]
    NotInHardware {
        /// Name of the interface.
        interface: String,
        /// The capabilities that it has.
        has: Vec<String>,
    },
    /// The NIC stamps no sent frames, or has no clock that can be read.
    #[error(
        "{interface} does not stamp sent frames (it has {}): use --stamps all, or another card; see `ethtool -T {interface}`",
        list(.has)
    )]
    NotSent {
        /// Name of the interface.
        interface: String,
        /// The capabilities that it has.
        has: Vec<String>,
    },
    /// The NIC stamps only some received frames.
    #[error(
        "{interface} stamps only received PTP frames (filters {}): use --stamps all, or another card",
        list(.filters)
    )]
    NotOurs {
        /// Name of the interface.
        interface: String,
        /// The filters that it supports.
        filters: Vec<String>,
    },
    /// The kernel did not answer.
    #[error("cannot read the timestamping of {interface} ({why}): use --stamps all")]
    Unknown {
        /// Name of the interface.
        interface: String,
        /// The reason.
        why: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Checks that an interface can stamp every received frame, and every sent one.
///
/// # Errors
/// [`NoStamps`].
pub fn can_stamp(answers: &mut Answers, interface: &str) -> Result<(), NoStamps> {
    let reading = read(answers, interface);
    judge(interface, reading)
}

/// The clock of a NIC that can stamp every sent frame, such as `/dev/ptp0`.
///
/// # Errors
/// [`NoStamps`].
pub fn clock_of_sent_stamps(root: &Root, interface: &str) -> Result<PathBuf, NoStamps> {
    let phc = judge_sent(interface, read(&mut Answers::of(root), interface))?;
    Ok(root.path(&format!("dev/ptp{phc}")))
}

fn read(answers: &mut Answers, interface: &str) -> Reading<Stamping> {
    match answers.link(interface) {
        Ok(Some((link, _))) => stamping(answers, &link),
        Ok(None) => Reading::Unknown("there is no such interface".to_owned()),
        Err(why) => Reading::Unknown(why),
    }
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|known| known == name)
}

fn known(interface: &str, reading: Reading<Stamping>) -> Result<Stamping, NoStamps> {
    let interface = interface.to_owned();
    match reading {
        Reading::Known(stamping) => Ok(stamping),
        Reading::NotSupported => Err(NoStamps::NotInHardware { interface, has: Vec::new() }),
        Reading::Unknown(why) => Err(NoStamps::Unknown { interface, why }),
    }
}

/// The number of the card's clock.
fn judge_sent(interface: &str, reading: Reading<Stamping>) -> Result<u32, NoStamps> {
    let stamping = known(interface, reading)?;
    let needed = ["hardware-transmit", "hardware-raw-clock"];
    match stamping.phc {
        Some(phc) if needed.iter().all(|name| has(&stamping.capabilities, name)) && has(&stamping.tx_types, "on") => {
            Ok(phc)
        }
        _ => Err(NoStamps::NotSent { interface: interface.to_owned(), has: stamping.capabilities }),
    }
}

fn judge(interface: &str, reading: Reading<Stamping>) -> Result<(), NoStamps> {
    let stamping = known(interface, reading)?;
    let interface = interface.to_owned();
    let needed = ["hardware-transmit", "hardware-receive", "hardware-raw-clock"];
    if !needed.iter().all(|name| has(&stamping.capabilities, name)) || !has(&stamping.tx_types, "on") {
        return Err(NoStamps::NotInHardware { interface, has: stamping.capabilities });
    }
    if !has(&stamping.rx_filters, "all") {
        return Err(NoStamps::NotOurs { interface, filters: stamping.rx_filters });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(filters: &[&str]) -> Stamping {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Stamping {
            capabilities: owned(&["hardware-transmit", "software-transmit", "hardware-receive", "hardware-raw-clock"]),
            tx_types: owned(&["off", "on"]),
            rx_filters: owned(filters),
            phc: Some(0),
        }
    }

    #[test]
    fn sent_frames_need_a_card_with_a_clock() {
        let judge = |stamping| judge_sent("eth0", Reading::Known(stamping));
        assert_eq!(judge(card(&["none"])), Ok(0));
        for none in [
            Stamping { phc: None, ..card(&["all"]) },
            Stamping { tx_types: vec!["off".to_owned()], ..card(&["all"]) },
            Stamping { capabilities: vec!["software-transmit".to_owned()], ..card(&["all"]) },
        ] {
            let error = judge(none).unwrap_err().to_string();
            assert!(error.starts_with("eth0 does not stamp sent frames (it has "), "{error}");
        }
    }

    #[test]
    fn accepts_only_cards_that_stamp_all_frames() {
        let judge = |stamping| judge("eth0", Reading::Known(stamping));
        assert_eq!(judge(card(&["none", "all"])), Ok(()));
        let ptp = judge(card(&["none", "ptpv2-event"])).unwrap_err();
        assert!(ptp.to_string().contains("filters none, ptpv2-event"), "{ptp}");
        let software = Stamping { capabilities: vec!["software-receive".to_owned()], ..card(&["all"]) };
        let software = judge(software).unwrap_err();
        assert!(software.to_string().starts_with("eth0 has no hardware timestamps"), "{software}");
        assert!(matches!(
            judge(Stamping { tx_types: Vec::new(), ..card(&["all"]) }),
            Err(NoStamps::NotInHardware { .. })
        ));
    }
}
