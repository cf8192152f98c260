//! A user's own program: a row a thread, who kept it from its CPU, and what that means.

use analysis::{Summary, format_duration, format_ns, process::conclusion};
use record::{Histogram, ProcessThread, Record, Series};

use super::{
    facts::Fact,
    figure::{Row, Table},
    text::grouped,
};
use crate::{
    blame::{percent, unsigned},
    process::{culprits, ending, preempters, threads_left},
};

/// The program as the template sees it.
pub struct ProgramView {
    /// What it is, and how it ended.
    pub facts: Vec<Fact>,
    /// What its figures mean, a sentence each.
    pub conclusion: Vec<String>,
    /// Its threads: wake-ups and cycles; where their time went; who kept them from their CPUs.
    pub tables: Vec<Table>,
    /// Threads that have no row.
    pub left: Vec<String>,
}

/// The program of a record that has one.
pub fn section(record: &Record) -> Option<ProgramView> {
    let program = record.program.as_ref()?;
    let duration_ns: u64 = record.phases.iter().map(|phase| phase.duration_ns).sum();
    let threads = analysis::process::threads(record);
    let facts = vec![
        ("program", program.command.clone()),
        ("process", program.pid.to_string()),
        ("watched for", format_duration(duration_ns)),
        ("ended", ending(program)),
        ("events read", grouped(program.events)),
        ("CPU time of punctual", format!("{} of one CPU", percent(program.own_cpu_ns, duration_ns.max(1)))),
    ];
    let mut tables = vec![cycles(&threads), times(&threads), kept(&threads)];
    tables.retain(|table| !table.rows.is_empty());
    Some(ProgramView { facts, conclusion: conclusion(record), tables, left: threads_left(program) })
}

type Threads<'a> = [(&'a Series, &'a ProcessThread)];

fn table(caption: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table {
        caption: caption.to_owned(),
        head: head.iter().map(|&head| head.to_owned()).collect(),
        rows: rows.map(|cells| Row { swatch: String::new(), cells }).collect(),
    }
}

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
            thread.longest.map_or_else(|| "-".to_owned(), |cycle| unsigned(cycle.response_ns())),
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
        "latest",
        "cycles",
        "run p50",
        "run max",
        "response p50",
        "response max",
        "interval p50",
        "period",
        "missed",
    ];
    let caption = "Wake-up latency of each thread, and its cycles: from being woken to going to sleep again.";
    table(caption, &head, threads.iter().map(row))
}

fn times(threads: &Threads) -> Table {
    let row = |&(series, thread): &(&Series, &ProcessThread)| {
        let times = &thread.times;
        let parts = [times.running_ns, times.ready_ns, times.preempted_ns, times.blocked_ns, times.unknown_ns];
        let mut cells = vec![series.role.clone()];
        cells.extend(parts.iter().map(|&ns| percent(ns, times.total_ns().max(1))));
        cells.extend([thread.preemptions, thread.migrations].map(grouped));
        cells
    };
    let head = ["thread", "ran", "woken, no CPU", "preempted", "slept", "unknown", "preemptions", "migrations"];
    table("Where the time of each thread went.", &head, threads.iter().map(row))
}

fn kept(threads: &Threads) -> Table {
    let row = |&(series, thread): &(&Series, &ProcessThread)| {
        let late = culprits(series);
        let preempted = (!thread.preempted_by.is_empty()).then(|| preempters(thread));
        (late.is_some() || preempted.is_some())
            .then(|| vec![series.role.clone(), late.unwrap_or_default(), preempted.unwrap_or_default()])
    };
    let head = ["thread", "woken late by", "preempted by"];
    table("Who kept each thread from its CPU.", &head, threads.iter().filter_map(row))
}

#[cfg(test)]
mod tests {
    use record::{Program, SeriesKind};

    use super::*;

    #[test]
    fn a_thread_without_a_cycle_has_a_row_too() {
        let series = Series {
            role: "a<b".into(),
            kind: SeriesKind::Process(Box::new(ProcessThread::default())),
            ..Series::default()
        };
        let record = Record { program: Some(Program::default()), series: vec![series], ..Record::default() };
        let view = section(&record).unwrap();
        assert_eq!(view.tables.len(), 2, "nobody kept it from its CPU");
        assert!(view.tables.iter().all(|table| table.rows.iter().all(|row| row.cells.len() == table.head.len())));
        assert!(section(&Record::default()).is_none());
        assert!(crate::html::render(&record).contains("a&#60;b"));
    }
}
