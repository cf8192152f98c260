//! What the figures of a capture cannot tell.

use analysis::format_ns;
use record::{Capture, Caveat, NumberedBy, ToldBy};

use crate::Interface;

/// What the first look found besides streams.
pub(crate) struct FileSummary {
    pub(crate) frames: u64,
    pub(crate) format: &'static str,
    pub(crate) cut_at: Option<u64>,
    pub(crate) interfaces: Vec<Interface>,
}

/// Frames about which something is not known.
pub(crate) struct Unclear {
    pub(crate) snapped: u64,
    pub(crate) without_stamp: u64,
    pub(crate) foreign: u64,
}

/// All that there is to say, in the order of weight.
pub(crate) fn all(capture: &Capture, file: &FileSummary, unclear: &Unclear) -> Vec<Caveat> {
    let mut all = Vec::new();
    let mut say = |kind: &str, text: String| all.push(Caveat { kind: kind.into(), text });
    if let Some(offset) = file.cut_at {
        say("cut", format!("the file ends within a frame, at byte {offset}; the {} whole ones count", file.frames));
    }
    if capture.dropped > 0 {
        let dropped = capture.dropped;
        say("lost", format!("the capture dropped {dropped} frames on this interface: gaps and losses may be its own"));
    }
    resolution(capture, file).into_iter().for_each(|text| say("resolution", text));
    if capture.out_of_order > 0 {
        let count = capture.out_of_order;
        say(
            "order",
            format!("{count} time stamps lie before that of the frame in front: intervals there are negative"),
        );
    }
    if unclear.without_stamp > 0 {
        say("stamps", format!("{} frames of the stream have no time stamp and are left out", unclear.without_stamp));
    }
    if unclear.snapped > 0 {
        say("snapped", format!("{} frames of the stream were not kept whole (capture with -s 0)", unclear.snapped));
    }
    let (wander_ns, tolerance_ns) = (capture.period.wander_ns.unwrap_or(0.0), capture.tolerance_ns as f64);
    if wander_ns > tolerance_ns {
        let wander = format_ns(wander_ns.round() as i64);
        say(
            "wander",
            format!(
                "the earliest frames lie up to {wander} off a steady grid: clocks that wandered, or a stream late for long; \
                 short pieces tell which (editcap -i 60)"
            ),
        );
    }
    if capture.period.stretches < 3 {
        let nominal = format_ns(capture.period.nominal_ns as i64);
        say(
            "grid",
            format!("too few regular intervals to fit a grid: slots are {nominal} apart from the first frame on"),
        );
    }
    match capture.numbered_by {
        NumberedBy::Nothing => say("numbers", "frames have no number: loss and duplicates cannot be told".into()),
        NumberedBy::Avtp if capture.lost.saturating_add(capture.skipped_slots) > 0 => {
            say("numbers", "frames are numbered modulo 256: of longer losses the time between frames decides".into());
        }
        NumberedBy::Avtp | NumberedBy::Talker => {}
    }
    if capture.period.told_by == ToldBy::Median {
        say("period", "the period is the median interval, a guess: give --period for a clock ratio".into());
    }
    if unclear.foreign > 0 {
        say("mixed", format!("{} frames of interfaces that are not Ethernet are left out", unclear.foreign));
    }
    if capture.left_out > 0 {
        say(
            "streams",
            format!("{} frames of more than {} streams are left out", capture.left_out, capture.streams.len()),
        );
    }
    all
}

/// What coarse stamps mean for the figures.
fn resolution(capture: &Capture, file: &FileSummary) -> Option<String> {
    let claimed_ns = file.interfaces.get(capture.stream.interface as usize).map_or(1, |one| one.resolution_ns);
    let found = format_ns(capture.resolution_ns as i64);
    let than_claimed = if capture.resolution_ns > claimed_ns {
        format!(", though the file claims {}", format_ns(claimed_ns as i64))
    } else {
        String::new()
    };
    (capture.resolution_ns >= 100)
        .then(|| format!("time stamps are multiples of {found}{than_claimed}: any figure may be off by as much"))
}
