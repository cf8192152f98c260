//! What about an interface may cost punctuality, why, and what to do about it: pure functions of what was learned.

mod clock;
mod link;
mod offloads;
mod queues;
mod stamps;
mod threads;
mod timing;

use record::Finding;

use super::{Hardware, Nic, Told};
use crate::findings::{not_applicable, unknown};

/// Judges everything that was learned about an interface that is to carry a frame each `period_ns`: one finding each,
/// always all of them, in this order.
///
/// What could not be learned is [`Unknown`](record::FindingState::Unknown), and what this interface does not have is
/// [`NotApplicable`](record::FindingState::NotApplicable); neither is ever taken for [`Ok`](record::FindingState::Ok).
#[must_use]
pub fn findings(nic: &Nic, period_ns: u64) -> Vec<Finding> {
    let check = Check { nic, period_ns };
    let checks: [fn(&Check) -> Finding; 37] = [
        link::hardware,
        link::carrier,
        link::speed,
        link::duplex,
        link::mtu,
        link::losses,
        timing::rx_usecs,
        timing::tx_usecs,
        timing::adaptive,
        timing::eee,
        timing::pause,
        timing::runtime_power,
        timing::link_power,
        queues::rx_ring,
        queues::tx_ring,
        queues::channels,
        queues::qdisc,
        queues::cbs,
        queues::etf,
        queues::taprio,
        queues::preemption,
        offloads::gro,
        offloads::lro,
        offloads::tso,
        offloads::vlan_filter,
        offloads::vlan_tag,
        offloads::xdp,
        threads::interrupts,
        threads::affinity,
        threads::interrupt_threads,
        threads::napi_threads,
        threads::napi_defer,
        stamps::hardware,
        stamps::receive_filter,
        clock::there,
        clock::synchronised,
        clock::system,
    ];
    checks.iter().map(|check_one| check_one(&check)).collect()
}

/// What the checks look at.
struct Check<'a> {
    nic: &'a Nic,
    period_ns: u64,
}

impl Check<'_> {
    /// A command with the interface's name behind: `ethtool -c eth0`.
    fn command(&self, command: &str) -> String {
        format!("{command} {}", self.nic.interface)
    }

    /// `ethtool -c eth0: rx-usecs = 20`.
    fn evidence(&self, command: &str, value: &str) -> String {
        format!("{}: {value}", self.command(command))
    }

    /// The command that changes the interface: `sudo ethtool -C eth0 rx-usecs 0`.
    fn remedy(&self, command: &str, values: &str) -> String {
        format!("sudo {} {values}", self.command(command))
    }

    /// A tenth of the period: what one cause alone may cost, ns.
    fn tenth_ns(&self) -> u64 {
        self.period_ns / 10
    }

    /// The finding that nothing applies, where software makes the interface.
    fn hardware(&self, id: &str, lack: &str) -> Result<(), Box<Finding>> {
        if self.nic.hardware != Some(Hardware::Software) {
            return Ok(());
        }
        let kind = self.nic.driver.as_deref().unwrap_or_default();
        let read = self.evidence("ip -d link show", kind);
        Err(Box::new(not_applicable(id, format!("{lack}: software makes this interface"), read)))
    }

    /// What was told, or the finding that it was not.
    fn known<'b, T>(&self, id: &str, what: &str, told: &'b Told<T>, command: &str) -> Result<&'b T, Box<Finding>> {
        match told {
            Told::Known(value) => Ok(value),
            Told::NotSupported => Err(Box::new(not_applicable(
                id,
                format!("the driver knows no {what}"),
                self.evidence(command, "not supported"),
            ))),
            Told::Unknown(why) => {
                Err(Box::new(unknown(id, format!("{what} not readable"), self.evidence(command, why))))
            }
        }
    }
}

/// A time in microseconds, with a digit behind the point where there is something to show.
fn micros(ns: u64) -> String {
    if ns.is_multiple_of(1000) { format!("{} us", ns / 1000) } else { format!("{:.1} us", ns as f64 / 1000.0) }
}

/// `on`, `off` or `not told`.
fn on_off(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "on",
        Some(false) => "off",
        None => "not told",
    }
}

/// Runs a check that stops at the first thing that was not told.
fn judged(judge: impl FnOnce() -> Result<Finding, Box<Finding>>) -> Finding {
    judge().unwrap_or_else(|finding| *finding)
}
