//! The settings of the probe, and their checks before the first datagram.

use std::{io, thread, time::Duration};

use record::ROUND_TRIP;
use sys::{
    clock::Clock,
    packet::Member,
    sched::Policy,
    udp::{DatagramSocket, ONE_FRAME, Stamps},
};

use super::{
    Carrier, RoundTripError,
    carrier::ETHERNET_HEADER,
    packet::{CLASS_AT, GREETING, Packet, RUN_AT},
    port::{ReceivePort, SendPort},
};
use crate::ReceiveWait;

/// Greetings before the run, in order to resolve address and route, and the wait for each answer.
const GREETINGS: u32 = 5;
const GREETING_TIMEOUT: Duration = Duration::from_millis(100);
/// Time beyond twice the timeout for which the window remembers datagrams, ns.
const REMEMBERED_NS: u64 = 1_000_000_000;

/// A traffic class: datagrams or frames with their own schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its number in the run, from 0.
    pub number: u8,
    /// Role of its series.
    pub role: String,
    /// True if other classes of the run have the same EtherType.
    pub shares_ethertype: bool,
}

impl Class {
    /// The receiving thread in words.
    pub(super) fn receiver(&self) -> String {
        if self.role == ROUND_TRIP { "receiver".to_owned() } else { format!("receiver of {}", self.role) }
    }
}

impl Default for Class {
    /// The only class of a run.
    fn default() -> Self {
        Self { number: 0, role: ROUND_TRIP.to_owned(), shares_ethertype: false }
    }
}

/// The settings of round trips.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The traffic class.
    pub class: Class,
    /// The peer that answers, and the protocol.
    pub carrier: Carrier,
    /// Copy mode and hook of AF_XDP, e.g. `xdp copy native`; `None` for a socket.
    pub transport: Option<String>,
    /// Notes of the socket for the record.
    pub notes: Vec<String>,
    /// True if the peer is a thread of this process.
    pub own_peer: bool,
    /// Payload of each datagram, bytes; at least [`HEADER`](super::packet::HEADER).
    pub payload_bytes: usize,
    /// Time after sending at which a datagram without an answer is lost, ns.
    pub timeout_ns: u64,
    /// Time between two datagrams, ns.
    pub period_ns: u64,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// CPU of the receiving thread; `None` for any CPU.
    pub cpu: Option<u32>,
    /// Policy of the receiving thread.
    pub policy: Policy,
    /// Waiting method of the receiving thread.
    pub wait: ReceiveWait,
    /// The kernel timestamps to request.
    pub stamps: Stamps,
    /// True if datagrams may be fragmented.
    pub allow_fragments: bool,
    /// Round trips longer than this are spikes, ns.
    pub threshold_ns: i64,
    /// Number of worst spikes to keep.
    pub spikes_kept: usize,
}

impl Settings {
    /// Number of datagrams that the window must remember.
    pub(super) fn window(&self) -> usize {
        let memory_ns = self.timeout_ns.saturating_mul(2).saturating_add(REMEMBERED_NS);
        (memory_ns / self.period_ns.max(1)).clamp(64, 1 << 24) as usize
    }

    pub(super) fn busy_polls(&self) -> bool {
        matches!(self.wait, ReceiveWait::BusyPoll(_))
    }

    /// Configures the socket for the datagrams of this run.
    pub(super) fn apply(&self, socket: &DatagramSocket, run: u32) -> Result<(), RoundTripError> {
        let refused = |setting, remedy| move |source| RoundTripError::Refused { setting, remedy, source };
        if let (Carrier::Ethernet { frames, .. }, true) = (self.carrier, self.class.shares_ethertype) {
            #[expect(clippy::cast_possible_truncation, reason = "a header has 14 bytes")]
            const BEFORE: u32 = ETHERNET_HEADER as u32;
            let (group_at, member_at) = (BEFORE + RUN_AT, BEFORE + u32::from(CLASS_AT));
            let member = Member { group_at, group: run, member_at, member: self.class.number };
            socket.receive_member(frames.ethertype, member).map_err(refused("a filter of frames", "see `dmesg`"))?;
        }
        socket.set_receive_timeout(GREETING_TIMEOUT).map_err(refused("a receive timeout", "see `dmesg`"))?;
        // The kernel never fragments Ethernet frames.
        if self.carrier.may_fragment() && !self.allow_fragments {
            socket.forbid_fragments().map_err(refused("sending without fragments", "use --allow-fragments"))?;
        }
        if let ReceiveWait::BusyPoll(ns) = self.wait {
            let us = u32::try_from(ns.div_ceil(1000)).unwrap_or(u32::MAX);
            socket.set_busy_poll(us).map_err(refused("busy polling", "run as root, or omit --busy-poll"))?;
        }
        Ok(())
    }

    /// Sends greetings until one is answered, so that address and route are resolved before the first slot.
    pub(super) fn greet(&self, send: &mut SendPort, receive: &mut ReceivePort, run: u32) -> Result<(), RoundTripError> {
        let headroom = self.carrier.headroom();
        let mut message = vec![0; headroom + self.payload_bytes];
        Packet { run, class: self.class.number, sequence: GREETING, ..Packet::default() }
            .write(&mut message[headroom..]);
        self.carrier.finish(&mut message, GREETING);
        let mut answer = vec![0; self.carrier.received_headroom() + self.payload_bytes];
        for _ in 0..GREETINGS {
            if let Err(source) = send.send(&message) {
                self.judge_refusal(send.socket().map(AsRef::as_ref), source)?;
            }
            // Any answer, even a refusal, shows that the route works.
            match receive.receive(&mut answer, true) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => {}
                Err(_) => thread::sleep(GREETING_TIMEOUT),
            }
        }
        Ok(())
    }

    /// Returns an error if a datagram was refused for a reason that will not go away.
    fn judge_refusal(&self, socket: Option<&DatagramSocket>, source: io::Error) -> Result<(), RoundTripError> {
        let (peer, remedy) = (self.carrier.to_string(), self.carrier.remedy());
        let most = socket.and_then(|socket| socket.one_frame().ok()).unwrap_or(ONE_FRAME);
        match source.kind() {
            io::ErrorKind::ConnectionRefused => Ok(()),
            // Reported about an earlier request: the device may come up during the run.
            _ if self.carrier.is_icmp()
                && is_report(&source)
                && socket.and_then(|socket| socket.report().ok()).is_some_and(|report| report.is_some()) =>
            {
                Ok(())
            }
            _ if self.carrier.may_fragment() && self.payload_bytes > most && !self.allow_fragments => {
                Err(RoundTripError::TooLarge { peer, requested: self.payload_bytes, most })
            }
            _ => Err(RoundTripError::Connect { peer, remedy, source }),
        }
    }
}

/// True if an error may be the report about an earlier datagram, which the kernel returns once instead of sending or
/// receiving.
pub(super) fn is_report(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}
