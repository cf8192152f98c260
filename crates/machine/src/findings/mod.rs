//! Settings of the machine that may cause latency, each with the reason and a remedy. Each finding has one function.

mod cpu;
mod evl;
mod host;
mod kernel;
mod memory;
mod rights;

use record::{Finding, FindingState, Machine};

use crate::{CpuList, Root, Unreadable, cpus};

/// The check of one finding.
type Check = fn(&CheckContext) -> Finding;

/// The checks of all modules. To add a finding, write its function and add it to `CHECKS` of its module.
const GROUPS: [&[Check]; 6] = [kernel::CHECKS, cpu::CHECKS, host::CHECKS, memory::CHECKS, rights::CHECKS, evl::CHECKS];

/// Checks everything that is known to cause latency. Returns all findings, always in this order.
///
/// A value that cannot be read is [`Unknown`](FindingState::Unknown), and a feature that the machine lacks is
/// [`NotApplicable`](FindingState::NotApplicable); neither is ever reported as [`Ok`](FindingState::Ok).
#[must_use]
pub fn findings(root: &Root, machine: &Machine) -> Vec<Finding> {
    let context = CheckContext { root, machine, online: cpus::online_cpus(root) };
    let mut findings: Vec<Finding> = GROUPS.into_iter().flatten().map(|check| check(&context)).collect();
    if context.in_container() {
        // The rights of a container are set where it is started; everything else is set on the host.
        let of_host = |finding: &&mut Finding| !finding.remedy.is_empty() && !finding.id.starts_with("rights.");
        findings.iter_mut().filter(of_host).for_each(|finding| finding.remedy.insert_str(0, "on the host: "));
    }
    findings
}

/// The machine, for the checks.
struct CheckContext<'a> {
    root: &'a Root,
    machine: &'a Machine,
    online: CpuList,
}

impl CheckContext<'_> {
    /// `path = value`, or the reason why it cannot be read.
    fn evidence(&self, path: &str) -> String {
        match self.root.try_read(path) {
            Ok(value) => evidence(path, &value),
            Err(why) => without(path, why),
        }
    }

    /// True if this process is known to run in a container.
    fn in_container(&self) -> bool {
        self.machine.container.as_deref().is_some_and(|kind| kind != "none")
    }

    /// True if this machine is known to be a guest, whose view of the CPUs is the host's choice.
    fn is_guest(&self) -> bool {
        self.machine.hypervisor.as_deref().is_some_and(|kind| kind != "none")
    }

    /// The last online CPU, for examples in remedies. CPU 0 is a bad example because the kernel uses it most.
    fn last_cpu(&self) -> u32 {
        self.online.last().unwrap_or(0)
    }
}

/// `path = value` in one line.
fn evidence(path: &str, value: &str) -> String {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("/{path} = {}", if value.is_empty() { "(empty)" } else { &value })
}

/// The path of an unreadable file, with the reason.
fn without(path: &str, why: Unreadable) -> String {
    let why = match why {
        Unreadable::Absent => "does not exist",
        Unreadable::Forbidden => "may not be read",
        Unreadable::Failed => "cannot be read",
    };
    format!("/{path} {why}")
}

/// A finding without reason and remedy.
fn without_advice(id: &str, state: FindingState, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    let (why, remedy) = (String::new(), String::new());
    Finding { id: id.to_owned(), state, title: title.into(), evidence: evidence.into(), why, remedy }
}

pub(crate) fn ok(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Ok, title, evidence)
}

pub(crate) fn not_applicable(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::NotApplicable, title, evidence)
}

pub(crate) fn unknown(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Unknown, title, evidence)
}

pub(crate) fn warn(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Warn, title, evidence)
}

pub(crate) fn fail(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Fail, title, evidence)
}

/// Adds the reason and the remedy.
pub(crate) trait Explain {
    fn because(self, why: impl Into<String>, remedy: impl Into<String>) -> Self;
}

impl Explain for Finding {
    fn because(mut self, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.why = why.into();
        self.remedy = remedy.into();
        self
    }
}
