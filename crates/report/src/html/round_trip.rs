//! Round trips: the figures that stand out, and the tables of what became of datagrams and where their time went.

use analysis::format_ns;
use record::{Record, RoundTrip, Series};

use super::{
    figure::{Row, Table},
    text::grouped,
    verdict::Key,
};
use crate::round_trip::{TIMES, fates, longest, remarks, times, title};

/// A series of round trips as the template sees it.
pub struct RoundTripView {
    /// Who answers.
    pub title: String,
    /// What became of the datagrams; how long they took.
    pub tables: [Table; 2],
    /// How to read that, and the longest ones part by part.
    pub notes: Vec<String>,
}

fn all(record: &Record) -> impl Iterator<Item = (&Series, &RoundTrip)> {
    record.series.iter().filter_map(|series| Some((series, series.kind.round_trip()?)))
}

/// Each series of round trips.
pub fn sections(record: &Record) -> Vec<RoundTripView> {
    all(record).map(|(series, round_trip)| view(series, round_trip)).collect()
}

fn view(series: &Series, round_trip: &RoundTrip) -> RoundTripView {
    let row = |cells: Vec<String>| Row { swatch: String::new(), cells };
    let fates = fates(series, round_trip);
    let became = Table {
        caption: "What became of each slot, and of each answer.".to_owned(),
        head: fates.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        rows: vec![row(fates.iter().map(|(_, count, _)| grouped(*count)).collect())],
    };
    let took = Table {
        caption: "How long they took, and where the time went.".to_owned(),
        head: ["time"].into_iter().chain(TIMES).map(str::to_owned).collect(),
        rows: times(series, round_trip)
            .into_iter()
            .map(|(name, figures)| row([name].into_iter().chain(figures).collect()))
            .collect(),
    };
    let notes = [remarks(round_trip)].into_iter().chain(longest(series)).collect();
    RoundTripView { title: title(series, round_trip), tables: [became, took], notes }
}

/// The figures that stand out; empty for records without round trips.
pub fn keys(record: &Record) -> Vec<Key> {
    let mut keys = Vec::new();
    if let Some((series, max_ns)) = all(record).filter_map(|(s, _)| Some((s, s.max_ns?))).max_by_key(|(_, max)| *max) {
        let at_s = series.max_at_ns.map_or_else(String::new, |ns| format!(", at {:.1} s", ns as f64 / 1e9));
        let detail = format!("from when it was to be sent, {}{at_s}", series.phase);
        keys.push(Key { label: "longest round trip", value: format_ns(max_ns), detail });
    }
    let sum = |of: fn(&RoundTrip) -> u64| all(record).map(|(_, one)| of(one)).fold(0, u64::saturating_add);
    if all(record).next().is_some() {
        let detail = format!("of {} sent", grouped(sum(|one| one.sent)));
        keys.push(Key { label: "lost", value: grouped(sum(|one| one.lost)), detail });
        let detail = format!("of {} slots", grouped(sum(|one| one.slots)));
        keys.push(Key { label: "not sent", value: grouped(sum(RoundTrip::not_sent)), detail });
    }
    keys
}
