//! Launch times (SO_TXTIME): whether the interface keeps frames until then. The discipline ETF does; any other lets them
//! leave at once, and says nothing.

use thiserror::Error;

use super::{
    Answers, NicError, Told, find,
    qdisc::{self, Qdisc, Shaper},
};
use crate::Root;

const CLOCK_TAI: i32 = 11;
/// Disciplines that stand below each other, at most; the kernel allows 7.
const DEPTH: usize = 8;

/// How an interface keeps frames until their launch times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launching {
    /// How long before its launch time a frame goes to the driver, ns.
    pub delta_ns: u64,
    /// Whether the NIC keeps it from then on; else it leaves then.
    pub is_offloaded: bool,
}

/// Why it does not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// There is no such interface.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// The disciplines are not told.
    #[error(
        "cannot tell whether {interface} keeps frames until their launch times ({why}): look at `tc qdisc show dev {interface}`"
    )]
    Unknown {
        /// The interface.
        interface: String,
        /// What went wrong.
        why: String,
    },
    /// Frames of the stream meet no ETF discipline.
    #[error(
        "{interface} has no ETF discipline for frames of priority {priority}, so that their launch times would be ignored: {}",
        remedy(interface, at)
    )]
    NoEtf {
        /// The interface.
        interface: String,
        /// The priority.
        priority: u8,
        /// Where it is missing, as `tc` writes it.
        at: String,
    },
    /// The discipline goes by another clock.
    #[error(
        "the ETF discipline of {interface} goes by clock {clock}, and launch times are CLOCK_TAI's: {}",
        remedy(interface, at)
    )]
    Clock {
        /// The interface.
        interface: String,
        /// The clock's number.
        clock: i32,
        /// Where the discipline is.
        at: String,
    },
    /// The discipline lets frames leave early.
    #[error(
        "the ETF discipline of {interface} takes launch times for deadlines, and lets frames leave early: {}",
        remedy(interface, at)
    )]
    Deadlines {
        /// The interface.
        interface: String,
        /// Where the discipline is.
        at: String,
    },
}

fn remedy(interface: &str, at: &str) -> String {
    format!("sudo tc qdisc replace dev {interface} {at} etf clockid CLOCK_TAI delta 50000")
}

impl Launching {
    /// Asks how `interface` keeps frames of the sockets' `priority`; where they have a choice of queues, the least good.
    ///
    /// # Errors
    /// [`LaunchError`] where it does not, or it cannot be told.
    pub fn of(root: &Root, interface: &str, priority: u8) -> Result<Self, LaunchError> {
        let mut answers = Answers::of(root);
        let (link, _) = find(root, &mut answers, interface)?;
        let unknown = |why: &str| LaunchError::Unknown { interface: interface.to_owned(), why: why.to_owned() };
        match qdisc::all(&mut answers, &link) {
            Told::Known(all) => judge(&all, interface, priority),
            Told::NotSupported => Err(unknown("the kernel does not tell")),
            Told::Unknown(why) => Err(unknown(&why)),
        }
    }
}

fn judge(all: &[Qdisc], interface: &str, priority: u8) -> Result<Launching, LaunchError> {
    let interface = || interface.to_owned();
    let mut worst: Option<Launching> = None;
    for Last { qdisc, at } in last(all, priority) {
        let of_here = match qdisc.and_then(|qdisc| qdisc.shaper.as_ref()) {
            Some(Shaper::Etf { is_deadline: true, .. }) => {
                return Err(LaunchError::Deadlines { interface: interface(), at });
            }
            Some(&Shaper::Etf { clock, .. }) if clock != CLOCK_TAI => {
                return Err(LaunchError::Clock { interface: interface(), clock, at });
            }
            Some(&Shaper::Etf { delta_ns, is_offloaded, .. }) => {
                Launching { delta_ns: u64::try_from(delta_ns).unwrap_or(0), is_offloaded }
            }
            _ => return Err(LaunchError::NoEtf { interface: interface(), priority, at }),
        };
        worst = Some(worst.map_or(of_here, |worst| Launching {
            delta_ns: worst.delta_ns.max(of_here.delta_ns),
            is_offloaded: worst.is_offloaded && of_here.is_offloaded,
        }));
    }
    worst.ok_or_else(|| LaunchError::NoEtf { interface: interface(), priority, at: "root".to_owned() })
}

/// The last discipline on a frame's way.
struct Last<'a> {
    /// The discipline; `None` where a class has none, or none that is told.
    qdisc: Option<&'a Qdisc>,
    /// Where it is, as `tc` writes it.
    at: String,
}

/// The last disciplines that frames of this priority can leave through.
fn last(all: &[Qdisc], priority: u8) -> Vec<Last<'_>> {
    let mut found = Vec::new();
    if let Some(root) = all.iter().find(|qdisc| qdisc.is_root) {
        descend(all, root, priority, DEPTH, &mut found);
    }
    found
}

fn descend<'a>(all: &'a [Qdisc], from: &'a Qdisc, priority: u8, depth: usize, found: &mut Vec<Last<'a>>) {
    let below = |class: u32| all.iter().find(|qdisc| !qdisc.is_root && qdisc.parent == class);
    let is_child = |qdisc: &&Qdisc| !qdisc.is_root && qdisc.parent >> 16 == from.handle >> 16;
    let classes: Vec<u32> = match &from.priorities {
        Some(priorities) => priorities.classes(priority).map(|class| from.handle | u32::from(class)).collect(),
        // It goes by something else than the priority: any of them.
        None => all.iter().filter(is_child).map(|qdisc| qdisc.parent).collect(),
    };
    if classes.is_empty() || depth == 0 {
        return found.push(Last { qdisc: Some(from), at: place(from.is_root, from.parent) });
    }
    for class in classes {
        match below(class) {
            Some(qdisc) => descend(all, qdisc, priority, depth - 1, found),
            None => found.push(Last { qdisc: None, at: place(false, class) }),
        }
    }
}

fn place(is_root: bool, class: u32) -> String {
    // Below a discipline that has no number of its own nothing can be put.
    if is_root || class >> 16 == 0 {
        "root".to_owned()
    } else {
        format!("parent {:x}:{:x}", class >> 16, class & 0xffff)
    }
}

#[cfg(test)]
mod tests;
