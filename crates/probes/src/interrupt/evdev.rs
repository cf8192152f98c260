//! An input device. The kernel stamps each packet of events when its driver reports it.

use std::io;

use record::{Interrupts, Zero};
use sys::interrupt::evdev::{Device, Event};

use super::source::{Found, Interrupted, Source, read_old, ready_for_next};
use crate::probe_threads::Pacer;

/// An input device, each of whose packets is an interrupt.
#[derive(Debug)]
pub struct Input {
    device: Device,
    /// The device in words.
    name: String,
    reports: Reports,
}

/// Finds the packets in a sequence of events.
#[derive(Debug, Default)]
struct Reports {
    /// True if the kernel dropped packets since the last one.
    dropped: bool,
}

impl Reports {
    /// The stamp of the packet that this event ends, ns, and true if packets before it were dropped.
    #[inline]
    fn add(&mut self, event: Event) -> Option<(i64, bool)> {
        match event {
            Event::Report(stamp_ns) => Some((stamp_ns, std::mem::take(&mut self.dropped))),
            Event::Dropped => {
                self.dropped = true;
                None
            }
            Event::OfKernel | Event::Input => None,
        }
    }
}

impl Input {
    /// The packets of a device; `name` is the device in words.
    #[must_use]
    pub fn new(device: Device, name: String) -> Self {
        Self { device, name, reports: Reports::default() }
    }
}

impl Source for Input {
    fn describe(&self) -> Interrupts {
        Interrupts {
            device: self.name.clone(),
            zero: Zero::Handler,
            resolution_ns: Some(1000),
            ..Interrupts::default()
        }
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
        let Some(woke_ns) = ready_for_next(&self.device, is_empty)? else { return Ok(Found::Nothing) };
        if is_empty {
            self.device.read()?;
        }
        while let Some(event) = self.device.take() {
            if let Some((zero_ns, dropped)) = self.reports.add(event) {
                return Ok(Found::Interrupt(Interrupted {
                    zero_ns,
                    kernel_ns: None,
                    woke_ns,
                    uncertainty_ns: None,
                    // At least this one: the kernel does not count them.
                    lost: dropped.into(),
                    overrun: dropped,
                    unanswered: 0,
                }));
            }
        }
        Ok(Found::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_of_the_device_is_an_interrupt() {
        let events = [
            Event::Input,
            Event::Input,
            Event::Report(10),
            Event::Input,
            Event::OfKernel,
            Event::Dropped,
            Event::Input,
            Event::Report(20),
            Event::Input,
            Event::Report(30),
        ];
        let mut reports = Reports::default();
        let found: Vec<_> = events.into_iter().filter_map(|event| reports.add(event)).collect();
        assert_eq!(found, [(10, false), (20, true), (30, false)]);
    }
}
