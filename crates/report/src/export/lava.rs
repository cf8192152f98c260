//! Test results for LAVA: first signals, as `lava-test-case` prints them, then the same as plain lines
//! (`ID RESULT MEASUREMENT UNITS`), as the scripts of Linaro's test-definitions read them.
//!
//! LAVA takes a result from a signal on the serial console. An id must contain neither white space nor `/`.

use std::fmt::Write;

use record::{Outcome, Record, Series, SeriesKind};

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
/// A series has no limit of its own. Its result is `pass` only if it was measured as requested and no verdict on the run
/// is other than PASS; otherwise it is `unknown`.
pub(super) fn lava(record: &Record) -> String {
    let run = case::run(record);
    let is_valid = if record.obstacle().is_none() { "pass" } else { "fail" };
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
    let is_measured = record.obstacle().is_none() && matches!(run.outcome, None | Some(Outcome::Pass));
    let word = if is_measured { "pass" } else { "unknown" };
    for (series, id) in record.series.iter().zip(series_ids(record)) {
        let Some(max_ns) = series.max_ns else { continue };
        let id = format!("punctual-{id}-max");
        all.push(TestResult { id, word, measurement: Some(us(max_ns)) });
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
    out
}

/// The times of the measuring threads, under the names that the test-definitions of Linaro and `KernelCI` give those of
/// cyclictest: `t0-max-latency` is that of the first thread.
///
/// As there, a time passes because it was measured, and the largest one unless it is above a limit: of a use with the
/// verdict FAIL (`fail`) or INCONCLUSIVE (`skip`). Unlike there, no time of a run with a problem passes.
fn as_cyclictest(record: &Record) -> Vec<TestResult> {
    let limit_ns = |outcome: Outcome| {
        let limits = record.uses.iter().filter(|a_use| a_use.outcome == outcome).map(|a_use| a_use.limit_ns);
        limits.min().unwrap_or(i64::MAX)
    };
    let (failed_ns, open_ns) = (limit_ns(Outcome::Fail), limit_ns(Outcome::Inconclusive));
    let has_problem = record.obstacle().is_some();
    let of_largest = |max_ns: i64| match max_ns {
        _ if has_problem => "unknown",
        _ if max_ns > failed_ns => "fail",
        _ if max_ns > open_ns => "skip",
        _ => "pass",
    };
    let measured = if has_problem { "unknown" } else { "pass" };
    let of_thread = |(thread, series): (usize, &Series)| {
        let times = [
            ("min", series.min_ns.map(|ns| (measured, us(ns)))),
            ("avg", series.mean_ns.map(|ns| (measured, ns / 1e3))),
            ("max", series.max_ns.map(|ns| (of_largest(ns), us(ns)))),
        ];
        times.into_iter().filter_map(move |(name, time)| {
            let (word, us) = time?;
            Some(TestResult { id: format!("t{thread}-{name}-latency"), word, measurement: Some(us) })
        })
    };
    let threads = record.series.iter().filter(|series| matches!(series.kind, SeriesKind::WakeUps));
    threads.enumerate().flat_map(of_thread).collect()
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
