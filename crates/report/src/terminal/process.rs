//! A watched program: one row per thread, the causes of its delays, and a conclusion.

use std::cmp::Reverse;

use analysis::{
    Summary, format_duration, format_ns,
    process::{broken_rules, conclusion},
};
use record::{Histogram, ProcessThread, Program, Record, Series, grouped};

use super::page::Page;
use super::table::Table;
use super::{bad_if_any, cell, count_cell, time};
use crate::blame::{percent, percent_in_column, unsigned};
use crate::process::{culprits, ending, monitors, preempters, threads_left};
use crate::style::{Ink, Spans};

/// The number of threads with named culprits.
const NAMED: usize = 3;
/// The number of rows in the tables.
const ROWS: usize = 32;

/// The program, its threads, and a conclusion.
pub(super) fn page(page: &mut Page, record: &Record, program: &Program) {
    heading(page, record, program);
    let all = analysis::process::threads(record);
    let shown = &all[..all.len().min(ROWS)];
    page.table(&latencies(shown));
    page.gap();
    page.table(&times(shown));
    if all.len() > ROWS {
        page.text(
            Ink::Quiet,
            &format!("{} more threads: `punctual show --json` lists all of the newest record", all.len() - ROWS),
        );
    }
    for remark in threads_left(program) {
        page.text(Ink::Quiet, &remark);
    }
    for (series, _) in shown {
        for note in &series.notes {
            page.remark(&format!("{}: {note}", series.role));
        }
    }
    delays(page, shown);
    let rules = broken_rules(record);
    if !rules.is_empty() {
        page.heading("Rules for real-time threads");
    }
    for paragraph in rules {
        page.text(Ink::Plain, &paragraph);
    }
    page.heading("Conclusion");
    for sentence in conclusion(record) {
        page.text(Ink::Plain, &sentence);
    }
}

fn heading(page: &mut Page, record: &Record, program: &Program) {
    let duration_ns = record.phases.iter().map(|phase| phase.duration_ns).sum();
    let loads = record.phases.iter().flat_map(|phase| &phase.asked_loads).cloned().collect::<Vec<_>>().join(", ");
    let loads = if loads.is_empty() { String::new() } else { format!(" under load ({loads})") };
    page.heading(&format!("Process {} watched for {}{loads}", program.pid, format_duration(duration_ns)));
    page.fact("program", 7, &program.command);
    page.fact("ended", 7, &ending(program));
    let cost = percent(program.own_cpu_ns, duration_ns.max(1));
    page.fact("cost", 7, &format!("{} events read, using {cost} of one CPU", grouped(program.events)));
    if let Some(monitors) = monitors(program) {
        page.fact("rules", 7, &format!("checked by punctual, and by the kernel's monitors {monitors}"));
    }
    if !record.command.is_empty() {
        page.text(Ink::Plain, "repeat with");
        page.remedy(4, &record::shell::command(&record.command));
    }
}

/// Wake-up latency, times and missed deadlines of each thread.
fn latencies(threads: &[(&Series, &ProcessThread)]) -> Table {
    let mut table = Table::new(&[
        "thread",
        "policy",
        "wake-ups",
        "p50",
        "p99",
        "worst",
        "run p50",
        "run max",
        "response max",
        "period",
        "missed",
    ])
    .words(1);
    for (series, thread) in threads {
        table.row(latency_row(series, thread));
    }
    table
}

fn latency_row(series: &Series, thread: &ProcessThread) -> Spans {
    let figures = Summary::of(series);
    let top = |histogram: &Histogram| histogram.iter().next_back().map(|(value_ns, _)| value_ns);
    let (period, missed) = match series.period_ns {
        // The median interval, as an estimate.
        0 => (
            thread.interval.percentile(50.0).map_or_else(|| "-".to_owned(), |ns| format!("~{}", format_ns(ns))),
            cell("-"),
        ),
        period_ns => (unsigned(period_ns), count_cell(series.missed)),
    };
    let response = thread.longest.as_ref().map(|cycle| unsigned(cycle.response_ns()));
    vec![
        cell(&series.role),
        cell(&series.granted.policy),
        cell(grouped(series.samples)),
        cell(time(figures.p50_ns)),
        cell(time(figures.p99_ns)),
        cell(time(figures.max_ns)),
        cell(time(thread.run_time.percentile(50.0))),
        cell(time(top(&thread.run_time))),
        cell(response.unwrap_or_else(|| "-".to_owned())),
        cell(period),
        missed,
    ]
}

/// The time of each thread by state.
fn times(threads: &[(&Series, &ProcessThread)]) -> Table {
    let mut table = Table::new(&[
        "thread",
        "ran",
        "runnable",
        "preempted",
        "slept",
        "unknown",
        "preemptions",
        "migrations",
        "on CPUs",
    ]);
    for (series, thread) in threads {
        let all_ns = thread.times.total_ns().max(1);
        let share = |ns| cell(percent_in_column(ns, all_ns));
        let unknown = thread.times.unknown_ns;
        table.row(vec![
            cell(&series.role),
            share(thread.times.running_ns),
            share(thread.times.ready_ns),
            share(thread.times.preempted_ns),
            share(thread.times.blocked_ns),
            (bad_if_any(unknown), percent_in_column(unknown, all_ns)),
            cell(grouped(thread.preemptions)),
            cell(grouped(thread.migrations)),
            cell(&thread.cpus),
        ]);
    }
    table
}

/// The causes of delays of the worst threads.
fn delays(page: &mut Page, threads: &[(&Series, &ProcessThread)]) {
    let late = threads.iter().filter(|(series, _)| !series.spikes.is_empty()).take(NAMED);
    let mut waited: Vec<_> = threads.iter().filter(|(_, thread)| !thread.preempted_by.is_empty()).collect();
    waited.sort_by_key(|(_, thread)| Reverse(thread.times.preempted_ns));
    waited.truncate(NAMED);
    let late: Vec<_> = late.filter_map(|(series, _)| Some((series, culprits(series)?))).collect();
    if late.is_empty() && waited.is_empty() {
        return;
    }
    page.heading("Causes of delay");
    for (series, culprits) in late {
        page.text(Ink::Plain, &format!("{}, woken late by: {culprits}", series.role));
    }
    for (series, thread) in waited {
        page.text(Ink::Plain, &format!("{}, preempted by: {}", series.role, preempters(thread)));
    }
}
