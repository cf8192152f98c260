//! Exports time lines in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing.
//!
//! Each CPU is a process with two tracks: the lateness of each spike, and below it the use of the CPU. The kernel's
//! timerlat tracer has two more. Times are us since the start of the run, so spikes of different CPUs can be compared.

use record::{Cause, Record, Series, SeriesKind, Spike, Stretch};
use serde_json::{Map, Value, json};

use crate::time::signed_ns;

/// Process ids: of the run itself, and of threads that are not bound to a CPU. CPU n has n + 2.
const RUN: u32 = 0;
const UNPINNED: u32 = 1;
/// First track of the probe and of timerlat's thread in a process.
const LATENESS: u32 = 1;
const TIMERLAT_LATENESS: u32 = 3;
/// Offset from the track of the lateness to that of the CPU's use.
const USER_OF_CPU: u32 = 1;

/// Returns the phases, spikes and time lines of a record as a trace.
#[must_use]
pub fn perfetto(record: &Record) -> Value {
    let mut events = vec![name("process_name", RUN, LATENESS, "run"), name("thread_name", RUN, LATENESS, "phases")];
    events.extend(record.phases.iter().map(|phase| {
        let args = json!({"period_us": us(phase.period_ns), "loads": phase.asked_loads});
        complete(RUN, LATENESS, (signed_ns(phase.start_ns), phase.duration_ns), &phase.name, "phase", &args)
    }));
    let mut tracks = Vec::new();
    let began_ns = began_ns(record);
    // The spikes of timerlat's interrupt are part of those of its thread.
    for series in record.series.iter().filter(|series| series.kind != SeriesKind::TimerlatIrq) {
        let process = process(series);
        let (track, prefix) = match series.is_timerlat() {
            false => (LATENESS, ""),
            true => (TIMERLAT_LATENESS, "timerlat: "),
        };
        if !tracks.contains(&(process, track)) {
            tracks.push((process, track));
            events.extend(track_names(series.cpu, process, track, prefix));
        }
        add_spikes(series, (process, track), began_ns, &mut events);
    }
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"tool": record.tool.name, "version": record.tool.version, "started_at": record.started_at},
    })
}

/// Metadata of a process and of the two tracks that start with `track`.
fn track_names(cpu: Option<u32>, process: u32, track: u32, prefix: &str) -> [Value; 4] {
    let process_name = cpu.map_or_else(|| "unpinned".to_owned(), |cpu| format!("CPU {cpu}"));
    [
        name("process_name", process, LATENESS, &process_name),
        name("thread_name", process, track, &format!("{prefix}lateness")),
        name("thread_name", process, track + USER_OF_CPU, &format!("{prefix}had the CPU")),
        json!({"ph": "M", "name": "process_sort_index", "pid": process, "tid": LATENESS,
               "args": {"sort_index": process}}),
    ]
}

/// Adds the spikes and time lines of a series.
fn add_spikes(series: &Series, (process, track): (u32, u32), began_ns: i64, events: &mut Vec<Value>) {
    // Stretches of one track must not overlap: the time before a deadline starts after the previous spike.
    let mut free_from_ns = i64::MIN;
    for spike in &series.spikes {
        let deadline_ns = series.first_deadline_ns.saturating_add_unsigned(spike.at_ns).saturating_sub(began_ns);
        events.push(lateness((process, track), deadline_ns, spike, series));
        events.extend(spike.timeline.iter().filter_map(|stretch| {
            let (start_ns, ns) = after(free_from_ns, deadline_ns.saturating_add(stretch.start_ns), stretch.ns)?;
            Some(use_of_cpu((process, track + USER_OF_CPU), (start_ns, ns), stretch))
        }));
        free_from_ns = free_from_ns.max(deadline_ns.saturating_add(spike.lateness_ns));
    }
}

/// Start of the run on the clock of the deadlines, ns: computed from the start and the first deadline of a phase.
fn began_ns(record: &Record) -> i64 {
    record
        .phases
        .iter()
        .find_map(|phase| {
            let of_phase = record.probe_series().filter(|series| series.phase == phase.name);
            Some(of_phase.map(|series| series.first_deadline_ns).min()?.saturating_sub_unsigned(phase.start_ns))
        })
        .unwrap_or(0)
}

fn process(series: &Series) -> u32 {
    series.cpu.map_or(UNPINNED, |cpu| cpu.saturating_add(2))
}

/// The part of a stretch after `free_from_ns`: start and length, ns.
fn after(free_from_ns: i64, start_ns: i64, ns: u64) -> Option<(i64, u64)> {
    let end_ns = start_ns.saturating_add_unsigned(ns);
    let start_ns = start_ns.max(free_from_ns);
    (start_ns < end_ns).then_some((start_ns, end_ns.abs_diff(start_ns)))
}

fn lateness((process, track): (u32, u32), deadline_ns: i64, spike: &Spike, series: &Series) -> Value {
    let late_us = spike.lateness_ns as f64 / 1000.0;
    let title = match spike.culprits.first() {
        Some(main) => format!("{late_us:.1} us late: {}", main.cause.title()),
        None => format!("{late_us:.1} us late"),
    };
    let shares: Map<String, Value> = spike
        .culprits
        .iter()
        .enumerate()
        .map(|(place, culprit)| (format!("{}. {}", place + 1, culprit.cause.in_full()), json!(us(culprit.ns))))
        .collect();
    let mut args = json!({
        "phase": series.phase,
        "thread": series.role,
        "lateness_us": late_us,
        "culprits_us": shares,
        "evidence": spike.evidence,
    });
    if let Some(split) = spike.split {
        args["timerlat_us"] = json!({"irq": us(split.irq_ns), "thread": us(split.thread_ns)});
    }
    let dur_ns = spike.lateness_ns.max(0).cast_unsigned();
    complete(process, track, (deadline_ns, dur_ns), &title, "lateness", &args)
}

fn use_of_cpu((process, track): (u32, u32), when: (i64, u64), stretch: &Stretch) -> Value {
    let Cause { kind, number, priority, detail, .. } = &stretch.cause;
    let mut args = Map::from_iter([("kind".to_owned(), json!(kind))]);
    args.extend(number.map(|number| ("number".to_owned(), json!(number))));
    args.extend(priority.map(|priority| ("priority".to_owned(), json!(record::priority_in_words(priority)))));
    args.extend((!detail.is_empty()).then(|| ("detail".to_owned(), json!(detail))));
    let category = if stretch.start_ns < 0 { "before" } else { "culprit" };
    complete(process, track, when, &stretch.cause.title(), category, &Value::Object(args))
}

/// A complete event. Start and length are in us with decimals.
fn complete(pid: u32, tid: u32, (start_ns, ns): (i64, u64), name: &str, category: &str, args: &Value) -> Value {
    let ts = start_ns as f64 / 1000.0;
    json!({"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": us(ns), "name": name, "cat": category, "args": args})
}

/// Metadata: the name of a process or track.
fn name(what: &str, pid: u32, tid: u32, name: &str) -> Value {
    json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use record::{CauseKind, Culprit, Evidence, Phase};

    use super::*;

    fn spike(at_ns: u64, lateness_ns: i64) -> Spike {
        let cause = Cause { number: Some(24), ..Cause::new(CauseKind::Interrupt, "eth0") };
        let stretch = |start_ns, ns| Stretch { start_ns, ns, cause: cause.clone() };
        Spike {
            lateness_ns,
            at_ns,
            culprits: vec![Culprit { cause: cause.clone(), ns: lateness_ns.cast_unsigned() }],
            evidence: Evidence::Trace,
            timeline: vec![
                stretch(-100_000, 100_000),
                stretch(0, 12_345),
                stretch(12_345, lateness_ns.cast_unsigned() - 12_345),
            ],
            ..Spike::default()
        }
    }

    fn record() -> Record {
        let phase = |name: &str, start_ns| Phase {
            name: name.to_owned(),
            period_ns: 250_000,
            start_ns,
            duration_ns: 4_000_000,
            ..Phase::default()
        };
        let series = |phase: &str, cpu, first_deadline_ns, spikes| Series {
            phase: phase.to_owned(),
            role: "timer".to_owned(),
            cpu,
            first_deadline_ns,
            spikes,
            ..Series::default()
        };
        Record {
            phases: vec![phase("rest", 1_000_000), phase("load", 6_000_000)],
            series: vec![
                series("rest", Some(0), 77_001_000_000, vec![]),
                series("load", Some(0), 77_006_500_000, vec![spike(250_000, 180_001), spike(500_000, 60_000)]),
                series("load", Some(1), 77_006_500_500, vec![spike(0, 60_000)]),
                series("load", None, 77_006_500_000, vec![]),
            ],
            ..Record::default()
        }
    }

    fn complete_events(trace: &Value, pid: u32, tid: u32) -> Vec<(f64, f64, String)> {
        let events = trace["traceEvents"].as_array().expect("a list");
        events
            .iter()
            .filter(|event| event["ph"] == "X" && event["pid"] == pid && event["tid"] == tid)
            .map(|event| {
                let number = |key: &str| event[key].as_f64().expect("a number");
                (number("ts"), number("dur"), event["name"].as_str().expect("a name").to_owned())
            })
            .collect()
    }

    #[test]
    fn places_spikes_at_their_time_in_the_run() {
        let trace = perfetto(&record());
        let late = complete_events(&trace, 2, LATENESS);
        assert_eq!(late[0], (6750.0, 180.001, "180.0 us late: interrupt eth0".to_owned()));
        assert_eq!(late[1].0, 7000.0);
        assert_eq!(complete_events(&trace, 3, LATENESS)[0].0, 6500.5);
        let phases = complete_events(&trace, RUN, LATENESS);
        assert_eq!(phases, [(1000.0, 4000.0, "rest".to_owned()), (6000.0, 4000.0, "load".to_owned())]);
        let culprits =
            &trace["traceEvents"].as_array().expect("a list").iter().find(|event| event["cat"] == "lateness");
        assert_eq!(culprits.expect("one")["args"]["culprits_us"]["1. interrupt eth0 (irq 24)"], 180.001);
    }

    #[test]
    fn time_lines_add_up_and_never_overlap() {
        let trace = perfetto(&record());
        let late = complete_events(&trace, 2, LATENESS);
        let stretches = complete_events(&trace, 2, LATENESS + USER_OF_CPU);
        for (ts, dur, _) in &late {
            let within = stretches.iter().filter(|stretch| stretch.0 >= *ts && stretch.0 < ts + dur);
            let sum: f64 = within.map(|stretch| stretch.1).sum();
            assert!((sum - dur).abs() < 1e-6, "{sum} us of {dur} us");
        }
        for pair in stretches.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0 + 1e-6, "{pair:?}");
        }
        assert!((stretches[3].1 - 69.999).abs() < 1e-6, "cut at the end of the previous spike: {:?}", stretches[3]);
    }

    #[test]
    fn timerlat_has_its_own_tracks() {
        let mut record = record();
        let mut kernel = record.series[1].clone();
        (kernel.role, kernel.kind) = (record::TIMERLAT_THREAD.to_owned(), SeriesKind::TimerlatThread);
        kernel.spikes[0].split = Some(record::Split { irq_ns: 2_500, thread_ns: 180_001 });
        record.series.push(kernel);
        let trace = perfetto(&record);
        assert_eq!(complete_events(&trace, 2, LATENESS).len(), 2);
        assert_eq!(complete_events(&trace, 2, LATENESS), complete_events(&trace, 2, TIMERLAT_LATENESS));
        let events = trace["traceEvents"].as_array().expect("a list");
        let split = events.iter().find_map(|event| event["args"]["timerlat_us"].as_object()).expect("one");
        assert_eq!((&split["irq"], &split["thread"]), (&json!(2.5), &json!(180.001)));
    }

    #[test]
    fn extreme_numbers_cause_no_panic() {
        for (small, large) in [(i64::MIN, u64::MAX), (i64::MAX, u64::MAX), (i64::MIN, 0)] {
            let stretches = [small, 0, i64::MAX].map(|start_ns| Stretch { start_ns, ns: large, ..Stretch::default() });
            let odd = Spike { lateness_ns: small, at_ns: large, timeline: stretches.to_vec(), ..Spike::default() };
            let mut record = record();
            (record.phases[0].start_ns, record.phases[0].duration_ns) = (large, large);
            for series in &mut record.series {
                (series.cpu, series.first_deadline_ns) = (series.cpu.map(|cpu| u32::MAX - cpu), small);
                series.spikes.splice(.., [odd.clone(), odd.clone()]);
            }
            let trace = perfetto(&record);
            for pid in [UNPINNED, u32::MAX] {
                assert!(
                    complete_events(&trace, pid, LATENESS + USER_OF_CPU)
                        .iter()
                        .all(|(ts, dur, _)| ts.is_finite() && *dur > 0.0)
                );
            }
        }
    }

    #[test]
    fn follows_the_documented_format() {
        let trace = perfetto(&record());
        let read: Value = serde_json::from_str(&trace.to_string()).expect("valid JSON");
        for event in read["traceEvents"].as_array().expect("a list") {
            assert!(
                event["pid"].is_u64()
                    && event["tid"].is_u64()
                    && event["name"].is_string()
                    && event["args"].is_object()
            );
            match event["ph"].as_str() {
                Some("X") => assert!(event["ts"].is_number() && event["dur"].as_f64().is_some_and(|dur| dur >= 0.0)),
                Some("M") => assert!(event["args"]["name"].is_string() || event["args"]["sort_index"].is_u64()),
                other => panic!("event of phase {other:?}"),
            }
        }
        let empty = perfetto(&Record::default());
        assert!(empty["traceEvents"].as_array().is_some_and(|events| events.len() == 2));
    }
}
