//! Runs cyclictest.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, Result, bail, ensure};
use record::Histogram;
use serde::Deserialize;
use sys::child::Ended;

use crate::{
    run::run,
    scenario::{Length, Scenario},
};

/// Unit and range of cyclictest's histogram.
#[derive(Debug, Clone, Copy)]
pub enum Buckets {
    /// No histogram: only minimum, mean and maximum. The cheapest mode.
    None,
    /// Nanoseconds up to 1 ms, exact.
    Nanoseconds,
    /// Microseconds up to 100 ms, rounded down.
    Microseconds,
}

/// Results of one run.
#[derive(Debug)]
pub struct Seen {
    /// One sample per wake-up, ns. Samples above the range count at its end, except for the largest, which is exact.
    /// This can only make cyclictest look better.
    pub lateness: Histogram,
    /// Wake-ups.
    pub cycles: u64,
    /// Deadlines that it skipped without counting them.
    pub skipped: u64,
    /// Resource usage of the whole program.
    pub usage: Ended,
    /// Version of cyclictest.
    pub version: String,
}

/// The command for a scenario.
pub fn command(scenario: &Scenario, buckets: Buckets) -> Command {
    let mut command = Command::new("cyclictest");
    // cyclictest keeps the CPUs awake by default.
    command.args(["--quiet", "--threads=1", "--priority=90", "--mlockall"]);
    command.arg(format!("--affinity={}", scenario.cpu));
    command.arg(format!("--interval={}", scenario.period_us));
    if !scenario.others.is_empty() {
        // Otherwise its main thread would run on the measured CPU, which punctual's main thread does not.
        let others: Vec<String> = scenario.others.iter().map(u32::to_string).collect();
        command.arg(format!("--mainaffinity={}", others.join(",")));
    }
    match scenario.length {
        Length::Cycles(cycles) => command.arg(format!("--loops={cycles}")),
        Length::Seconds(seconds) => command.arg(format!("--duration={seconds}")),
    };
    if let Some(range) = buckets.range() {
        command.args([&format!("--histogram={range}"), "--histfile=/dev/null"]);
    }
    if matches!(buckets, Buckets::Nanoseconds) {
        command.arg("--nsecs");
    }
    command
}

/// Runs `scenario`.
pub fn measure(scenario: &Scenario, buckets: Buckets) -> Result<Seen> {
    let results = tempfile::NamedTempFile::new().context("cannot create a file for cyclictest's results")?;
    let mut command = command(scenario, buckets);
    command.arg(format!("--json={}", results.path().display()));
    let run = run(&mut command, &[0], "install it: sudo apt-get install rt-tests")?;
    let json = fs::read_to_string(results.path()).context("cannot read cyclictest's results")?;
    let Parsed { values, cycles, version } = parse(&json, buckets)?;
    let mut lateness = Histogram::default();
    values.iter().for_each(|&(late_ns, count)| lateness.add(late_ns, count));
    Ok(Seen { lateness, cycles, skipped: skipped(&values, scenario.period_us * 1000), usage: run.usage, version })
}

impl Buckets {
    /// Number of buckets.
    fn range(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Nanoseconds => Some(1_000_000),
            Self::Microseconds => Some(100_000),
        }
    }
}

/// The needed parts of cyclictest's JSON output.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(rename = "rt_test_version:")]
    version: String,
    resolution_in_ns: u8,
    thread: BTreeMap<String, Thread>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
    cycles: u64,
    max: i64,
}

#[derive(Debug, PartialEq)]
struct Parsed {
    /// Lateness, ns, and number of samples.
    values: Vec<(i64, u64)>,
    cycles: u64,
    version: String,
}

fn parse(json: &str, buckets: Buckets) -> Result<Parsed> {
    let Document { version, resolution_in_ns, thread } =
        serde_json::from_str(json).context("cannot read cyclictest's results")?;
    ensure!(thread.len() == 1, "cyclictest measured {} threads instead of one", thread.len());
    let Some(thread) = thread.into_values().next().filter(|thread| thread.cycles > 0) else {
        bail!("cyclictest measured no cycle");
    };
    let unit_ns = if resolution_in_ns == 1 { 1 } else { 1000 };
    let mut values = Vec::new();
    if let Some(range) = buckets.range() {
        for (value, &count) in &thread.histogram {
            let value: i64 =
                value.parse().with_context(|| format!("invalid bucket `{value}` in cyclictest's results"))?;
            values.push((value * unit_ns, count));
        }
        // The histogram omits samples above its range, but `cycles` counts them.
        let beyond = thread.cycles.saturating_sub(thread.histogram.values().sum());
        values.push((i64::from(range) * unit_ns, beyond.saturating_sub(1)));
        values.push((thread.max * unit_ns, beyond.min(1)));
        values.retain(|&(_, count)| count > 0);
    }
    Ok(Parsed { values, cycles: thread.cycles, version })
}

/// After a late wake-up, cyclictest advances its deadline by whole periods into the future without counting the skipped
/// ones.
fn skipped(values: &[(i64, u64)], period_ns: u64) -> u64 {
    values.iter().map(|&(late_ns, count)| late_ns.max(0).cast_unsigned() / period_ns * count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(resolution_in_ns: u8, histogram: &str, cycles: u64, max: i64) -> String {
        format!(
            r#"{{"file_version": 1, "cmdline:": "cyclictest -q", "rt_test_version:": "2.40", "return_code": 0,
            "sysinfo": {{"sysname": "Linux", "realtime": 0}}, "num_threads": 1, "resolution_in_ns": {resolution_in_ns},
            "thread": {{"0": {{"histogram": {{{histogram}}}, "cycles": {cycles}, "min": 3, "max": {max}, "avg": 5.20,
            "cpu": 1, "node": 0}}}}}}"#
        )
    }

    #[test]
    fn parses_nanoseconds() {
        let parsed = parse(&results(1, r#""340": 2, "900": 1"#, 3, 900), Buckets::Nanoseconds).unwrap();
        assert_eq!(parsed, Parsed { values: vec![(340, 2), (900, 1)], cycles: 3, version: "2.40".to_owned() });
    }

    #[test]
    fn adds_samples_above_the_range() {
        let parsed = parse(&results(0, r#""5": 7"#, 10, 250_000), Buckets::Microseconds).unwrap();
        assert_eq!(parsed.values, [(5_000, 7), (100_000_000, 2), (250_000_000, 1)]);
    }

    #[test]
    fn parses_results_without_a_histogram() {
        let json = results(0, "", 500, 80).replace(r#""histogram": {}, "#, "");
        let parsed = parse(&json, Buckets::None).unwrap();
        assert_eq!((parsed.values, parsed.cycles), (vec![], 500));
    }

    #[test]
    fn rejects_results_without_samples() {
        assert!(parse(&results(0, "", 0, 0), Buckets::None).is_err());
        assert!(parse("{}", Buckets::None).is_err());
        assert!(parse(&results(0, r#""five": 1"#, 1, 5), Buckets::Microseconds).is_err());
    }

    #[test]
    fn counts_each_whole_period_as_skipped() {
        assert_eq!(skipped(&[(19_999, 4), (20_000, 3), (59_999, 2)], 20_000), 3 + 2 * 2);
    }
}
