//! Keeps a thread that works when datagrams come from holding its CPU when too many do.

use std::{thread, time::Duration};

use sys::{clock::Clock, usage::ThreadUsage};

use crate::guard::{Advice, Guard, Heartbeat, REST_NS};

const SECOND_NS: i64 = 1_000_000_000;

/// The guard, asked once a second.
pub struct Watch {
    clock: Clock,
    guard: Guard,
    second_began_ns: i64,
    looks: u64,
}

impl Watch {
    pub fn new(clock: Clock) -> Self {
        Self { clock, guard: Guard::default(), second_began_ns: clock.now_ns(), looks: 0 }
    }

    /// To be asked after each wake-up: rests where the guard asks for it, and answers whether.
    #[inline]
    pub fn look(&mut self, heartbeat: &Heartbeat) -> bool {
        self.looks += 1;
        let passed_ns = self.clock.now_ns() - self.second_began_ns;
        passed_ns >= SECOND_NS && self.judge(passed_ns, heartbeat)
    }

    #[cold]
    fn judge(&mut self, passed_ns: i64, heartbeat: &Heartbeat) -> bool {
        self.second_began_ns += passed_ns;
        let usage = ThreadUsage::so_far();
        let rest = self.guard.judge(passed_ns.unsigned_abs(), usage, self.looks, heartbeat) != Advice::Continue;
        if rest {
            thread::sleep(Duration::from_nanos(REST_NS.unsigned_abs()));
        }
        rest
    }
}
