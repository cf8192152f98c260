//! Round trips as text and figures for terminal and HTML.

use analysis::{Summary, format_ns, rounded_ns};
use record::{
    Carrier, Framing, Histogram, PEER_WAKE, Record, RoundTrip, STACK_IN, Series, Spike, Times, Trip, grouped,
};

use crate::blame::unsigned;

/// Headings of the figures returned by [`times`].
pub const TIMES: [&str; 6] = ["min", "mean", "p50", "p99", "p99.9", "max"];

/// The number of longest round trips described part by part.
const LONGEST: usize = 3;

/// The peer that answers, the payload and the period.
pub fn title(series: &Series, round_trip: &RoundTrip) -> String {
    let peer = match round_trip.carrier {
        Carrier::Udp if round_trip.own_peer => "our own, through a veth pair".to_owned(),
        Carrier::Udp => "elsewhere".to_owned(),
        Carrier::Icmp => "ICMP echo".to_owned(),
        Carrier::Ethernet => frames(round_trip),
    };
    let every = unsigned(series.period_ns);
    let class = series.traffic_class().map_or_else(String::new, |name| format!(" of {name}"));
    let RoundTrip { peer: address, payload_bytes, transport, .. } = round_trip;
    let by = transport.as_ref().map_or_else(String::new, |transport| format!(", by {transport}"));
    format!("Round trips{class} to {address} ({peer}): {payload_bytes} bytes every {every}{by}")
}

/// The frames in words.
fn frames(round_trip: &RoundTrip) -> String {
    let Framing { ethertype, vlan_id, priority } = round_trip.frames.unwrap_or_default();
    let vlan = vlan_id.map_or_else(String::new, |id| format!(", VLAN {id}"));
    let own = if round_trip.own_peer { ", through a veth pair" } else { "" };
    format!("EtherType 0x{ethertype:04x}{vlan}, priority {priority}{own}")
}

/// Counts of slots and answers by outcome: name, count, and true if a count above 0 is bad news.
pub fn outcomes(series: &Series, round_trip: &RoundTrip) -> [(&'static str, u64, bool); 9] {
    [
        ("slots", round_trip.slots, false),
        ("answered", series.samples, false),
        ("lost", round_trip.lost, true),
        ("in a row", round_trip.lost_in_a_row, false),
        ("not sent", round_trip.not_sent(), true),
        ("late", round_trip.late, true),
        ("duplicates", round_trip.duplicates, true),
        ("reordered", round_trip.reordered, true),
        ("foreign", round_trip.foreign, true),
    ]
}

/// The round trips and their parts, each with the figures of [`TIMES`].
pub fn times(series: &Series, round_trip: &RoundTrip) -> Vec<(String, [String; 6])> {
    let parts = round_trip.parts.named().map(|(name, times)| (format!("  {name}"), times));
    let from_sent = [("from actual send time".to_owned(), round_trip.from_sent.as_ref())];
    let is_shown = |(name, times): &(String, Option<&Times>)| {
        times.is_some()
            || (name.trim() == PEER_WAKE && lacks_peer_wake(round_trip))
            || (name.trim() == STACK_IN && round_trip.transport.is_some())
    };
    let figures = |(name, times): (String, Option<&Times>)| (name, times.map_or([None; 6], of_times));
    let others = parts.into_iter().chain(from_sent).filter(is_shown).map(figures);
    let ways = round_trip.ways.iter().flat_map(|ways| [("out", &ways.out), ("back", &ways.back)]);
    let ways = ways.map(|(way, longer)| (format!("above the minimum, way {way}"), of_way(longer)));
    let all = [("from scheduled send time".to_owned(), of_series(series))].into_iter().chain(others).chain(ways);
    all.map(|(name, figures)| (name, figures.map(|ns| ns.map_or_else(|| "-".to_owned(), format_ns)))).collect()
}

/// True if the peer reports when it answered, but not when its kernel received the datagram.
fn lacks_peer_wake(round_trip: &RoundTrip) -> bool {
    round_trip.parts.peer.is_some() && round_trip.parts.peer_wake.is_none()
}

/// The figures of [`TIMES`] of a whole series.
pub fn of_series(series: &Series) -> [Option<i64>; 6] {
    let Summary { p50_ns, p99_ns, p99_9_ns, max_ns, .. } = Summary::of(series);
    [series.min_ns, series.mean_ns.map(rounded_ns), p50_ns, p99_ns, p99_9_ns, max_ns]
}

/// The figures of [`TIMES`] of a part.
pub fn of_times(times: &Times) -> [Option<i64>; 6] {
    let percentile = |percent: f64| times.histogram.percentile_below_max(percent).map(|ns| ns.min(times.max_ns));
    let mean_ns = Some(rounded_ns(times.mean_ns));
    [Some(times.min_ns), mean_ns, percentile(50.0), percentile(99.0), percentile(99.9), Some(times.max_ns)]
}

/// The figures of [`TIMES`], with three significant digits.
fn of_way(longer: &Histogram) -> [Option<i64>; 6] {
    let total = longer.total() as f64;
    let sum: f64 = longer.iter().map(|(ns, count)| ns as f64 * count as f64).sum();
    let Some(max_ns) = longer.percentile(100.0) else { return [None; 6] };
    let mean_ns = sum / total;
    let min_ns = longer.iter().map(|(ns, _)| ns).min().unwrap_or(max_ns);
    of_times(&Times { min_ns, mean_ns, max_ns, histogram: longer.clone() })
}

/// The explanation below the figures.
pub fn remarks(round_trip: &RoundTrip) -> String {
    let mut text = format!(
        "lost: no answer within {}. Percentiles of the first row include the slots that a late sender missed.",
        unsigned(round_trip.timeout_ns)
    );
    if let Some(error) = &round_trip.icmp_error {
        text += &format!(" ICMP errors: {}, the last: {error}.", grouped(round_trip.icmp_errors));
    }
    if round_trip.carrier == Carrier::Icmp {
        text += " The peer's own time is part of the wire time, because echo replies contain no times of the peer.";
    }
    let parts = &round_trip.parts;
    if round_trip.transport.is_some() {
        text +=
            " Our wake-up at the answer is part of the wire time, because the kernel takes no timestamps with AF_XDP.";
    } else if parts.stack_out.is_none() && parts.wire.is_some() {
        text += " The wire time includes the outgoing stack: --stamps all separates it.";
    }
    if lacks_peer_wake(round_trip) {
        text += " The peer's wake-up is part of the wire time: ";
        text += if round_trip.peer_xdp {
            "it uses AF_XDP, too."
        } else {
            "its `punctual echo` is older and does not report it."
        };
    }
    if let Some(missing) = round_trip.card_stamps_missing {
        text += &format!(
            " The network card did not stamp {} of the datagrams sent and {} of the answers: their wire time includes the card.",
            grouped(missing.sent),
            grouped(missing.received)
        );
    }
    if let Some(ways) = &round_trip.ways {
        text += &format!(
            " Above the minimum: the delay of each datagram on that way, with the wake-up of its receiver, minus the smallest \
                         delay of its {} window; a clock offset cancels out, and a drift of {:+.3} ppm between the clocks is removed.",
            unsigned(ways.window_ns),
            ways.drift_ppb as f64 / 1e3
        );
        if ways.left_out > 0 {
            text += &format!(" {} answers that came too fast to be evaluated are left out.", grouped(ways.left_out));
        }
    }
    if let Some(error_ns) = round_trip.stamp_error_ns {
        text += &format!(" The kernel's timestamps are accurate to {}.", unsigned(error_ns));
    }
    text
}

/// The longest round trips, part by part, one sentence each.
pub fn longest(series: &Series) -> Vec<String> {
    let mut spikes: Vec<(&Spike, &Trip)> =
        series.spikes.iter().filter_map(|spike| Some((spike, spike.trip.as_ref()?))).collect();
    spikes.sort_by_key(|(spike, _)| std::cmp::Reverse(spike.lateness_ns));
    let describe = |(spike, trip): &(&Spike, &Trip)| {
        let (whole, at) = (format_ns(spike.lateness_ns), unsigned(spike.at_ns));
        format!("{whole} after {at}: {}", in_words(trip))
    };
    spikes.iter().take(LONGEST).map(describe).collect()
}

/// Advice for a valid run whose longest round trip waited most of its time for the thread that answers; `None` for
/// others.
pub(crate) fn peer_advice(record: &Record) -> Option<(String, String)> {
    let spikes = record.series.iter().filter_map(|series| Some((&series.spikes, series.kind.round_trip()?)));
    let spikes = spikes.flat_map(|(spikes, round_trip)| spikes.iter().map(move |spike| (spike, round_trip)));
    let (longest, round_trip) = spikes.max_by_key(|(spike, _)| spike.lateness_ns)?;
    let peer_wake_ns = longest.trip.as_ref()?.peer_wake_ns?;
    if !record.validity.valid || peer_wake_ns <= longest.lateness_ns / 2 {
        return None;
    }
    let how = match round_trip.carrier {
        _ if round_trip.own_peer => "choose a quiet CPU with --echo-cpu, or another --echo-policy",
        Carrier::Udp => "start `punctual echo` with --cpu of a quiet CPU, or with another --policy",
        Carrier::Ethernet => "start `punctual mirror` with --cpu of a quiet CPU, or with another --policy",
        // A device does not report when its thread wakes up.
        Carrier::Icmp => return None,
    };
    Some((format!("the answering thread woke {} late: {how}", format_ns(peer_wake_ns)), String::new()))
}

/// The parts of a round trip in order.
fn in_words(trip: &Trip) -> String {
    let parts = [
        ("our wake-up", Some(trip.wake_ns)),
        ("stack out", trip.stack_out_ns),
        ("wire and stacks", Some(trip.wire_ns)),
        (PEER_WAKE, trip.peer_wake_ns),
        ("peer", trip.peer_ns),
        ("our driver and card", trip.card_ns),
        (STACK_IN, trip.stack_in_ns),
    ];
    let named = parts.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", format_ns(ns?))));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use record::SeriesKind;

    use super::*;

    /// The record of a round trip of 5 ms, with this wake-up of the answering thread.
    fn record(carrier: Carrier, own_peer: bool, peer_wake_ns: i64) -> Record {
        let trip = |peer_wake_ns| Some(Trip { peer_wake_ns: Some(peer_wake_ns), ..Trip::default() });
        let spikes = [(1_000_000, 900_000), (5_000_000, peer_wake_ns)].map(|(lateness_ns, wake_ns)| Spike {
            lateness_ns,
            trip: trip(wake_ns),
            ..Spike::default()
        });
        let kind = SeriesKind::RoundTrips(Box::new(RoundTrip { carrier, own_peer, ..RoundTrip::default() }));
        let series = vec![Series { kind, spikes: spikes.to_vec(), ..Series::default() }];
        let mut record = Record { series, ..Record::default() };
        record.validity.valid = true;
        record
    }

    #[test]
    fn advice_is_about_the_answering_thread_if_it_took_most_of_the_longest_time() {
        let advice = |carrier, own_peer, ns| peer_advice(&record(carrier, own_peer, ns)).map(|(text, _)| text);
        let has = |text: Option<String>, words: &str| text.is_some_and(|text| text.contains(words));
        assert!(has(advice(Carrier::Udp, false, 4_000_000), "late: start `punctual echo` with --cpu"));
        assert!(has(advice(Carrier::Ethernet, false, 4_000_000), "start `punctual mirror` with --cpu"));
        assert!(has(advice(Carrier::Udp, true, 4_000_000), "--echo-cpu"));
        assert_eq!(advice(Carrier::Udp, false, 2_500_000), None, "half of the time");
        assert_eq!(advice(Carrier::Icmp, false, 4_000_000), None, "a device");
        let mut invalid = record(Carrier::Udp, false, 4_000_000);
        invalid.validity.valid = false;
        assert_eq!(peer_advice(&invalid), None);
    }
}
