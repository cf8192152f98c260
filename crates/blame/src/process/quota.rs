//! How long the CPU quota of the program's control group stopped its threads.

use std::collections::VecDeque;

use crate::{Task, event::Comm};
use record::CycleCause;

/// The number of readings that are kept: a few seconds.
const KEPT: usize = 256;

/// Readings of the time for which the quota stopped threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Quota(VecDeque<Reading>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    at_ns: u64,
    /// Since the group was created, ns.
    stopped_ns: u64,
}

impl Quota {
    /// Adds a reading at `at_ns` on CLOCK_MONOTONIC.
    pub fn add(&mut self, at_ns: u64, stopped_ns: u64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Reading { at_ns, stopped_ns });
    }

    /// True if the quota has stopped threads since the first kept reading.
    pub fn has_stopped(&self) -> bool {
        let (first, last) = (self.0.front(), self.0.back());
        first.zip(last).is_some_and(|(first, last)| last.stopped_ns > first.stopped_ns)
    }

    /// Time for which threads of the group were stopped, from the last reading before `from_ns` to the first one after
    /// `to_ns`, ns; 0 if it was not read.
    fn stopped_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let before = self.0.iter().rev().find(|reading| reading.at_ns <= from_ns).or(self.0.front());
        let after = self.0.iter().find(|reading| reading.at_ns >= to_ns).or(self.0.back());
        match (before, after) {
            (Some(before), Some(after)) => after.stopped_ns.saturating_sub(before.stopped_ns),
            _ => 0,
        }
    }

    /// Why a thread of this priority had no CPU from `from_ns` to `to_ns`, although it was ready, while `by` ran.
    pub fn cause(&self, priority: i32, by: Task, from_ns: u64, to_ns: u64) -> CycleCause {
        let idle = by.pid == 0;
        match priority {
            // The stop class is above the deadline policy.
            ..0 if by.priority >= 0 && !is_stopper(by.comm) => CycleCause::DeadlineBudget,
            0..100 if idle || by.priority >= 100 => CycleCause::RealtimeLimit,
            100.. => {
                let (waited_ns, stopped_ns) = (to_ns.saturating_sub(from_ns), self.stopped_ns(from_ns, to_ns));
                // Another thread also runs while the quota stops this one.
                let enough_ns = if idle { 1 } else { waited_ns - waited_ns / 10 };
                match (stopped_ns >= enough_ns.max(1), idle) {
                    (true, _) => CycleCause::Quota,
                    (false, true) => CycleCause::Withheld,
                    (false, false) => CycleCause::Preemption,
                }
            }
            _ => CycleCause::Preemption,
        }
    }
}

/// True for the threads that move others between CPUs: `migration/0`.
fn is_stopper(comm: Comm) -> bool {
    comm.0.starts_with(b"migration/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_tell_limits_from_preemption() {
        let mut quota = Quota::default();
        let task = |pid, priority, comm: &str| Task { pid, priority, comm: Comm::new(comm) };
        let (idle, fair, fifo) = (task(0, 120, "swapper/0"), task(5, 120, "x"), task(6, 49, "y"));
        let stopper = task(7, 0, "migration/0");
        let cause = |quota: &Quota, priority, by| quota.cause(priority, by, 100, 200);
        assert_eq!([idle, fair, fifo].map(|by| cause(&quota, -1, by)), [CycleCause::DeadlineBudget; 3]);
        assert_eq!(cause(&quota, -1, stopper), CycleCause::Preemption);
        assert_eq!([idle, fair].map(|by| cause(&quota, 19, by)), [CycleCause::RealtimeLimit; 2]);
        assert_eq!(cause(&quota, 60, fifo), CycleCause::Preemption);
        assert_eq!([idle, fair].map(|by| cause(&quota, 120, by)), [CycleCause::Withheld, CycleCause::Preemption]);
        [(50, 7), (150, 7), (250, 90)].iter().for_each(|&(at_ns, stopped_ns)| quota.add(at_ns, stopped_ns));
        assert_eq!([idle, fair].map(|by| cause(&quota, 120, by)), [CycleCause::Quota, CycleCause::Preemption]);
        quota.add(260, 100);
        quota.0.remove(2);
        assert_eq!(cause(&quota, 120, fair), CycleCause::Quota);
    }
}
