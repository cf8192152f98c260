//! Launch times: each frame is queued together with the time of its slot. The queueing discipline ETF holds it until
//! then.

use std::{io, sync::Arc};

use record::Launch;
use sys::packet::{Dropped, TimedSender};

use super::transmit::{Transmit, TransmitReports};

/// The slots must be on CLOCK_TAI.
impl Transmit for Arc<TimedSender> {
    #[inline]
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        TimedSender::send(self, frame, slot_ns)
    }

    #[inline]
    fn send_all(&mut self, frames: &[&[u8]], launches_ns: &[i64]) -> io::Result<usize> {
        TimedSender::send_all(self, frames, launches_ns)
    }
}

/// Counts the frames that the queueing discipline reports as dropped.
#[derive(Debug)]
pub struct Launches {
    socket: Arc<TimedSender>,
    dropped: Launch,
}

impl Launches {
    /// Counts dropped frames of `socket`. The discipline passes frames to the driver `delta_ns` before their slots, and
    /// the network card holds them until then if `is_offloaded`.
    #[must_use]
    pub fn new(socket: Arc<TimedSender>, delta_ns: u64, is_offloaded: bool) -> Self {
        Self { socket, dropped: Launch { delta_ns, offloaded: is_offloaded, ..Launch::default() } }
    }
}

impl TransmitReports for Launches {
    fn collect(&mut self) {
        // The only possible error of the socket is that there is nothing more.
        while let Ok(Some(dropped)) = self.socket.next_dropped() {
            match dropped {
                Dropped::Invalid => self.dropped.invalid += 1,
                Dropped::Missed => self.dropped.missed += 1,
            }
        }
    }

    fn add_to(&self, talker: &mut record::Talker) {
        talker.launch = Some(self.dropped.clone());
    }
}
