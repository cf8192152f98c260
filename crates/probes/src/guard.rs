//! Keeps a measuring thread from starving the machine that it measures.
//!
//! A real-time thread whose period is too short for the machine never sleeps, which can make a small board unusable.
//! The guard checks two things once a second: a thread that used its CPU without sleeping is paused; if ordinary
//! threads no longer run, the run ends.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use sys::{
    clock::{Clock, Sleeper, Wait},
    signal,
    usage::ThreadUsage,
};

/// CPU time above which a thread is busy, percent of a second.
pub const BUSY_PERCENT: u64 = 90;
/// A busy thread never really sleeps if it slept fewer times than this in a second, and in fewer than half of its
/// wake-ups. A thread that only has much work sleeps often, and one that is seldom woken sleeps each time.
pub const SLEEPS_AT_LEAST: u64 = 100;
/// Length of a pause, ns: as much as the kernel's fair server takes from a real-time thread that never sleeps.
pub const PAUSE_NS: i64 = 50_000_000;
/// Seconds without ordinary threads running after which the run ends.
pub const STARVED_LIMIT_S: u32 = 5;

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(100);
/// Shortest time for which this process was stopped that counts.
const STOPPED: Duration = Duration::from_millis(50);

/// A counter that an ordinary thread increments while it gets CPU time.
#[derive(Debug, Default)]
pub struct Heartbeat {
    beats: AtomicU64,
    /// Time of the last one, ns on CLOCK_MONOTONIC.
    last_ns: AtomicI64,
    stopped_ns: AtomicU64,
}

impl Heartbeat {
    /// Starts a thread that only increments the counter, and ends when the heartbeat is dropped. Other threads of the
    /// program may wait for a disk or a terminal, which is not starvation. The thread also notices that the process was
    /// stopped.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start() -> io::Result<Arc<Self>> {
        // A frozen control group of version 1 does not interrupt a nanosleep.
        let sleeper = Sleeper::new(Clock::Monotonic, Wait::Timerfd)?;
        let heartbeat = Arc::new(Self::default());
        let watched = Arc::downgrade(&heartbeat);
        thread::Builder::new().name("heartbeat".to_owned()).stack_size(32 * 1024).spawn(move || {
            // Without the handlers' signals, nothing but a stop interrupts a sleep. If they cannot be blocked, Ctrl-C may.
            let _ = signal::block_termination_here();
            while let Some(heartbeat) = watched.upgrade() {
                heartbeat.beat();
                drop(heartbeat);
                let stopped = stopped_in_sleep(&sleeper, BEAT);
                if let Some(heartbeat) = watched.upgrade().filter(|_| stopped >= STOPPED) {
                    heartbeat.stopped_ns.fetch_add(u64::try_from(stopped.as_nanos()).unwrap_or(u64::MAX), Relaxed);
                }
            }
        })?;
        Ok(heartbeat)
    }

    /// Shows that ordinary threads still run.
    fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
        self.last_ns.store(Clock::Monotonic.now_ns(), Relaxed);
    }

    /// Time so far for which this process was stopped (SIGSTOP) or frozen (a control group), ns. A time below 50 ms does
    /// not count, and one below 150 ms may not.
    #[must_use]
    pub fn stopped_ns(&self) -> u64 {
        self.stopped_ns.load(Relaxed)
    }

    /// Waits until a stop of the process that just ended is counted. Returns at once if the next beat is not overdue.
    pub fn wait_for_beat(&self) {
        let last_ns = self.last_ns.load(Relaxed);
        let counted_from_ns = last_ns + i64::try_from((BEAT + STOPPED).as_nanos()).unwrap_or(i64::MAX);
        let began = Instant::now();
        while Clock::Monotonic.now_ns() >= counted_from_ns
            && self.last_ns.load(Relaxed) == last_ns
            && began.elapsed() < 3 * BEAT
        {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Sleeps, and returns the time for which the process was stopped or frozen meanwhile.
///
/// An undisturbed sleep leaves the CPU once, however late it ends. To be stopped, the thread is woken and leaves the CPU
/// again, within the same sleep. No signal of punctual has a handler that this thread could run.
fn stopped_in_sleep(sleeper: &Sleeper, time: Duration) -> Duration {
    let before = ThreadUsage::so_far().sleeps;
    let deadline_ns = Clock::Monotonic.now_ns() + i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    if sleeper.sleep_until(deadline_ns).is_err() {
        // Without a timer, it cannot notice a stop, but must not use the CPU.
        thread::sleep(time);
        return Duration::ZERO;
    }
    let late_ns = u64::try_from(Clock::Monotonic.now_ns() - deadline_ns).unwrap_or(0);
    if ThreadUsage::so_far().sleeps - before > 1 { Duration::from_nanos(late_ns) } else { Duration::ZERO }
}

/// Decision of the guard for a thread, after each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Continue.
    Continue,
    /// Sleep for [`PAUSE_NS`], then continue.
    Pause,
    /// End the run: the machine is starving.
    Stop,
}

/// State of the guard of one measuring thread.
#[derive(Debug, Default)]
pub struct Guard {
    usage: ThreadUsage,
    wake_ups: u64,
    beat: u64,
    seconds_without_beat: u32,
}

impl Guard {
    /// Judges the last second, from the thread's total usage and number of wake-ups.
    pub fn judge(&mut self, wall_ns: u64, usage: ThreadUsage, wake_ups: u64, heartbeat: &Heartbeat) -> Advice {
        let used_ns = usage.cpu_time_ns - self.usage.cpu_time_ns;
        let sleeps = usage.sleeps - self.usage.sleeps;
        self.usage = usage;
        // At least 1, otherwise a thread that never returns to its wait would pass.
        let woken = (wake_ups - std::mem::replace(&mut self.wake_ups, wake_ups)).max(1);
        let never_sleeps = sleeps < SLEEPS_AT_LEAST && 2 * sleeps < woken;
        let beat = heartbeat.beats.load(Relaxed);
        if beat == self.beat {
            self.seconds_without_beat += 1;
        } else {
            self.seconds_without_beat = 0;
            self.beat = beat;
        }
        if self.seconds_without_beat >= STARVED_LIMIT_S {
            Advice::Stop
        } else if used_ns * 100 > wall_ns * BUSY_PERCENT && never_sleeps {
            Advice::Pause
        } else {
            Advice::Continue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn usage(cpu_time_ns: u64, sleeps: u64) -> ThreadUsage {
        ThreadUsage { cpu_time_ns, sleeps }
    }

    #[test]
    fn only_an_interrupted_sleep_counts_as_stopped() {
        let sleeper = Sleeper::new(Clock::Monotonic, Wait::Timerfd).unwrap();
        assert_eq!(stopped_in_sleep(&sleeper, Duration::from_millis(20)), Duration::ZERO);
        let heartbeat = Heartbeat::start().unwrap();
        thread::sleep(BEAT);
        assert_eq!(heartbeat.stopped_ns(), 0);
    }

    #[test]
    fn only_an_overdue_beat_is_waited_for() {
        let heartbeat = Heartbeat::default();
        let waits = |last_ns| {
            heartbeat.last_ns.store(last_ns, Relaxed);
            let began = Instant::now();
            heartbeat.wait_for_beat();
            began.elapsed() >= 3 * BEAT
        };
        let now_ns = Clock::Monotonic.now_ns();
        assert!(!waits(now_ns + 10_000_000_000), "not overdue");
        assert!(waits(now_ns - 151_000_000), "a stop that just ended may not be counted yet");
    }

    #[test]
    fn pauses_only_a_thread_that_never_sleeps() {
        let (mut guard, heartbeat) = (Guard::default(), Heartbeat::default());
        let mut judge = |cpu_time_ns, sleeps, wake_ups| {
            heartbeat.beat();
            guard.judge(SECOND, usage(cpu_time_ns, sleeps), wake_ups, &heartbeat)
        };
        assert_eq!(judge(SECOND / 100, 1, 1), Advice::Continue);
        assert_eq!(judge(SECOND / 100 + SECOND, 50_001, 50_001), Advice::Continue);
        assert_eq!(judge(SECOND / 100 + 2 * SECOND, 50_002, 100_001), Advice::Pause);
    }

    /// The decision for a busy thread with this many wake-ups and sleeps per second.
    fn busy(wake_ups: u64, sleeps: u64) -> Advice {
        let heartbeat = Heartbeat::default();
        heartbeat.beat();
        Guard::default().judge(SECOND, usage(SECOND * 95 / 100, sleeps), wake_ups, &heartbeat)
    }

    #[test]
    fn compares_sleeps_with_wake_ups() {
        // Periods of 480, 1024 and 4096 frames at 48 kHz, each with a sleep.
        for wake_ups in [100, 47, 12, 1] {
            assert_eq!(busy(wake_ups, wake_ups), Advice::Continue, "{wake_ups} a second");
            assert_eq!(busy(wake_ups, wake_ups.div_ceil(2)), Advice::Continue, "{wake_ups} a second");
            assert_eq!(busy(wake_ups, 0), Advice::Pause, "{wake_ups} a second without sleep");
        }
        assert_eq!(busy(47, 23), Advice::Pause);
        assert_eq!(busy(750, 100), Advice::Continue, "other threads run a hundred times a second");
        assert_eq!(busy(750, 99), Advice::Pause);
        assert_eq!(busy(0, 0), Advice::Pause, "a thread that never returns to its wait");
    }

    #[test]
    fn a_starving_machine_ends_the_run() {
        let (mut guard, heartbeat) = (Guard::default(), Heartbeat::default());
        heartbeat.beat();
        let advice: Vec<_> = (0..=STARVED_LIMIT_S).map(|_| guard.judge(SECOND, usage(0, 0), 0, &heartbeat)).collect();
        assert_eq!(advice.iter().position(|&a| a == Advice::Stop), Some(STARVED_LIMIT_S as usize));
    }

    #[test]
    fn one_long_stall_is_not_starvation() {
        let (mut guard, heartbeat) = (Guard::default(), Heartbeat::default());
        assert_eq!(guard.judge(20 * SECOND, usage(0, 0), 0, &heartbeat), Advice::Continue);
    }
}
