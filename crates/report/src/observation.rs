//! A stream as its talker, a capture and its listener saw it, and how well they agree: text and rows for terminal and
//! HTML.

use analysis::{
    format_ns,
    observation::{Agreement, Observation, agreement, observations},
};
use record::{Capture, ObservedAt, Observer, Record, grouped};

use crate::blame::unsigned;

/// Headings of [`rows`].
pub(crate) const HEADINGS: [&str; 6] = ["as seen by", "frames", "longest gap", "max deviation", "late", "lost"];

/// One row per observation of the stream; empty for a record without an observer.
pub(crate) fn rows(record: &Record) -> Vec<[String; 6]> {
    let dash = || "-".to_owned();
    let count = |count: Option<u64>| count.map_or_else(dash, grouped);
    let row = |observation: Observation| {
        [
            observation.name,
            grouped(observation.frames),
            observation.max_gap_ns.map_or_else(dash, format_ns),
            observation.max_deviation_ns.map_or_else(dash, unsigned),
            count(observation.late),
            count(observation.lost),
        ]
    };
    observations(record).into_iter().map(row).collect()
}

/// The observer's place on the frames' path.
pub(crate) fn place(observer: &Observer) -> String {
    let interface = &observer.interface;
    match observer.at {
        ObservedAt::Receiving => {
            format!("on {interface}, the receiving side, with kernel timestamps: after network card and driver")
        }
        ObservedAt::Sending => {
            format!("on {interface}, the sending side, with kernel timestamps: before driver and network card")
        }
    }
}

/// The agreement between the capture and the stream's ends; empty if there is nothing to compare.
pub(crate) fn agreement_text(record: &Record) -> String {
    match agreement(record) {
        Some(Agreement::WithListener(apart_ns)) if apart_ns.abs() <= Agreement::WITHIN_NS => {
            let apart = unsigned(apart_ns.unsigned_abs());
            format!("Capture and listener agree: by the same timestamps, their longest gaps differ by {apart}.")
        }
        Some(Agreement::WithListener(apart_ns)) => {
            let apart = unsigned(apart_ns.unsigned_abs());
            format!(
                "Capture and listener do NOT agree: their longest gaps differ by {apart}, but should be equal. One of \
                                 them has frames that the other one lacks."
            )
        }
        Some(Agreement::WithTalker(more_ns)) => format!(
            "From the talker's clock to the sending interface, the largest |interval - period| changed by {}: added by \
                         the kernel.",
            signed(more_ns)
        ),
        None => String::new(),
    }
}

/// The meaning of `max deviation` and `late` in the rows.
pub(crate) fn how_to_read(capture: &Capture) -> String {
    format!(
        "max deviation: the largest |interval - period|; late: more than {} after the slot (talker) or behind the \
         stream's own time grid (capture)",
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
        let max_deviation_ns = Some(captured_ns.unsigned_abs() - 125_000);
        let capture = Capture {
            observer,
            frames: 8,
            late: Some(0),
            lost: Some(0),
            max_gap_ns: Some(captured_ns),
            max_deviation_ns,
            ..Capture::default()
        };
        let talker = Talker { frames: 8, max_interval_error_ns: 70, ..Talker::default() };
        let listener =
            Listener { frames: 8, max_kernel_gap_ns: Some(134_000), max_gap_ns: Some(197_201), ..Listener::default() };
        let of = |stream| Series { kind: SeriesKind::Stream(stream), ..Series::default() };
        let series = vec![of(Stream::Talker(Box::new(talker))), of(Stream::Listener(Box::new(listener)))];
        Record { series, capture: Some(capture), ..Record::default() }
    }

    #[test]
    fn reports_agreement_and_disagreement() {
        let text = |at, captured_ns| agreement_text(&record(at, captured_ns));
        assert!(
            text(ObservedAt::Receiving, 134_012)
                .contains("agree: by the same timestamps, their longest gaps differ by 12 ns")
        );
        assert!(text(ObservedAt::Receiving, 140_000).contains("do NOT agree: their longest gaps differ by 6 us"));
        assert!(text(ObservedAt::Sending, 134_070).contains("changed by +9 us: added by the kernel"));
        assert_eq!(agreement_text(&Record::default()), "");
    }

    #[test]
    fn lists_each_observation_in_a_row() {
        let rows = rows(&record(ObservedAt::Receiving, 134_012));
        let joined: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        let expected = [
            "talker, as sent | 8 | - | 70 ns | 0 | -",
            "capture, on far | 8 | 134 us | 9.01 us | 0 | 0",
            "listener, as stamped | 8 | 134 us | - | - | 0",
            "listener, as read | 8 | 197 us | - | - | 0",
        ];
        assert_eq!(joined, expected);
    }
}
