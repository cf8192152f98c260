//! What the audio thread and its reader both see: counters without locks, and a queue of periods worth telling.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use record::Played;

use super::reader::Reader;
use crate::{timer::shared::add, times::Counted};

/// A period that was an xrun, or whose completion lay above the threshold.
#[derive(Debug, Clone, Copy)]
pub struct Notable {
    /// Its deadline, ns after the first.
    pub at_ns: u64,
    pub played: Played,
}

/// Periods that can wait for the reader; with 16 frames at 192 kHz and every one late it has 340 ms to come.
const QUEUE: usize = 4096;

/// Full scale below which a sample counts as silence: -120 dB.
const SILENCE: f32 = 1e-6;

/// A period that was played.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    /// Its deadline, ns after the first.
    pub deadline_ns: i64,
    /// When the thread turned to it, and when it was done, likewise.
    pub begun_ns: i64,
    pub done_ns: i64,
    /// Of an xrun the periods that passed until the card was started anew.
    pub lost: Option<u64>,
}

/// Counters that the audio thread alone writes.
#[derive(Debug, Default)]
pub struct Shared {
    pub dsp: Counted,
    pub completion: Counted,
    pub played: AtomicU64,
    pub xruns: AtomicU64,
    pub lost: AtomicU64,
    pub silent: AtomicU64,
    /// Periods above the threshold, and xruns.
    pub notable: AtomicU64,
    /// Of them, those that found the queue full.
    pub untold: AtomicU64,
    /// How much faster than its rate a card runs, and the standard error of that, ppm: bits of floating point, 0 while the
    /// error is not known.
    rate_ppm: AtomicU64,
    rate_error_ppm: AtomicU64,
}

impl Shared {
    /// Keeps the card's rate. For the one writer.
    #[inline]
    pub fn note_rate(&self, (ppm, error_ppm): (f64, f64)) {
        self.rate_ppm.store(ppm.to_bits(), Relaxed);
        // One that is nothing at all is still known.
        self.rate_error_ppm.store(error_ppm.max(f64::MIN_POSITIVE).to_bits(), Relaxed);
    }

    /// The card's rate, once it is known.
    pub fn rate_ppm(&self) -> Option<(f64, f64)> {
        let error_ppm = f64::from_bits(self.rate_error_ppm.load(Relaxed));
        (error_ppm > 0.0).then(|| (f64::from_bits(self.rate_ppm.load(Relaxed)), error_ppm))
    }
}

/// The thread's side.
pub struct Writer {
    pub shared: Arc<Shared>,
    pub notable: rtrb::Producer<Notable>,
    /// A period done later than this is told one by one, ns after its deadline.
    pub threshold_ns: i64,
}

impl Writer {
    /// Counts a period that came out as `output`.
    #[inline]
    pub fn note(&mut self, period: Period, output: &[f32]) {
        let Period { deadline_ns, begun_ns, done_ns, lost } = period;
        let shared = &self.shared;
        let (wait_ns, dsp_ns) = (begun_ns - deadline_ns, done_ns - begun_ns);
        let completion_ns = done_ns - deadline_ns;
        add(&shared.played, 1);
        // What lies outside the histograms is counted by themselves.
        let _ = shared.dsp.note(dsp_ns);
        let _ = shared.completion.note(completion_ns);
        add(&shared.silent, u64::from(output.iter().all(|sample| sample.abs() < SILENCE)));
        if completion_ns <= self.threshold_ns && lost.is_none() {
            return;
        }
        add(&shared.notable, 1);
        add(&shared.xruns, u64::from(lost.is_some()));
        add(&shared.lost, lost.unwrap_or(0));
        let played = Played { wait_ns, dsp_ns, xrun: lost.is_some() };
        let at_ns = deadline_ns.max(0).unsigned_abs();
        if self.notable.push(Notable { at_ns, played }).is_err() {
            add(&shared.untold, 1);
        }
    }
}

pub fn channel(spikes_kept: usize, threshold_ns: i64) -> (Writer, Arc<Shared>, Reader) {
    let shared = Arc::new(Shared::default());
    let (notable, queue) = rtrb::RingBuffer::new(QUEUE);
    (Writer { shared: shared.clone(), notable, threshold_ns }, shared, Reader::new(queue, spikes_kept))
}
