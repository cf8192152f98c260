//! Compares punctual's noise probe with oslat, both of which never sleep: the time between two readings of the clock,
//! which is the shortest gap that each can detect.

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

/// Duration of a run, s: oslat accepts only whole seconds.
const SECONDS: u64 = 1;

/// Approximate duration, s.
pub fn seconds(rounds: usize) -> u64 {
    rounds as u64 * 3 * SECONDS
}

/// Time per reading of the clock, with everything in between. Both run alternately on one CPU at the lowest real-time
/// priority.
pub fn measure(punctual: &Punctual, scenario: &Scenario, rounds: usize) -> Result<Row> {
    let pairs = alternate(rounds, || own(punctual, scenario), || peer(scenario))?;
    let pairs = pairs.iter().map(|pair| Pair { own: pair.own, peer: pair.peer });
    Ok(Row::compared("noise: time a reading, vs oslat", Unit::Nanoseconds, pairs).with_target(1.0))
}

fn own(punctual: &Punctual, scenario: &Scenario) -> Result<f64> {
    let seen = punctual.noise(scenario.cpu, SECONDS)?;
    ensure!(seen.iterations > 0, "punctual took no readings");
    Ok(seen.observed_ns as f64 / seen.iterations as f64)
}

fn peer(scenario: &Scenario) -> Result<f64> {
    let results = tempfile::NamedTempFile::new().context("cannot create a file for oslat's results")?;
    let mut command = Command::new("oslat");
    let main = scenario.others.first().copied().unwrap_or(scenario.cpu);
    command.args(["--cpu-list", &scenario.cpu.to_string(), "--cpu-main-thread", &main.to_string()]);
    command.args(["--rtprio", "1", "--quiet", "--duration", &SECONDS.to_string()]);
    command.arg(format!("--json={}", results.path().display()));
    run(&mut command, &[0], "install it: sudo apt-get install rt-tests")?;
    reading_ns(&fs::read_to_string(results.path()).context("cannot read oslat's results")?)
}

/// The needed parts of oslat's JSON output.
#[derive(Debug, Deserialize)]
struct Document {
    thread: BTreeMap<String, Thread>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    /// Seconds.
    duration: f64,
    /// Number of readings by the time since the previous one, us.
    histogram: BTreeMap<String, u64>,
}

fn reading_ns(json: &str) -> Result<f64> {
    let document: Document = serde_json::from_str(json).context("cannot parse oslat's results")?;
    let thread = document.thread.values().next().context("oslat measured no CPU")?;
    let readings: u64 = thread.histogram.values().sum();
    ensure!(readings > 0, "oslat took no readings");
    Ok(thread.duration * 1e9 / readings as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_readings_of_all_buckets() {
        let json = r#"{"num_threads": 1, "thread": {"0": {"cpu": 1, "freq": 2445, "min": 1, "avg": 1.0, "max": 54113,
            "duration": 1.003, "histogram": {"1": 33000000, "2": 60, "32": 194}}}}"#;
        let ns = reading_ns(json).unwrap();
        assert!((30.39..30.40).contains(&ns), "{ns}");
        assert!(reading_ns(r#"{"thread": {}}"#).is_err());
    }
}
