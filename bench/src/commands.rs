//! Compares whole commands as a user types them: punctual with its default options, which find culprits and write a
//! record, and cyclictest without a histogram. Both measure all CPUs at 1 ms and hold them awake, which is
//! cyclictest's default. Otherwise the kernel counts a part of each wake-up from idle as CPU time of the woken thread.
//!
//! cyclictest runs with `--distance=0`. With its default, each thread's period is 500 us longer than that of the one
//! before: on two CPUs, it would wake a sixth less often than punctual.

use std::process::Command;

use anyhow::{Context, Result};
use sys::clock::Clock;

use crate::{
    punctual::Punctual,
    rounds::{Pair, alternate},
    row::{Row, Unit},
    run::run,
};

/// Upper limit of punctual's CPU time in a run of 2 s, compared with cyclictest's.
const SHORT_LIMIT: f64 = 1.5;
/// The same in a run of 60 s.
const LONG_LIMIT: f64 = 1.2;
/// Upper limit of the time from start to first sample and from end to exit together, ns.
const AROUND_LIMIT_NS: f64 = 200e6;

/// Durations of the runs, s.
const SHORT_S: u64 = 2;
const LONG_S: u64 = 60;

/// Approximate duration, s.
pub fn seconds((short, long): (usize, usize)) -> u64 {
    short as u64 * 3 * (SHORT_S + 1) + long as u64 * 2 * (LONG_S + 1)
}

/// CPU time of whole commands, and the time around the measurement; `rounds` of short and of long runs.
pub fn measure(punctual: &Punctual, rounds: (usize, usize)) -> Result<Vec<Row>> {
    let mut around_ns = Vec::new();
    let pairs = alternate(
        rounds.0,
        || {
            let run = own(punctual, SHORT_S, "auto")?;
            around_ns.push(run.wall_ns - SHORT_S as f64 * 1e9);
            Ok(run.cpu_ns)
        },
        || peer(SHORT_S),
    )?;
    let without = alternate(rounds.0, || Ok(own(punctual, SHORT_S, "off")?.cpu_ns), || peer(SHORT_S))?;
    let long = alternate(rounds.1, || Ok(own(punctual, LONG_S, "auto")?.cpu_ns), || peer(LONG_S))?;
    let row = |name, pairs: Vec<Pair<f64, f64>>, limit| Row::compared(name, Unit::Time, pairs).with_target(limit);
    let mut rows = vec![
        row("whole command of 2 s: CPU time", pairs, SHORT_LIMIT),
        row("whole command of 2 s, --blame=off: CPU time", without, SHORT_LIMIT),
        Row::alone("whole command of 2 s: time before and after", Unit::Time, around_ns, AROUND_LIMIT_NS),
    ];
    if !long.is_empty() {
        rows.push(row("whole command of 60 s: CPU time", long, LONG_LIMIT));
    }
    Ok(rows)
}

struct Cost {
    cpu_ns: f64,
    wall_ns: f64,
}

fn own(punctual: &Punctual, duration_s: u64, blame: &str) -> Result<Cost> {
    let folder = tempfile::tempdir().context("cannot create a folder for the record")?;
    let path = folder.path().join("run");
    let (duration, blame) = (format!("{duration_s}s"), format!("--blame={blame}"));
    let begun_ns = Clock::Monotonic.now_ns();
    let run = punctual.run(&[
        "measure",
        "timer",
        "--duration",
        &duration,
        "--period",
        "1ms",
        "--hold-cpu-awake",
        &blame,
        "--record",
        &path.to_string_lossy(),
    ])?;
    Ok(Cost { cpu_ns: run.usage.cpu_time.as_nanos() as f64, wall_ns: (Clock::Monotonic.now_ns() - begun_ns) as f64 })
}

fn peer(duration_s: u64) -> Result<f64> {
    let mut command = Command::new("cyclictest");
    command.args(["--quiet", "--smp", "--distance=0", "--mlockall", "--priority=90", "--interval=1000"]);
    command.arg(format!("--duration={duration_s}"));
    let run = run(&mut command, &[0], "install it: sudo apt-get install rt-tests")?;
    Ok(run.usage.cpu_time.as_nanos() as f64)
}
