//! The datagrams that are under way: which are waited for, and when each was sent.
//!
//! The sending thread opens an entry, the receiving thread closes it with the answer, and an ordinary thread gives up those
//! that no answer came for. Who closes an entry counts it, so that each slot is counted once, whoever is first.

use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Entries by sequence, a power of two of them.
#[derive(Debug)]
pub struct Window {
    entries: Box<[Entry]>,
}

/// A datagram that was sent. Times lie on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// When it was to be sent, ns.
    pub intended_ns: i64,
    /// When the sending thread woke for it, ns.
    pub woke_ns: i64,
    /// When it was sent, ns: the clock read just before.
    pub sent_ns: i64,
    /// When the driver took it, ns; 0 where that is not known.
    pub left_ns: i64,
    /// When the network card put it on the wire, ns on the card's clock; 0 where that is not known.
    pub card_ns: i64,
}

/// What an answer turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The first one, within the timeout.
    InTime(Slot),
    /// One for a datagram that was given up, or that is so old that nothing is known of it any more.
    Late,
    /// Not the first one.
    Duplicate,
    /// One for a datagram that was never sent.
    Unknown,
}

/// The lowest bits of a tag say how things stand, the others are the sequence.
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
    /// Room for `entries` datagrams, or a few more.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        // Written, not zeroed by the kernel at the first touch: every page is there before it is needed.
        let entries = (0..entries.next_power_of_two()).map(|_| Entry { tag: tag(0, EMPTY).into(), ..Entry::default() });
        Self { entries: entries.collect() }
    }

    #[inline]
    fn entry(&self, sequence: u64) -> &Entry {
        &self.entries[sequence as usize & (self.entries.len() - 1)]
    }

    /// From now on `sequence` is waited for. `true` when an older one is given up for it. For the sending thread.
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

    /// Notes when `sequence` is sent, just before it is. For the sending thread.
    #[inline]
    pub fn sent(&self, sequence: u64, sent_ns: i64) {
        self.entry(sequence).sent_ns.store(sent_ns, Release);
    }

    /// `sequence` was not sent after all; `false` when it was given up already. For the sending thread.
    #[must_use]
    pub fn not_sent(&self, sequence: u64) -> bool {
        self.entry(sequence).moved(sequence, WAITING, NOT_SENT)
    }

    /// Notes when the driver took `sequence`. For the receiving thread.
    #[inline]
    pub fn left(&self, sequence: u64, left_ns: i64) {
        let entry = self.entry(sequence);
        if entry.tag.load(Acquire) >> STATE_BITS == sequence {
            entry.left_ns.store(left_ns, Relaxed);
        }
    }

    /// Notes when the network card put `sequence` on the wire. For the receiving thread.
    #[inline]
    pub fn left_card(&self, sequence: u64, card_ns: i64) {
        let entry = self.entry(sequence);
        if entry.tag.load(Acquire) >> STATE_BITS == sequence {
            entry.card_ns.store(card_ns, Relaxed);
        }
    }

    /// Takes in an answer for `sequence` that came in at `arrived_ns`, where the next datagram has the sequence `next`.
    /// The second part says whether it is lost now. For the receiving thread.
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
        if arrived_ns - slot.sent_ns <= timeout_ns && entry.moved(sequence, WAITING, ANSWERED) {
            return (Answer::InTime(slot), false);
        }
        let lost_now = entry.moved(sequence, WAITING, LATE);
        if lost_now || entry.moved(sequence, LOST, LATE) {
            return (Answer::Late, lost_now);
        }
        let state = entry.tag.load(Acquire) & tag(0, 7);
        (if state == NOT_SENT { Answer::Unknown } else { Answer::Duplicate }, false)
    }

    fn may_be_forgotten(&self, sequence: u64, next: u64) -> bool {
        next - sequence > self.entries.len() as u64
    }

    /// Gives up `sequence` if it was sent before `before_ns`. For an ordinary thread.
    pub fn give_up(&self, sequence: u64, before_ns: i64) -> Fate {
        let entry = self.entry(sequence);
        if entry.tag.load(Acquire) == tag(sequence, WAITING) {
            if entry.slot().sent_ns >= before_ns {
                return Fate::Waiting;
            }
            if entry.moved(sequence, WAITING, LOST) {
                return Fate::LostNow;
            }
        }
        match entry.tag.load(Acquire) {
            known if known == tag(sequence, ANSWERED) => Fate::Answered,
            known if known == tag(sequence, LOST) || known == tag(sequence, LATE) => Fate::Lost,
            _ => Fate::None,
        }
    }
}

/// What became of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its answer may still come in time.
    Waiting,
    /// Its answer came in time.
    Answered,
    /// It was given up at this moment, and is not counted yet.
    LostNow,
    /// It was given up before.
    Lost,
    /// Nothing was sent, or nothing is known any more.
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

    /// Moves on; `false` where somebody else did before, or the entry is another's by now.
    #[inline]
    fn moved(&self, sequence: u64, from: u64, to: u64) -> bool {
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
    fn each_datagram_is_closed_once() {
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
    fn who_gives_up_first_counts_it() {
        let window = Window::new(8);
        let _ = window.open(0, slot(10));
        assert_eq!(window.give_up(0, 10), Fate::Waiting);
        assert_eq!(window.give_up(0, 11), Fate::LostNow);
        assert_eq!(window.give_up(0, 11), Fate::Lost);
        assert_eq!(answer(&window, 0, 1, 500), (Answer::Late, false), "counted already");
        assert_eq!(answer(&window, 0, 1, 501), (Answer::Duplicate, false));
        let _ = window.open(1, slot(20));
        assert!(window.not_sent(1) && !window.not_sent(1));
        assert_eq!((window.give_up(1, 100), answer(&window, 1, 2, 30).0), (Fate::None, Answer::Unknown));
    }

    #[test]
    fn an_entry_that_is_needed_again_gives_up_its_old_datagram() {
        let window = Window::new(3);
        let opened: Vec<bool> = (0..6).map(|sequence| window.open(sequence, slot(sequence as i64))).collect();
        assert_eq!(opened, [false, false, false, false, true, true]);
        assert_eq!(answer(&window, 1, 6, 9), (Answer::Late, false), "too old to know more");
        assert_eq!(answer(&window, 3, 6, 9), (Answer::InTime(slot(3)), false));
    }
}
