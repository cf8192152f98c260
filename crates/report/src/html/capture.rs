//! A captured stream, with the ends of a run or alone; key figures of one alone.

use analysis::format_ns;
use record::{Capture, CapturedStream, MarkedFrame, Record, counted, grouped};

use super::figure::{Key, Part, Table};
use crate::{blame::unsigned, observation, terminal::capture::seconds};

/// The number of frames in each table of the worst.
const FRAMES: usize = 10;
/// The number of streams in the table of the others.
const STREAMS: usize = 20;

/// The section about a record's capture; `None` without one.
pub fn section(record: &Record) -> Option<Part> {
    let capture = record.capture.as_ref()?;
    let observer = capture.observer.as_ref();
    let title = match observer {
        Some(_) => format!("Capture of this run: {}", capture.file),
        None => format!("Stream {} in {}", capture.name_of(&capture.stream), capture.file),
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
    if capture.streams.len() > 1 {
        let row = |(number, stream): (usize, &CapturedStream)| {
            vec![number.to_string(), capture.name_of(stream), grouped(stream.frames), known(stream.lost)]
        };
        let rows = (1..).zip(&capture.streams).take(STREAMS).map(row).collect();
        let caption = "Streams in the file; --stream NUMBER analyses another one";
        more.push(Table::plain(caption, &["number", "stream", "frames", "lost"], rows));
    }
    tables.retain(|table| !table.rows.is_empty());
    more.retain(|table| !table.rows.is_empty());
    let seen = observer.map(|observer| format!("Seen {}.", observation::place(observer)));
    let how = observer.map(|_| format!("{}.", observation::how_to_read(capture)));
    let notes = seen.into_iter().chain(how).chain([observation::agreement_text(record)]);
    let notes = notes.filter(|text| !text.is_empty()).collect();
    Some(Part { name: "Capture".to_owned(), title, tables, more, notes, only_on_screen: false })
}

/// The key figures of a capture alone; empty for other records.
pub fn keys(record: &Record) -> Vec<Key> {
    let Some(capture) = record.capture.as_ref().filter(|capture| capture.observer.is_none()) else { return Vec::new() };
    let of_frames = format!("of {}", counted(capture.frames, "frame"));
    let first = |label, frames: &[MarkedFrame]| {
        let frame = frames.first()?;
        Some(Key { label, value: format_ns(frame.ns), detail: format!("frame {}", frame.frame) })
    };
    let late = format!("more than {}, {of_frames}", unsigned(capture.tolerance_ns));
    let mut keys = vec![Key { label: "late frames", value: known(capture.late), detail: late }];
    keys.extend(first("largest lateness", &capture.worst_late));
    let detail = if capture.is_numbered() {
        "slots without a frame of the talker".to_owned()
    } else {
        "slots without a frame, lost or not sent".to_owned()
    };
    keys.push(Key { label: "skipped slots", value: known(capture.skipped_slots), detail });
    keys.extend(first("largest gap", &capture.worst_gaps));
    let detail = match capture.duplicates {
        Some(duplicates) => counted(duplicates, "duplicate"),
        None if capture.is_numbered() => "the numbers do not show them".to_owned(),
        None => "the frames have no numbers".to_owned(),
    };
    keys.push(Key { label: "lost", value: known(capture.lost), detail });
    keys
}

/// A count; `-` if it is not known.
fn known(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), grouped)
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
        known(capture.late),
        known(capture.lost),
        known(capture.duplicates),
        known(capture.reordered),
        known(capture.skipped_slots),
        known(capture.bursts),
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

#[cfg(test)]
mod tests {
    use record::NumberedBy;

    use super::*;

    #[test]
    fn the_key_figures_include_skipped_slots_and_the_largest_gap() {
        let frame = |ns| vec![MarkedFrame { frame: 7_478, at_ns: 0, ns }];
        let capture = Capture {
            frames: 31_066,
            late: Some(12),
            skipped_slots: Some(935),
            lost: Some(0),
            duplicates: Some(0),
            numbered_by: NumberedBy::Avtp,
            worst_late: frame(144_000),
            worst_gaps: frame(4_360_000),
            tolerance_ns: 1_250,
            ..Capture::default()
        };
        let record = Record { capture: Some(capture), ..Record::default() };
        let keys: Vec<_> = keys(&record).into_iter().map(|key| (key.label, key.value, key.detail)).collect();
        let key = |label, value: &str, detail: &str| (label, value.to_owned(), detail.to_owned());
        assert_eq!(
            keys,
            [
                key("late frames", "12", "more than 1.25 us, of 31,066 frames"),
                key("largest lateness", "144 us", "frame 7478"),
                key("skipped slots", "935", "slots without a frame of the talker"),
                key("largest gap", "4.36 ms", "frame 7478"),
                key("lost", "0", "0 duplicates"),
            ]
        );
    }
}
