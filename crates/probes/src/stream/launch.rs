//! Launch times: each frame is handed over with its slot, until which the queueing discipline ETF keeps it.

use std::{io, sync::Arc};

use record::Launch;
use sys::packet::{Dropped, TimedSender};

use super::transmit::{Aftermath, Transmit};

/// The slots must lie on CLOCK_TAI.
impl Transmit for Arc<TimedSender> {
    #[inline]
    fn send(&mut self, frame: &[u8], slot_ns: i64) -> io::Result<()> {
        TimedSender::send(self, frame, slot_ns)
    }
}

/// What the discipline reports of the frames that it dropped.
#[derive(Debug)]
pub struct Launches {
    socket: Arc<TimedSender>,
    told: Launch,
}

impl Launches {
    /// Of the frames handed to `socket`, by a discipline that hands them on `delta_ns` before their slots, to a NIC that keeps
    /// them until then if `is_offloaded`.
    #[must_use]
    pub fn new(socket: Arc<TimedSender>, delta_ns: u64, is_offloaded: bool) -> Self {
        Self { socket, told: Launch { delta_ns, offloaded: is_offloaded, ..Launch::default() } }
    }
}

impl Aftermath for Launches {
    fn collect(&mut self) {
        // A socket has no other answer than that there is nothing more.
        while let Ok(Some(dropped)) = self.socket.next_dropped() {
            match dropped {
                Dropped::Invalid => self.told.invalid += 1,
                Dropped::Missed => self.told.missed += 1,
            }
        }
    }

    fn tell(&self, talker: &mut record::Talker) {
        talker.launch = Some(self.told.clone());
    }
}
