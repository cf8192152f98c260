//! The totals of one cause.

use std::collections::BTreeSet;

use record::{Cause, CauseKind};

use super::stalls::LedgerSpike;

/// Number of deadlines kept to find out whether they are periodic.
const MAX_STRIKES: usize = 1024;

/// A cause and the totals of its spikes.
#[derive(Debug, Clone)]
pub(super) struct CauseTotal {
    /// The cause; number, priority and detail are those of its worst spike.
    pub cause: Cause,
    pub count: u64,
    pub worst_ns: i64,
    pub total_ns: u64,
    pub cpus: BTreeSet<u32>,
    /// Thread id and priority of the thread with its worst spike.
    pub thread: (u32, i32),
    /// Indices of its phases, in order of their first spike.
    pub phases: Vec<usize>,
    /// The first deadlines that it made late, ns.
    pub strikes: Vec<u64>,
}

impl CauseTotal {
    /// A cause without spikes.
    pub fn new(cause: Cause) -> Self {
        Self {
            cause,
            count: 0,
            worst_ns: 0,
            total_ns: 0,
            cpus: BTreeSet::new(),
            thread: (0, 0),
            phases: Vec::new(),
            strikes: Vec::new(),
        }
    }

    /// Adds a spike. The spike is counted only if the cause is its main one (`is_main`).
    pub fn add_spike(&mut self, spike: &LedgerSpike, is_main: bool) {
        self.cpus.insert(spike.cpu);
        if !self.phases.contains(&spike.phase) {
            self.phases.push(spike.phase);
        }
        if !is_main {
            return;
        }
        self.count += 1;
        if spike.lateness_ns > self.worst_ns {
            (self.worst_ns, self.thread) = (spike.lateness_ns, spike.thread);
            let Cause { number, priority, ref detail, .. } = spike.main;
            if spike.main.kind == self.cause.kind {
                (self.cause.number, self.cause.priority) = (number, priority);
                self.cause.detail.clone_from(detail);
            }
        }
        if self.strikes.len() < MAX_STRIKES {
            self.strikes.push(spike.deadline_ns);
        }
    }
}

/// The name under which a cause is counted: the per-CPU threads of the kernel share one name.
pub(super) fn family(cause: &Cause) -> &str {
    let name = cause.name.as_str();
    if !matches!(cause.kind, CauseKind::Thread | CauseKind::LateInterrupt) {
        return name;
    }
    match name.split_once('/') {
        Some(("kworker", _)) => "kworker",
        Some((family, cpu)) if !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit()) => family,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cpu_threads_share_a_name() {
        let family = |name: &str| family(&Cause::new(CauseKind::Thread, name)).to_owned();
        for (name, expected) in [
            ("kworker/1:2-events", "kworker"),
            ("kworker/u8:3", "kworker"),
            ("ksoftirqd/3", "ksoftirqd"),
            ("migration/11", "migration"),
            ("rcuc/0", "rcuc"),
            ("irq/24-nvme0q1", "irq/24-nvme0q1"),
            ("stress-ng-cpu", "stress-ng-cpu"),
            ("a/b", "a/b"),
            ("x/", "x/"),
        ] {
            assert_eq!(family(name), expected);
        }
        assert_eq!(super::family(&Cause::new(CauseKind::Interrupt, "uart/0")), "uart/0");
    }
}
