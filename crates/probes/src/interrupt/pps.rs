//! A source of a pulse per second.

use std::io;

use record::{Interrupts, Zero};
use sys::{
    clock::{Around, Clock},
    interrupt::pps,
};

use super::source::{Found, Interrupted, QUICK_NS, Source, WAIT};
use crate::probe_threads::Pacer;

/// A source, whose pulses the kernel stamps on CLOCK_REALTIME.
#[derive(Debug)]
pub struct Pulses {
    source: pps::Source,
    device: String,
}

impl Pulses {
    /// The pulses of an open source; `device` is its name in words.
    #[must_use]
    pub fn new(source: pps::Source, device: String) -> Self {
        Self { source, device }
    }
}

impl Source for Pulses {
    fn describe(&self) -> Interrupts {
        Interrupts { device: self.device.clone(), zero: Zero::Handler, resolution_ns: Some(1), ..Interrupts::default() }
    }

    fn keeps_each(&self) -> bool {
        false
    }

    fn start(&mut self) -> io::Result<Pacer> {
        self.source.skip_old()?;
        Ok(Pacer::Irregular)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let pulse = self.source.wait(WAIT)?;
        let woke_ns = Clock::Monotonic.now_ns();
        let Some(pulse) = pulse else { return Ok(Found::Nothing) };
        let Around { value: real_ns, at_ns, error_ns } = Clock::Monotonic.around(QUICK_NS, || Clock::Realtime.now_ns());
        Ok(Found::Interrupt(Interrupted {
            zero_ns: at_ns - (real_ns - pulse.stamp_ns),
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: Some(error_ns),
            lost: pulse.lost.into(),
            overrun: false,
            unanswered: 0,
        }))
    }
}
