//! Data shared by the measuring thread and its reader: lock-free counters, and a queue of rare events.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed},
};

use super::settings::End;
use crate::{counts::Counts, noise::settings::NoiseCounters, setup::AtEnd};

/// An event that is rare enough to be queued.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A wake-up that is a spike, missed deadlines, or is outside the histogram.
    Notable { lateness_ns: i64, at_ns: u64 },
    /// The largest lateness of the second that ended before `at_ns`.
    SecondEnded { at_ns: u64, max_ns: i64 },
}

/// Capacity of the queue. With a period of 20 us and every wake-up late the reader has 80 ms.
const QUEUE: usize = 4096;

/// Counters that only the measuring thread writes. Each is read separately, so they may differ by one wake-up.
#[derive(Debug)]
pub struct Shared {
    pub counts: Counts,
    /// The first deadline, ns on the settings' clock.
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
    /// Events for which the queue was full.
    pub lost: AtomicU64,
    /// Checks that found the thread on its own CPU.
    pub cpu_checks: AtomicU64,
    /// CPU time that the thread used for all its deadlines, ns; unset until it has ended, and for EVL threads.
    pub cpu_time_ns: OnceLock<u64>,
    /// Pauses that the guard imposed on the thread.
    pub pauses: AtomicU64,
    /// Waits for a device that have ended.
    pub waits: AtomicU64,
    /// Switches of an EVL thread to in-band scheduling.
    pub in_band: AtomicU64,
    /// Counters of a noise probe.
    pub noise: NoiseCounters,
    pub pending: Pending,
    pub at_end: AtEnd,
    stop: AtomicBool,
    end: AtomicU8,
}

/// The time that the thread waits for, ns on the settings' clock: its next deadline, or of a noise probe its last
/// reading of the clock. At a stop, either the thread or the reader takes it and counts what it is late by.
#[derive(Debug)]
pub struct Pending(AtomicI64);

impl Pending {
    const NONE: i64 = i64::MIN;

    /// Waits for `at_ns`. Only the thread calls it.
    #[inline]
    pub fn set(&self, at_ns: i64) {
        self.0.store(at_ns, Relaxed);
    }

    /// Waits for nothing that could be late.
    pub fn clear(&self) {
        self.set(Self::NONE);
    }

    /// Takes the time, which only one of both sides can.
    pub fn take(&self) -> Option<i64> {
        Some(self.0.swap(Self::NONE, Relaxed)).filter(|&at_ns| at_ns != Self::NONE)
    }
}

/// The measuring thread's side.
pub struct Writer {
    pub shared: Arc<Shared>,
    pub events: rtrb::Producer<Event>,
}

/// The writer's side, the shared counters, and the queue of events for the reader.
pub fn channel() -> (Writer, Arc<Shared>, rtrb::Consumer<Event>) {
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
        cpu_time_ns: OnceLock::new(),
        pauses: AtomicU64::new(0),
        waits: AtomicU64::new(0),
        in_band: AtomicU64::new(0),
        noise: NoiseCounters::default(),
        pending: Pending(AtomicI64::new(Pending::NONE)),
        at_end: AtEnd::default(),
        stop: AtomicBool::new(false),
        end: AtomicU8::new(0),
    });
    let (events, queue) = rtrb::RingBuffer::new(QUEUE);
    (Writer { shared: shared.clone(), events }, shared, queue)
}

const ENDS: [End; 6] = [End::Planned, End::LeftCpu, End::Starved, End::ClockFailed, End::PacerFailed, End::StoppedOn];

impl Shared {
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// True if the thread, which is on `cpu`, is on the CPU that it was pinned to; counts each such check.
    #[cold]
    pub fn on_pinned_cpu(&self, pinned_to: Option<u32>, cpu: u32) -> bool {
        let Some(own) = pinned_to else { return true };
        let on_own_cpu = own == cpu;
        add(&self.cpu_checks, u64::from(on_own_cpu));
        on_own_cpu
    }

    pub fn pauses(&self) -> u64 {
        self.pauses.load(Relaxed)
    }

    pub fn set_end(&self, end: End) {
        let code = ENDS.iter().zip(1..).find(|&(&e, _)| e == end).map_or(0, |(_, code)| code);
        self.end.store(code, Relaxed);
    }

    pub fn end(&self) -> Option<End> {
        ENDS.get(usize::from(self.end.load(Relaxed)).checked_sub(1)?).copied()
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
pub fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}
