//! Interrupts: tables of outcomes, and of the way to the thread.

use record::{Record, grouped};

use super::figure::{Part, Table};
use crate::interrupt::{outcomes, remarks, times, title};
use crate::round_trip::TIMES;

/// The section of each series of interrupts.
pub fn sections(record: &Record) -> Vec<Part> {
    let all = record.series.iter().filter_map(|series| Some((series, series.kind.interrupts()?)));
    let section = |(series, interrupts)| {
        let outcomes = outcomes(series, interrupts);
        let counts = outcomes.iter().map(|(_, count, _)| grouped(*count)).collect();
        let names = outcomes.map(|(name, ..)| name);
        let head: Vec<&str> = ["time"].into_iter().chain(TIMES).collect();
        let rows = times(series, interrupts).into_iter();
        let rows = rows.map(|(name, figures)| [name.to_owned()].into_iter().chain(figures).collect()).collect();
        Part {
            name: "Interrupts".to_owned(),
            title: title(interrupts),
            tables: vec![
                Table::plain("Interrupts by outcome", &names, vec![counts]),
                Table::plain("The way from the interrupt to the thread", &head, rows),
            ],
            more: Vec::new(),
            notes: vec![remarks(interrupts)],
            only_on_screen: false,
        }
    };
    all.map(section).collect()
}
