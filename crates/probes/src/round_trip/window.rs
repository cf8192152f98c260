//! The datagrams in flight, and when each was sent.
//!
//! The sending thread opens an entry, the receiving thread closes it with the answer, and an ordinary thread gives up
//! entries without an answer. The thread that closes an entry counts it, so each slot is counted exactly once.

use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Entries by sequence number; their number is a power of two.
#[derive(Debug)]
pub struct Window {
    entries: Box<[Entry]>,
}

/// A sent datagram. Times are on the run's clock unless noted otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Intended time of sending, ns.
    pub intended_ns: i64,
    /// Time at which the sending thread woke for it, ns.
    pub woke_ns: i64,
    /// Time of sending, ns: the clock was read right before.
    pub sent_ns: i64,
    /// Time at which the driver got it, ns; 0 if unknown.
    pub left_ns: i64,
    /// Time at which the network card sent it, ns on the card's clock; 0 if unknown.
    pub card_ns: i64,
}

/// Classification of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The first answer, within the timeout.
    InTime(Slot),
    /// An answer to a datagram that was given up, or that is too old to be remembered.
    Late,
    /// Not the first answer.
    Duplicate,
    /// An answer to a datagram that was never sent.
    Unknown,
}

/// The lowest bits of `tag` are the state, the others the sequence number.
#[derive(Debug, Default)]
struct Entry {
    tag: AtomicU64,
    intended_ns: AtomicI64,
    woke_ns: AtomicI64,
    sent_ns: AtomicI64,
    left_ns: AtomicI64,
    card_ns: AtomicI64,
}

const STATE_BITS: u32 = 3;
const EMPTY: u64 = 0;
const WAITING: u64 = 1;
const ANSWERED: u64 = 2;
const LOST: u64 = 3;
const LATE: u64 = 4;
const NOT_SENT: u64 = 5;

const fn tag(sequence: u64, state: u64) -> u64 {
    (sequence << STATE_BITS) | state
}

impl Window {
    /// Creates a window for at least `entries` datagrams.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        // Written explicitly, so that every page is present before it is needed.
        let entries = (0..entries.next_power_of_two()).map(|_| Entry { tag: tag(0, EMPTY).into(), ..Entry::default() });
        Self { entries: entries.collect() }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only the lowest bits are used")]
    fn entry(&self, sequence: u64) -> &Entry {
        &self.entries[sequence as usize & (self.entries.len() - 1)]
    }

    /// Opens an entry for `sequence`. Returns true if an older datagram was given up for it. For the sending thread.
    #[inline]
    #[must_use]
    pub fn open(&self, sequence: u64, slot: Slot) -> bool {
        let entry = self.entry(sequence);
        let before = entry.tag.swap(tag(0, EMPTY), AcqRel);
        entry.intended_ns.store(slot.intended_ns, Relaxed);
        entry.woke_ns.store(slot.woke_ns, Relaxed);
        entry.sent_ns.store(slot.sent_ns, Relaxed);
        entry.left_ns.store(slot.left_ns, Relaxed);
        entry.card_ns.store(slot.card_ns, Relaxed);
        entry.tag.store(tag(sequence, WAITING), Release);
        before & tag(0, 7) == WAITING
    }

    /// Stores the time of sending, right before it. For the sending thread.
    #[inline]
    pub fn sent(&self, sequence: u64, sent_ns: i64) {
        self.entry(sequence).sent_ns.store(sent_ns, Release);
    }

    /// Marks `sequence` as not sent; `false` if it was given up already. For the sending thread.
    #[must_use]
    pub fn not_sent(&self, sequence: u64) -> bool {
        self.entry(sequence).transition(sequence, WAITING, NOT_SENT)
    }

    /// Stores the time at which the driver got `sequence`. For the receiving thread.
    #[inline]
    pub fn left(&self, sequence: u64, left_ns: i64) {
        let entry = self.entry(sequence);
        if entry.tag.load(Acquire) >> STATE_BITS == sequence {
            entry.left_ns.store(left_ns, Relaxed);
        }
    }

    /// Stores the time at which the network card sent `sequence`. For the receiving thread.
    #[inline]
    pub fn left_card(&self, sequence: u64, card_ns: i64) {
        let entry = self.entry(sequence);
        if entry.tag.load(Acquire) >> STATE_BITS == sequence {
            entry.card_ns.store(card_ns, Relaxed);
        }
    }

    /// Classifies an answer to `sequence` that arrived at `arrived_ns`; `next` is the next unused sequence number. The
    /// second value is true if the datagram became lost by this call. For the receiving thread.
    #[inline]
    #[must_use]
    pub fn answer(&self, sequence: u64, next: u64, arrived_ns: i64, timeout_ns: i64) -> (Answer, bool) {
        let entry = self.entry(sequence);
        let known = entry.tag.load(Acquire);
        if sequence >= next {
            return (Answer::Unknown, false);
        }
        if known >> STATE_BITS != sequence || known == tag(0, EMPTY) {
            return (if self.may_be_forgotten(sequence, next) { Answer::Late } else { Answer::Unknown }, false);
        }
        let slot = entry.slot();
        if arrived_ns - slot.sent_ns <= timeout_ns && entry.transition(sequence, WAITING, ANSWERED) {
            return (Answer::InTime(slot), false);
        }
        let lost_now = entry.transition(sequence, WAITING, LATE);
        if lost_now || entry.transition(sequence, LOST, LATE) {
            return (Answer::Late, lost_now);
        }
        let state = entry.tag.load(Acquire) & tag(0, 7);
        (if state == NOT_SENT { Answer::Unknown } else { Answer::Duplicate }, false)
    }

    fn may_be_forgotten(&self, sequence: u64, next: u64) -> bool {
        next - sequence > self.entries.len() as u64
    }

    /// Gives up `sequence` if it was sent before `before_ns`. For an ordinary thread.
    pub fn give_up(&self, sequence: u64, before_ns: i64) -> SlotState {
        let entry = self.entry(sequence);
        if entry.tag.load(Acquire) == tag(sequence, WAITING) {
            if entry.slot().sent_ns >= before_ns {
                return SlotState::Waiting;
            }
            if entry.transition(sequence, WAITING, LOST) {
                return SlotState::LostNow;
            }
        }
        match entry.tag.load(Acquire) {
            known if known == tag(sequence, ANSWERED) => SlotState::Answered,
            known if known == tag(sequence, LOST) || known == tag(sequence, LATE) => SlotState::Lost,
            known if known == tag(sequence, NOT_SENT) => SlotState::NotSent,
            _ => SlotState::None,
        }
    }
}

/// State of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// An answer may still arrive in time.
    Waiting,
    /// An answer arrived in time.
    Answered,
    /// It was given up by this call and is not counted yet.
    LostNow,
    /// It was given up earlier.
    Lost,
    /// The kernel refused to send it.
    NotSent,
    /// There was no datagram, or it is no longer remembered.
    None,
}

impl Entry {
    #[inline]
    fn slot(&self) -> Slot {
        Slot {
            intended_ns: self.intended_ns.load(Relaxed),
            woke_ns: self.woke_ns.load(Relaxed),
            sent_ns: self.sent_ns.load(Acquire),
            left_ns: self.left_ns.load(Relaxed),
            card_ns: self.card_ns.load(Relaxed),
        }
    }

    /// Changes the state; `false` if another thread did so before, or the entry has been reused.
    #[inline]
    fn transition(&self, sequence: u64, from: u64, to: u64) -> bool {
        self.tag.compare_exchange(tag(sequence, from), tag(sequence, to), AcqRel, Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: i64 = 100;

    fn slot(sent_ns: i64) -> Slot {
        Slot { intended_ns: sent_ns - 2, woke_ns: sent_ns - 1, sent_ns, ..Slot::default() }
    }

    fn answer(window: &Window, sequence: u64, next: u64, arrived_ns: i64) -> (Answer, bool) {
        window.answer(sequence, next, arrived_ns, TIMEOUT_NS)
    }

    #[test]
    fn closes_each_datagram_once() {
        let window = Window::new(8);
        assert_eq!(answer(&window, 0, 0, 5), (Answer::Unknown, false), "nothing was sent");
        assert!(!window.open(0, slot(10)) && !window.open(1, slot(20)) && !window.open(2, slot(30)));
        window.left(1, 25);
        window.left_card(1, 7);
        window.left_card(9, 8);
        assert_eq!(answer(&window, 1, 3, 50), (Answer::InTime(Slot { left_ns: 25, card_ns: 7, ..slot(20) }), false));
        assert_eq!(answer(&window, 1, 3, 51), (Answer::Duplicate, false));
        assert_eq!(answer(&window, 0, 3, 110), (Answer::InTime(slot(10)), false), "just in time");
        assert_eq!(answer(&window, 2, 3, 131), (Answer::Late, true), "just too late");
        assert_eq!(answer(&window, 2, 3, 132), (Answer::Duplicate, false));
        assert_eq!(answer(&window, 3, 3, 60), (Answer::Unknown, false));
    }

    #[test]
    fn counts_a_given_up_datagram_once() {
        let window = Window::new(8);
        let _ = window.open(0, slot(10));
        assert_eq!(window.give_up(0, 10), SlotState::Waiting);
        assert_eq!(window.give_up(0, 11), SlotState::LostNow);
        assert_eq!(window.give_up(0, 11), SlotState::Lost);
        assert_eq!(answer(&window, 0, 1, 500), (Answer::Late, false), "counted already");
        assert_eq!(answer(&window, 0, 1, 501), (Answer::Duplicate, false));
        let _ = window.open(1, slot(20));
        assert!(window.not_sent(1) && !window.not_sent(1));
        assert_eq!((window.give_up(1, 100), answer(&window, 1, 2, 30).0), (SlotState::NotSent, Answer::Unknown));
        assert_eq!(window.give_up(9, 100), SlotState::None);
    }

    #[test]
    fn reusing_an_entry_gives_up_its_old_datagram() {
        let window = Window::new(3);
        let opened: Vec<bool> = (0..6).map(|sequence| window.open(sequence, slot(sequence.cast_signed()))).collect();
        assert_eq!(opened, [false, false, false, false, true, true]);
        assert_eq!(answer(&window, 1, 6, 9), (Answer::Late, false), "too old to be remembered");
        assert_eq!(answer(&window, 3, 6, 9), (Answer::InTime(slot(3)), false));
    }
}
