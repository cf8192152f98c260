//! Test results for LAVA: first signals, as `lava-test-case` prints them, then the same as plain lines
//! (`ID RESULT MEASUREMENT UNITS`), as the scripts of Linaro's test-definitions read them.
//!
//! LAVA takes a result from a signal on the serial console. An id must contain neither white space nor `/`.

use std::fmt::Write;

use record::{Outcome, Record};

use super::case::{self, Case, cases, identifier, series_ids};

/// A test result.
struct TestResult {
    id: String,
    word: &'static str,
    /// us.
    measurement: Option<f64>,
}

/// Writes a record: the run, each use, and the largest time of each series.
///
/// A series has no limit of its own. Its result is `pass` only if it was measured as requested and no verdict on the run
/// is other than PASS; otherwise it is `unknown`.
pub(super) fn lava(record: &Record) -> String {
    let run = case::run(record);
    let mut all = vec![TestResult { id: "punctual-run".to_owned(), word: word(run.outcome), measurement: None }];
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
