//! A device of the counter subsystem. The kernel stamps each event when its driver reports it. A capture register shows
//! how long before that the signal changed.

use std::io;

use record::{Interrupts, Zero};
use sys::{clock::Around, interrupt::counter::Device};

use super::capture::RunningCount;
use super::source::{Found, Interrupted, Source, read_old, ready_for_next};
use crate::probe_threads::Pacer;

/// A device, each of whose events is an interrupt.
#[derive(Debug)]
pub struct Counter {
    device: Device,
    /// The device in words.
    name: String,
    /// The count whose captured value comes with each event; `None` without a capture register.
    count: Option<RunningCount>,
    /// True if the kernel's queue was full when the events were read that follow.
    overrun: bool,
}

impl Counter {
    /// The events of a device, with the captured value of `count` if it has one; `name` is the device in words.
    #[must_use]
    pub fn new(device: Device, name: String, count: Option<RunningCount>) -> Self {
        Self { device, name, count, overrun: false }
    }
}

impl Source for Counter {
    fn describe(&self) -> Interrupts {
        let (zero, resolution_ns) = match &self.count {
            Some(count) => (Zero::Counter, count.resolution_ns()),
            None => (Zero::Handler, 1),
        };
        let device = self.name.clone();
        Interrupts { device, zero, resolution_ns: Some(resolution_ns), ..Interrupts::default() }
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
        let Some(event) = self.device.take() else { return Ok(Found::Nothing) };
        let interrupted = Interrupted {
            zero_ns: event.stamp_ns,
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: None,
            lost: 0,
            overrun: std::mem::take(&mut self.overrun),
            unanswered: 0,
        };
        let Some(count) = &self.count else { return Ok(Found::Interrupt(interrupted)) };
        if event.error != 0 {
            return Err(io::Error::from_raw_os_error(event.error.into()));
        }
        let Around { value: now, at_ns, error_ns } = count.read()?;
        let ago = count.ago(now, event.value, at_ns - event.stamp_ns, error_ns)?;
        Ok(Found::Interrupt(Interrupted {
            zero_ns: at_ns.saturating_sub(ago.ns),
            kernel_ns: Some(event.stamp_ns),
            uncertainty_ns: Some(error_ns.saturating_add(ago.error_ns)),
            ..interrupted
        }))
    }
}
