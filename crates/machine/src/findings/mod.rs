//! What about the machine may cost punctuality, why, and what to do about it. One function a finding.

mod cpu;
mod kernel;
mod memory;
mod rights;

use record::{Finding, FindingState, Machine};

use crate::{CpuList, Root, Unreadable, cpus};

/// Looks at everything known to cost punctuality: one finding each, always all of them, in this order.
///
/// What cannot be read is [`Unknown`](FindingState::Unknown) and what this machine does not have is
/// [`NotApplicable`](FindingState::NotApplicable); neither is ever taken for [`Ok`](FindingState::Ok).
#[must_use]
pub fn findings(root: &Root, machine: &Machine) -> Vec<Finding> {
    let look = Look { root, machine, online: cpus::online(root) };
    let checks: [fn(&Look) -> Finding; 17] = [
        kernel::preempt,
        kernel::rt_throttling,
        kernel::timer_migration,
        kernel::clock_source,
        cpu::governor,
        cpu::idle_states,
        cpu::latency_request,
        cpu::isolated,
        cpu::smt,
        cpu::mitigations,
        kernel::hypervisor,
        kernel::irq_balance,
        memory::swap,
        memory::thp,
        rights::realtime,
        rights::rt_budget,
        rights::memlock,
    ];
    let mut findings: Vec<Finding> = checks.iter().map(|check| check(&look)).collect();
    if look.in_container() {
        // What a container may do is decided where it is started; all else is the host's to set.
        let of_host = |finding: &&mut Finding| !finding.remedy.is_empty() && !finding.id.starts_with("rights.");
        findings.iter_mut().filter(of_host).for_each(|finding| finding.remedy.insert_str(0, "on the host: "));
    }
    findings
}

/// What the checks look at.
struct Look<'a> {
    root: &'a Root,
    machine: &'a Machine,
    online: CpuList,
}

impl Look<'_> {
    /// `path = value`, or why there is no value.
    fn evidence(&self, path: &str) -> String {
        match self.root.try_read(path) {
            Ok(value) => evidence(path, &value),
            Err(why) => without(path, why),
        }
    }

    /// Whether this process is in a container, as far as can be known.
    fn in_container(&self) -> bool {
        self.machine.container.as_deref().is_some_and(|kind| kind != "none")
    }

    /// Whether this machine is known to be a guest, which sees of the CPUs what the host shows it.
    fn is_guest(&self) -> bool {
        self.machine.hypervisor.as_deref().is_some_and(|kind| kind != "none")
    }

    /// The last online CPU, which examples in remedies name: CPU 0 has work of its own.
    fn last_cpu(&self) -> u32 {
        self.online.last().unwrap_or(0)
    }
}

/// `path = value`, in one line.
fn evidence(path: &str, value: &str) -> String {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("/{path} = {}", if value.is_empty() { "(empty)" } else { &value })
}

/// A path that could not be read, and why.
fn without(path: &str, why: Unreadable) -> String {
    let why = match why {
        Unreadable::Absent => "does not exist",
        Unreadable::Forbidden => "may not be read",
        Unreadable::Failed => "cannot be read",
    };
    format!("/{path} {why}")
}

/// A finding that needs no action.
fn quiet(id: &str, state: FindingState, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    let (why, remedy) = (String::new(), String::new());
    Finding { id: id.to_owned(), state, title: title.into(), evidence: evidence.into(), why, remedy }
}

pub(crate) fn ok(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    quiet(id, FindingState::Ok, title, evidence)
}

pub(crate) fn not_applicable(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    quiet(id, FindingState::NotApplicable, title, evidence)
}

pub(crate) fn unknown(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    quiet(id, FindingState::Unknown, title, evidence)
}

pub(crate) fn warn(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    quiet(id, FindingState::Warn, title, evidence)
}

pub(crate) fn fail(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    quiet(id, FindingState::Fail, title, evidence)
}

/// Adds why it matters and what to do.
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
