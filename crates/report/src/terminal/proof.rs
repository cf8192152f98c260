//! The result of a search for the changes that help.

use record::Proof;

use super::page::Page;
use super::table::Table;
use crate::proof::{answer, blocks, details, ending, measurement, rows};
use crate::style::Ink;

/// Rows of the short table; the page has all.
const ROWS: usize = 12;

/// Writes the answer.
pub(super) fn headline(page: &mut Page, proof: &Proof) {
    let answer = answer(proof);
    let ink = match (answer.is_found, &proof.conclusion) {
        (true, _) => Ink::Good,
        (false, Some(_)) => Ink::Plain,
        (false, None) => Ink::Alarm,
    };
    page.answer(ink, &answer.sentence);
}

/// Writes the whole page; with `full`, all figures of all candidates.
pub(super) fn page(page: &mut Page, proof: &Proof, full: bool) {
    headline(page, proof);
    let answer = answer(proof);
    if !answer.reason.is_empty() {
        page.text(Ink::Plain, &answer.reason);
    }
    let rows = rows(proof);
    if !rows.is_empty() {
        page.gap();
        let mut table = Table::new(&["change", "figure", "effect", "interval", "result"]).words(1).words(4);
        for row in rows {
            let plain = |text: String| (Ink::Plain, text);
            table.row(vec![
                plain(row.name.to_owned()),
                plain(row.figure.to_owned()),
                plain(row.effect),
                plain(row.interval),
                (row.ink, row.judgement),
            ]);
        }
        page.table(&if full { table } else { table.at_most(ROWS) });
    }
    if full && proof.conclusion.is_some() {
        page.heading("All figures");
        let all = details(proof);
        let mut table = Table::new(&all.headings).words(1);
        all.rows.into_iter().for_each(|row| table.row(row.into_iter().map(|text| (Ink::Plain, text)).collect()));
        page.table(&table);
    }
    page.gap();
    let (screening, confirmation) = blocks(proof);
    let measured = format!(
        "{}: {screening} blocks of four to find what helps, {confirmation} to confirm it. Effect: the figure with the change \
         against the figure without it. The intervals of each of the two stages are right together \
         in 98 % of searches.",
        measurement(proof)
    );
    page.text(Ink::Quiet, &measured);
    if !ending(proof).is_empty() {
        page.remark(&format!("{} To continue, run in the same folder: {}", ending(proof), proof.next_command()));
    }
}
