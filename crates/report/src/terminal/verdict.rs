//! What the figures mean: the ladder of uses, the verdict, and what stands against them.

use analysis::format_ns;
use record::{Caveat, Outcome, UseVerdict, Validity, Verdict};

use super::page::Page;
use super::table::Table;
use super::{cell, count_cell, time};
use crate::style::Ink;

/// Which uses the machine can hold, from the least to the most demanding.
pub(super) fn ladder(page: &mut Page, uses: &[UseVerdict]) {
    if uses.is_empty() {
        return;
    }
    page.heading("Which uses can this machine hold?");
    let mut table = Table::new(&["", "use", "limit", "worst", "missed"]).words(1);
    for a_use in uses {
        let (ink, word) = answer(a_use.outcome);
        table.row(vec![
            (ink, format!("{} {word}", page.style.mark(ink))),
            cell(&a_use.title),
            cell(format_ns(a_use.limit_ns)),
            cell(time(a_use.worst_ns)),
            count_cell(a_use.missed, a_use.missed.to_string()),
        ]);
    }
    page.table_with_notes(&table, &uses.iter().map(explanation).collect::<Vec<_>>());
}

/// The verdict on the profiles that were asked for.
pub(super) fn verdict(page: &mut Page, verdict: Option<&Verdict>) {
    if let Some(verdict) = verdict {
        page.heading("Verdict");
        page.item(answer(verdict.outcome).0, verdict.outcome.name(), 0, &verdict.reason);
    }
}

/// Why the figures may not support a real-time verdict, and what to do about it.
pub(super) fn validity(page: &mut Page, validity: &Validity) {
    if validity.valid {
        return;
    }
    page.heading("This run is INVALID for a real-time verdict: what was asked for is not what ran");
    for reason in &validity.reasons {
        let column = page.item(Ink::Alarm, "INVALID", 0, &reason.text);
        page.command(column, &reason.remedy);
    }
}

/// What the record cannot tell.
pub(super) fn caveats(page: &mut Page, caveats: &[Caveat]) {
    if caveats.is_empty() {
        return;
    }
    page.heading("What these figures cannot tell");
    let column = caveats.iter().map(|caveat| caveat.kind.chars().count()).max().unwrap_or(0).min(10);
    for caveat in caveats {
        page.fact(&caveat.kind, column, &caveat.text);
    }
}

/// An outcome as the answer to: can this machine hold the use?
fn answer(outcome: Outcome) -> (Ink, &'static str) {
    match outcome {
        Outcome::Pass => (Ink::Good, "yes"),
        Outcome::Fail => (Ink::Bad, "no"),
        Outcome::Inconclusive => (Ink::Doubt, "not yet"),
        Outcome::Invalid => (Ink::Alarm, "invalid"),
    }
}

fn explanation(a_use: &UseVerdict) -> String {
    let place = if a_use.worst_where.is_empty() { String::new() } else { format!("Worst on {}. ", a_use.worst_where) };
    let lead = if a_use.outcome == Outcome::Inconclusive { "Not enough samples yet. " } else { "" };
    format!("{lead}{place}{} {}", a_use.reason, a_use.statement)
}
