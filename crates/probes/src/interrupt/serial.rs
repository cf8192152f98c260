//! A serial port, one of whose outputs is wired to one of its inputs. The kernel counts the changes of the input, but stamps
//! none, and its wait (`TIOCMIWAIT`) misses those that come before it begins.

use std::{io, sync::Arc};

use record::{Interrupts, Zero};
use sys::{clock::Clock, interrupt::serial::Port};

use super::{
    driver::{Drive, Edges},
    parport::remove_unanswered,
    source::{Found, Interrupted, Source},
};
use crate::probe_threads::Pacer;

/// The output of a port, for a [`Driver`](super::Driver).
#[derive(Debug)]
pub struct ControlOutput(pub Arc<Port>);

impl Drive for ControlOutput {
    fn set(&mut self, is_active: bool) -> io::Result<()> {
        self.0.set(is_active)
    }
}

/// The input of a port, with the times of the edges that are made for it.
#[derive(Debug)]
pub struct ControlInput {
    port: Arc<Port>,
    /// The input and its port in words.
    device: String,
    /// The output in words.
    output: String,
    edges: Edges,
    /// Changes until the last wait.
    changes: u32,
    /// The level after them.
    is_active: bool,
    /// Rising edges of the last wait that were not returned yet.
    waiting: u32,
    /// Edges that the wait missed, and that were not returned yet.
    lost: u64,
}

impl ControlInput {
    /// The input of a port whose edges a [`Driver`](super::Driver) makes with its [`ControlOutput`].
    #[must_use]
    pub fn new(port: Arc<Port>, device: String, output: String, edges: Edges) -> Self {
        Self { port, device, output, edges, changes: 0, is_active: false, waiting: 0, lost: 0 }
    }
}

/// The rising edges among this many changes of a line that was active before them or not.
fn rising(changes: u32, was_active: bool) -> u32 {
    if was_active { changes / 2 } else { changes / 2 + changes % 2 }
}

/// Removes the oldest of `rises` edges that a wait, which began at `began_ns`, may have missed; returns their number. The
/// wait certainly noticed the last one if `last_is_noticed`, and if `is_woken`, those that were made after its begin.
#[inline]
fn remove_missed(edges: &mut Edges, rises: u32, began_ns: i64, is_woken: bool, last_is_noticed: bool) -> u32 {
    let noticed = u32::from(last_is_noticed);
    let mut missed = 0;
    while missed + noticed < rises && edges.peek().is_ok_and(|&edge_ns| !is_woken || edge_ns < began_ns) {
        let _ = edges.pop();
        missed += 1;
    }
    missed
}

impl Source for ControlInput {
    fn describe(&self) -> Interrupts {
        Interrupts {
            device: self.device.clone(),
            zero: Zero::Edge,
            resolution_ns: Some(1),
            driven_by: Some(self.output.clone()),
            ..Interrupts::default()
        }
    }

    fn keeps_each(&self) -> bool {
        // It only counts them, but each has an edge of known time.
        true
    }

    fn waits_for_ever(&self) -> bool {
        true
    }

    fn start(&mut self) -> io::Result<Pacer> {
        self.changes = self.port.changes()?;
        self.is_active = self.port.is_active()?;
        Ok(Pacer::Periodic)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        let mut unanswered = 0;
        let mut woke_ns = Clock::Monotonic.now_ns();
        if self.waiting == 0 {
            let began_ns = woke_ns;
            let waited = self.port.wait();
            woke_ns = Clock::Monotonic.now_ns();
            let is_woken = match waited {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
                waited => waited.map(|()| true)?,
            };
            let now = self.port.changes()?;
            let changes = now.wrapping_sub(std::mem::replace(&mut self.changes, now));
            let rises = rising(changes, self.is_active);
            self.is_active ^= !changes.is_multiple_of(2);
            if rises == 0 {
                return Ok(Found::Nothing);
            }
            unanswered = remove_unanswered(&mut self.edges, rises, woke_ns);
            let missed = remove_missed(&mut self.edges, rises, began_ns, is_woken, is_woken && self.is_active);
            self.lost += u64::from(missed);
            self.waiting = rises - missed;
            if self.waiting == 0 {
                return Ok(Found::Nothing);
            }
        }
        self.waiting -= 1;
        if self.edges.peek().is_ok_and(|&edge_ns| edge_ns > woke_ns) {
            return Ok(Found::Spurious);
        }
        Ok(self.edges.pop().map_or(Found::Spurious, |zero_ns| {
            Found::Interrupt(Interrupted {
                zero_ns,
                kernel_ns: None,
                woke_ns,
                uncertainty_ns: None,
                lost: std::mem::take(&mut self.lost),
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
    fn each_second_change_is_a_rising_edge() {
        assert_eq!([0, 1, 2, 3, 4].map(|changes| rising(changes, false)), [0, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2, 3, 4].map(|changes| rising(changes, true)), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn an_edge_before_the_wait_is_missed_unless_it_ended_the_wait() {
        let missed = |made: &[i64], began_ns, is_woken, last_is_noticed| {
            let (mut edges, mut taken) = rtrb::RingBuffer::new(8);
            made.iter().for_each(|&ns| edges.push(ns).unwrap());
            let rises = u32::try_from(made.len()).unwrap();
            let missed = remove_missed(&mut taken, rises, began_ns, is_woken, last_is_noticed);
            (missed, taken.pop().ok())
        };
        assert_eq!(missed(&[100], 90, true, true), (0, Some(100)), "the usual case");
        assert_eq!(missed(&[100], 110, true, true), (0, Some(100)), "its interrupt came after the begin");
        assert_eq!(missed(&[100], 110, true, false), (1, None), "the falling edge ended the wait");
        assert_eq!(missed(&[100], 90, true, false), (0, Some(100)), "the thread was late by half a period");
        assert_eq!(missed(&[100], 110, false, false), (1, None), "a signal ended the wait");
        assert_eq!(missed(&[100, 200], 110, true, true), (1, Some(200)));
    }
}
