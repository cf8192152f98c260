//! Streams: what a talker sent and when, what a listener got, and which wake-up offset the machine needs.

use analysis::format_ns;
use record::{Histogram, Listener, Series, Stream, StreamIdentity, Talker};

use super::page::Page;
use super::table::Table;
use super::{cell, count_cell, time};
use crate::blame::unsigned;
use crate::style::{Ink, Spans};

/// One end of a stream with all its figures.
pub(super) fn section(page: &mut Page, series: &Series) {
    match &series.stream {
        Some(Stream::Talker(talker)) => self::talker(page, series, talker),
        Some(Stream::Listener(listener)) => self::listener(page, series, listener),
        None => {}
    }
}

fn talker(page: &mut Page, series: &Series, talker: &Talker) {
    page.heading(&format!("Talker on {}: {}", talker.identity.interface, in_words(&talker.identity, series.period_ns)));
    page.line(&vec![cell("Late packets = "), (Ink::Title, talker.late.to_string())]);
    page.line(&vec![
        cell("Max delta = "),
        (Ink::Title, talker.max_delta_ns.map_or("-".to_owned(), |ns| format!("{ns} ns"))),
    ]);
    page.gap();
    let mut table = Table::new(&[
        "frames",
        "late",
        "missed slots",
        "refused",
        "too close",
        "max delta",
        "after",
        "max |interval - period|",
    ])
    .figures();
    table.row(vec![
        cell(talker.frames.to_string()),
        bad(talker.late),
        bad(talker.missed_slots),
        bad(talker.refused),
        bad(talker.window_violations),
        (Ink::Title, time(talker.max_delta_ns)),
        cell(talker.max_delta_at_ns.map_or_else(|| "-".to_owned(), unsigned)),
        cell(unsigned(talker.max_interval_error_ns)),
    ]);
    page.table(&table);
    let mut times = times_table();
    times.row(times_row("sent after its slot began", &talker.send, talker.max_delta_ns));
    page.gap();
    page.table(&times);
    let how = match talker.offset_ns {
        0 => "at each slot".to_owned(),
        offset_ns => format!("{} before each slot, then spun until it", unsigned(offset_ns)),
    };
    page.text(
        Ink::Quiet,
        &format!(
            "woke {how}; late: sent more than {} after its slot; missed slots had no frame; too close: sent less than half a \
             period after the one before; sent by {}",
            unsigned(talker.tolerance_ns),
            talker.mode
        ),
    );
    curve(page, series, talker);
}

/// Which offset would have made how many packets late.
fn curve(page: &mut Page, series: &Series, talker: &Talker) {
    if let Some(calibration) = &talker.calibration {
        let covered = match calibration.fits {
            true => "which covers all of them",
            false => "as the period has no room for one that covers all of them",
        };
        page.gap();
        page.text(
            Ink::Plain,
            &format!(
                "Wake-up offset {} from {} wake-ups before the run, at most {} late, {covered}.",
                unsigned(talker.offset_ns),
                calibration.samples,
                format_ns(calibration.max_ns)
            ),
        );
    }
    if talker.curve.is_empty() || series.samples == 0 {
        return;
    }
    let mut table = Table::new(&["wake-up offset", "late packets", "of all", "time spun"]).figures();
    for &(offset_ns, late) in &talker.curve {
        let ink = if offset_ns == talker.offset_ns { Ink::Title } else { Ink::Plain };
        table.row(vec![
            (ink, unsigned(offset_ns)),
            (ink, late.to_string()),
            (ink, format!("{:.4} %", late as f64 * 100.0 / series.samples as f64)),
            (ink, format!("{:.1} %", offset_ns as f64 * 100.0 / series.period_ns as f64)),
        ]);
    }
    page.gap();
    page.text(Ink::Plain, "Late packets against the wake-up offset, by how late this run's wake-ups were:");
    page.table(&table);
}

fn listener(page: &mut Page, series: &Series, listener: &Listener) {
    let identity = &listener.identity;
    if listener.frames == 0 {
        page.heading(&format!("Listener on {}", identity.interface));
        page.text(Ink::Plain, &format!("No frame came; {} of other streams did.", listener.other_streams));
        return;
    }
    page.heading(&format!("Listener on {}: {}", identity.interface, in_words(identity, series.period_ns)));
    let max_ns = listener.max_gap_ns.map_or("-".to_owned(), |ns| format!("{ns} ns"));
    page.line(&vec![cell("Max delta = "), (Ink::Title, max_ns), cell(" between two frames")]);
    page.gap();
    let mut table = Table::new(&[
        "frames",
        "lost",
        "bursts",
        "duplicates",
        "reordered",
        "gaps > 2 periods",
        "too close",
        "wrong tag",
        "other streams",
    ])
    .figures();
    table.row(vec![
        cell(listener.frames.to_string()),
        bad(listener.lost),
        cell(listener.loss_bursts.to_string()),
        bad(listener.duplicates),
        bad(listener.reordered),
        bad(listener.gaps),
        bad(listener.window_violations),
        bad(listener.wrong_tag),
        cell(listener.other_streams.to_string()),
    ]);
    page.table(&table);
    page.gap();
    page.table(&times(listener));
    page.text(Ink::Quiet, &remarks(listener));
    counters(page, listener);
}

fn times(listener: &Listener) -> Table {
    let exact = |ns: Option<u64>| ns.map(|ns| ns as i64);
    let mut table = times_table();
    table.row(times_row("between two frames as read", &listener.interval, exact(listener.max_gap_ns)));
    let stamped = &listener.kernel_interval;
    table.row(times_row("between two frames as stamped", stamped, exact(listener.max_kernel_gap_ns)));
    table.row(times_row("from the kernel's stamp to the read", &listener.read_delay, None));
    if let Some(one_way) = &listener.one_way {
        table.row(times_row("from sending to the kernel's stamp", &one_way.way, None));
        table.row(times_row("from sending to the read", &one_way.whole, None));
    }
    table
}

/// How to read the tables.
fn remarks(listener: &Listener) -> String {
    let mut text = format!("waited {}; too close: less than half a period after the one before", listener.mode);
    if listener.lost > 0 {
        text += &match listener.lost_in_socket {
            Some(0) => {
                "; all losses happened before this machine's socket: at the talker, on the way, or in the interface"
                    .to_owned()
            }
            Some(ours) if ours == listener.lost => {
                "; all were lost in this machine's socket, whose buffer was full".to_owned()
            }
            Some(ours) => format!("; {ours} were lost in this machine's socket, the others before it"),
            None => "; where they were lost is not known, because other streams came in as well".to_owned(),
        };
    }
    if listener.numbers == "avtp" {
        text += "; losses by AVTP's 8-bit numbers, which cannot tell 256 in a row";
    }
    match &listener.one_way {
        Some(one_way) => {
            let least = one_way.least_slack_ns.map_or("-".to_owned(), format_ns);
            text +=
                &format!("; {} read after their presentation time, least time left {least}", one_way.late_presentation);
        }
        None => text += "; nothing is said of presentation times, which lie on another machine's clock",
    }
    text
}

/// The counters of IEEE Std 1722.1.
fn counters(page: &mut Page, listener: &Listener) {
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
    page.gap();
    page.text(Ink::Plain, &format!("1722.1: {}", told.collect::<Vec<_>>().join(", ")));
}

fn in_words(identity: &StreamIdentity, period_ns: u64) -> String {
    let tag = match (identity.pcp, identity.vid) {
        (Some(pcp), Some(vid)) => format!("priority {pcp}, VLAN {vid}"),
        _ => "no VLAN tag".to_owned(),
    };
    let StreamIdentity { stream_id, format, frame_bytes, .. } = identity;
    format!("stream {stream_id}, {format}, {tag}, {frame_bytes} bytes every {}", unsigned(period_ns))
}

fn bad(count: u64) -> (Ink, String) {
    count_cell(count, count.to_string())
}

fn times_table() -> Table {
    Table::new(&["time", "p50", "p99", "p99.9", "p99.99", "max"])
}

/// Percentiles, and the largest of them: exactly where it is known, else the end of its bucket.
fn times_row(name: &str, histogram: &Histogram, max_ns: Option<i64>) -> Spans {
    let max_ns = max_ns.or_else(|| histogram.iter().next_back().map(|(ns, _)| ns));
    let percentile = |percent: f64| time(histogram.percentile(percent).map(|ns| ns.min(max_ns.unwrap_or(ns))));
    vec![
        cell(name),
        cell(percentile(50.0)),
        cell(percentile(99.0)),
        cell(percentile(99.9)),
        cell(percentile(99.99)),
        (Ink::Title, time(max_ns)),
    ]
}
