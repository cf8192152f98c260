//! A record is a file that people can edit. Without a figure that its verdict rests on, the verdict is never better than
//! with it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use analysis::{Profile, find_profile, judge, verdict};
use record::{Outcome, ProgramLimits, Record, file};
use serde_json::{Value, json};

/// Records of each kind that passes with [`Limits::Kept`]: recorded ones, repeated until they last 20 s.
const RECORDS: [(&str, &str); 7] = [
    ("timer", include_str!("../../record/tests/records-0.1/timer.json")),
    ("interrupt", include_str!("../../record/tests/records-0.1/timer.json")),
    ("noise", include_str!("../../record/tests/records-0.1/noise.json")),
    ("udp", include_str!("../../record/tests/records-0.1/udp.json")),
    ("audio", include_str!("../../record/tests/records-0.1/audio.json")),
    ("stream", include_str!("../../record/tests/records-0.1/stream.json")),
    ("process", include_str!("../../record/tests/records-0.1/process.json")),
];
/// Figures that PASS needs: kind of record, and their path. Without one of them, no record of that kind passes.
const NEEDED: [(&str, &str); 17] = [
    ("timer", "/series/0/samples"),
    ("timer", "/series/0/max_ns"),
    ("timer", "/series/0/raw"),
    ("timer", "/series/0/raw/buckets"),
    ("interrupt", "/series/0/max_ns"),
    ("interrupt", "/series/0/interrupts/max_uncertainty_ns"),
    ("interrupt", "/series/0/interrupts/overruns"),
    ("noise", "/series/0/max_ns"),
    ("noise", "/series/0/noise/observed_ns"),
    ("noise", "/series/0/noise/threshold_ns"),
    ("noise", "/series/0/noise/latest_start_ns"),
    ("udp", "/series/1/max_ns"),
    ("udp", "/series/1/round_trip/lost"),
    ("audio", "/series/0/audio/completion"),
    ("stream", "/series/0/stream/max_delta_ns"),
    ("stream", "/series/0/stream/send"),
    ("process", "/series/0/max_ns"),
];
/// Counts of events, which are repeated with the run.
const COUNTS: [&str; 13] = [
    "samples",
    "missed",
    "early",
    "spikes_total",
    "slots",
    "sent",
    "played",
    "duration_ns",
    "planned_ns",
    "observed_ns",
    "lost_ns",
    "cycles",
    "late",
];
const TIMES: u64 = 40;

fn repeat(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_stream = fields.contains_key("side");
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("buckets", Value::Array(buckets)) => {
                        buckets.iter_mut().for_each(|bucket| bucket[1] = json!(bucket[1].as_u64().unwrap() * TIMES));
                    }
                    (key, value @ Value::Number(_)) if COUNTS.contains(&key) || is_stream && key == "frames" => {
                        *value = json!(value.as_u64().unwrap() * TIMES);
                    }
                    (_, value) => repeat(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(repeat),
        _ => {}
    }
}

/// The recorded run of this kind, which lasts 20 s, and whose figures a run of this version has.
fn run(kind: &str, text: &str) -> Value {
    let mut run: Value = serde_json::from_str(text).unwrap();
    repeat(&mut run);
    let series = &mut run["series"][0];
    match kind {
        "interrupt" => {
            series["kind"] = json!("interrupts");
            series["interrupts"] = json!({
                "source": "hpet", "device": "a timer", "zero": "counter", "resolution_ns": 10, "uncertainty_ns": 400,
                "max_uncertainty_ns": 900, "lost": 0, "overruns": 0, "unanswered": 0, "spurious": 0,
            });
        }
        "noise" => series["noise"]["latest_start_ns"] = json!(9_000),
        "stream" => run["series"].as_array_mut().unwrap().truncate(1),
        _ => {}
    }
    if kind == "stream" {
        run.as_object_mut().unwrap().remove("capture");
        run["series"][0]["stream"]["missed_slots"] = json!(0);
    }
    run
}

fn profile(run: &Record, kind: &str, limit_ns: i64) -> Profile {
    let name = if kind == "udp" { "udp-control-1ms" } else { "control-1khz" };
    let period_ns = run.series.last().map_or(0, |series| series.period_ns);
    let period_ns = if kind == "noise" { 1_000_000_000 } else { period_ns };
    let group = if kind == "audio" { "audio" } else { "control" }.to_owned();
    Profile { limit_ns, period_ns, group, tolerates: "30 per minute".parse().unwrap(), ..find_profile(name).unwrap() }
}

/// The outcome by a profile, and by the other limits of a run; `None` if the document is refused.
fn outcome(run: &Value, kind: &str, limit_ns: i64) -> Option<Outcome> {
    let mut record = file::parse(run.to_string().as_bytes()).ok()?;
    if kind == "process" {
        let limits = ProgramLimits { latency_ns: Some(limit_ns.unsigned_abs()), ..ProgramLimits::default() };
        return analysis::process::verdict(&record, limits).map(|verdict| verdict.outcome);
    }
    let of_profile = judge(&record, &profile(&record, kind, limit_ns)).outcome;
    if kind == "timer" || kind == "noise" {
        record.scenario.limit_ns = Some(limit_ns.unsigned_abs());
        let of_limit = verdict(&record, &[]).map_or(Outcome::Inconclusive, |verdict| verdict.outcome);
        return Some(if of_limit == Outcome::Pass { of_profile } else { of_limit });
    }
    Some(of_profile)
}

/// The paths of all fields and list elements below `value`.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(values) => values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let path = format!("{path}/{key}");
        paths(child, &path, found);
        found.push(path);
    }
}

fn without(run: &Value, path: &str) -> Value {
    let mut run = run.clone();
    let (parent, key) = path.rsplit_once('/').unwrap();
    match run.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.remove(key)),
        Value::Array(values) => drop(values.remove(key.parse().unwrap())),
        _ => unreachable!("a scalar has no fields"),
    }
    run
}

/// The document without a field, and with an empty list or text, or 0 for it.
fn changes(run: &Value, path: &str) -> Vec<(&'static str, Value)> {
    let mut changed = vec![("removed", without(run, path))];
    let empty = match run.pointer(path).unwrap() {
        Value::Number(_) => json!(0),
        Value::String(_) => json!(""),
        Value::Array(_) => json!([]),
        Value::Object(_) | Value::Bool(_) | Value::Null => return changed,
    };
    let mut emptied = run.clone();
    *emptied.pointer_mut(path).unwrap() = empty;
    changed.push(("emptied", emptied));
    changed
}

#[test]
fn a_verdict_without_a_figure_is_never_better() {
    let mut wrong = Vec::new();
    for (kind, text) in RECORDS {
        let run = run(kind, text);
        let parsed = file::parse(run.to_string().as_bytes()).unwrap();
        let max_ns = parsed.series.iter().filter_map(|series| series.max_ns).max().unwrap().max(360_000);
        for (_, needed) in NEEDED.iter().filter(|(of, _)| *of == kind) {
            assert!(run.pointer(needed).is_some(), "{kind} has no {needed}");
        }
        let mut all = Vec::new();
        paths(&run, "", &mut all);
        for (limit_ns, is_kept) in [(max_ns * 2, true), (max_ns - 1, false), (max_ns / 3, false), (1_000, false)] {
            let before = outcome(&run, kind, limit_ns).unwrap();
            assert!(!is_kept || before == Outcome::Pass, "{kind}: {before:?}");
            for path in &all {
                for (what, changed) in changes(&run, path) {
                    let passes = outcome(&changed, kind, limit_ns) == Some(Outcome::Pass);
                    let is_needed = what == "removed" && NEEDED.contains(&(kind, path));
                    if passes && (before != Outcome::Pass || is_needed) {
                        wrong.push(format!("{kind}, limit {limit_ns} ns, {before:?}: {path} {what}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these pass:\n{}", wrong.join("\n"));
}
