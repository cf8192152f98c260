//! Times in ns.

use sys::clock::Clock;

/// The time on CLOCK_MONOTONIC, ns; never negative, because this clock starts at boot.
pub(crate) fn now_ns() -> u64 {
    Clock::Monotonic.now_ns().unsigned_abs()
}

/// Converts a time of a run, which is far below 292 years.
pub(crate) fn signed_ns(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
