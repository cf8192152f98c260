//! A record of published figures.

use record::{Published, Record};

use super::page::Page;
use super::table::Table;
use super::{cell, compare, verdict};
use crate::compare::{COLUMNS, jitter_tables, not_ours, published_notes, published_row, tool};
use crate::style::Ink;
use crate::words::cpus;

/// The whole page: source, machine, figures and caveats.
pub(super) fn page(page: &mut Page, record: &Record, published: &Published) {
    page.heading(&format!("{}: {}", published.name, not_ours(record).1));
    source(page, record, published);
    figures(page, published);
    for of_load in jitter_tables(record) {
        page.heading(&of_load.caption);
        let mut table = Table::new(&of_load.head);
        of_load.rows.into_iter().for_each(|row| table.row(row.into_iter().map(cell).collect()));
        page.table(&table);
    }
    if !published.remarks.is_empty() {
        page.heading("Remarks of the source");
        published.remarks.iter().for_each(|remark| page.text(Ink::Plain, remark));
    }
    verdict::caveats(page, &record.caveats);
    compare::section(page, record);
    if !record.uses.is_empty() {
        page.heading("Verdict");
    }
    for a_use in &record.uses {
        page.item(Ink::Doubt, a_use.outcome.name(), 0, &format!("{}: {}", a_use.title, a_use.reason));
    }
}

fn source(page: &mut Page, record: &Record, published: &Published) {
    let machine = &record.machine;
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    let facts = [
        ("title", published.title.clone()),
        ("by", published.author.clone()),
        ("where", published.place.clone()),
        ("when", published.date.clone()),
        ("address", published.url.clone()),
        ("machine", published.on.clone()),
        ("CPU", known(&machine.cpu_model)),
        ("kernel", known(&machine.kernel)),
        ("measured", tool(published)),
        ("isolated", machine.cpus_isolated.as_ref().map(|list| cpus(list)).unwrap_or_default()),
    ];
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        page.fact(name, 8, text);
    }
}

/// One row per set of figures, without empty columns, and notes.
fn figures(page: &mut Page, published: &Published) {
    let rows: Vec<_> = published.figures.iter().map(published_row).collect();
    let filled: Vec<usize> = (0..COLUMNS.len()).filter(|&c| rows.iter().any(|row| !row[c].is_empty())).collect();
    let mut table = Table::new(&filled.iter().map(|&column| COLUMNS[column]).collect::<Vec<_>>()).words(1);
    for row in &rows {
        let text = |&column: &usize| if row[column].is_empty() { "-" } else { row[column].as_str() };
        table.row(filled.iter().map(|column| cell(text(column))).collect());
    }
    page.heading("Figures");
    page.table(&table);
    page.gap();
    for (name, note) in published_notes(published) {
        page.text(Ink::Plain, &format!("{name}: {note}"));
    }
}
