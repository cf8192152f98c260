//! A captured stream, with the ends of a run or alone.

use analysis::format_ns;
use record::{Capture, MarkedFrame, Record, grouped};

use super::figure::{Part, Table};
use crate::{blame::unsigned, observation, terminal::capture::seconds};

/// The number of frames in each table of the worst.
const FRAMES: usize = 10;

/// The section about a record's capture; `None` without one.
pub fn section(record: &Record) -> Option<Part> {
    let capture = record.capture.as_ref()?;
    let observer = capture.observer.as_ref();
    let title = match observer {
        Some(_) => format!("Capture of this run: {}", capture.file),
        None => format!("Stream {} in {}", capture.stream.name, capture.file),
    };
    let mut tables = vec![
        Table::plain(
            "The stream at each observation point",
            &observation::HEADINGS,
            observation::rows(record).into_iter().map(Vec::from).collect(),
        ),
        figures(capture),
    ];
    let mut more = vec![
        frames("Largest gaps", "gap", &capture.worst_gaps),
        frames("Latest frames, behind the stream's own time grid", "late", &capture.worst_late),
    ];
    tables.retain(|table| !table.rows.is_empty());
    more.retain(|table| !table.rows.is_empty());
    let seen = observer.map(|observer| format!("Seen {}.", observation::place(observer)));
    let how = observer.map(|_| format!("{}.", observation::how_to_read(capture)));
    let notes = seen.into_iter().chain(how).chain([observation::agreement_text(record)]);
    let notes = notes.filter(|text| !text.is_empty()).collect();
    Some(Part { name: "Capture".to_owned(), title, tables, more, notes })
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
        "skipped slots",
        "bursts",
        "min interval",
        "median",
        "max spacing",
        "stamp resolution",
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
        unsigned(capture.resolution_ns),
    ];
    Table::plain("The capture", &head, vec![row])
}

fn frames(caption: &str, what: &str, frames: &[MarkedFrame]) -> Table {
    let row = |one: &MarkedFrame| vec![one.frame.to_string(), seconds(one.at_ns), format_ns(one.ns)];
    Table::plain(caption, &["frame.number", "after the first", what], frames.iter().take(FRAMES).map(row).collect())
}
