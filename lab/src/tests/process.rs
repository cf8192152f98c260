//! `punctual measure process` measures a program whose threads have known behaviour.

use std::{
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use record::{Overruns, ProcessThread};
use sys::{
    clock::{Clock, Sleeper, Wait},
    sched::{self, Policy},
    usage::thread_cpu_time_ns,
};

use crate::inside::{expect, median, punctual, recorded};

const PERIOD_NS: i64 = 10_000_000;
const WORK_NS: u64 = 2_000_000;
/// Number of deadlines of the cyclic thread.
const DEADLINES: i64 = 100;
/// At these deadlines the thread works for more than a period.
const TOO_LONG: [i64; 3] = [20, 50, 80];
const TOO_LONG_NS: u64 = 12_000_000;
/// After these deadlines the thread skips two.
const SKIPS: [i64; 2] = [30, 60];
/// At this deadline another thread takes the CPU for so long that the cycle ends too late.
const BLOCKED: i64 = 40;
const BLOCKED_NS: i64 = 9_000_000;

/// Run times, intervals and preemptions within 5 % plus 10 us; cycles and missed deadlines exactly.
pub fn measures_known_times() -> Result<()> {
    let (go, start) = mpsc::channel();
    let cyclic = thread::Builder::new().name("cyclic".to_owned()).spawn(move || cyclic(&start.recv()?))?;
    let pid = std::process::id();
    let options = format!("{pid} --thread cyclic --period 10ms --threshold 1ms --duration 1500ms");
    let run =
        thread::spawn(move || expect(0, &punctual(&format!("measure process --quiet --record process {options}"))?));
    let begin = Instant::now();
    while !Path::new("process.punctual.json").exists() {
        ensure!(begin.elapsed() < Duration::from_secs(20), "the run did not start");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(50));
    let first_ns = Clock::Monotonic.now_ns() + PERIOD_NS;
    let blocker = thread::Builder::new().name("blocker".to_owned()).spawn(move || block(first_ns))?;
    go.send(first_ns)?;
    let works = cyclic.join().ok().context("the cyclic thread panicked")??;
    let blocked_ns = blocker.join().ok().context("the blocker panicked")??;
    run.join().ok().context("the run panicked")??;

    let record = recorded("process")?;
    let [series] = &record.series[..] else { anyhow::bail!("{} threads", record.series.len()) };
    let thread = series.kind.process().context("no process data")?;
    ensure!(series.role == "cyclic" && series.granted.policy == "fifo:80", "{} {}", series.role, series.granted.policy);
    check_deadlines(thread, series.missed)?;

    let usual = thread.run_time.percentile(50.0).context("no cycle")?;
    close("run time of a cycle", usual, median(&works))?;
    let all: i64 = works.iter().sum();
    close("total run time", thread.times.running_ns.cast_signed(), all)?;
    close("interval", thread.interval.percentile(50.0).unwrap_or(0), PERIOD_NS)?;
    let longest = thread.longest.as_ref().context("no longest cycle")?;
    close("longest cycle", longest.times.running_ns.cast_signed(), TOO_LONG_NS.cast_signed())?;
    let by = thread.preempted_by.iter().find(|by| by.comm == "blocker").context("the blocker is not named")?;
    ensure!(by.count == 1, "the blocker took the CPU {} times", by.count);
    close("preemption", by.waited_ns.cast_signed(), blocked_ns)?;
    Ok(())
}

/// Checks the number of cycles and of missed deadlines.
fn check_deadlines(thread: &ProcessThread, missed: u64) -> Result<()> {
    // A cycle that ends too late continues with the next deadline in the future.
    let skipped = (TOO_LONG.len() + 2 * SKIPS.len() + 1) as u64;
    // The wait for the start signal also counts as a cycle. The last one is only the end of the thread.
    let cycles = DEADLINES as u64 - skipped;
    ensure!(thread.cycles == cycles, "{} cycles instead of {cycles}", thread.cycles);
    ensure!(thread.skipped == skipped, "{} skipped cycles instead of {skipped}", thread.skipped);
    let by = Overruns { by_work: TOO_LONG.len() as u64, by_waiting: 1, ..Overruns::default() };
    ensure!(thread.overrun_by == Some(by), "{:?} instead of {by:?}", thread.overrun_by);
    ensure!(missed == skipped + 4, "{missed} missed deadlines instead of {}", skipped + 4);
    ensure!(thread.cycles_cut == 0 && thread.times.unknown_ns == 0, "{thread:?}");
    Ok(())
}

fn close(name: &str, measured_ns: i64, true_ns: i64) -> Result<()> {
    let error_ns = (measured_ns - true_ns).abs();
    ensure!(error_ns <= true_ns / 20 + 10_000, "{name} is {true_ns} ns, but was measured as {measured_ns} ns");
    Ok(())
}

/// Works at its deadlines, from the first one on; returns the CPU time of each cycle, ns.
fn cyclic(first_ns: &i64) -> Result<Vec<i64>> {
    become_realtime(80)?;
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
    let mut works = Vec::with_capacity(usize::try_from(DEADLINES)?);
    let mut number = 0;
    while number < DEADLINES {
        sleeper.sleep_until(first_ns + number * PERIOD_NS)?;
        let begun_ns = thread_cpu_time_ns();
        let work_ns = if TOO_LONG.contains(&number) { TOO_LONG_NS } else { WORK_NS };
        while thread_cpu_time_ns() < begun_ns + work_ns {}
        works.push((thread_cpu_time_ns() - begun_ns).cast_signed());
        let next = (Clock::Monotonic.now_ns() - first_ns) / PERIOD_NS + 1;
        number = if SKIPS.contains(&number) { next + 2 } else { next };
    }
    Ok(works)
}

/// Takes the CPU once during a cycle; returns for how long, ns.
fn block(first_ns: i64) -> Result<i64> {
    become_realtime(90)?;
    let sleeper = Sleeper::new(Clock::Monotonic, Wait::Nanosleep)?;
    sleeper.sleep_until(first_ns + BLOCKED * PERIOD_NS + PERIOD_NS / 20)?;
    let begun_ns = Clock::Monotonic.now_ns();
    while Clock::Monotonic.now_ns() < begun_ns + BLOCKED_NS {}
    Ok(Clock::Monotonic.now_ns() - begun_ns)
}

fn become_realtime(priority: u8) -> Result<()> {
    sched::set_affinity(&[0]).context("cannot pin a thread")?;
    sched::set_policy(Policy::Fifo(priority)).context("cannot make a thread real-time")
}
