//! A device that only counts its interrupts. Their times are those at which their handler began, from the kernel's trace.

use std::io;

use record::{Interrupts, Zero};
use sys::interrupt::{counted::Counted, handler::Handlers};

use super::source::{Found, Interrupted, OLD_READS, Source, is_ready, ready_for_next};
use crate::probe_threads::Pacer;

/// A device, with the times of its handler.
#[derive(Debug)]
pub struct Traced<D> {
    device: D,
    /// The device in words.
    name: String,
    handlers: Handlers,
    /// Interrupts that the device reported together with one before, and that were not returned yet.
    waiting: u64,
    /// Runs of the handler that the device reported together with others.
    merged: u64,
}

impl<D: Counted> Traced<D> {
    /// The interrupts of a device; `name` is the device in words, `handlers` those of its only interrupt.
    #[must_use]
    pub fn new(device: D, name: String, handlers: Handlers) -> Self {
        Self { device, name, handlers, waiting: 0, merged: 0 }
    }
}

impl<D: Counted> Source for Traced<D> {
    fn describe(&self) -> Interrupts {
        Interrupts { device: self.name.clone(), zero: Zero::Trace, resolution_ns: Some(1), ..Interrupts::default() }
    }

    fn keeps_each(&self) -> bool {
        // The device only counts them, but the trace has the time of each.
        true
    }

    fn start(&mut self) -> io::Result<Pacer> {
        // Interrupts from before the start.
        for _ in 0..OLD_READS {
            if !is_ready(&self.device)? {
                break;
            }
            self.device.take()?;
        }
        while self.handlers.take_ns().is_some() {}
        self.handlers.take_lost();
        Ok(Pacer::Irregular)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let is_first = self.waiting == 0;
        let Some(woke_ns) = ready_for_next(&self.device, is_first)? else { return Ok(Found::Nothing) };
        if is_first {
            // Handlers that ran until then, and were not reported, became one with the reported ones.
            let ran = self.handlers.count_until(woke_ns);
            self.waiting = self.device.take()?;
            self.merged = ran.saturating_sub(self.waiting);
            if self.waiting == 0 {
                return Ok(Found::Nothing);
            }
        }
        self.waiting -= 1;
        let zero_ns = self.handlers.oldest_ns().filter(|&ns| ns <= woke_ns);
        let mut lost = 0;
        if zero_ns.is_some() {
            self.handlers.take_ns();
        }
        if self.waiting == 0 {
            lost = std::mem::take(&mut self.merged);
            for _ in 0..lost {
                self.handlers.take_ns();
            }
        }
        let overrun = self.handlers.take_lost() > 0;
        let interrupt = |zero_ns| {
            Found::Interrupt(Interrupted {
                zero_ns,
                kernel_ns: None,
                woke_ns,
                uncertainty_ns: None,
                lost,
                overrun,
                unanswered: 0,
            })
        };
        Ok(zero_ns.map_or(Found::Untimed, interrupt))
    }
}
