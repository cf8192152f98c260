//! A cyclic real-time thread on each CPU, below the priority of the probe.

use std::{env, io, thread};

use machine::CpuList;
use rustix::process::{Resource, Rlimit, setrlimit};
use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{Policy, set_policy},
};

use super::kind::{Kind, LoadKind, Plan};
use crate::{
    LoadError, SpecError,
    options::{Options, join, number, time_ns},
    units::show_time_ns,
};

/// Just below the kernel's interrupt threads, which have 50: the load occupies the probe's CPU but delays no device.
const DEFAULT_PRIORITY: u8 = 49;
const DEFAULT_PERIOD_NS: u64 = 1_000_000;
/// The kernel ends the worker if one of its threads runs for this long without sleeping, us. Every cycle sleeps, so
/// only a defect can reach the limit, and a defect must not hang a small board.
const LONGEST_RUN_US: u64 = 200_000;

/// Cyclic real-time threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timer {
    /// SCHED_FIFO priority.
    pub priority: Option<u8>,
    /// Time between two wake-ups, ns.
    pub period_ns: Option<u64>,
}

impl LoadKind for Timer {
    const KIND: Kind = Kind {
        name: "timer",
        description: "a cyclic real-time thread on each CPU, below the priority of the probe",
        options: &[
            ("PRIO or prio=PRIO", "SCHED_FIFO priority, 1 to 98 (default 49)"),
            ("period=TIME", "time between two wake-ups, 50us to 1s (default 1ms)"),
        ],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let with_key = options.value("prio", number(1..=98))?;
        let period_ns = options.value("period", time_ns(50_000..=1_000_000_000))?;
        let bare = options.bare_value(number(1..=98))?;
        if with_key.is_some() && bare.is_some() {
            return Err(SpecError::Twice { load: Self::KIND.name, option: "prio" });
        }
        options.finish(Self { priority: with_key.or(bare), period_ns })
    }

    fn options(&self) -> String {
        let period_ns = self.period_ns.map(|period_ns| format!("period={}", show_time_ns(period_ns)));
        join([self.priority.map(|priority| priority.to_string()), period_ns])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        plan(self.priority.unwrap_or(DEFAULT_PRIORITY), self.period_ns, cpus)
    }

    fn is_busy(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![
            ("", Self { priority: None, period_ns: None }),
            ("98", Self { priority: Some(98), period_ns: None }),
            ("98,period=1ms", Self { priority: Some(98), period_ns: Some(1_000_000) }),
        ]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{option, prelude::*};

        let options = (option::of(1u8..=98), option::of(50_000u64..=1_000_000_000));
        options.prop_map(|(priority, period_ns)| Self { priority, period_ns }).boxed()
    }
}

fn plan(priority: u8, period_ns: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let policy = Policy::Fifo(priority);
    let period_ns = period_ns.unwrap_or(DEFAULT_PERIOD_NS).cast_signed();
    let guard = Rlimit { current: Some(LONGEST_RUN_US), maximum: Some(LONGEST_RUN_US) };
    setrlimit(Resource::Rttime, guard).map_err(LoadError::kernel("timer", "a limit on its own CPU time"))?;
    // Try the policy on another thread, because this one must stay an ordinary one.
    let tried = thread::spawn(move || set_policy(policy)).join();
    tried.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(|error| refused(priority, &error))?;

    let mut plan = Plan::each_cpu("wake-ups", cpus, move |meter| {
        let sleep = LoadError::kernel("timer", "to sleep");
        let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep).map_err(&sleep)?;
        let mut deadline_ns = Clock::Monotonic.now_ns() + period_ns;
        while meter.running() {
            sleeper.sleep_until(deadline_ns).map_err(&sleep)?;
            meter.add(1);
            deadline_ns = next(deadline_ns, Clock::Monotonic.now_ns(), period_ns);
        }
        Ok(())
    });
    plan.jobs.iter_mut().for_each(|job| job.policy = policy);
    Ok(plan)
}

/// The first deadline after `now_ns`. Missed deadlines are skipped, so that every cycle sleeps.
fn next(deadline_ns: i64, now_ns: i64, period_ns: i64) -> i64 {
    let missed = (now_ns - deadline_ns).max(0) / period_ns;
    deadline_ns + (missed + 1) * period_ns
}

fn refused(priority: u8, error: &io::Error) -> LoadError {
    let program = env::current_exe().unwrap_or_else(|_| "punctual".into());
    let reason = format!(
        "may not run at SCHED_FIFO priority {priority} ({error}): start as root, or `sudo setcap \
         cap_sys_nice,cap_ipc_lock+ep {}`",
        program.display()
    );
    LoadError::Failed { load: Timer::KIND.name, reason }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn skips_missed_deadlines() {
        assert_eq!(next(1000, 1001, 100), 1100);
        assert_eq!(next(1000, 990, 100), 1100, "woken early");
        assert_eq!(next(1000, 1100, 100), 1200, "a deadline equal to now is past");
        assert_eq!(next(1000, 1550, 100), 1600);
    }
}
