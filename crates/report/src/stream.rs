//! The ends of a stream as text and rows for terminal and HTML.

use analysis::{format_exact, format_ns};
use record::{
    CapturedMediaChange, ClaimedAddresses, ClockRelation, ClockTie, Histogram, Launch, Listener, Maap, MaapResolution,
    OneWay, ReceivedStream, Record, Series, Stream, StreamIdentity, Talker, TalkerLoad, Times, counted, grouped,
    stream_name,
};

use crate::{blame::unsigned, words::capitalized};

/// The texts and figures of one end of a stream.
#[derive(Debug, Default)]
pub(crate) struct EndSummary {
    /// The end and its stream.
    pub title: String,
    /// The most important figures, with their names.
    pub first: Vec<(&'static str, String)>,
    /// The other figures.
    pub figures: Vec<Figure>,
    /// The streams that a listener got from one talker, the worst first: see [`STREAMS`]. The last row can be for several.
    pub streams: Vec<[String; 5]>,
    /// Times: name, four percentiles and the largest.
    pub times: Vec<[String; 6]>,
    /// Figures of presentation times; empty without a common clock.
    pub presentation: Vec<Figure>,
    /// The explanation below the figures.
    pub remarks: String,
    /// The destination addresses that MAAP claimed; empty without it.
    pub addresses: String,
    /// The calibration of the wake-up offset; empty if the offset was given.
    pub calibration: String,
    /// Late frames by wake-up offset: offset, count, share and spin time; true for the offset of the run.
    pub curve: Vec<([String; 4], bool)>,
}

/// One figure.
#[derive(Debug)]
pub(crate) struct Figure {
    pub name: &'static str,
    pub text: String,
    /// True if it is bad news.
    pub bad: bool,
}

/// The knee is offered if it saves at least this part of the period, per cent of a CPU.
const KNEE_SAVES_PERCENT: u64 = 10;
/// A real-time talker that uses this part of its CPU, per cent, is near the limit of the kernel, 95 % by default.
const FULL_PERCENT: u64 = 90;
/// The option of the wake-up offset.
const OFFSET: &str = "--wakeup-offset";
/// Most streams with a row of their own.
const STREAM_ROWS: usize = 8;
/// Headings of [`EndSummary::streams`].
pub(crate) const STREAMS: [&str; 5] = ["stream", "frames", "lost", "duplicates", "longest gap"];
/// Headings of [`EndSummary::times`].
pub(crate) const TIMES: [&str; 6] = ["time", "p50", "p99", "p99.9", "p99.99", "max"];
/// Headings of [`EndSummary::curve`].
pub(crate) const CURVE: [&str; 4] = ["wake-up offset", "late frames", "share", "spin time"];
/// The heading above the curve.
pub(crate) const CURVE_TITLE: &str =
    "Late frames by wake-up offset, computed from the lateness of this run's wake-ups:";

/// Advice and command for a talker most of whose frames are late because it wakes at its slots: wake-ups are always a
/// little late. `None` for other runs, for invalid ones, and if a calibration chose the offset.
pub(crate) fn offset_advice(record: &Record) -> Option<(String, String)> {
    let mut talkers = record.series.iter().filter_map(|series| series.kind.talker());
    let wakes_at_slots =
        |talker: &Talker| talker.offset_ns == 0 && talker.launch.is_none() && talker.calibration.is_none();
    let is_late = |talker: &Talker| wakes_at_slots(talker) && talker.late > talker.frames / 2;
    if !record.validity.valid || !talkers.any(is_late) {
        return None;
    }
    let advice = "frames are late because the talker wakes at its slots: let it wake earlier and spin until the slot";
    Some(with_offset(record, advice, "auto"))
}

/// Advice and command for a talker that spins so long that its CPU has no time for other threads. `None` for other
/// runs, and for invalid ones.
pub(crate) fn full_cpu_advice(record: &Record) -> Option<(String, String)> {
    let loads =
        record.series.iter().filter_map(|series| Some((series, series.kind.talker()?, TalkerLoad::of(series)?)));
    let full =
        loads.filter(|(_, talker, load)| load.percent >= FULL_PERCENT && load.longest_offset_ns < talker.offset_ns);
    let (series, talker, load) = full.max_by_key(|(.., load)| load.percent)?;
    if !record.validity.valid {
        return None;
    }
    let offset_ns = load.longest_offset_ns.min(talker.knee_ns.unwrap_or(u64::MAX));
    let spinning = talker.offset_ns as f64 * 100.0 / series.period_ns.max(1) as f64;
    let advice = format!(
        "the talker uses {} % of its CPU, up to {spinning:.0} % to spin: while other threads wait there, the kernel stops \
         it; use a shorter wake-up offset",
        load.percent
    );
    let offset = if offset_ns == 0 { "0us".to_owned() } else { format_exact(offset_ns) };
    Some(with_offset(record, &advice, &offset))
}

/// Advice and command for a talker that spins much longer than the knee of its curve, for few late frames less. `None`
/// for other runs, and for invalid ones.
pub(crate) fn knee_advice(record: &Record) -> Option<(String, String)> {
    let mut talkers = record.series.iter().filter_map(|series| Some((series, series.kind.talker()?)));
    let (text, knee_ns) = talkers.find_map(|(series, talker)| knee_in_words(series, talker))?;
    if !record.validity.valid {
        return None;
    }
    Some(with_offset(record, &text, &format_exact(knee_ns)))
}

/// What the offset of the talker costs and gains compared to the knee, and the knee in ns; `None` if it costs little.
fn knee_in_words(series: &Series, talker: &Talker) -> Option<(String, u64)> {
    let knee_ns = talker.knee_ns?;
    if talker.offset_ns.saturating_sub(knee_ns) < percent_of(series.period_ns, KNEE_SAVES_PERCENT) {
        return None;
    }
    let late = |offset_ns: u64| talker.curve.iter().find(|point| point.0 == offset_ns).map(|point| point.1);
    let of = u128::from(series.samples.max(1));
    let per_million = |late: u64| u64::try_from((u128::from(late) * 1_000_000 + of / 2) / of).unwrap_or(u64::MAX);
    let (ours, knees) = (per_million(late(talker.offset_ns)?), per_million(late(knee_ns)?));
    let cost = |offset_ns: u64| format!("{:.0} %", offset_ns as f64 * 100.0 / series.period_ns.max(1) as f64);
    let late = match knees > ours {
        true => format!("{} instead of {} late frames in a million", grouped(knees), grouped(ours)),
        false => "as few late frames".to_owned(),
    };
    let (spent, saved) = (cost(talker.offset_ns), cost(knee_ns));
    Some((
        format!("spinning takes up to {spent} of the CPU; {} takes {saved}, with {late}", unsigned(knee_ns)),
        knee_ns,
    ))
}

/// The advice to measure with another wake-up offset, with its command if the record is of one measurement.
fn with_offset(record: &Record, advice: &str, offset: &str) -> (String, String) {
    let is_measurement = record.command.get(1).is_some_and(|word| ["measure", "pair"].contains(&word.as_str()));
    match is_measurement {
        true => (format!("{advice}:"), record::shell::with_options(&record.command, &[(OFFSET, offset)])),
        false => (format!("{advice}, with a wake-up offset of {offset}"), String::new()),
    }
}

/// Summarizes a series of the stream probe; `None` for other series.
pub(crate) fn summarize(series: &Series) -> Option<EndSummary> {
    Some(match series.kind.stream()? {
        Stream::Talker(talker) => of_talker(series, talker),
        Stream::Listener(listener) if listener.frames == 0 => EndSummary {
            title: format!("Listener on {}{}", listener.identity.interface, of_host(series)),
            remarks: format!("No frames received; {} frames of other streams.", grouped(frames_of_others(listener))),
            ..EndSummary::default()
        },
        Stream::Listener(listener) => of_listener(series, listener),
    })
}

/// Frames of other streams than the followed one, whose own count is the first of the talker's streams.
fn frames_of_others(listener: &Listener) -> u64 {
    listener.other_streams + listener.streams.iter().skip(1).map(|stream| stream.frames).sum::<u64>()
}

fn of_talker(series: &Series, talker: &Talker) -> EndSummary {
    let how = match (talker.offset_ns, &talker.launch) {
        (0, _) => "at each slot".to_owned(),
        (offset_ns, None) => format!("{} before each slot, then spun until the slot", unsigned(offset_ns)),
        (offset_ns, Some(_)) => format!("{} before each slot, and handed over its frame at once", unsigned(offset_ns)),
    };
    let of_several = match talker.stream_count() {
        1 => String::new(),
        count => format!("{count} streams with one frame each in every slot; the figures are those of the first; "),
    };
    let exactly = talker.max_delta_ns.map_or_else(|| "-".to_owned(), format_ns);
    EndSummary {
        title: format!("Talker on {}: {}", talker.identity.interface, in_words(&talker.identity, series.period_ns)),
        first: vec![("Late packets (talker)", late_packets(talker.late_packets)), ("Max delta (talker)", exactly)],
        figures: of_frames(talker),
        streams: Vec::new(),
        presentation: Vec::new(),
        times: sending_times(talker),
        remarks: capitalized(&format!(
            "{of_several}woke {how}; Late packets: sent more than {}, half a period, after their slots; late: more than {}; missed slots: slots without a frame; too close: sent \
                         less than half a period after the frame before; mode {}{}{}",
            unsigned(series.period_ns / 2),
            unsigned(talker.tolerance_ns),
            talker.mode,
            kernel_handling(talker),
            stamps_in_words(talker)
        )),
        addresses: talker.maap.as_ref().map(claimed_addresses).unwrap_or_default(),
        calibration: calibration(talker),
        curve: curve(series, talker),
    }
}

/// When frames were handed over, and their way to the wire.
fn sending_times(talker: &Talker) -> Vec<[String; 6]> {
    let mut rows = vec![times("sent after the slot began", &talker.send, talker.max_delta_ns)];
    let Some(stamps) = &talker.stamps else { return rows };
    let mut row = |name: &str, of: Option<&Times>| {
        rows.extend(of.map(|of| times(name, &of.histogram, Some(of.max_ns))));
    };
    let to_driver = if talker.launch.is_some() { "from launch time to driver" } else { "from send to driver" };
    row(to_driver, stamps.stack_out.as_ref());
    if let Some(card) = &stamps.card {
        row("from driver to wire", card.driver_and_card.as_ref());
        row("on the wire after the slot began", card.after_slot.as_ref());
    }
    rows
}

/// The missing timestamps of sent frames, and the error of the clocks; empty without timestamps.
fn stamps_in_words(talker: &Talker) -> String {
    let Some(stamps) = &talker.stamps else { return String::new() };
    let mut text = String::new();
    let all_but = |missing| format!("stamped all but {}", counted(missing, "frame"));
    if stamps.missing > 0 {
        text += &format!("; the driver {}", all_but(stamps.missing));
    }
    match &stamps.card {
        Some(card) if card.after_slot.is_none() => text += "; the network card stamped no frame",
        Some(card) => {
            let error = unsigned(card.clock_error_ns + stamps.clock_error_ns);
            text +=
                &format!("; times of the wire are on the clock {} of the network card, to within {error}", card.clock);
            if card.missing > 0 {
                text += &format!("; it {}", all_but(card.missing));
            }
        }
        None => {}
    }
    if stamps.unusable > 0 {
        text += &format!(
            "; a clock was set, so {} not used",
            match stamps.unusable {
                1 => "1 timestamp is".to_owned(),
                count => format!("{} timestamps are", grouped(count)),
            }
        );
    }
    text
}

/// The number of late packets; `-` in records of older versions.
fn late_packets(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), grouped)
}

fn of_frames(talker: &Talker) -> Vec<Figure> {
    let of_launch =
        talker.launch.iter().flat_map(|launch| [bad("invalid", launch.invalid), bad("txtime missed", launch.missed)]);
    let mut figures = vec![
        count("frames", talker.frames),
        bad("late", talker.late),
        bad("missed slots", talker.missed_slots),
        bad("refused", talker.refused),
    ];
    if talker.stream_count() > 1 {
        figures.push(bad("refused, worst stream", talker.most_refused()));
    }
    figures.extend(of_launch);
    figures.extend([
        bad("too close", talker.window_violations),
        plain("max delta", time(talker.max_delta_ns)),
        plain("after", talker.max_delta_at_ns.map_or_else(|| "-".to_owned(), unsigned)),
        plain("max |interval - period|", unsigned(talker.max_interval_error_ns)),
    ]);
    figures
}

/// The handling of launch times by the queueing discipline.
fn launch_handling(launch: &Launch) -> String {
    let delta = unsigned(launch.delta_ns);
    let leaves = match launch.offloaded {
        true => format!("at its slot, by the NIC, which gets it {delta} before"),
        false => format!("{delta} before its slot, because no NIC holds it until then"),
    };
    format!(
        "; the queueing discipline releases each frame {leaves}; invalid: refused because the slot had begun; txtime \
                 missed: dropped because the slot began while the frame was queued"
    )
}

/// The addresses that MAAP claimed, and the conflicts.
fn claimed_addresses(maap: &Maap) -> String {
    let addresses = |first: &str, count: u64| match count {
        1 => first.to_owned(),
        count => format!("{count} addresses from {first}"),
    };
    let range = |claimed: &ClaimedAddresses| {
        let lost = claimed.lost_to.as_ref().map_or_else(String::new, |owner| format!(" (lost to {owner})"));
        format!("{}{lost}", addresses(&claimed.first, claimed.count))
    };
    let claimed: Vec<String> = maap.claimed.iter().map(range).collect();
    let listed = maap.conflicts.iter().map(|conflict| {
        let (source, ours) = (&conflict.source, addresses(&conflict.first, conflict.count));
        match conflict.resolution {
            MaapResolution::Defended => format!("{source} probed {ours}, which was defended"),
            MaapResolution::Kept => format!("{source} also claimed {ours}, but has to yield"),
            MaapResolution::Left => format!("{source} had {ours}, so another address was probed"),
            MaapResolution::Yielded => format!("{source} took {ours}"),
        }
    });
    let mut listed: Vec<String> = listed.collect();
    // A speaker repeats its messages.
    listed.dedup();
    let conflicts = match maap.conflict_count {
        0 => ", without a conflict".to_owned(),
        count => format!(", with {}: {}", counted(count, "conflict"), few(&listed)),
    };
    let returns = match maap.link_returns {
        0 => String::new(),
        count => format!(" The link returned {}, and the addresses were probed again.", counted(count, "time")),
    };
    format!("MAAP claimed {}{conflicts}.{returns}", claimed.join(", then "))
}

/// The first texts of a list, and the number of others.
fn few(texts: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = texts.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        others => format!("{shown}, and {others} more"),
    }
}

/// The handling of frames by the kernel, apart from sending them.
fn kernel_handling(talker: &Talker) -> String {
    match talker.zero_copy {
        Some(true) => ", without a copy".to_owned(),
        Some(false) => ", each frame copied".to_owned(),
        None => talker.launch.as_ref().map(launch_handling).unwrap_or_default(),
    }
}

fn calibration(talker: &Talker) -> String {
    let Some(calibration) = &talker.calibration else { return String::new() };
    let covered = match (calibration.is_knee, calibration.fits) {
        (true, _) => format!("at the knee of their curve; auto would choose {}", unsigned(calibration.wanted_ns)),
        (false, true) => "which covers all of them".to_owned(),
        (false, false) => "because the period is too short for one that covers all of them".to_owned(),
    };
    format!(
        "Wake-up offset {} from {} wake-ups before the run, at most {} late, {covered}.",
        unsigned(talker.offset_ns),
        grouped(calibration.samples),
        format_ns(calibration.max_ns)
    )
}

fn percent_of(period_ns: u64, percent: u64) -> u64 {
    period_ns / 100 * percent
}

fn curve(series: &Series, talker: &Talker) -> Vec<([String; 4], bool)> {
    let percent = |part: u64, of: u64| part as f64 * 100.0 / of.max(1) as f64;
    let point = |&(offset_ns, late): &(u64, u64)| {
        let cells = [
            unsigned(offset_ns),
            grouped(late),
            format!("{:.4} %", percent(late, series.samples)),
            format!("{:.1} %", percent(offset_ns, series.period_ns)),
        ];
        (cells, offset_ns == talker.offset_ns)
    };
    talker.curve.iter().filter(|_| series.samples > 0).map(point).collect()
}

fn of_listener(series: &Series, listener: &Listener) -> EndSummary {
    let identity = &listener.identity;
    let exact = |ns: Option<u64>| ns.map(u64::cast_signed);
    let mut rows = vec![times("between two frames, as read", &listener.interval, exact(listener.max_gap_ns))];
    if has_stamps(listener) {
        let max_ns = exact(listener.max_kernel_gap_ns);
        rows.push(times("between two frames, as stamped", &listener.kernel_interval, max_ns));
        rows.push(times("from kernel stamp to read", &listener.read_delay, None));
    }
    if let Some(one_way) = &listener.one_way {
        let clock = clock(&one_way.clock);
        if has_stamps(listener) {
            rows.push(times(&format!("from send to kernel stamp{clock}"), &one_way.way, None));
        }
        rows.push(times(&format!("from send to read{clock}"), &one_way.whole, None));
    }
    if let Some(variation) = &listener.delay_variation {
        if has_stamps(listener) {
            rows.push(times("above the minimum, to kernel stamp", &variation.way, None));
        }
        rows.push(times("above the minimum, to read", &variation.whole, None));
    }
    EndSummary {
        title: format!(
            "Listener on {}{}: {}",
            identity.interface,
            of_host(series),
            in_words(identity, series.period_ns)
        ),
        first: vec![
            ("Late packets (listener)", late_packets(listener.late_packets)),
            ("Max delta (listener)", listener.max_gap_ns.map_or_else(|| "-".to_owned(), unsigned)),
        ],
        figures: of_frames_received(listener),
        streams: received_streams(listener),
        times: rows,
        presentation: presentation_figures(listener),
        remarks: format!("{}. 1722.1: {}", how_to_read(listener), counters(listener)),
        ..EndSummary::default()
    }
}

fn of_frames_received(listener: &Listener) -> Vec<Figure> {
    vec![
        count("frames", listener.frames),
        bad("lost", listener.lost),
        count("bursts", listener.loss_bursts),
        bad("duplicates", listener.duplicates),
        bad("reordered", listener.reordered),
        bad("gaps > 2 periods", listener.gaps),
        bad("too close", listener.window_violations),
        bad("wrong tag", listener.wrong_tag),
        count("other streams", listener.other_streams),
    ]
}

fn presentation_figures(listener: &Listener) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some(margin) = listener.one_way.as_ref().and_then(|one_way| one_way.margin.as_ref()) {
        figures.push(Figure {
            name: "margin",
            text: format!("{} to {}", format_ns(margin.min_ns), format_ns(margin.max_ns)),
            bad: margin.late > 0,
        });
        figures.push(plain("median margin", margin.median_ns.map_or_else(|| "-".to_owned(), format_ns)));
        figures.push(bad("too late to present", margin.late));
        figures.push(bad("uncertain", listener.counters.timestamp_uncertain));
    }
    figures.extend(listener.jumps.map(|jumps| bad("media clock jumps", jumps)));
    figures
}

/// The rows of the streams of one talker.
fn received_streams(listener: &Listener) -> Vec<[String; 5]> {
    let worst_first = listener.worst_first();
    let (shown, others) = worst_first.split_at(worst_first.len().min(STREAM_ROWS));
    let row = |name: String, streams: &[&ReceivedStream]| {
        let sum = |of: fn(&ReceivedStream) -> u64| grouped(streams.iter().map(|stream| of(stream)).sum());
        let longest_ns = streams.iter().filter_map(|stream| stream.max_gap_ns).max();
        let gap = longest_ns.map_or_else(|| "-".to_owned(), unsigned);
        [name, sum(|stream| stream.frames), sum(|stream| stream.lost), sum(|stream| stream.duplicates), gap]
    };
    let mut rows: Vec<_> = shown.iter().map(|stream| row(stream_name(&stream.stream_id), &[*stream])).collect();
    if !others.is_empty() {
        rows.push(row(format!("{} others", others.len()), others));
    }
    rows
}

/// True unless frames were received by AF_XDP, which has no timestamps.
fn has_stamps(listener: &Listener) -> bool {
    !listener.from.starts_with("xdp")
}

fn how_to_read(listener: &Listener) -> String {
    let from = if has_stamps(listener) { String::new() } else { format!(", by {}", listener.from) };
    let mut text = format!(
        "waiting: {}{from}; Late packets: read more than one and a half periods after the frame before; max delta: longest \
         time between two frames as read; too close: less than half a period after the frame before",
        listener.wait
    );
    if listener.lost > 0 {
        text += &where_lost(listener);
    }
    if listener.numbers == "avtp" {
        text += "; losses by AVTP's 8-bit sequence numbers, which do not show 256 lost frames in a row";
    }
    match &listener.one_way {
        Some(one_way) => {
            let least = time(one_way.least_slack_ns);
            text += &format!(
                "; {} frames read after their presentation time, smallest margin {least}",
                one_way.late_presentation
            );
            text += &margin(listener, one_way);
        }
        None => text += "; presentation times are not evaluated because they refer to another machine's clock",
    }
    text += &media_changes(listener);
    if let Some(variation) = &listener.delay_variation {
        text += &format!(
            "; above the minimum: the delay of each frame minus the smallest delay of its {} window, because the two \
                         ends have no common clock; a drift of {:+.3} ppm between their clocks is removed",
            unsigned(variation.window_ns),
            variation.drift_ppb as f64 / 1e3
        );
    }
    text
}

/// The words of the figures about presentation times; empty in older records.
fn margin(listener: &Listener, one_way: &OneWay) -> String {
    let Some(margin) = &one_way.margin else { return String::new() };
    let latest = match margin.worst.first() {
        Some(worst) => format!(", the latest frame {}", grouped(worst.frame)),
        None => String::new(),
    };
    let uncertain = match listener.counters.timestamp_uncertain {
        0 => String::new(),
        count => format!(", without {} whose time is uncertain", counted(count, "frame")),
    };
    format!("; margin: from arrival to presentation time{uncertain}{latest}")
}

/// The first changes of the media clock; empty without one.
fn media_changes(listener: &Listener) -> String {
    let in_words = |change: &CapturedMediaChange| {
        let (frame, announced) = (grouped(change.frame), if change.restarted { ", announced" } else { "" });
        let moved = change.jump_ns.map_or_else(|| "-".to_owned(), format_ns);
        format!("frame {frame} by {moved}{announced}")
    };
    match &listener.media_changes[..] {
        [] => String::new(),
        changes => format!("; media clock moved at {}", few(&changes.iter().map(in_words).collect::<Vec<_>>())),
    }
}

fn where_lost(listener: &Listener) -> String {
    let (ours, place, why) = match listener.lost_in_ring {
        Some(_) => (listener.lost_in_ring, "XDP ring", "which was full"),
        None => (listener.lost_in_socket, "socket", "whose buffer was full"),
    };
    match ours {
        Some(0) => {
            format!(
                "; all losses happened before the listener's {place}: at the talker, in the network, or in the \
                 interface"
            )
        }
        Some(ours) if ours == listener.lost => format!("; all were lost in the listener's {place}, {why}"),
        Some(ours) => format!("; {} were lost in the listener's {place}, the others before it", grouped(ours)),
        None => "; the place of the losses is unknown because other streams arrived as well".to_owned(),
    }
}

/// ` of board-b` for a series of the far end, empty for one of ours.
fn of_host(series: &Series) -> String {
    series.host.as_ref().map_or_else(String::new, |host| format!(" of {host}"))
}

/// The relation of both ends' clocks, as a suffix to the name of a time between them.
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
    let named = named.iter().filter_map(|(name, count)| Some(format!("{name} {}", grouped((*count)?))));
    named.collect::<Vec<_>>().join(", ")
}

fn in_words(identity: &StreamIdentity, period_ns: u64) -> String {
    let tag = match (identity.pcp, identity.vid) {
        (Some(pcp), Some(vid)) => format!("priority {pcp}, VLAN {vid}"),
        _ => "no VLAN tag".to_owned(),
    };
    let StreamIdentity { format, frame_bytes, .. } = identity;
    let stream_id = stream_name(&identity.stream_id);
    format!("stream {stream_id}, {format}, {tag}, {frame_bytes} bytes every {}", unsigned(period_ns))
}

fn plain(name: &'static str, text: String) -> Figure {
    Figure { name, text, bad: false }
}

fn count(name: &'static str, count: u64) -> Figure {
    plain(name, grouped(count))
}

fn bad(name: &'static str, count: u64) -> Figure {
    Figure { name, text: grouped(count), bad: count > 0 }
}

/// Percentiles and the maximum: exact if it is known, otherwise the upper end of its bucket.
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
