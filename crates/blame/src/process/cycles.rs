//! The cycles of one thread, from release to completion.

use std::cmp::Reverse;

use record::{CYCLES_KEPT, CauseCount, Cycle, CycleCause, CyclePart, Histogram, Overruns, ProcessThread, ThreadTimes};

use super::{parts::Parts, selection::RunConfig, waits::Timeout};
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
    /// A cycle that was cut, until its end at the latest is known.
    cut_off: Option<CutOff>,
    /// The longest time that a cut cycle can have taken, ns.
    longest_cut_ns: u64,
    run_time: Histogram,
    response: Histogram,
    interval: Histogram,
    /// The cycles with the longest response times, the longest first.
    worst: Vec<Cycle>,
    /// Cycles by main cause: the overruns if there is a period, else all.
    causes: Vec<CauseCount>,
    overrun_by: Overruns,
    /// The largest part of the last cycle.
    last_largest: Largest,
    /// What delayed the last cycle most; of a cycle that an earlier one delayed, what delayed that one.
    last_main: Option<CyclePart>,
    skipped: u64,
    /// The sum of the intervals, ns, and their number.
    intervals: (u64, u64),
    /// Largest |interval - period|, ns.
    jitter_ns: u64,
    start: Start,
    /// Time from the last release to the end of the thread, ns; 0 if it has not ended.
    ending_ns: u64,
    /// Time that the thread ran or waited for a CPU since then, ns.
    ending_work_ns: u64,
}

/// A cycle that was cut.
#[derive(Debug, Clone, Copy)]
struct CutOff {
    /// Its release, ns on CLOCK_MONOTONIC.
    begun_ns: u64,
    /// Cycles that events started since then; `None` if the cut was not a change to such cycles.
    events: Option<u8>,
}

impl CutOff {
    /// More cycles that events start are other work, not a part of the cut cycle.
    const MOST_EVENTS: u8 = 32;
}

/// The change to regular sleeps. The interval before the first sleep's end is no interval between cycles if regular
/// cycles follow: the program started, or slept until a common start time.
#[derive(Debug, Clone, Copy, Default)]
enum Start {
    /// It is over, or there was none.
    #[default]
    Over,
    /// The first sleep has not ended.
    Sleeps,
    /// No regular interval has followed the first one, ns.
    Irregular(u64),
}

/// A cycle that has not ended.
#[derive(Debug, Clone)]
pub(super) struct Open {
    /// Its release, ns on CLOCK_MONOTONIC.
    begun_ns: u64,
    /// Time from the release until the thread was woken, or its previous cycle was complete, ns.
    before_ns: u64,
    /// Since then.
    pub times: ThreadTimes,
    pub parts: Parts,
    /// True if it is a cycle only unless the thread continues the sleep that a signal interrupted.
    is_tentative: bool,
    /// True if the thread has waited for nothing since it started. It is a cycle only if the thread ends in it.
    is_start: bool,
}

/// The largest part of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Largest {
    #[default]
    Work,
    Handlers,
    Faults,
    Waiting,
    LateTimer,
    Blocking,
}

/// The release of a cycle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Released {
    /// When the cycle should start, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// When the thread was woken, or its previous cycle was complete, ns on CLOCK_MONOTONIC.
    pub noticed_ns: u64,
    /// The latest time at which it should be noticed: later than `at_ns` by the timer slack, ns on CLOCK_MONOTONIC.
    pub latest_ns: u64,
    /// The cause of the time after that.
    pub late_by: CycleCause,
}

impl Released {
    /// A release by an event.
    pub fn at(at_ns: u64) -> Self {
        Self { at_ns, noticed_ns: at_ns, latest_ns: at_ns, late_by: CycleCause::LateTimer }
    }

    /// A release by a timeout, if that has ended at `at_ns`, or else by an event.
    pub fn by_timeout(at_ns: u64, timeout: Option<Timeout>) -> Self {
        let ended = timeout.filter(|timeout| timeout.expires_ns <= at_ns);
        let Timeout { expires_ns, latest_ns } = ended.unwrap_or(Timeout { expires_ns: at_ns, latest_ns: at_ns });
        Self { at_ns: expires_ns, latest_ns, ..Self::at(at_ns) }
    }
}

impl Cycles {
    /// True if no cycle began.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.now.is_none()
    }

    /// Number of cycles that ended.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest response time, ns; 0 without cycles.
    pub fn longest_ns(&self) -> u64 {
        self.worst.first().map_or(0, Cycle::response_ns)
    }

    /// Number of missed deadlines.
    pub fn missed(&self) -> u64 {
        self.overrun_by.total() + self.skipped
    }

    /// The current cycle.
    pub fn now(&mut self) -> Option<&mut Open> {
        self.now.as_mut()
    }

    /// The release of the current cycle, ns on CLOCK_MONOTONIC.
    pub fn begun_ns(&self) -> Option<u64> {
        self.now.as_ref().map(|open| open.begun_ns)
    }

    /// The release of the last cycle, ns on CLOCK_MONOTONIC; `None` if cycles may be missing since then.
    pub fn last_begun_ns(&self) -> Option<u64> {
        self.last_begun_ns
    }

    /// Begins a cycle, unless the thread only waited within its current cycle.
    pub fn begin(&mut self, released: Released, period_ns: Option<u64>) {
        if self.now.is_none() {
            self.complete_cut(released.noticed_ns, false);
            if let Some(CutOff { events: Some(events), .. }) = &mut self.cut_off {
                *events += 1;
                self.cut_off.take_if(|cut_off| cut_off.events > Some(CutOff::MOST_EVENTS));
            }
            self.add_release(released.at_ns, period_ns);
            self.now = Some(Open::new(released));
        }
    }

    /// Notes that the work of the cut cycle is complete at `at_ns` on CLOCK_MONOTONIC at the latest; after a change to cycles
    /// that events start, only if this is the `regular` end of the cycles before.
    pub fn complete_cut(&mut self, at_ns: u64, regular: bool) {
        let complete = self.cut_off.take_if(|cut_off| regular || cut_off.events.is_none());
        let cut_ns = complete.map_or(0, |cut_off| at_ns.saturating_sub(cut_off.begun_ns));
        self.longest_cut_ns = self.longest_cut_ns.max(cut_ns);
    }

    /// Begins the time from the start of the thread to its first wait.
    pub fn begin_start(&mut self, at_ns: u64) {
        if self.now.is_none() {
            self.now = Some(Open { is_start: true, ..Open::new(Released::at(at_ns)) });
        }
    }

    /// Notes that the thread executes another program, and so starts again.
    pub fn starts_again(&mut self) {
        if let Some(open) = &mut self.now {
            (open.is_start, self.last_begun_ns) = (true, None);
        }
    }

    /// True in the time from the start of the thread to its first wait.
    pub fn is_start(&self) -> bool {
        self.now.as_ref().is_some_and(|open| open.is_start)
    }

    /// Drops the current cycle, because it is only the start of the thread.
    pub fn drop_start(&mut self) {
        self.now = None;
    }

    /// Drops the current cycle, because the thread ends in it, and keeps its length.
    pub fn drop_end(&mut self, config: &RunConfig) {
        let Some(open) = self.now.take() else { return };
        self.ending_ns = open.to_record(config).response_ns();
        self.ending_work_ns = open.times.running_ns + open.times.waiting_ns();
    }

    /// True if the thread has slept or waited for an event in the current cycle.
    pub fn contains_wait(&self) -> bool {
        self.now.as_ref().is_some_and(|open| open.parts.contains_wait())
    }

    /// Drops the current cycle at `at_ns` on CLOCK_MONOTONIC, because its start and its end are different kinds of waits.
    pub fn drop_change(&mut self, at_ns: u64) {
        self.cut_now(None);
        self.complete_cut(at_ns, true);
        self.last_main = None;
    }

    /// Begins a cycle that counts only if it ends: a signal interrupted a sleep, which the thread may continue.
    pub fn begin_tentatively(&mut self, released: Released) {
        if self.now.is_none() {
            self.now = Some(Open { is_tentative: true, ..Open::new(released) });
        }
    }

    /// True if a signal interrupted the last sleep, and it is unknown if the thread continues it.
    pub fn is_tentative(&self) -> bool {
        self.now.as_ref().is_some_and(|open| open.is_tentative)
    }

    /// Drops the current cycle at `at_ns` on CLOCK_MONOTONIC, because the thread continues the sleep before it.
    pub fn drop_tentative(&mut self, at_ns: u64) {
        if let Some(open) = self.now.take_if(|open| open.is_tentative) {
            self.longest_cut_ns = self.longest_cut_ns.max(at_ns.saturating_sub(open.begun_ns));
        }
    }

    fn add_release(&mut self, at_ns: u64, period_ns: Option<u64>) {
        if let Some(before_ns) = self.last_begun_ns.replace(at_ns) {
            self.add_interval(at_ns.saturating_sub(before_ns), period_ns);
        }
    }

    fn add_interval(&mut self, interval_ns: u64, period_ns: Option<u64>) {
        match self.start {
            Start::Sleeps => {
                self.start = Start::Irregular(interval_ns);
                return;
            }
            Start::Irregular(_) if period_ns.is_none_or(|period_ns| skipped(interval_ns, period_ns) == 0) => {
                self.start = Start::Over;
            }
            Start::Irregular(_) | Start::Over => {}
        }
        self.count_interval(interval_ns, period_ns);
    }

    fn count_interval(&mut self, interval_ns: u64, period_ns: Option<u64>) {
        self.interval.record(signed_ns(interval_ns));
        if let Some(period_ns) = period_ns {
            self.jitter_ns = self.jitter_ns.max(interval_ns.abs_diff(period_ns));
            self.skipped += skipped(interval_ns, period_ns);
            self.intervals = (self.intervals.0.saturating_add(interval_ns), self.intervals.1 + 1);
        }
    }

    /// Cycles that did not start: those missing from single intervals or, if there are more, from all of them together. The
    /// intervals of a thread that is always a little too slow are each shorter than one and a half periods.
    fn skipped(&self, period_ns: Option<u64>) -> u64 {
        /// The period may be rounded by up to a hundredth.
        const ROUNDED: u64 = 100;
        let (sum_ns, count) = self.intervals;
        let due = period_ns.map_or(0, |period_ns| sum_ns / period_ns.max(1));
        let missing = due.saturating_sub(count);
        if missing * ROUNDED > count { self.skipped.max(missing) } else { self.skipped }
    }

    /// Notes that the thread begins its first regular sleep, or its first wait for an event.
    pub fn starts(&mut self, period_ns: Option<u64>) {
        if let Start::Irregular(interval_ns) = std::mem::replace(&mut self.start, Start::Sleeps) {
            self.count_interval(interval_ns, period_ns);
        }
    }

    /// Ends the cycle, because its work is complete. Returns its response time, ns; `None` if none goes on.
    pub fn end(&mut self, config: &RunConfig, period_ns: Option<u64>) -> Option<u64> {
        let open = self.now.take()?;
        if open.is_tentative {
            self.add_release(open.begun_ns, period_ns);
        }
        let mut cycle = open.to_record(config);
        let response_ns = cycle.response_ns();
        match cycle.parts.first() {
            Some(main) if main.cause == CycleCause::PreviousCycle => cycle.delayed_by.clone_from(&self.last_main),
            main => self.last_main = main.cloned(),
        }
        self.count += 1;
        self.run_time.record(signed_ns(cycle.times.running_ns));
        self.response.record(signed_ns(response_ns));
        let is_overrun = period_ns.is_some_and(|period_ns| response_ns > period_ns);
        self.last_largest = self.largest(&cycle);
        if is_overrun {
            self.last_largest.count(&mut self.overrun_by);
        }
        if is_overrun || period_ns.is_none() {
            self.count_cause(&cycle);
        }
        self.keep(cycle);
        Some(response_ns)
    }

    /// Counts a cycle by its main cause, or by that of the cycle that delayed it.
    fn count_cause(&mut self, cycle: &Cycle) {
        let Some(part) = cycle.parts.first() else { return };
        let cause = cycle.delayed_by.as_ref().map_or(part.cause, |main| main.cause);
        let index = self.causes.iter().position(|entry| entry.cause == cause).unwrap_or_else(|| {
            self.causes.push(CauseCount { cause, ..CauseCount::default() });
            self.causes.len() - 1
        });
        let entry = &mut self.causes[index];
        entry.cycles += 1;
        entry.ns += part.ns;
    }

    /// Keeps a cycle if it is one of the longest.
    fn keep(&mut self, cycle: Cycle) {
        let response_ns = cycle.response_ns();
        let place = self.worst.partition_point(|kept| kept.response_ns() >= response_ns);
        if place < CYCLES_KEPT {
            self.worst.truncate(CYCLES_KEPT - 1);
            self.worst.insert(place, cycle);
        }
    }

    /// Drops the current cycle and its interval, because its start or events are missing.
    pub fn cut(&mut self) {
        self.cut_now(None);
        (self.last_begun_ns, self.last_main) = (None, None);
    }

    /// Drops the current cycle and its interval, because events start the cycles from now on. It may still go on.
    pub fn cut_to_events(&mut self) {
        self.cut_now(Some(0));
        (self.last_begun_ns, self.last_main) = (None, None);
    }

    fn cut_now(&mut self, events: Option<u8>) {
        if let Some(open) = self.now.take().filter(|open| !open.is_start) {
            self.cut += 1;
            self.cut_off.get_or_insert(CutOff { begun_ns: open.begun_ns, events });
        }
    }

    /// Counts the first interval if no regular one has followed it. Call it at the end of the run.
    pub fn finish(&mut self, period_ns: Option<u64>) {
        if let Start::Irregular(interval_ns) = std::mem::take(&mut self.start) {
            self.count_interval(interval_ns, period_ns);
        }
    }

    /// Ends the run at `at_ns` on CLOCK_MONOTONIC while the thread still lives; counts the deadlines missed until then.
    pub fn stop(&mut self, at_ns: u64, period_ns: u64, config: &RunConfig) {
        if let Some(open) = self.now.as_ref().filter(|open| !open.is_tentative && !open.is_start) {
            let cycle = open.to_record(config);
            if cycle.response_ns() > period_ns {
                self.largest(&cycle).count(&mut self.overrun_by);
            }
        }
        if let Some(before_ns) = self.last_begun_ns {
            self.skipped += skipped(at_ns.saturating_sub(before_ns), period_ns);
        }
    }

    /// The largest part of a cycle. The wait for the previous cycle counts as the largest part of that one.
    fn largest(&self, cycle: &Cycle) -> Largest {
        let part_ns = |cause| cycle.parts.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum::<u64>();
        let times = &cycle.times;
        let mut parts = [
            (Largest::Work, part_ns(CycleCause::OwnWork)),
            (Largest::Handlers, part_ns(CycleCause::SignalHandler)),
            (Largest::Faults, part_ns(CycleCause::PageFaults)),
            (Largest::Waiting, times.waiting_ns()),
            (Largest::LateTimer, part_ns(CycleCause::LateTimer) + part_ns(CycleCause::TimerSlack)),
            (Largest::Blocking, times.blocked_ns),
        ];
        for (kind, ns) in &mut parts {
            if *kind == self.last_largest {
                *ns += part_ns(CycleCause::PreviousCycle);
            }
        }
        // The first of equally large ones.
        parts.into_iter().rev().max_by_key(|&(_, ns)| ns).map_or(Largest::Work, |(kind, _)| kind)
    }

    /// Writes the figures into `thread`. Returns the missed deadlines and the largest deviation from the period, ns;
    /// both are 0 without a period.
    pub fn write_to(&self, period_ns: Option<u64>, thread: &mut ProcessThread) -> (u64, u64) {
        thread.cycles = self.count;
        thread.cycles_cut = self.cut;
        thread.longest_cut_ns = self.longest_cut_ns;
        (thread.ending_ns, thread.ending_work_ns) = (self.ending_ns, self.ending_work_ns);
        thread.run_time.clone_from(&self.run_time);
        thread.response.clone_from(&self.response);
        thread.interval.clone_from(&self.interval);
        thread.longest = self.worst.first().cloned();
        thread.worst_cycles.clone_from(&self.worst);
        thread.causes.clone_from(&self.causes);
        thread.causes.sort_by_key(|entry| Reverse((entry.cycles, entry.ns)));
        thread.overruns = self.overrun_by.total();
        thread.overrun_by = (period_ns.is_some() && thread.overruns > 0).then_some(self.overrun_by);
        thread.skipped = self.skipped(period_ns);
        (thread.overruns + thread.skipped, self.jitter_ns)
    }
}

impl Open {
    fn new(released: Released) -> Self {
        let Released { at_ns, noticed_ns, latest_ns, late_by } = released;
        let before_ns = noticed_ns.saturating_sub(at_ns);
        let slack_ns = noticed_ns.min(latest_ns).saturating_sub(at_ns);
        let mut parts = Parts::default();
        for (cause, ns) in [(CycleCause::TimerSlack, slack_ns), (late_by, before_ns - slack_ns)] {
            if ns > 0 {
                parts.add(cause, ns, None, "");
            }
        }
        Self { begun_ns: at_ns, before_ns, times: ThreadTimes::default(), parts, is_tentative: false, is_start: false }
    }

    /// The cycle so far.
    pub fn to_record(&self, config: &RunConfig) -> Cycle {
        Cycle {
            at_ns: self.begun_ns.saturating_sub(config.start_ns),
            times: self.times,
            before_ns: self.before_ns,
            parts: self.parts.to_record(&self.times, config),
            lock: self.parts.lock().cloned(),
            delayed_by: None,
        }
    }
}

impl Largest {
    /// Counts an overrun.
    fn count(self, overruns: &mut Overruns) {
        match self {
            Self::Work => overruns.by_work += 1,
            Self::Handlers => overruns.by_handlers += 1,
            Self::Faults => overruns.by_faults += 1,
            Self::Waiting => overruns.by_waiting += 1,
            Self::LateTimer => overruns.by_late_timer += 1,
            Self::Blocking => overruns.by_blocking += 1,
        }
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
    use crate::Selection;

    #[test]
    fn counts_missing_cycles_from_one_and_a_half_periods() {
        let skipped_at = |tenths: u64| skipped(tenths * 100, 1000);
        assert_eq!([0, 5, 10, 15, 16, 20, 25, 26, 35, 36].map(skipped_at), [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]);
        assert_eq!((skipped(3, 1), skipped(u64::MAX, 0)), (2, u64::MAX - 2));
    }

    #[test]
    fn a_thread_that_is_always_a_little_too_slow_misses_cycles() {
        let missed = |interval_ns: u64| {
            let mut cycles = Cycles::default();
            for number in 0..401 {
                cycles.begin(Released::at(number * interval_ns), Some(1000));
                cycles.end(&RunConfig::new(0, 0, Selection::default()), Some(1000));
            }
            let mut thread = ProcessThread::default();
            cycles.write_to(Some(1000), &mut thread).0
        };
        assert_eq!([1000, 1009, 1200, 1499, 1600].map(missed), [0, 0, 80, 199, 400]);
    }

    #[test]
    fn a_cycle_that_is_not_counted_has_a_longest_time() {
        let longest_ns = |act: &dyn Fn(&mut Cycles)| {
            let mut cycles = Cycles::default();
            cycles.begin(Released::at(100), None);
            act(&mut cycles);
            let mut thread = ProcessThread::default();
            cycles.write_to(None, &mut thread);
            thread.longest_cut_ns
        };
        assert_eq!(longest_ns(&|_| ()), 0);
        let cut = |cycles: &mut Cycles| {
            cycles.cut();
            cycles.complete_cut(130, false);
            cycles.complete_cut(150, true);
        };
        assert_eq!(longest_ns(&cut), 30);
        assert_eq!(longest_ns(&|cycles| cycles.drop_change(140)), 40);
        let until_next = |cycles: &mut Cycles| {
            cycles.cut();
            cycles.begin(Released::at(170), None);
        };
        assert_eq!(longest_ns(&until_next), 70);
        let with_events = |events: u64| {
            move |cycles: &mut Cycles| {
                cycles.cut_to_events();
                for number in 1..=events {
                    cycles.begin(Released::at(100 + number), None);
                    cycles.now = None;
                }
                cycles.complete_cut(100 + events, false);
                cycles.complete_cut(200, true);
            }
        };
        assert_eq!(longest_ns(&with_events(20)), 100, "the thread sleeps regularly again");
        assert_eq!(longest_ns(&with_events(40)), 0, "other work");
        let signal = |cycles: &mut Cycles| {
            cycles.drop_start();
            cycles.begin_tentatively(Released::at(110));
            cycles.drop_tentative(160);
        };
        assert_eq!(longest_ns(&signal), 50);
    }

    #[test]
    fn a_first_long_sleep_is_no_missed_deadline_if_regular_cycles_follow() {
        let missed = |begins_ns: &[u64]| {
            let mut cycles = Cycles::default();
            for (index, &at_ns) in begins_ns.iter().enumerate() {
                cycles.begin(Released::at(at_ns), Some(100));
                cycles.end(&RunConfig::new(0, 0, Selection::default()), Some(100));
                if index == 0 {
                    cycles.starts(Some(100));
                }
            }
            cycles.finish(Some(100));
            cycles.write_to(Some(100), &mut ProcessThread::default())
        };
        assert_eq!(missed(&[0, 2000, 2100, 2201]), (0, 1));
        assert_eq!(missed(&[0, 2000]), (19, 1900), "it slept only once");
        assert_eq!(missed(&[0, 2000, 4000]), (38, 1900), "it never sleeps regularly");
        assert_eq!(missed(&[0, 2000, 2100, 2400]), (2, 200), "deadlines missed later count");
    }

    #[test]
    fn the_wait_for_a_throttled_cycle_is_no_work() {
        let mut cycles = Cycles::default();
        let config = RunConfig::new(0, 0, Selection::default());
        cycles.begin(Released::at(0), Some(100));
        cycles.now().unwrap().times = ThreadTimes { running_ns: 50, preempted_ns: 200, ..ThreadTimes::default() };
        cycles.end(&config, Some(100));
        let late = Released { noticed_ns: 250, late_by: CycleCause::PreviousCycle, ..Released::at(100) };
        cycles.begin(late, Some(100));
        cycles.now().unwrap().times.running_ns = 50;
        cycles.end(&config, Some(100));
        assert_eq!(cycles.overrun_by, Overruns { by_waiting: 2, ..Overruns::default() });
    }

    #[test]
    fn cycles_that_others_delayed_count_for_the_cause_of_the_first() {
        let mut cycles = Cycles::default();
        let config = RunConfig::new(0, 0, Selection::default());
        for number in 0..3 {
            let late_by = CycleCause::PreviousCycle;
            let released = Released { noticed_ns: number * 150 + 100, late_by, ..Released::at(number * 100 + 100) };
            cycles.begin(released, None);
            let open = cycles.now().unwrap();
            open.times = ThreadTimes { running_ns: 20, preempted_ns: 30, ..ThreadTimes::default() };
            open.parts.add(CycleCause::Quota, 30, None, "");
            cycles.end(&config, None);
        }
        let causes: Vec<_> = cycles.causes.iter().map(|entry| (entry.cause, entry.cycles)).collect();
        assert_eq!(causes, [(CycleCause::Quota, 3)]);
        let worst = &cycles.worst[0];
        assert_eq!(worst.parts[0].cause, CycleCause::PreviousCycle);
        assert_eq!(worst.delayed_by.as_ref().unwrap().cause, CycleCause::Quota);
    }

    #[test]
    fn timer_slack_is_told_from_a_late_timer() {
        let mut cycles = Cycles::default();
        cycles.begin(Released { noticed_ns: 90, latest_ns: 60, ..Released::at(10) }, None);
        cycles.end(&RunConfig::new(0, 0, Selection::default()), None);
        let parts: Vec<_> = cycles.worst[0].parts.iter().map(|part| (part.cause, part.ns)).collect();
        assert_eq!(parts, [(CycleCause::TimerSlack, 50), (CycleCause::LateTimer, 30)]);
    }

    #[test]
    fn page_faults_and_handlers_are_not_the_own_work() {
        let mut cycles = Cycles::default();
        let config = RunConfig::new(0, 0, Selection::default());
        for (handlers_ns, faults_ns) in [(0, 0), (90, 0), (0, 90), (0, 40)] {
            cycles.begin(Released::at(1000), Some(100));
            let open = cycles.now().unwrap();
            open.times.running_ns = 120;
            (open.parts.handlers_ns, open.parts.faults_ns) = (handlers_ns, faults_ns);
            cycles.end(&config, Some(100));
        }
        assert_eq!(cycles.overrun_by, Overruns { by_work: 2, by_handlers: 1, by_faults: 1, ..Overruns::default() });
    }

    #[test]
    fn counts_deadlines_missed_at_the_end() {
        let mut cycles = Cycles::default();
        cycles.begin(Released::at(1000), Some(100));
        cycles.now().unwrap().times.running_ns = 30;
        cycles.end(&RunConfig::new(0, 0, Selection::default()), Some(100));
        cycles.stop(1100, 100, &RunConfig::new(0, 0, Selection::default()));
        assert_eq!(cycles.write_to(Some(100), &mut ProcessThread::default()).0, 0, "the next cycle is due now");
        cycles.stop(1290, 100, &RunConfig::new(0, 0, Selection::default()));
        assert_eq!(cycles.write_to(Some(100), &mut ProcessThread::default()).0, 2);
        cycles.begin(Released::at(1300), None);
        cycles.now().unwrap().times.preempted_ns = 101;
        cycles.stop(1401, 100, &RunConfig::new(0, 0, Selection::default()));
        let mut thread = ProcessThread::default();
        cycles.write_to(Some(100), &mut thread);
        assert_eq!(thread.overrun_by, Some(Overruns { by_waiting: 1, ..Overruns::default() }));
    }
}
