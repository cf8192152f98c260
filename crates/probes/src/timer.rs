//! The timer probe: how late a thread wakes that sleeps until a deadline.
//!
//! Deadlines form a fixed grid, `deadline_k = t0 + k * period`. One thread a CPU sleeps until its next deadline, looks
//! at the clock first thing, and counts; deadlines that passed meanwhile are counted as missed, never slept for.
//!
//! | module | holds |
//! |---|---|
//! | [`grid`] | deadlines at a distance that may be no whole number of ns |
//! | `thread` | the measuring thread: set up, read back, loop |
//! | `stage` | who schedules it: Linux, or the EVL core |
//! | `shared` | what it and its reader both see |
//! | `reader` | turns that into the series of a record |

pub mod grid;
mod reader;
pub(crate) mod shared;
pub(crate) mod stage;
mod thread;

use std::{
    fs::File,
    io,
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use sys::{
    clock::{Clock, Wait},
    evl::EvlError,
    sched::Policy,
};

use crate::{companion::Member, guard::Heartbeat, noise::Spin, setup::STACK_BYTES};
pub use grid::{Fraction, Grid};
use reader::Reader;
use shared::Shared;
pub use stage::{Core, UnknownCore};

/// What one measuring thread is asked to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the thread is called in the record: `timer`, `base`, `servo`.
    pub role: String,
    /// CPU to be pinned to; `None` to wander.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// How to wait; of no use with the EVL core, which has its own way.
    pub wait: Wait,
    /// Who schedules the thread. With the EVL core the clock is the monotonic one, and the policy first in, first out.
    pub core: Core,
    /// Time between two deadlines, ns; 1 to 3.6e12.
    pub period_ns: u64,
    /// What each period is longer than that.
    pub fraction: Fraction,
    /// Stop after this many wake-ups.
    pub samples: Option<u64>,
    /// Lateness above which a wake-up is a spike, ns.
    pub threshold_ns: i64,
    /// How many spikes to keep, the worst of them.
    pub spikes_kept: usize,
    /// End with the first wake-up that is later.
    pub stop_on: Option<StopOn>,
    /// Look for gaps without sleeping instead, for a part of each period.
    pub spin: Option<Spin>,
}

/// What a measuring thread does at each deadline that it wakes for, after it has counted: sends a frame, for example.
///
/// It runs on the measuring thread, and neither allocates, locks, prints nor calls anything that it does not need. What
/// it has seen it tells as the thread itself does, by counters and queues of its own.
pub trait Work: Send {
    /// Does it once.
    fn at(&mut self, wake: Wake);

    /// Called once, when the thread begins. Answers whether it sets the deadlines, as a sound card does, in the clock's
    /// place: on the monotonic clock, each later than the one before.
    ///
    /// # Errors
    /// When what sets them cannot be started.
    fn start(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Waits for the next deadline that it sets.
    ///
    /// # Errors
    /// When what sets them goes on no more.
    fn wait(&mut self) -> io::Result<Wake> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A wake-up, on the clock of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// Deadlines since the first one, those that were missed among them.
    pub slot: u64,
    /// The deadline, ns.
    pub deadline_ns: i64,
    /// When the thread looked at the clock, ns.
    pub woke_ns: i64,
}

/// When to end early, and what to freeze then.
#[derive(Debug, Clone)]
pub struct StopOn {
    /// Lateness above which the thread ends, ns.
    pub lateness_ns: i64,
    /// Where the thread writes `0` at once, to freeze the kernel's trace: a `tracing_on`.
    pub freeze: Arc<File>,
}

/// What the kernel granted a thread, and what it refused.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The thread, as the kernel numbers it.
    pub thread_id: u32,
    /// Policy in force, read back.
    pub policy: Policy,
    /// CPUs the thread may run on, read back.
    pub cpus: Vec<u32>,
    /// Timer slack, ns.
    pub timer_slack_ns: u64,
    /// Why the policy was refused.
    pub policy_refused: Option<io::ErrorKind>,
    /// Why the thread could not be pinned.
    pub pin_refused: Option<io::ErrorKind>,
    /// Median of reading the clock twice in a row, ns.
    pub floor_ns: u64,
    /// The ABI level that is spoken with the EVL core; `None` for a thread of Linux.
    pub evl_level: Option<u32>,
}

/// Why a measuring thread could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    /// The system has no room for a thread.
    #[error("cannot start a measuring thread: {0}; close other programs, or measure fewer CPUs with --cpus")]
    Spawn(io::Error),
    /// This clock cannot be waited for in this way.
    #[error("cannot wait on the {0} clock with {1}: use --wait nanosleep")]
    Wait(Clock, Wait),
    /// The thread cannot be the EVL core's.
    #[error(transparent)]
    Evl(#[from] EvlError),
}

/// How a measuring thread came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As planned: duration or samples reached, or told to stop.
    Planned,
    /// The thread was found on another CPU: its own went offline.
    CpuGone,
    /// The guard found the machine starving.
    Starved,
    /// The kernel could not wait on the clock any more.
    ClockFailed,
    /// What set the deadlines in the clock's place, a sound card, goes on no more.
    PacerFailed,
    /// A wake-up was later than the run was to stop on.
    StoppedOn,
}

/// A timer probe on one CPU, with the thread that does the measuring.
#[derive(Debug)]
pub struct Timer {
    settings: Settings,
    grant: Grant,
    shared: Arc<Shared>,
    start: mpsc::Sender<(i64, i64)>,
    thread: Option<JoinHandle<()>>,
    reader: Reader,
}

impl Timer {
    /// Makes the thread, which sets itself up and waits for [`start`](Self::start).
    ///
    /// What the kernel refuses does not end it: it stands in [`grant`](Self::grant).
    ///
    /// # Errors
    /// When no thread can be made, or this clock cannot be waited for in this way.
    pub fn prepare(settings: &Settings, heartbeat: Arc<Heartbeat>) -> Result<Self, TimerError> {
        Self::prepare_with(None, settings, heartbeat)
    }

    /// As [`prepare`](Self::prepare), with work to do at each deadline. A thread that looks for gaps does none.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_with(
        work: Option<Box<dyn Work>>,
        settings: &Settings,
        heartbeat: Arc<Heartbeat>,
    ) -> Result<Self, TimerError> {
        let (writer, shared, reader) = shared::channel(settings);
        let (start, wait_for_start) = mpsc::channel();
        let (tell_grant, told_grant) = mpsc::channel();
        let asked = settings.clone();
        let name = settings.cpu.map_or_else(|| settings.role.clone(), |cpu| format!("{}/{cpu}", settings.role));
        let thread = std::thread::Builder::new()
            .name(name)
            .stack_size(STACK_BYTES)
            .spawn(move || thread::run(&asked, work, writer, &heartbeat, &tell_grant, &wait_for_start))
            .map_err(TimerError::Spawn)?;
        let grant = told_grant.recv().unwrap_or(Err(TimerError::Wait(settings.clock, settings.wait)))?;
        Ok(Self { settings: settings.clone(), grant, shared, start, thread: Some(thread), reader })
    }

    /// What it was asked to do.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the kernel granted.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Lets the thread begin. Deadlines lie on the settings' clock: the first at `first_ns`, none after `end_ns`.
    pub fn start(&mut self, first_ns: i64, end_ns: i64) {
        // The thread tells a later one where this word comes too late.
        self.shared.first_deadline_ns.store(first_ns, Relaxed);
        // A thread that has gone away already cannot begin; `has_ended` says so.
        let _ = self.start.send((first_ns, end_ns));
    }

    /// Tells the thread to end at its next wake-up.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread's end, but no longer than `patience`: one that sleeps for an hour is left to its sleep,
    /// and counts nothing any more.
    pub fn wait_for_end(&mut self, patience: Duration) {
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// How the thread ended; `None` while it goes on.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.shared.end()
    }

    /// How often the guard made the thread rest.
    #[must_use]
    pub fn rests(&self) -> u64 {
        self.shared.rests()
    }

    /// How often a thread of the EVL core fell back to Linux while it measured.
    #[must_use]
    pub fn in_band(&self) -> u64 {
        self.shared.in_band.load(Relaxed)
    }

    /// Where it measures, in words.
    #[must_use]
    pub fn place(&self) -> String {
        match (self.settings.cpu, self.settings.role.as_str()) {
            (None, _) => "an unpinned thread".to_owned(),
            (Some(cpu), "timer" | "noise") => format!("CPU {cpu}"),
            (Some(cpu), role) => format!("{role} on CPU {cpu}"),
        }
    }

    /// The thread as one of those that measure; one with a name of its own is named without its CPU.
    #[must_use]
    pub fn member(&self) -> Member<'_> {
        let role = &self.settings.role;
        let place = if ["timer", "noise"].contains(&role.as_str()) { self.place() } else { role.clone() };
        Member { place, policy: self.settings.policy, grant: &self.grant }
    }

    /// Takes in what the thread reported since the last call. To be called a few times a second.
    pub fn collect(&mut self) {
        self.reader.collect(&self.shared);
    }

    /// Spikes that the last [`collect`](Self::collect) brought, in order of time. What is written into them stays
    /// with those that are kept.
    pub fn fresh_spikes(&mut self) -> &mut [record::Spike] {
        &mut self.reader.fresh
    }

    /// The CPU it measures; `None` for a thread that may wander.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.settings.cpu.filter(|_| self.grant.pin_refused.is_none())
    }

    /// The first deadline, ns on the settings' clock.
    #[must_use]
    pub fn first_deadline_ns(&self) -> i64 {
        self.shared.first_deadline_ns.load(Relaxed)
    }

    /// What the thread has seen so far.
    #[must_use]
    pub fn series(&self, phase: &str) -> record::Series {
        self.reader.series(phase, &self.settings, &self.grant, &self.shared)
    }
}
