//! The timer probe: wake-up latency of a thread that sleeps until a deadline.
//!
//! Deadlines form a fixed grid, `deadline_k = t0 + k * period`. One thread per CPU sleeps until its next deadline,
//! reads the clock immediately, and counts the lateness. Deadlines that passed meanwhile are counted as missed; the
//! thread does not sleep for them.
//!
//! | module | contents |
//! |---|---|
//! | [`grid`] | deadlines whose period may be a fraction of ns |
//! | `settings` | the settings of a measuring thread, and how it may end |
//! | `thread` | the measuring thread: setup and loop |
//! | `backend` | the scheduler of the thread: Linux or the EVL core |
//! | `shared` | data shared by the thread and its reader |
//! | `reader` | the series of the record |

pub(crate) mod backend;
pub mod grid;
pub(crate) mod reader;
pub(crate) mod settings;
pub(crate) mod shared;
mod thread;

use std::{
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use sys::{evl::Waker, signal::interrupt_thread};

use crate::{
    guard::Heartbeat,
    probe_threads::{Overdue, ThreadInfo, Work},
    setup::{Grant, STACK_BYTES},
};
pub use grid::{Fraction, Grid};
use reader::Reader;
pub use settings::{Core, End, Settings, StopOn, TimerError};
use shared::Shared;
use thread::Ready;

/// A timer probe on one CPU, with its measuring thread.
#[derive(Debug)]
pub struct Timer {
    settings: Settings,
    grant: Grant,
    /// Ends a wait of the thread; `None` if a signal does.
    waker: Option<Waker>,
    shared: Arc<Shared>,
    start: mpsc::Sender<(i64, i64)>,
    thread: Option<JoinHandle<()>>,
    reader: Reader,
    /// True if the thread's wait for a device ends only with an event or a signal.
    waits_for_ever: bool,
    /// Waits that had ended at the last [`collect`](Self::collect).
    waits: u64,
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
        let (writer, shared, queue) = shared::channel();
        let reader = Reader::new(queue, settings);
        let (start, wait_for_start) = mpsc::channel();
        let (ready_sender, ready) = mpsc::channel();
        let thread_settings = settings.clone();
        let waits_for_ever = work.as_ref().is_some_and(|work| work.waits_for_ever());
        let name = settings.cpu.map_or_else(|| settings.role.clone(), |cpu| format!("{}/{cpu}", settings.role));
        let thread = std::thread::Builder::new()
            .name(name)
            .stack_size(STACK_BYTES)
            .spawn(move || thread::run(&thread_settings, work, writer, &heartbeat, &ready_sender, &wait_for_start))
            .map_err(TimerError::Spawn)?;
        let Ready { grant, waker } = ready.recv().unwrap_or(Err(TimerError::Wait(settings.clock, settings.wait)))?;
        let settings = settings.clone();
        Ok(Self { settings, grant, waker, shared, start, thread: Some(thread), reader, waits_for_ever, waits: 0 })
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

    /// Interrupts a wait of the thread that ends only with an event or an interruption.
    fn interrupt(&self) {
        if !self.waits_for_ever || self.has_ended() {
            return;
        }
        match &self.waker {
            Some(waker) => waker.wake(),
            None => interrupt_thread(self.grant.thread_id),
        }
    }

    /// Waits for the thread's end, at most for `timeout`. A thread that sleeps longer is left alone; it counts nothing
    /// more.
    pub fn wait_for_end(&mut self, timeout: Duration) {
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() < timeout {
            // Each time, because a signal before the wait has no effect.
            self.interrupt();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Counts the deadline that the thread still waits for after [`stop`](Self::stop), if it has passed: it is late by at
    /// least the time until now.
    pub fn count_overdue(&mut self) -> Option<Overdue> {
        if self.has_ended() {
            return None;
        }
        let pending_ns = self.shared.pending.take()?;
        self.reader.count_overdue(pending_ns - self.first_deadline_ns(), self.settings.clock.now_ns() - pending_ns)
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

    /// The thread with its requested policy; a thread with its own role is named without its CPU, unless there is one such
    /// thread on each CPU.
    #[must_use]
    pub fn thread_info(&self) -> ThreadInfo<'_> {
        let on_each_cpu = [record::IN_BAND, record::OUT_OF_BAND].contains(&self.settings.role.as_str());
        let place = if self.settings.has_own_role && !on_each_cpu { self.settings.role.clone() } else { self.place() };
        ThreadInfo { place, policy: self.settings.policy, grant: &self.grant, at_end: self.shared.at_end.get() }
    }

    /// Reads the data that the thread reported since the last call. Must be called several times per second.
    pub fn collect(&mut self) {
        self.reader.collect(&self.shared);
        let waits = self.shared.waits.load(Relaxed);
        // A thread whose device is silent must check whether to end, and whether the device is gone.
        if std::mem::replace(&mut self.waits, waits) == waits {
            self.interrupt();
        }
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
