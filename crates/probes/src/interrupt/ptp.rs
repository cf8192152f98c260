//! A pin of a PTP hardware clock. The clock stamps each edge itself, independent of the kernel.

use std::io;

use record::{Interrupts, Zero};
use rustix::io::Errno;
use sys::{
    clock::{Around, Clock},
    interrupt::ptp::Stamps,
};

use super::source::{Found, Interrupted, QUICK_NS, Source, is_ready, read_old, ready_for_next};
use crate::probe_threads::Pacer;

/// An input of a clock, each of whose stamps is an interrupt.
#[derive(Debug)]
pub struct Pin {
    stamps: Stamps,
    /// The clock and its input in words.
    device: String,
    /// True if the kernel's queue was full when the stamps were read that follow.
    overrun: bool,
}

impl Pin {
    /// The stamps of an input; `device` is the clock and its input in words.
    #[must_use]
    pub fn new(stamps: Stamps, device: String) -> Self {
        Self { stamps, device, overrun: false }
    }
}

impl Source for Pin {
    fn describe(&self) -> Interrupts {
        Interrupts { device: self.device.clone(), zero: Zero::Counter, ..Interrupts::default() }
    }

    fn keeps_each(&self) -> bool {
        true
    }

    fn start(&mut self) -> io::Result<Pacer> {
        read_old(&mut self.stamps, Stamps::read)?;
        while self.stamps.take().is_some() {}
        Ok(Pacer::Irregular)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let is_empty = self.stamps.is_empty();
        if is_empty && self.stamps.may_continue() && !is_ready(&self.stamps)? {
            self.stamps.set_drained();
        }
        let Some(woke_ns) = ready_for_next(&self.stamps, is_empty)? else { return Ok(Found::Nothing) };
        if is_empty {
            self.overrun |= self.stamps.read()?;
        }
        let Some(stamp_ns) = self.stamps.take() else { return Ok(Found::Nothing) };
        let Around { value: now_ns, at_ns, error_ns } = Clock::Monotonic.around(QUICK_NS, || self.stamps.now_ns());
        if now_ns == 0 {
            return Err(Errno::NODEV.into());
        }
        Ok(Found::Interrupt(Interrupted {
            zero_ns: at_ns.saturating_sub(now_ns.saturating_sub(stamp_ns)),
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: Some(error_ns),
            lost: 0,
            overrun: std::mem::take(&mut self.overrun),
            unanswered: 0,
        }))
    }
}
