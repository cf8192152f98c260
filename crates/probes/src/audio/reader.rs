//! Converts the data of the audio thread to the series of a record. Runs on an ordinary thread.

use std::sync::atomic::Ordering::Relaxed;

use record::{CLOCK, Played, Series, SeriesKind, SoundCard, Spike, Worst, grouped};

use super::{
    AudioSettings,
    shared::{Notable, Shared},
};
use crate::{probe_threads::Overdue, timer::shared::add};

/// The data read so far.
#[derive(Debug)]
pub struct Reader {
    queue: rtrb::Consumer<Notable>,
    worst: Worst,
    /// Spikes since the last collection in order of time, for the analysis of their causes.
    pub fresh: Vec<Spike>,
    /// Usual processing time of a period, ns: the median at the last collection with spikes.
    pub usual_dsp_ns: u64,
}

impl Reader {
    pub fn new(queue: rtrb::Consumer<Notable>, spikes_kept: usize) -> Self {
        Self { queue, worst: Worst::keeping(spikes_kept), fresh: Vec::new(), usual_dsp_ns: 0 }
    }

    /// Reads the queued periods. The fresh spikes of the last call join the kept ones.
    pub fn collect(&mut self, shared: &Shared) {
        self.fresh.drain(..).for_each(|spike| self.worst.add(spike));
        while let Ok(Notable { at_ns, played }) = self.queue.pop() {
            self.fresh.push(Spike {
                lateness_ns: played.completion_ns(),
                at_ns,
                played: Some(played),
                ..Spike::default()
            });
        }
        if !self.fresh.is_empty() {
            let median_ns = shared.dsp.histogram().percentile(50.0);
            self.usual_dsp_ns = median_ns.unwrap_or_default().unsigned_abs();
        }
    }

    /// Counts a period that was not completed when the thread was stopped, which no longer counts it itself.
    pub fn count_overdue(&mut self, overdue: Overdue, limit_ns: u64, shared: &Shared) {
        let Overdue { at_ns, lateness_ns, deadlines } = overdue;
        let xrun = lateness_ns.unsigned_abs() >= limit_ns;
        let _ = shared.completion.note(lateness_ns);
        add(&shared.notable, 1);
        add(&shared.xruns, u64::from(xrun));
        add(&shared.lost, if xrun { deadlines } else { 0 });
        let played = Some(Played { wait_ns: lateness_ns, dsp_ns: 0, xrun });
        self.fresh.push(Spike { lateness_ns, at_ns, played, ..Spike::default() });
    }

    /// Adds the results to the series of the thread.
    pub fn add_to(&self, settings: &AudioSettings, shared: &Shared, series: &mut Series) {
        series.spikes_total = shared.notable.load(Relaxed);
        series.spikes = self.worst.with(&self.fresh);
        series.notes.extend(notes(shared));
        let names = settings.names.clone();
        let rate = shared.rate_ppm();
        let card = settings.card.clone().map(|card| SoundCard {
            rate_ppm: rate.map(|(ppm, _)| ppm),
            rate_error_ppm: rate.map(|(_, error_ppm)| error_ppm),
            ..card
        });
        series.kind = SeriesKind::Audio(Box::new(record::Audio {
            rate_hz: settings.rate_hz,
            frames: settings.frames,
            periods: settings.periods,
            pacer: card.as_ref().map_or_else(|| CLOCK.to_owned(), |card| card.playback.clone()),
            card,
            model: names.model,
            cab: names.cab,
            preset: names.preset,
            limit_ns: settings.limit_ns(),
            played: shared.played.load(Relaxed),
            xruns: shared.xruns.load(Relaxed),
            lost: shared.lost.load(Relaxed),
            silent: shared.silent.load(Relaxed),
            dsp: shared.dsp.to_record(),
            completion: shared.completion.to_record(),
            extra: record::Extra::new(),
        }));
    }
}

fn notes(shared: &Shared) -> Vec<String> {
    let mut notes = Vec::new();
    let queue_full = shared.queue_full.load(Relaxed);
    if queue_full > 0 {
        notes.push(format!(
            "{} late periods came too fast to be recorded one by one: they are counted, but may be missing from the spikes",
            grouped(queue_full)
        ));
    }
    let outside = shared.completion.outside();
    if outside > 0 {
        notes.push(format!("{} periods outside the histogram's range are in no bucket", grouped(outside)));
    }
    notes
}
