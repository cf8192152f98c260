//! Data shared by the audio thread and its reader: lock-free counters, and a queue of notable periods.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use record::Played;

use crate::{timer::shared::add, times::TimeCounters};

/// A period with an xrun or with a completion above the threshold.
#[derive(Debug, Clone, Copy)]
pub struct Notable {
    /// Its deadline, ns after the first.
    pub at_ns: u64,
    pub played: Played,
}

/// Capacity of the queue. With 16 frames at 192 kHz and every period late the reader has 340 ms.
const QUEUE: usize = 4096;

/// Samples below this part of full scale count as silence: -120 dB.
const SILENCE: f32 = 1e-6;

/// A processed period.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    /// Its deadline, ns after the first.
    pub deadline_ns: i64,
    /// Start and end of its processing, ns after the first deadline.
    pub begun_ns: i64,
    pub done_ns: i64,
    /// For an xrun, the periods lost until the card was restarted.
    pub lost: Option<u64>,
}

/// Counters that only the audio thread writes.
#[derive(Debug, Default)]
pub struct Shared {
    pub dsp: TimeCounters,
    pub completion: TimeCounters,
    pub played: AtomicU64,
    pub xruns: AtomicU64,
    pub lost: AtomicU64,
    pub silent: AtomicU64,
    /// Periods above the threshold, and xruns.
    pub notable: AtomicU64,
    /// Notable periods for which the queue was full.
    pub queue_full: AtomicU64,
    /// Deviation of the card's rate and its standard error, ppm, as bits of a floating-point number; an error of 0
    /// means unknown.
    rate_ppm: AtomicU64,
    rate_error_ppm: AtomicU64,
}

impl Shared {
    /// Stores the card's rate. For the only writer.
    #[inline]
    pub fn note_rate(&self, (ppm, error_ppm): (f64, f64)) {
        self.rate_ppm.store(ppm.to_bits(), Relaxed);
        // An error of exactly 0 must not look unknown.
        self.rate_error_ppm.store(error_ppm.max(f64::MIN_POSITIVE).to_bits(), Relaxed);
    }

    /// The card's rate and its standard error, ppm, if known.
    pub fn rate_ppm(&self) -> Option<(f64, f64)> {
        let error_ppm = f64::from_bits(self.rate_error_ppm.load(Relaxed));
        (error_ppm > 0.0).then(|| (f64::from_bits(self.rate_ppm.load(Relaxed)), error_ppm))
    }
}

/// The audio thread's side.
pub struct Writer {
    pub shared: Arc<Shared>,
    pub notable: rtrb::Producer<Notable>,
    /// A period completed later than this is queued, ns after its deadline.
    pub threshold_ns: i64,
}

impl Writer {
    /// Counts a period with this output.
    #[inline]
    pub fn note(&mut self, period: Period, output: &[f32]) {
        let Period { deadline_ns, begun_ns, done_ns, lost } = period;
        let shared = &self.shared;
        let (wait_ns, dsp_ns) = (begun_ns - deadline_ns, done_ns - begun_ns);
        let completion_ns = done_ns - deadline_ns;
        add(&shared.played, 1);
        // Values outside the range are counted by the histograms themselves.
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
            add(&shared.queue_full, 1);
        }
    }
}

/// The audio thread's side, the counters, and the queue to read.
pub fn channel(threshold_ns: i64) -> (Writer, Arc<Shared>, rtrb::Consumer<Notable>) {
    let shared = Arc::new(Shared::default());
    let (notable, queue) = rtrb::RingBuffer::new(QUEUE);
    (Writer { shared: shared.clone(), notable, threshold_ns }, shared, queue)
}
