//! What is asked for, and what of it can be known before the first datagram.

use std::{io, net::SocketAddr, thread, time::Duration};

use sys::{
    clock::Clock,
    sched::Policy,
    udp::{DatagramSocket, ONE_FRAME, Sender, Stamps},
};

use super::{
    UdpError,
    packet::{GREETING, Packet},
};
use crate::ReceiveWait;

/// Greetings before the run, so that the way is known by then, and how long each waits for its answer.
const GREETINGS: u32 = 5;
const GREETING_PATIENCE: Duration = Duration::from_millis(100);
/// The window knows each datagram for so much longer than twice the timeout, ns.
const MEMORY_NS: u64 = 1_000_000_000;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who answers.
    pub peer: SocketAddr,
    /// Whether the peer is a thread of this process.
    pub own_peer: bool,
    /// Payload of each datagram, bytes; [`HEADER`](super::packet::HEADER) at least.
    pub payload_bytes: usize,
    /// An answer later than this is none, ns after sending.
    pub timeout_ns: u64,
    /// Time between two datagrams, ns.
    pub period_ns: u64,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// CPU of the receiving thread; `None` to wander.
    pub cpu: Option<u32>,
    /// Policy of the receiving thread.
    pub policy: Policy,
    /// How it waits.
    pub wait: ReceiveWait,
    /// Which of the kernel's stamps to ask for.
    pub stamps: Stamps,
    /// Whether datagrams may be cut into fragments.
    pub allow_fragments: bool,
    /// Round trips longer than this are spikes, ns.
    pub threshold_ns: i64,
    /// How many spikes to keep, the worst of them.
    pub spikes_kept: usize,
}

impl Settings {
    /// Datagrams that the window must know at once.
    pub(super) fn window(&self) -> usize {
        let memory_ns = self.timeout_ns.saturating_mul(2).saturating_add(MEMORY_NS);
        (memory_ns / self.period_ns.max(1)).clamp(64, 1 << 24) as usize
    }

    pub(super) fn busy_polls(&self) -> bool {
        matches!(self.wait, ReceiveWait::BusyPoll(_))
    }

    /// Sets the socket up.
    pub(super) fn apply(&self, socket: &DatagramSocket) -> Result<(), UdpError> {
        let refused = |what| move |source| UdpError::Refused { what, source };
        socket.set_receive_timeout(GREETING_PATIENCE).map_err(refused("a timeout"))?;
        if !self.allow_fragments {
            socket.forbid_fragments().map_err(refused("to send without fragments; use --allow-fragments"))?;
        }
        if let ReceiveWait::BusyPoll(ns) = self.wait {
            let us = u32::try_from(ns.div_ceil(1000)).unwrap_or(u32::MAX);
            socket.set_busy_poll(us).map_err(refused("busy polling; run as root, or leave out --busy-poll"))?;
        }
        Ok(())
    }

    /// Sends greetings until one is answered, so that address and route are known before the first slot.
    pub(super) fn greet(&self, socket: &DatagramSocket, run: u32) -> Result<(), UdpError> {
        let mut payload = vec![0; self.payload_bytes];
        let greeting = Packet { run, sequence: GREETING, ..Packet::default() };
        for _ in 0..GREETINGS {
            greeting.write(&mut payload);
            if let Err(source) = socket.send(&payload) {
                self.judge_refusal(socket, source)?;
            }
            // Whatever comes shows the way; a refusal shows it, too.
            match socket.receive(&mut payload, &mut Sender::default(), true) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => {}
                Err(_) => thread::sleep(GREETING_PATIENCE),
            }
        }
        Ok(())
    }

    /// Whether a datagram that was not sent means that none ever will be.
    fn judge_refusal(&self, socket: &DatagramSocket, source: io::Error) -> Result<(), UdpError> {
        let peer = self.peer;
        let most = socket.one_frame().unwrap_or(ONE_FRAME);
        match source.kind() {
            io::ErrorKind::ConnectionRefused => Ok(()),
            _ if self.payload_bytes > most && !self.allow_fragments => {
                Err(UdpError::TooLarge { peer, asked: self.payload_bytes, most })
            }
            _ => Err(UdpError::Connect { peer, source }),
        }
    }
}
