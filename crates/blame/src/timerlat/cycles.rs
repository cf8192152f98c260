//! The cycles of one CPU: each is a timer interrupt and the run of the thread that it wakes.

use record::{
    Correction, Histogram, Maxima, Series, SeriesKind, Spike, Split, TIMERLAT_IRQ, TIMERLAT_THREAD, Worst, grouped,
};

use crate::{Event, EventKind, time::signed_ns};

/// Context of a sample, as the kernel numbers it (kernel/trace/trace_osnoise.c of Linux).
const IN_IRQ: u32 = 0;
const IN_THREAD: u32 = 1;

/// One of the two measurements of the tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traced {
    /// The interrupt of its timer.
    Irq,
    /// The thread that the interrupt wakes.
    Thread,
}

/// The figures of one CPU's complete cycles.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    period_ns: u64,
    threshold_ns: i64,
    /// Cycle and latency (ns) of the interrupt whose thread has not run yet.
    interrupt: Option<(u32, u64)>,
    last: Option<u32>,
    /// Number of cycles that are missing or incomplete.
    lost: u64,
    first_deadline_ns: Option<u64>,
    irq: Statistics,
    thread: Statistics,
    worst: Worst,
}

/// Figures of the interrupts or of the threads.
#[derive(Debug, Default)]
struct Statistics {
    raw: Histogram,
    correction: Correction,
    maxima: Maxima,
    sum_ns: i128,
    min_ns: i64,
    /// Largest latency and its time, ns after the first deadline.
    max: Option<(i64, u64)>,
    missed: u64,
    spikes: u64,
    /// Time of the last run, ns after the first deadline.
    last_ns: Option<i64>,
    jitter_ns: u64,
}

impl Cycles {
    pub fn new(period_ns: u64, threshold_ns: i64) -> Self {
        let statistics = || Statistics { correction: Correction::new(period_ns), ..Statistics::default() };
        Self { period_ns, threshold_ns, irq: statistics(), thread: statistics(), ..Self::default() }
    }

    /// The first deadline, ns on CLOCK_MONOTONIC.
    pub fn first_deadline_ns(&self) -> Option<u64> {
        self.first_deadline_ns
    }

    /// Handles a sample, and appends a spike to `fresh` if the thread was late. Returns the thread's id if it is the
    /// sample of a thread.
    pub fn handle_event(&mut self, event: &Event, fresh: &mut Vec<Spike>) -> Option<u32> {
        let EventKind::Timerlat { cycle, context, latency_ns } = event.kind else { return None };
        match context {
            IN_IRQ => {
                self.interrupt = Some((cycle, latency_ns));
                None
            }
            IN_THREAD => {
                // Without the interrupt's sample, the cycle began before the trace, or events were lost.
                if let Some((_, irq_ns)) = self.interrupt.take().filter(|&(begun, _)| begun == cycle) {
                    self.note_lost(cycle);
                    self.add_cycle(event.at_ns, Split { irq_ns, thread_ns: latency_ns }, fresh);
                }
                Some(event.pid)
            }
            _ => None,
        }
    }

    /// Keeps a new spike if it is one of the worst.
    pub fn keep(&mut self, spike: Spike) {
        self.worst.add(spike);
    }

    /// Counts missing cycle numbers. The numbers restart at 1 when the tracer is restarted.
    fn note_lost(&mut self, cycle: u32) {
        if let Some(last) = self.last.replace(cycle) {
            self.lost += u64::from(cycle.saturating_sub(last).saturating_sub(1));
        }
    }

    fn add_cycle(&mut self, thread_at_ns: u64, split: Split, fresh: &mut Vec<Spike>) {
        let deadline_ns = thread_at_ns.saturating_sub(split.thread_ns);
        let at_ns = deadline_ns.saturating_sub(*self.first_deadline_ns.get_or_insert(deadline_ns));
        let [irq_ns, lateness_ns] = [split.irq_ns, split.thread_ns].map(signed_ns);
        let (period_ns, threshold_ns) = (self.period_ns, self.threshold_ns);
        self.irq.note(at_ns, irq_ns, period_ns, threshold_ns);
        self.thread.note(at_ns, lateness_ns, period_ns, threshold_ns);
        if lateness_ns > threshold_ns {
            fresh.push(Spike { lateness_ns, at_ns, split: Some(split), ..Spike::default() });
        }
    }

    /// The figures so far; `fresh` are the spikes that are not kept yet.
    pub fn series(&self, traced: Traced, fresh: &[Spike]) -> Series {
        let (statistics, spikes, role, kind) = match traced {
            Traced::Irq => (&self.irq, Vec::new(), TIMERLAT_IRQ, SeriesKind::TimerlatIrq),
            Traced::Thread => (&self.thread, self.worst.with(fresh), TIMERLAT_THREAD, SeriesKind::TimerlatThread),
        };
        let samples = statistics.raw.total();
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!("{} cycles of the tracer were lost and are missing in all figures", grouped(self.lost)));
        }
        if samples == 0 {
            notes.push("the tracer wrote no sample".to_owned());
        }
        Series {
            role: role.to_owned(),
            kind,
            period_ns: self.period_ns,
            first_deadline_ns: signed_ns(self.first_deadline_ns.unwrap_or_default()),
            samples,
            missed: statistics.missed,
            min_ns: statistics.max.map(|_| statistics.min_ns),
            mean_ns: statistics.max.map(|_| statistics.sum_ns as f64 / samples as f64),
            max_ns: statistics.max.map(|(max_ns, _)| max_ns),
            max_at_ns: statistics.max.map(|(_, at_ns)| at_ns),
            jitter_ns: statistics.jitter_ns,
            raw: statistics.raw.clone(),
            corrected: statistics.correction.of(&statistics.raw),
            maxima: statistics.maxima.clone(),
            spikes_total: statistics.spikes,
            spikes,
            notes,
            ..Series::default()
        }
    }
}

impl Statistics {
    fn note(&mut self, at_ns: u64, lateness_ns: i64, period_ns: u64, threshold_ns: i64) {
        self.raw.record(lateness_ns);
        if lateness_ns.unsigned_abs() >= period_ns {
            self.correction.late(lateness_ns);
            self.missed += lateness_ns.unsigned_abs() / period_ns.max(1);
        }
        self.maxima.add(at_ns, lateness_ns);
        self.sum_ns += i128::from(lateness_ns);
        self.min_ns = if self.max.is_none() { lateness_ns } else { self.min_ns.min(lateness_ns) };
        if self.max.is_none_or(|(max_ns, _)| lateness_ns > max_ns) {
            self.max = Some((lateness_ns, at_ns));
        }
        self.spikes += u64::from(lateness_ns > threshold_ns);
        let ran_ns = lateness_ns.saturating_add_unsigned(at_ns);
        if let Some(last_ns) = self.last_ns.replace(ran_ns) {
            let interval_ns = ran_ns.saturating_sub(last_ns);
            self.jitter_ns = self.jitter_ns.max(interval_ns.saturating_sub_unsigned(period_ns).unsigned_abs());
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const PERIOD_NS: u64 = 1_000_000;
    const BEGIN_NS: u64 = 5_000_000_000;

    /// The two samples of a cycle.
    fn cycle_samples(cycle: u32, irq_ns: u64, thread_ns: u64) -> [Event; 2] {
        let deadline_ns = BEGIN_NS + u64::from(cycle) * PERIOD_NS;
        let event = |context, latency_ns, pid| Event {
            at_ns: deadline_ns + latency_ns,
            cpu: 1,
            pid,
            kind: EventKind::Timerlat { cycle, context, latency_ns },
        };
        [event(IN_IRQ, irq_ns, 0), event(IN_THREAD, thread_ns, 88)]
    }

    fn take_in(events: &[Event]) -> (Cycles, Vec<Spike>) {
        let mut cycles = Cycles::new(PERIOD_NS, 100_000);
        let mut fresh = Vec::new();
        for event in events {
            let ran = cycles.handle_event(event, &mut fresh);
            assert_eq!(ran, (event.pid == 88).then_some(88));
        }
        (cycles, fresh)
    }

    #[test]
    fn counts_interrupt_and_thread_separately() {
        let cycles =
            [cycle_samples(7, 2_000, 9_000), cycle_samples(8, 150_000, 160_000), cycle_samples(9, 3_000, 2_500_000)]
                .concat();
        let (cycles, fresh) = take_in(&cycles);
        let (irq, thread) = (cycles.series(Traced::Irq, &fresh), cycles.series(Traced::Thread, &fresh));
        assert_eq!(
            (irq.samples, irq.min_ns, irq.max_ns, irq.max_at_ns),
            (3, Some(2_000), Some(150_000), Some(PERIOD_NS))
        );
        assert_eq!((irq.missed, irq.spikes_total, irq.spikes.len()), (0, 1, 0));
        assert_eq!((thread.samples, thread.max_ns, thread.missed), (3, Some(2_500_000), 2));
        assert_eq!((thread.corrected.total(), thread.raw.total(), thread.period_ns), (5, 3, PERIOD_NS));
        assert_eq!(thread.mean_ns, Some((9_000 + 160_000 + 2_500_000) as f64 / 3.0));
        assert_eq!(thread.first_deadline_ns.cast_unsigned(), BEGIN_NS + 7 * PERIOD_NS);
        assert_eq!(thread.jitter_ns, 2_340_000, "from 160 us late to 2500 us late");
        let splits: Vec<_> = thread.spikes.iter().map(|spike| (spike.at_ns, spike.lateness_ns, spike.split)).collect();
        let split = |irq_ns, thread_ns| Some(Split { irq_ns, thread_ns });
        assert_eq!(
            splits,
            [(PERIOD_NS, 160_000, split(150_000, 160_000)), (2 * PERIOD_NS, 2_500_000, split(3_000, 2_500_000))]
        );
        assert!(thread.notes.is_empty());
    }

    #[test]
    fn counts_only_complete_cycles() {
        let [_, end_of_2] = cycle_samples(2, 1_000, 200_000);
        let [begin_of_9, _] = cycle_samples(9, 1_000, 2_000);
        let mut events = vec![end_of_2];
        events.extend(cycle_samples(3, 1_000, 2_000));
        events.extend(cycle_samples(6, 1_000, 2_000));
        events.push(begin_of_9);
        events.extend(cycle_samples(10, 1_000, 2_000));
        // The tracer was restarted.
        events.extend(cycle_samples(1, 1_000, 2_000));
        let (cycles, fresh) = take_in(&events);
        let thread = cycles.series(Traced::Thread, &fresh);
        assert_eq!((thread.samples, cycles.lost), (4, 5), "4, 5, 7, 8 and the incomplete 9");
        assert_eq!(thread.notes, ["5 cycles of the tracer were lost and are missing in all figures"]);
        assert!(fresh.is_empty());
        assert_eq!(thread.max_at_ns, Some(0));
    }

    #[test]
    fn notes_a_tracer_without_samples() {
        let series = Cycles::new(PERIOD_NS, 1).series(Traced::Irq, &[]);
        assert_eq!((series.samples, series.max_ns, series.notes.len()), (0, None, 1));
    }
}
