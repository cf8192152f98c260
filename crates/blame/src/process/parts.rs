//! The parts of a cycle: what its response time was spent on.

use std::{cmp::Reverse, collections::BTreeMap};

use record::{CycleCause, CyclePart, LockWait, ThreadTimes};

use super::{calls::Scope, locks::Wait, selection::RunConfig};
use crate::Task;

/// The parts of a cycle that has not ended, except for the time that the thread ran.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    parts: BTreeMap<CycleCause, Part>,
    /// The longest wait for a lock.
    lock: Option<LockWait>,
    /// CPU time in signal handlers, ns.
    pub handlers_ns: u64,
    pub signals: u64,
    pub page_faults: u64,
    /// Estimated CPU time of page faults, ns.
    pub faults_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    ns: u64,
    count: u64,
    longest_ns: u64,
    by: Option<Task>,
    call: &'static str,
}

impl Parts {
    /// Adds time to a cause. `by` took the CPU or ended the wait, in this system call.
    pub fn add(&mut self, cause: CycleCause, ns: u64, by: Option<Task>, call: &'static str) {
        let part = self.parts.entry(cause).or_default();
        part.ns += ns;
        part.count += 1;
        if ns >= part.longest_ns {
            (part.longest_ns, part.by, part.call) = (ns, by, call);
        }
    }

    /// Adds a wait for a lock, with its record.
    pub fn add_lock(&mut self, wait: &Wait, record: &LockWait) {
        if let Some(by) = wait.inverted_by(record.priority) {
            self.add(CycleCause::PriorityInversion, record.inverted_ns, Some(by), wait.call);
        }
        let rest_ns = wait.waited_ns.saturating_sub(record.inverted_ns);
        let cause = match (wait.lock.scope, wait.holders) {
            (Scope::Kernel, _) => CycleCause::KernelLock,
            (_, 0 | 1) => CycleCause::LockHeld,
            (_, _) => CycleCause::LockConvoy,
        };
        self.add(cause, rest_ns, wait.holder, wait.call);
        if self.lock.as_ref().is_none_or(|longest| record.waited_ns >= longest.waited_ns) {
            self.lock = Some(record.clone());
        }
    }

    /// True if they contain a sleep, or a wait for an event.
    pub fn contains_wait(&self) -> bool {
        [CycleCause::Sleep, CycleCause::Event].iter().any(|cause| self.parts.contains_key(cause))
    }

    /// The longest wait for a lock.
    pub fn lock(&self) -> Option<&LockWait> {
        self.lock.as_ref()
    }

    /// All parts, the longest first. `times` are those of the cycle.
    pub fn to_record(&self, times: &ThreadTimes, config: &RunConfig) -> Vec<CyclePart> {
        let mut parts = self.parts.clone();
        let handlers_ns = self.handlers_ns.min(times.running_ns);
        let computed_ns = times.running_ns - handlers_ns;
        let faults_ns = self.faults_ns.min(computed_ns);
        // A page fault or a signal counts for the cycle that it came in; its time can end in the next one.
        if self.page_faults > 0 || faults_ns > 0 {
            let part = parts.entry(CycleCause::PageFaults).or_default();
            part.ns += faults_ns;
            part.count = self.page_faults;
        }
        if self.signals > 0 || handlers_ns > 0 {
            parts.insert(CycleCause::SignalHandler, Part { ns: handlers_ns, count: self.signals, ..Part::default() });
        }
        parts.insert(CycleCause::OwnWork, Part { ns: computed_ns - faults_ns, ..Part::default() });
        let mut parts: Vec<CyclePart> = parts.into_iter().map(|(cause, part)| part.to_record(cause, config)).collect();
        parts.retain(|part| part.ns > 0 || part.count > 0);
        parts.sort_by_key(|part| Reverse(part.ns));
        parts
    }
}

impl Part {
    fn to_record(self, cause: CycleCause, config: &RunConfig) -> CyclePart {
        let by = self.by.filter(|task| task.pid != 0);
        CyclePart {
            cause,
            ns: self.ns,
            count: self.count,
            by: by.map(|task| task.comm.to_string()).unwrap_or_default(),
            by_tid: by.map_or(0, |task| task.pid),
            own: by.is_some_and(|task| config.is_own(task.pid)),
            call: self.call.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;

    #[test]
    fn times_of_handlers_and_faults_from_the_cycle_before_are_parts_too() {
        let parts = Parts { handlers_ns: 3, faults_ns: 2, ..Parts::default() };
        let times = ThreadTimes { running_ns: 10, ..ThreadTimes::default() };
        let parts = parts.to_record(&times, &RunConfig::new(0, 0, Selection::default()));
        assert_eq!(
            parts.iter().map(|part| (part.cause, part.ns, part.count)).collect::<Vec<_>>(),
            [(CycleCause::OwnWork, 5, 0), (CycleCause::SignalHandler, 3, 0), (CycleCause::PageFaults, 2, 0)]
        );
    }
}
