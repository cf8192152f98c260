//! What the figures mean: the ladder of uses, the verdict, and what stands against them.

use std::path::Path;

use analysis::{format_ns, on_short_ladder};
use record::{Caveat, Outcome, Reason, Record, UseVerdict, Validity, Verdict};

use super::page::{Note, Page};
use super::table::Table;
use super::{cell, count_cell, time};
use crate::style::Ink;

/// Which uses the machine can hold, from the least to the most demanding: those that were asked for, else the short
/// ladder, else all that the record judges.
pub(super) fn ladder(page: &mut Page, record: &Record) {
    let asked = |a_use: &&UseVerdict| record.scenario.profiles.iter().any(|name| is_profile(name, &a_use.profile));
    let choices: [Vec<&UseVerdict>; 3] = [
        record.uses.iter().filter(asked).collect(),
        record.uses.iter().filter(|a_use| on_short_ladder(a_use)).collect(),
        record.uses.iter().collect(),
    ];
    let Some(uses) = choices.into_iter().find(|uses| !uses.is_empty()) else { return };
    page.heading("Which uses can this machine hold?");
    let mut table = Table::new(&["", "use", "limit", "worst", "missed"]).words(1);
    for a_use in &uses {
        let (ink, word) = answer(a_use.outcome);
        table.row(vec![
            (ink, format!("{} {word}", page.style.mark(ink))),
            cell(&a_use.title),
            cell(format_ns(a_use.limit_ns)),
            cell(time(a_use.worst_ns)),
            count_cell(a_use.missed, a_use.missed.to_string()),
        ]);
    }
    page.table_with_notes(&table, &uses.into_iter().map(explanation).collect::<Vec<_>>());
}

/// The verdict on the profiles that were asked for. That a run is invalid is left to [`validity`].
pub(super) fn verdict(page: &mut Page, verdict: Option<&Verdict>) {
    if let Some(verdict) = verdict.filter(|verdict| verdict.outcome != Outcome::Invalid) {
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
    reasons(page, &validity.reasons);
}

/// Each reason with its remedy.
pub(super) fn reasons(page: &mut Page, reasons: &[Reason]) {
    for reason in reasons {
        let column = page.item(Ink::Alarm, "INVALID", 0, &reason.text);
        page.remedy(column, &reason.remedy);
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
pub(super) fn answer(outcome: Outcome) -> (Ink, &'static str) {
    match outcome {
        Outcome::Pass => (Ink::Good, "yes"),
        Outcome::Fail => (Ink::Bad, "no"),
        Outcome::Inconclusive => (Ink::Doubt, "not yet"),
        Outcome::Invalid => (Ink::Alarm, "invalid"),
    }
}

/// Whether `asked`, a name or the path of a file, is the profile `name`.
fn is_profile(asked: &str, name: &str) -> bool {
    Path::new(asked).file_stem().is_some_and(|stem| stem == name)
}

/// In whole sentences: whether samples lack, the reason, and what the samples allow to be said; then the command that
/// the reason ends with, on a line of its own.
fn explanation(a_use: &UseVerdict) -> Note {
    let (reason, command) = match a_use.outcome {
        // What all of them have in common stands below, once.
        Outcome::Invalid => ("", ""),
        _ => split_command(&a_use.reason),
    };
    let lacking = if a_use.outcome == Outcome::Inconclusive { "not enough samples yet" } else { "" };
    let parts = [lacking, reason, &a_use.statement];
    let text = parts.into_iter().filter(|part| !part.is_empty()).map(sentence).collect::<Vec<_>>().join(" ");
    Note { text, remedy: command.to_owned() }
}

/// Divides ``too few: run `this` `` into `too few` and `this`.
fn split_command(reason: &str) -> (&str, &str) {
    let Some((before, command)) = reason.strip_suffix('`').and_then(|rest| rest.rsplit_once('`')) else {
        return (reason, "");
    };
    (before.rsplit_once(": ").map_or(before, |(why, _)| why), command)
}

/// The text with a capital in front and a full stop behind.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
