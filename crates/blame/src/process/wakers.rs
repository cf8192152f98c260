//! The threads that woke others last, which shows if a wake-up is the answer to a question.

use std::collections::HashMap;

/// The longest chain of threads that pass a question on.
const MOST_STEPS: usize = 8;
/// The number of threads that are kept.
const MOST_THREADS: usize = 4096;

/// The last wake-up of each thread by a thread of the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Wakers(HashMap<u32, WakeUp>);

#[derive(Debug, Clone, Copy)]
struct WakeUp {
    by: u32,
    at_ns: u64,
}

impl Wakers {
    /// Notes that the thread `by` woke another one, at `at_ns` on CLOCK_MONOTONIC.
    pub fn note(&mut self, tid: u32, by: u32, at_ns: u64) {
        if self.0.len() >= MOST_THREADS {
            self.0.clear();
        }
        self.0.insert(tid, WakeUp { by, at_ns });
    }

    /// Notes that something else than a thread of the program woke a thread.
    pub fn forget(&mut self, tid: u32) {
        self.0.remove(&tid);
    }

    /// True if the thread `tid` has woken `waker` since `since_ns` (on CLOCK_MONOTONIC), directly or through others.
    pub fn have_asked(&self, tid: u32, waker: u32, since_ns: u64) -> bool {
        let (mut asked, mut before_ns) = (waker, u64::MAX);
        for _ in 0..MOST_STEPS {
            let wake_up = self.0.get(&asked).filter(|wake_up| (since_ns..before_ns).contains(&wake_up.at_ns));
            let Some(&WakeUp { by, at_ns }) = wake_up else { return false };
            if by == tid {
                return true;
            }
            (asked, before_ns) = (by, at_ns);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_followed_through_other_threads() {
        let mut wakers = Wakers::default();
        wakers.note(2, 1, 100);
        wakers.note(3, 2, 110);
        assert!(wakers.have_asked(1, 2, 50) && wakers.have_asked(1, 3, 50));
        assert!(!wakers.have_asked(1, 3, 105), "in an earlier cycle");
        assert!(!wakers.have_asked(4, 3, 50) && !wakers.have_asked(1, 9, 50));
        wakers.note(2, 1, 120);
        assert!(!wakers.have_asked(1, 3, 50), "woken after it had asked");
        wakers.note(1, 3, 130);
        assert!(!wakers.have_asked(4, 1, 0), "in a circle");
        wakers.forget(3);
        assert!(!wakers.have_asked(2, 3, 0));
    }
}
