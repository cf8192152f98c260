//! Cost of many threads: 64 on every CPU, every 1 ms, compared with the same number of cyclictest's threads. And the
//! cost of a record of 64 series with culprits, as a machine with 64 CPUs has it.
//!
//! Both programs use their default settings. The deadlines of punctual's threads coincide, so one timer interrupt wakes
//! all threads of a CPU. cyclictest's threads start one after the other, and each interrupt wakes one or a few of them.
//! If punctual's deadlines are spread over the period (`--offset 15us`), its threads cost more than cyclictest's.

use std::{io::Write, process::Command};

use anyhow::{Context, Result, ensure};
use record::Record;

use crate::{
    punctual::Punctual,
    rounds::alternate,
    row::{Row, Unit},
    run::run,
    scenario::PERIOD_US,
};

/// Remedy for a missing program.
const BUILD: &str = "build it with: make bench";
const THREADS: u64 = 64;
const SECONDS: u64 = 2;
/// Upper limit for the size of a record of 64 series.
const RECORD_LIMIT_BYTES: f64 = 3.46e6;
/// Upper limit for the CPU time to show it.
const SHOW_LIMIT_NS: f64 = 0.3e9;

/// Approximate duration of `rounds`, s.
pub fn seconds(rounds: usize) -> u64 {
    rounds as u64 * (2 * SECONDS + 1)
}

/// Measures the row: CPU time of the whole program divided by the cycles of all threads.
pub fn measure(punctual: &Punctual, rounds: usize) -> Result<Row> {
    let pairs = alternate(rounds, || own(punctual), peer)?;
    Ok(Row::compared("CPU time a cycle, 64 threads", Unit::Time, pairs).with_target(1.0))
}

/// Measures the size of a record of 64 series, and the CPU time of `show`.
pub fn measure_record(punctual: &Punctual, rounds: usize) -> Result<[Row; 2]> {
    let run = run(&mut punctual.with_blame().threads(THREADS, PERIOD_US, SECONDS), &[0, 2, 3, 4], BUILD)?;
    let mut file = tempfile::NamedTempFile::new().context("cannot create a file for a record")?;
    file.write_all(run.stdout.as_bytes()).context("cannot write a record")?;
    let path = file.path().to_string_lossy();
    let show = |_| Ok(punctual.run(&["show", &path])?.usage.cpu_time.as_nanos() as f64);
    let shown = (0..rounds).map(show).collect::<Result<Vec<_>>>()?;
    Ok([
        Row::alone("record of 64 series: size", Unit::Bytes, [run.stdout.len() as f64], RECORD_LIMIT_BYTES),
        Row::alone("record of 64 series: show", Unit::Time, shown, SHOW_LIMIT_NS),
    ])
}

fn own(punctual: &Punctual) -> Result<f64> {
    let run = run(&mut punctual.threads(THREADS, PERIOD_US, SECONDS), &[0, 2, 3, 4], BUILD)?;
    let record: Record = serde_json::from_str(&run.stdout).context("punctual printed no record")?;
    let as_requested = |series: &record::Series| series.granted.policy == "fifo:90" && series.granted.memory_locked;
    ensure!(
        record.series.len() as u64 == THREADS && record.series.iter().all(as_requested),
        "punctual's threads ran without the requested rights; run as root: make bench"
    );
    let cycles: u64 = record.series.iter().map(|series| series.samples).sum();
    Ok(run.usage.cpu_time.as_nanos() as f64 / cycles as f64)
}

/// cyclictest spreads its threads over the CPUs and keeps the CPUs awake by default. Without a distance, all threads
/// have the same interval.
fn peer() -> Result<f64> {
    let results = tempfile::NamedTempFile::new().context("cannot create a file for cyclictest's results")?;
    let mut command = Command::new("cyclictest");
    command.args(["--quiet", "--mlockall", "--affinity", "--distance=0", "--priority=90", "--policy=fifo"]);
    command.args([format!("--threads={THREADS}"), format!("--interval={PERIOD_US}"), format!("--duration={SECONDS}s")]);
    command.arg(format!("--json={}", results.path().display()));
    let run = run(&mut command, &[0], "install it: sudo apt-get install rt-tests")?;
    let json = std::fs::read_to_string(results.path()).context("cannot read cyclictest's results")?;
    Ok(run.usage.cpu_time.as_nanos() as f64 / cycles(&json)? as f64)
}

/// Sums the cycles of all threads in cyclictest's JSON output.
fn cycles(json: &str) -> Result<u64> {
    let document: serde_json::Value = serde_json::from_str(json).context("cannot read cyclictest's results")?;
    let threads = document["thread"].as_object().context("cyclictest's results have no threads")?;
    ensure!(threads.len() as u64 == THREADS, "cyclictest measured {} threads", threads.len());
    Ok(threads.values().filter_map(|thread| thread["cycles"].as_u64()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_cycles_of_all_threads() {
        let threads: Vec<String> = (0..THREADS).map(|n| format!(r#""{n}": {{"cycles": 10}}"#)).collect();
        assert_eq!(cycles(&format!(r#"{{"thread": {{{}}}}}"#, threads.join(","))).unwrap(), 640);
        assert!(cycles(r#"{"thread": {"0": {"cycles": 10}}}"#).is_err());
        assert!(cycles("{}").is_err());
    }
}
