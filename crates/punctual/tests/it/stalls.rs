//! Repeating a test that this machine disturbed.

use std::{
    fs,
    io::{Write, stderr},
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{self, Policy},
};

/// How often a disturbed test runs at most.
const ATTEMPTS: u32 = 5;

/// A stall that can make a test fail. CPU time that the hypervisor stole always counts as one.
#[derive(Debug, Clone, Copy)]
pub enum Stall {
    /// A real-time thread is delayed by this time or more.
    Realtime(Duration),
    /// An ordinary thread is delayed by this time or more.
    Ordinary(Duration),
    /// Only stolen time counts.
    Stolen,
}

/// Runs a test, and runs it again if it failed during a stall of this machine. A failure without a stall fails the test.
///
/// Stalls are found by a canary thread on each CPU, which measures how late it wakes up. The canary for real-time threads has
/// the highest priority, so no thread of a test can delay it. Disturbed attempts are reported on stderr.
#[track_caller]
pub fn repeat_if_stalled(stall: Stall, test: impl Fn()) {
    let watch = || {
        let canaries = Canaries::start(stall);
        let stolen = stolen();
        move || {
            let stolen = stolen_since(stolen);
            let late = Duration::from_nanos(canaries.max_lateness_ns().unsigned_abs());
            let stalled = match stall {
                Stall::Realtime(limit) | Stall::Ordinary(limit) => late >= limit,
                Stall::Stolen => false,
            };
            (!stolen.is_zero() || stalled)
                .then(|| format!("{stolen:.0?} of CPU time stolen, a thread up to {late:.1?} late"))
        }
    };
    repeat(Location::caller(), watch, test);
}

/// `watch` is called before each attempt and returns a function that describes the disturbance since then, if any.
fn repeat<Found: FnOnce() -> Option<String>>(at: &Location<'_>, watch: impl Fn() -> Found, test: impl Fn()) {
    for attempt in 1.. {
        let found = watch();
        let Err(failure) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let Some(disturbance) = found().filter(|_| attempt < ATTEMPTS) else { resume_unwind(failure) };
        // Not eprintln!, whose output is hidden if the test passes in the end.
        let _ = writeln!(stderr(), "\nDISTURBED: {}:{}: attempt {attempt}: {disturbance}", at.file(), at.line());
    }
}

/// CPU time of all CPUs that the hypervisor gave to other guests, since boot.
fn stolen() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let ticks =
        stat.lines().next().and_then(|line| line.split_whitespace().nth(8)).and_then(|ticks| ticks.parse().ok());
    TICK * ticks.unwrap_or(0)
}

fn stolen_since(before: Duration) -> Duration {
    stolen().saturating_sub(before)
}

/// A thread on each CPU that sleeps and measures how late it wakes up.
struct Canaries {
    stop: Arc<AtomicBool>,
    max_lateness_ns: Arc<AtomicI64>,
    threads: Vec<JoinHandle<()>>,
}

impl Canaries {
    fn start(stall: Stall) -> Self {
        let (stop, max_lateness_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
        let cpus = match stall {
            Stall::Realtime(_) | Stall::Ordinary(_) => sched::affinity().expect("the CPUs of this thread"),
            Stall::Stolen => Vec::new(),
        };
        let threads = cpus.into_iter().map(|cpu| {
            let (stop, max_lateness_ns) = (stop.clone(), max_lateness_ns.clone());
            thread::spawn(move || canary(cpu, stall, &stop, &max_lateness_ns))
        });
        Self { threads: threads.collect(), stop, max_lateness_ns }
    }

    fn max_lateness_ns(&self) -> i64 {
        self.max_lateness_ns.load(Relaxed)
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a canary"));
    }
}

fn canary(cpu: u32, stall: Stall, stop: &AtomicBool, max_lateness_ns: &AtomicI64) {
    const PERIOD_NS: i64 = 5_000_000;
    sched::set_affinity(&[cpu]).expect("a CPU of this process");
    if let Stall::Realtime(_) = stall {
        sched::set_policy(Policy::Fifo(99)).expect("the right to real-time policies: run as root");
    }
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep).expect("a clock");
    while !stop.load(Relaxed) {
        let deadline_ns = Clock::Monotonic.now_ns() + PERIOD_NS;
        sleeper.sleep_until(deadline_ns).expect("a clock that can be waited for");
        max_lateness_ns.fetch_max(Clock::Monotonic.now_ns() - deadline_ns, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How often a test runs that fails in its first attempts, if each attempt is disturbed or none; and if it passes then.
    fn attempts(failures: u32, disturbed: bool) -> (u32, bool) {
        let count = Cell::new(0);
        let test = || {
            count.set(count.get() + 1);
            assert!(count.get() > failures);
        };
        let watch = || move || disturbed.then(|| "made up by a test".to_owned());
        let passed = catch_unwind(AssertUnwindSafe(|| repeat(Location::caller(), watch, test))).is_ok();
        (count.get(), passed)
    }

    #[test]
    fn only_disturbed_failures_are_repeated() {
        assert_eq!(attempts(0, true), (1, true));
        assert_eq!(attempts(1, false), (1, false));
        assert_eq!(attempts(2, true), (3, true));
        assert_eq!(attempts(u32::MAX, true), (ATTEMPTS, false));
    }
}
