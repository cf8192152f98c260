//! Round trips: what became of the datagrams, how long they took, and where the time went.

use analysis::{Summary, format_ns};
use record::{RoundTrip, Series, Times, Trip};

use super::page::Page;
use super::table::Table;
use super::{cell, count_cell, time};
use crate::style::{Ink, Spans};

/// How many of the longest round trips are told part by part.
const LONGEST: usize = 3;

/// A series of round trips with all its figures.
pub(super) fn section(page: &mut Page, series: &Series, round_trip: &RoundTrip) {
    let peer = if round_trip.own_peer { "of our own, behind a virtual cable" } else { "elsewhere" };
    page.heading(&format!(
        "Round trips to {} ({peer}): {} bytes every {}",
        round_trip.peer,
        round_trip.payload_bytes,
        format_ns(series.period_ns as i64)
    ));
    page.table(&fates(series, round_trip));
    if let Some(error) = &round_trip.send_error {
        page.remark(&format!(
            "the kernel refused to send {} datagrams, the last with: {error}",
            round_trip.send_failed
        ));
    }
    page.gap();
    page.table(&times(series, round_trip));
    page.text(Ink::Quiet, &remarks(round_trip));
    longest(page, series);
}

/// What became of each slot, and of each answer.
fn fates(series: &Series, round_trip: &RoundTrip) -> Table {
    let mut table = Table::new(&[
        "slots",
        "answered",
        "lost",
        "in a row",
        "not sent",
        "late",
        "duplicates",
        "reordered",
        "foreign",
    ])
    .figures();
    let bad = |count: u64| count_cell(count, count.to_string());
    table.row(vec![
        cell(round_trip.slots.to_string()),
        cell(series.samples.to_string()),
        bad(round_trip.lost),
        cell(round_trip.lost_in_a_row.to_string()),
        bad(round_trip.not_sent()),
        bad(round_trip.late),
        bad(round_trip.duplicates),
        bad(round_trip.reordered),
        bad(round_trip.foreign),
    ]);
    table
}

/// The round trips and their parts.
fn times(series: &Series, round_trip: &RoundTrip) -> Table {
    let mut table = Table::new(&["time", "min", "mean", "p50", "p99", "p99.9", "max"]);
    let figures = Summary::of(series);
    table.row(vec![
        cell("from when it was to be sent"),
        cell(time(series.min_ns)),
        cell(time(series.mean_ns.map(|ns| ns.round() as i64))),
        (Ink::Title, time(figures.p50_ns)),
        (Ink::Title, time(figures.p99_ns)),
        (Ink::Title, time(figures.p99_9_ns)),
        (Ink::Title, time(figures.max_ns)),
    ]);
    let parts = round_trip.parts.named().map(|(name, times)| (format!("  {name}"), times));
    let from_sent = [("from when it was sent".to_owned(), round_trip.from_sent.as_ref())];
    for (name, times) in parts.into_iter().chain(from_sent) {
        if let Some(times) = times {
            table.row(row(&name, times));
        }
    }
    table
}

fn row(name: &str, times: &Times) -> Spans {
    let percentile = |percent: f64| {
        let differs_from_max = percent / 100.0 * times.histogram.total() as f64 <= times.histogram.total() as f64 - 1.0;
        times.histogram.percentile(percent).filter(|_| differs_from_max).map(|ns| ns.min(times.max_ns))
    };
    vec![
        cell(name),
        cell(format_ns(times.min_ns)),
        cell(format_ns(times.mean_ns.round() as i64)),
        cell(time(percentile(50.0))),
        cell(time(percentile(99.0))),
        cell(time(percentile(99.9))),
        cell(format_ns(times.max_ns)),
    ]
}

/// How to read the table.
fn remarks(round_trip: &RoundTrip) -> String {
    let mut text = format!(
        "lost: no answer within {}. Percentiles of the first row count the slots that a late sender ran over.",
        format_ns(round_trip.timeout_ns as i64)
    );
    let parts = &round_trip.parts;
    if parts.stack_out.is_none() && parts.wire.is_some() {
        text += " The stack's way out stands with the wire: --stamps all tells it apart.";
    }
    if let Some(error_ns) = round_trip.stamp_error_ns {
        text += &format!(" The kernel's stamps are right to {}.", format_ns(error_ns as i64));
    }
    text
}

/// The longest round trips, part by part.
fn longest(page: &mut Page, series: &Series) {
    let mut spikes: Vec<_> = series.spikes.iter().filter_map(|spike| Some((spike, spike.trip.as_ref()?))).collect();
    spikes.sort_by_key(|(spike, _)| std::cmp::Reverse(spike.lateness_ns));
    for (spike, trip) in spikes.into_iter().take(LONGEST) {
        let (whole, at) = (format_ns(spike.lateness_ns), format_ns(spike.at_ns as i64));
        page.text(Ink::Plain, &format!("{whole} after {at}: {}", in_words(trip)));
    }
}

/// The parts of a round trip in their order.
fn in_words(trip: &Trip) -> String {
    let parts = [
        ("our wake-up", Some(trip.wake_ns)),
        ("stack out", trip.stack_out_ns),
        ("wire and stacks", Some(trip.wire_ns)),
        ("peer", trip.peer_ns),
        ("stack in, wake-up", trip.stack_in_ns),
    ];
    let told = parts.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", format_ns(ns?))));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Parts, Spike};

    use super::*;
    use crate::style::Style;

    #[test]
    fn every_slot_and_every_part_is_told() {
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
