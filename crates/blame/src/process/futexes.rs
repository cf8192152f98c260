//! Tells locks from other futex words that contain the value of a lock, such as barriers and states.

use std::collections::{HashMap, HashSet};

use super::calls::{Call, Lock};

/// A thread that waits again for a lock without having released it has computed for less than this time, ns: another
/// thread took the lock before it.
const RETRY_NS: u64 = 200_000;
/// The number of such waits after longer computation that show that the word is no lock.
const WAITS_WITHOUT_RELEASE: u32 = 2;
/// The number of words that are kept.
const MOST_WORDS: usize = 4096;

/// The futex words of the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Futexes {
    words: HashMap<Address, Word>,
    /// The words that threads waited for and did not release since: thread id, address, CPU time of the thread, ns.
    waited: HashMap<(u32, u64), u64>,
    others: HashSet<Address>,
}

/// An address in a process, which may be unknown.
type Address = (Option<u32>, u64);

#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// True if a thread that waited for it has released it.
    released: bool,
    /// Waits by a thread that had waited for it and did not release it.
    unreleased: u32,
}

/// The meaning of a call for a futex word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing new.
    Known,
    /// The word at this address is no lock, although earlier waits for it counted as waits for a lock.
    NoLock { address: u64 },
}

impl Futexes {
    /// Corrects a call of a thread of this process that has used `cpu_ns` of CPU time: a wait at a word that is no lock is
    /// a wait for a change.
    pub fn correct(&mut self, process: Option<u32>, tid: u32, call: Call, cpu_ns: u64) -> (Call, Finding) {
        match call {
            Call::AwaitChange { address } => _ = self.note_other((process, address)),
            Call::WakeAt { address, all: true, .. } => _ = self.note_other((process, address)),
            Call::WakeAt { address, all: false, .. } => self.note_release(tid, (process, address)),
            Call::TakeLock(Lock { address, inherits_priority: false, .. }) => {
                let before = self.others.contains(&(process, address));
                let is_other = before || self.note_wait(tid, (process, address), cpu_ns);
                let finding = if is_other && !before { Finding::NoLock { address } } else { Finding::Known };
                return (if is_other { Call::AwaitChange { address } } else { call }, finding);
            }
            _ => {}
        }
        (call, Finding::Known)
    }

    /// Notes a futex word that is not a lock. Returns true if this is new.
    pub fn note_other(&mut self, address: Address) -> bool {
        if self.others.len() >= MOST_WORDS {
            self.others.clear();
        }
        self.others.insert(address)
    }

    /// Notes that a thread wakes one waiter, as the holder of a lock does at its release.
    fn note_release(&mut self, tid: u32, address: Address) {
        if self.waited.remove(&(tid, address.1)).is_some() {
            self.words.entry(address).or_default().released = true;
        }
    }

    /// Notes a wait. Returns true if the word is no lock: its waiters do not release it.
    fn note_wait(&mut self, tid: u32, address: Address, cpu_ns: u64) -> bool {
        if self.waited.len() >= MOST_WORDS || self.words.len() >= MOST_WORDS {
            self.waited.clear();
            self.words.clear();
        }
        let before_ns = self.waited.insert((tid, address.1), cpu_ns);
        let word = self.words.entry(address).or_default();
        word.unreleased += u32::from(before_ns.is_some_and(|before_ns| cpu_ns.saturating_sub(before_ns) > RETRY_NS));
        let is_other = !word.released && word.unreleased >= WAITS_WITHOUT_RELEASE;
        is_other && self.note_other(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::calls::Scope;

    const ADDRESS: u64 = 0x70;
    const SCOPE: Scope = Scope::Process;
    const LOCK: Call =
        Call::TakeLock(Lock { address: ADDRESS, scope: SCOPE, inherits_priority: false, owner: None, process: None });
    const CHANGE: Call = Call::AwaitChange { address: ADDRESS };
    const RELEASE: Call = Call::WakeAt { address: ADDRESS, scope: SCOPE, all: false };

    #[test]
    fn a_word_with_other_values_is_no_lock() {
        let mut futexes = Futexes::default();
        assert_eq!(futexes.correct(None, 1, CHANGE, 0).0, CHANGE);
        assert_eq!(futexes.correct(None, 2, LOCK, 0), (CHANGE, Finding::Known), "round 2 of a barrier");
        let mut futexes = Futexes::default();
        futexes.correct(None, 1, Call::WakeAt { address: ADDRESS, scope: SCOPE, all: true }, 0);
        assert_eq!(futexes.correct(None, 2, LOCK, 0).0, CHANGE, "a lock wakes one thread");
    }

    #[test]
    fn a_lock_is_released_by_its_waiters() {
        let mut futexes = Futexes::default();
        for number in 0..9 {
            assert_eq!(futexes.correct(None, 1, LOCK, number * 1_000_000), (LOCK, Finding::Known));
            assert_eq!(futexes.correct(None, 1, LOCK, number * 1_000_000 + 5000).0, LOCK, "another thread took it");
            futexes.correct(None, 1, RELEASE, number * 1_000_000 + 6000);
        }
        assert_eq!(futexes.correct(None, 2, LOCK, 0).0, LOCK);
        assert!((1..9).all(|number| futexes.correct(None, 2, LOCK, number * 1_000_000).0 == LOCK), "known as a lock");
    }

    #[test]
    fn a_word_that_its_waiters_never_release_is_no_lock() {
        let mut futexes = Futexes::default();
        let waits = [0, 1, 2, 3].map(|number| futexes.correct(None, 1, LOCK, number * 1_000_000));
        let found = Finding::NoLock { address: ADDRESS };
        assert_eq!(waits, [(LOCK, Finding::Known), (LOCK, Finding::Known), (CHANGE, found), (CHANGE, Finding::Known)]);
    }
}
