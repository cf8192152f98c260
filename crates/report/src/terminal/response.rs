//! The sections of responses to an outside judge: outcomes, and times from question to answer.

use record::{Responses, Series, grouped};

use super::page::Page;
use super::table::Table;
use super::{bad_if_any, cell};
use crate::response::{outcomes, remarks, times, title};
use crate::round_trip::TIMES;
use crate::style::{Ink, Spans};

/// A series of responses with all its figures.
pub(super) fn section(page: &mut Page, series: &Series, responses: &Responses) {
    page.heading(&title(responses));
    let outcomes = outcomes(responses);
    let names: Vec<&str> = outcomes.iter().map(|(name, ..)| *name).collect();
    let mut table = Table::new(&names).figures();
    let count = |(_, count, bad): (&str, u64, bool)| (bad_if_any(if bad { count } else { 0 }), grouped(count));
    table.row(outcomes.into_iter().map(count).collect());
    page.table(&table);
    page.gap();
    let mut table = Table::new(&["time"].into_iter().chain(TIMES).collect::<Vec<_>>());
    let figures: Spans = times(series).map(|figure| (Ink::Title, figure)).to_vec();
    table.row([cell("question to answer")].into_iter().chain(figures).collect());
    page.table(&table);
    page.text(Ink::Quiet, &remarks(responses));
}
