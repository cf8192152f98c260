//! Settings of an interface that may cause latency, each with the reason and a remedy: pure functions of a [`Nic`].

mod clock;
mod link;
mod offloads;
mod queues;
mod stamps;
mod threads;
mod timing;

use record::Finding;

use super::{Hardware, Nic, Reading};
use crate::findings::{not_applicable, unknown};

/// The check of one finding.
type Check = fn(&CheckContext) -> Finding;

/// The checks of all modules. To add a finding, write its function and add it to `CHECKS` of its module;
/// `docs/check.md` has a row for each finding.
const GROUPS: [&[Check]; 7] =
    [link::CHECKS, timing::CHECKS, queues::CHECKS, offloads::CHECKS, threads::CHECKS, stamps::CHECKS, clock::CHECKS];

/// Checks an interface that must carry one frame per `period_ns`. Returns all findings, always in this order.
///
/// A value that cannot be read is [`Unknown`](record::FindingState::Unknown), and a feature that the interface lacks is
/// [`NotApplicable`](record::FindingState::NotApplicable); neither is ever reported as
/// [`Ok`](record::FindingState::Ok).
#[must_use]
pub fn findings(nic: &Nic, period_ns: u64) -> Vec<Finding> {
    let context = CheckContext { nic, period_ns };
    GROUPS.into_iter().flatten().map(|check| check(&context)).collect()
}

/// The interface and the period, for the checks.
struct CheckContext<'a> {
    nic: &'a Nic,
    period_ns: u64,
}

impl CheckContext<'_> {
    /// A command that ends with the interface's name: `ethtool -c eth0`.
    fn command(&self, command: &str) -> String {
        format!("{command} {}", self.nic.interface)
    }

    /// The evidence: `ethtool -c eth0: rx-usecs = 20`.
    fn evidence(&self, command: &str, value: &str) -> String {
        format!("{}: {value}", self.command(command))
    }

    /// The command that changes the interface: `sudo ethtool -C eth0 rx-usecs 0`.
    fn remedy(&self, command: &str, values: &str) -> String {
        format!("sudo {} {values}", self.command(command))
    }

    /// A tenth of the period: the limit for the cost of a single cause, ns.
    fn tenth_ns(&self) -> u64 {
        self.period_ns / 10
    }

    /// `Err` with the finding that the check does not apply, if this is a software interface.
    fn hardware(&self, id: &str, lack: &str) -> Result<(), Box<Finding>> {
        if self.nic.hardware != Some(Hardware::Software) {
            return Ok(());
        }
        let kind = self.nic.driver.as_deref().unwrap_or_default();
        let read = self.evidence("ip -d link show", kind);
        Err(Box::new(not_applicable(id, format!("{lack}: this is a software interface"), read)))
    }

    /// The value that was read, or the finding that it is missing.
    fn known<'b, T>(
        &self,
        id: &str,
        what: &str,
        reading: &'b Reading<T>,
        command: &str,
    ) -> Result<&'b T, Box<Finding>> {
        match reading {
            Reading::Known(value) => Ok(value),
            Reading::NotSupported => Err(Box::new(not_applicable(
                id,
                format!("the driver does not support {what}"),
                self.evidence(command, "not supported"),
            ))),
            Reading::Unknown(why) => {
                Err(Box::new(unknown(id, format!("{what} not readable"), self.evidence(command, why))))
            }
        }
    }
}

/// A time in microseconds, with one decimal unless it is whole.
fn micros(ns: u64) -> String {
    if ns.is_multiple_of(1000) { format!("{} us", ns / 1000) } else { format!("{:.1} us", ns as f64 / 1000.0) }
}

/// `on`, `off` or `not reported`.
fn on_off(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "on",
        Some(false) => "off",
        None => "not reported",
    }
}

/// Runs a check that may stop early with a finding.
fn judged(judge: impl FnOnce() -> Result<Finding, Box<Finding>>) -> Finding {
    judge().unwrap_or_else(|finding| *finding)
}
