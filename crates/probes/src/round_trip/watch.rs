//! Keeps a thread that is driven by datagrams from using its CPU without sleeping when too many arrive.

use std::{thread, time::Duration};

use sys::{clock::Clock, usage::ThreadUsage};

use crate::guard::{Advice, Guard, Heartbeat, PAUSE_NS};

const SECOND_NS: i64 = 1_000_000_000;

/// The guard of such a thread, consulted once a second.
pub struct Watch {
    clock: Clock,
    guard: Guard,
    second_began_ns: i64,
    wake_ups: u64,
}

impl Watch {
    pub fn new(clock: Clock) -> Self {
        Self { clock, guard: Guard::default(), second_began_ns: clock.now_ns(), wake_ups: 0 }
    }

    /// Must be called after each wake-up; pauses the thread if the guard demands it, and returns true then.
    #[inline]
    pub fn check(&mut self, heartbeat: &Heartbeat) -> bool {
        self.wake_ups += 1;
        let passed_ns = self.clock.now_ns() - self.second_began_ns;
        passed_ns >= SECOND_NS && self.judge(passed_ns, heartbeat)
    }

    #[cold]
    fn judge(&mut self, passed_ns: i64, heartbeat: &Heartbeat) -> bool {
        self.second_began_ns += passed_ns;
        let usage = ThreadUsage::so_far();
        let pause = self.guard.judge(passed_ns.unsigned_abs(), usage, self.wake_ups, heartbeat) != Advice::Continue;
        if pause {
            thread::sleep(Duration::from_nanos(PAUSE_NS.unsigned_abs()));
        }
        pause
    }
}
