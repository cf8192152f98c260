//! Converts the data of the measuring thread to the series of a record. Runs on an ordinary thread.

use std::sync::atomic::Ordering::Relaxed;

use record::{
    Correction, EvlThread, Granted, Histogram, Maxima, ON_ANOTHER_CPU, SERIES_ENDS, Series, SeriesKind, Spike, Worst,
};

use super::{
    settings::{End, Settings},
    shared::{Event, Shared},
};
use crate::{guard, noise::series::to_gaps, setup::Grant};

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
        }
    }

    /// Reads the queued events. The fresh spikes of the last call join the kept ones.
    pub fn collect(&mut self, shared: &Shared) {
        self.fresh.drain(..).for_each(|spike| self.worst.add(spike));
        while let Ok(event) = self.queue.pop() {
            match event {
                Event::SecondEnded { at_ns, max_ns } => self.maxima.add(at_ns - 1, max_ns),
                Event::Notable { lateness_ns, at_ns } => self.add(lateness_ns, at_ns, shared),
            }
        }
    }

    fn add(&mut self, lateness_ns: i64, at_ns: u64, shared: &Shared) {
        if !shared.counts.holds(lateness_ns) {
            self.outside.record(lateness_ns);
        }
        if lateness_ns >= self.period_ns {
            self.correction.late(lateness_ns);
        }
        if lateness_ns > self.threshold_ns {
            self.fresh.push(Spike { lateness_ns, at_ns, ..Spike::default() });
        }
    }

    /// Returns the series so far.
    pub fn series(&self, phase: &str, settings: &Settings, grant: &Grant, shared: &Shared) -> Series {
        let mut raw = shared.counts.snapshot();
        raw.merge(&self.outside);
        let samples = raw.total();
        let seen = (samples > 0).then_some(());
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
            missed: shared.missed.load(Relaxed),
            early: raw.iter().take_while(|&(value_ns, _)| value_ns < 0).map(|(_, count)| count).sum(),
            min_ns: seen.map(|()| shared.min_ns.load(Relaxed)),
            mean_ns: seen.map(|()| shared.sum_ns.load(Relaxed) as f64 / samples as f64),
            max_ns: seen.map(|()| shared.max_ns.load(Relaxed)),
            max_at_ns: seen.map(|()| shared.max_at_ns.load(Relaxed)),
            jitter_ns: shared.jitter_ns.load(Relaxed),
            corrected: self.correction.of(&raw),
            raw,
            maxima: self.maxima.clone(),
            spikes_total: shared.spikes.load(Relaxed),
            spikes: self.worst.with(&self.fresh),
            floor_ns: grant.floor_ns,
            cpu_checks: shared.cpu_checks.load(Relaxed),
            evl: grant.evl_level.map(|abi| EvlThread { abi, in_band: shared.in_band.load(Relaxed) }),
            notes: self.notes(settings, shared),
            ..Series::default()
        };
        match &settings.spin {
            None => series,
            Some(spin) => to_gaps(series, spin, settings, shared),
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
                notes.push(format!("the sound card stopped for good (unplugged, or see `dmesg`): {SERIES_ENDS} there"));
            }
            Some(End::ClockFailed) => {
                notes.push(format!("the kernel refused to wait on this clock: {SERIES_ENDS} there"));
            }
        }
        let pauses = shared.pauses.load(Relaxed);
        if pauses > 0 {
            notes.push(format!(
                "the guard throttled the thread {pauses} times for {} ms, because it used its CPU without sleeping; \
                 the deadlines within are counted as missed",
                guard::PAUSE_NS / 1_000_000
            ));
        }
        let lost = shared.lost.load(Relaxed);
        if lost > 0 {
            notes.push(format!(
                "{lost} late wake-ups came too fast to be recorded one by one: they are counted, but may be missing from \
                 the spikes, and the corrected histogram has them with 3 digits only"
            ));
        }
        let uncounted = shared.outside.load(Relaxed).saturating_sub(self.outside.total());
        if uncounted > 0 {
            notes.push(format!("{uncounted} wake-ups outside the histogram's range are in no bucket"));
        }
        notes
    }
}
