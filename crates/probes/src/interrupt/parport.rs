//! A parallel port, whose output STROBE is wired to its input ACK. The kernel counts its interrupts, but stamps none.

use std::{io, sync::Arc};

use record::{Interrupts, Zero};
use sys::interrupt::parport::Port;

use super::{
    driver::{Drive, Edges},
    source::{Found, Interrupted, Source, is_ready, ready_for_next},
};
use crate::probe_threads::Pacer;

/// The output of a port, for a [`Driver`](super::Driver).
#[derive(Debug)]
pub struct Strobe(pub Arc<Port>);

impl Drive for Strobe {
    fn set(&mut self, is_active: bool) -> io::Result<()> {
        self.0.set_strobe(is_active)
    }
}

/// A port, with the times of the edges that are made for it.
#[derive(Debug)]
pub struct Ack {
    port: Arc<Port>,
    /// The port in words.
    device: String,
    edges: Edges,
    /// Interrupts that the kernel reported together with one before, and that were not returned yet.
    waiting: u32,
}

impl Ack {
    /// The input of a port whose edges a [`Driver`](super::Driver) makes with its [`Strobe`].
    #[must_use]
    pub fn new(port: Arc<Port>, device: String, edges: Edges) -> Self {
        Self { port, device, edges, waiting: 0 }
    }
}

/// Removes the edges that caused none of `count` interrupts, which were reported at `woke_ns`; returns their number.
#[inline]
pub(super) fn remove_unanswered(edges: &mut Edges, count: u32, woke_ns: i64) -> u64 {
    let Ok(chunk) = edges.read_chunk(edges.slots()) else { return 0 };
    let (first, second) = chunk.as_slices();
    let made = first.iter().chain(second).take_while(|&&edge_ns| edge_ns <= woke_ns).count();
    let unanswered = made.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    chunk.commit(unanswered);
    unanswered as u64
}

impl Source for Ack {
    fn describe(&self) -> Interrupts {
        Interrupts {
            device: self.device.clone(),
            zero: Zero::Edge,
            resolution_ns: Some(1),
            driven_by: Some("STROBE (pin 1)".to_owned()),
            ..Interrupts::default()
        }
    }

    fn keeps_each(&self) -> bool {
        // It only counts them, but each has an edge of known time.
        true
    }

    fn start(&mut self) -> io::Result<Pacer> {
        // Interrupts from before the start.
        if is_ready(&*self.port)? {
            self.port.take()?;
        }
        Ok(Pacer::Periodic)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let is_first = self.waiting == 0;
        let Some(woke_ns) = ready_for_next(&*self.port, is_first)? else { return Ok(Found::Nothing) };
        let mut unanswered = 0;
        if is_first {
            self.waiting = self.port.take()?;
            unanswered = remove_unanswered(&mut self.edges, self.waiting, woke_ns);
        }
        self.waiting = self.waiting.saturating_sub(1);
        if self.edges.peek().is_ok_and(|&edge_ns| edge_ns > woke_ns) {
            return Ok(Found::Spurious);
        }
        Ok(self.edges.pop().map_or(Found::Spurious, |zero_ns| {
            Found::Interrupt(Interrupted {
                zero_ns,
                kernel_ns: None,
                woke_ns,
                uncertainty_ns: None,
                lost: 0,
                overrun: false,
                unanswered,
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_belong_to_the_last_edges_before_them() {
        let (mut edges, mut taken) = rtrb::RingBuffer::new(4);
        [100, 200, 300].into_iter().for_each(|ns| edges.push(ns).unwrap());
        assert_eq!(remove_unanswered(&mut taken, 1, 90), 0, "it came before any edge");
        assert_eq!(remove_unanswered(&mut taken, 1, 110), 0);
        assert_eq!(taken.pop(), Ok(100));
        [400, 500].into_iter().for_each(|ns| edges.push(ns).unwrap());
        assert_eq!(remove_unanswered(&mut taken, 1, 310), 1, "one edge caused no interrupt");
        assert_eq!(taken.pop(), Ok(300));
        assert_eq!(remove_unanswered(&mut taken, 3, 510), 0, "more interrupts than edges");
        assert_eq!((taken.pop(), taken.pop()), (Ok(400), Ok(500)));
        assert_eq!(remove_unanswered(&mut taken, 1, 600), 0, "no edge");
    }
}
