//! A stream at several observation points: its talker, an observer that captured it, and its listener.

use record::{ObservedAt, Record, Stream};

/// The figures of a stream at one observation point. Unknown figures are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// The observation point: `talker, as sent`.
    pub name: String,
    /// The number of frames.
    pub frames: u64,
    /// Longest time between two frames, ns.
    pub max_gap_ns: Option<i64>,
    /// Largest |interval - period|, ns.
    pub max_deviation_ns: Option<u64>,
    /// Late frames: after their slots (talker), or behind the stream's own time grid (capture).
    pub late: Option<u64>,
    /// Lost frames.
    pub lost: Option<u64>,
}

/// The difference between a capture and another observation that should have the same figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The capture's longest gap minus that of the listener's kernel timestamps, ns. Both use the same timestamps.
    WithListener(i64),
    /// The capture's largest |interval - period| minus that of the talker, ns: the part added by the kernel.
    WithTalker(i64),
}

impl Agreement {
    /// The largest difference that still counts as agreement, ns: the listener converts timestamps to its own clock.
    pub const WITHIN_NS: i64 = 1_000;
}

/// The observations of a captured stream from talker to listener; empty for records without an observer.
#[must_use]
pub fn observations(record: &Record) -> Vec<Observation> {
    let Some((capture, observer)) = record.capture.as_ref().and_then(|one| Some((one, one.observer.as_ref()?))) else {
        return Vec::new();
    };
    let ends = || record.series.iter().filter(|series| series.host.is_none()).filter_map(|series| series.kind.stream());
    let sent = ends().filter_map(Stream::talker).map(|talker| Observation {
        name: "talker, as sent".to_owned(),
        frames: talker.frames,
        max_deviation_ns: Some(talker.max_interval_error_ns),
        late: Some(talker.late),
        ..Observation::default()
    });
    let captured = Observation {
        name: format!("capture, on {}", observer.interface),
        frames: capture.frames,
        max_gap_ns: capture.max_gap_ns,
        max_deviation_ns: capture.max_deviation_ns,
        late: capture.late,
        lost: capture.lost,
    };
    let read = ends().filter_map(Stream::listener).flat_map(|listener| {
        let observation = |name: &str, max_gap_ns: Option<u64>| Observation {
            name: name.to_owned(),
            frames: listener.frames,
            max_gap_ns: max_gap_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)),
            lost: Some(listener.lost),
            ..Observation::default()
        };
        let stamped = listener.max_kernel_gap_ns.map(|ns| observation("listener, as stamped", Some(ns)));
        stamped.into_iter().chain([observation("listener, as read", listener.max_gap_ns)])
    });
    sent.chain([captured]).chain(read).collect()
}

/// Compares the capture of a run with the figures of its own threads; `None` if either is missing.
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
            let [captured_ns, sent_ns] =
                [capture.max_deviation_ns?, sent_ns].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
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
            max_deviation_ns: Some(9_012),
            ..Capture::default()
        };
        let of = |stream| Series { kind: SeriesKind::Stream(stream), ..Series::default() };
        let series = vec![of(Stream::Talker(Box::new(talker))), of(Stream::Listener(Box::new(listener)))];
        Record { series, capture: Some(capture), ..Record::default() }
    }

    #[test]
    fn lists_observations_from_talker_to_listener() {
        let all = observations(&record(ObservedAt::Receiving));
        let rows: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.frames, one.max_gap_ns)).collect();
        let expected = [
            ("talker, as sent", 9, None),
            ("capture, on far", 8, Some(134_012)),
            ("listener, as stamped", 8, Some(134_000)),
            ("listener, as read", 8, Some(197_201)),
        ];
        assert_eq!(rows, expected);
        assert_eq!(observations(&Record { capture: Some(Capture::default()), ..Record::default() }), []);
    }

    #[test]
    fn compares_a_capture_with_the_same_figure_of_an_end() {
        assert_eq!(agreement(&record(ObservedAt::Receiving)), Some(Agreement::WithListener(12)));
        assert_eq!(agreement(&record(ObservedAt::Sending)), Some(Agreement::WithTalker(8_942)));
        let alone = Record { series: Vec::new(), ..record(ObservedAt::Receiving) };
        assert_eq!(agreement(&alone), None);
    }
}
