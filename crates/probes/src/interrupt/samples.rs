//! The buffer of an industrial I/O device. The kernel stamps each sample when its trigger fires.

use std::io;

use record::{Interrupts, Zero};
use sys::interrupt::iio::Device;

use super::source::{Found, Interrupted, Source, read_old, ready_for_next};
use crate::probe_threads::Pacer;

/// A device, each of whose samples is an interrupt.
#[derive(Debug)]
pub struct Samples {
    device: Device,
    /// The device in words.
    name: String,
    /// True if the kernel's buffer was full when the samples were read that follow.
    overrun: bool,
}

impl Samples {
    /// The samples of a device whose stamps are on CLOCK_MONOTONIC; `name` is the device in words.
    #[must_use]
    pub fn new(device: Device, name: String) -> Self {
        Self { device, name, overrun: false }
    }
}

impl Source for Samples {
    fn describe(&self) -> Interrupts {
        Interrupts { device: self.name.clone(), zero: Zero::Handler, resolution_ns: Some(1), ..Interrupts::default() }
    }

    fn keeps_each(&self) -> bool {
        true
    }

    fn start(&mut self) -> io::Result<Pacer> {
        read_old(&mut self.device, Device::read)?;
        while self.device.take().is_some() {}
        Ok(Pacer::Irregular)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let is_empty = self.device.is_empty();
        let Some(woke_ns) = ready_for_next(&self.device, is_empty)? else {
            // A device that is gone never becomes ready.
            return self.device.exists().map(|()| Found::Nothing);
        };
        if is_empty {
            self.overrun |= self.device.read()?;
        }
        let Some(zero_ns) = self.device.take() else { return Ok(Found::Nothing) };
        Ok(Found::Interrupt(Interrupted {
            zero_ns,
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: None,
            lost: 0,
            overrun: std::mem::take(&mut self.overrun),
            unanswered: 0,
        }))
    }
}
