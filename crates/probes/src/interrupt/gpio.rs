//! A line of a GPIO chip. The kernel stamps each rising edge in its handler; the edge itself has a time only if an output
//! line of this machine makes it.

use std::io;

use record::{Interrupts, Zero};
use sys::{
    clock::Clock,
    interrupt::gpio::{EVENTS_KEPT, Input},
};

use super::source::{Found, Interrupted, Source, is_ready};
use crate::probe_threads::Pacer;

/// An input line, with the times of the edges that are made for it.
#[derive(Debug)]
pub struct Line {
    input: Input,
    /// The chip and the line in words.
    device: String,
    /// Times before the output line was set, ns on CLOCK_MONOTONIC, and the name of that line; `None` without one.
    driven: Option<(rtrb::Consumer<i64>, String)>,
    /// Number of the last edge.
    last: u32,
}

impl Line {
    /// A line whose edges something else makes, or that a [`Driver`](super::Driver) makes on the named output line.
    #[must_use]
    pub fn new(input: Input, device: String, driven: Option<(rtrb::Consumer<i64>, String)>) -> Self {
        Self { input, device, driven, last: 0 }
    }

    /// The time of the edge that caused an interrupt with this stamp, and the number of edges before it that caused none.
    #[inline]
    fn edge_before(edges: &mut rtrb::Consumer<i64>, stamp_ns: i64) -> Option<(i64, u64)> {
        let (mut found, mut passed) = (None, 0);
        while edges.peek().is_ok_and(|&edge_ns| edge_ns <= stamp_ns) {
            passed += 1;
            found = edges.pop().ok();
        }
        Some((found?, passed - 1))
    }
}

impl Source for Line {
    fn describe(&self) -> Interrupts {
        Interrupts {
            device: self.device.clone(),
            zero: if self.driven.is_some() { Zero::Edge } else { Zero::Handler },
            resolution_ns: Some(1),
            driven_by: self.driven.as_ref().map(|(_, name)| name.clone()),
            ..Interrupts::default()
        }
    }

    fn keeps_each(&self) -> bool {
        true
    }

    fn waits_for_ever(&self) -> bool {
        true
    }

    fn start(&mut self) -> io::Result<Pacer> {
        // Edges from before the start, of a signal that is active already.
        for _ in 0..EVENTS_KEPT {
            if !is_ready(&self.input)? {
                break;
            }
            self.last = self.input.read()?.number;
        }
        Ok(if self.driven.is_some() { Pacer::Periodic } else { Pacer::Irregular })
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        if self.input.is_empty() {
            match self.input.fill() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Found::Nothing),
                filled => filled?,
            }
        }
        let woke_ns = Clock::Monotonic.now_ns();
        let Some(edge) = self.input.take() else { return Ok(Found::Nothing) };
        let lost = u64::from(edge.number.wrapping_sub(self.last).saturating_sub(1));
        self.last = edge.number;
        let interrupted = Interrupted {
            zero_ns: edge.stamp_ns,
            kernel_ns: None,
            woke_ns,
            uncertainty_ns: None,
            lost,
            overrun: false,
            unanswered: 0,
        };
        let Some((edges, _)) = &mut self.driven else { return Ok(Found::Interrupt(interrupted)) };
        Ok(Self::edge_before(edges, edge.stamp_ns).map_or(Found::Spurious, |(zero_ns, unanswered)| {
            // Edges whose interrupts were lost caused one.
            let unanswered = unanswered.saturating_sub(lost);
            Found::Interrupt(Interrupted { zero_ns, kernel_ns: Some(edge.stamp_ns), unanswered, ..interrupted })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interrupt_belongs_to_the_last_edge_before_it() {
        let (mut edges, mut taken) = rtrb::RingBuffer::new(8);
        [100, 200, 300].into_iter().for_each(|ns| edges.push(ns).unwrap());
        assert_eq!(Line::edge_before(&mut taken, 90), None, "it came before any edge");
        assert_eq!(Line::edge_before(&mut taken, 103), Some((100, 0)));
        assert_eq!(Line::edge_before(&mut taken, 150), None, "the line bounced");
        assert_eq!(Line::edge_before(&mut taken, 305), Some((300, 1)), "one edge caused no interrupt");
        assert_eq!(Line::edge_before(&mut taken, 400), None);
    }
}
