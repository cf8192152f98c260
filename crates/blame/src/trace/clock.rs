//! The clock of the trace.

use sys::clock::Clock;

/// The time on CLOCK_MONOTONIC, ns; never negative, because this clock starts at boot.
pub(crate) fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}
