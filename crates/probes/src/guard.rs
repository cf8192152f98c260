//! Keeps a measuring thread from starving the machine that it measures.
//!
//! A real-time thread whose period is too short for the machine never sleeps. On a small board that is the end of the
//! session. Two things are looked at once a second: did the thread use (almost) all of its CPU, then it rests; do ordinary
//! threads not get to run any more, then the run ends.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// How much CPU time a thread may use before it rests, per cent of each second.
pub const BUSY_LIMIT_PERCENT: u64 = 90;
/// How long it rests then, ns: what the kernel's fair server takes from a real-time thread that never sleeps.
pub const REST_NS: i64 = 50_000_000;
/// How many seconds ordinary threads may stand still before the run ends.
pub const STARVED_LIMIT_S: u32 = 5;

/// A count that an ordinary thread keeps moving while it gets to run.
#[derive(Debug, Default)]
pub struct Heartbeat(AtomicU64);

impl Heartbeat {
    /// Starts a thread that does nothing else, and ends when nobody holds the heartbeat any more. The program's other
    /// threads may wait for a disk or a terminal, which is no starvation.
    ///
    /// # Errors
    /// When the system has no room for a thread.
    pub fn start() -> io::Result<Arc<Self>> {
        let heartbeat = Arc::new(Self::default());
        let watched = Arc::downgrade(&heartbeat);
        thread::Builder::new().name("heartbeat".to_owned()).stack_size(32 * 1024).spawn(move || {
            while let Some(heartbeat) = watched.upgrade() {
                heartbeat.beat();
                drop(heartbeat);
                thread::sleep(Duration::from_millis(400));
            }
        })?;
        Ok(heartbeat)
    }

    /// Says that ordinary threads still get to run.
    fn beat(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What a thread is to do after a second has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Go on.
    Continue,
    /// Rest for [`REST_NS`], then go on.
    Rest,
    /// End the run: the machine is starving.
    Stop,
}

/// The memory of the guard, one a measuring thread.
#[derive(Debug, Default)]
pub struct Guard {
    cpu_time_ns: i64,
    beat: u64,
    seconds_without_beat: u32,
}

impl Guard {
    /// Judges the second that has just passed, given the thread's CPU time so far.
    pub fn judge(&mut self, wall_ns: i64, cpu_time_ns: i64, heartbeat: &Heartbeat) -> Advice {
        let used_ns = cpu_time_ns - self.cpu_time_ns;
        self.cpu_time_ns = cpu_time_ns;
        let beat = heartbeat.0.load(Relaxed);
        if beat == self.beat {
            self.seconds_without_beat += 1;
        } else {
            self.seconds_without_beat = 0;
            self.beat = beat;
        }
        if self.seconds_without_beat >= STARVED_LIMIT_S {
            Advice::Stop
        } else if used_ns * 100 > wall_ns * BUSY_LIMIT_PERCENT as i64 {
            Advice::Rest
        } else {
            Advice::Continue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_thread_that_never_sleeps_rests() {
        let (mut guard, heartbeat) = (Guard::default(), Heartbeat::default());
        heartbeat.beat();
        assert_eq!(guard.judge(SECOND, SECOND / 100, &heartbeat), Advice::Continue);
        heartbeat.beat();
        assert_eq!(guard.judge(SECOND, SECOND / 100 + SECOND, &heartbeat), Advice::Rest);
    }

    #[test]
    fn a_machine_that_starves_ends_the_run() {
        let (mut guard, heartbeat) = (Guard::default(), Heartbeat::default());
        heartbeat.beat();
        let advice: Vec<_> = (0..=STARVED_LIMIT_S).map(|_| guard.judge(SECOND, 0, &heartbeat)).collect();
        assert_eq!(advice.iter().position(|&a| a == Advice::Stop), Some(STARVED_LIMIT_S as usize));
    }

    #[test]
    fn one_long_stop_is_no_starvation() {
        let (mut guard, heartbeat) = (Guard::default(), Heartbeat::default());
        assert_eq!(guard.judge(20 * SECOND, 0, &heartbeat), Advice::Continue);
    }
}
