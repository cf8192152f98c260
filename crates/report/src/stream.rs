//! What the ends of a stream saw, in words and rows; how they stand on the page is the page's.

use analysis::format_ns;
use record::{ClockRelation, ClockTie, Histogram, Launch, Listener, Series, Stream, StreamIdentity, Talker};

use crate::blame::unsigned;

/// One end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Which end of which stream.
    pub title: String,
    /// The figures that people ask for first, with what they are.
    pub first: Vec<(&'static str, String)>,
    /// The other figures.
    pub figures: Vec<Figure>,
    /// Times: their name, four percentiles, and the largest.
    pub times: Vec<[String; 6]>,
    /// How to read all that.
    pub remarks: String,
    /// How the wake-up offset was found; empty where it was given.
    pub calibration: String,
    /// Late packets against the wake-up offset: offset, count, share, time spun; and whether it is the offset of the run.
    pub curve: Vec<([String; 4], bool)>,
}

/// A figure.
#[derive(Debug)]
pub(crate) struct Figure {
    pub name: &'static str,
    pub text: String,
    /// Whether it is bad news.
    pub bad: bool,
}

/// Headings of [`Told::times`].
pub(crate) const TIMES: [&str; 6] = ["time", "p50", "p99", "p99.9", "p99.99", "max"];
/// Headings of [`Told::curve`].
pub(crate) const CURVE: [&str; 4] = ["wake-up offset", "late packets", "of all", "time spun"];
/// What stands above that.
pub(crate) const CURVE_TITLE: &str = "Late packets against the wake-up offset, by how late this run's wake-ups were:";

/// What a series of the stream probe tells; `None` for another.
pub(crate) fn told(series: &Series) -> Option<Told> {
    Some(match series.kind.stream()? {
        Stream::Talker(talker) => of_talker(series, talker),
        Stream::Listener(listener) if listener.frames == 0 => Told {
            title: format!("Listener on {}{}", listener.identity.interface, of_host(series)),
            remarks: format!("No frame came; {} of other streams did.", listener.other_streams),
            ..Told::default()
        },
        Stream::Listener(listener) => of_listener(series, listener),
    })
}

fn of_talker(series: &Series, talker: &Talker) -> Told {
    let how = match (talker.offset_ns, &talker.launch) {
        (0, _) => "at each slot".to_owned(),
        (offset_ns, None) => format!("{} before each slot, then spun until it", unsigned(offset_ns)),
        (offset_ns, Some(_)) => format!("{} before each slot, and handed its frame over at once", unsigned(offset_ns)),
    };
    let exactly = talker.max_delta_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns} ns"));
    Told {
        title: format!("Talker on {}: {}", talker.identity.interface, in_words(&talker.identity, series.period_ns)),
        first: vec![("Late packets", talker.late.to_string()), ("Max delta", exactly)],
        figures: of_frames(talker),
        times: vec![times("sent after its slot began", &talker.send, talker.max_delta_ns)],
        remarks: format!(
            "woke {how}; late: sent more than {} after its slot; missed slots had no frame; too close: sent less than half a \
             period after the one before; sent by {}{}",
            unsigned(talker.tolerance_ns),
            talker.mode,
            besides(talker)
        ),
        calibration: calibration(talker),
        curve: curve(series, talker),
    }
}

fn of_frames(talker: &Talker) -> Vec<Figure> {
    let of_launch =
        talker.launch.iter().flat_map(|launch| [bad("invalid", launch.invalid), bad("txtime missed", launch.missed)]);
    let mut figures = vec![
        plain("frames", talker.frames.to_string()),
        bad("late", talker.late),
        bad("missed slots", talker.missed_slots),
        bad("refused", talker.refused),
    ];
    figures.extend(of_launch);
    figures.extend([
        bad("too close", talker.window_violations),
        plain("max delta", time(talker.max_delta_ns)),
        plain("after", talker.max_delta_at_ns.map_or_else(|| "-".to_owned(), unsigned)),
        plain("max |interval - period|", unsigned(talker.max_interval_error_ns)),
    ]);
    figures
}

/// What the discipline does with launch times.
fn in_time(launch: &Launch) -> String {
    let delta = unsigned(launch.delta_ns);
    let leaves = match launch.offloaded {
        true => format!("at its slot, by the NIC, which has it {delta} before"),
        false => format!("{delta} before its slot, as no NIC keeps it longer"),
    };
    format!(
        "; the discipline lets each frame go {leaves}; invalid: refused, as its slot had begun; txtime missed: dropped, as its \
         slot began while it waited"
    )
}

/// What the kernel did with frames besides sending them.
fn besides(talker: &Talker) -> String {
    match talker.zero_copy {
        Some(true) => ", without a copy".to_owned(),
        Some(false) => ", each frame copied".to_owned(),
        None => talker.launch.as_ref().map(in_time).unwrap_or_default(),
    }
}

fn calibration(talker: &Talker) -> String {
    let Some(calibration) = &talker.calibration else { return String::new() };
    let covered = match calibration.fits {
        true => "which covers all of them",
        false => "as the period has no room for one that covers all of them",
    };
    format!(
        "Wake-up offset {} from {} wake-ups before the run, at most {} late, {covered}.",
        unsigned(talker.offset_ns),
        calibration.samples,
        format_ns(calibration.max_ns)
    )
}

fn curve(series: &Series, talker: &Talker) -> Vec<([String; 4], bool)> {
    let percent = |part: u64, of: u64| part as f64 * 100.0 / of.max(1) as f64;
    let point = |&(offset_ns, late): &(u64, u64)| {
        let cells = [
            unsigned(offset_ns),
            late.to_string(),
            format!("{:.4} %", percent(late, series.samples)),
            format!("{:.1} %", percent(offset_ns, series.period_ns)),
        ];
        (cells, offset_ns == talker.offset_ns)
    };
    talker.curve.iter().filter(|_| series.samples > 0).map(point).collect()
}

fn of_listener(series: &Series, listener: &Listener) -> Told {
    let identity = &listener.identity;
    let exact = |ns: Option<u64>| ns.map(|ns| ns as i64);
    let mut rows = vec![times("between two frames as read", &listener.interval, exact(listener.max_gap_ns))];
    if has_stamps(listener) {
        let max_ns = exact(listener.max_kernel_gap_ns);
        rows.push(times("between two frames as stamped", &listener.kernel_interval, max_ns));
        rows.push(times("from the kernel's stamp to the read", &listener.read_delay, None));
    }
    if let Some(one_way) = &listener.one_way {
        let clock = clock(&one_way.clock);
        if has_stamps(listener) {
            rows.push(times(&format!("from sending to the kernel's stamp{clock}"), &one_way.way, None));
        }
        rows.push(times(&format!("from sending to the read{clock}"), &one_way.whole, None));
    }
    if let Some(variation) = &listener.delay_variation {
        if has_stamps(listener) {
            rows.push(times("longer than the quickest, to the kernel's stamp", &variation.way, None));
        }
        rows.push(times("longer than the quickest, to the read", &variation.whole, None));
    }
    Told {
        title: format!(
            "Listener on {}{}: {}",
            identity.interface,
            of_host(series),
            in_words(identity, series.period_ns)
        ),
        first: vec![("Max delta", listener.max_gap_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns} ns")))],
        figures: vec![
            plain("frames", listener.frames.to_string()),
            bad("lost", listener.lost),
            plain("bursts", listener.loss_bursts.to_string()),
            bad("duplicates", listener.duplicates),
            bad("reordered", listener.reordered),
            bad("gaps > 2 periods", listener.gaps),
            bad("too close", listener.window_violations),
            bad("wrong tag", listener.wrong_tag),
            plain("other streams", listener.other_streams.to_string()),
        ],
        times: rows,
        remarks: format!("{}. 1722.1: {}", how_to_read(listener), counters(listener)),
        ..Told::default()
    }
}

/// AF_XDP has none.
fn has_stamps(listener: &Listener) -> bool {
    !listener.from.starts_with("xdp")
}

fn how_to_read(listener: &Listener) -> String {
    let from = if has_stamps(listener) { String::new() } else { format!(", by {}", listener.from) };
    let mut text = format!(
        "waiting: {}{from}; max delta: the longest time between two frames as read; too close: less than half a period after the one \
         before",
        listener.wait
    );
    if listener.lost > 0 {
        text += &where_lost(listener);
    }
    if listener.numbers == "avtp" {
        text += "; losses by AVTP's 8-bit numbers, which cannot tell 256 in a row";
    }
    match &listener.one_way {
        Some(one_way) => {
            let least = time(one_way.least_slack_ns);
            text +=
                &format!("; {} read after their presentation time, least time left {least}", one_way.late_presentation);
        }
        None => text += "; nothing is said of presentation times, which lie on another machine's clock",
    }
    if let Some(variation) = &listener.delay_variation {
        text += &format!(
            "; longer than the quickest: how much longer each frame was under way than the quickest of its {}, since no clock is \
             common to both ends; a drift of {:+.3} ppm between them is taken out",
            unsigned(variation.window_ns),
            variation.drift_ppb as f64 / 1e3
        );
    }
    text
}

fn where_lost(listener: &Listener) -> String {
    let (ours, place, why) = match listener.lost_in_ring {
        Some(_) => (listener.lost_in_ring, "XDP ring", "which was full"),
        None => (listener.lost_in_socket, "socket", "whose buffer was full"),
    };
    match ours {
        Some(0) => {
            format!(
                "; all losses happened before the listener's {place}: at the talker, on the way, or in the interface"
            )
        }
        Some(ours) if ours == listener.lost => format!("; all were lost in the listener's {place}, {why}"),
        Some(ours) => format!("; {ours} were lost in the listener's {place}, the others before it"),
        None => "; where they were lost is not known, because other streams came in as well".to_owned(),
    }
}

/// ` of board-b` for a series of the far end.
fn of_host(series: &Series) -> String {
    series.host.as_ref().map_or_else(String::new, |host| format!(" of {host}"))
}

/// How the clocks of both ends stand to each other, behind the name of a time between them.
fn clock(relation: &ClockRelation) -> String {
    match (relation.tie, relation.error_ns) {
        (ClockTie::SameHost, _) => " (one clock)".to_owned(),
        (_, Some(error_ns)) => format!(" (PTP, within {})", unsigned(error_ns)),
        (_, None) => String::new(),
    }
}

/// The counters of IEEE Std 1722.1.
fn counters(listener: &Listener) -> String {
    let counters = &listener.counters;
    let named = [
        ("FRAMES_RX", Some(counters.frames_rx)),
        ("SEQ_NUM_MISMATCH", Some(counters.seq_num_mismatch)),
        ("MEDIA_RESET", Some(counters.media_reset)),
        ("TIMESTAMP_UNCERTAIN", Some(counters.timestamp_uncertain)),
        ("TIMESTAMP_NOT_VALID", Some(counters.timestamp_not_valid)),
        ("UNSUPPORTED_FORMAT", Some(counters.unsupported_format)),
        ("LATE_TIMESTAMP", counters.late_timestamp),
        ("EARLY_TIMESTAMP", counters.early_timestamp),
    ];
    let told = named.iter().filter_map(|(name, count)| Some(format!("{name} {}", (*count)?)));
    told.collect::<Vec<_>>().join(", ")
}

fn in_words(identity: &StreamIdentity, period_ns: u64) -> String {
    let tag = match (identity.pcp, identity.vid) {
        (Some(pcp), Some(vid)) => format!("priority {pcp}, VLAN {vid}"),
        _ => "no VLAN tag".to_owned(),
    };
    let StreamIdentity { stream_id, format, frame_bytes, .. } = identity;
    format!("stream {stream_id}, {format}, {tag}, {frame_bytes} bytes every {}", unsigned(period_ns))
}

fn plain(name: &'static str, text: String) -> Figure {
    Figure { name, text, bad: false }
}

fn bad(name: &'static str, count: u64) -> Figure {
    Figure { name, text: count.to_string(), bad: count > 0 }
}

/// Percentiles, and the largest of them: exactly where it is known, else the end of its bucket.
fn times(name: &str, histogram: &Histogram, max_ns: Option<i64>) -> [String; 6] {
    let max_ns = max_ns.or_else(|| histogram.iter().next_back().map(|(ns, _)| ns));
    let percentile = |percent: f64| time(histogram.percentile(percent).map(|ns| ns.min(max_ns.unwrap_or(ns))));
    [name.to_owned(), percentile(50.0), percentile(99.0), percentile(99.9), percentile(99.99), time(max_ns)]
}

fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format_ns)
}

#[cfg(test)]
mod tests;
