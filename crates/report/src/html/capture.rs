//! A capture of a stream: beside the ends of a run, or alone.

use analysis::format_ns;
use record::{Capture, MarkedFrame, Record};

use super::{
    figure::Table,
    stream::{StreamView, table},
    text::grouped,
};
use crate::{terminal::capture::seconds, witness};

/// Frames in each table of the worst.
const FRAMES: usize = 10;

/// What a record's capture tells, as a section of its own; `None` without one.
pub fn section(record: &Record) -> Option<StreamView> {
    let capture = record.capture.as_ref()?;
    let observer = capture.observer.as_ref();
    let title = match observer {
        Some(_) => format!("Captured meanwhile: {}", capture.file),
        None => format!("Stream {} in {}", capture.stream.name, capture.file),
    };
    let mut tables = vec![
        table(
            "The stream as each saw it, on its way",
            &witness::HEADINGS,
            witness::rows(record).into_iter().map(Vec::from).collect(),
        ),
        figures(capture),
        frames("Largest gaps", "gap", &capture.worst_gaps),
        frames("Latest frames, behind the grid that the stream kept", "late", &capture.worst_late),
    ];
    tables.retain(|table| !table.rows.is_empty());
    let seen = observer.map(|observer| format!("Seen {}.", witness::place(observer)));
    let how = observer.map(|_| format!("{}.", witness::how_to_read(capture)));
    let remarks = seen.into_iter().chain(how).chain([witness::in_words(record)]);
    Some(StreamView { title, tables, remarks: remarks.filter(|text| !text.is_empty()).collect() })
}

fn figures(capture: &Capture) -> Table {
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns);
    let median = capture.spacing.percentile(50.0).filter(|_| !capture.spacing.is_empty());
    let head = [
        "frames",
        "late",
        "lost",
        "duplicates",
        "reordered",
        "slots left out",
        "bursts",
        "min spacing",
        "median",
        "max spacing",
        "stamps to",
    ];
    let row = vec![
        grouped(capture.frames),
        grouped(capture.late),
        grouped(capture.lost),
        grouped(capture.duplicates),
        grouped(capture.reordered),
        grouped(capture.skipped_slots),
        grouped(capture.bursts),
        time(capture.min_gap_ns),
        time(median),
        time(capture.max_gap_ns),
        format_ns(capture.resolution_ns as i64),
    ];
    table("In the capture", &head, vec![row])
}

fn frames(caption: &str, what: &str, frames: &[MarkedFrame]) -> Table {
    let row = |one: &MarkedFrame| vec![one.frame.to_string(), seconds(one.at_ns), format!("{} ns", one.ns)];
    table(caption, &["frame.number", "after the first", what], frames.iter().take(FRAMES).map(row).collect())
}
