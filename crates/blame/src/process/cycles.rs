//! The cycles of one thread, from a wake-up to the next sleep.

use record::{Cycle, Histogram, Overruns, ProcessThread, ThreadTimes};

use crate::time::signed_ns;

/// The cycles of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Cycles {
    /// The current cycle.
    now: Option<Open>,
    /// Start of the last cycle, ns on CLOCK_MONOTONIC; `None` if cycles may be missing since then.
    last_begun_ns: Option<u64>,
    count: u64,
    cut: u64,
    run_time: Histogram,
    response: Histogram,
    interval: Histogram,
    longest: Option<Cycle>,
    overrun_by: Overruns,
    skipped: u64,
    /// Largest |interval - period|, ns.
    jitter_ns: u64,
}

/// A cycle that has not ended.
#[derive(Debug, Clone, Copy)]
struct Open {
    begun_ns: u64,
    times: ThreadTimes,
}

impl Cycles {
    /// True if no cycle began.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.now.is_none()
    }

    /// The times of the current cycle.
    pub fn times(&mut self) -> Option<&mut ThreadTimes> {
        self.now.as_mut().map(|open| &mut open.times)
    }

    /// Begins a cycle at a wake-up, unless the thread only waited within its current cycle.
    pub fn begin(&mut self, at_ns: u64, period_ns: Option<u64>) {
        if self.now.is_some() {
            return;
        }
        if let Some(before_ns) = self.last_begun_ns {
            let interval_ns = at_ns.saturating_sub(before_ns);
            self.interval.record(signed_ns(interval_ns));
            if let Some(period_ns) = period_ns {
                self.jitter_ns = self.jitter_ns.max(interval_ns.abs_diff(period_ns));
                self.skipped += skipped(interval_ns, period_ns);
            }
        }
        self.last_begun_ns = Some(at_ns);
        self.now = Some(Open { begun_ns: at_ns, times: ThreadTimes::default() });
    }

    /// Ends the cycle, because the thread goes to sleep. `start_ns` is the start of the run.
    pub fn end(&mut self, start_ns: u64, period_ns: Option<u64>) {
        let Some(Open { begun_ns, times }) = self.now.take() else { return };
        let cycle = Cycle { at_ns: begun_ns.saturating_sub(start_ns), times };
        let response_ns = cycle.response_ns();
        self.count += 1;
        self.run_time.record(signed_ns(times.running_ns));
        self.response.record(signed_ns(response_ns));
        if self.longest.is_none_or(|longest| response_ns > longest.response_ns()) {
            self.longest = Some(cycle);
        }
        if period_ns.is_some_and(|period_ns| response_ns > period_ns) {
            count(&mut self.overrun_by, &times);
        }
    }

    /// Drops the current cycle and its interval, because events are missing.
    pub fn cut(&mut self) {
        self.cut += u64::from(self.now.take().is_some());
        self.last_begun_ns = None;
    }

    /// Ends the run at `at_ns` on CLOCK_MONOTONIC while the thread still lives; counts the deadlines missed until then.
    pub fn stop(&mut self, at_ns: u64, period_ns: u64) {
        if let Some(open) = self.now.filter(|open| open.times.total_ns() > period_ns) {
            count(&mut self.overrun_by, &open.times);
        }
        if let Some(before_ns) = self.last_begun_ns {
            self.skipped += skipped(at_ns.saturating_sub(before_ns), period_ns);
        }
    }

    /// Writes the figures into `thread`. Returns the missed deadlines and the largest deviation from the period, ns;
    /// both are 0 without a period.
    pub fn write_to(&self, period_ns: Option<u64>, thread: &mut ProcessThread) -> (u64, u64) {
        let Overruns { by_work, by_waiting, by_blocking } = self.overrun_by;
        thread.cycles = self.count;
        thread.cycles_cut = self.cut;
        thread.run_time.clone_from(&self.run_time);
        thread.response.clone_from(&self.response);
        thread.interval.clone_from(&self.interval);
        thread.longest = self.longest;
        thread.overruns = by_work + by_waiting + by_blocking;
        thread.overrun_by = (period_ns.is_some() && thread.overruns > 0).then_some(self.overrun_by);
        thread.skipped = self.skipped;
        (thread.overruns + thread.skipped, self.jitter_ns)
    }
}

/// Counts an overrun by the largest part of its time.
fn count(overruns: &mut Overruns, times: &ThreadTimes) {
    let largest = times.running_ns.max(times.waiting_ns()).max(times.blocked_ns);
    if times.running_ns == largest {
        overruns.by_work += 1;
    } else if times.waiting_ns() == largest {
        overruns.by_waiting += 1;
    } else {
        overruns.by_blocking += 1;
    }
}

/// Number of cycles missing in an interval: 0 up to one and a half periods, 1 up to two and a half, ...
fn skipped(interval_ns: u64, period_ns: u64) -> u64 {
    let period_ns = period_ns.max(1);
    (interval_ns.saturating_add(period_ns.div_ceil(2)).saturating_sub(1) / period_ns).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_missing_cycles_from_one_and_a_half_periods() {
        let skipped_at = |tenths: u64| skipped(tenths * 100, 1000);
        assert_eq!([0, 5, 10, 15, 16, 20, 25, 26, 35, 36].map(skipped_at), [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]);
        assert_eq!((skipped(3, 1), skipped(u64::MAX, 0)), (2, u64::MAX - 2));
    }

    #[test]
    fn counts_deadlines_missed_at_the_end() {
        let mut cycles = Cycles::default();
        cycles.begin(1000, Some(100));
        cycles.times().unwrap().running_ns = 30;
        cycles.end(0, Some(100));
        cycles.stop(1100, 100);
        assert_eq!(cycles.write_to(Some(100), &mut ProcessThread::default()).0, 0, "the next cycle is due now");
        cycles.stop(1290, 100);
        assert_eq!(cycles.write_to(Some(100), &mut ProcessThread::default()).0, 2);
        cycles.begin(1300, None);
        cycles.times().unwrap().preempted_ns = 101;
        cycles.stop(1401, 100);
        let mut thread = ProcessThread::default();
        cycles.write_to(Some(100), &mut thread);
        assert_eq!(thread.overrun_by, Some(Overruns { by_waiting: 1, ..Overruns::default() }));
    }
}
