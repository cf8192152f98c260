//! The comparison of two sides.

use record::{Versus, counted, versus::Across};

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::style::Ink;
use crate::versus::{
    HEADINGS, across, across_lead, across_notes, answer, answers, changes, decisive, differs, names, notes,
    pair_tables, remarks, rows, side,
};

/// Writes the answer.
pub(super) fn headline(page: &mut Page, versus: &Versus) {
    let answer = answer(versus);
    page.answer(answer.ink, &format!("{}  {}", answer.word, answer.sentence));
}

/// Writes the page: in short, the group that decides and the names of conditions; with `full`, everything.
pub(super) fn page(page: &mut Page, versus: &Versus, full: bool) {
    headline(page, versus);
    page.fact("A", 1, &side(&versus.a));
    page.fact("B", 1, &side(&versus.b));
    let decides = decisive(versus);
    let shown = |index: usize| full || index == decides;
    let groups = versus.groups.iter().zip(names(versus)).enumerate();
    for (_, (group, name)) in groups.filter(|(index, _)| shown(*index)) {
        page.gap();
        page.text(Ink::Plain, &name);
        let mut table = Table::new(&HEADINGS).words(5);
        for row in rows(group) {
            let [cells @ .., result] = row.cells;
            let plain = cells.into_iter().map(|text| (Ink::Plain, text));
            table.row(plain.chain([(row.ink, result)]).collect());
        }
        page.table(&table);
        remarks(group).iter().for_each(|remark| page.below(4, Ink::Quiet, remark));
        let conditions: Vec<String> =
            differs(&group.differs).into_iter().map(|[what, a, b]| format!("{what} {a} / {b}")).collect();
        if !conditions.is_empty() {
            page.below(4, Ink::Alarm, &format!("Differs: {}.", conditions.join("; ")));
        }
    }
    if !full && versus.groups.len() > 1 {
        let pairs = if versus.pairs.is_empty() { "" } else { ", and each pair of CPUs" };
        page.gap();
        page.text(
            Ink::Quiet,
            &format!("{} of threads{pairs}: --full", counted(versus.groups.len() as u64 - 1, "more group")),
        );
    }
    for of_load in pair_tables(versus).into_iter().filter(|_| full) {
        page.heading(&of_load.caption);
        let mut table = Table::new(&of_load.head);
        of_load.rows.into_iter().for_each(|row| table.row(row.into_iter().map(cell).collect()));
        page.table(&table);
    }
    let conditions = differs(&versus.differs);
    if !conditions.is_empty() && !full {
        let names: Vec<&str> = versus.differs.iter().map(|differs| differs.what.as_str()).collect();
        page.gap();
        page.text(
            Ink::Alarm,
            &format!("Conditions that differ, or vary within a side (--full): {}.", names.join(", ")),
        );
    } else if !conditions.is_empty() {
        page.heading("These conditions differ, or vary within a side");
        let mut table = Table::new(&["", "A", "B"]).words(1).words(2);
        for row in conditions {
            table.row(row.map(|text| (Ink::Plain, text)).to_vec());
        }
        page.table(&table);
    }
    if !versus.alone.is_empty() {
        page.text(Ink::Plain, &format!("Without a counterpart: {}.", versus.alone.join("; ")));
    }
    let notes = notes(versus);
    if !notes.is_empty() {
        page.gap();
    }
    notes.iter().for_each(|note| page.text(Ink::Quiet, note));
}

/// Writes the same measurement across the values of a condition.
pub(super) fn across_page(page: &mut Page, of: &Across) {
    across_headline(page, of);
    for group in across(of) {
        page.gap();
        page.text(Ink::Plain, &group.name);
        let last = group.headings.len() - 1;
        let mut table = Table::new(&group.headings).words(last);
        for (cells, ink) in group.rows {
            let with_ink = |(index, text)| (if index == last { ink } else { Ink::Plain }, text);
            table.row(cells.into_iter().enumerate().map(with_ink).collect());
        }
        page.table(&table);
    }
    page.gap();
    page.text(Ink::Quiet, across_lead(of));
    across_notes(of).iter().for_each(|note| page.text(Ink::Quiet, note));
}

/// Writes the changes, or that there are none.
pub(super) fn across_headline(page: &mut Page, of: &Across) {
    let changes = changes(of);
    if changes.is_empty() {
        answers(of).iter().for_each(|sentence| page.answer(Ink::Plain, sentence));
    }
    changes.into_iter().for_each(|(sentence, ink)| page.answer(ink, &sentence));
}
