//! The rules for real-time threads that a thread broke.
//!
//! They are those of the kernel's runtime verification monitors `rtapp` (`pagefault`, `sleep`), `nomiss` and `stall`
//! (Documentation/trace/rv), as far as the trace of the program shows them. The reports of these monitors are counted
//! separately.

use std::cmp::Reverse;

use record::{BREACHES_KEPT, Breach, Monitor, MonitorReports, Rule};

use crate::Task;

/// Breaches that differ in rule or cause. More are counted together.
const MOST_KINDS: usize = 64;
/// Cause of the breaches beyond [`MOST_KINDS`].
const OTHERS: &str = "others";
/// A thread that waited this long for a CPU was stalled, ns: the default of the kernel's monitor, 1000 jiffies, at 1000
/// Hz.
pub(super) const STALL_NS: u64 = 1_000_000_000;

/// The breaches of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Breaches(Vec<Breach>);

impl Breaches {
    /// Counts a breach at `at_ns` after the start of the run. `by` is what broke the rule: a call or a thread.
    pub fn add(&mut self, rule: Rule, by: &str, at_ns: u64) {
        let known = |by: &str, all: &[Breach]| all.iter().position(|breach| breach.rule == rule && breach.by == by);
        let by = if known(by, &self.0).is_some() || self.0.len() < MOST_KINDS { by } else { OTHERS };
        let index = known(by, &self.0).unwrap_or_else(|| {
            self.0.push(Breach { rule, by: by.to_owned(), count: 0, first_ns: at_ns, last_ns: at_ns });
            self.0.len() - 1
        });
        let breach = &mut self.0[index];
        breach.count += 1;
        breach.last_ns = at_ns;
    }

    /// The most frequent ones.
    pub fn to_record(&self) -> Vec<Breach> {
        let mut breaches = self.0.clone();
        breaches.sort_by_key(|breach| Reverse(breach.count));
        breaches.truncate(BREACHES_KEPT);
        breaches
    }
}

/// The reports of the kernel's monitors about one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Reports(Vec<MonitorReports>);

impl Reports {
    /// Counts a report at `at_ns` after the start of the run.
    pub fn add(&mut self, monitor: Monitor, at_ns: u64) {
        let index = self.0.iter().position(|reports| reports.monitor == monitor).unwrap_or_else(|| {
            self.0.push(MonitorReports { monitor, count: 0, first_ns: at_ns, last_ns: at_ns });
            self.0.len() - 1
        });
        let reports = &mut self.0[index];
        reports.count += 1;
        reports.last_ns = at_ns;
    }

    /// All, in the order of the monitors.
    pub fn to_record(&self) -> Vec<MonitorReports> {
        let mut reports = self.0.clone();
        reports.sort_by_key(|reports| reports.monitor);
        reports
    }
}

/// True if a thread is under the rules: it has a real-time or deadline policy.
pub(super) fn is_realtime(task: Task) -> bool {
    task.priority < 99
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_rule_and_cause() {
        let mut breaches = Breaches::default();
        breaches.add(Rule::Sleep, "poll", 10);
        breaches.add(Rule::PageFault, "", 20);
        breaches.add(Rule::Sleep, "poll", 30);
        let poll = Breach { rule: Rule::Sleep, by: "poll".into(), count: 2, first_ns: 10, last_ns: 30 };
        assert_eq!(breaches.to_record()[0], poll);
        for number in 0..100 {
            breaches.add(Rule::WakeUp, &number.to_string(), 40);
        }
        assert_eq!(breaches.0.iter().map(|breach| breach.count).sum::<u64>(), 103);
        let others = breaches.to_record().into_iter().find(|breach| breach.by == OTHERS).unwrap();
        assert_eq!((others.count, breaches.0.len(), breaches.to_record().len()), (38, 65, BREACHES_KEPT));
    }
}
