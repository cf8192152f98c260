//! Converts the data of the measuring thread to the series of a record. Runs on an ordinary thread.

use std::sync::atomic::Ordering::Relaxed;

use record::{
    Correction, EvlThread, Granted, Histogram, Maxima, ON_ANOTHER_CPU, SERIES_ENDS, Series, SeriesKind, Spike, Worst,
    grouped,
};

use super::{
    settings::{End, Settings},
    shared::{Event, Shared},
};
use crate::{guard, noise::series::to_gaps, probe_threads::Overdue, setup::Grant};

/// The data read so far.
#[derive(Debug)]
pub struct Reader {
    queue: rtrb::Consumer<Event>,
    period_ns: i64,
    threshold_ns: i64,
    worst: Worst,
    /// Spikes since the last collection in order of time, for the analysis of their causes.
    pub fresh: Vec<Spike>,
    correction: Correction,
    /// Wake-ups outside the range of the shared histogram.
    outside: Histogram,
    maxima: Maxima,
    /// The latest of the spikes, ns late; `i64::MIN` without one.
    latest_ns: i64,
    /// Wake-ups for which the queue was full, at the last collection.
    lost: u64,
    /// Lateness and deadline, ns, of the last wake-up that was read although the queue was full.
    unqueued: Option<(i64, u64)>,
    /// The deadline for which the thread had not woken up when it was stopped.
    overdue: Option<Overdue>,
}

impl Reader {
    pub fn new(queue: rtrb::Consumer<Event>, settings: &Settings) -> Self {
        Self {
            queue,
            period_ns: settings.period_ns.cast_signed(),
            threshold_ns: settings.threshold_ns,
            worst: Worst::keeping(settings.spikes_kept),
            fresh: Vec::new(),
            correction: Correction::new(settings.period_ns),
            outside: Histogram::default(),
            maxima: Maxima::default(),
            latest_ns: i64::MIN,
            lost: 0,
            unqueued: None,
            overdue: None,
        }
    }

    /// Counts a deadline, ns after the first one, for which the thread has not woken up for `lateness_ns`. `None` if it
    /// has not passed.
    pub fn count_overdue(&mut self, at_ns: i64, lateness_ns: i64) -> Option<Overdue> {
        if lateness_ns <= 0 {
            return None;
        }
        let at_ns = at_ns.max(0).cast_unsigned();
        let overdue = Overdue { at_ns, lateness_ns, deadlines: 1 + (lateness_ns / self.period_ns).cast_unsigned() };
        self.note_late(lateness_ns, at_ns);
        self.maxima.add(at_ns, lateness_ns);
        self.overdue = Some(overdue);
        self.overdue
    }

    /// Reads the queued events. The fresh spikes of the last call join the kept ones. The latest wake-up is among them,
    /// even if the queue was full when it came.
    pub fn collect(&mut self, shared: &Shared) {
        self.fresh.drain(..).for_each(|spike| self.worst.add(spike));
        while let Ok(event) = self.queue.pop() {
            match event {
                Event::SecondEnded { at_ns, max_ns } => self.maxima.add(at_ns - 1, max_ns),
                Event::Notable { lateness_ns, at_ns } => self.add(lateness_ns, at_ns, shared),
            }
        }
        let lost = shared.lost.load(Relaxed);
        if std::mem::replace(&mut self.lost, lost) != lost {
            let (lateness_ns, at_ns) = (shared.max_ns.load(Relaxed), shared.max_at_ns.load(Relaxed));
            if lateness_ns > self.latest_ns {
                // It may be queued after this, because the thread counts it first.
                self.unqueued = Some((lateness_ns, at_ns));
                self.note_late(lateness_ns, at_ns);
            }
        }
    }

    fn add(&mut self, lateness_ns: i64, at_ns: u64, shared: &Shared) {
        if !shared.counts.holds(lateness_ns) {
            self.outside.record(lateness_ns);
        }
        if self.unqueued != Some((lateness_ns, at_ns)) {
            self.note_late(lateness_ns, at_ns);
        }
    }

    fn note_late(&mut self, lateness_ns: i64, at_ns: u64) {
        if lateness_ns >= self.period_ns {
            self.correction.late(lateness_ns);
        }
        if lateness_ns > self.threshold_ns {
            self.latest_ns = self.latest_ns.max(lateness_ns);
            self.fresh.push(Spike { lateness_ns, at_ns, ..Spike::default() });
        }
    }

    /// Returns the series so far.
    pub fn series(&self, phase: &str, settings: &Settings, grant: &Grant, shared: &Shared) -> Series {
        let mut raw = shared.counts.snapshot();
        raw.merge(&self.outside);
        let overdue_ns = self.overdue.map(|overdue| overdue.lateness_ns);
        overdue_ns.iter().for_each(|&lateness_ns| raw.record(lateness_ns));
        let samples = raw.total();
        let seen = (samples > 0).then_some(());
        let (max_ns, max_at_ns) = (shared.max_ns.load(Relaxed), shared.max_at_ns.load(Relaxed));
        let max = self.overdue.map_or((max_ns, max_at_ns), |it| (max_ns, max_at_ns).max((it.lateness_ns, it.at_ns)));
        let sum_ns = shared.sum_ns.load(Relaxed).wrapping_add(overdue_ns.unwrap_or(0));
        let series = Series {
            phase: phase.to_owned(),
            role: settings.role.clone(),
            kind: SeriesKind::WakeUps,
            cpu: settings.cpu.filter(|_| grant.pin_refused.is_none()),
            granted: Granted {
                policy: grant.policy.to_string(),
                timer_slack_ns: if grant.policy.is_realtime() { 0 } else { grant.timer_slack_ns },
                ..Granted::default()
            },
            period_ns: settings.period_ns,
            first_deadline_ns: shared.first_deadline_ns.load(Relaxed),
            samples,
            missed: shared.missed.load(Relaxed) + self.overdue.map_or(0, |overdue| overdue.deadlines - 1),
            early: raw.iter().take_while(|&(value_ns, _)| value_ns < 0).map(|(_, count)| count).sum(),
            min_ns: seen.map(|()| shared.min_ns.load(Relaxed).min(overdue_ns.unwrap_or(i64::MAX))),
            mean_ns: seen.map(|()| sum_ns as f64 / samples as f64),
            max_ns: seen.map(|()| max.0),
            max_at_ns: seen.map(|()| max.1),
            jitter_ns: shared.jitter_ns.load(Relaxed),
            corrected: self.correction.of(&raw),
            raw,
            maxima: self.maxima.clone(),
            spikes_total: shared.spikes.load(Relaxed)
                + u64::from(overdue_ns.is_some_and(|lateness_ns| lateness_ns > self.threshold_ns)),
            spikes: self.worst.with(&self.fresh),
            floor_ns: grant.floor_ns,
            cpu_checks: shared.cpu_checks.load(Relaxed),
            cpu_time_ns: shared.cpu_time_ns.get().copied(),
            evl: grant.evl_level.map(|abi| EvlThread { abi, in_band: shared.in_band.load(Relaxed) }),
            notes: self.notes(settings, shared),
            ..Series::default()
        };
        match &settings.spin {
            None => series,
            Some(spin) => to_gaps(series, spin, settings, shared, self.overdue),
        }
    }

    fn notes(&self, settings: &Settings, shared: &Shared) -> Vec<String> {
        let mut notes = Vec::new();
        let cpu = settings.cpu.unwrap_or_default();
        match shared.end() {
            None | Some(End::Planned) => {}
            Some(End::LeftCpu) => notes.push(format!(
                "the thread left CPU {cpu} during the run: {SERIES_ENDS} there, and up to 1 s of its last wake-ups \
                 {ON_ANOTHER_CPU}"
            )),
            Some(End::Starved) => notes.push(format!(
                "the guard ended the run: ordinary threads had not run for {} s",
                guard::STARVED_LIMIT_S
            )),
            Some(End::StoppedOn) => notes.push(format!("a wake-up was later than --stop-on: {SERIES_ENDS} with it")),
            Some(End::PacerFailed) => {
                notes.push(format!("the device that set the deadlines failed: {SERIES_ENDS} there"));
            }
            Some(End::ClockFailed) => {
                notes.push(format!("the kernel refused to wait on this clock: {SERIES_ENDS} there"));
            }
        }
        if let Some(Overdue { lateness_ns, .. }) = self.overdue {
            notes.push(format!(
                "when the run was stopped, the last deadline had passed {} ms ago and the thread had not woken up: it \
                 counts as late by that time, but its wake-up is pending",
                lateness_ns / 1_000_000
            ));
        }
        let pauses = shared.pauses.load(Relaxed);
        if pauses > 0 {
            notes.push(format!(
                "the guard throttled the thread {} times for {} ms, because it used its CPU without sleeping; the \
                 deadlines within are counted as missed",
                grouped(pauses),
                guard::PAUSE_NS / 1_000_000
            ));
        }
        let lost = shared.lost.load(Relaxed);
        if lost > 0 {
            notes.push(format!(
                "{} late wake-ups came too fast to be recorded one by one: they are counted, but may be missing from the \
                 spikes, and the corrected histogram has them with 3 digits only",
                grouped(lost)
            ));
        }
        let uncounted = shared.outside.load(Relaxed).saturating_sub(self.outside.total());
        if uncounted > 0 {
            notes.push(format!("{} wake-ups outside the histogram's range are in no bucket", grouped(uncounted)));
        }
        notes
    }
}
