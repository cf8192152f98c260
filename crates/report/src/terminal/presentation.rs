//! Presentation times of a captured stream.

use analysis::format_ns;
use record::{CaptureClock, CapturedMediaChange, CapturedPresentation, ClockReference, counted, grouped};

use super::capture::seconds;
use super::page::Page;
use super::table::Table;
use super::{cell, count_cell};
use crate::blame::unsigned;
use crate::style::Ink;

/// The section; nothing for a stream without presentation times.
pub(super) fn section(page: &mut Page, found: Option<&CapturedPresentation>) {
    let Some(found) = found else { return };
    page.heading("Presentation times");
    if let Some(reference) = &found.reference {
        page.fact("clock", 9, &clock_reference(reference));
    }
    let headings = ["timestamps", "not valid", "uncertain", "restarts", "jumps", "drift", "frequency", "variation"];
    let mut table = Table::new(&headings).figures();
    let ppm = |ppm: Option<f64>| cell(ppm.map_or_else(|| "-".to_owned(), |ppm| format!("{ppm:+.2} ppm")));
    table.row(vec![
        cell(grouped(found.valid)),
        count_cell(found.not_valid),
        count_cell(found.uncertain),
        count_cell(found.restarts),
        found.jumps.map_or_else(|| cell("-"), count_cell),
        ppm(found.drift_ppm),
        ppm(found.frequency_ppm),
        cell(found.variation_ns.map_or_else(|| "-".to_owned(), unsigned)),
    ]);
    page.table(&table);
    page.fact("margin", 9, &margin(found));
    changes(page, &found.changes);
    page.text(
        Ink::Quiet,
        "drift: rate of the timestamps against the capture's clock; frequency: that of the media clock by its own \
         timestamps, against the nominal one; margin: from the capture of a frame to its presentation time",
    );
}

fn margin(found: &CapturedPresentation) -> String {
    let Some(clock) = found.clock else {
        return "- (give --clock if the capture's clock follows gPTP)".to_owned();
    };
    let Some(margin) = &found.margin else {
        return "- (no timestamp is valid and certain)".to_owned();
    };
    let clock = match clock {
        CaptureClock::Gptp => "gPTP",
        CaptureClock::Utc => "UTC, 37 s behind gPTP",
    };
    let (min, max) = (format_ns(margin.min_ns), format_ns(margin.max_ns));
    if found.reference.is_some() {
        return format!(
            "{min} to {max} from the capture of a frame to its last timestamp (by the capture's clock, {clock})"
        );
    }
    let late = match margin.worst.first() {
        Some(worst) => format!("{} too late, the latest frame {}", counted(margin.late, "frame"), worst.frame),
        None => "no frame too late".to_owned(),
    };
    let median = margin.median_ns.map_or_else(String::new, |ns| format!(", median {}", format_ns(ns)));
    format!("{min} to {max}{median}: {late} (by the capture's clock, {clock})")
}

/// `audio samples of 48000 Hz, a timestamp for each 96, 1 in a frame`.
fn clock_reference(reference: &ClockReference) -> String {
    let ClockReference { kind, pull, base_hz, interval, timestamps, frame_sync, changed } = *reference;
    let events = match kind {
        0 => "user events",
        1 => "audio samples",
        2 => "video frames",
        3 => "video lines",
        4 => "machine cycles",
        _ => "events of a reserved type",
    };
    let pull = match pull {
        0 => String::new(),
        1 => " / 1.001".to_owned(),
        2 => " x 1.001".to_owned(),
        3 => " x 24/25".to_owned(),
        4 => " x 25/24".to_owned(),
        5 => " / 8".to_owned(),
        pull => format!(" (reserved pull {pull})"),
    };
    let sync = if frame_sync > 0 { format!("; frame sync in {}", grouped(frame_sync)) } else { String::new() };
    let changed =
        if changed > 0 { format!("; another header in {}", counted(changed, "frame")) } else { String::new() };
    format!("{events} of {base_hz} Hz{pull}, a timestamp for each {interval}, {timestamps} in a frame{sync}{changed}")
}

fn changes(page: &mut Page, changes: &[CapturedMediaChange]) {
    if changes.is_empty() {
        return;
    }
    let mut table = Table::new(&["frame", "after", "timestamp moved by", "announced (mr)"]).figures();
    for change in changes {
        table.row(vec![
            cell(change.frame.to_string()),
            cell(seconds(change.at_ns)),
            cell(change.jump_ns.map_or_else(|| "-".to_owned(), format_ns)),
            cell(if change.restarted { "yes" } else { "no" }),
        ]);
    }
    page.table(&table);
}
