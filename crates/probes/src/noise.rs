//! The noise probe: interruptions of a thread that never sleeps.
//!
//! One thread per CPU reads a counter continuously. Two readings further apart than a threshold are a gap: something
//! else used or stalled the CPU. The thread runs for a part of each period and sleeps for the remainder, so that the
//! machine stays usable; the remainder is not observed.
//!
//! It is prepared, started, read and ended like [`timer`](crate::timer)'s thread, with [`Spin`] in its settings.
//!
//! | module | contents |
//! |---|---|
//! | `scale` | conversion from ticks of the counter to ns of the clock |
//! | `spin` | the measuring loop |
//! | `series` | the series of the record |

mod scale;
mod series;
mod spin;

use std::sync::atomic::AtomicU64;

use sys::counter::{Counter, Cycles, Nanoseconds};

use scale::Scale;

pub(crate) use series::to_gaps;
pub(crate) use spin::Spinning;

/// A gap is at least this many times the usual time between two readings; anything shorter is the loop itself.
const FLOORS: u64 = 3;

/// The settings of the noise probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spin {
    /// Time to run in each period, ns; the thread sleeps for the rest of the period.
    runtime_ns: u64,
    counter: Counter,
    scale: Scale,
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
            Counter::Cycles => spin::floor_ns::<Cycles>(self.scale),
            Counter::Clock => spin::floor_ns::<Nanoseconds>(self.scale),
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
    /// Time in gaps, ns, without the usual time of one reading per gap.
    pub lost_ns: AtomicU64,
    /// Shortest length of a gap, ns.
    pub threshold_ns: AtomicU64,
    /// Periods in which the counter did not keep time with the clock.
    pub unsteady: AtomicU64,
}
