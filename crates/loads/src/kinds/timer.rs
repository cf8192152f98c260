//! A cyclic real-time thread on each CPU, below the priority of the probe.

use std::{env, io, thread};

use machine::CpuList;
use rustix::process::{Resource, Rlimit, setrlimit};
use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{Policy, set_policy},
};

use super::Plan;
use crate::LoadError;

/// Just below the kernel's interrupt threads, which run at 50: it presses on the probe's CPU, and holds up no device.
const DEFAULT_PRIORITY: u8 = 49;
const DEFAULT_PERIOD_NS: u64 = 1_000_000;
/// The guard: the kernel ends the worker if one of its threads runs for this long without sleeping, us. It cannot by
/// its own doing, since each cycle sleeps; a defect must not hang a small board.
const LONGEST_RUN_US: u64 = 200_000;

pub(super) fn plan(priority: Option<u8>, period_ns: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let policy = Policy::Fifo(priority.unwrap_or(DEFAULT_PRIORITY));
    let period_ns = period_ns.unwrap_or(DEFAULT_PERIOD_NS).cast_signed();
    let guard = Rlimit { current: Some(LONGEST_RUN_US), maximum: Some(LONGEST_RUN_US) };
    setrlimit(Resource::Rttime, guard).map_err(LoadError::kernel("timer", "a limit on its own CPU time"))?;
    // Asked for on a thread of its own, because this one stays an ordinary one.
    let tried = thread::spawn(move || set_policy(policy)).join();
    tried.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(|error| refused(policy, error))?;

    Ok(Plan::each_cpu("wake-ups", cpus, move |meter| {
        let sleep = LoadError::kernel("timer", "to sleep");
        let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep).map_err(&sleep)?;
        set_policy(policy).map_err(|error| refused(policy, error))?;
        let mut deadline_ns = Clock::Monotonic.now_ns() + period_ns;
        while meter.running() {
            sleeper.sleep_until(deadline_ns).map_err(&sleep)?;
            meter.add(1);
            deadline_ns = next(deadline_ns, Clock::Monotonic.now_ns(), period_ns);
        }
        Ok(())
    }))
}

/// The first deadline of the grid after `now_ns`: what was missed is skipped, so that every cycle sleeps.
fn next(deadline_ns: i64, now_ns: i64, period_ns: i64) -> i64 {
    let missed = (now_ns - deadline_ns).max(0) / period_ns;
    deadline_ns + (missed + 1) * period_ns
}

fn refused(policy: Policy, reason: io::Error) -> LoadError {
    let priority = if let Policy::Fifo(priority) = policy { priority } else { 0 };
    LoadError::Priority { priority, reason, program: env::current_exe().unwrap_or_else(|_| "punctual".into()) }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn missed_deadlines_are_skipped() {
        assert_eq!(next(1000, 1001, 100), 1100);
        assert_eq!(next(1000, 990, 100), 1100, "woken early");
        assert_eq!(next(1000, 1100, 100), 1200, "never a deadline that has come");
        assert_eq!(next(1000, 1550, 100), 1600);
    }
}
