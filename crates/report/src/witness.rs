//! What a capture beside a run tells, in words and rows for terminal and HTML: where its observer stood, and the stream as
//! talker, capture and listener saw it.

use analysis::{
    format_ns,
    witness::{Agreement, Witness, agreement, witnesses},
};
use record::{Capture, ObservedAt, Observer, Record};

use crate::blame::unsigned;

/// Headings of [`rows`].
pub(crate) const HEADINGS: [&str; 6] =
    ["as seen by", "frames", "longest gap", "max |interval - period|", "late", "lost"];

/// A row for each who saw the stream; empty for a record without an observer.
pub(crate) fn rows(record: &Record) -> Vec<[String; 6]> {
    let dash = || "-".to_owned();
    let count = |count: Option<u64>| count.map_or_else(dash, |count| count.to_string());
    let row = |witness: Witness| {
        [
            witness.name,
            witness.frames.to_string(),
            witness.max_gap_ns.map_or_else(dash, |ns| format!("{ns} ns")),
            witness.max_deviation_ns.map_or_else(dash, |ns| format!("{ns} ns")),
            count(witness.late),
            count(witness.lost),
        ]
    };
    witnesses(record).into_iter().map(row).collect()
}

/// Where the observer stood.
pub(crate) fn place(observer: &Observer) -> String {
    let interface = &observer.interface;
    match observer.at {
        ObservedAt::Receiving => {
            format!("on {interface}, where frames come in, with the kernel's stamps: behind network card and driver")
        }
        ObservedAt::Sending => {
            format!("on {interface}, where frames leave, with the kernel's stamps: before driver and network card")
        }
    }
}

/// How far the capture agrees with the ends of the stream; empty where there is nothing to hold it against.
pub(crate) fn in_words(record: &Record) -> String {
    match agreement(record) {
        Some(Agreement::WithListener(apart_ns)) if apart_ns.abs() <= Agreement::WITHIN_NS => {
            let apart = unsigned(apart_ns.unsigned_abs());
            format!("Capture and listener agree: by the same stamps their longest gaps are {apart} apart.")
        }
        Some(Agreement::WithListener(apart_ns)) => {
            let apart = unsigned(apart_ns.unsigned_abs());
            format!(
                "Capture and listener do NOT agree: their longest gaps are {apart} apart, and should be the same. One of them has \
                 frames that the other has not."
            )
        }
        Some(Agreement::WithTalker(more_ns)) => format!(
            "Between the talker's clock and where frames leave, the largest |interval - period| changed by {}: what the kernel \
             added.",
            signed(more_ns)
        ),
        None => String::new(),
    }
}

/// What late and a longest gap are, behind the rows.
pub(crate) fn how_to_read(capture: &Capture) -> String {
    format!(
        "late: of the talker after its slot, of the capture behind the grid that the stream kept, both by more than {}",
        unsigned(capture.tolerance_ns)
    )
}

fn signed(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "" } else { "+" }, format_ns(ns))
}

#[cfg(test)]
mod tests {
    use record::{Listener, Series, SeriesKind, Stream, Talker};

    use super::*;

    fn record(at: ObservedAt, captured_ns: i64) -> Record {
        let observer = Some(Observer { interface: "far".to_owned(), at });
        let max_deviation_ns = captured_ns.unsigned_abs() - 125_000;
        let capture =
            Capture { observer, frames: 8, max_gap_ns: Some(captured_ns), max_deviation_ns, ..Capture::default() };
        let talker = Talker { frames: 8, max_interval_error_ns: 70, ..Talker::default() };
        let listener =
            Listener { frames: 8, max_kernel_gap_ns: Some(134_000), max_gap_ns: Some(197_201), ..Listener::default() };
        let of = |stream| Series { kind: SeriesKind::Stream(stream), ..Series::default() };
        let series = vec![of(Stream::Talker(Box::new(talker))), of(Stream::Listener(Box::new(listener)))];
        Record { series, capture: Some(capture), ..Record::default() }
    }

    #[test]
    fn agreement_is_told_and_so_is_its_absence() {
        let told = |at, captured_ns| in_words(&record(at, captured_ns));
        assert!(
            told(ObservedAt::Receiving, 134_012)
                .contains("agree: by the same stamps their longest gaps are 12 ns apart")
        );
        assert!(told(ObservedAt::Receiving, 140_000).contains("do NOT agree: their longest gaps are 6 us apart"));
        assert!(told(ObservedAt::Sending, 134_070).contains("changed by +9 us: what the kernel added"));
        assert_eq!(in_words(&Record::default()), "");
    }

    #[test]
    fn each_who_saw_the_stream_has_a_row() {
        let rows = rows(&record(ObservedAt::Receiving, 134_012));
        let told: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        let expected = [
            "talker, as sent | 8 | - | 70 ns | 0 | -",
            "capture, on far | 8 | 134012 ns | 9012 ns | 0 | 0",
            "listener, as stamped | 8 | 134000 ns | - | - | 0",
            "listener, as read | 8 | 197201 ns | - | - | 0",
        ];
        assert_eq!(told, expected);
    }
}
