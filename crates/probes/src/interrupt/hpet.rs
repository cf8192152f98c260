//! A timer of the HPET: its counter tells how long ago the interrupt was raised, whatever kept the kernel from noticing.

use std::io;

use record::{Interrupts, Zero};
use sys::interrupt::hpet::Timer;

use super::source::{Found, Interrupted, Reading, Source, between_clocks, is_ready, ready};
use crate::probe_threads::Pacer;

/// A timer with a periodic interrupt.
#[derive(Debug)]
pub struct Hpet {
    timer: Timer,
    /// The period, ticks.
    period: u32,
    /// The oldest expiry that was not read yet; `None` before the first interrupt.
    next: Option<u32>,
}

impl Hpet {
    /// A timer that was set to this frequency, and has not started.
    #[must_use]
    pub fn new(timer: Timer, frequency_hz: u32) -> Self {
        let period = timer.period(frequency_hz);
        Self { timer, period, next: None }
    }
}

/// The oldest unread expiry, and the first one that is still unread afterwards, in ticks. `upcoming` is the comparator.
/// Several expiries become one interrupt if the kernel does not handle them in time. `has_more` says that one more was
/// reported after this one.
fn expiry(next: Option<u32>, upcoming: u32, period: u32, has_more: bool) -> (u32, u32) {
    let after = if has_more { upcoming.wrapping_sub(period) } else { upcoming };
    (next.unwrap_or_else(|| after.wrapping_sub(period)), after)
}

/// The ticks since an expiry; `None` if it is still to come. The kernel can report expiries in two parts, although the
/// first part already counted for all.
fn since(counter: u32, expiry: u32) -> Option<u32> {
    let ticks = counter.wrapping_sub(expiry);
    (ticks <= u32::MAX / 2).then_some(ticks)
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
        self.timer.start()?;
        Ok(Pacer::Periodic)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let Some(woke_ns) = ready(&self.timer)? else { return Ok(Found::Nothing) };
        self.timer.count()?;
        let Reading { value: now, at_ns, error_ns } = between_clocks(|| self.timer.now());
        let is_behind = self.next.is_some_and(|next| now.upcoming != next.wrapping_add(self.period));
        let has_more = is_behind && is_ready(&self.timer)?;
        let (oldest, next) = expiry(self.next, now.upcoming, self.period, has_more);
        let Some(ago) = since(now.counter, oldest) else { return Ok(Found::Nothing) };
        self.next = Some(next);
        let ago_ns = self.timer.ns(ago.into()).cast_signed();
        Ok(Found::Interrupt(Interrupted {
            zero_ns: at_ns - ago_ns,
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: Some(error_ns),
            // Those that became one interrupt are deadlines that the thread missed.
            lost: 0,
            unanswered: 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unread_expiry_counts() {
        assert_eq!(expiry(None, 1000, 100, false), (900, 1000));
        assert_eq!(expiry(Some(1000), 1100, 100, false), (1000, 1100));
        assert_eq!(expiry(Some(1000), 1200, 100, true), (1000, 1100), "another one came after the reading");
        assert_eq!(expiry(Some(1000), 1300, 100, false), (1000, 1300), "three became one interrupt");
        assert_eq!(expiry(Some(u32::MAX - 9), 90, 100, false), (u32::MAX - 9, 90), "the counter starts again");
        assert_eq!((since(1010, 1000), since(4, u32::MAX - 5), since(990, 1000)), (Some(10), Some(10), None));
    }
}
