//! The child's side: threads on their CPUs, counted, until standard input closes.

use std::{
    fs, io,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use machine::CpuList;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, set_parent_process_death_signal},
    time::{ClockId, clock_gettime},
};
use sys::sched::{Policy, affinity, set_affinity, set_policy};

use crate::{
    LoadError, LoadSpec,
    kinds::{Job, Plan, plan},
    protocol::{Line, Proof, Ready},
};

/// Time between two lines of proof.
const PROOF_EVERY: Duration = Duration::from_secs(1);

/// Runs one load on `cpus` until standard input closes; writes what it does to standard output, a JSON document a line.
///
/// It dies with the thread that started it. Meant for the process that [`crate::Running`] starts, and for no other.
///
/// # Errors
/// Whatever keeps the load from starting or going on. It was written to standard output too, as `{"error": "..."}`.
pub fn worker(spec: &LoadSpec, cpus: &CpuList) -> Result<(), LoadError> {
    let ended = run(spec, cpus);
    if let Err(error) = &ended {
        say(&Line::Failed { error: error.to_string() });
    }
    ended
}

fn run(spec: &LoadSpec, cpus: &CpuList) -> Result<(), LoadError> {
    let name = spec.load.name();
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(LoadError::kernel(name, "to die with its parent"))?;
    // The starter may be a real-time thread; a load is not, unless it asks to be.
    set_policy(Policy::Other).map_err(LoadError::kernel(name, "the ordinary policy"))?;
    pin(cpus)?;
    // When memory runs out, a load goes before anything else. Where that cannot be said, nothing is lost.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");

    let Plan { unit, note, jobs } = plan(&spec.load, cpus)?;
    let threads = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
    let crew = Crew::start(jobs)?;
    say(&Line::Ready(Ready { ready: true, threads, unit, note }));
    while !input_closed_within(PROOF_EVERY) && !crew.one_has_left() {
        say(&Line::Proof(crew.proof()));
    }
    let counts = crew.dismiss();
    say(&Line::Proof(counts.proof()));
    counts.failure.map_or(Ok(()), Err)
}

/// What a job's thread asks and tells.
pub(crate) struct Meter {
    stop: Arc<AtomicBool>,
    done: Arc<Count>,
}

/// On a cache line of its own: counting must not make threads wait for each other.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicU64);

impl Meter {
    /// One that nobody reads or stops.
    #[cfg(test)]
    pub(crate) fn idle() -> Self {
        Self { stop: Arc::default(), done: Arc::default() }
    }

    /// Whether to go on.
    pub(crate) fn running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Adds operations.
    pub(crate) fn add(&self, operations: u64) {
        self.done.0.fetch_add(operations, Ordering::Relaxed);
    }

    /// Sets the number of operations, where something else counts them.
    pub(crate) fn set(&self, operations: u64) {
        self.done.0.store(operations, Ordering::Relaxed);
    }

    /// Waits up to `time`, less when the work is to stop; whether to go on.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(20);
        let until = Instant::now() + time;
        while self.running() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(STEP));
        }
        false
    }
}

/// The threads at work.
struct Crew {
    stop: Arc<AtomicBool>,
    counts: Vec<Arc<Count>>,
    threads: Vec<thread::JoinHandle<Result<(), LoadError>>>,
}

/// What the threads did, and the first failure among them.
struct Counts {
    operations: u64,
    failure: Option<LoadError>,
}

impl Crew {
    /// Starts every job on its CPUs; returns when each is there.
    fn start(jobs: Vec<Job>) -> Result<Self, LoadError> {
        let mut crew = Self { stop: Arc::default(), counts: Vec::new(), threads: Vec::new() };
        let (arrived, arrivals) = mpsc::channel();
        for Job { cpus, work } in jobs {
            let done = Arc::<Count>::default();
            let meter = Meter { stop: Arc::clone(&crew.stop), done: Arc::clone(&done) };
            let arrived = arrived.clone();
            crew.counts.push(done);
            crew.threads.push(thread::spawn(move || {
                let placed = pin(&cpus);
                // The receiver waits for one message a thread.
                let _ = arrived.send(placed.is_ok());
                placed.and_then(|()| work(&meter))
            }));
        }
        let all_placed = arrivals.iter().take(crew.threads.len()).all(|placed| placed);
        if all_placed { Ok(crew) } else { Err(crew.dismiss().failure.unwrap_or_else(vanished)) }
    }

    fn proof(&self) -> Proof {
        proof(self.counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum())
    }

    fn one_has_left(&self) -> bool {
        self.threads.iter().any(thread::JoinHandle::is_finished)
    }

    fn dismiss(self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        let left = self.threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(vanished())));
        let failure = left.filter_map(Result::err).collect::<Vec<_>>().into_iter().next();
        Counts { operations: self.counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum(), failure }
    }
}

impl Counts {
    fn proof(&self) -> Proof {
        proof(self.operations)
    }
}

fn proof(operations: u64) -> Proof {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Proof { operations, cpu_time_ns: used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs() }
}

fn vanished() -> LoadError {
    LoadError::Worker("a thread of the load panicked: please report it with the command line".to_owned())
}

/// Puts the calling thread on `cpus` and makes sure that it is there.
fn pin(cpus: &CpuList) -> Result<(), LoadError> {
    let asked: Vec<u32> = cpus.iter().collect();
    let refused = |reason: String| LoadError::Affinity { asked: cpus.clone(), reason };
    set_affinity(&asked).map_err(|error| refused(error.to_string()))?;
    let granted: CpuList = affinity().map_err(|error| refused(error.to_string()))?.into_iter().collect();
    if granted == *cpus { Ok(()) } else { Err(refused(format!("it granted {granted}"))) }
}

/// Writes one line. Nobody may be reading any more; then the closed input ends the work.
fn say(line: &Line) {
    if let Ok(mut text) = serde_json::to_string(line) {
        text.push('\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Waits up to `time` for standard input to close; what is written there is read and dropped.
fn input_closed_within(time: Duration) -> bool {
    let stdin = io::stdin();
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return true };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => match rustix::io::read(&stdin, &mut [0u8; 256]) {
                Ok(0) => return true,
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return true,
            },
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}
