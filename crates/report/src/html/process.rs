//! A watched program: one row per thread, the causes of its delays, and a conclusion.

use analysis::{
    Summary, format_duration, format_ns,
    process::{broken_rules, conclusion},
};
use record::{Histogram, ProcessThread, Record, Series, counted, grouped};

use super::{
    facts::Fact,
    figure::{Key, Table},
    text::with_code,
};
use crate::{
    blame::{percent, percent_in_column, unsigned},
    process::{culprits, ending, monitors, preempters, threads_left},
};

/// The number of conclusions shown at once.
const CONCLUSIONS: usize = 3;

/// The program, as the template sees it.
pub struct ProgramView {
    /// The command, and how the program ended.
    pub facts: Vec<Fact>,
    /// The main conclusions, one sentence each: trusted HTML.
    pub conclusion: Vec<String>,
    /// The other conclusions, which are folded: trusted HTML.
    pub more: Vec<String>,
    /// The broken rules for real-time threads, one paragraph each: trusted HTML.
    pub rules: Vec<String>,
    /// Wake-ups and cycles of each thread, its time by state, and the causes of its delays.
    pub tables: Vec<Table>,
    /// Notes about threads without a row.
    pub left: Vec<String>,
}

/// The section about the program; `None` for records without one.
pub fn section(record: &Record) -> Option<ProgramView> {
    let program = record.program.as_ref()?;
    let duration_ns: u64 = record.phases.iter().map(|phase| phase.duration_ns).sum();
    let threads = analysis::process::threads(record);
    let mut facts = vec![
        ("program", program.command.clone()),
        ("process", program.pid.to_string()),
        ("watched for", format_duration(duration_ns)),
        ("ended", ending(program)),
        ("events read", grouped(program.events)),
        ("CPU time of punctual", format!("{} of one CPU", percent(program.own_cpu_ns, duration_ns.max(1)))),
    ];
    facts.extend(monitors(program).map(|names| ("kernel's monitors", names)));
    let mut tables = vec![cycles(&threads), times(&threads), delays(&threads)];
    tables.retain(|table| !table.rows.is_empty());
    let html = |sentences: Vec<String>| sentences.iter().map(|sentence| with_code(sentence)).collect::<Vec<_>>();
    let mut conclusion = html(conclusion(record));
    let more = conclusion.split_off(conclusion.len().min(CONCLUSIONS));
    let rules = html(broken_rules(record));
    Some(ProgramView { facts, conclusion, more, rules, tables, left: threads_left(program) })
}

/// The key figures of a program; empty for other records.
pub fn keys(record: &Record) -> Vec<Key> {
    let threads = analysis::process::threads(record);
    if record.program.is_none() || threads.is_empty() {
        return Vec::new();
    }
    let mut keys = Vec::new();
    let cycles = threads.iter().filter_map(|(series, thread)| Some((series, thread.longest.as_ref()?.response_ns())));
    if let Some((series, longest_ns)) = cycles.max_by_key(|&(_, longest_ns)| longest_ns) {
        keys.push(Key { label: "longest cycle", value: unsigned(longest_ns), detail: series.place() });
    }
    if let Some((series, max_ns)) = threads.first().and_then(|(series, _)| Some((series, series.max_ns?))) {
        keys.push(Key { label: "longest wait for a CPU", value: format_ns(max_ns), detail: series.place() });
    }
    let with_period: Vec<_> = threads.iter().filter(|(series, _)| series.period_ns > 0).collect();
    if !with_period.is_empty() {
        let missed = with_period.iter().map(|(series, _)| series.missed).sum();
        let all: u64 = with_period.iter().map(|(_, thread)| thread.cycles + thread.skipped).sum();
        let detail = format!("of {}", grouped(all));
        keys.push(Key { label: "missed deadlines", value: grouped(missed), detail });
    }
    let duration_ns: u64 = record.phases.iter().map(|phase| phase.duration_ns).sum();
    let wake_ups = threads.iter().map(|(series, _)| series.samples).sum();
    let detail = format!("{} of {}", counted(wake_ups, "wake-up"), counted(threads.len() as u64, "thread"));
    keys.push(Key { label: "watched", value: format_duration(duration_ns), detail });
    keys
}

type Threads<'a> = [(&'a Series, &'a ProcessThread)];

fn cycles(threads: &Threads) -> Table {
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns);
    let top = |histogram: &Histogram| histogram.iter().next_back().map(|(value_ns, _)| value_ns);
    let row = |&(series, thread): &(&Series, &ProcessThread)| {
        let figures = Summary::of(series);
        let periodic = series.period_ns > 0;
        vec![
            series.role.clone(),
            series.granted.policy.clone(),
            thread.cpus.clone(),
            grouped(series.samples),
            time(figures.p50_ns),
            time(figures.p99_ns),
            time(figures.max_ns),
            grouped(thread.cycles),
            time(thread.run_time.percentile(50.0)),
            time(top(&thread.run_time)),
            time(thread.response.percentile(50.0)),
            thread.longest.as_ref().map_or_else(|| "-".to_owned(), |cycle| unsigned(cycle.response_ns())),
            time(thread.interval.percentile(50.0)),
            if periodic { unsigned(series.period_ns) } else { "-".to_owned() },
            if periodic { grouped(series.missed) } else { "-".to_owned() },
        ]
    };
    let head = [
        "thread",
        "policy",
        "ran on CPUs",
        "wake-ups",
        "p50",
        "p99",
        "worst",
        "cycles",
        "run p50",
        "run max",
        "response p50",
        "response max",
        "interval p50",
        "period",
        "missed",
    ];
    let caption = "Wake-up latency and cycles of each thread. A cycle lasts from its release to its completion.";
    Table::plain(caption, &head, threads.iter().map(row).collect())
}

fn times(threads: &Threads) -> Table {
    let row = |&(series, thread): &(&Series, &ProcessThread)| {
        let times = &thread.times;
        let parts = [times.running_ns, times.ready_ns, times.preempted_ns, times.blocked_ns, times.unknown_ns];
        let mut cells = vec![series.role.clone()];
        cells.extend(parts.iter().map(|&ns| percent_in_column(ns, times.total_ns().max(1))));
        cells.extend([thread.preemptions, thread.migrations].map(grouped));
        cells
    };
    let head = ["thread", "ran", "runnable", "preempted", "slept", "unknown", "preemptions", "migrations"];
    Table::plain("Time of each thread by state", &head, threads.iter().map(row).collect())
}

fn delays(threads: &Threads) -> Table {
    let row = |&(series, thread): &(&Series, &ProcessThread)| {
        let late = culprits(series);
        let preempted = (!thread.preempted_by.is_empty()).then(|| preempters(thread));
        (late.is_some() || preempted.is_some())
            .then(|| vec![series.role.clone(), late.unwrap_or_default(), preempted.unwrap_or_default()])
    };
    let head = ["thread", "woken late by", "preempted by"];
    Table::plain("Causes of delay of each thread", &head, threads.iter().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use record::{Program, SeriesKind};

    use super::*;

    #[test]
    fn shows_a_thread_without_cycles() {
        let series = Series { role: "a<b".into(), kind: SeriesKind::Process(Box::default()), ..Series::default() };
        let record = Record { program: Some(Program::default()), series: vec![series], ..Record::default() };
        let view = section(&record).unwrap();
        assert_eq!(view.tables.len(), 2, "no table of delays");
        assert!(view.tables.iter().all(|table| table.rows.iter().all(|row| row.cells.len() == table.head.len())));
        assert!(section(&Record::default()).is_none());
        assert!(crate::html::render(&record).contains("a&#60;b"));
    }
}
