//! Streams: figures of talker and listener, and late frames by wake-up offset.

use record::Series;

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::stream::{CURVE, CURVE_TITLE, EndSummary, Figure, STREAMS, TIMES, summarize};
use crate::style::Ink;

/// One end of a stream with all its figures; nothing for other series.
pub(super) fn section(page: &mut Page, series: &Series) {
    let Some(end) = summarize(series) else { return };
    page.heading(&end.title);
    for (name, text) in &end.first {
        page.line(&vec![cell(format!("{name} = ")), (Ink::Title, text.clone())]);
    }
    if !end.figures.is_empty() {
        figures(page, &end);
    }
    page.text(Ink::Quiet, &end.remarks);
    if !end.addresses.is_empty() {
        page.text(Ink::Quiet, &end.addresses);
    }
    curve(page, &end);
}

fn figures(page: &mut Page, end: &EndSummary) {
    let [figures, presentation] = [&end.figures, &end.presentation].map(|figures| one_row(figures));
    let mut times = Table::new(&TIMES);
    for [name, percentiles @ .., max] in &end.times {
        let percentiles = percentiles.iter().map(cell);
        times.row([cell(name)].into_iter().chain(percentiles).chain([(Ink::Title, max.clone())]).collect());
    }
    let mut streams = Table::new(&STREAMS);
    for row in &end.streams {
        streams.row(row.iter().map(cell).collect());
    }
    let tables = [figures, presentation, streams, times].into_iter().zip([
        true,
        !end.presentation.is_empty(),
        !end.streams.is_empty(),
        true,
    ]);
    for (table, _) in tables.filter(|(_, is_filled)| *is_filled) {
        page.gap();
        page.table(&table);
    }
}

/// A table of figures, with their names in its head.
fn one_row(figures: &[Figure]) -> Table {
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    let mut table = Table::new(&names).figures();
    let ink = |bad| if bad { Ink::Bad } else { Ink::Plain };
    table.row(figures.iter().map(|figure| (ink(figure.bad), figure.text.clone())).collect());
    table
}

/// Late frames by wake-up offset, and how the offset was found.
fn curve(page: &mut Page, end: &EndSummary) {
    if !end.calibration.is_empty() {
        page.gap();
        page.text(Ink::Plain, &end.calibration);
    }
    if end.curve.is_empty() {
        return;
    }
    let mut table = Table::new(&CURVE).figures();
    for (cells, is_of_run) in &end.curve {
        let ink = if *is_of_run { Ink::Title } else { Ink::Plain };
        table.row(cells.iter().map(|text| (ink, text.clone())).collect());
    }
    page.gap();
    page.text(Ink::Plain, CURVE_TITLE);
    page.table(&table);
}
