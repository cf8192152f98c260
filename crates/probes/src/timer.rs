//! The timer probe: wake-up latency of a thread that sleeps until a deadline.
//!
//! Deadlines form a fixed grid, `deadline_k = t0 + k * period`. One thread per CPU sleeps until its next deadline,
//! reads the clock immediately, and counts the lateness. Deadlines that passed meanwhile are counted as missed; the
//! thread does not sleep for them.
//!
//! | module | contents |
//! |---|---|
//! | [`grid`] | deadlines whose period may be a fraction of ns |
//! | `thread` | the measuring thread: setup and loop |
//! | `backend` | the scheduler of the thread: Linux or the EVL core |
//! | `shared` | data shared by the thread and its reader |
//! | `reader` | the series of the record |

pub(crate) mod backend;
pub mod grid;
mod reader;
pub(crate) mod shared;
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

use crate::{guard::Heartbeat, noise::Spin, probe_threads::ThreadInfo, setup::STACK_BYTES};
pub use backend::{Core, UnknownCore};
pub use grid::{Fraction, Grid};
use reader::Reader;
use shared::Shared;

/// The settings of one measuring thread.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Role of the thread in the record: `timer`, `base`, `servo`.
    pub role: String,
    /// True if the role is a name of the thread's own; false for one of several equal threads, one on each CPU.
    pub has_own_role: bool,
    /// CPU to pin the thread to; `None` for any CPU.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Clock of the deadlines.
    pub clock: Clock,
    /// Method of waiting; not used with the EVL core, which has only one.
    pub wait: Wait,
    /// Scheduler of the thread. With the EVL core the clock is the monotonic one and the policy is `fifo`.
    pub core: Core,
    /// Time between two deadlines, ns; 1 to 3.6e12.
    pub period_ns: u64,
    /// Fraction of a ns that is added to each period.
    pub fraction: Fraction,
    /// Number of wake-ups after which the thread ends; `None` for no limit.
    pub samples: Option<u64>,
    /// Lateness above which a wake-up is a spike, ns.
    pub threshold_ns: i64,
    /// Number of worst spikes to keep.
    pub spikes_kept: usize,
    /// Lateness of a wake-up that ends the run; `None` for no limit.
    pub stop_on: Option<StopOn>,
    /// Settings to search for gaps without sleeping (noise probe); `None` for a timer.
    pub spin: Option<Spin>,
}

/// The work of a measuring thread at each deadline, after it has counted its lateness; e.g. to send a frame.
///
/// It runs on the measuring thread and must not allocate, lock, print or call anything unnecessary. It reports its
/// results like the thread itself, with counters and queues.
pub trait Work: Send {
    /// Does the work for one wake-up.
    fn at(&mut self, wake: Wake);

    /// Called once when the thread starts. Returns true if the work itself sets the deadlines (e.g. for a sound card)
    /// and not the clock: on the monotonic clock, in ascending order.
    ///
    /// # Errors
    /// If the device that sets the deadlines cannot be started.
    fn start(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Waits for the next deadline, if the work sets the deadlines.
    ///
    /// # Errors
    /// If the device that sets the deadlines stopped for good.
    fn wait(&mut self) -> io::Result<Wake> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A wake-up, in times of the settings' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// Number of the deadline, counted from the first one; missed deadlines count too.
    pub slot: u64,
    /// The deadline, ns.
    pub deadline_ns: i64,
    /// When the thread read the clock, ns.
    pub woke_ns: i64,
}

/// The condition to end the run early, and the trace to freeze then.
#[derive(Debug, Clone)]
pub struct StopOn {
    /// Lateness above which the thread ends, ns.
    pub lateness_ns: i64,
    /// File to which the thread writes `0` to freeze the kernel trace: a `tracing_on`.
    pub freeze: Arc<File>,
}

/// The settings that the kernel granted a thread, and those that it refused.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Thread id.
    pub thread_id: u32,
    /// Active policy, read back.
    pub policy: Policy,
    /// CPUs the thread may run on, read back.
    pub cpus: Vec<u32>,
    /// Timer slack, ns.
    pub timer_slack_ns: u64,
    /// Error of the refused policy; `None` if it was granted.
    pub policy_refused: Option<io::ErrorKind>,
    /// Error of the refused pinning; `None` if it was granted.
    pub pin_refused: Option<io::ErrorKind>,
    /// Overhead of a timestamp, ns: median time of reading the clock twice in a row.
    pub floor_ns: u64,
    /// ABI level of the EVL core; `None` for a Linux thread.
    pub evl_level: Option<u32>,
}

/// An error in creating a measuring thread.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    /// No thread can be created.
    #[error("cannot start a measuring thread: {0}; close other programs, or measure fewer CPUs with --cpus")]
    Spawn(io::Error),
    /// This clock does not support this method of waiting.
    #[error("cannot wait on the {0} clock with {1}: use --wait nanosleep")]
    Wait(Clock, Wait),
    /// The EVL core cannot schedule the thread.
    #[error(transparent)]
    Evl(#[from] EvlError),
}

/// The reason why a measuring thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Duration or number of samples reached, or stopped.
    Planned,
    /// The thread was found on another CPU: it was moved, or its own CPU went offline.
    LeftCpu,
    /// The guard found that the machine is starving.
    Starved,
    /// The kernel can no longer wait on the clock.
    ClockFailed,
    /// The sound card that set the deadlines stopped for good.
    PacerFailed,
    /// A wake-up was later than the limit that ends the run.
    StoppedOn,
}

/// A timer probe on one CPU, with its measuring thread.
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
    /// Creates the thread, which sets itself up and waits for [`start`](Self::start).
    ///
    /// A refused setting is not an error: [`grant`](Self::grant) contains it.
    ///
    /// # Errors
    /// If no thread can be created, or this clock does not support this method of waiting.
    pub fn prepare(settings: &Settings, heartbeat: Arc<Heartbeat>) -> Result<Self, TimerError> {
        Self::prepare_with(None, settings, heartbeat)
    }

    /// Like [`prepare`](Self::prepare), with work at each deadline. A noise probe has no work.
    ///
    /// # Errors
    /// The errors of [`prepare`](Self::prepare).
    pub fn prepare_with(
        work: Option<Box<dyn Work>>,
        settings: &Settings,
        heartbeat: Arc<Heartbeat>,
    ) -> Result<Self, TimerError> {
        let (writer, shared, reader) = shared::channel(settings);
        let (start, wait_for_start) = mpsc::channel();
        let (grant_sender, grant_receiver) = mpsc::channel();
        let thread_settings = settings.clone();
        let name = settings.cpu.map_or_else(|| settings.role.clone(), |cpu| format!("{}/{cpu}", settings.role));
        let thread = std::thread::Builder::new()
            .name(name)
            .stack_size(STACK_BYTES)
            .spawn(move || thread::run(&thread_settings, work, writer, &heartbeat, &grant_sender, &wait_for_start))
            .map_err(TimerError::Spawn)?;
        let grant = grant_receiver.recv().unwrap_or(Err(TimerError::Wait(settings.clock, settings.wait)))?;
        Ok(Self { settings: settings.clone(), grant, shared, start, thread: Some(thread), reader })
    }

    /// The settings of the probe.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings that the kernel granted.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Starts measuring. Deadlines are on the settings' clock: the first at `first_ns`, none after `end_ns`.
    pub fn start(&mut self, first_ns: i64, end_ns: i64) {
        // The thread stores a later time if this message arrives too late.
        self.shared.first_deadline_ns.store(first_ns, Relaxed);
        // If the thread has already ended, it cannot start; `has_ended` then returns true.
        let _ = self.start.send((first_ns, end_ns));
    }

    /// Stops the thread at its next wake-up.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// True if the thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread's end, at most for `timeout`. A thread that sleeps longer is left alone; it counts nothing
    /// more.
    pub fn wait_for_end(&mut self, timeout: Duration) {
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() < timeout {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The reason why the thread ended; `None` while it runs.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.shared.end()
    }

    /// Number of pauses that the guard imposed on the thread.
    #[must_use]
    pub fn pauses(&self) -> u64 {
        self.shared.pauses()
    }

    /// Switches of an EVL thread to in-band (Linux) scheduling while it measured.
    #[must_use]
    pub fn in_band(&self) -> u64 {
        self.shared.in_band.load(Relaxed)
    }

    /// Describes the thread: `CPU 1`, `base on CPU 1`.
    #[must_use]
    pub fn place(&self) -> String {
        let Settings { role, has_own_role, .. } = &self.settings;
        match self.settings.cpu {
            None => "an unpinned thread".to_owned(),
            Some(cpu) if *has_own_role => format!("{role} on CPU {cpu}"),
            Some(cpu) => format!("CPU {cpu}"),
        }
    }

    /// The thread with its requested policy; a thread with its own role is named without its CPU.
    #[must_use]
    pub fn thread_info(&self) -> ThreadInfo<'_> {
        let place = if self.settings.has_own_role { self.settings.role.clone() } else { self.place() };
        ThreadInfo { place, policy: self.settings.policy, grant: &self.grant }
    }

    /// Reads the data that the thread reported since the last call. Must be called several times per second.
    pub fn collect(&mut self) {
        self.reader.collect(&self.shared);
    }

    /// Spikes of the last [`collect`](Self::collect), in order of time. Explanations written into them stay with the
    /// kept spikes.
    pub fn fresh_spikes(&mut self) -> &mut [record::Spike] {
        &mut self.reader.fresh
    }

    /// The measured CPU; `None` for a thread that is not pinned.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        self.settings.cpu.filter(|_| self.grant.pin_refused.is_none())
    }

    /// The first deadline, ns on the settings' clock.
    #[must_use]
    pub fn first_deadline_ns(&self) -> i64 {
        self.shared.first_deadline_ns.load(Relaxed)
    }

    /// The series so far.
    #[must_use]
    pub fn series(&self, phase: &str) -> record::Series {
        self.reader.series(phase, &self.settings, &self.grant, &self.shared)
    }
}
