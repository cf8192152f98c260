//! Limitations of the results.

use analysis::{format_ns, format_unsigned_ns};
use record::{Capture, CapturedStep, CapturedStream, Caveat, NumberedBy, PeriodSource, StepKind, counted, grouped};

use crate::Interface;
use crate::convert::nearest;
use crate::ends::End;

/// The first pass's results about the file, apart from its streams.
pub(crate) struct FileSummary {
    pub(crate) frames: u64,
    pub(crate) format: &'static str,
    pub(crate) cut_at: Option<u64>,
    pub(crate) interfaces: Vec<Interface>,
    /// The end of each interface; `None` without a timestamp.
    pub(crate) ends: Vec<Option<End>>,
}

/// If more than one in so many frames comes again, there is another source of frames.
const AGAIN_PART: u64 = 4;

/// Counts of frames with incomplete information.
pub(crate) struct IncompleteFrames {
    pub(crate) truncated: u64,
    pub(crate) without_stamp: u64,
    pub(crate) foreign: u64,
}

/// All caveats, the most important first.
pub(crate) fn all(capture: &Capture, file: &FileSummary, incomplete: &IncompleteFrames) -> Vec<Caveat> {
    let mut all = Vec::new();
    let mut add = |kind: &str, text: String| all.push(Caveat { kind: kind.into(), text });
    if let Some(offset) = file.cut_at {
        add(
            "cut",
            format!(
                "the file ends inside a frame at byte {offset}; {} before it {} used",
                counted(file.frames, "complete frame"),
                are(file.frames)
            ),
        );
    }
    if let Some(dropped) = capture.dropped.filter(|&dropped| dropped > 0) {
        let dropped = counted(dropped, "frame");
        add("lost", format!("the capture dropped {dropped} on this interface, which may explain gaps and losses"));
    }
    if capture.ended_before_ns > 0 {
        let silent = format_unsigned_ns(capture.ended_before_ns);
        add(
            "ended",
            format!("the stream ended {silent} before the end of the capture: only the time before is judged"),
        );
    }
    let same_name =
        |stream: &&CapturedStream| stream.name == capture.stream.name && stream.source != capture.stream.source;
    let others: u64 = capture.streams.iter().filter(same_name).map(|stream| stream.frames).sum();
    if others > 0 {
        let (frames, source) = (counted(others, "frame"), &capture.stream.source);
        add(
            "senders",
            format!(
                "{frames} of streams of this name {} another source address: only those of {source} are used",
                have(others)
            ),
        );
    }
    if let (Some(count), Some(worst)) = (capture.expired.filter(|&count| count > 0), capture.worst_expired.first()) {
        let (frames, frame, late) = (counted(count, "frame"), grouped(worst.frame), format_ns(worst.ns));
        add(
            "expired",
            format!(
                "{frames} came after the time allowed to live of the frame before, frame {frame} the latest, by {late}: \
                 receivers considered the sender lost"
            ),
        );
    }
    resolution(capture, file).into_iter().for_each(|text| add("resolution", text));
    let of_steps = steps(capture);
    of_steps.into_iter().for_each(|text| add("steps", text));
    if capture.is_numbered() && capture.lost.is_none() && incomplete.without_stamp == 0 {
        let text = "the number of lost frames is not known: their numbers repeat, and do not show how many were lost where the \
                    time, or the step from one number to the next, changed, or where the stamps are too coarse";
        add("numbers", text.into());
    }
    if let Some(why) = &capture.lateness_unknown {
        add("lateness", format!("the lateness of the frames is not known: {why}"));
    }
    let again = capture.duplicates.unwrap_or(0).saturating_add(capture.too_late.unwrap_or(0));
    if again.saturating_mul(AGAIN_PART) > capture.frames {
        add(
            "copies",
            format!(
                "{} {} duplicates or too late: perhaps the capture contains frames of two places, or of two senders with the \
                 same addresses, or the talker started its numbers again a little below the last one; losses can be hidden",
                counted(again, "frame"),
                are(again)
            ),
        );
    }
    if capture.out_of_order > 0 {
        let (stamps, are) = (counted(capture.out_of_order, "timestamp"), are(capture.out_of_order));
        add(
            "order",
            format!("{stamps} {are} earlier than that of the previous frame, which makes the interval negative"),
        );
    }
    if incomplete.without_stamp > 0 {
        let (frames, have) = (counted(incomplete.without_stamp, "frame"), have(incomplete.without_stamp));
        let are = are(incomplete.without_stamp);
        let lost = if capture.is_numbered() && capture.lost.is_none() {
            ", so the number of lost frames is not known"
        } else {
            ""
        };
        add("stamps", format!("{frames} of the stream {have} no timestamp and {are} ignored{lost}"));
    }
    if incomplete.truncated > 0 {
        let (frames, are) = (counted(incomplete.truncated, "frame"), are(incomplete.truncated));
        let number = if capture.is_numbered() { "" } else { ", perhaps before a sequence number" };
        add("snapped", format!("{frames} of the stream {are} truncated{number} (capture with -s 0)"));
    }
    if capture.unnumbered > 0 {
        let frames = counted(capture.unnumbered, "frame");
        add("unnumbered", format!("without a number, such as RTCP between RTP, and so without a slot: {frames}"));
    }
    let (wander_ns, tolerance_ns) = (capture.period.wander_ns.unwrap_or(0.0), capture.tolerance_ns as f64);
    if wander_ns > tolerance_ns && capture.lateness_unknown.is_none() {
        let wander = format_ns(nearest(wander_ns));
        add(
            "wander",
            format!(
                "the earliest frames deviate by up to {wander} from a regular grid: the clocks wandered, or the stream \
                was late for long; pieces in which the clocks keep one rate show which, e.g. of 5 s (editcap -i 5)"
            ),
        );
    }
    // A constant rate makes a slow pattern of coarse stamps.
    let coarse_ns = 2.0 * capture.resolution_ns as f64;
    let followed_ns = capture.period.followed_ns.filter(|&ns| capture.lateness_unknown.is_none() && ns > coarse_ns);
    if let Some(followed) = followed_ns.map(|ns| format_ns(nearest(ns))) {
        add(
            "wander",
            format!(
                "the clock of the talker or of the capture wandered by up to {followed} from one rate, and the slots follow it: \
                 frames that were later and later over many seconds look the same"
            ),
        );
    }
    if capture.period.stretches < 3 {
        let nominal = format_ns(capture.period.nominal_ns.cast_signed());
        add(
            "grid",
            format!("too few regular intervals to fit a grid: slots start at the first frame and are {nominal} apart"),
        );
    }
    if let Some(surplus) = capture.surplus.filter(|&surplus| surplus > 0) {
        let (frames, have) = (counted(surplus, "frame"), have(surplus));
        let such_as = if capture.is_numbered() { "sent between the regular ones" } else { "such as duplicates" };
        add("surplus", format!("{frames} {have} no slot, {such_as}: not counted as late"));
    }
    match capture.numbered_by {
        NumberedBy::Nothing => {
            add("numbers", "frames have no sequence number, so loss and duplicates cannot be detected".into());
        }
        NumberedBy::Avtp if capture.lost.max(capture.skipped_slots) > Some(0) => {
            add(
                "numbers",
                "sequence numbers are modulo 256: longer losses are derived from the time between frames".into(),
            );
        }
        NumberedBy::Avtp | NumberedBy::Talker | NumberedBy::Protocol | NumberedBy::RedundancyTag => {}
    }
    if capture.period.told_by == PeriodSource::Median {
        add("period", "the period is estimated from the frames: give --period to get a clock ratio".into());
    }
    if incomplete.foreign > 0 {
        let (frames, are) = (counted(incomplete.foreign, "frame"), are(incomplete.foreign));
        add("mixed", format!("{frames} of interfaces of another link type {are} ignored"));
    }
    if capture.left_out > 0 {
        add(
            "streams",
            format!(
                "{} {} ignored because only {} streams are tracked",
                counted(capture.left_out, "frame"),
                are(capture.left_out),
                grouped(capture.streams.len() as u64)
            ),
        );
    }
    all
}

/// The frames come in groups, but each of them is due one interval after the one before.
pub(crate) fn batches() -> Caveat {
    Caveat {
        kind: "batches".into(),
        text: "frames that are due one by one come in groups: the talker sends them so, or the capture stamps frames in batches \
               (interrupt coalescing, USB adapters). Stamps do not show which: lateness, bursts and credit can be those of the \
               receiver"
            .into(),
    }
}

/// The clocks wandered faster than the grid of a long capture can follow.
pub(crate) fn wander_within() -> Caveat {
    Caveat {
        kind: "wander".into(),
        text: "the clocks wandered faster than slots can follow in so long a capture, so the number of late frames is not known: \
               pieces of it show that, e.g. of an hour (editcap -i 3600)"
            .into(),
    }
}

fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn have(count: u64) -> &'static str {
    if count == 1 { "has" } else { "have" }
}

/// The changes of the time grid.
fn steps(capture: &Capture) -> Vec<String> {
    let text = |step: &CapturedStep| {
        let by = step.ns.map_or_else(|| "-".to_owned(), |ns| format_ns(ns.saturating_abs()));
        let (frame, later) = (grouped(step.frame), if step.ns < Some(0) { "earlier" } else { "later" });
        match step.kind {
            StepKind::Phase => format!("the stream is {by} {later} from frame {frame} on: its phase changed"),
            StepKind::Drift => format!(
                "the stream moved slowly by {by} from frame {frame} on: the clock of the talker or of the capture changed \
                 its rate"
            ),
            StepKind::Rate => format!(
                "the intervals are {:+.1} ppm longer from frame {frame} on: the clock of the talker or of the capture changed its \
                 rate, and the slots follow it",
                step.ppm.unwrap_or(0.0)
            ),
            StepKind::Restart if capture.lost.is_none() => format!(
                "neither numbers nor time continue at frame {frame}: the talker restarted its sequence numbers, or frames were lost \
                 while the clock of the capture was set"
            ),
            StepKind::Restart => {
                format!("the talker restarted its sequence numbers at frame {frame}: frames lost there are not known")
            }
            StepKind::ClockSet => format!(
                "the clock of the capture was set back by {by} before frame {frame}, or parts of the file are in the wrong order"
            ),
            StepKind::Silence => format!(
                "frame {frame} came {by} after its slot, and all later ones, too: the clock of the capture was set, or the talker \
                 paused"
            ),
        }
    };
    let mut all: Vec<String> = capture.steps.iter().map(text).collect();
    let more = capture.steps_total.unwrap_or(0).saturating_sub(all.len() as u64);
    if more > 0 {
        all.push(format!("{} of the time grid", counted(more, "more change")));
    }
    all
}

/// The effect of coarse timestamps.
fn resolution(capture: &Capture, file: &FileSummary) -> Option<String> {
    let claimed_ns = file.interfaces.get(capture.stream.interface as usize).map_or(1, |one| one.resolution_ns);
    let found = format_ns(capture.resolution_ns.cast_signed());
    let than_claimed = if capture.resolution_ns > claimed_ns {
        format!(", although the file claims {}", format_ns(claimed_ns.cast_signed()))
    } else {
        String::new()
    };
    (capture.resolution_ns >= 100)
        .then(|| format!("timestamps are multiples of {found}{than_claimed}: each figure can be wrong by that much"))
}
