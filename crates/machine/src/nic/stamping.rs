//! Whether a NIC can stamp the frames of a measurement.

use thiserror::Error;

use super::{
    answers::{Answers, Told},
    ethtool::{Stamping, stamping},
};

/// Why its stamps cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoStamps {
    /// It takes none of what is sent, or of what comes.
    #[error(
        "{interface} takes no stamps of its own of what it sends and receives (it has {}): use --stamps all, or another card; `ethtool -T {interface}` shows the same",
        list(.has)
    )]
    NotInHardware {
        /// The interface.
        interface: String,
        /// What it can do.
        has: Vec<String>,
    },
    /// It stamps some frames, but not any.
    #[error(
        "{interface} stamps received frames of PTP alone, not ours (filters {}): use --stamps all, or another card",
        list(.filters)
    )]
    NotOurs {
        /// The interface.
        interface: String,
        /// What it can choose.
        filters: Vec<String>,
    },
    /// The kernel did not tell.
    #[error("what {interface} can stamp is not known ({why}): use --stamps all")]
    Unknown {
        /// The interface.
        interface: String,
        /// Why not.
        why: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Whether an interface can stamp every frame that comes in, and what it sends.
///
/// # Errors
/// [`NoStamps`].
pub fn can_stamp(answers: &mut Answers, interface: &str) -> Result<(), NoStamps> {
    let told = match answers.link(interface) {
        Ok(Some((link, _))) => stamping(answers, &link),
        Ok(None) => Told::Unknown("there is no such interface".to_owned()),
        Err(why) => Told::Unknown(why),
    };
    judge(interface, told)
}

fn judge(interface: &str, told: Told<Stamping>) -> Result<(), NoStamps> {
    let interface = interface.to_owned();
    let stamping = match told {
        Told::Known(stamping) => stamping,
        Told::NotSupported => return Err(NoStamps::NotInHardware { interface, has: Vec::new() }),
        Told::Unknown(why) => return Err(NoStamps::Unknown { interface, why }),
    };
    let has = |list: &[String], name: &str| list.iter().any(|known| known == name);
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
    fn a_card_that_stamps_all_will_do_and_no_other() {
        let judge = |stamping| judge("eth0", Told::Known(stamping));
        assert_eq!(judge(card(&["none", "all"])), Ok(()));
        let ptp = judge(card(&["none", "ptpv2-event"])).unwrap_err();
        assert!(ptp.to_string().contains("filters none, ptpv2-event"), "{ptp}");
        let software = Stamping { capabilities: vec!["software-receive".to_owned()], ..card(&["all"]) };
        let software = judge(software).unwrap_err();
        assert!(software.to_string().starts_with("eth0 takes no stamps of its own"), "{software}");
        assert!(matches!(
            judge(Stamping { tx_types: Vec::new(), ..card(&["all"]) }),
            Err(NoStamps::NotInHardware { .. })
        ));
    }
}
