//! Streams: what a talker sent and when, what a listener got, and which wake-up offset the machine needs.

use record::Series;

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::stream::{CURVE, CURVE_TITLE, TIMES, Told, told};
use crate::style::Ink;

/// One end of a stream with all its figures; nothing for another series.
pub(super) fn section(page: &mut Page, series: &Series) {
    let Some(told) = told(series) else { return };
    page.heading(&told.title);
    for (name, text) in &told.first {
        page.line(&vec![cell(format!("{name} = ")), (Ink::Title, text.clone())]);
    }
    if !told.figures.is_empty() {
        figures(page, &told);
    }
    page.text(Ink::Quiet, &told.remarks);
    curve(page, &told);
}

fn figures(page: &mut Page, told: &Told) {
    let names: Vec<&str> = told.figures.iter().map(|figure| figure.name).collect();
    let mut figures = Table::new(&names).figures();
    let ink = |bad| if bad { Ink::Bad } else { Ink::Plain };
    figures.row(told.figures.iter().map(|figure| (ink(figure.bad), figure.text.clone())).collect());
    let mut times = Table::new(&TIMES);
    for [name, percentiles @ .., max] in &told.times {
        let percentiles = percentiles.iter().map(cell);
        times.row([cell(name)].into_iter().chain(percentiles).chain([(Ink::Title, max.clone())]).collect());
    }
    for table in [figures, times] {
        page.gap();
        page.table(&table);
    }
}

/// Which offset would have made how many packets late.
fn curve(page: &mut Page, told: &Told) {
    if !told.calibration.is_empty() {
        page.gap();
        page.text(Ink::Plain, &told.calibration);
    }
    if told.curve.is_empty() {
        return;
    }
    let mut table = Table::new(&CURVE).figures();
    for (cells, is_of_run) in &told.curve {
        let ink = if *is_of_run { Ink::Title } else { Ink::Plain };
        table.row(cells.iter().map(|text| (ink, text.clone())).collect());
    }
    page.gap();
    page.text(Ink::Plain, CURVE_TITLE);
    page.table(&table);
}
