//! The ladder of uses, the verdict, caveats, and reasons why a run is invalid.

use analysis::{format_ns, on_short_ladder};
use record::{Caveat, Outcome, Reason, Record, UseVerdict, Validity, Verdict};

use super::page::{Note, Page};
use super::table::Table;
use super::{cell, count_cell, time};
use crate::style::Ink;
use crate::words::{is_profile, sentence};

/// The uses from the least to the most demanding: requested ones, otherwise those of the short ladder, otherwise all.
pub(super) fn ladder(page: &mut Page, record: &Record) {
    let requested = |a_use: &&UseVerdict| record.scenario.profiles.iter().any(|name| is_profile(name, &a_use.profile));
    let choices: [Vec<&UseVerdict>; 3] = [
        record.uses.iter().filter(requested).collect(),
        record.uses.iter().filter(|a_use| on_short_ladder(a_use)).collect(),
        record.uses.iter().collect(),
    ];
    let Some(uses) = choices.into_iter().find(|uses| !uses.is_empty()) else { return };
    page.heading("Is this machine fit for these uses?");
    let mut table = Table::new(&["", "use", "limit", "worst", "missed"]).words(1).named_by(2);
    for a_use in &uses {
        let (ink, word) = if a_use.clean_so_far { (Ink::Doubt, "so far") } else { answer(a_use.outcome) };
        table.row(vec![
            (ink, format!("{} {word}", page.style.mark(ink))),
            cell(&a_use.title),
            cell(format_ns(a_use.limit_ns)),
            cell(time(a_use.worst_ns)),
            a_use.missed_known().map_or_else(|| cell("-"), count_cell),
        ]);
    }
    page.table_with_notes(&table, &uses.into_iter().map(explanation).collect::<Vec<_>>());
}

/// The verdict on the requested profiles. Invalid runs are left to [`validity`].
pub(super) fn verdict(page: &mut Page, verdict: Option<&Verdict>) {
    if let Some(verdict) = verdict.filter(|verdict| verdict.outcome != Outcome::Invalid) {
        page.heading("Verdict");
        page.item(answer(verdict.outcome).0, verdict.outcome.name(), 0, &verdict.reason);
    }
}

/// The reasons why the run does not support a real-time verdict, with remedies.
pub(super) fn validity(page: &mut Page, validity: &Validity) {
    if validity.valid {
        return;
    }
    page.heading("This run is INVALID for a real-time verdict: it did not run as requested");
    reasons(page, &validity.reasons);
}

/// The reasons with their remedies.
pub(super) fn reasons(page: &mut Page, reasons: &[Reason]) {
    for reason in reasons {
        let column = page.item(Ink::Alarm, "INVALID", 0, &reason.text);
        page.remedy(column, &reason.remedy);
    }
}

/// Doubts about the figures.
pub(super) fn caveats(page: &mut Page, caveats: &[Caveat]) {
    if caveats.is_empty() {
        return;
    }
    page.heading("Caveats of these figures");
    let column = caveats.iter().map(|caveat| caveat.kind.chars().count()).max().unwrap_or(0).min(10);
    for caveat in caveats {
        page.fact(&caveat.kind, column, &caveat.text);
    }
}

/// An outcome as the answer to: is this machine fit for the use?
pub(super) fn answer(outcome: Outcome) -> (Ink, &'static str) {
    match outcome {
        Outcome::Pass => (Ink::Good, "yes"),
        Outcome::Fail => (Ink::Bad, "no"),
        Outcome::Inconclusive => (Ink::Doubt, "not yet"),
        Outcome::Invalid => (Ink::Alarm, "invalid"),
    }
}

/// Sentences about a use: the reason, and the conclusion that the samples allow, unless the reason contains it; then the
/// command at the end of the reason, on its own line.
fn explanation(a_use: &UseVerdict) -> Note {
    let (reason, command) = match a_use.outcome {
        // The reasons for an invalid run are listed once, below.
        Outcome::Invalid => ("", ""),
        _ => split_command(&a_use.reason),
    };
    let statement = if a_use.clean_so_far { "" } else { &a_use.statement };
    let parts = [reason, statement];
    let text = parts.into_iter().filter(|part| !part.is_empty()).map(sentence).collect::<Vec<_>>().join(" ");
    Note { text, remedy: command.to_owned() }
}

/// Splits ``too few: run `this` `` into `too few` and `this`.
fn split_command(reason: &str) -> (&str, &str) {
    let Some((before, command)) = reason.strip_suffix('`').and_then(|rest| rest.rsplit_once('`')) else {
        return (reason, "");
    };
    (before.rsplit_once(": ").map_or(before, |(why, _)| why), command)
}
