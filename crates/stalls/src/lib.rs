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

/// The shortest stall that can make a test fail.
#[derive(Debug, Clone, Copy)]
pub enum Stall {
    /// A delay of real-time threads.
    Realtime(Duration),
    /// A delay of ordinary threads.
    Ordinary(Duration),
    /// Any CPU time that the hypervisor takes.
    Stolen,
}

/// Runs a test, and runs it again if it failed during a stall of this machine. A failure without a stall fails the
/// test.
///
/// A stall is CPU time that the hypervisor took, or a late wake-up of a canary thread on any CPU. The canary for
/// real-time threads has the highest priority, so no thread of a test can delay it. Disturbed attempts are reported on
/// stderr.
#[track_caller]
pub fn repeat_if_stalled(stall: Stall, test: impl Fn()) {
    let watch = || {
        let canaries = Canaries::start(stall);
        let before = stolen();
        move || {
            let stolen = stolen().saturating_sub(before);
            let late = Duration::from_nanos(canaries.end().unsigned_abs());
            let shortest = match stall {
                Stall::Realtime(shortest) | Stall::Ordinary(shortest) => shortest,
                Stall::Stolen => Duration::from_nanos(1),
            };
            (stolen.max(late) >= shortest)
                .then(|| format!("{stolen:.0?} of CPU time stolen, a thread up to {late:.1?} late"))
        }
    };
    let at = Location::caller();
    // Not eprintln!, whose output is hidden if the test passes in the end.
    let report = |text: &str| drop(writeln!(stderr(), "\nDISTURBED: {}:{}: {text}", at.file(), at.line()));
    repeat(watch, report, test);
}

/// `watch` is called before each attempt and returns a function that describes the disturbance since then, if any.
fn repeat<Found: FnOnce() -> Option<String>>(watch: impl Fn() -> Found, report: impl Fn(&str), test: impl Fn()) {
    for attempt in 1.. {
        let found = watch();
        let Err(failure) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let Some(disturbance) = found().filter(|_| attempt < ATTEMPTS) else { resume_unwind(failure) };
        report(&format!("attempt {attempt}: {disturbance}"));
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

    /// Waits for the canaries, also for one that is delayed now; returns their largest lateness.
    fn end(mut self) -> i64 {
        self.join();
        self.max_lateness_ns.load(Relaxed)
    }

    fn join(&mut self) {
        self.stop.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a canary"));
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        self.join();
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

    /// How often a test runs that fails in its first attempts, if each attempt is disturbed or none; and if it passes
    /// then.
    fn attempts(failures: u32, disturbed: bool) -> (u32, bool) {
        let count = Cell::new(0);
        let test = || {
            count.set(count.get() + 1);
            assert!(count.get() > failures);
        };
        let watch = || move || disturbed.then(|| "made up by a test".to_owned());
        let passed = catch_unwind(AssertUnwindSafe(|| repeat(watch, |_| (), test))).is_ok();
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
