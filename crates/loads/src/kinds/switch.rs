//! Two busy threads on each CPU that take turns: the CPU is never idle, and switches at the interval asked for.

use std::{
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Instant,
};

use machine::CpuList;
use rustix::{
    io::Errno,
    thread::futex::{self, Flags},
};

use super::{Job, Plan};
use crate::{LoadError, worker::Meter};

const DEFAULT_INTERVAL_NS: u64 = 200_000;

pub(super) fn plan(interval_ns: Option<u64>, cpus: &CpuList) -> Plan {
    let interval_ns = interval_ns.unwrap_or(DEFAULT_INTERVAL_NS);
    let pair_on = |cpu| {
        let pair = Arc::new(Pair::new(interval_ns));
        [0, 1].map(|me| {
            let pair = Arc::clone(&pair);
            Job::on(cpu, move |meter: &Meter| pair.take_turns(me, meter))
        })
    };
    Plan::new("context switches", cpus.iter().flat_map(pair_on).collect())
}

/// Two threads, of which one works while the other waits.
struct Pair {
    interval_ns: u64,
    began: Instant,
    /// Whose turn it is, 0 or 1.
    turn: AtomicU32,
    /// When the turn ends, ns after `began`.
    ends_ns: AtomicU64,
}

impl Pair {
    fn new(interval_ns: u64) -> Self {
        Self { interval_ns, began: Instant::now(), turn: AtomicU32::new(0), ends_ns: AtomicU64::new(0) }
    }

    fn take_turns(&self, me: u32, meter: &Meter) -> Result<(), LoadError> {
        let other = 1 - me;
        while meter.running() {
            if self.turn.load(Ordering::Acquire) == other {
                match futex::wait(&self.turn, Flags::PRIVATE, other, None) {
                    // AGAIN: the turn came between the look and the wait.
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => continue,
                    Err(error) => return Err(LoadError::kernel("switch", "to wait for a turn")(error)),
                }
            }
            self.work(meter);
            self.hand_over(other)?;
            meter.add(1);
        }
        // The other may be waiting for a turn that nobody would give it any more.
        self.hand_over(other)
    }

    /// Spins until the turn ends. A turn that came too late ends at once; no turn is made up for.
    fn work(&self, meter: &Meter) {
        let ends_ns = self.ends_ns.load(Ordering::Relaxed);
        let elapsed_ns = || u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        while elapsed_ns() < ends_ns && meter.running() {
            spin_loop();
        }
        self.ends_ns
            .store(ends_ns.max(elapsed_ns().saturating_sub(self.interval_ns)) + self.interval_ns, Ordering::Relaxed);
    }

    fn hand_over(&self, other: u32) -> Result<(), LoadError> {
        self.turn.store(other, Ordering::Release);
        futex::wake(&self.turn, Flags::PRIVATE, 1).map_err(LoadError::kernel("switch", "to hand over a turn"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_turn_is_not_made_up_for() {
        let pair = Pair::new(1_000_000);
        std::thread::sleep(std::time::Duration::from_millis(20));
        pair.work(&Meter::idle());
        let ends_ns = pair.ends_ns.load(Ordering::Relaxed);
        assert!(ends_ns >= 20_000_000, "the next turn ends {ends_ns} ns after the start");
    }
}
