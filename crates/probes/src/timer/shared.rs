//! What the measuring thread and its reader both see: counters without locks, and a queue of rare events.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed},
};

use super::{End, Settings, reader::Reader};
use crate::{counts::Counts, noise::Looked};

/// Something rare enough to be told one by one.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A wake-up that is a spike, ran over deadlines, or lies outside the histogram.
    Notable { lateness_ns: i64, at_ns: u64 },
    /// The largest lateness of the second that ended before `at_ns`.
    SecondEnded { at_ns: u64, max_ns: i64 },
}

/// Events that can wait for the reader; at 20 us and every wake-up late it has 80 ms to come.
const QUEUE: usize = 4096;

/// Counters that the thread alone writes. Each is read on its own; together they may be one wake-up apart.
#[derive(Debug)]
pub struct Shared {
    pub counts: Counts,
    /// The first deadline, ns on the series' clock.
    pub first_deadline_ns: AtomicI64,
    pub sum_ns: AtomicI64,
    pub min_ns: AtomicI64,
    pub max_ns: AtomicI64,
    pub max_at_ns: AtomicU64,
    pub jitter_ns: AtomicU64,
    pub missed: AtomicU64,
    /// Wake-ups above the threshold.
    pub spikes: AtomicU64,
    /// Wake-ups outside the histogram's range.
    pub outside: AtomicU64,
    /// Events that found the queue full.
    pub lost: AtomicU64,
    /// Times that the thread was found on its own CPU.
    pub cpu_checks: AtomicU64,
    /// Times that the guard made the thread rest.
    pub rests: AtomicU64,
    /// Times that a thread of the EVL core left the out-of-band stage.
    pub in_band: AtomicU64,
    /// Of a thread that looks for gaps.
    pub looked: Looked,
    stop: AtomicBool,
    end: AtomicU8,
}

/// The thread's side.
pub struct Writer {
    pub shared: Arc<Shared>,
    pub events: rtrb::Producer<Event>,
}

pub fn channel(settings: &Settings) -> (Writer, Arc<Shared>, Reader) {
    let shared = Arc::new(Shared {
        counts: Counts::default(),
        first_deadline_ns: AtomicI64::new(0),
        sum_ns: AtomicI64::new(0),
        min_ns: AtomicI64::new(i64::MAX),
        max_ns: AtomicI64::new(i64::MIN),
        max_at_ns: AtomicU64::new(0),
        jitter_ns: AtomicU64::new(0),
        missed: AtomicU64::new(0),
        spikes: AtomicU64::new(0),
        outside: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        cpu_checks: AtomicU64::new(0),
        rests: AtomicU64::new(0),
        in_band: AtomicU64::new(0),
        looked: Looked::default(),
        stop: AtomicBool::new(false),
        end: AtomicU8::new(0),
    });
    let (events, queue) = rtrb::RingBuffer::new(QUEUE);
    (Writer { shared: shared.clone(), events }, shared, Reader::new(queue, settings))
}

const ENDS: [End; 6] = [End::Planned, End::CpuGone, End::Starved, End::ClockFailed, End::PacerFailed, End::StoppedOn];

impl Shared {
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Whether the thread, which is on `cpu`, is where it was pinned to; each time that it is counts.
    #[cold]
    pub fn is_on(&self, pinned_to: Option<u32>, cpu: u32) -> bool {
        let Some(own) = pinned_to else { return true };
        let is = own == cpu;
        add(&self.cpu_checks, u64::from(is));
        is
    }

    pub fn rests(&self) -> u64 {
        self.rests.load(Relaxed)
    }

    pub fn set_end(&self, end: End) {
        let code = ENDS.iter().position(|&e| e == end).map_or(0, |index| index + 1);
        self.end.store(code as u8, Relaxed);
    }

    pub fn end(&self) -> Option<End> {
        ENDS.get(usize::from(self.end.load(Relaxed)).checked_sub(1)?).copied()
    }
}

/// Adds to a counter that this thread alone writes.
#[inline]
pub fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}
