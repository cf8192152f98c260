//! What the sending thread, the receiving thread and their reader see: counters without locks, and a queue of rare events.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
};

use record::Trip;

use super::{Settings, reader::Reader, window::Window};
use crate::times::Counted;

/// What is told one by one.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A round trip that is a spike, or whose sender ran over so many deadlines.
    Notable { round_trip_ns: i64, at_ns: u64, missed: u64, trip: Trip },
    /// When an answered datagram was sent and had, ns on the clock of the end that did it.
    Ways { echo: u32, sent_ns: i64, received_ns: i64, answered_ns: i64, arrived_ns: i64 },
    /// The longest round trip of the second that ended before `at_ns`.
    SecondEnded { at_ns: u64, max_ns: i64 },
}

/// Events that can wait for the reader; at 10 us and every round trip a spike it has 80 ms to come.
const QUEUE: usize = 16_384;

/// Counters. Unless it says otherwise, each is written by one thread alone.
#[derive(Debug)]
pub struct Shared {
    pub window: Window,
    pub sending: Sending,
    pub receiving: Receiving,
    /// Sent, and not answered in time. Written by all.
    pub lost: AtomicU64,
    stop: AtomicBool,
}

/// Written by the sending thread.
#[derive(Debug)]
pub struct Sending {
    /// The first deadline, ns.
    pub first_deadline_ns: AtomicI64,
    /// Deadlines so far, with those that passed.
    pub slots: AtomicU64,
    /// The sequence that no datagram has had yet.
    pub next: AtomicU64,
    pub sent: AtomicU64,
    pub failed: AtomicU64,
    /// The kernel's number of the last error; 0 for none.
    pub error: AtomicI32,
    /// The sequence of the n-th datagram since stamps were asked for, modulo its length; empty without stamps.
    pub sequences: Box<[AtomicU64]>,
}

/// Written by the receiving thread.
#[derive(Debug)]
pub struct Receiving {
    /// From when each was to be sent.
    pub round_trips: Counted,
    pub max_at_ns: AtomicU64,
    /// From when each was sent.
    pub from_sent: Counted,
    pub wake: Counted,
    pub stack_out: Option<Counted>,
    pub peer: Counted,
    pub wire: Counted,
    pub stack_in: Option<Counted>,
    pub card: Option<CardCounted>,
    pub answered: AtomicU64,
    pub spikes: AtomicU64,
    pub late: AtomicU64,
    pub duplicates: AtomicU64,
    pub reordered: AtomicU64,
    pub foreign: AtomicU64,
    pub refused: AtomicU64,
    pub errors: AtomicU64,
    pub restarts: AtomicU64,
    /// The answering end as it called itself last; 0 for none.
    pub echo: AtomicU32,
    pub echo_has: AtomicU8,
    pub stamp_error_ns: AtomicI64,
    pub clock_steps: AtomicU64,
    pub rests: AtomicU64,
    /// Round trips that found the queue full.
    pub untold: AtomicU64,
    /// Of those that were to be told of each way.
    pub ways_untold: AtomicU64,
}

/// What is counted of the network card's stamps.
#[derive(Debug, Default)]
pub struct CardCounted {
    pub times: Counted,
    /// Answered, and no stamp of what was sent.
    pub sent_missing: AtomicU64,
    /// Answered, and no stamp of the answer.
    pub received_missing: AtomicU64,
}

pub fn channel(settings: &Settings) -> (Arc<Shared>, rtrb::Producer<Event>, Reader) {
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
            round_trips: Counted::default(),
            max_at_ns: zero(),
            from_sent: Counted::default(),
            wake: Counted::default(),
            stack_out: (numbered > 0).then(Counted::default),
            peer: Counted::default(),
            wire: Counted::default(),
            stack_in: stamped.then(Counted::default),
            card: (settings.stamps == sys::udp::Stamps::Card).then(CardCounted::default),
            answered: zero(),
            spikes: zero(),
            late: zero(),
            duplicates: zero(),
            reordered: zero(),
            foreign: zero(),
            refused: zero(),
            errors: zero(),
            restarts: zero(),
            echo: AtomicU32::new(0),
            echo_has: AtomicU8::new(0),
            stamp_error_ns: AtomicI64::new(0),
            clock_steps: zero(),
            rests: zero(),
            untold: zero(),
            ways_untold: zero(),
        },
        lost: zero(),
        stop: AtomicBool::new(false),
    };
    let (events, queue) = rtrb::RingBuffer::new(QUEUE);
    (Arc::new(shared), events, Reader::new(queue, settings))
}

impl Shared {
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Counts one as lost.
    #[cold]
    pub fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }
}
