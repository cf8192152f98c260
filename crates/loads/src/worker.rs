//! The child's side: threads that are pinned and counted, until standard input closes.

use std::{
    fs, io,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use machine::CpuList;
use record::visible;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, set_parent_process_death_signal},
    time::{ClockId, clock_gettime},
};
use sys::sched::{Policy, affinity, set_affinity, set_policy};

use crate::{
    LoadError, LoadSpec,
    kinds::{Job, Plan},
    meter::{Count, Meter},
    protocol::{Line, Proof, Ready},
};

/// Time between two lines of proof.
const PROOF_EVERY: Duration = Duration::from_secs(1);

/// Runs one load on `cpus` until standard input closes, and reports to standard output in lines of JSON.
///
/// The process is killed when the thread that started it ends. Only the process that [`crate::Running`] starts may call
/// this function.
///
/// # Errors
/// [`LoadError`] if the load cannot start or go on. It is also written to standard output, as `{"error": "..."}`.
pub fn worker(spec: &LoadSpec, cpus: &CpuList) -> Result<(), LoadError> {
    let result = run(spec, cpus);
    if let Err(error) = &result {
        say(&Line::Failed { error: error.to_string() });
    }
    result
}

fn run(spec: &LoadSpec, cpus: &CpuList) -> Result<(), LoadError> {
    let name = spec.load.name();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(LoadError::kernel(name, "the kill signal at the end of its parent"))?;
    // The starting thread may be a real-time one. Loads are ordinary threads unless they set a policy themselves.
    set_policy(Policy::Other).map_err(LoadError::kernel(name, "the ordinary policy"))?;
    pin(cpus)?;
    // The name of its threads in the kernel's trace. A failure is harmless, as for the next file.
    let _ = fs::write("/proc/self/comm", format!("load/{name}"));
    // If memory runs out, the kernel must kill a load first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");

    let Plan { unit, note, jobs } = spec.load.plan(cpus)?;
    let threads = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
    let running = Threads::start(jobs)?;
    say(&Line::Ready(Ready { ready: true, threads, unit, note }));
    let mut longest_pause = Duration::ZERO;
    loop {
        let began = Instant::now();
        let closed = input_closed_within(PROOF_EVERY);
        longest_pause = longest_pause.max(began.elapsed().saturating_sub(PROOF_EVERY));
        if closed || running.one_has_ended() {
            break;
        }
        say(&Line::Proof(proof(running.operations(), longest_pause)));
    }
    let counts = running.stop();
    say(&Line::Proof(proof(counts.operations, longest_pause)));
    counts.failure.map_or(Ok(()), Err)
}

/// The threads of a load.
struct Threads {
    stop: Arc<AtomicBool>,
    counts: Vec<Arc<Count>>,
    threads: Vec<thread::JoinHandle<Result<(), LoadError>>>,
}

/// The operations of all threads, and the first failure.
struct Counts {
    operations: u64,
    failure: Option<LoadError>,
}

impl Threads {
    /// Starts every job on its CPUs; returns when each thread is there.
    fn start(jobs: Vec<Job>) -> Result<Self, LoadError> {
        let mut threads = Self { stop: Arc::default(), counts: Vec::new(), threads: Vec::new() };
        let (arrived, arrivals) = mpsc::channel();
        for Job { cpus, policy, work } in jobs {
            let done = Arc::<Count>::default();
            let meter = Meter { stop: Arc::clone(&threads.stop), done: Arc::clone(&done) };
            let arrived = arrived.clone();
            threads.counts.push(done);
            threads.threads.push(thread::spawn(move || {
                let placed = pin(&cpus).and_then(|()| take(policy));
                // The receiver waits for one message per thread.
                let _ = arrived.send(placed.is_ok());
                placed.and_then(|()| work(&meter))
            }));
        }
        let all_placed = arrivals.iter().take(threads.threads.len()).all(|placed| placed);
        if all_placed { Ok(threads) } else { Err(threads.stop().failure.unwrap_or_else(panicked)) }
    }

    fn operations(&self) -> u64 {
        self.counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum()
    }

    fn one_has_ended(&self) -> bool {
        self.threads.iter().any(thread::JoinHandle::is_finished)
    }

    fn stop(self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        let results = self.threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
        let failure = results.filter_map(Result::err).collect::<Vec<_>>().into_iter().next();
        let operations = self.counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum();
        Counts { operations, failure }
    }
}

fn proof(operations: u64, longest_pause: Duration) -> Proof {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Proof {
        operations,
        cpu_time_ns: used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs(),
        longest_pause_ns: u64::try_from(longest_pause.as_nanos()).unwrap_or(u64::MAX),
    }
}

fn panicked() -> LoadError {
    LoadError::Worker("a thread of the load panicked: please report it with the command line".to_owned())
}

/// Pins the calling thread to `cpus` and checks that the kernel did so.
fn pin(cpus: &CpuList) -> Result<(), LoadError> {
    let wanted: Vec<u32> = cpus.iter().collect();
    let refused = |reason: String| LoadError::Affinity { wanted: cpus.clone(), reason };
    set_affinity(&wanted).map_err(|error| refused(error.to_string()))?;
    let granted: CpuList = affinity().map_err(|error| refused(error.to_string()))?.into_iter().collect();
    if granted == *cpus { Ok(()) } else { Err(refused(format!("it granted {granted}"))) }
}

/// Gives the calling thread the policy of its work; it is an ordinary one already.
fn take(policy: Policy) -> Result<(), LoadError> {
    let refused = |error| LoadError::Worker(format!("the kernel refused the policy {policy}: {error}"));
    if policy == Policy::Other { Ok(()) } else { set_policy(policy).map_err(refused) }
}

/// Writes one line. Errors are ignored: if the reader is gone, standard input is closed and the worker ends.
fn say(line: &Line) {
    if let Ok(mut text) = serde_json::to_string(line) {
        text.push('\n');
        let mut out = visible::unfiltered_stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Waits up to `time` for standard input to close, and discards any input.
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
