//! Test cases: what formats for test results show of a run.

use std::collections::HashMap;

use analysis::{on_short_ladder, outcome};
use record::{Obstacle, Outcome, Record, ScenarioEntry, Series, UseVerdict, visible::one_line};

use crate::{
    compare::not_ours,
    headline::headline,
    words::{is_profile, reason_sentence, sentence},
};

/// The id of the test case for the run as a whole.
pub(super) const RUN: &str = "run";

/// A test case: a use, or the run as a whole.
pub(super) struct Case<'a> {
    /// Name of the profile, or [`RUN`].
    pub(super) id: &'a str,
    /// Name of the use in plain words.
    pub(super) title: &'a str,
    /// The outcome; `None` if nothing was judged.
    pub(super) outcome: Option<Outcome>,
    /// Reason, in one sentence.
    pub(super) reason: String,
    /// The verdict on the use; `None` for the run as a whole.
    pub(super) a_use: Option<&'a UseVerdict>,
}

/// The requested uses, or those that the answer counts if none was requested.
pub(super) fn uses(record: &Record) -> impl Iterator<Item = &UseVerdict> {
    let profiles = &record.scenario.profiles;
    record.uses.iter().filter(|a_use| match profiles.is_empty() {
        true => on_short_ladder(a_use),
        false => profiles.iter().any(|requested| is_profile(requested, &a_use.profile)),
    })
}

/// One case for each of these uses. The run as a whole is a case of its own if it has no uses, or an outcome that none of
/// them has.
pub(super) fn cases(record: &Record) -> Vec<Case<'_>> {
    let mut cases: Vec<Case> = uses(record).map(|a_use| of_use(record, a_use)).collect();
    let run = run(record);
    if cases.is_empty() || run.outcome.is_some() && cases.iter().all(|case| case.outcome != run.outcome) {
        cases.push(run);
    }
    cases
}

/// One case for each use that the answer counts: the requested ones, or those of the short ladder.
pub(super) fn shown(record: &Record) -> Vec<Case<'_>> {
    let counted = |a_use: &&UseVerdict| !record.scenario.profiles.is_empty() || on_short_ladder(a_use);
    record.uses.iter().filter(counted).map(|a_use| of_use(record, a_use)).collect()
}

fn of_use<'a>(record: &Record, a_use: &'a UseVerdict) -> Case<'a> {
    let (outcome, reason) = supported(record, a_use.outcome, &a_use.reason);
    Case { id: &a_use.profile, title: &a_use.title, outcome: Some(outcome), reason, a_use: Some(a_use) }
}

/// The run as a whole.
pub(super) fn run(record: &Record) -> Case<'_> {
    let case = |outcome, reason| Case { id: RUN, title: "the run as a whole", outcome, reason, a_use: None };
    if record.published.is_some() {
        return case(None, format!("Not judged: {}.", not_ours(record).1));
    }
    if let Some(Obstacle::Invalid(reasons)) = record.obstacle() {
        let text = match &reasons[..] {
            [] => "The record does not confirm that the run was valid.".to_owned(),
            [only] => sentence(&only.text),
            [first, others @ ..] => format!("{} Other reasons: {}.", sentence(&first.text), others.len()),
        };
        return case(Some(Outcome::Invalid), text);
    }
    let text = record
        .verdict
        .as_ref()
        .map_or_else(|| headline(record).text, |verdict| reason_sentence(record, &verdict.reason));
    match outcome(record) {
        Some(judged) => {
            let (outcome, reason) = supported(record, judged, &text);
            case(Some(outcome), reason)
        }
        None if record.uses.is_empty() => {
            case(None, format!("{text} There is no verdict, because no profile was requested."))
        }
        // The answer of the terminal, which counts the uses by verdict.
        None => case(None, text),
    }
}

/// An outcome with its reason, or a worse one: a run with an obstacle shows no PASS, whatever is stored in its record.
fn supported(record: &Record, outcome: Outcome, reason: &str) -> (Outcome, String) {
    match record.obstacle() {
        Some(obstacle @ Obstacle::Invalid(_)) => (Outcome::Invalid, sentence(&obstacle.to_string())),
        Some(obstacle) if outcome == Outcome::Pass => (Outcome::Inconclusive, sentence(&obstacle.to_string())),
        _ => (outcome, sentence(reason)),
    }
}

/// The outcome of a scenario with its reason; `None` if nothing was judged.
pub(super) fn of_scenario(scenario: &ScenarioEntry) -> (Option<Outcome>, String) {
    if let Some(error) = &scenario.error {
        return (Some(Outcome::Invalid), sentence(&format!("could not run: {error}")));
    }
    let Some(result) = &scenario.result else { return (None, "The scenario has not run.".to_owned()) };
    let stated = scenario.reason.as_ref().or(result.problem.as_ref()).or(result.reason.as_ref());
    let stated = stated.map_or_else(String::new, |text| sentence(text));
    match result.outcome {
        _ if !result.valid => (Some(Outcome::Invalid), stated),
        Some(Outcome::Pass) if result.problem.is_some() => (Some(Outcome::Inconclusive), stated),
        Some(outcome) => (Some(outcome), stated),
        None if stated.is_empty() => (None, "Not judged, because no profile was requested.".to_owned()),
        None => (None, stated),
    }
}

/// The name of an outcome in capitals; NONE if nothing was judged.
pub(super) fn name(outcome: Option<Outcome>) -> &'static str {
    outcome.map_or("NONE", Outcome::name)
}

/// An identifier for each series, unique within the record: `load-base-cpu1`. It contains only letters, digits, `.`, `_`
/// and `-`.
pub(super) fn series_ids(record: &Record) -> Vec<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut id = |series: &Series| {
        let cpu = series.cpu.map_or_else(|| "unpinned".to_owned(), |cpu| format!("cpu{cpu}"));
        let parts = [Some(&series.phase), Some(&series.role), Some(&cpu), series.host.as_ref()];
        let parts: Vec<&str> =
            parts.into_iter().flatten().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let id = identifier(&parts.join("-"));
        let count = seen.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 { id } else { format!("{id}.{count}") }
    };
    record.series.iter().map(&mut id).collect()
}

/// The text with `_` for each character other than ASCII letters, digits, `.`, `_` and `-`.
pub(super) fn identifier(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}

/// The name of the machine of a record; `unknown` without one.
pub(super) fn host(record: &Record) -> &str {
    record.machine.hostname.as_deref().unwrap_or("unknown")
}

/// Name and version of the program that measured.
pub(super) fn tool(record: &Record) -> String {
    let name = if record.tool.name.is_empty() { "unknown tool" } else { &record.tool.name };
    format!("{name} {}", record.tool.version).trim_end().to_owned()
}

/// The run in one line: `cyclictest 2.40: timer on board`.
pub(super) fn title(record: &Record) -> String {
    one_line(&format!("{}: {} on {}", tool(record), record.scenario.probe, host(record)))
}

/// Wall-clock time of all phases, ns; `None` if unknown. Those of another tool are its threads, which run at the same time.
pub(super) fn duration_ns(record: &Record) -> Option<u64> {
    let durations_ns = record.phases.iter().map(|phase| phase.duration_ns);
    let is_imported = record.validity.reasons.iter().any(|reason| reason.id == record::IMPORTED);
    let sum = if is_imported { durations_ns.max().unwrap_or(0) } else { durations_ns.fold(0, u64::saturating_add) };
    Some(sum).filter(|&sum| sum > 0 || record.published.is_none())
}

/// A time of RFC 3339 in seconds of Unix time; `None` if it is none.
pub(super) fn unix_seconds(text: &str) -> Option<f64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.as_millisecond() as f64 / 1e3)
}
