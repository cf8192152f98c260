//! The thread that makes edges on an output line, which a wire connects to the input line.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
};

use rustix::io::Errno;
use sys::{
    alloc_guard::without_allocation,
    clock::{Clock, Sleeper, Wait},
    interrupt::gpio::Output,
    sched::Policy,
};

use crate::{
    probe_threads::ThreadInfo,
    setup::{AtEnd, Grant, STACK_BYTES, floor_ns, set_up},
    timer::shared::add,
};

/// The times before edges, ns on CLOCK_MONOTONIC, until their interrupts came.
pub type Edges = rtrb::Consumer<i64>;

/// Edges that may wait for their interrupts.
const QUEUE: usize = 4096;
/// Longest sleep before the thread checks whether to begin or end, ns.
const CHECK_NS: i64 = 10_000_000;

/// An output.
pub trait Drive: Send + 'static {
    /// Makes it active or inactive. A change to active is an edge that causes an interrupt.
    ///
    /// # Errors
    /// The error of the kernel, such as ENODEV if the device is gone.
    fn set(&mut self, is_active: bool) -> io::Result<()>;
}

impl Drive for Output {
    #[inline]
    fn set(&mut self, is_active: bool) -> io::Result<()> {
        Self::set(self, is_active)
    }
}

/// The settings of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverSettings {
    /// CPU of the thread; `None` for any.
    pub cpu: Option<u32>,
    /// Its policy.
    pub policy: Policy,
    /// Time between two rising edges, ns.
    pub period_ns: u64,
}

/// The thread, and the counters that it writes.
#[derive(Debug)]
pub struct Driver {
    settings: DriverSettings,
    shared: Arc<Shared>,
    grant: Grant,
    thread: Option<JoinHandle<()>>,
}

/// Lets the thread begin and end.
#[derive(Debug, Default)]
pub struct Switch {
    has_begun: AtomicBool,
    has_ended: AtomicBool,
}

impl Switch {
    /// Lets the thread make edges.
    pub fn begin(&self) {
        self.has_begun.store(true, Relaxed);
    }

    /// Lets the thread end, whether it has begun or not.
    pub fn end(&self) {
        self.has_ended.store(true, Relaxed);
    }
}

#[derive(Debug, Default)]
struct Shared {
    switch: Arc<Switch>,
    /// As [`Driver::edges`].
    edges: AtomicU64,
    /// As [`Driver::skipped`].
    skipped: AtomicU64,
    /// Error number after which it ended; 0 without one.
    error: AtomicI32,
    at_end: AtEnd,
}

impl Driver {
    /// Creates the thread, which waits for its [`switch`](Self::switch). Returns also the times before each edge, ns on
    /// CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// No thread can be created, or its CPU does not exist.
    pub fn create(output: impl Drive, settings: DriverSettings) -> io::Result<(Self, Edges)> {
        let (edges, taken) = rtrb::RingBuffer::new(QUEUE);
        let shared = Arc::new(Shared::default());
        let (grant_sender, grant_receiver) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        let run = move || {
            let granted = set_up(settings.cpu, settings.policy, || floor_ns(Clock::Monotonic));
            let ready = granted.and_then(|grant| Ok((grant, Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?)));
            // The other side waits for this message, so sending cannot fail.
            let (grant, sleeper) = match ready {
                Ok(ready) => ready,
                Err(error) => return drop(grant_sender.send(Err(error))),
            };
            let _ = grant_sender.send(Ok(grant));
            let period_ns = settings.period_ns.cast_signed();
            let mut making = Making { output, shared: of_thread, edges, period_ns };
            if let Err(error) = without_allocation(|| making.run(&sleeper)) {
                making.shared.error.store(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()), Relaxed);
            }
            making.shared.at_end.read();
        };
        let thread = std::thread::Builder::new().name("driver".to_owned()).stack_size(STACK_BYTES).spawn(run)?;
        let granted = grant_receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()));
        Ok((Self { settings, shared, grant: granted?, thread: Some(thread) }, taken))
    }

    /// The switch of the thread.
    #[must_use]
    pub fn switch(&self) -> Arc<Switch> {
        Arc::clone(&self.shared.switch)
    }

    /// Rising edges so far, with those that were not made because too many others had no interrupt yet.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.shared.edges.load(Relaxed)
    }

    /// Edges that were not made, because their time had passed: the thread or the line was late.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.shared.skipped.load(Relaxed)
    }

    /// The error after which it made no more edges.
    #[must_use]
    pub fn error(&self) -> Option<io::Error> {
        let error = self.shared.error.load(Relaxed);
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }

    /// The thread and its requested policy.
    #[must_use]
    pub fn thread_info(&self) -> ThreadInfo<'_> {
        ThreadInfo {
            place: "driver".to_owned(),
            policy: self.settings.policy,
            grant: &self.grant,
            at_end: self.shared.at_end.get(),
        }
    }

    /// Ends the thread.
    pub fn stop(&mut self) {
        self.shared.switch.end();
        if let Some(thread) = self.thread.take() {
            // Its counters are valid even if it panicked.
            let _ = thread.join();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state of the loop. It does not allocate, lock, print or call anything unnecessary.
struct Making<D> {
    output: D,
    shared: Arc<Shared>,
    edges: rtrb::Producer<i64>,
    period_ns: i64,
}

impl<D: Drive> Making<D> {
    fn run(&mut self, sleeper: &Sleeper) -> io::Result<()> {
        while !self.shared.switch.has_begun.load(Relaxed) {
            if !self.sleep_until(sleeper, Clock::Monotonic.now_ns() + CHECK_NS)? {
                return Ok(());
            }
        }
        let mut deadline_ns = Clock::Monotonic.now_ns() + self.period_ns;
        while self.sleep_until(sleeper, deadline_ns)? {
            self.make(sleeper, deadline_ns)?;
            // Deadlines that have passed have no edge.
            let passed = (Clock::Monotonic.now_ns() - deadline_ns).max(0) / self.period_ns;
            add(&self.shared.skipped, passed.cast_unsigned());
            deadline_ns += (passed + 1) * self.period_ns;
        }
        Ok(())
    }

    /// Sets the line for half a period.
    fn make(&mut self, sleeper: &Sleeper, deadline_ns: i64) -> io::Result<()> {
        // Known before the interrupt can come.
        let is_queued = self.edges.push(Clock::Monotonic.now_ns()).is_ok();
        if !is_queued {
            // No interrupt came for so long that the queue is full: one of this edge would have no time.
            add(&self.shared.edges, 1);
            return Ok(());
        }
        self.output.set(true)?;
        add(&self.shared.edges, 1);
        // Also if the thread shall end.
        let _ = self.sleep_until(sleeper, deadline_ns + self.period_ns / 2)?;
        self.output.set(false)
    }

    /// Sleeps; false if the thread shall end.
    fn sleep_until(&self, sleeper: &Sleeper, deadline_ns: i64) -> io::Result<bool> {
        while !self.shared.switch.has_ended.load(Relaxed) {
            let until_ns = deadline_ns.min(Clock::Monotonic.now_ns() + CHECK_NS);
            sleeper.sleep_until(until_ns)?;
            if until_ns == deadline_ns {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A line that takes long to become inactive, as behind a slow bus.
    struct Slow;

    impl Drive for Slow {
        fn set(&mut self, is_active: bool) -> io::Result<()> {
            if !is_active {
                std::thread::sleep(Duration::from_millis(25));
            }
            Ok(())
        }
    }

    #[test]
    fn edges_whose_time_has_passed_are_counted() {
        let settings = DriverSettings { cpu: None, policy: Policy::Other, period_ns: 5_000_000 };
        let (mut driver, _edges) = Driver::create(Slow, settings).unwrap();
        driver.switch().begin();
        std::thread::sleep(Duration::from_millis(300));
        driver.stop();
        let (edges, skipped) = (driver.edges(), driver.skipped());
        // An edge takes 5 periods and a half.
        assert!(edges > 1 && skipped >= 4 * (edges - 1), "{edges} edges, {skipped} skipped");
    }
}
