//! Round trips: key figures, and tables of outcomes and times.

use analysis::{format_ns, when};
use record::{ROUND_TRIP, Record, RoundTrip, Series, grouped};

use super::figure::{Key, Part, Table};
use crate::round_trip::{TIMES, longest, outcomes, remarks, times, title};

fn all(record: &Record) -> impl Iterator<Item = (&Series, &RoundTrip)> {
    record.series.iter().filter_map(|series| Some((series, series.kind.round_trip()?)))
}

/// The section of each series of round trips.
pub fn sections(record: &Record) -> Vec<Part> {
    all(record).map(|(series, round_trip)| view(series, round_trip)).collect()
}

fn view(series: &Series, round_trip: &RoundTrip) -> Part {
    let outcomes = outcomes(series, round_trip);
    let counts = outcomes.iter().map(|(_, count, _)| grouped(*count)).collect();
    let names = outcomes.map(|(name, ..)| name);
    let head: Vec<&str> = ["time"].into_iter().chain(TIMES).collect();
    let rows = times(series, round_trip).into_iter();
    let rows = rows.map(|(name, figures)| [name].into_iter().chain(figures).collect()).collect();
    let tables = vec![
        Table::plain("Slots and answers by outcome", &names, vec![counts]),
        Table::plain("Round trip times and their parts", &head, rows),
    ];
    let notes = [remarks(round_trip)].into_iter().chain(longest(series)).collect();
    Part {
        name: name(series),
        title: title(series, round_trip),
        tables,
        more: Vec::new(),
        notes,
        only_on_screen: false,
    }
}

/// The short name of a section: that of one of several traffic classes has its name.
fn name(series: &Series) -> String {
    if series.role == ROUND_TRIP { "Round trips".to_owned() } else { format!("Round trips of {}", series.role) }
}

/// The key figures; empty for records without round trips.
pub fn keys(record: &Record) -> Vec<Key> {
    let mut keys = Vec::new();
    if let Some((series, max_ns)) = all(record).filter_map(|(s, _)| Some((s, s.max_ns?))).max_by_key(|(_, max)| *max) {
        let at_s = series.max_at_ns.map_or_else(String::new, |ns| format!(", at {:.1} s", ns as f64 / 1e9));
        let detail = format!("from scheduled send time, {}{at_s}", when(series));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_traffic_classes_have_different_names() {
        let of = |role: &str| name(&Series { role: role.to_owned(), ..Series::default() });
        assert_eq!([of(ROUND_TRIP), of("alarm")], ["Round trips", "Round trips of alarm"]);
    }
}
