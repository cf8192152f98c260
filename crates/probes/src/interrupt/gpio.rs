//! A line of a GPIO chip. The kernel stamps each rising edge in its handler; the edge itself has a time only if an output
//! line of this machine makes it.

use std::io;

use record::{Interrupts, Zero};
use sys::{
    clock::Clock,
    interrupt::gpio::{EVENTS_KEPT, Input},
};

use super::{
    shared::check_clock,
    source::{Found, Interrupted, Source, is_ready},
};
use crate::probe_threads::Pacer;

/// The edges of an input line. All functions run on the measuring thread.
pub trait LineEdges: Send {
    /// Discards the edges from before the start, of a signal that is active already.
    ///
    /// # Errors
    /// The error of the kernel.
    fn start(&mut self) -> io::Result<()>;

    /// Waits for an edge without a time limit. `None` if the wait was interrupted, or the edge is from before the start.
    ///
    /// # Errors
    /// The error of the kernel, if the line is gone.
    fn next(&mut self) -> io::Result<Option<NotedEdge>>;
}

/// An edge and the wake-up of the thread; times are ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedEdge {
    /// The kernel's stamp in its handler.
    pub stamp_ns: i64,
    /// When the thread read the clock after the wait.
    pub woke_ns: i64,
    /// Edges before this one that were lost, if the kernel numbers them.
    pub lost: u64,
    /// True if the kernel's queue was full at this edge, so that an unknown number of others may be lost.
    pub overrun: bool,
}

impl NotedEdge {
    /// The interrupt of the edge. Its zero is the kernel's stamp.
    #[inline]
    pub(super) fn interrupted(self) -> Interrupted {
        let Self { stamp_ns, woke_ns, lost, overrun } = self;
        Interrupted { zero_ns: stamp_ns, kernel_ns: None, woke_ns, uncertainty_ns: None, lost, overrun, unanswered: 0 }
    }
}

/// The edges of a line, for a thread of Linux.
#[derive(Debug)]
pub struct InBandEdges {
    input: Input,
    /// Number of the last edge.
    last: u32,
}

impl InBandEdges {
    /// The edges of this line.
    #[must_use]
    pub fn new(input: Input) -> Self {
        Self { input, last: 0 }
    }
}

impl LineEdges for InBandEdges {
    fn start(&mut self) -> io::Result<()> {
        for _ in 0..EVENTS_KEPT {
            if !is_ready(&self.input)? {
                break;
            }
            self.last = self.input.read()?.number;
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> io::Result<Option<NotedEdge>> {
        if self.input.is_empty() {
            match self.input.fill() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                filled => filled?,
            }
        }
        let woke_ns = Clock::Monotonic.now_ns();
        let Some(edge) = self.input.take() else { return Ok(None) };
        check_clock(edge.stamp_ns, woke_ns)?;
        let lost = u64::from(edge.number.wrapping_sub(self.last).saturating_sub(1));
        self.last = edge.number;
        Ok(Some(NotedEdge { stamp_ns: edge.stamp_ns, woke_ns, lost, overrun: false }))
    }
}

/// An input line, with the times of the edges that are made for it.
#[derive(Debug)]
pub struct Line<E> {
    edges: E,
    /// The chip and the line in words.
    device: String,
    /// Times before the output line was set, ns on CLOCK_MONOTONIC, and the name of that line; `None` without one.
    driven: Option<(rtrb::Consumer<i64>, String)>,
}

impl<E: LineEdges> Line<E> {
    /// A line whose edges something else makes, or that a [`Driver`](super::Driver) makes on the named output line.
    #[must_use]
    pub fn new(edges: E, device: String, driven: Option<(rtrb::Consumer<i64>, String)>) -> Self {
        Self { edges, device, driven }
    }
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

impl<E: LineEdges> Source for Line<E> {
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
        self.edges.start()?;
        Ok(if self.driven.is_some() { Pacer::Periodic } else { Pacer::Irregular })
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let Some(edge) = self.edges.next()? else { return Ok(Found::Nothing) };
        let interrupted = edge.interrupted();
        let Some((edges, _)) = &mut self.driven else { return Ok(Found::Interrupt(interrupted)) };
        Ok(edge_before(edges, edge.stamp_ns).map_or(Found::Spurious, |(zero_ns, unanswered)| {
            // Edges whose interrupts were lost caused one.
            let unanswered = unanswered.saturating_sub(edge.lost);
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
        assert_eq!(edge_before(&mut taken, 90), None, "it came before any edge");
        assert_eq!(edge_before(&mut taken, 103), Some((100, 0)));
        assert_eq!(edge_before(&mut taken, 150), None, "the line bounced");
        assert_eq!(edge_before(&mut taken, 305), Some((300, 1)), "one edge caused no interrupt");
        assert_eq!(edge_before(&mut taken, 400), None);
    }
}
