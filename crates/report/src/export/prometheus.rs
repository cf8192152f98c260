//! Metrics in the text format of Prometheus (version 0.0.4), for the textfile collector of `node_exporter`.
//!
//! The collector knows neither the OpenMetrics types `info` and `stateset` nor timestamps, and refuses a file that
//! contains them. States are therefore gauges of 0 and 1, and the time of the run is a metric of its own. UNIT lines are
//! those of OpenMetrics; this format takes them as comments. Times are in seconds.

use std::{collections::HashMap, fmt::Write};

use analysis::Summary;
use record::{Measured, Outcome, Record, Series, SeriesKind, State, Stream, visible::one_line};

use super::case::{self, cases};
use crate::caveats;

/// The states of a verdict.
const VERDICTS: [Option<Outcome>; 5] =
    [Some(Outcome::Pass), Some(Outcome::Fail), Some(Outcome::Inconclusive), Some(Outcome::Invalid), None];

/// The names and values of the labels of a sample.
type Labels = Vec<(&'static str, String)>;

/// A sample: its labels and its value.
type Sample = (Labels, String);

/// Writes a record.
pub(super) fn prometheus(record: &Record) -> String {
    let mut metrics = Metrics::default();
    of_run(&mut metrics, record);
    of_uses(&mut metrics, record);
    of_series(&mut metrics, record);
    metrics.text
}

fn of_run(metrics: &mut Metrics, record: &Record) {
    let run = case::run(record);
    let labels = || run_labels(record);
    let with = |name: &'static str, value: &str| [labels(), vec![(name, value.to_owned())]].concat();
    let fact = |fact: &Option<String>| fact.clone().unwrap_or_default();
    let machine = &record.machine;
    let info = [
        labels(),
        vec![
            ("tool", record.tool.name.clone()),
            ("version", record.tool.version.clone()),
            ("model", fact(&machine.model)),
            ("cpu_model", fact(&machine.cpu_model)),
            ("arch", fact(&machine.arch)),
            ("preemption", fact(&machine.preempt)),
        ],
    ]
    .concat();
    metrics.gauge(
        "punctual_info",
        "",
        "The machine, and the tool that measured with its version; always 1.",
        vec![(info, "1".to_owned())],
    );
    let started: Vec<Sample> =
        case::unix_seconds(&record.started_at).map(|s| (labels(), s.to_string())).into_iter().collect();
    metrics.gauge("punctual_run_timestamp_seconds", "seconds", "When the run began, in Unix time.", started);
    let duration = case::duration_ns(record).map(|ns| (labels(), seconds_of(ns as f64))).into_iter().collect();
    metrics.gauge("punctual_run_duration_seconds", "seconds", "Time that the run measured.", duration);
    // Nobody knows this about a run of another tool.
    let is_known = record.published.is_none();
    let flag = |is_true: bool| is_known.then(|| (labels(), u8::from(is_true).to_string())).into_iter().collect();
    let valid = run.outcome != Some(Outcome::Invalid);
    metrics.gauge("punctual_valid", "", "1 if the run was as requested; if 0, ignore its other figures.", flag(valid));
    let complete = record.state == State::Complete;
    metrics.gauge("punctual_complete", "", "1 if the run ended as planned.", flag(complete));
    let caveats = vec![(labels(), caveats::of_run(record).len().to_string())];
    metrics.gauge("punctual_caveats", "", "Number of limitations of the figures; the record names them.", caveats);
    let states =
        VERDICTS.iter().map(|state| (with("verdict", case::name(*state)), u8::from(*state == run.outcome).to_string()));
    let help = "1 for the verdict on the run, 0 for the others; NONE if no profile was requested.";
    metrics.gauge("punctual_verdict", "", help, states.collect());
}

fn of_uses(metrics: &mut Metrics, record: &Record) {
    let all = cases(record);
    let uses: Vec<_> = all.iter().filter_map(|case| Some((case, case.a_use?))).collect();
    let labels = |profile: &str| [run_labels(record), vec![("profile", profile.to_owned())]].concat();
    let states = uses.iter().flat_map(|(case, _)| {
        VERDICTS[..4].iter().map(|state| {
            let labels = [labels(case.id), vec![("verdict", case::name(*state).to_owned())]].concat();
            (labels, u8::from(*state == case.outcome).to_string())
        })
    });
    let help = "1 for the verdict on the profile, 0 for the others.";
    metrics.gauge("punctual_profile_verdict", "", help, states.collect());
    let limits = uses.iter().map(|(case, a_use)| (labels(case.id), seconds(a_use.limit_ns)));
    let help = "Largest lateness that the profile tolerates.";
    metrics.gauge("punctual_profile_limit_seconds", "seconds", help, limits.collect());
    let worst = uses.iter().filter_map(|(case, a_use)| Some((labels(case.id), seconds(a_use.worst_ns?))));
    let help = "Largest measured lateness, among the series that the profile judges.";
    metrics.gauge("punctual_profile_worst_seconds", "seconds", help, worst.collect());
    let missed = uses.iter().filter_map(|(case, a_use)| Some((labels(case.id), a_use.missed_known()?.to_string())));
    let help = "Deadlines of the use that the run would have missed.";
    metrics.counter("punctual_profile_missed_total", help, missed.collect());
}

fn of_series(metrics: &mut Metrics, record: &Record) {
    let all: Vec<(&Series, Labels)> = record.series.iter().zip(series_labels(record)).collect();
    for (meaning, name, title) in TIMES {
        let of_kind: Vec<&(&Series, Labels)> = all.iter().filter(|(series, _)| meaning_of(series) == meaning).collect();
        let figures = |figure: fn(&Series) -> Option<f64>| {
            let sample = |(series, labels): &&(&Series, Labels)| Some((labels.clone(), seconds_of(figure(series)?)));
            of_kind.iter().filter_map(sample).collect::<Vec<Sample>>()
        };
        let max = figures(|series| series.max_ns.map(|ns| ns as f64));
        metrics.gauge(&format!("punctual_{name}_max_seconds"), "seconds", &format!("Largest {title}, exact."), max);
        let help = format!("Mean {title}.");
        metrics.gauge(&format!("punctual_{name}_mean_seconds"), "seconds", &help, figures(|series| series.mean_ns));
        let quantiles = of_kind.iter().flat_map(|(series, labels)| {
            let known = |(share, value): (&str, Option<i64>)| {
                Some(([labels.clone(), vec![("quantile", share.to_owned())]].concat(), seconds(value?)))
            };
            let shares =
                [("0.5", 50.0), ("0.9", 90.0), ("0.99", 99.0), ("0.999", 99.9), ("0.9999", 99.99), ("0.99999", 99.999)];
            // An imported histogram may lack its longest samples, so that it is no corrected one.
            let is_partial = series.corrected.is_empty();
            let below = |percent: f64| series.raw.percentile_among(series.samples, percent).filter(|_| is_partial);
            let values = Summary::of(series).percentiles().map(|(_, value)| value);
            let values = shares
                .into_iter()
                .zip(values)
                .map(|((share, percent), value)| (share, value.or_else(|| below(percent))));
            values.filter_map(known).collect::<Vec<_>>()
        });
        let help = format!("Quantiles of the {title}, corrected for omitted deadlines where there are any.");
        let name = format!("punctual_{name}_quantile_seconds");
        metrics.gauge(&name, "seconds", &help, quantiles.collect());
    }
    let has_jitter = |series: &Series| {
        record.published.is_none()
            && series.kind.properties().has_deadlines
            && !series.is_timerlat()
            && series.period_ns > 0
    };
    let jitter = all.iter().filter(|(series, _)| has_jitter(series));
    let jitter = jitter.map(|(series, labels)| (labels.clone(), seconds_of(series.jitter_ns as f64)));
    let help = "Largest |interval - period| between two wake-ups.";
    metrics.gauge("punctual_jitter_max_seconds", "seconds", help, jitter.collect());
    let counts = |count: fn(&Series) -> Option<u64>| {
        let sample = |(series, labels): &(&Series, Labels)| Some((labels.clone(), count(series)?.to_string()));
        all.iter().filter_map(sample).collect::<Vec<Sample>>()
    };
    let help = "Wake-ups of the run, or what else was measured.";
    let is_measured = record.published.is_none();
    let samples = counts(|series| Some(series.samples)).into_iter().filter(|(_, count)| is_measured || count != "0");
    metrics.counter("punctual_samples_total", help, samples.collect());
    // Other tools count neither of the following.
    if !is_measured {
        return;
    }
    let help = "Deadlines of the run that passed before the thread read the clock again.";
    let missed = counts(|series| {
        // Without a grid, the slots of a captured stream are not known.
        let is_known = series.kind != SeriesKind::Capture || series.samples > 0;
        (is_known && series.kind.properties().is_corrected).then_some(series.missed)
    });
    metrics.counter("punctual_missed_total", help, missed);
    let lost = counts(|series| {
        let refused = series.kind.round_trip().map_or(0, |trip| trip.send_failed);
        Some(series.kind.lost()?.saturating_add(refused))
    });
    metrics.counter(
        "punctual_lost_total",
        "Datagrams or questions without an answer, or lost frames or interrupts, of the run.",
        lost,
    );
    let xruns = counts(|series| series.kind.audio().map(|audio| audio.xruns));
    metrics.counter("punctual_xruns_total", "Xruns of the audio of the run.", xruns);
    let help = "Times above the threshold of the run.";
    metrics.counter("punctual_spikes_total", help, counts(|series| Some(series.spikes_total)));
}

/// The meanings of the times of a series, with the names of their metrics and their titles in help texts.
const TIMES: [(Measured, &str, &str); 5] = [
    (Measured::Lateness, "lateness", "lateness"),
    (Measured::Gap, "gap", "gap of CPU time"),
    (Measured::RoundTrip, "round_trip", "round trip"),
    (Measured::Response, "response", "time from the question of an outside judge to the answer"),
    (Measured::FrameGap, "frame_delay", "delay of a frame against the one before"),
];

/// The meaning of `max_ns` and of the histograms of a series. That of talkers, audio threads and captures is lateness.
fn meaning_of(series: &Series) -> Measured {
    match &series.kind {
        SeriesKind::Gaps(_) => Measured::Gap,
        SeriesKind::RoundTrips(_) => Measured::RoundTrip,
        SeriesKind::Responses(_) => Measured::Response,
        SeriesKind::Stream(Stream::Listener(_)) => Measured::FrameGap,
        SeriesKind::WakeUps
        | SeriesKind::Stream(Stream::Talker(_))
        | SeriesKind::Audio(_)
        | SeriesKind::Process(_)
        | SeriesKind::Interrupts(_)
        | SeriesKind::Capture
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => Measured::Lateness,
    }
}

/// The labels of a run.
fn run_labels(record: &Record) -> Labels {
    vec![
        ("host", case::host(record).to_owned()),
        ("kernel", record.machine.kernel.clone().unwrap_or_default()),
        ("probe", record.scenario.probe.clone()),
    ]
}

/// The labels of each series, unique within the record: the collector refuses two equal ones.
fn series_labels(record: &Record) -> Vec<Labels> {
    let mut seen: HashMap<Labels, u32> = HashMap::new();
    let mut labels = |series: &Series| {
        let mut labels = run_labels(record);
        if let Some(far) = record.far.as_ref().filter(|far| series.host.as_ref() == Some(&far.host)) {
            labels[0].1.clone_from(&far.host);
            labels[1].1 = far.machine.kernel.clone().unwrap_or_default();
        }
        labels.extend([
            ("phase", series.phase.clone()),
            ("role", series.role.clone()),
            ("cpu", series.cpu.map(|cpu| cpu.to_string()).unwrap_or_default()),
        ]);
        // Labels that differ only before escaping must also differ afterwards.
        labels.iter_mut().for_each(|(_, value)| *value = one_line(value));
        let count = seen.entry(labels.clone()).or_default();
        *count += 1;
        if *count > 1 {
            labels.push(("thread", count.to_string()));
        }
        labels
    };
    record.series.iter().map(&mut labels).collect()
}

/// The text of the metrics so far.
#[derive(Default)]
struct Metrics {
    text: String,
}

impl Metrics {
    fn gauge(&mut self, name: &str, unit: &str, help: &str, samples: Vec<Sample>) {
        self.family(name, "gauge", unit, help, samples);
    }

    fn counter(&mut self, name: &str, help: &str, samples: Vec<Sample>) {
        self.family(name, "counter", "", help, samples);
    }

    /// Writes a metric with its samples, or nothing without samples.
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str, samples: Vec<Sample>) {
        if samples.is_empty() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        for (labels, value) in samples {
            let labels: Vec<String> = labels.iter().map(|(name, text)| format!("{name}=\"{}\"", label(text))).collect();
            let _ = writeln!(self.text, "{name}{{{}}} {value}", labels.join(","));
        }
    }
}

/// The text as the value of a label.
fn label(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

fn seconds(ns: i64) -> String {
    seconds_of(ns as f64)
}

fn seconds_of(ns: f64) -> String {
    (ns / 1e9).to_string()
}
