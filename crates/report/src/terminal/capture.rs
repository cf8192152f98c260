//! A captured stream: late packets, intervals, losses, and the frames to inspect.

use analysis::{Summary, format_duration, format_ns, rounded_ns};
use record::{
    Capture, CapturedKind, CapturedStream, Histogram, MarkedFrame, NumberedBy, PeriodSource, Record, Series,
    SeriesKind, counted, grouped,
};

use super::page::Page;
use super::table::Table;
use super::verdict::answer;
use super::{cell, count_cell, presentation, series, time};
use crate::{
    blame::unsigned,
    observation,
    style::{Ink, Spans},
    words::sentence,
};

/// The number of streams listed.
const STREAMS: usize = 16;
/// The number of rows in tables of frames.
const FRAMES: usize = 20;
/// The number of rows if the run's own figures come first.
const FRAMES_OF_OWN_RUN: usize = 5;

/// The page of a capture that was made elsewhere.
pub(super) fn page(page: &mut Page, record: &Record, capture: &Capture) {
    head(page, record, capture);
    let lateness = record.series.first();
    late_packets(page, capture, lateness);
    if let Some(lateness) = lateness {
        series::histograms(page, record, &[lateness]);
    }
    missing(page, capture);
    presentation::section(page, capture.presentation.as_ref());
    spacing(page, capture);
    frames(page, "Largest gaps", "gap", &capture.worst_gaps, FRAMES);
    frames(page, "Latest frames", "late", &capture.worst_late, FRAMES);
    streams(page, capture);
    uses(page, record);
}

/// The capture of a run's own stream; nothing for a record without one.
pub(super) fn section(page: &mut Page, record: &Record) {
    let Some((capture, observer)) = record.capture.as_ref().and_then(|one| Some((one, one.observer.as_ref()?))) else {
        return;
    };
    page.heading(&format!("Capture of this run: {}", capture.file));
    page.fact("seen", 6, &observation::place(observer));
    facts(page, capture);
    page.gap();
    let mut table = Table::new(&observation::HEADINGS);
    observation::rows(record).into_iter().for_each(|row| table.row(row.map(cell).to_vec()));
    page.table(&table);
    page.text(Ink::Quiet, &observation::how_to_read(capture));
    page.text(Ink::Plain, &observation::agreement_text(record));
    let lateness = record.series.iter().find(|series| series.kind == SeriesKind::Capture);
    late_packets(page, capture, lateness);
    missing(page, capture);
    presentation::section(page, capture.presentation.as_ref());
    spacing(page, capture);
    frames(page, "Largest gaps", "gap", &capture.worst_gaps, FRAMES_OF_OWN_RUN);
    frames(page, "Latest frames", "late", &capture.worst_late, FRAMES_OF_OWN_RUN);
}

fn head(page: &mut Page, record: &Record, capture: &Capture) {
    page.heading(&format!("{} in {}", title(&capture.stream), capture.file));
    facts(page, capture);
    if !record.command.is_empty() {
        page.text(Ink::Plain, "repeat with");
        page.remedy(4, &record::shell::command(&record.command));
    }
}

/// The file, the stream and its period.
fn facts(page: &mut Page, capture: &Capture) {
    let streams = counted(capture.streams.len() as u64, "stream");
    let frames = counted(capture.file_frames, "frame");
    page.fact(
        "file",
        6,
        &format!("{}, {frames}, {streams}; timestamp resolution {}", capture.format, unsigned(capture.resolution_ns)),
    );
    let lasted = format_duration(capture.duration_ns);
    page.fact("stream", 6, &format!("{}; {} in {lasted}", place(&capture.stream), counted(capture.frames, "frame")));
    page.fact("period", 6, &period(capture));
}

fn title(stream: &CapturedStream) -> String {
    let name = match stream.kind {
        CapturedKind::Avtp => format!("Stream {}", stream.name),
        CapturedKind::Ethertype => format!("EtherType {}", stream.name),
        CapturedKind::Udp => format!("UDP {}", stream.name),
    };
    if stream.protocol.is_empty() { name } else { format!("{name}, {}", stream.protocol) }
}

/// The way of a stream: `from 30:64:3e:54:ee:01 to 91:e0:f0:00:fe:01, VLAN 2, priority 3, interface 0`.
fn place(stream: &CapturedStream) -> String {
    let outer = stream.outer_vlan.map_or_else(String::new, |vlan| format!(" in VLAN {vlan}"));
    let vlan = stream.vlan.map_or_else(|| ", no VLAN tag".to_owned(), |vlan| format!(", VLAN {vlan}{outer}"));
    let pcp = stream.pcp.map_or_else(String::new, |pcp| format!(", priority {pcp}"));
    let way = |word: &str, address: &str| if address.is_empty() { String::new() } else { format!("{word} {address} ") };
    let (from, to) = (way("from", &stream.source), way("to", &stream.destination));
    let way = format!("{from}{to}");
    format!("{}{vlan}{pcp}, {}", way.trim_end(), stream.interface())
}

fn period(capture: &Capture) -> String {
    let period = &capture.period;
    let source = match period.told_by {
        PeriodSource::Asked => "given",
        PeriodSource::ClassA => "class A, from its priority",
        PeriodSource::ClassB => "class B, from its priority",
        PeriodSource::Median => "estimated from the frames",
    };
    let error = period.clock_error_ppm.unwrap_or(0.0);
    let ratio = period.clock_ppm.map_or_else(String::new, |ppm| format!(", {ppm:+.2} ppm +/- {error:.2}"));
    let nominal = unsigned(period.nominal_ns);
    let frames = match capture.frames_per_period {
        0 | 1 => String::new(),
        frames => format!(" for {frames} frames"),
    };
    format!("{nominal}{frames} ({source}); {} on the capture's clock{ratio}", format_ns(rounded_ns(period.fitted_ns)))
}

/// The causes of gaps and late frames that a capture file shows; nothing for other runs.
pub(crate) fn causes(record: &Record) -> Vec<String> {
    let Some(of) = record.capture.as_ref().filter(|capture| capture.observer.is_none() && record.validity.valid) else {
        return Vec::new();
    };
    let mut causes = Vec::new();
    let mut add = |count: Option<u64>, text: &dyn Fn(u64) -> String| {
        causes.extend(count.filter(|&count| count > 0).map(text));
    };
    let largest = of.worst_gaps.first().map_or_else(String::new, |gap| {
        format!("; the largest gap, {}, ends at frame {}", format_ns(gap.ns), grouped(gap.frame))
    });
    add(of.dropped, &|dropped| {
        format!("the capture itself dropped {}, according to the file", counted(dropped, "frame"))
    });
    add(of.lost, &|lost| {
        let (lost, losses) = (counted(lost, "frame"), counted(of.losses.unwrap_or(0), "place"));
        format!("{lost} lost between talker and capture, in {losses}{largest}")
    });
    add(of.skipped_slots.filter(|_| of.lost == Some(0)), &|skipped| {
        format!("no frame was lost: the talker left out {}{largest}", counted(skipped, "slot"))
    });
    add(of.restarts, &|restarts| format!("the talker restarted: {}", counted(restarts, "time")));
    causes
}

/// The two figures that users know best, and their meaning here.
fn late_packets(page: &mut Page, capture: &Capture, lateness: Option<&Series>) {
    page.heading("Lateness");
    let max_ns = lateness.and_then(|series| series.max_ns);
    let (late, ink) = match capture.late_packets {
        None => ("-".to_owned(), Ink::Plain),
        Some(late) => (grouped(late), if late > 0 { Ink::Bad } else { Ink::Good }),
    };
    page.line(&vec![(ink, format!("Late packets (as captured) = {late}"))]);
    let max = max_ns.map_or_else(|| "-".to_owned(), format_ns);
    page.line(&vec![(Ink::Title, format!("Max delta (as captured) = {max}"))]);
    page.text(
        Ink::Quiet,
        &format!(
            "Late packets: more than {}, half a period, behind their slots on the stream's own time grid; more than {} \
             behind: {}; the largest |interval - period| is {}",
            unsigned(capture.period.nominal_ns / 2),
            unsigned(capture.tolerance_ns),
            capture.late.map_or_else(|| "-".to_owned(), grouped),
            capture.max_deviation_ns.map_or_else(|| "-".to_owned(), unsigned)
        ),
    );
    let mut table = Table::new(&["", "frames", "min", "p50", "p99", "p99.9", "max"]);
    table.row(intervals(capture));
    if let Some(lateness) = lateness {
        table.row(of_series(lateness));
    }
    page.table(&table);
}

fn of_series(series: &Series) -> Spans {
    let figures = Summary::of(series);
    let percentiles = [figures.p50_ns, figures.p99_ns, figures.p99_9_ns];
    row("lateness", series.samples, series.min_ns, percentiles, series.max_ns)
}

fn intervals(capture: &Capture) -> Spans {
    // The precision of a large negative interval can be below the smallest one.
    let percentile =
        |percent: f64| exact_percentile(&capture.spacing, percent, capture.max_gap_ns).max(capture.min_gap_ns);
    let percentiles = [50.0, 99.0, 99.9].map(percentile);
    row("interval", capture.spacing.total(), capture.min_gap_ns, percentiles, capture.max_gap_ns)
}

/// A row of times.
fn row(name: &str, count: u64, min_ns: Option<i64>, percentiles: [Option<i64>; 3], max_ns: Option<i64>) -> Spans {
    let [p50, p99, p99_9] = percentiles;
    let times = [min_ns, p50, p99, p99_9, max_ns].map(|ns| cell(time(ns)));
    [cell(name), cell(grouped(count))].into_iter().chain(times).collect()
}

/// A percentile. It is limited to `max_ns` because a bucket stands for its highest value.
pub(crate) fn exact_percentile(histogram: &Histogram, percent: f64, max_ns: Option<i64>) -> Option<i64> {
    Some(histogram.percentile(percent).filter(|_| !histogram.is_empty())?.min(max_ns?))
}

/// Frames that were lost, duplicated or out of order.
fn missing(page: &mut Page, capture: &Capture) {
    page.heading("Losses");
    let headings = ["", "lost", "losses", "longest", "duplicates", "reordered", "too late", "skipped slots"];
    let mut table = Table::new(&headings);
    let protocol = capture.stream.protocol.split(',').next().unwrap_or_default();
    let numbered = match capture.numbered_by {
        NumberedBy::Nothing => "frames have no number".to_owned(),
        NumberedBy::Avtp => "by AVTP's sequence number (8 bits)".to_owned(),
        NumberedBy::Talker => "by our talker's sequence number (64 bits)".to_owned(),
        NumberedBy::Protocol if protocol.is_empty() => "by the number of its protocol".to_owned(),
        NumberedBy::Protocol => format!("by the number of {protocol}"),
        NumberedBy::RedundancyTag => "by the redundancy tag (16 bits)".to_owned(),
    };
    let known = |count: Option<u64>| count.map_or_else(|| cell("-"), count_cell);
    table.row(vec![
        cell(numbered),
        known(capture.lost),
        known(capture.losses),
        known(capture.longest_loss),
        known(capture.duplicates),
        known(capture.reordered),
        known(capture.too_late),
        known(capture.skipped_slots),
    ]);
    page.table(&table);
    if capture.stream.copies > 0 {
        let copies = match capture.stream.copies {
            1 => "1 copy".to_owned(),
            copies => format!("{} copies", grouped(copies)),
        };
        page.remark(&format!(
            "{copies} of other frames arrived, as intended with redundant ways: none is counted above"
        ));
    }
    if let Some(restarts) = capture.restarts.filter(|&restarts| restarts > 0) {
        page.remark(&format!("the talker restarted {}: frames lost there are not counted", counted(restarts, "time")));
    }
}

/// Frames that came too early, too late or in bursts.
fn spacing(page: &mut Page, capture: &Capture) {
    page.heading("Spacing");
    if (capture.missed_slots, capture.window_violations, capture.bursts) == (None, None, None)
        && capture.shaper.is_none()
    {
        page.remark("the timestamps do not show whether frames came too early, too late or in bursts");
    }
    let item = |page: &mut Page, count: u64, text: String| {
        page.item(if count > 0 { Ink::Bad } else { Ink::Good }, "", 0, &text);
    };
    if let Some(missed) = capture.missed_slots {
        item(page, missed, format!("{} more than a period late", counted(missed, "frame")));
    }
    if let Some(violations) = capture.window_violations {
        let frames = counted(violations, "frame");
        item(page, violations, format!("{frames} in a grid interval that already had one"));
    }
    if let Some(bursts) = capture.bursts {
        let longest = counted(capture.longest_burst, "frame");
        let longest = if bursts > 0 { format!(", the longest of {longest}") } else { String::new() };
        let text = format!("{} of frames less than a quarter of the period apart{longest}", counted(bursts, "burst"));
        item(page, bursts, text);
    }
    if let Some(shaper) = &capture.shaper {
        let slope = bits(shaper.idle_slope_bps);
        let source = if shaper.asked { "given" } else { "one longest frame per period" };
        let lowest = match shaper.violations {
            0 => String::new(),
            _ => format!(", the lowest {:.0} bits", shaper.lowest_bits),
        };
        let (count, link) = (shaper.violations, bits(shaper.link_bps));
        let text = format!(
            "{} sent with negative credit{lowest} (idle slope {slope}, {source}; link {link})",
            counted(count, "frame")
        );
        item(page, count, text);
    }
}

/// A rate with its unit: `7.296 Mbit/s`.
pub(crate) fn bits(bps: u64) -> String {
    let (scale, unit) = match bps {
        0..1_000_000 => (1e3, "kbit/s"),
        1_000_000..1_000_000_000 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    format!("{} {unit}", bps as f64 / scale)
}

/// A table of frames to inspect.
fn frames(page: &mut Page, heading: &str, what: &str, frames: &[MarkedFrame], most: usize) {
    if frames.is_empty() {
        return;
    }
    page.heading(heading);
    let mut table = Table::new(&["frame", "after", what]).figures();
    for one in frames.iter().take(most) {
        table.row(vec![cell(one.frame.to_string()), cell(seconds(one.at_ns)), cell(format_ns(one.ns))]);
    }
    page.table(&table);
    let first = frames.first().map_or(0, |one| one.frame);
    page.text(
        Ink::Quiet,
        &format!("frame numbers as in Wireshark (frame.number == {first}); times after the stream's first frame"),
    );
}

/// `12.345678901 s`.
pub(crate) fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let size = ns.unsigned_abs();
    format!("{sign}{}.{:09} s", size / 1_000_000_000, size % 1_000_000_000)
}

/// The name of a stream in the list, with its source if another row would read the same.
fn listed_name(stream: &CapturedStream, all: &[CapturedStream]) -> String {
    let row = |one: &CapturedStream| {
        (one.name.clone(), one.protocol.clone(), one.destination.clone(), one.vlan, one.interface)
    };
    let has_same = all.iter().any(|other| other.source != stream.source && row(other) == row(stream));
    if has_same { format!("{}, from {}", stream.name, stream.source) } else { stream.name.clone() }
}

/// All streams of the file, if there are several.
fn streams(page: &mut Page, capture: &Capture) {
    if capture.streams.len() < 2 {
        return;
    }
    page.heading("Streams in the file");
    let headings = ["number", "stream", "protocol", "to", "VLAN", "interface", "frames", "lost", "per second", "bytes"];
    let mut table = Table::new(&headings).words(1).words(2).words(3);
    for (number, stream) in (1..).zip(&capture.streams).take(STREAMS) {
        let per_second = stream.frames.saturating_sub(1) as f64 * 1e9 / stream.duration_ns.max(1) as f64;
        table.row(vec![
            cell(number.to_string()),
            cell(listed_name(stream, &capture.streams)),
            cell(if stream.protocol.is_empty() { "-" } else { &stream.protocol }),
            cell(if stream.destination.is_empty() { "-" } else { &stream.destination }),
            cell(stream.vlan.map_or_else(|| "-".to_owned(), |vlan| vlan.to_string())),
            cell(
                stream.kernel_interface.map_or_else(
                    || stream.interface.to_string(),
                    |index| format!("{}, index {index}", stream.interface),
                ),
            ),
            cell(grouped(stream.frames)),
            stream.lost.map_or_else(|| cell("-"), count_cell),
            cell(if stream.duration_ns > 0 { format!("{per_second:.1}") } else { "-".to_owned() }),
            cell(grouped(stream.bytes)),
        ]);
    }
    page.table(&table);
    if let Some(more) = capture.streams.len().checked_sub(STREAMS).filter(|more| *more > 0) {
        page.text(Ink::Quiet, &format!("{more} more streams: --json lists all"));
    }
    page.text(
        Ink::Quiet,
        "select another one with --stream NUMBER; --stream-id, --udp, --ethertype, --vlan, --source, --destination and \
         --interface shorten the list",
    );
}

/// The conclusions about requested uses; the verdict follows at the end.
fn uses(page: &mut Page, record: &Record) {
    for a_use in &record.uses {
        page.heading(&a_use.title);
        page.item(answer(a_use.outcome).0, a_use.outcome.name(), 0, &sentence(&a_use.statement));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_seconds_and_bit_rates() {
        assert_eq!(seconds(12_345_678_901), "12.345678901 s");
        assert_eq!(seconds(-5), "-0.000000005 s");
        assert_eq!(bits(7_296_000), "7.296 Mbit/s");
        assert_eq!(bits(1_000_000_000), "1 Gbit/s");
    }

    #[test]
    fn rows_that_would_read_the_same_name_the_source() {
        let stream = |source: &str, interface| CapturedStream {
            name: "a".into(),
            source: source.into(),
            interface,
            ..CapturedStream::default()
        };
        let all = [stream("x", 0), stream("y", 0), stream("z", 1)];
        assert_eq!([0, 1, 2].map(|n| listed_name(&all[n], &all)), ["a, from x", "a, from y", "a"]);
    }
}
