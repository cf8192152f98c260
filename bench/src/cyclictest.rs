//! One run of cyclictest.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, Result, bail, ensure};
use record::Histogram;
use serde::Deserialize;
use sys::child::Ended;

use crate::{
    run::run,
    scenario::{Length, Scenario},
};

/// What cyclictest counts lateness in.
#[derive(Debug, Clone, Copy)]
pub enum Buckets {
    /// None: least, mean and largest alone. The cheapest form.
    None,
    /// Nanoseconds up to 1 ms, exactly.
    Nanoseconds,
    /// Microseconds up to 100 ms, cut off below.
    Microseconds,
}

/// What one run saw, and what it cost.
#[derive(Debug)]
pub struct Seen {
    /// One entry a wake-up, ns. Those beyond the buckets stand at the last one's end, except for the largest, which is
    /// exact: cyclictest looks better for it, never worse.
    pub lateness: Histogram,
    /// Wake-ups.
    pub cycles: u64,
    /// Deadlines that it went over without a word.
    pub skipped: u64,
    /// The cost of the whole program.
    pub usage: Ended,
    /// Its version.
    pub version: String,
}

/// The command of a scenario.
pub fn command(scenario: &Scenario, buckets: Buckets) -> Command {
    let mut command = Command::new("cyclictest");
    // It holds the CPUs awake without being asked.
    command.args(["--quiet", "--threads=1", "--priority=90", "--mlockall"]);
    command.arg(format!("--affinity={}", scenario.cpu));
    command.arg(format!("--interval={}", scenario.period_us));
    if !scenario.others.is_empty() {
        // Else its main thread shares the measured CPU, which punctual's does not.
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

/// Measures `scenario`.
pub fn measure(scenario: &Scenario, buckets: Buckets) -> Result<Seen> {
    let results = tempfile::NamedTempFile::new().context("cannot make a file for cyclictest's results")?;
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
    /// How many there are.
    fn range(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Nanoseconds => Some(1_000_000),
            Self::Microseconds => Some(100_000),
        }
    }
}

/// The parts of cyclictest's JSON that are of use here; the keys are its own.
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
    /// Lateness, ns, and how often it was seen.
    values: Vec<(i64, u64)>,
    cycles: u64,
    version: String,
}

fn parse(json: &str, buckets: Buckets) -> Result<Parsed> {
    let Document { version, resolution_in_ns, thread } =
        serde_json::from_str(json).context("cannot read cyclictest's results")?;
    ensure!(thread.len() == 1, "cyclictest measured {} threads instead of one", thread.len());
    let Some(thread) = thread.into_values().next().filter(|thread| thread.cycles > 0) else {
        bail!("cyclictest measured nothing");
    };
    let unit_ns = if resolution_in_ns == 1 { 1 } else { 1000 };
    let mut values = Vec::new();
    if let Some(range) = buckets.range() {
        for (value, &count) in &thread.histogram {
            let value: i64 = value.parse().with_context(|| format!("cyclictest names a bucket `{value}`"))?;
            values.push((value * unit_ns, count));
        }
        // It does not count what lies beyond, but the cycles are all there.
        let beyond = thread.cycles.saturating_sub(thread.histogram.values().sum());
        values.push((range as i64 * unit_ns, beyond.saturating_sub(1)));
        values.push((thread.max * unit_ns, beyond.min(1)));
        values.retain(|&(_, count)| count > 0);
    }
    Ok(Parsed { values, cycles: thread.cycles, version })
}

/// After a late wake-up cyclictest adds periods to its next deadline until that lies ahead, and counts none of them.
fn skipped(values: &[(i64, u64)], period_ns: u64) -> u64 {
    values.iter().map(|&(late_ns, count)| late_ns.max(0) as u64 / period_ns * count).sum()
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
    fn nanoseconds() {
        let parsed = parse(&results(1, r#""340": 2, "900": 1"#, 3, 900), Buckets::Nanoseconds).unwrap();
        assert_eq!(parsed, Parsed { values: vec![(340, 2), (900, 1)], cycles: 3, version: "2.40".to_owned() });
    }

    #[test]
    fn what_overflowed_is_there_and_the_largest_is_exact() {
        let parsed = parse(&results(0, r#""5": 7"#, 10, 250_000), Buckets::Microseconds).unwrap();
        assert_eq!(parsed.values, [(5_000, 7), (100_000_000, 2), (250_000_000, 1)]);
    }

    #[test]
    fn without_buckets_there_are_cycles_alone() {
        let json = results(0, "", 500, 80).replace(r#""histogram": {}, "#, "");
        let parsed = parse(&json, Buckets::None).unwrap();
        assert_eq!((parsed.values, parsed.cycles), (vec![], 500));
    }

    #[test]
    fn nothing_measured_is_an_error() {
        assert!(parse(&results(0, "", 0, 0), Buckets::None).is_err());
        assert!(parse("{}", Buckets::None).is_err());
        assert!(parse(&results(0, r#""five": 1"#, 1, 5), Buckets::Microseconds).is_err());
    }

    #[test]
    fn every_whole_period_is_a_deadline_skipped() {
        assert_eq!(skipped(&[(19_999, 4), (20_000, 3), (59_999, 2)], 20_000), 3 + 2 * 2);
    }
}
