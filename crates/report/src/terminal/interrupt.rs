//! The sections of interrupts: outcomes, and the way to the thread with its parts.

use record::{Interrupts, Series, grouped};

use super::page::Page;
use super::table::Table;
use super::{bad_if_any, cell, count_cell};
use crate::interrupt::{outcomes, remarks, times, title};
use crate::round_trip::TIMES;
use crate::style::{Ink, Spans};

/// A series of interrupts with all its figures.
pub(super) fn section(page: &mut Page, series: &Series, interrupts: &Interrupts) {
    page.heading(&title(interrupts));
    let outcomes = outcomes(series, interrupts);
    let mut table = Table::new(&outcomes.map(|(name, ..)| name)).figures();
    let count = |(_, count, bad): (&str, u64, bool)| (bad_if_any(if bad { count } else { 0 }), grouped(count));
    table.row(outcomes.map(count).to_vec());
    page.table(&table);
    page.gap();
    let mut table = Table::new(&["time"].into_iter().chain(TIMES).collect::<Vec<_>>());
    for (row, (name, figures)) in times(series, interrupts).into_iter().enumerate() {
        // The first row is the whole way.
        let ink = if row == 0 { Ink::Title } else { Ink::Plain };
        table.row([cell(name)].into_iter().chain(figures.map(|figure| (ink, figure))).collect());
    }
    page.table(&table);
    page.text(Ink::Quiet, &remarks(interrupts));
}

/// The way from the question of a judge to the answer, and the way of each series to its thread, with its parts.
pub(super) fn brief(all: &[&Series]) -> Table {
    let mut table = Table::new(&["", "p50", "p99.9", "worst", "lost"]);
    for series in all {
        if series.kind.responses().is_none() {
            continue;
        }
        let [_, _, p50, _, p99_9, max] = crate::response::times(series);
        table.row(vec![cell("question to answer"), cell(p50), cell(p99_9), cell(max), count_cell(series.absent())]);
    }
    for series in all {
        let Some(interrupts) = series.kind.interrupts() else { continue };
        for (row, (name, [_, _, p50, _, p99_9, max])) in times(series, interrupts).into_iter().enumerate() {
            let lost = if row == 0 { count_cell(series.absent()) } else { cell("") };
            let cells: Spans = vec![cell(name), cell(p50), cell(p99_9), cell(max), lost];
            table.row(cells);
        }
    }
    table
}
