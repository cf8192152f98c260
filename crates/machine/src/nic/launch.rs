//! Launch times (SO_TXTIME): checks that an interface keeps frames until their launch times. Only the queueing
//! discipline ETF does; any other sends them at once, without an error.

use thiserror::Error;

use super::{
    Answers, NicError, Reading, find,
    qdisc::{self, Qdisc, Shaper},
};
use crate::Root;

const CLOCK_TAI: i32 = 11;
/// Limit for nested disciplines; the kernel allows 7.
const DEPTH: usize = 8;

/// The implementation of launch times by an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launching {
    /// Time before the launch time when a frame is passed to the driver, ns.
    pub delta_ns: u64,
    /// True if the NIC then keeps the frame; false if it sends it at once.
    pub is_offloaded: bool,
}

/// Error: an interface does not keep frames until their launch times.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// The interface cannot be used.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// The queueing disciplines cannot be read.
    #[error("cannot find out if {interface} supports launch times ({why}): see `tc qdisc show dev {interface}`")]
    Unknown {
        /// Name of the interface.
        interface: String,
        /// The reason.
        why: String,
    },
    /// The frames of the stream pass no ETF discipline.
    #[error(
        "{interface} has no ETF discipline for frames of priority {priority}, so their launch times would be ignored: {}",
        remedy(interface, at)
    )]
    NoEtf {
        /// Name of the interface.
        interface: String,
        /// The priority of the frames.
        priority: u8,
        /// The place of the missing discipline in `tc` syntax.
        at: String,
    },
    /// The discipline uses another clock.
    #[error(
        "the ETF discipline of {interface} uses clock {clock}, but launch times use CLOCK_TAI: {}",
        remedy(interface, at)
    )]
    Clock {
        /// Name of the interface.
        interface: String,
        /// The clock id.
        clock: i32,
        /// The place of the discipline in `tc` syntax.
        at: String,
    },
    /// The discipline sends frames early.
    #[error("the ETF discipline of {interface} is in deadline mode and sends frames early: {}", remedy(interface, at))]
    Deadlines {
        /// Name of the interface.
        interface: String,
        /// The place of the discipline in `tc` syntax.
        at: String,
    },
}

fn remedy(interface: &str, at: &str) -> String {
    format!("sudo tc qdisc replace dev {interface} {at} etf clockid CLOCK_TAI delta 50000")
}

impl Launching {
    /// Reads how `interface` handles frames of this socket `priority`. If several queues are possible, returns the
    /// worst.
    ///
    /// # Errors
    /// [`LaunchError`] if launch times are not supported, or if that is not known.
    pub fn of(root: &Root, interface: &str, priority: u8) -> Result<Self, LaunchError> {
        let mut answers = Answers::of(root);
        let (link, _) = find(root, &mut answers, interface)?;
        let unknown = |why: &str| LaunchError::Unknown { interface: interface.to_owned(), why: why.to_owned() };
        match qdisc::all(&mut answers, &link) {
            Reading::Known(all) => judge(&all, interface, priority),
            Reading::NotSupported => Err(unknown("the kernel does not support the query")),
            Reading::Unknown(why) => Err(unknown(&why)),
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

/// The last discipline that a frame passes.
struct Last<'a> {
    /// The discipline; `None` if a class has none, or none that the kernel reports.
    qdisc: Option<&'a Qdisc>,
    /// Its place in `tc` syntax.
    at: String,
}

/// The last disciplines that frames of this priority may pass.
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
        // The discipline does not classify by priority: any class is possible.
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
    // A discipline without a handle accepts no child.
    if is_root || class >> 16 == 0 {
        "root".to_owned()
    } else {
        format!("parent {:x}:{:x}", class >> 16, class & 0xffff)
    }
}

#[cfg(test)]
mod tests;
