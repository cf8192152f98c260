//! The comparison of two sides.

use record::{Versus, versus::Across};

use super::page::Page;
use super::table::Table;
use crate::style::Ink;
use crate::versus::{HEADINGS, across, answer, changes, differs, name, not_judged, notes, rows, side};

/// Rows of conditions in the short result.
const CONDITIONS: usize = 8;

/// Writes the answer.
pub(super) fn headline(page: &mut Page, versus: &Versus) {
    let answer = answer(versus);
    page.answer(answer.ink, &format!("{}  {}", answer.word, answer.sentence));
}

/// Writes the whole page; with `full`, all conditions.
pub(super) fn page(page: &mut Page, versus: &Versus, full: bool) {
    headline(page, versus);
    page.fact("A", 1, &side(&versus.a));
    page.fact("B", 1, &side(&versus.b));
    for group in &versus.groups {
        page.gap();
        page.text(Ink::Plain, &name(group));
        let mut table = Table::new(&HEADINGS).words(5);
        for row in rows(group) {
            let [cells @ .., result] = row.cells;
            let plain = cells.into_iter().map(|text| (Ink::Plain, text));
            table.row(plain.chain([(row.ink, result)]).collect());
        }
        page.table(&table);
        not_judged(group).iter().for_each(|reason| page.below(4, Ink::Quiet, reason));
        let conditions: Vec<String> =
            differs(&group.differs).into_iter().map(|[what, a, b]| format!("{what} {a} / {b}")).collect();
        if !conditions.is_empty() {
            page.below(4, Ink::Alarm, &format!("Differs: {}.", conditions.join("; ")));
        }
    }
    let conditions = differs(&versus.differs);
    if !conditions.is_empty() {
        page.heading("These conditions differ, or vary within a side");
        let mut table = Table::new(&["", "A", "B"]).words(1).words(2);
        let shown = if full { conditions.len() } else { CONDITIONS };
        for row in conditions.iter().take(shown) {
            table.row(row.iter().map(|text| (Ink::Plain, text.clone())).collect());
        }
        page.table(&table);
        if conditions.len() > shown {
            page.text(Ink::Quiet, &format!("{} more with --full", conditions.len() - shown));
        }
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
    page.text(
        Ink::Quiet,
        "Each value is compared with the one above. Other conditions may differ, too: compare two of them with --full.",
    );
}

/// Writes the changes, or that there are none.
pub(super) fn across_headline(page: &mut Page, of: &Across) {
    let changes = changes(of);
    if changes.is_empty() {
        page.answer(Ink::Plain, &format!("No change is shown across {} values of {}.", of.steps.len(), of.what));
    }
    changes.into_iter().for_each(|(sentence, ink)| page.answer(ink, &sentence));
}
