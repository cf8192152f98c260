//! What a thread did in the recent past, to explain the waits of others for it.

use std::collections::VecDeque;

use super::calls::Lock;
use crate::Task;

/// The number of intervals that are kept per thread.
const KEPT: usize = 256;

/// What a thread did during an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// It was on a CPU.
    Ran,
    /// It was ready to run, but had no CPU because of this thread, if that is known.
    NoCpu { by: Option<Task> },
    /// It waited for a lock, until this thread released it; `None` if that is unknown.
    TookLock { lock: Lock, from: Option<u32> },
    /// It slept, or waited for an event.
    Slept,
    /// It waited for something else.
    Waited,
    /// Events are missing.
    Unknown,
}

/// What a thread did from one time to another, ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub from_ns: u64,
    pub to_ns: u64,
    pub activity: Activity,
}

/// The last intervals of a thread, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct History(VecDeque<Interval>);

impl History {
    /// Adds the next interval, or prolongs the last one if the activity is the same. Drops the oldest ones.
    pub fn add(&mut self, interval: Interval) {
        if interval.from_ns == interval.to_ns {
            return;
        }
        if let Some(last) = self.0.back_mut()
            && last.to_ns == interval.from_ns
            && last.activity == interval.activity
        {
            last.to_ns = interval.to_ns;
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(interval);
    }

    /// The intervals within these times (ns on CLOCK_MONOTONIC), cut to them, the newest first.
    pub fn within(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = Interval> + '_ {
        self.0.iter().rev().take_while(move |interval| interval.to_ns > from_ns).filter_map(move |interval| {
            let (start_ns, end_ns) = (interval.from_ns.max(from_ns), interval.to_ns.min(to_ns));
            (start_ns < end_ns).then_some(Interval { from_ns: start_ns, to_ns: end_ns, ..*interval })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_cut_to_the_wanted_time() {
        let mut history = History::default();
        let interval = |from_ns: u64, to_ns| {
            let activity = if (from_ns / 10).is_multiple_of(2) { Activity::Ran } else { Activity::Waited };
            Interval { from_ns, to_ns, activity }
        };
        let times = [(0, 10), (10, 10), (10, 20), (20, 30)];
        times.iter().for_each(|&(from_ns, to_ns)| history.add(interval(from_ns, to_ns)));
        assert_eq!(history.within(5, 25).collect::<Vec<_>>(), [interval(20, 25), interval(10, 20), interval(5, 10)]);
        (3..1000).for_each(|number| history.add(interval(10 * number, 10 * number + 10)));
        assert_eq!(history.within(0, u64::MAX).count(), KEPT);
    }

    #[test]
    fn equal_neighbours_are_one_interval() {
        let mut history = History::default();
        let waited = Interval { from_ns: 0, to_ns: 10, activity: Activity::Waited };
        history.add(waited);
        for from_ns in 10..1000 {
            history.add(Interval { from_ns, to_ns: from_ns + 1, activity: Activity::Ran });
        }
        let ran = Interval { from_ns: 10, to_ns: 1000, activity: Activity::Ran };
        assert_eq!(history.within(0, u64::MAX).collect::<Vec<_>>(), [ran, waited]);
    }
}
