//! The noise probe: what takes the CPU from a thread that never sleeps.
//!
//! One thread a CPU reads a counter over and over. Two readings further apart than a threshold are a gap: something else
//! had the CPU, or held it up. The thread spins for a part of each period and rests for the remainder, so that the machine
//! stays usable; the rest is neither observed nor a gap.
//!
//! It is set up, started, read and ended as [`timer`](crate::timer)'s thread is, with [`Spin`] in its settings.
//!
//! | module | holds |
//! |---|---|
//! | `scale` | from ticks of the counter to ns on the clock |
//! | `spin` | the loop |
//! | `told` | what it saw, as a series of a record |

mod scale;
mod spin;
mod told;

use std::sync::atomic::AtomicU64;

use sys::counter::{Counter, Cycles, Nanoseconds};

use scale::Scale;

pub(crate) use spin::Spinning;
pub(crate) use told::tell;

/// Gaps are at least so many times the time between two readings: less is the loop itself.
const FLOORS: u64 = 3;

/// How to look for gaps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spin {
    /// How long to spin in each period, ns; the rest of the period the thread sleeps.
    runtime_ns: u64,
    counter: Counter,
    scale: Scale,
}

impl Spin {
    /// Spins for `runtime_ns` of each period over a counter. Holds it against the clock first, which takes 20 ms.
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

/// What the thread counts besides the gaps themselves.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Readings of the counter.
    pub iterations: AtomicU64,
    /// Time in which it looked, gaps included, ns.
    pub observed_ns: AtomicU64,
    /// Time in gaps, each without one reading's own time, ns.
    pub lost_ns: AtomicU64,
    /// Gaps are longer than this, ns.
    pub threshold_ns: AtomicU64,
    /// Stretches in which the counter did not keep time with the clock.
    pub unsteady: AtomicU64,
}
