//! One stream as several saw it: the talker that sent it, an observer that captured it, the listener that read it.

use record::{ObservedAt, Record, Stream};

/// What one of them saw. What it cannot know is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Witness {
    /// Who, and when it looked: `talker, as sent`.
    pub name: String,
    /// Frames that it saw.
    pub frames: u64,
    /// Longest time between two frames, ns.
    pub max_gap_ns: Option<i64>,
    /// Largest |interval - period|, ns.
    pub max_deviation_ns: Option<u64>,
    /// Late packets: of a talker after its slots, of a capture behind the grid that the stream kept.
    pub late: Option<u64>,
    /// Frames that never came.
    pub lost: Option<u64>,
}

/// How far a capture is from another witness whose figure it should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The capture's longest gap less that of the listener's kernel stamps, ns: both are of the same stamps.
    WithListener(i64),
    /// The capture's largest |interval - period| less that between the talker's sendings, ns: what the kernel added.
    WithTalker(i64),
}

impl Agreement {
    /// Stamps that are the same may differ so much, ns: the listener's are told on its own clock.
    pub const WITHIN_NS: i64 = 1_000;
}

/// All who saw the stream of a run that was captured, on its way; empty for other records.
#[must_use]
pub fn witnesses(record: &Record) -> Vec<Witness> {
    let Some((capture, observer)) = record.capture.as_ref().and_then(|one| Some((one, one.observer.as_ref()?))) else {
        return Vec::new();
    };
    let ends = || record.series.iter().filter(|series| series.host.is_none()).filter_map(|series| series.kind.stream());
    let sent = ends().filter_map(Stream::talker).map(|talker| Witness {
        name: "talker, as sent".to_owned(),
        frames: talker.frames,
        max_deviation_ns: Some(talker.max_interval_error_ns),
        late: Some(talker.late),
        ..Witness::default()
    });
    let captured = Witness {
        name: format!("capture, on {}", observer.interface),
        frames: capture.frames,
        max_gap_ns: capture.max_gap_ns,
        max_deviation_ns: Some(capture.max_deviation_ns),
        late: Some(capture.late),
        lost: Some(capture.lost),
    };
    let read = ends().filter_map(Stream::listener).flat_map(|listener| {
        let witness = |name: &str, max_gap_ns: Option<u64>| Witness {
            name: name.to_owned(),
            frames: listener.frames,
            max_gap_ns: max_gap_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)),
            lost: Some(listener.lost),
            ..Witness::default()
        };
        let stamped = listener.max_kernel_gap_ns.map(|ns| witness("listener, as stamped", Some(ns)));
        stamped.into_iter().chain([witness("listener, as read", listener.max_gap_ns)])
    });
    sent.chain([captured]).chain(read).collect()
}

/// How far the capture of a run is from what its own threads saw; `None` without either.
#[must_use]
pub fn agreement(record: &Record) -> Option<Agreement> {
    let capture = record.capture.as_ref()?;
    let ends = || record.series.iter().filter(|series| series.host.is_none()).filter_map(|series| series.kind.stream());
    match capture.observer.as_ref()?.at {
        ObservedAt::Receiving => {
            let stamped_ns = ends().find_map(|end| end.listener()?.max_kernel_gap_ns)?;
            let stamped_ns = i64::try_from(stamped_ns).unwrap_or(i64::MAX);
            Some(Agreement::WithListener(capture.max_gap_ns?.saturating_sub(stamped_ns)))
        }
        ObservedAt::Sending => {
            let sent_ns = ends().find_map(Stream::talker)?.max_interval_error_ns;
            let [captured_ns, sent_ns] = [capture.max_deviation_ns, sent_ns].map(|ns| ns.min(i64::MAX as u64) as i64);
            Some(Agreement::WithTalker(captured_ns - sent_ns))
        }
    }
}

#[cfg(test)]
mod tests {
    use record::{Capture, Listener, Observer, Series, SeriesKind, Talker};

    use super::*;

    fn record(at: ObservedAt) -> Record {
        let talker = Talker { frames: 9, late: 1, max_interval_error_ns: 70, ..Talker::default() };
        let listener = Listener {
            frames: 8,
            lost: 1,
            max_gap_ns: Some(197_201),
            max_kernel_gap_ns: Some(134_000),
            ..Listener::default()
        };
        let capture = Capture {
            observer: Some(Observer { interface: "far".to_owned(), at }),
            frames: 8,
            max_gap_ns: Some(134_012),
            max_deviation_ns: 9_012,
            ..Capture::default()
        };
        let of = |stream| Series { kind: SeriesKind::Stream(stream), ..Series::default() };
        let series = vec![of(Stream::Talker(Box::new(talker))), of(Stream::Listener(Box::new(listener)))];
        Record { series, capture: Some(capture), ..Record::default() }
    }

    #[test]
    fn all_stand_in_the_order_of_the_way() {
        let told = witnesses(&record(ObservedAt::Receiving));
        let told: Vec<_> = told.iter().map(|one| (one.name.as_str(), one.frames, one.max_gap_ns)).collect();
        let expected = [
            ("talker, as sent", 9, None),
            ("capture, on far", 8, Some(134_012)),
            ("listener, as stamped", 8, Some(134_000)),
            ("listener, as read", 8, Some(197_201)),
        ];
        assert_eq!(told, expected);
        assert_eq!(witnesses(&Record { capture: Some(Capture::default()), ..Record::default() }), []);
    }

    #[test]
    fn a_capture_is_held_against_who_saw_the_same() {
        assert_eq!(agreement(&record(ObservedAt::Receiving)), Some(Agreement::WithListener(12)));
        assert_eq!(agreement(&record(ObservedAt::Sending)), Some(Agreement::WithTalker(8_942)));
        let alone = Record { series: Vec::new(), ..record(ObservedAt::Receiving) };
        assert_eq!(agreement(&alone), None);
    }
}
