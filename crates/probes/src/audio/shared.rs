//! What the audio thread and its reader both see: counters without locks, and a queue of periods worth telling.

use std::sync::{Arc, atomic::AtomicU64};

use record::Played;

use super::reader::Reader;
use crate::times::Counted;

/// A period that was an xrun, or whose completion lay above the threshold.
#[derive(Debug, Clone, Copy)]
pub struct Notable {
    /// Its deadline, ns after the first.
    pub at_ns: u64,
    pub played: Played,
}

/// Periods that can wait for the reader; with 16 frames at 192 kHz and every one late it has 340 ms to come.
const QUEUE: usize = 4096;

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
}

/// The thread's side.
pub struct Writer {
    pub shared: Arc<Shared>,
    pub notable: rtrb::Producer<Notable>,
}

pub fn channel(spikes_kept: usize) -> (Writer, Arc<Shared>, Reader) {
    let shared = Arc::new(Shared::default());
    let (notable, queue) = rtrb::RingBuffer::new(QUEUE);
    (Writer { shared: shared.clone(), notable }, shared, Reader::new(queue, spikes_kept))
}
