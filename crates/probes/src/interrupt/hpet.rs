//! A timer of the HPET: its counter tells how long ago the interrupt was raised, whatever kept the kernel from noticing.

use std::io;

use record::{Interrupts, Zero};
use rustix::io::Errno;
use sys::{
    clock::{Around, Clock},
    interrupt::hpet::Timer,
};

use super::source::{Found, Interrupted, QUICK_NS, Source, is_ready, ready};
use crate::probe_threads::Pacer;

/// Most attempts to begin between two expiries.
const START_TRIES: usize = 64;

/// A timer with a periodic interrupt.
#[derive(Debug)]
pub struct Hpet {
    timer: Timer,
    /// The period, ticks.
    period: u32,
    /// The same, ns.
    period_ns: i64,
    /// The oldest expiry whose wake-up was not counted, ticks.
    next: u32,
}

impl Hpet {
    /// A timer that was set to this frequency, and has started.
    #[must_use]
    pub fn new(timer: Timer, frequency_hz: u32) -> Self {
        let period = timer.period(frequency_hz);
        Self { timer, period, period_ns: 1_000_000_000 / i64::from(frequency_hz.max(1)), next: 0 }
    }
}

/// The first expiry after those that a wake-up counts: the one at `expiry`, and one for each whole period that it is late.
fn after(expiry: u32, period: u32, late_ns: i64, period_ns: i64) -> u32 {
    let missed = u32::try_from(late_ns / period_ns.max(1)).unwrap_or(0);
    expiry.wrapping_add(period.wrapping_mul(missed.wrapping_add(1)))
}

/// The ticks since an expiry; `None` if it is still to come. The kernel can report expiries again that a wake-up counted
/// as missed.
///
/// # Errors
/// EOVERFLOW if the thread was late by more than half the range of the counter: that is 21 s at 100 MHz.
fn since(counter: u32, expiry: u32, period: u32) -> io::Result<Option<u32>> {
    let ticks = counter.wrapping_sub(expiry);
    if ticks <= u32::MAX / 2 {
        return Ok(Some(ticks));
    }
    // A wake-up counts all expiries before it, so the next one is less than a period away, but for rounding.
    let away = expiry.wrapping_sub(counter);
    if away <= period.saturating_mul(2) { Ok(None) } else { Err(Errno::OVERFLOW.into()) }
}

impl Source for Hpet {
    fn describe(&self) -> Interrupts {
        let mhz = 1e9 / self.timer.tick_fs() as f64;
        Interrupts {
            device: format!("HPET, counter at {mhz:.3} MHz"),
            zero: Zero::Counter,
            resolution_ns: Some(self.timer.ns(1).max(1)),
            ..Interrupts::default()
        }
    }

    fn keeps_each(&self) -> bool {
        false
    }

    fn start(&mut self) -> io::Result<Pacer> {
        // Expiries from before the start. The next one is still to come if none was pending after it was read.
        for _ in 0..START_TRIES {
            self.next = self.timer.upcoming();
            if !is_ready(&self.timer)? {
                break;
            }
            self.timer.count()?;
        }
        Ok(Pacer::Periodic)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let Some(woke_ns) = ready(&self.timer)? else { return Ok(Found::Nothing) };
        self.timer.count()?;
        let Around { value: counter, at_ns, error_ns } = Clock::Monotonic.around(QUICK_NS, || self.timer.counter());
        let Some(ago) = since(counter, self.next, self.period)? else { return Ok(Found::Nothing) };
        let zero_ns = at_ns - self.timer.ns(ago.into()).cast_signed();
        self.next = after(self.next, self.period, woke_ns - zero_ns, self.period_ns);
        Ok(Found::Interrupt(Interrupted {
            zero_ns,
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: Some(error_ns),
            // Expiries that became one interrupt count as missed deadlines.
            lost: 0,
            overrun: false,
            unanswered: 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_counts_each_expiry_once() {
        assert_eq!(after(1000, 100, 999, 1000), 1100);
        assert_eq!(after(1000, 100, 1000, 1000), 1200, "one was missed");
        assert_eq!(after(1000, 100, -3, 1000), 1100, "an error of the conversion");
        assert_eq!(after(u32::MAX - 9, 100, 0, 1000), 90, "the counter starts again");
    }

    #[test]
    fn an_expiry_is_past_or_to_come() {
        let since = |counter, expiry| since(counter, expiry, 100).map_err(|error| error.raw_os_error());
        assert_eq!(
            (since(1010, 1000), since(4, u32::MAX - 5), since(990, 1000)),
            (Ok(Some(10)), Ok(Some(10)), Ok(None))
        );
        assert_eq!(since(1 << 31, 1), Ok(Some(u32::MAX / 2)));
        assert_eq!(since((1 << 31) + 1, 1), Err(Some(Errno::OVERFLOW.raw_os_error())), "no answer is possible");
    }
}
