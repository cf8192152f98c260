//! Evaluates streams: the wake-up offset that a talker needs, and the times by which a talker is judged.

use std::borrow::Cow;

use record::{Calibration, Correction, Histogram, Listener, Record, Series, Talker};

use crate::{
    duration::format_exact,
    stalls::{self, Missing},
    statistics::Late,
};

/// Offsets of the curve, us; those beyond [`CURVE_PERCENT`] of the period are left out.
const OFFSETS_US: [u64; 21] =
    [0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000];
/// The largest offset of the curve, per cent of the period; a real-time thread must sleep for the rest.
const CURVE_PERCENT: u64 = 95;
/// The largest calibrated offset, per cent of the period; sending takes time too.
const MAX_PERCENT: u64 = 80;

/// Late frames by wake-up offset, from the wake-ups of one run: `(offset ns, late frames)`.
///
/// A wake-up with lateness `L` causes a late packet for every offset below `L - tolerance`. Each count is therefore the
/// tail of the histogram `raw` of wake-ups, without trying each offset. `also_ns` is a further offset to include.
#[must_use]
pub fn curve(raw: &Histogram, period_ns: u64, tolerance_ns: u64, also_ns: u64) -> Vec<(u64, u64)> {
    let most_ns = percent_of(period_ns, CURVE_PERCENT);
    let usual = OFFSETS_US.into_iter().map(|us| us * 1000).filter(|&offset_ns| offset_ns <= most_ns);
    let mut offsets: Vec<u64> = usual.chain([also_ns, most_ns]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let late = |offset_ns: u64| raw.count_above(offset_ns.saturating_add(tolerance_ns).try_into().unwrap_or(i64::MAX));
    offsets.into_iter().map(|offset_ns| (offset_ns, late(offset_ns))).collect()
}

fn percent_of(period_ns: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(period_ns) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// The wake-up offset for a talker on a machine with these wake-ups: the shortest one that makes as few packets late as
/// the longest allowed one, with a margin of a tenth plus 1 us.
#[must_use]
pub fn calibrate(wake_ups: &Series) -> Calibration {
    let most_ns = percent_of(wake_ups.period_ns, MAX_PERCENT);
    let within =
        wake_ups.raw.iter().map(|(late_ns, _)| late_ns.max(0).unsigned_abs()).filter(|&late_ns| late_ns <= most_ns);
    let covered_ns = within.max().unwrap_or_default();
    let max_ns = wake_ups.max_ns.unwrap_or_default();
    Calibration {
        samples: wake_ups.samples,
        p99_999_ns: wake_ups.raw.percentile(99.999).unwrap_or_default().min(max_ns),
        max_ns,
        wanted_ns: (covered_ns + covered_ns / 10 + 1_000).min(most_ns),
        fits: max_ns.max(0).unsigned_abs() <= most_ns,
    }
}

/// Computes the curve of each talker.
pub fn fill(record: &mut Record) {
    for series in &mut record.series {
        if let Some(talker) = series.kind.talker_mut() {
            talker.curve = curve(&series.raw, series.period_ns, talker.tolerance_ns, talker.offset_ns);
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
    series.maxima.max_ns.iter_mut().flatten().for_each(|max_ns| *max_ns = after_slot(*max_ns));
}

/// The stalls of frames that did not leave in their slots or did not arrive, and the number of these frames. A missing
/// frame is later than any limit. A slot that a late frame passed over counts by the lateness of that frame.
pub(crate) fn missing(record: &Record, talker: &Talker, measured_ns: u64, period_ns: u64) -> (u64, Late) {
    let held_back = talker.launch.as_ref().map_or(0, |launch| launch.missed);
    let without_frame = stalls::unexplained(talker.missed_slots, &talker.send, measured_ns);
    let not_sent = talker.refused.saturating_add(held_back).saturating_add(without_frame);
    let listeners = record.series.iter().filter_map(|series| series.kind.listener());
    let lost = listeners.map(|listener| lost(talker, listener, measured_ns)).max_by_key(|lost| lost.total);
    let lost = lost.unwrap_or_default();
    let of = |missing| stalls::of_missing(missing, measured_ns, period_ns);
    // The numbers of the frames that were not sent can be among those that were lost.
    (not_sent.max(lost.total), of(Missing::anywhere(not_sent)).with(of(lost)))
}

/// Frames that were sent and did not arrive. A listener finds lost frames by the numbers of later ones; those of the
/// last second can still be on their way.
fn lost(talker: &Talker, listener: &Listener, period_ns: u64) -> Missing {
    let by_number = listener.lost.saturating_sub(listener.not_told);
    let arrived = listener.frames.saturating_sub(listener.duplicates).saturating_add(listener.not_told);
    let in_flight = 1_000_000_000 / period_ns.max(1);
    let at_end = talker.frames.saturating_sub(arrived).saturating_sub(listener.lost).saturating_sub(in_flight);
    let runs = listener.loss_bursts.saturating_add(u64::from(at_end > 0));
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
        let quiet = calibrate(&wake_ups(&[4_000, 5_000, 20_000]));
        assert!((23_000..23_100).contains(&quiet.wanted_ns) && quiet.fits, "{quiet:?}");
        // No offset covers a stall of 5 ms, so the offset that covers the other wake-ups is enough.
        let stalled = calibrate(&wake_ups(&[4_000, 5_000, 20_000, 5_000_000]));
        assert_eq!((stalled.wanted_ns, stalled.fits, stalled.max_ns), (quiet.wanted_ns, false, 5_000_000));
        assert_eq!(calibrate(&wake_ups(&[99_000])).wanted_ns, 100_000, "the rest of the period is for sleep");
        assert_eq!(calibrate(&wake_ups(&[])).wanted_ns, 1_000);
    }

    #[test]
    fn judges_talkers_by_send_times() {
        let mut talker = wake_ups(&[70_000]);
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
            let (missing, late) = missing(&record, &talker, 125_000, 125_000);
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
            let curve = curve(&of(&late_ns), 2_000, tolerance_ns, also_ns);
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
