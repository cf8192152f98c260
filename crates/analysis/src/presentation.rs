//! The limits of presentation times, for a capture and for a listener.

use record::{Listener, Outcome, PresentationMargin, Record, Series, UseVerdict, counted};

use crate::{
    duration::format_ns,
    events::Events,
    float::{to_i64, to_u64},
    profile::Profile,
    rules::severity,
    stalls::{self, Missing},
    statistics::{Exposure, Late},
};

/// Margins this far outside of the limits, ns, are those of another clock rather than of a talker: the presentation time of
/// class B is 50 ms ahead. The definition is punctual's own.
const WRONG_CLOCK_NS: i64 = 100_000_000;

/// The margins of the presentation times at a point of the path, whose clock is that of the talker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Margins<'a> {
    pub margin: &'a PresentationMargin,
    /// Time between two frames, ns.
    pub period_ns: f64,
    /// Largest error of a margin, ns.
    pub error_ns: i64,
    /// The start of a margin in words, e.g. `the capture of its frame`.
    pub start: &'static str,
}

impl Margins<'_> {
    /// The margin nearest to the limits, ns, if it is that of another clock.
    pub(crate) fn of_other_clock_ns(&self, most_ns: i64) -> Option<i64> {
        let nearest_ns = if self.margin.max_ns < 0 { self.margin.max_ns } else { self.margin.min_ns };
        let is_other = nearest_ns < -WRONG_CLOCK_NS || nearest_ns > most_ns.saturating_add(WRONG_CLOCK_NS);
        is_other.then_some(nearest_ns)
    }

    /// The largest margin, if it is above the limit. A talker may send a frame up to one period before its slot.
    pub(crate) fn ahead(&self, most_ns: i64) -> Option<String> {
        let allowed_ns = most_ns.saturating_add(to_i64(self.period_ns.ceil())).saturating_add(self.error_ns);
        let (ahead, most, start) = (format_ns(self.margin.max_ns), format_ns(most_ns), self.start);
        (self.margin.max_ns > allowed_ns)
            .then(|| format!("a presentation time {ahead} after {start}, above the limit of {most}"))
    }

    /// The reason for FAIL if presentation times are too far ahead: on average, or if the use does not tolerate one of them.
    pub(crate) fn too_far_ahead(&self, most_ns: i64, profile: &Profile, exposure: &Exposure) -> Option<String> {
        let one = stalls::of_missing(Missing::anywhere(1), profile.period_ns, profile.period_ns).count();
        let with_one = Exposure { late: one, ..*exposure };
        let is_usual = self.margin.mean_ns > most_ns.saturating_add(self.error_ns) as f64;
        self.ahead(most_ns).filter(|_| is_usual || with_one.exceeds(profile.tolerates, 1))
    }

    /// The frames that came after their presentation times by more than `error_ns`.
    pub(crate) fn overdue(&self, profile: &Profile, error_ns: i64) -> Events {
        let is_certain = |margin_ns: i64| margin_ns < error_ns.saturating_neg();
        if !is_certain(self.margin.min_ns) {
            return Events::default();
        }
        let certain = self.margin.worst.iter().filter(|frame| is_certain(frame.ns));
        let listed: Vec<u64> = certain.map(|frame| frame.at_ns.max(0).unsigned_abs()).collect();
        // The latest frames are listed, so if one of them is within the error, all others are.
        let total = if listed.len() < self.margin.worst.len() { listed.len() as u64 } else { self.margin.late };
        stalls::of_frames(total, &listed, to_u64(self.period_ns), profile.period_ns)
    }

    /// The reason for FAIL if frames came after their presentation times.
    pub(crate) fn overdue_in_words(&self) -> String {
        let which = self.margin.worst.first().map_or_else(String::new, |worst| format!(" (frame {})", worst.frame));
        let (frames, late) = (counted(self.margin.late, "frame"), format_ns(self.margin.min_ns.saturating_neg()));
        format!("{frames} after its presentation time, the latest by {late}{which}")
    }
}

/// Adds the presentation times at the listeners of a run to its verdict. FAIL if they are too far ahead, or if more frames
/// came after their presentation times than the use tolerates, by more than the error of the clocks; no PASS if they cannot
/// be judged. A verdict that is as bad keeps its reason.
pub(crate) fn with_listeners(record: &Record, profile: &Profile, verdict: UseVerdict) -> UseVerdict {
    let Some(most_ns) = profile.presentation_ns else { return verdict };
    let received = record.series.iter().filter(|series| series.period_ns == profile.period_ns);
    let judged = received.filter_map(|series| judge(series, series.kind.listener()?, most_ns, profile));
    let Some((outcome, reason)) = judged.max_by_key(|(outcome, _)| severity(*outcome)) else { return verdict };
    if severity(outcome) <= severity(verdict.outcome) {
        return verdict;
    }
    let reason = format!("as received: {reason}; apart from that: {}", verdict.reason);
    UseVerdict { outcome, reason, clean_so_far: false, ..verdict }
}

/// The verdict on the presentation times at a listener, with its reason; `None` if they are within the limits or absent.
fn judge(series: &Series, listener: &Listener, most_ns: i64, profile: &Profile) -> Option<(Outcome, String)> {
    let one_way = listener.one_way.as_ref()?;
    let error_ns = i64::try_from(one_way.clock.error_ns?).unwrap_or(i64::MAX);
    let margin = one_way.margin.as_ref()?;
    let margins = Margins { margin, period_ns: series.period_ns as f64, error_ns, start: "the arrival of its frame" };
    if let Some(nearest_ns) = margins.of_other_clock_ns(most_ns) {
        let nearest = format_ns(nearest_ns);
        let why =
            format!("the margins of the presentation times ({nearest}) suggest that the talker has another clock");
        return Some((Outcome::Inconclusive, why));
    }
    let exposure = |late| Exposure::of(listener.frames, late, series.period_ns, profile.period_ns);
    if let Some(why) = margins.too_far_ahead(most_ns, profile, &exposure(Late::default())) {
        return Some((Outcome::Fail, why));
    }
    if exposure(margins.overdue(profile, error_ns).count()).exceeds(profile.tolerates, 1) {
        return Some((Outcome::Fail, margins.overdue_in_words()));
    }
    let why = margins.ahead(most_ns)?;
    Some((Outcome::Inconclusive, format!("{why}, but the number of such frames is not known")))
}

#[cfg(test)]
mod tests {
    use record::{ClockRelation, MarkedFrame, OneWay, SeriesKind, Stream};

    use super::*;
    use crate::{find_profile, judge};

    /// The verdict on a listener of class A that got an hour of frames with these margins, and a clock with this error.
    fn verdict(margin: PresentationMargin, error_ns: u64, use_name: &str) -> (Outcome, String) {
        let clock = ClockRelation { error_ns: Some(error_ns), ..ClockRelation::same_host() };
        let one_way = Some(OneWay { clock, margin: Some(margin), ..OneWay::default() });
        let listener = Listener { frames: 28_800_000, one_way, ..Listener::default() };
        let kind = SeriesKind::Stream(Stream::Listener(Box::new(listener)));
        let series = Series { kind, phase: "rest".into(), period_ns: 125_000, ..Series::default() };
        let mut record = Record { series: vec![series], ..Record::default() };
        record.validity.valid = true;
        let verdict = judge(&record, &find_profile(use_name).unwrap());
        (verdict.outcome, verdict.reason)
    }

    fn margin(min_ns: i64, mean_ns: f64, max_ns: i64) -> PresentationMargin {
        PresentationMargin { min_ns, mean_ns, max_ns, ..PresentationMargin::default() }
    }

    /// Frames that came 50 us too late, at these seconds.
    fn late(at_s: &[i64]) -> PresentationMargin {
        let worst = at_s.iter().map(|s| MarkedFrame { frame: 7, at_ns: s * 1_000_000_000, ns: -50_000 }).collect();
        PresentationMargin { late: at_s.len() as u64, worst, ..margin(-50_000, 1_900_000.0, 2_000_000) }
    }

    #[test]
    fn milan_limits_presentation_times_at_a_listener() {
        let good = verdict(margin(500_000, 1_900_000.0, 2_100_000), 0, "milan");
        assert_eq!(good.0, Outcome::Inconclusive, "its gaps are judged from a capture");
        assert!(good.1.starts_with("a listener's gaps"), "{}", good.1);
        let (outcome, reason) = verdict(margin(500_000, 2_400_000.0, 2_500_000), 0, "milan");
        assert_eq!(outcome, Outcome::Fail);
        let expected = "as received: a presentation time 2.5 ms after the arrival of its frame, above the limit of 2 ms; \
                        apart from that: a listener's gaps";
        assert!(reason.starts_with(expected), "{reason}");
        let (outcome, reason) = verdict(late(&[1, 9, 20]), 0, "milan");
        let expected = "as received: 3 frames after its presentation time, the latest by 50 us (frame 7)";
        assert!(outcome == Outcome::Fail && reason.starts_with(expected), "{reason}");
    }

    #[test]
    fn what_the_use_tolerates_or_the_clocks_cannot_show_is_no_failure() {
        for (margin, error_ns) in [(late(&[1]), 0), (late(&[1, 9, 20]), 60_000)] {
            assert_eq!(verdict(margin, error_ns, "milan").0, Outcome::Inconclusive);
        }
        assert!(verdict(late(&[1, 9, 20]), 0, "avb-class-a").1.starts_with("a listener's gaps"), "without such limits");
        let (outcome, reason) = verdict(margin(3_000_000_000, 3e9, 3_100_000_000), 0, "milan");
        assert_eq!(outcome, Outcome::Inconclusive);
        assert!(reason.starts_with("a listener's gaps"), "as bad as the margins of another clock: {reason}");
    }
}
