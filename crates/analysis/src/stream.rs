//! Evaluates streams: the wake-up offset that a talker needs, and the times by which a talker is judged.

use std::borrow::Cow;

use record::{
    Calibration, Correction, Histogram, Listener, Maxima, ORDINARY_PERCENT, ReceivedStream, Record, Series, Talker,
    TalkerLoad,
};

use crate::{
    duration::format_exact,
    events::Events,
    stalls::{self, Missing},
};

/// Offsets of the curve, us; those beyond [`CURVE_PERCENT`] of the period are left out.
const OFFSETS_US: [u64; 21] =
    [0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000];
/// The largest offset of the curve, per cent of the period; a real-time thread must sleep for the rest.
const CURVE_PERCENT: u64 = 95;
/// The largest calibrated offset, per cent of the period.
const MAX_PERCENT: u64 = 80;
/// The knee of the curve makes at most one part in this many more frames late than the longest calibrated offset.
const KNEE_PART: u64 = 10;
/// The knee may always make one in this many of all frames late: 10 in a million.
const KNEE_TOTAL: u64 = 100_000;

/// Late frames by wake-up offset, from the wake-ups of one run: `(offset ns, late frames)`.
///
/// A wake-up with lateness `L` causes a late packet for every offset below `L - tolerance`. Each count is therefore the
/// tail of the histogram `raw` of wake-ups, without trying each offset. `also_ns` are further offsets to include.
#[must_use]
pub fn curve(raw: &Histogram, period_ns: u64, tolerance_ns: u64, also_ns: &[u64]) -> Vec<(u64, u64)> {
    let most_ns = three_digits(percent_of(period_ns, CURVE_PERCENT));
    let usual = OFFSETS_US.into_iter().map(|us| us * 1000).filter(|&offset_ns| offset_ns <= most_ns);
    let mut offsets: Vec<u64> = usual.chain(also_ns.iter().copied()).chain([most_ns]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let late = |offset_ns: u64| raw.count_above(offset_ns.saturating_add(tolerance_ns).try_into().unwrap_or(i64::MAX));
    offsets.into_iter().map(|offset_ns| (offset_ns, late(offset_ns))).collect()
}

/// The largest time up to `ns` that a text with three digits shows exactly, so that the last offset of the curve can be
/// given back.
fn three_digits(ns: u64) -> u64 {
    let step_ns = 10_u64.pow(ns.checked_ilog10().unwrap_or_default().saturating_sub(2));
    ns / step_ns * step_ns
}

fn percent_of(period_ns: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(period_ns) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// The longest calibrated offset, ns, of a talker that needs `own_ns` of CPU time in each period apart from spinning.
/// The kernel keeps `ordinary_percent` of its CPU for ordinary threads.
#[must_use]
pub fn longest_calibrated_ns(period_ns: u64, own_ns: u64, ordinary_percent: u64) -> u64 {
    percent_of(period_ns, MAX_PERCENT).min(record::longest_offset_ns(period_ns, own_ns, ordinary_percent))
}

/// The knee of the curve, ns, in whole us: the shortest offset that makes at most a tenth more frames late than the
/// longest calibrated one `most_ns`, or 10 in a million more, whichever is more. Longer spinning buys less than that.
/// The definition is punctual's own.
#[must_use]
pub fn knee_ns(raw: &Histogram, tolerance_ns: u64, most_ns: u64) -> u64 {
    let late = |offset_ns: u64| raw.count_above(offset_ns.saturating_add(tolerance_ns).try_into().unwrap_or(i64::MAX));
    let most_us = most_ns / 1_000;
    let fewest = late(most_us * 1_000);
    let allowed = fewest.saturating_add((fewest / KNEE_PART).max(raw.total() / KNEE_TOTAL));
    // Longer offsets never make more frames late.
    let (mut enough_us, mut too_short_us) = (most_us, None);
    while let Some(middle_us) = between(too_short_us, enough_us) {
        if late(middle_us * 1_000) <= allowed { enough_us = middle_us } else { too_short_us = Some(middle_us) }
    }
    enough_us * 1_000
}

/// The middle of the values that are above `below` and below `above`; `None` if there are none.
fn between(below: Option<u64>, above: u64) -> Option<u64> {
    let least = below.map_or(0, |below| below + 1);
    (least < above).then(|| least + (above - least) / 2)
}

/// The wake-up offset for a talker on a machine with these wake-ups: the shortest one that makes as few packets late as
/// the longest allowed one `most_ns`, and the knee of the curve, both with a margin of a tenth plus 1 us.
#[must_use]
pub fn calibrate(wake_ups: &Series, tolerance_ns: u64, most_ns: u64) -> Calibration {
    let within =
        wake_ups.raw.iter().map(|(late_ns, _)| late_ns.max(0).unsigned_abs()).filter(|&late_ns| late_ns <= most_ns);
    let covered_ns = within.max().unwrap_or_default();
    let max_ns = wake_ups.max_ns.unwrap_or_default();
    let with_margin = |offset_ns: u64| (offset_ns + offset_ns / 10 + 1_000).min(most_ns);
    Calibration {
        samples: wake_ups.samples,
        p99_999_ns: wake_ups.raw.percentile(99.999).unwrap_or_default().min(max_ns),
        max_ns,
        wanted_ns: with_margin(covered_ns),
        knee_ns: Some(with_margin(knee_ns(&wake_ups.raw, tolerance_ns, most_ns))),
        is_knee: false,
        fits: max_ns.max(0).unsigned_abs() <= most_ns,
    }
}

/// Computes the curve of each talker, and its knee.
pub fn fill(record: &mut Record) {
    for series in &mut record.series {
        let own_ns = TalkerLoad::of(series).map_or(0, |load| load.own_ns);
        let most_ns = longest_calibrated_ns(series.period_ns, own_ns, ORDINARY_PERCENT);
        if let Some(talker) = series.kind.talker_mut() {
            let spins = talker.launch.is_none() && series.samples > 0;
            talker.knee_ns = spins.then(|| knee_ns(&series.raw, talker.tolerance_ns, most_ns));
            let also_ns: Vec<u64> = [talker.offset_ns].into_iter().chain(talker.knee_ns).collect();
            talker.curve = curve(&series.raw, series.period_ns, talker.tolerance_ns, &also_ns);
        }
    }
}

/// The record with the times by which uses are judged: send times for talkers, and no listeners.
pub(crate) fn as_sent(record: &Record) -> Cow<'_, Record> {
    if record.series.iter().all(|series| series.kind.stream().is_none()) {
        return Cow::Borrowed(record);
    }
    let mut judged = record.clone();
    judged.series.retain(|series| series.kind.listener().is_none());
    for series in &mut judged.series {
        if let Some(talker) = series.kind.talker().cloned() {
            use_send_times(series, &talker);
        }
    }
    Cow::Owned(judged)
}

/// The command that measures the talker again, without the period.
pub(crate) fn command(talker: &Talker) -> String {
    let identity = &talker.identity;
    let at = if talker.own_listener { "--self".to_owned() } else { format!("talk {}", identity.interface) };
    let mode = if ["", "send"].contains(&&*talker.mode) { String::new() } else { format!(" --mode {}", talker.mode) };
    format!("punctual measure stream {at}{mode} --wakeup-offset {}", format_exact(talker.offset_ns))
}

/// Replaces the wake-ups of a talker's series by its send times.
fn use_send_times(series: &mut Series, talker: &Talker) {
    series.samples = talker.frames;
    series.jitter_ns = talker.max_interval_error_ns;
    // For frames, the exact minimum and mean are unknown.
    (series.min_ns, series.mean_ns) = (None, None);
    series.max_ns = talker.max_delta_ns;
    series.max_at_ns = talker.max_delta_at_ns;
    series.missed = talker.missed_slots;
    series.corrected = Correction::new(series.period_ns).of(&talker.send);
    series.raw = talker.send.clone();
    // Those of the wake-ups, which are `offset_ns` before the slots.
    let after_slot = |late_ns: i64| late_ns.saturating_sub_unsigned(talker.offset_ns);
    series.spikes.iter_mut().for_each(|spike| spike.lateness_ns = after_slot(spike.lateness_ns));
    // A frame can be late although the wake-up was not.
    series.maxima = Maxima::default();
}

/// The frames that did not leave in their slots or did not arrive, and the number of these frames. A missing
/// frame is later than any limit. A slot that a late frame passed over counts by the lateness of that frame.
pub(crate) fn missing(record: &Record, talker: &Talker, measured_ns: u64, period_ns: u64) -> (u64, Events) {
    let held_back = talker.launch.as_ref().map_or(0, |launch| launch.missed);
    let without_frame = stalls::unexplained(talker.missed_slots, &talker.send, measured_ns);
    // A listener needs the frames of each stream, so the worst stream is judged.
    let not_sent = talker.most_refused().saturating_add(held_back).saturating_add(without_frame);
    // With several talkers, a listener belongs to the one that sends its stream.
    let is_alone = record.series.iter().filter(|series| series.kind.talker().is_some()).count() <= 1;
    let listeners = record.series.iter().filter_map(|series| series.kind.listener());
    let listeners = listeners.filter(|listener| is_alone || talker.sends(&listener.identity.stream_id));
    let lost = listeners.map(|listener| lost(talker, listener, measured_ns)).max_by_key(|lost| lost.total);
    let lost = lost.unwrap_or_default();
    let of = |missing| stalls::of_missing(missing, measured_ns, period_ns);
    // The numbers of the frames that were not sent can be among those that were lost.
    (not_sent.max(lost.total), of(Missing::anywhere(not_sent)).with(of(lost)))
}

/// Frames that were sent and did not arrive. A listener finds lost frames by the numbers of later ones; those of the
/// last second can still be on their way.
fn lost(talker: &Talker, listener: &Listener, period_ns: u64) -> Missing {
    let &Listener { lost, loss_bursts, frames, duplicates, .. } = listener;
    let followed = ReceivedStream { lost, loss_bursts, frames, duplicates, ..ReceivedStream::default() };
    let of_followed = lost_of(talker.frames_of(&listener.identity.stream_id), &followed, listener.not_told, period_ns);
    let of_each = listener.streams.iter().map(|stream| {
        let sent = talker.frames_of(&stream.stream_id);
        lost_of(sent, stream, listener.not_told, period_ns)
    });
    of_each.chain([of_followed]).max_by_key(|lost| lost.total).unwrap_or_default()
}

/// Lost frames of one stream. `not_told` frames were read, but not counted.
fn lost_of(sent: u64, stream: &ReceivedStream, not_told: u64, period_ns: u64) -> Missing {
    let by_number = stream.lost.saturating_sub(not_told);
    let arrived = stream.frames.saturating_sub(stream.duplicates).saturating_add(not_told);
    let in_flight = 1_000_000_000 / period_ns.max(1);
    let at_end = sent.saturating_sub(arrived).saturating_sub(stream.lost).saturating_sub(in_flight);
    let runs = stream.loss_bursts.saturating_add(u64::from(at_end > 0));
    Missing { total: by_number.saturating_add(at_end), runs }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::{Launch, Listener, SeriesKind, Stream, StreamIdentity};

    use super::*;

    fn of(values: &[i64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    fn wake_ups(values: &[i64]) -> Series {
        let max_ns = values.iter().max().copied();
        Series { period_ns: 125_000, samples: values.len() as u64, max_ns, raw: of(values), ..Series::default() }
    }

    #[test]
    fn calibrates_the_offset_within_the_period() {
        let most_ns = longest_calibrated_ns(125_000, 0, 5);
        let quiet = calibrate(&wake_ups(&[4_000, 5_000, 20_000]), 1_250, most_ns);
        assert!((23_000..23_100).contains(&quiet.wanted_ns) && quiet.fits, "{quiet:?}");
        // No offset covers a stall of 5 ms, so the offset that covers the other wake-ups is enough.
        let stalled = calibrate(&wake_ups(&[4_000, 5_000, 20_000, 5_000_000]), 1_250, most_ns);
        assert_eq!((stalled.wanted_ns, stalled.fits, stalled.max_ns), (quiet.wanted_ns, false, 5_000_000));
        assert_eq!(
            calibrate(&wake_ups(&[99_000]), 1_250, most_ns).wanted_ns,
            100_000,
            "the rest of the period is for sleep"
        );
        assert_eq!(calibrate(&wake_ups(&[]), 1_250, most_ns).wanted_ns, 1_000);
    }

    #[test]
    fn the_longest_offset_leaves_time_to_send_and_to_ordinary_threads() {
        let of = |own_ns, ordinary| longest_calibrated_ns(125_000, own_ns, ordinary);
        assert_eq!((of(0, 5), of(6_000, 5)), (100_000, 100_000));
        assert_eq!((of(20_000, 5), of(20_000, 20)), (86_250, 67_500), "85 % and 70 % of the CPU with the time to send");
        assert_eq!((of(200_000, 5), of(0, 100)), (0, 0));
        let most_ns = of(20_000, 5);
        let found = calibrate(&wake_ups(&[4_000, 99_000]), 1_250, most_ns);
        assert!(!found.fits && found.wanted_ns < most_ns && found.knee_ns < Some(most_ns), "{found:?}");
        assert_eq!(calibrate(&wake_ups(&[86_000]), 1_250, most_ns).wanted_ns, most_ns);
    }

    #[test]
    fn the_last_offset_of_the_curve_can_be_given_back() {
        for (period_ns, last_ns) in [(125_000, 118_000), (1_333_333, 1_260_000), (250, 237), (0, 0)] {
            let curve = curve(&of(&[5]), period_ns, 1_000, &[]);
            assert_eq!(curve.last().map(|point| point.0), Some(last_ns), "{period_ns}");
            let shown = crate::duration::format_unsigned_ns(last_ns);
            assert!(last_ns == 0 || crate::parse_ns(&shown.replace(' ', "")) == Ok(last_ns), "{shown}");
        }
    }

    #[test]
    fn the_knee_is_the_shortest_offset_with_nearly_as_few_late_frames() {
        // 999 950 punctual wake-ups, 10 that 11 us of spinning cover, 10 that only 80 us cover, and 30 that nothing covers.
        let mut raw = Histogram::default();
        for (late_ns, count) in [(3_000, 999_950), (12_000, 10), (80_000, 10), (900_000, 30)] {
            raw.add(late_ns, count);
        }
        let late = |offset_ns: u64| raw.count_above((offset_ns + 1_250).cast_signed());
        let knee_ns = knee_ns(&raw, 1_250, 100_000);
        assert_eq!((knee_ns % 1_000, late(knee_ns), late(knee_ns - 1_000)), (0, 40, 50), "{knee_ns}");
        let found = calibrate(&Series { raw: raw.clone(), ..wake_ups(&[900_000]) }, 1_250, 100_000);
        assert!(found.knee_ns.is_some_and(|ns| ns > knee_ns && ns < found.wanted_ns / 4), "{found:?}");
    }

    #[test]
    fn without_a_bend_the_knee_is_the_longest_useful_offset() {
        assert_eq!(knee_ns(&of(&[]), 1_250, 100_000), 0);
        assert_eq!(knee_ns(&of(&[500]), 1_250, 100_000), 0, "within the tolerance");
        let rising: Vec<i64> = (0..100).map(|us| us * 1_000).collect();
        assert!(
            (94_000..=100_000).contains(&knee_ns(&of(&rising), 1_250, 100_000)),
            "each us makes one frame less late"
        );
        assert_eq!(knee_ns(&of(&[i64::MAX]), 1_250, 100_000), 0, "nothing helps");
        assert_eq!(knee_ns(&of(&[5]), 1_000, 0), 0, "a period too short for whole us");
    }

    #[test]
    fn judges_talkers_by_send_times() {
        let mut talker = wake_ups(&[70_000]);
        talker.maxima.add(0, 70_000);
        let sender = Talker {
            frames: 3,
            max_delta_ns: Some(40),
            offset_ns: 8_000,
            send: of(&[20, 30, 40]),
            identity: StreamIdentity { interface: "eth0".to_owned(), ..StreamIdentity::default() },
            ..Talker::default()
        };
        talker.kind = SeriesKind::Stream(Stream::Talker(Box::new(sender)));
        let listener = Series { kind: SeriesKind::Stream(Stream::Listener(Box::default())), ..wake_ups(&[900_000]) };
        let record = Record { series: vec![talker, listener], ..Record::default() };
        let judged = as_sent(&record);
        let [sent] = &judged.series[..] else { panic!("only the talker") };
        assert_eq!((sent.samples, sent.max_ns, sent.raw.total()), (3, Some(40), 3));
        assert!(sent.maxima.is_empty(), "they are those of the wake-ups");
        let command = command(sent.kind.talker().expect("the series has a talker"));
        assert_eq!(command, "punctual measure stream talk eth0 --wakeup-offset 8us");
    }

    #[test]
    fn frames_that_were_refused_or_lost_are_missing() {
        let of_times = of;
        let of = |talker: Talker, listener: Option<Listener>| {
            let listener = listener
                .map(|one| Series { kind: SeriesKind::Stream(Stream::Listener(Box::new(one))), ..Series::default() });
            let record = Record { series: listener.into_iter().collect(), ..Record::default() };
            let (missing, events) = missing(&record, &talker, 125_000, 125_000);
            let late = events.count();
            (missing, late.cycles, late.stalls_at_least, late.stalls.total)
        };
        let sent = |frames, refused| Talker { frames, refused, ..Talker::default() };
        assert_eq!(of(sent(40_000, 0), None), (0, 0, 0, 0));
        assert_eq!(of(sent(40_000, 8_182), None), (8_182, 8_182, 2, 8_182));
        let launch = Some(Launch { invalid: 2, missed: 5, ..Launch::default() });
        assert_eq!(of(Talker { launch, ..sent(40_000, 2) }, None), (7, 7, 1, 7));
        let skipped = |late_ns| Talker { missed_slots: 3, send: of_times(&[late_ns]), ..sent(40_000, 0) };
        assert_eq!(of(skipped(80_000), None), (3, 3, 1, 3), "slots without a frame");
        assert_eq!(of(skipped(375_000), None), (0, 0, 0, 0), "the late frame passed over them");
        let arrived = |frames, lost, loss_bursts| Some(Listener { frames, lost, loss_bursts, ..Listener::default() });
        assert_eq!(of(sent(32_000, 0), arrived(24_000, 8_000, 1)), (8_000, 8_000, 1, 1));
        assert_eq!(of(sent(32_000, 0), arrived(31_000, 0, 0)), (0, 0, 0, 0), "on their way");
        assert_eq!(of(sent(32_000, 0), arrived(8_000, 0, 0)), (16_000, 16_000, 2, 2), "no frame arrived at the end");
        let stream = |stream_id: &str, lost| ReceivedStream {
            stream_id: stream_id.to_owned(),
            frames: 32_000 - lost,
            lost,
            loss_bursts: 1,
            ..ReceivedStream::default()
        };
        let several =
            Some(Listener { streams: vec![stream("1", 0), stream("2", 70)], ..arrived(32_000, 0, 0).unwrap() });
        assert_eq!(of(sent(32_000, 0), several), (70, 70, 1, 1), "those of the worst stream");
        let one = |refused| record::SentStream { refused, frames: 40_000, ..record::SentStream::default() };
        let refusing = Talker { streams: vec![one(0), one(50)], ..sent(40_000, 0) };
        assert_eq!(of(refusing, None).0, 50, "those of the worst stream");
        let unread = Some(Listener { not_told: 9, ..arrived(31_990, 9, 1).unwrap() });
        assert_eq!(of(sent(32_000, 0), unread), (0, 0, 0, 0));
    }

    #[test]
    fn spikes_of_a_talker_are_measured_from_its_slots() {
        let spike = |lateness_ns| record::Spike { lateness_ns, ..record::Spike::default() };
        let sender = Talker { offset_ns: 50_000, frames: 1, send: of(&[40_000]), ..Talker::default() };
        let kind = SeriesKind::Stream(Stream::Talker(Box::new(sender)));
        let series = Series { spikes: vec![spike(60_000), spike(90_000)], kind, ..wake_ups(&[60_000, 90_000]) };
        let record = Record { series: vec![series], ..Record::default() };
        let late: Vec<i64> = as_sent(&record).series[0].spikes.iter().map(|spike| spike.lateness_ns).collect();
        assert_eq!(late, [10_000, 40_000]);
    }

    proptest! {
        /// Compares the tail of the histogram with a direct count; values this small have buckets of their own.
        #[test]
        fn the_curve_matches_a_direct_count(
            late_ns in prop::collection::vec(0..2_000i64, 0..200), tolerance_ns in 0..100u64, also_ns in 0..1_900u64
        ) {
            let curve = curve(&of(&late_ns), 2_000, tolerance_ns, &[also_ns]);
            prop_assert_eq!(curve.first().map(|point| point.0), Some(0));
            prop_assert!(curve.contains(&(also_ns, late_ns.iter().filter(|&&ns| ns.cast_unsigned() > also_ns + tolerance_ns).count() as u64)));
            for &(offset_ns, late) in &curve {
                let counted = late_ns.iter().filter(|&&ns| ns.cast_unsigned() > offset_ns + tolerance_ns).count();
                prop_assert_eq!(late, counted as u64, "{}", offset_ns);
            }
            prop_assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1));
        }
    }
}
