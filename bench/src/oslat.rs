//! Two programs that never sleep, punctual's noise probe and oslat: how far apart their readings of the clock lie, which is
//! the shortest gap that each can tell.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::{
    punctual::Punctual,
    rounds::{Pair, alternate},
    row::{Row, Unit},
    run::run,
    scenario::Scenario,
};

/// Seconds a run; oslat knows no shorter unit.
const SECONDS: u64 = 1;

/// About how long it takes, s.
pub fn seconds(rounds: usize) -> u64 {
    rounds as u64 * 3 * SECONDS
}

/// Time a reading, everything in between included, of both in turn on one CPU at the lowest real-time priority.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<Row> {
    let pairs = alternate(rounds, || ours(punctual, scenario), || theirs(scenario))?;
    let pairs = pairs.iter().map(|pair| Pair { ours: pair.ours, theirs: pair.theirs });
    Ok(Row::compared("noise: time a reading, beside oslat", Unit::Nanoseconds, pairs).with_target(1.0))
}

fn ours(punctual: &Punctual, scenario: &Scenario) -> Result<f64> {
    let seen = punctual.noise(scenario.cpu, SECONDS)?;
    ensure!(seen.iterations > 0, "punctual looked at nothing");
    Ok(seen.observed_ns as f64 / seen.iterations as f64)
}

fn theirs(scenario: &Scenario) -> Result<f64> {
    let results = tempfile::NamedTempFile::new().context("cannot make a file for oslat's results")?;
    let mut command = Command::new("oslat");
    let main = scenario.others.first().copied().unwrap_or(scenario.cpu);
    command.args(["--cpu-list", &scenario.cpu.to_string(), "--cpu-main-thread", &main.to_string()]);
    command.args(["--rtprio", "1", "--quiet", "--duration", &SECONDS.to_string()]);
    command.arg(format!("--json={}", results.path().display()));
    run(&mut command, &[0], "install it: sudo apt-get install rt-tests")?;
    reading_ns(&fs::read_to_string(results.path()).context("cannot read oslat's results")?)
}

/// The parts of oslat's JSON that are of use here.
#[derive(Debug, Deserialize)]
struct Document {
    thread: BTreeMap<String, Thread>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    /// Seconds.
    duration: f64,
    /// Readings by the time since the one before, us.
    histogram: BTreeMap<String, u64>,
}

fn reading_ns(json: &str) -> Result<f64> {
    let document: Document = serde_json::from_str(json).context("oslat's results have another form")?;
    let thread = document.thread.values().next().context("oslat measured no CPU")?;
    let readings: u64 = thread.histogram.values().sum();
    ensure!(readings > 0, "oslat looked at nothing");
    Ok(thread.duration * 1e9 / readings as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_is_in_a_bucket() {
        let json = r#"{"num_threads": 1, "thread": {"0": {"cpu": 1, "freq": 2445, "min": 1, "avg": 1.0, "max": 54113,
            "duration": 1.003, "histogram": {"1": 33000000, "2": 60, "32": 194}}}}"#;
        let ns = reading_ns(json).unwrap();
        assert!((30.39..30.40).contains(&ns), "{ns}");
        assert!(reading_ns(r#"{"thread": {}}"#).is_err());
    }
}
