//! Two busy threads on each CPU that take turns: the CPU is never idle, and switches at the given interval.

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

use super::kind::{Job, Kind, LoadKind, Plan};
use crate::{
    LoadError, SpecError,
    meter::Meter,
    options::{Options, join, time_ns},
    units::show_time_ns,
};

const DEFAULT_INTERVAL_NS: u64 = 200_000;

/// Context switches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switch {
    /// Time between two switches, ns.
    pub interval_ns: Option<u64>,
}

impl LoadKind for Switch {
    const KIND: Kind = Kind {
        name: "switch",
        description: "context switches between two busy threads on each CPU",
        options: &[("TIME", "time between two switches, 10us to 1s (default 200us)")],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let load = Self { interval_ns: options.bare_value(time_ns(10_000..=1_000_000_000))? };
        options.finish(load)
    }

    fn options(&self) -> String {
        join([self.interval_ns.map(show_time_ns)])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        Ok(plan(self.interval_ns, cpus))
    }

    fn is_busy(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("", Self { interval_ns: None }), ("10us", Self { interval_ns: Some(10_000) })]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{option, prelude::*};

        option::of(10_000u64..=1_000_000_000).prop_map(|interval_ns| Self { interval_ns }).boxed()
    }
}

fn plan(interval_ns: Option<u64>, cpus: &CpuList) -> Plan {
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

/// Two threads that take turns: one spins while the other waits.
struct Pair {
    interval_ns: u64,
    began: Instant,
    /// The thread that has its turn, 0 or 1.
    turn: AtomicU32,
    /// End of the turn, ns after `began`.
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
                    // AGAIN: the turn came between the check and the wait.
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => continue,
                    Err(error) => return Err(LoadError::kernel("switch", "to wait for a turn")(error)),
                }
            }
            self.work(meter);
            self.hand_over(other)?;
            meter.add(1);
        }
        // The other thread may still wait for its turn, which this thread will not give it again.
        self.hand_over(other)
    }

    /// Spins until the turn ends. A turn that starts after its end is skipped: lost turns are not caught up.
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
    fn skips_turns_that_are_late() {
        let pair = Pair::new(1_000_000);
        std::thread::sleep(std::time::Duration::from_millis(20));
        pair.work(&Meter::idle());
        let ends_ns = pair.ends_ns.load(Ordering::Relaxed);
        assert!(ends_ns >= 20_000_000, "the next turn ends {ends_ns} ns after the start");
    }
}
