//! The settings of the noise probe, its counters, and the usual time between two readings.

use std::sync::atomic::AtomicU64;

use sys::counter::{Counter, Cycles, Nanoseconds, Ticks};

use super::scale::Scale;

/// A gap is at least this many times the usual time between two readings; anything shorter is the loop itself.
pub(super) const FLOORS: u64 = 3;

/// Number of readings whose median is the floor.
const FLOOR_READINGS: usize = 1001;

/// The settings of the noise probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spin {
    /// Time to run in each period, ns; the thread sleeps for the rest of the period.
    pub(super) runtime_ns: u64,
    pub(super) counter: Counter,
    pub(super) scale: Scale,
}

impl Spin {
    /// Creates settings to run for `runtime_ns` of each period. Calibrates the counter with the clock, which takes 20
    /// ms.
    #[must_use]
    pub fn new(counter: Counter, runtime_ns: u64) -> Self {
        let scale = match counter {
            Counter::Cycles => Scale::measure::<Cycles>(),
            Counter::Clock => Scale::NANOSECONDS,
        };
        Self { runtime_ns, counter, scale }
    }

    /// Median time between two readings, ns.
    pub(crate) fn floor_ns(&self) -> u64 {
        match self.counter {
            Counter::Cycles => floor_ns::<Cycles>(self.scale),
            Counter::Clock => floor_ns::<Nanoseconds>(self.scale),
        }
    }
}

/// Counters of the noise probe in addition to the gaps.
#[derive(Debug, Default)]
pub(crate) struct NoiseCounters {
    /// Readings of the counter.
    pub iterations: AtomicU64,
    /// Observed time including gaps, ns.
    pub observed_ns: AtomicU64,
    /// Longest time from the begin of a period to its first reading, ns.
    pub latest_start_ns: AtomicU64,
    /// Time in gaps, ns, without the usual time of one reading per gap.
    pub lost_ns: AtomicU64,
    /// Shortest length of a gap, ns.
    pub threshold_ns: AtomicU64,
    /// Number of periods with a counter and a clock that disagreed.
    pub unsteady: AtomicU64,
}

/// Median time between two readings, ns.
pub(super) fn floor_ns<T: Ticks>(scale: Scale) -> u64 {
    let mut last = T::now();
    let mut steps: [u64; FLOOR_READINGS] = std::array::from_fn(|_| {
        let now = T::now();
        now.wrapping_sub(std::mem::replace(&mut last, now))
    });
    steps.sort_unstable();
    scale.ns(steps[FLOOR_READINGS / 2])
}
