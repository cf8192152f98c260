//! Data shared by the sending thread, the receiving thread and their reader: lock-free counters, and a queue of rare
//! events.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
};

use record::Trip;

use super::{Settings, window::Window};
use crate::{setup::AtEnd, times::TimeCounters};

/// An event that is queued.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A round trip that is a spike, or whose sender missed deadlines.
    Notable { round_trip_ns: i64, at_ns: u64, missed: u64, trip: Trip },
    /// The times of an answered datagram, ns on the clock of the end that measured them.
    Times { echo: u32, sent_ns: i64, received_ns: i64, answered_ns: i64, arrived_ns: i64 },
    /// The longest round trip of the second that ended before `at_ns`.
    SecondEnded { at_ns: u64, max_ns: i64 },
}

/// Capacity of the queue. With a period of 10 us and every round trip a spike the reader has 80 ms.
const QUEUE: usize = 16_384;

/// Counters. Each is written by one thread only, unless noted otherwise.
#[derive(Debug)]
pub struct Shared {
    pub window: Window,
    pub sending: Sending,
    pub receiving: Receiving,
    /// Datagrams without an answer in time. Written by all threads.
    pub lost: AtomicU64,
    pub at_end: AtEnd,
    stop: AtomicBool,
}

/// Written by the sending thread.
#[derive(Debug)]
pub struct Sending {
    /// The first deadline, ns.
    pub first_deadline_ns: AtomicI64,
    /// Deadlines so far, including missed ones.
    pub slots: AtomicU64,
    /// The next unused sequence number.
    pub next: AtomicU64,
    pub sent: AtomicU64,
    pub failed: AtomicU64,
    /// The error number of the last error; 0 without one.
    pub error: AtomicI32,
    /// Sequence number of the n-th datagram since timestamps were requested, n modulo the length; empty without time
    /// stamps.
    pub sequences: Box<[AtomicU64]>,
}

/// Written by the receiving thread.
#[derive(Debug)]
pub struct Receiving {
    /// From the intended time of sending.
    pub round_trips: TimeCounters,
    pub max_at_ns: AtomicU64,
    /// From the actual time of sending.
    pub from_sent: TimeCounters,
    pub wake: TimeCounters,
    pub stack_out: Option<TimeCounters>,
    pub peer_wake: TimeCounters,
    pub peer: TimeCounters,
    pub wire: TimeCounters,
    pub stack_in: Option<TimeCounters>,
    pub card: Option<CardCounters>,
    pub answered: AtomicU64,
    pub spikes: AtomicU64,
    pub late: AtomicU64,
    pub duplicates: AtomicU64,
    pub reordered: AtomicU64,
    pub foreign: AtomicU64,
    pub refused: AtomicU64,
    pub errors: AtomicU64,
    /// ICMP errors that datagrams caused.
    pub icmp_errors: AtomicU64,
    /// The number of the last ICMP error; 0 without one.
    pub icmp_error: AtomicI32,
    pub restarts: AtomicU64,
    /// Number of the answering end in its last answer; 0 without one.
    pub echo: AtomicU32,
    pub echo_has: AtomicU8,
    pub stamp_error_ns: AtomicI64,
    pub clock_steps: AtomicU64,
    pub pauses: AtomicU64,
    /// Round trips for which the queue was full.
    pub queue_full: AtomicU64,
    /// Times of round trips for which the queue was full.
    pub times_queue_full: AtomicU64,
}

/// Counters of the network card's timestamps.
#[derive(Debug, Default)]
pub struct CardCounters {
    pub times: TimeCounters,
    /// Answered round trips without a timestamp of the sent datagram.
    pub sent_missing: AtomicU64,
    /// Answered round trips without a timestamp of the answer.
    pub received_missing: AtomicU64,
}

/// The counters, and both ends of the queue.
pub fn channel(settings: &Settings) -> (Arc<Shared>, rtrb::Producer<Event>, rtrb::Consumer<Event>) {
    let entries = settings.window();
    let numbered = if settings.stamps.of_sent() { entries.next_power_of_two() } else { 0 };
    let stamped = settings.stamps != sys::udp::Stamps::None;
    let zero = || AtomicU64::new(0);
    let shared = Shared {
        window: Window::new(entries),
        sending: Sending {
            first_deadline_ns: AtomicI64::new(0),
            slots: zero(),
            next: zero(),
            sent: zero(),
            failed: zero(),
            error: AtomicI32::new(0),
            sequences: (0..numbered).map(|_| AtomicU64::new(u64::MAX)).collect(),
        },
        receiving: Receiving {
            round_trips: TimeCounters::default(),
            max_at_ns: zero(),
            from_sent: TimeCounters::default(),
            wake: TimeCounters::default(),
            stack_out: (numbered > 0).then(TimeCounters::default),
            peer_wake: TimeCounters::default(),
            peer: TimeCounters::default(),
            wire: TimeCounters::default(),
            stack_in: stamped.then(TimeCounters::default),
            card: (settings.stamps == sys::udp::Stamps::Card).then(CardCounters::default),
            answered: zero(),
            spikes: zero(),
            late: zero(),
            duplicates: zero(),
            reordered: zero(),
            foreign: zero(),
            refused: zero(),
            errors: zero(),
            icmp_errors: zero(),
            icmp_error: AtomicI32::new(0),
            restarts: zero(),
            echo: AtomicU32::new(0),
            echo_has: AtomicU8::new(0),
            stamp_error_ns: AtomicI64::new(0),
            clock_steps: zero(),
            pauses: zero(),
            queue_full: zero(),
            times_queue_full: zero(),
        },
        lost: zero(),
        at_end: AtEnd::default(),
        stop: AtomicBool::new(false),
    };
    let (events, queue) = rtrb::RingBuffer::new(QUEUE);
    (Arc::new(shared), events, queue)
}

impl Shared {
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Counts one lost datagram.
    #[cold]
    pub fn count_lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }
}
