//! Round trips: outcomes of datagrams, and times with their parts.

use record::{RoundTrip, Series, grouped};

use super::page::Page;
use super::table::Table;
use super::{bad_if_any, cell};
use crate::round_trip::{TIMES, longest, outcomes, remarks, times, title};
use crate::style::Ink;

/// A series of round trips with all its figures.
pub(super) fn section(page: &mut Page, series: &Series, round_trip: &RoundTrip) {
    page.heading(&title(series, round_trip));
    let outcomes = outcomes(series, round_trip);
    let mut table = Table::new(&outcomes.map(|(name, ..)| name)).figures();
    let count = |(_, count, bad): (&str, u64, bool)| (bad_if_any(if bad { count } else { 0 }), grouped(count));
    table.row(outcomes.map(count).to_vec());
    page.table(&table);
    if let Some(error) = &round_trip.send_error {
        page.remark(&format!(
            "the kernel refused to send {} datagrams, the last with: {error}",
            grouped(round_trip.send_failed)
        ));
    }
    page.gap();
    let mut table = Table::new(&["time"].into_iter().chain(TIMES).collect::<Vec<_>>());
    for (row, (name, figures)) in times(series, round_trip).into_iter().enumerate() {
        // The first row is the most important one.
        let ink = if row == 0 { Ink::Title } else { Ink::Plain };
        table.row([cell(name)].into_iter().chain(figures.map(|figure| (ink, figure))).collect());
    }
    page.table(&table);
    page.text(Ink::Quiet, &remarks(round_trip));
    longest(series).iter().for_each(|sentence| page.text(Ink::Plain, sentence));
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Parts, Spike, Times, Trip, Ways};

    use super::*;
    use crate::style::Style;

    #[test]
    fn shows_outcomes_and_times_of_round_trips() {
        let mut histogram = Histogram::default();
        (1..=2000).for_each(|n| histogram.record(n * 10));
        let times = Times { min_ns: 10, mean_ns: 10_005.0, max_ns: 20_000, histogram: histogram.clone() };
        let round_trip = RoundTrip {
            peer: "192.0.2.2:7125".to_owned(),
            payload_bytes: 64,
            timeout_ns: 1_000_000_000,
            slots: 2017,
            sent: 2010,
            lost: 10,
            lost_in_a_row: 4,
            late: 3,
            duplicates: 5,
            reordered: 6,
            stamp_error_ns: Some(135),
            from_sent: Some(times.clone()),
            ways: Some(Ways {
                out: histogram.clone(),
                back: [(0, 1999), (500_000, 1)].into_iter().fold(Histogram::default(), |mut way, (ns, count)| {
                    way.add(ns, count);
                    way
                }),
                drift_ppb: -12_345,
                window_ns: 10_000_000_000,
                left_out: 3,
            }),
            parts: Parts { wake: Some(times.clone()), wire: Some(times), ..Parts::default() },
            ..RoundTrip::default()
        };
        let trip = Trip { wake_ns: 5_000, peer_ns: Some(3_000), wire_ns: 12_000, ..Trip::default() };
        let series = Series {
            samples: 2000,
            missed: 7,
            period_ns: 1_000_000,
            raw: histogram.clone(),
            corrected: histogram,
            min_ns: Some(10),
            max_ns: Some(20_000),
            spikes: vec![Spike { lateness_ns: 20_000, at_ns: 1_500_000_000, trip: Some(trip), ..Spike::default() }],
            ..Series::default()
        };
        let mut page = Page::new(Style::default(), 100);
        section(&mut page, &series, &round_trip);
        insta::assert_snapshot!(page.finish());
    }
}
