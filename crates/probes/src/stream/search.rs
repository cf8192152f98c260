//! The choice of the stream to follow, if its id is not given: the first one with the expected period.

use super::{
    identity,
    tracker::{Arrival, OTHER_PERIOD},
};

/// Number of intervals that show the period of a stream.
const INTERVALS_MIN: usize = 4;
/// Number of intervals of a stream that are examined.
const INTERVALS_MAX: usize = 64;
/// The search ends after this number of periods, but not before [`SEARCH_NS`].
const SEARCH_PERIODS: i64 = 200;
const SEARCH_NS: i64 = 1_000_000_000;
/// The search ends with this number of held frames: 8 s of one class A stream, about 10 MB.
const HELD_MAX: usize = 65_536;
/// Maximum number of streams that are examined: ids from the network can be arbitrary.
const STREAMS_MAX: usize = 256;

/// A stream that arrived during the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenStream {
    /// Its id.
    pub stream_id: u64,
    last_ns: i64,
    /// Its first intervals, ns.
    intervals_ns: Vec<i64>,
}

impl SeenStream {
    /// The usual time between two frames, ns; `None` with fewer than two. The mean, if frames were read in groups.
    fn period_ns(&self) -> Option<i64> {
        let (median_ns, mean_ns) = self.median_and_mean_ns()?;
        Some(if is_longer(mean_ns, median_ns) { mean_ns } else { median_ns })
    }

    fn median_and_mean_ns(&self) -> Option<(i64, i64)> {
        let mut sorted = self.intervals_ns.clone();
        sorted.sort_unstable();
        let median_ns = *sorted.get(sorted.len() / 2)?;
        let sum_ns: i128 = sorted.iter().copied().map(i128::from).sum();
        let mean_ns = i64::try_from(sum_ns / sorted.len() as i128).unwrap_or(i64::MAX);
        Some((median_ns, mean_ns))
    }

    /// True if it has the period. Losses change the mean, and frames that are read in groups the median.
    fn has_period(&self, period_ns: i64) -> bool {
        let is_near = |ns: i64| !is_longer(ns, period_ns) && !is_longer(period_ns, ns);
        let is_known = self.intervals_ns.len() >= INTERVALS_MIN;
        is_known && self.median_and_mean_ns().is_some_and(|(median_ns, mean_ns)| is_near(median_ns) || is_near(mean_ns))
    }

    /// The id, and the period if it is known: `02:00:00:00:00:01:0000 every 250 us`.
    pub fn describe(&self) -> String {
        let name = identity::stream_name(self.stream_id);
        match self.period_ns().filter(|_| self.intervals_ns.len() >= INTERVALS_MIN) {
            Some(period_ns) => format!("{name} every {:.0} us", period_ns as f64 / 1e3),
            None => name,
        }
    }
}

/// True if the time is longer by more than the scatter of arrivals.
fn is_longer(ns: i64, than_ns: i64) -> bool {
    ns as f64 > than_ns as f64 * OTHER_PERIOD
}

/// A search for the stream to follow. It holds all frames until it ends.
#[derive(Debug)]
pub struct Search {
    period_ns: i64,
    held: Vec<Arrival>,
    streams: Vec<SeenStream>,
}

/// The result of a search.
#[derive(Debug)]
pub struct Found {
    /// The stream to follow: if none has the expected period, the first one; `None` without a stream.
    pub stream_id: Option<u64>,
    /// All frames so far, in order of arrival.
    pub held: Vec<Arrival>,
    /// The streams so far, in order of arrival.
    pub streams: Vec<SeenStream>,
}

impl Search {
    /// Starts a search for a stream with this period.
    pub fn new(period_ns: u64) -> Self {
        Self { period_ns: i64::try_from(period_ns).unwrap_or(i64::MAX), held: Vec::new(), streams: Vec::new() }
    }

    /// Number of held frames.
    pub fn held(&self) -> u64 {
        self.held.len() as u64
    }

    /// Adds a frame. Returns true if the search must end.
    pub fn add(&mut self, arrival: Arrival) -> bool {
        self.held.push(arrival);
        let (now_ns, first_ns) = (arrival.arrived_ns(), self.held[0].arrived_ns());
        let is_over = now_ns.saturating_sub(first_ns) > self.period_ns.saturating_mul(SEARCH_PERIODS).max(SEARCH_NS);
        self.is_found(&arrival, now_ns) || is_over || self.held.len() >= HELD_MAX
    }

    /// Adds the frame to its stream. Returns true if this stream has the expected period.
    fn is_found(&mut self, arrival: &Arrival, now_ns: i64) -> bool {
        if !arrival.avtp.stream_valid {
            return false;
        }
        let stream_id = arrival.avtp.stream_id;
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.stream_id == stream_id) else {
            if self.streams.len() < STREAMS_MAX {
                self.streams.push(SeenStream { stream_id, last_ns: now_ns, intervals_ns: Vec::new() });
            }
            return false;
        };
        if stream.intervals_ns.len() >= INTERVALS_MAX {
            return false;
        }
        stream.intervals_ns.push(now_ns.saturating_sub(stream.last_ns));
        stream.last_ns = now_ns;
        stream.has_period(self.period_ns)
    }

    /// Ends the search.
    pub fn end(self) -> Found {
        let fitting = self.streams.iter().find(|stream| stream.has_period(self.period_ns));
        let stream_id = fitting.or(self.streams.first()).map(|stream| stream.stream_id);
        Found { stream_id, held: self.held, streams: self.streams }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tracker::tests::arrival, *};

    /// A frame of the stream with this number, `at_ns` after the start.
    fn frame(stream: u64, at_ns: i64) -> Arrival {
        let mut arrival = arrival(0);
        arrival.avtp.stream_id += stream;
        Arrival { stamp_ns: Some(at_ns), read_ns: at_ns + 7_000, ..arrival }
    }

    /// Frames of streams 0, 1, … with these periods, in order of arrival, for one second.
    fn search_among(expected_ns: u64, periods_ns: &[i64]) -> (u64, Found) {
        let id = frame(0, 0).avtp.stream_id;
        let of = |(stream, &period_ns): (i64, &i64)| {
            (0..1_000_000_000 / period_ns).map(move |seq| frame(stream.cast_unsigned(), seq * period_ns + stream))
        };
        let mut frames: Vec<Arrival> = (0..).zip(periods_ns).flat_map(of).collect();
        frames.sort_by_key(|frame| frame.stamp_ns);
        let mut search = Search::new(expected_ns);
        for frame in frames {
            if search.add(frame) {
                break;
            }
        }
        let found = search.end();
        (found.stream_id.unwrap() - id, found)
    }

    #[test]
    fn the_first_stream_with_the_expected_period_is_followed() {
        let (followed, found) = search_among(125_000, &[250_000, 1_000_000, 125_000, 125_000]);
        assert_eq!((followed, found.held.len()), (2, 13), "as soon as its period is known");
        assert_eq!(search_among(1_000_000, &[125_000, 1_000_000]).0, 1);
        assert_eq!(search_among(250_000, &[250_000, 250_000]).0, 0);
    }

    #[test]
    fn without_such_a_stream_all_are_named() {
        let (followed, found) = search_among(125_000, &[250_000, 1_000_000]);
        assert_eq!(followed, 0);
        let named: Vec<_> = found.streams.iter().map(SeenStream::describe).collect();
        assert_eq!(named, ["02:00:00:00:00:01:0000 every 250 us", "02:00:00:00:00:01:0001 every 1000 us"]);
        let none = Search::new(125_000).end();
        assert_eq!((none.stream_id, none.held.len()), (None, 0));
    }

    #[test]
    fn losses_and_frames_read_in_groups_are_no_other_period() {
        let follows = |number_of: fn(i64) -> i64| {
            let mut search = Search::new(125_000);
            (0..40).any(|seq| search.add(frame(0, number_of(seq) * 125_000)))
        };
        assert!(follows(|seq| seq / 4 * 5 + seq % 4), "each fifth frame is lost");
        assert!(follows(|seq| seq / 4 * 4), "four frames at once");
        assert!(!follows(|seq| seq * 2), "a frame every 250 us");
    }
}
