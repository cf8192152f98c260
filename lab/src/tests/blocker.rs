//! A thread that blocks a CPU for known times, and the wake-up latency without it.

use std::{thread, time::Duration};

use anyhow::{Context, Result};
use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{self, Policy},
};

use crate::inside::median;

/// One delay in CLOCK_MONOTONIC, recorded by the thread that made it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delay {
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// Makes `count` delays with these lengths in turn on CPU 0, at irregular times that are at least `gap` apart.
///
/// Meanwhile the calling thread has a real-time policy.
pub fn block(priority: u8, lengths_ns: &[i64], count: usize, gap: Duration) -> Result<Vec<Delay>> {
    // Memory is allocated before the first delay, because a page fault would make a delay longer than recorded.
    let mut delays = vec![Delay { begin_ns: -1, end_ns: -1 }; count];
    sys::memory::lock_current_memory()?;
    become_realtime(priority)?;
    for (round, (delay, length_ns)) in delays.iter_mut().zip(lengths_ns.iter().cycle()).enumerate() {
        // 7919 and 1009 are prime, so the remainders do not repeat for a thousand rounds.
        thread::sleep(gap + Duration::from_micros((round * 7919 % 1009) as u64));
        *delay = spin(*length_ns);
    }
    sched::set_policy(Policy::Other)?;
    Ok(delays)
}

fn spin(length_ns: i64) -> Delay {
    let begin_ns = Clock::Monotonic.now_ns();
    let mut end_ns = begin_ns;
    while end_ns < begin_ns + length_ns {
        end_ns = Clock::Monotonic.now_ns();
    }
    Delay { begin_ns, end_ns }
}

/// The time from the timer's expiry to an undisturbed real-time thread: the median of a thousand sleeps.
pub fn undisturbed_latency_ns() -> Result<i64> {
    let sleeps = || {
        become_realtime(90)?;
        let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
        let begin_ns = Clock::Monotonic.now_ns() + 1_000_000;
        let mut late_ns = [0; 1000];
        for (number, late_ns) in (0..).zip(&mut late_ns) {
            let deadline_ns = begin_ns + number * 1_000_000;
            sleeper.sleep_until(deadline_ns)?;
            *late_ns = Clock::Monotonic.now_ns() - deadline_ns;
        }
        Ok(median(&late_ns))
    };
    thread::spawn(sleeps).join().ok().context("the sleeper panicked")?
}

fn become_realtime(priority: u8) -> Result<()> {
    sched::set_affinity(&[0]).context("cannot pin a thread")?;
    sched::set_policy(Policy::Fifo(priority)).context("cannot make a thread real-time")
}
