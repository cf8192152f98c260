//! Test results for LAVA: first signals, as `lava-test-case` prints them, then the same as plain lines
//! (`ID RESULT MEASUREMENT UNITS`), as the scripts of Linaro's test-definitions read them.
//!
//! LAVA takes a result from a signal on the serial console. An id must contain neither white space nor `/`.

use std::fmt::Write;

use record::{Outcome, Record, Series, SeriesKind, Tool};

use super::case::{self, Case, cases, identifier, series_ids};

/// A test result.
struct TestResult {
    id: String,
    word: &'static str,
    /// us.
    measurement: Option<f64>,
}

/// Writes a record: the run, its validity, each use, the largest time of each series, and the times of the measuring
/// threads under the names of cyclictest.
///
/// A largest time has the same result under both names. That of a series without such limits is `unknown`.
pub(super) fn lava(record: &Record) -> String {
    let run = case::run(record);
    let is_valid = match record.obstacle() {
        // Nobody knows this about a run of another tool.
        _ if record.published.is_some() => "unknown",
        None => "pass",
        Some(_) => "fail",
    };
    let mut all = vec![
        TestResult { id: "punctual-run".to_owned(), word: word(run.outcome), measurement: None },
        TestResult { id: "punctual-valid".to_owned(), word: is_valid, measurement: None },
    ];
    let of_use = |case: &Case| {
        let worst_ns = case.a_use?.worst_ns;
        let id = format!("punctual-{}", identifier(case.id));
        Some(TestResult { id, word: word(case.outcome), measurement: worst_ns.map(us) })
    };
    all.extend(cases(record).iter().filter_map(of_use));
    for (series, id) in record.series.iter().zip(series_ids(record)) {
        let Some(max_ns) = series.max_ns else { continue };
        let id = format!("punctual-{id}-max");
        all.push(TestResult { id, word: of_largest(record, series, max_ns), measurement: Some(us(max_ns)) });
    }
    all.extend(as_cyclictest(record));
    let mut out = String::new();
    for TestResult { id, word, measurement } in &all {
        let measured = measurement.map_or_else(String::new, |us| format!(" UNITS=us MEASUREMENT={us:.3}"));
        // Writing to a string does not fail.
        let _ = writeln!(out, "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={id} RESULT={word}{measured}>");
    }
    for TestResult { id, word, measurement } in &all {
        let measured = measurement.map_or_else(String::new, |us| format!(" {us:.3} us"));
        let _ = writeln!(out, "{id} {word}{measured}");
    }
    out + &measured_by(record)
}

/// A comment with the tool that measured, the probe and the host. No word of it can be read as a result.
fn measured_by(record: &Record) -> String {
    let Tool { name, version, .. } = &record.tool;
    let [name, version, probe, host] = [name, version, &*record.scenario.probe, case::host(record)].map(identifier);
    format!("# measured-by={name} version={version} probe={probe} host={host}\n")
}

/// The times of the measuring threads, under the names that the test-definitions of Linaro and `KernelCI` give those of
/// cyclictest: `t0-max-latency` is that of the first thread.
///
/// As there, the smallest and the mean time pass because they were measured. Unlike there, no time of a run with a problem
/// passes.
fn as_cyclictest(record: &Record) -> Vec<TestResult> {
    let measured = if record.obstacle().is_some() { "unknown" } else { "pass" };
    let of_thread = |(thread, series): (usize, &Series)| {
        let times = [
            ("min", series.min_ns.map(|ns| (measured, us(ns)))),
            ("avg", series.mean_ns.map(|ns| (measured, ns / 1e3))),
            ("max", series.max_ns.map(|ns| (of_largest(record, series, ns), us(ns)))),
        ];
        times.into_iter().filter_map(move |(name, time)| {
            let (word, us) = time?;
            Some(TestResult { id: format!("t{thread}-{name}-latency"), word, measurement: Some(us) })
        })
    };
    let threads = record.series.iter().filter(|series| is_judged(series));
    threads.enumerate().flat_map(of_thread).collect()
}

/// True for a series of wake-ups: the limits of the uses apply to its times.
fn is_judged(series: &Series) -> bool {
    matches!(series.kind, SeriesKind::WakeUps)
}

/// The result of the largest time of a series: `fail` above the limit of a use with the verdict FAIL, `skip` above that of
/// one with INCONCLUSIVE. `unknown` if it was not judged, or if the run has a problem.
fn of_largest(record: &Record, series: &Series, max_ns: i64) -> &'static str {
    let is_above = |outcome| case::uses(record).any(|a_use| a_use.outcome == outcome && max_ns > a_use.limit_ns);
    match max_ns {
        _ if record.obstacle().is_some() || case::uses(record).next().is_none() || !is_judged(series) => "unknown",
        _ if is_above(Outcome::Fail) => "fail",
        _ if is_above(Outcome::Inconclusive) => "skip",
        _ => "pass",
    }
}

/// The result of an outcome. INCONCLUSIVE and nothing judged are `skip`.
fn word(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Pass) => "pass",
        Some(Outcome::Fail) => "fail",
        Some(Outcome::Inconclusive) | None => "skip",
        Some(Outcome::Invalid) => "unknown",
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}
