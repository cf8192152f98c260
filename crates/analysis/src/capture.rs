//! The verdict on a captured stream.

use record::{
    Capture, CaptureClock, CapturedPeriod, Outcome, Record, Series, SeriesKind, StepKind, UseVerdict, counted, grouped,
};

use crate::{
    duration::{format_ns, format_unsigned_ns},
    events::Events,
    float::to_i64,
    presentation::Margins,
    profile::Profile,
    rules::{Obstacles, Shown, duration_needed, excellent, measure_longer, severity, shown},
    stalls::{self, Missing},
    statistics::Exposure,
};

/// Judges whether the captured stream holds the limits of `profile`.
///
/// The first rule that applies decides:
/// 1. INVALID if the record is invalid or contradicts itself.
/// 2. INCONCLUSIVE if no frame has a lateness, or the stream's period differs from the use's by more than 500 ppm and the
///    error of its fit.
/// 3. INCONCLUSIVE if timestamps are coarser than the limit, or the clock of the capture was set or may have been set.
/// 4. FAIL if presentation times are further ahead than the profile allows, on average, or once if it tolerates that less
///    often. Only if the clock of the capture is known.
/// 5. FAIL if there were more stalls than the profile tolerates in that time: frames later than the limit by more than the
///    error of their lateness (see `error_ns`), frames after their presentation time by more than the resolution of the
///    stamps, lost frames and skipped slots, because a missing frame is later than any limit. Frames that the capture itself
///    may have dropped are not missing. The losses of the listener's other streams count, too: the worst stream decides.
/// 6. INCONCLUSIVE if frames are missing and the capture itself dropped some, or if that error
///    decides or is above the limit.
/// 7. INCONCLUSIVE if the talker changed its phase or restarted, because lateness and losses at that frame are not known.
/// 8. INCONCLUSIVE if the stream ended before the capture, the run ended early or a load did not run (see [`Record::obstacle`]).
/// 9. INCONCLUSIVE if the profile limits presentation times and they cannot be judged although the clock of the capture was
///    given.
/// 10. INCONCLUSIVE if the capture was too short to show the tolerated rate.
/// 11. PASS. Without the clock of the capture, the reason says that presentation times were not judged.
pub(crate) fn judge(record: &Record, capture: &Capture, profile: &Profile) -> UseVerdict {
    let series = record.series.iter().find(|series| series.kind == SeriesKind::Capture);
    let elsewhere = lost_elsewhere(record);
    let bounds = series.map(|series| Bounds::of(capture, series, elsewhere, profile));
    let again = format!(
        "punctual measure stream listen IF --capture FILE --duration {}",
        duration_needed(profile, bounds.map(|bounds| bounds.exposure).as_ref())
    );
    let obstacles = Obstacles::of(record, |_| again.clone());
    let (outcome, reason) = decide(capture, series.zip(bounds), &obstacles, profile);
    let Some((series, bounds)) = series.zip(bounds) else { return profile.verdict(outcome, reason) };
    let limit_ns = profile.limit_ns;
    let clean_so_far = outcome == Outcome::Inconclusive
        && obstacles.no_pass.is_none()
        && bounds.most.late.stalls.total == 0
        && is_suitable(capture, series, profile);
    UseVerdict {
        worst_ns: series.max_ns,
        worst_where: capture.worst_late.first().map_or_else(String::new, |late| format!("frame {}", late.frame)),
        samples: series.samples,
        over_limit: stalls::late_wake_ups(series, limit_ns),
        missed: series.missed,
        statement: statement(capture, series, &bounds, profile),
        clean_so_far,
        ..profile.verdict(outcome, reason)
    }
}

/// Judges a run whose stream was also captured: the worse of the verdicts on the capture and on the run's own threads,
/// with both reasons. Runs with a listener only are judged by the capture. With a talker, the capture does not count if the run
/// is invalid or the use has another period.
pub(crate) fn judge_with_capture(
    record: &Record,
    capture: &Capture,
    profile: &Profile,
    of_run: UseVerdict,
) -> UseVerdict {
    let on_wire = judge(record, capture, profile);
    let is_talker = |series: &Series| series.kind.talker().is_some();
    if !record.series.iter().any(is_talker) {
        return on_wire;
    }
    if on_wire.outcome == Outcome::Invalid || !has_period_of_use(capture, profile) {
        return of_run;
    }
    // The run's reason comes last because it can end with a command.
    let reason = format!("as captured: {}; as sent: {}", on_wire.reason, of_run.reason);
    let worse = if severity(on_wire.outcome) > severity(of_run.outcome) { on_wire } else { of_run };
    UseVerdict { reason, ..worse }
}

/// Largest difference of two periods that are the same on two clocks, ppm: several times that of quartz oscillators.
const SAME_PERIOD_PPM: f64 = 500.0;
/// The largest error of the fit that is allowed in addition, ppm, also if the error is not known as for a short capture.
const FIT_ERROR_PPM_MAX: f64 = 500.0;

/// The stream's period on the clock of the capture, ns.
fn period_ns(capture: &Capture) -> f64 {
    let CapturedPeriod { fitted_ns, nominal_ns, .. } = capture.period;
    if fitted_ns > 0.0 { fitted_ns } else { nominal_ns as f64 }
}

/// The possible error of the fitted period, ppm; `None` if it is not known. A period that was estimated from the frames has no
/// recorded error: it is the scatter of the earliest frames over the length of the capture.
fn fit_error_ppm(capture: &Capture) -> Option<f64> {
    let CapturedPeriod { clock_error_ppm, wander_ns, followed_ns, .. } = capture.period;
    let estimated_ppm = || {
        let scatter_ns = wander_ns? + followed_ns.unwrap_or(0.0) + capture.resolution_ns as f64;
        let periods = capture.frames.saturating_add(absent(capture)) / capture.frames_per_period.max(1);
        Some(scatter_ns / (periods.max(1) as f64 * period_ns(capture)) * 1e6)
    };
    clock_error_ppm.or_else(estimated_ppm)
}

/// True if the stream's period is that of the use, but for the error of two clocks and of the fit.
fn has_period_of_use(capture: &Capture, profile: &Profile) -> bool {
    let fit_error_ppm = fit_error_ppm(capture).unwrap_or(FIT_ERROR_PPM_MAX).clamp(0.0, FIT_ERROR_PPM_MAX);
    let difference_ppm = (period_ns(capture) / profile.period_ns as f64 - 1.0).abs() * 1e6;
    difference_ppm <= SAME_PERIOD_PPM + fit_error_ppm
}

/// Slots without a frame, as far as they are known. Those of frames without numbers are all called skipped.
fn absent(capture: &Capture) -> u64 {
    capture.lost.unwrap_or(0).saturating_add(capture.skipped_slots.unwrap_or(0))
}

/// Frames that the capture itself dropped, as far as the file says.
fn dropped(capture: &Capture) -> u64 {
    capture.dropped.unwrap_or(0)
}

/// Frames that are missing, in a known number of runs. In older records, each skipped slot can be a run of its own.
fn missing(capture: &Capture, total: u64) -> Missing {
    let skips = capture.skips.filter(|&skips| skips > 0).or(capture.skipped_slots).unwrap_or(0);
    Missing { total, runs: capture.losses.unwrap_or(0).saturating_add(skips) }
}

/// The largest error of the lateness of a frame, ns: the resolution of the timestamps, and how far the earliest frames scatter
/// around the slots, or the clocks moved slowly to other ones.
fn error_ns(capture: &Capture) -> i64 {
    let resolution_ns = if capture.resolution_ns > 1 { capture.resolution_ns } else { 0 };
    let wander_ns = to_i64(capture.period.wander_ns.unwrap_or(0.0).ceil());
    let drifts = capture.steps.iter().filter(|step| step.kind == StepKind::Drift);
    let moved_ns = drifts.filter_map(|step| step.ns).map(i64::saturating_abs).max().unwrap_or(0);
    i64::try_from(resolution_ns).unwrap_or(i64::MAX).saturating_add(wander_ns.max(moved_ns).max(0))
}

/// The late frames within the largest error of each lateness.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Without the error.
    exposure: Exposure,
    /// The fewest late frames.
    least: Exposure,
    /// The most late frames.
    most: Exposure,
    /// Lost frames of another stream of the listener, the worst one.
    elsewhere: Missing,
}

impl Bounds {
    fn of(capture: &Capture, series: &Series, elsewhere: Missing, profile: &Profile) -> Self {
        let error_ns = error_ns(capture);
        let lost = stalls::of_missing(elsewhere, series.period_ns, profile.period_ns);
        let with = |limit_ns, error_of_margins_ns| {
            let others = lost.clone().with(overdue(capture, profile, error_of_margins_ns));
            exposure(capture, series, others, &Profile { limit_ns, ..profile.clone() })
        };
        Self {
            exposure: with(profile.limit_ns, 0),
            least: with(profile.limit_ns.saturating_add(error_ns), resolution_ns(capture)),
            most: with(profile.limit_ns.saturating_sub(error_ns).max(0), 0),
            elsewhere,
        }
    }

    fn shown(&self, profile: &Profile) -> Shown {
        let kept = || shown(profile, &[self.most]) == Shown::Kept;
        match shown(profile, &[self.least]) {
            Shown::Exceeded => Shown::Exceeded,
            Shown::Kept if kept() => Shown::Kept,
            Shown::Kept | Shown::Open => Shown::Open,
        }
    }

    /// True if only the error of the lateness keeps the frames from showing something.
    fn error_decides(&self, profile: &Profile) -> bool {
        self.shown(profile) == Shown::Open && shown(profile, &[self.exposure]) != Shown::Open
    }
}

/// The cycles of the use that the capture covered, with the late and missing frames and with `others`. Frames that the
/// capture itself may have dropped are not counted.
fn exposure(capture: &Capture, series: &Series, others: Events, profile: &Profile) -> Exposure {
    let absent = absent(capture).saturating_sub(dropped(capture));
    let late = stalls::late(series, profile.period_ns, profile.limit_ns);
    let late = late.with(stalls::of_missing(missing(capture, absent), series.period_ns, profile.period_ns));
    let late = late.with(others);
    // A group of frames is a cycle of the stream. The frames count also if their lateness is not known.
    let frames = if capture.lateness_unknown.is_some() { capture.frames } else { series.samples };
    let cycles = frames.saturating_add(absent) / capture.frames_per_period.max(1);
    Exposure::of(cycles, late.count(), series.period_ns, profile.period_ns)
}

/// True if frames with a lateness were captured, with the period of the use and fine enough timestamps.
fn is_suitable(capture: &Capture, series: &Series, profile: &Profile) -> bool {
    series.max_ns.is_some()
        && has_period_of_use(capture, profile)
        && error_ns(capture) <= profile.limit_ns
        && (dropped(capture) == 0 || absent(capture) == 0)
        && capture.ended_before_ns == 0
        && capture.steps_total == Some(0)
        && presentation_unknown(capture, profile).is_none()
}

/// The statement on the cycles of the use; instead of a bound, the reason why there is none if the capture does not show which
/// cycles were late.
fn statement(capture: &Capture, series: &Series, bounds: &Bounds, profile: &Profile) -> String {
    let without = if capture.lateness_unknown.is_some() || series.max_ns.is_none() {
        "the lateness of the frames is not known"
    } else if !has_period_of_use(capture, profile) {
        "the stream has another period than the use"
    } else if error_ns(capture) > profile.limit_ns && bounds.shown(profile) != Shown::Exceeded {
        "the lateness of the frames is not known to the limit"
    } else {
        return bounds.exposure.statement(profile.limit_ns);
    };
    format!("{without}, so there is no bound")
}

/// The frames at which the stream's time grid changed.
fn steps(capture: &Capture) -> String {
    let first = capture.steps.first().map_or_else(String::new, |step| format!(" at frame {}", step.frame));
    let more = match capture.steps_total.unwrap_or(0) {
        0 | 1 => String::new(),
        total => format!(" and {}", counted(total - 1, "more time")),
    };
    format!("{first}{more}")
}

/// The resolution of the timestamps, ns.
fn resolution_ns(capture: &Capture) -> i64 {
    i64::try_from(capture.resolution_ns).unwrap_or(i64::MAX)
}

/// Lost frames of the listener's streams other than the one that it followed: those of the worst one. Frames that were read
/// but not counted are not lost.
fn lost_elsewhere(record: &Record) -> Missing {
    let listeners = record.series.iter().filter_map(|series| series.kind.listener());
    let lost = listeners.flat_map(|listener| {
        let others = listener.streams.iter().filter(|stream| stream.stream_id != listener.identity.stream_id);
        others.map(|stream| Missing { total: stream.lost.saturating_sub(listener.not_told), runs: stream.loss_bursts })
    });
    lost.max_by_key(|lost| lost.total).unwrap_or_default()
}

/// The presentation times that a use is judged by.
enum Presentation<'a> {
    /// The use has no presentation times, or the stream is a clock reference, whose timestamps are no times to play.
    NotLimited,
    /// The clock of the capture is not known.
    WithoutClock,
    /// They cannot be judged for this reason.
    Unknown(String),
    /// They are known.
    Known { margins: Margins<'a>, most_ns: i64 },
}

fn presentation<'a>(capture: &'a Capture, profile: &Profile) -> Presentation<'a> {
    let Some(most_ns) = profile.presentation_ns else { return Presentation::NotLimited };
    let Some(found) = &capture.presentation else { return Presentation::WithoutClock };
    let Some(clock) = found.clock else { return Presentation::WithoutClock };
    if found.reference.is_some() {
        return Presentation::NotLimited;
    }
    let Some(margin) = &found.margin else {
        return Presentation::Unknown("no frame has a presentation time that is valid and certain".to_owned());
    };
    let margins = Margins {
        margin,
        period_ns: period_ns(capture),
        error_ns: resolution_ns(capture),
        start: "the capture of its frame",
    };
    if let Some(nearest_ns) = margins.of_other_clock_ns(most_ns) {
        let (nearest, clock) = (format_ns(nearest_ns), clock_in_words(clock));
        return Presentation::Unknown(format!(
            "the margins of the presentation times ({nearest}) suggest that the clock of the capture is not {clock}"
        ));
    }
    Presentation::Known { margins, most_ns }
}

/// The name of a clock for `--clock`.
fn clock_in_words(clock: CaptureClock) -> &'static str {
    match clock {
        CaptureClock::Gptp => "gptp",
        CaptureClock::Utc => "utc",
    }
}

/// The reason for FAIL if presentation times are too far ahead.
fn too_far_ahead(capture: &Capture, profile: &Profile, exposure: &Exposure) -> Option<String> {
    let Presentation::Known { margins, most_ns } = presentation(capture, profile) else { return None };
    margins.too_far_ahead(most_ns, profile, exposure)
}

/// The reason why the presentation times support no PASS.
fn presentation_unknown(capture: &Capture, profile: &Profile) -> Option<String> {
    match presentation(capture, profile) {
        Presentation::Unknown(why) => Some(why),
        Presentation::Known { margins, most_ns } => {
            margins.ahead(most_ns).map(|ahead| format!("{ahead}, but the number of such frames is not known"))
        }
        Presentation::NotLimited | Presentation::WithoutClock => None,
    }
}

/// The frames that were captured after their presentation times by more than `error_ns`.
fn overdue(capture: &Capture, profile: &Profile, error_ns: i64) -> Events {
    match presentation(capture, profile) {
        Presentation::Known { margins, .. } => margins.overdue(profile, error_ns),
        Presentation::NotLimited | Presentation::WithoutClock | Presentation::Unknown(_) => Events::default(),
    }
}

/// The reason for FAIL if frames came after their presentation times.
fn overdue_in_words(capture: &Capture, profile: &Profile) -> String {
    match presentation(capture, profile) {
        Presentation::Known { margins, .. } => margins.overdue_in_words(),
        Presentation::NotLimited | Presentation::WithoutClock | Presentation::Unknown(_) => String::new(),
    }
}

fn decide(
    capture: &Capture,
    measured: Option<(&Series, Bounds)>,
    obstacles: &Obstacles,
    profile: &Profile,
) -> (Outcome, String) {
    if let Some(why) = &obstacles.invalid {
        let limit = format_ns(profile.limit_ns);
        return (Outcome::Invalid, format!("{why}, so it does not show whether {limit} holds"));
    }
    if let Some(why) = &capture.lateness_unknown {
        return (Outcome::Inconclusive, format!("the lateness of the frames is not known: {why}"));
    }
    let Some((max_ns, bounds)) = measured.and_then(|(series, bounds)| Some((series.max_ns?, bounds))) else {
        return (Outcome::Inconclusive, "no frame of the stream has a lateness".to_owned());
    };
    if !has_period_of_use(capture, profile) {
        let (has_ns, needs_ns) = (period_ns(capture), profile.period_ns);
        let (has, needs) = (format_ns(to_i64(has_ns)), format_unsigned_ns(needs_ns));
        let ppm =
            if has == needs { format!(" ({:+.0} ppm)", (has_ns / needs_ns as f64 - 1.0) * 1e6) } else { String::new() };
        return (
            Outcome::Inconclusive,
            format!("the stream has a frame every {has}{ppm}, but the use needs one every {needs}"),
        );
    }
    let limit = format_ns(profile.limit_ns);
    if i128::from(capture.resolution_ns) > i128::from(profile.limit_ns) {
        let step = format_unsigned_ns(capture.resolution_ns);
        return (
            Outcome::Inconclusive,
            format!("timestamps are multiples of {step}, coarser than the limit of {limit}"),
        );
    }
    if capture.clock_steps > Some(0) {
        let at = steps(capture);
        return (
            Outcome::Inconclusive,
            format!("the time grid of the stream changed{at}: the clock of the capture was set, or the talker paused"),
        );
    }
    if let Some(reason) = too_far_ahead(capture, profile, &bounds.exposure) {
        return (Outcome::Fail, reason);
    }
    let slots = || {
        let absent = counted(absent(capture), "slot");
        match capture.lost {
            Some(lost) => {
                let skipped = capture.skipped_slots.map_or_else(|| "-".to_owned(), grouped);
                format!("{absent} without a frame ({} lost, {skipped} skipped)", grouped(lost))
            }
            None if capture.is_numbered() => {
                format!("{absent} without a frame (lost or skipped: 8 bits do not show which)")
            }
            None => format!("{absent} without a frame (lost or skipped: the frames have no numbers)"),
        }
    };
    let (error_ns, exposure) = (error_ns(capture), bounds.exposure);
    let overdue = overdue(capture, profile, resolution_ns(capture));
    let presentation_unknown = presentation_unknown(capture, profile);
    match bounds.shown(profile) {
        Shown::Exceeded if overdue.stalls_at_least >= bounds.least.late.stalls_at_least => {
            (Outcome::Fail, overdue_in_words(capture, profile))
        }
        Shown::Exceeded if max_ns > profile.limit_ns.saturating_add(error_ns) => {
            let which = capture.worst_late.first().map_or_else(String::new, |late| format!(" (frame {})", late.frame));
            (Outcome::Fail, format!("{} late{which}, above the limit of {limit}", format_ns(max_ns)))
        }
        Shown::Exceeded if bounds.elsewhere.total > absent(capture) => {
            let lost = counted(bounds.elsewhere.total, "frame");
            let text =
                format!("the listener lost {lost} of another stream: a missing frame counts as later than any limit");
            (Outcome::Fail, text)
        }
        Shown::Exceeded => (Outcome::Fail, format!("{}: a missing frame counts as later than any limit", slots())),
        Shown::Kept | Shown::Open if dropped(capture) > 0 && absent(capture) > 0 => {
            let dropped = counted(dropped(capture), "frame");
            (Outcome::Inconclusive, format!("{}, but the capture itself dropped {dropped}", slots()))
        }
        Shown::Kept | Shown::Open if capture.steps_total > Some(0) => {
            let at = steps(capture);
            let what = match capture.steps.first().map(|step| step.kind) {
                Some(StepKind::Drift | StepKind::Rate) => "the clock of the talker or of the capture changed its rate",
                _ => "the talker changed its phase or restarted",
            };
            (Outcome::Inconclusive, format!("{what}{at}: lateness and losses there are not known"))
        }
        Shown::Kept | Shown::Open if capture.ended_before_ns > 0 => {
            let before = format_unsigned_ns(capture.ended_before_ns);
            (
                Outcome::Inconclusive,
                format!(
                    "the stream ended {before} before the end of the capture: cut the file there if it was meant to end"
                ),
            )
        }
        Shown::Kept | Shown::Open if obstacles.no_pass.is_some() => {
            (Outcome::Inconclusive, obstacles.no_pass.clone().unwrap_or_default())
        }
        Shown::Kept | Shown::Open if error_ns > profile.limit_ns => {
            let error = format_ns(error_ns);
            (
                Outcome::Inconclusive,
                format!(
                    "the clocks wandered, so that lateness can be wrong by {error}, more than the limit of {limit}"
                ),
            )
        }
        Shown::Kept | Shown::Open if presentation_unknown.is_some() => {
            (Outcome::Inconclusive, presentation_unknown.unwrap_or_default())
        }
        Shown::Open if bounds.error_decides(profile) => {
            let (worst, error) = (format_ns(max_ns), format_ns(error_ns));
            let text = format!("at most {worst} late, but lateness can be wrong by {error}, and the limit is {limit}");
            (Outcome::Inconclusive, text)
        }
        Shown::Open => {
            let longer = format!("capture for {}", duration_needed(profile, Some(&exposure)));
            (Outcome::Inconclusive, measure_longer(profile, &exposure, "captured frames", &longer))
        }
        Shown::Kept => {
            let kept = if max_ns > profile.limit_ns { "rarely above" } else { "within" };
            let (excellent, bound) = (excellent(profile, max_ns), exposure.bound_per_span());
            let (worst, tolerates) = (format_ns(max_ns), profile.tolerates);
            let not_judged = match presentation(capture, profile) {
                Presentation::WithoutClock => {
                    "; presentation times were not judged: analyse the capture with --clock gptp or utc"
                }
                Presentation::NotLimited | Presentation::Unknown(_) | Presentation::Known { .. } => "",
            };
            (
                Outcome::Pass,
                format!(
                    "at most {worst} late, {kept} the limit of {limit}{excellent}; {bound}, {tolerates} is tolerated{not_judged}"
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use record::{
        CAPTURE, CapturedPeriod, CapturedStep, Histogram, MarkedFrame, NumberedBy, Observer, Phase, State, StepKind,
        Stream, Talker,
    };

    use super::*;
    use crate::profiles;

    /// Frames in 3 h.
    const ENOUGH: u64 = 86_400_000;

    /// A class A stream: 3 h of frames on time and one `late_ns` late.
    fn record(late_ns: i64, change: impl FnOnce(&mut Capture)) -> Record {
        record_of(ENOUGH, late_ns, change)
    }

    /// A class A stream: this many frames on time and one `late_ns` late.
    pub(super) fn record_of(frames: u64, late_ns: i64, change: impl FnOnce(&mut Capture)) -> Record {
        let mut capture = Capture {
            period: CapturedPeriod { nominal_ns: 125_000, ..CapturedPeriod::default() },
            worst_late: vec![MarkedFrame { frame: 77, at_ns: 0, ns: late_ns }],
            resolution_ns: 1,
            numbered_by: NumberedBy::Avtp,
            lost: Some(0),
            skipped_slots: Some(0),
            steps_total: Some(0),
            clock_steps: Some(0),
            ..Capture::default()
        };
        change(&mut capture);
        let mut raw = Histogram::default();
        raw.add(100, frames);
        raw.record(late_ns);
        let series = Series {
            role: CAPTURE.into(),
            kind: SeriesKind::Capture,
            period_ns: 125_000,
            phase: CAPTURE.into(),
            samples: raw.total(),
            max_ns: Some(late_ns),
            raw,
            ..Series::default()
        };
        let duration_ns = series.samples * series.period_ns;
        let phase = Phase { name: CAPTURE.into(), duration_ns, ..Phase::default() };
        let mut record = Record {
            state: State::Complete,
            phases: vec![phase],
            series: vec![series],
            capture: Some(capture),
            ..Record::default()
        };
        record.validity.valid = true;
        record
    }

    #[track_caller]
    fn judged(record: &Record, outcome: Outcome, reason: &str) {
        let profile = profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap();
        let verdict = crate::judge(record, profile);
        assert_eq!((verdict.outcome, verdict.reason.as_str()), (outcome, reason));
    }

    #[test]
    fn judges_by_lateness() {
        judged(
            &record(9_000, |_| ()),
            Outcome::Pass,
            "at most 9 us late, within the limit of 50 us, excellent (under 10 us); at 95 % fewer than 24 stalls a day, \
             1 per hour is tolerated",
        );
        judged(
            &record(50_000, |_| ()),
            Outcome::Pass,
            "at most 50 us late, within the limit of 50 us; at 95 % fewer than 24 stalls a day, 1 per hour is tolerated",
        );
        judged(&record_of(50_000, 50_001, |_| ()), Outcome::Fail, "50.0 us late (frame 77), above the limit of 50 us");
    }

    #[test]
    fn missing_frames_fail_unless_the_capture_dropped_frames() {
        let lost = "4 slots without a frame (3 lost, 1 skipped)";
        let absent =
            |capture: &mut Capture| (capture.lost, capture.losses, capture.skipped_slots) = (Some(3), Some(3), Some(1));
        judged(
            &record_of(900, 900, absent),
            Outcome::Fail,
            &format!("{lost}: a missing frame counts as later than any limit"),
        );
        let dropped = |capture: &mut Capture| {
            absent(capture);
            capture.dropped = Some(4);
        };
        judged(
            &record(900, dropped),
            Outcome::Inconclusive,
            &format!("{lost}, but the capture itself dropped 4 frames"),
        );
        let lost_more = |capture: &mut Capture| {
            (capture.lost, capture.losses, capture.dropped) = (Some(4_000), Some(4_000), Some(1));
        };
        let outcome = |record: &Record| crate::judge(record, avb()).outcome;
        assert_eq!(outcome(&record_of(900, 900, lost_more)), Outcome::Fail, "3,999 are missing in any case");
    }

    fn avb() -> &'static Profile {
        profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap()
    }

    #[test]
    fn a_group_of_frames_is_one_cycle() {
        let grouped = record_of(ENOUGH, 900, |capture| capture.frames_per_period = 8);
        let verdict = crate::judge(&grouped, avb());
        assert_eq!(verdict.outcome, Outcome::Inconclusive);
        assert!(verdict.statement.contains("none of 10,800,000 cycles"), "{}", verdict.statement);
    }

    #[test]
    fn an_error_of_the_lateness_decides_nothing() {
        let stamps = |capture: &mut Capture| capture.resolution_ns = 20_000;
        let near = |late| format!("at most {late} late, but lateness can be wrong by 20 us, and the limit is 50 us");
        judged(&record(45_000, stamps), Outcome::Inconclusive, &near("45 us"));
        judged(&record_of(50_000, 60_000, stamps), Outcome::Inconclusive, &near("60 us"));
        judged(&record_of(50_000, 80_000, stamps), Outcome::Fail, "80 us late (frame 77), above the limit of 50 us");
        assert_eq!(crate::judge(&record(20_000, stamps), avb()).outcome, Outcome::Pass);
        let wander = |capture: &mut Capture| capture.period.wander_ns = Some(60_000.0);
        let reason = "the clocks wandered, so that lateness can be wrong by 60 us, more than the limit of 50 us";
        judged(&record_of(50_000, 80_000, wander), Outcome::Inconclusive, reason);
        let loses = |capture: &mut Capture| {
            wander(capture);
            (capture.lost, capture.losses) = (Some(4_000), Some(4_000));
        };
        let lost =
            "4,000 slots without a frame (4,000 lost, 0 skipped): a missing frame counts as later than any limit";
        judged(&record_of(50_000, 80_000, loses), Outcome::Fail, lost);
    }

    /// A captured run whose talker sent at most `sent_late_ns` late.
    fn run(frames: u64, captured_late_ns: i64, sent_late_ns: Option<i64>) -> Record {
        let mut record = record_of(frames, captured_late_ns, |capture| capture.observer = Some(Observer::default()));
        record.scenario.probe = "stream".into();
        record.series.extend(sent_late_ns.map(|late_ns| {
            let mut send = Histogram::default();
            send.add(100, frames);
            send.record(late_ns);
            let talker = Talker { frames: send.total(), max_delta_ns: Some(late_ns), send, ..Talker::default() };
            Series {
                role: "talker".into(),
                phase: CAPTURE.into(),
                period_ns: 125_000,
                samples: talker.frames,
                raw: talker.send.clone(),
                kind: SeriesKind::Stream(Stream::Talker(Box::new(talker))),
                ..Series::default()
            }
        }));
        record
    }

    #[test]
    fn judges_a_captured_run_by_the_worse_verdict() {
        let of = |record: &Record, name: &str| {
            let profile = profiles().iter().find(|profile| profile.name == name).unwrap();
            let verdict = crate::judge(record, profile);
            (verdict.outcome, verdict.worst_ns, verdict.reason)
        };
        let (outcome, worst_ns, reason) = of(&run(ENOUGH, 9_000, Some(7_000)), "avb-class-a");
        assert_eq!((outcome, worst_ns), (Outcome::Pass, Some(7_000)));
        assert!(reason.starts_with("as captured: at most 9 us late") && reason.contains("; as sent: at most 7 us"));
        let (outcome, worst_ns, reason) = of(&run(50_000, 60_000, Some(7_000)), "avb-class-a");
        assert_eq!((outcome, worst_ns), (Outcome::Fail, Some(60_000)));
        assert!(reason.contains("60 us late (frame 77)"), "{reason}");
        assert_eq!(of(&run(50_000, 9_000, Some(70_000)), "avb-class-a").0, Outcome::Fail);
        assert_eq!(of(&run(ENOUGH, 9_000, None), "avb-class-a").0, Outcome::Pass, "a listener alone");
        let other_use = of(&run(50_000, 60_000, Some(7_000)), "cnc-servo-1ms");
        assert!(!other_use.2.contains("as captured"), "{other_use:?}");
        let (outcome, _, reason) = of(&run(ENOUGH, 9_000, None), "cnc-servo-1ms");
        assert_eq!(outcome, Outcome::Inconclusive);
        assert_eq!(reason, "the stream has a frame every 125 us, but the use needs one every 1 ms", "a listener alone");
        for sent in [None, Some(7_000)] {
            let mut interrupted = run(ENOUGH, 9_000, sent);
            interrupted.state = State::Interrupted;
            interrupted.phases[0].planned_ns = Some(60_000_000_000_000);
            let (outcome, _, reason) = of(&interrupted, "avb-class-a");
            assert_eq!(outcome, Outcome::Inconclusive, "{reason}");
            assert!(reason.contains("the run ended early, after 3 h of 16"), "{reason}");
        }
        let mut invalid = run(ENOUGH, 9_000, Some(7_000));
        invalid.validity.valid = false;
        assert_eq!(of(&invalid, "avb-class-a").0, Outcome::Invalid);
    }

    #[test]
    fn inconclusive_if_the_time_grid_changed() {
        let stepped = |kind: StepKind, clock_steps: u64| {
            move |capture: &mut Capture| {
                capture.steps = vec![CapturedStep { frame: 500, kind, ..CapturedStep::default() }];
                (capture.steps_total, capture.clock_steps) = (Some(3), Some(clock_steps));
            }
        };
        let set = "the time grid of the stream changed at frame 500 and 2 more times: the clock of the capture was set, or \
             the talker paused";
        judged(&record(60_000, stepped(StepKind::ClockSet, 1)), Outcome::Inconclusive, set);
        let changed = "the talker changed its phase or restarted at frame 500 and 2 more times: lateness and losses there \
             are not known";
        judged(&record(900, stepped(StepKind::Phase, 0)), Outcome::Inconclusive, changed);
        let drifted = "the clock of the talker or of the capture changed its rate at frame 500 and 2 more times: lateness \
             and losses there are not known";
        judged(&record(900, stepped(StepKind::Drift, 0)), Outcome::Inconclusive, drifted);
        let late = "50.0 us late (frame 77), above the limit of 50 us";
        judged(&record_of(50_000, 50_001, stepped(StepKind::Phase, 0)), Outcome::Fail, late);
        let unknown = |capture: &mut Capture| capture.lateness_unknown = Some("no period".to_owned());
        judged(&record(60_000, unknown), Outcome::Inconclusive, "the lateness of the frames is not known: no period");
    }

    #[test]
    fn no_bound_without_lateness_to_the_limit() {
        let statement = |record: &Record| crate::judge(record, avb()).statement;
        let unknown = |capture: &mut Capture| {
            (capture.lateness_unknown, capture.frames) = (Some("too coarse".to_owned()), 8_000);
            (capture.lost, capture.losses) = (Some(3), Some(2));
        };
        let no_bound = "the lateness of the frames is not known, so there is no bound";
        assert_eq!(statement(&record(900, unknown)), no_bound);
        let mut none = record_of(2, 900, |_| ());
        (none.series[0].samples, none.series[0].max_ns) = (0, None);
        assert_eq!(statement(&none), no_bound);
        let coarse = |capture: &mut Capture| capture.resolution_ns = 50_001;
        let to_the_limit = "the lateness of the frames is not known to the limit, so there is no bound";
        assert_eq!(statement(&record(900, coarse)), to_the_limit);
        let slow = |capture: &mut Capture| capture.period.nominal_ns = 250_000;
        let other = "the stream has another period than the use, so there is no bound";
        assert_eq!(statement(&record(900, slow)), other);
        let wander = |capture: &mut Capture| {
            capture.period.wander_ns = Some(60_000.0);
            (capture.lost, capture.losses) = (Some(4_000), Some(4_000));
        };
        assert!(statement(&record_of(50_000, 900, wander)).contains(" later than 50 us, in "), "lost frames show FAIL");
    }

    #[test]
    fn a_stream_that_ended_or_has_another_period_does_not_pass() {
        let ended = |capture: &mut Capture| capture.ended_before_ns = 10_000_000_000;
        let reason = "the stream ended 10 s before the end of the capture: cut the file there if it was meant to end";
        judged(&record(900, ended), Outcome::Inconclusive, reason);
        let fitted = |ns: f64| move |capture: &mut Capture| capture.period.fitted_ns = ns;
        let needs = "but the use needs one every 125 us";
        judged(
            &record(900, fitted(137e3)),
            Outcome::Inconclusive,
            &format!("the stream has a frame every 137 us, {needs}"),
        );
        let same = format!("the stream has a frame every 125 us (+2000 ppm), {needs}");
        judged(&record(900, fitted(125_250.0)), Outcome::Inconclusive, &same);
        judged(
            &record(900, fitted(125_050.0)),
            Outcome::Pass,
            "at most 900 ns late, within the limit of 50 us, excellent (under 10 us); at 95 % fewer than 24 stalls a day, \
             1 per hour is tolerated",
        );
        // 800 ppm is an error of the clocks only as far as the fit explains it.
        let fitted = |error_ppm: f64| {
            move |capture: &mut Capture| {
                (capture.period.fitted_ns, capture.period.clock_error_ppm) = (125_100.0, Some(error_ppm));
            }
        };
        let outcome = |error_ppm| {
            let profile = profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap();
            crate::judge(&record(900, fitted(error_ppm)), profile).outcome
        };
        assert_eq!(
            [1.0, 290.0, 310.0, 9e9].map(outcome).map(|outcome| outcome == Outcome::Pass),
            [false, false, true, true]
        );
    }

    #[test]
    fn an_estimated_period_is_only_as_uncertain_as_its_fit() {
        let outcome = |ppm: f64, wander_ns: Option<f64>| {
            let estimated = |capture: &mut Capture| {
                let fitted_ns = 125_000.0 * (1.0 + ppm / 1e6);
                capture.period =
                    CapturedPeriod { fitted_ns, wander_ns, nominal_ns: 125_075, ..CapturedPeriod::default() };
                capture.frames = 160_000;
            };
            crate::judge(&record(900, estimated), avb()).outcome
        };
        // 20 s, so that 2 ms are 100 ppm.
        assert_eq!(outcome(490.0, Some(2.0)), Outcome::Pass);
        assert_eq!([-600.0, -520.0, 520.0, 600.0].map(|ppm| outcome(ppm, Some(2.0))), [Outcome::Inconclusive; 4]);
        let error = |ppm, wander_ns| {
            let estimated = |capture: &mut Capture| {
                capture.period = CapturedPeriod { wander_ns, ..capture.period.clone() };
                (capture.period.fitted_ns, capture.frames) = (125_000.0 * (1.0 + ppm / 1e6), 160_000);
            };
            let record = record(900, estimated);
            has_period_of_use(record.capture.as_ref().unwrap(), avb())
        };
        assert_eq!([590.0, 610.0].map(|ppm| error(ppm, Some(2e6))), [true, false]);
        assert_eq!([990.0, 1_010.0].map(|ppm| error(ppm, None)), [true, false], "a short capture");
    }

    #[test]
    fn a_pause_is_one_stall() {
        let paused = |capture: &mut Capture| (capture.skipped_slots, capture.skips) = (Some(640), Some(1));
        let record = record(900, paused);
        let profile = profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap();
        let verdict = crate::judge(&record, profile);
        assert!(verdict.statement.contains("in 1 stall:"), "{}", verdict.statement);
    }

    #[test]
    fn inconclusive_without_suitable_time_stamps_or_frames() {
        let coarse = |capture: &mut Capture| capture.resolution_ns = 4_000_000;
        let reason = "timestamps are multiples of 4 ms, coarser than the limit of 50 us";
        judged(&record(9_000_000, coarse), Outcome::Inconclusive, reason);
        let slow = |capture: &mut Capture| capture.period.nominal_ns = 250_000;
        let reason = "the stream has a frame every 250 us, but the use needs one every 125 us";
        judged(&record(900, slow), Outcome::Inconclusive, reason);
        let mut short = record_of(799, 900, |_| ());
        judged(
            &short,
            Outcome::Inconclusive,
            "none late so far, at 95 % fewer than 1,800 stalls a minute (captured frames), but 1 per hour is tolerated: capture \
             for 198m",
        );
        short.series.clear();
        judged(&short, Outcome::Inconclusive, "no frame of the stream has a lateness");
    }
}

#[cfg(test)]
mod presentation_tests {
    use record::{
        CapturedPresentation, ClockReference, Listener, MarkedFrame, PresentationMargin, ReceivedStream, Stream,
    };

    use super::{tests::record_of, *};
    use crate::find_profile;

    /// Frames in 3 h.
    const ENOUGH: u64 = 86_400_000;

    fn margin(min_ns: i64, max_ns: i64) -> PresentationMargin {
        let late = u64::from(min_ns < 0);
        PresentationMargin { min_ns, mean_ns: 1_900_000.0, max_ns, late, ..PresentationMargin::default() }
    }

    /// Judges a stream with frames on time and these presentation times for `milan`.
    fn judged(frames: u64, found: CapturedPresentation) -> (Outcome, String) {
        let record = record_of(frames, 900, |capture| capture.presentation = Some(found));
        let verdict = crate::judge(&record, &find_profile("milan").unwrap());
        assert!(!verdict.clean_so_far || verdict.outcome == Outcome::Inconclusive);
        (verdict.outcome, verdict.reason)
    }

    fn with_clock(clock: CaptureClock, margin: Option<PresentationMargin>) -> CapturedPresentation {
        CapturedPresentation { clock: Some(clock), margin, ..CapturedPresentation::default() }
    }

    fn outcome(frames: u64, margin: PresentationMargin) -> Outcome {
        judged(frames, with_clock(CaptureClock::Gptp, Some(margin))).0
    }

    #[test]
    fn milan_limits_presentation_times_on_both_sides() {
        let of = |min_ns, max_ns| judged(50_000, with_clock(CaptureClock::Gptp, Some(margin(min_ns, max_ns))));
        assert_eq!(of(1_500_000, 2_000_001).0, Outcome::Inconclusive, "too short");
        assert_eq!(of(-1, 2_000_000).0, Outcome::Inconclusive, "within the resolution of the stamps");
        let late = "1 frame after its presentation time, the latest by 50 us".to_owned();
        assert_eq!(of(-50_000, 2_000_000), (Outcome::Fail, late));
        let (outcome, reason) = of(1_500_000, 2_500_000);
        assert!(outcome == Outcome::Fail && reason.contains("2.5 ms") && reason.ends_with("above the limit of 2 ms"));
        let record = record_of(ENOUGH, 900, |capture| {
            capture.presentation = Some(with_clock(CaptureClock::Gptp, Some(margin(-50_000, 9_000_000))));
        });
        let other = crate::judge(&record, &find_profile("avb-class-a").unwrap());
        assert_eq!(other.outcome, Outcome::Pass, "the use has no presentation times");
    }

    #[test]
    fn a_frame_can_be_captured_up_to_a_period_before_its_slot() {
        assert_eq!(outcome(ENOUGH, margin(1_900_000, 2_050_000)), Outcome::Pass);
        assert_eq!(outcome(ENOUGH, margin(1_900_000, 2_125_001)), Outcome::Pass, "and the resolution of the stamps");
        assert_eq!(outcome(50_000, margin(1_900_000, 2_125_002)), Outcome::Fail);
    }

    #[test]
    fn frames_after_their_presentation_time_are_tolerated_as_stalls() {
        let late = |at_ns: &[i64]| {
            let listed = at_ns.iter().map(|&at_ns| MarkedFrame { frame: 9, at_ns, ns: -50_000 });
            PresentationMargin { late: at_ns.len() as u64, worst: listed.collect(), ..margin(-50_000, 2_000_000) }
        };
        let hours = |hours: i64| hours * 3_600_000_000_000;
        assert_eq!(outcome(10 * ENOUGH, late(&[7])), Outcome::Pass, "1 in 30 h");
        assert_eq!(outcome(ENOUGH, late(&[7, 8, 9, 10, 11])), Outcome::Inconclusive, "1 stall");
        let apart = [0, 1, 2, 3].map(|n| hours(n) / 2);
        assert_eq!(outcome(ENOUGH, late(&apart)), Outcome::Fail, "4 stalls in 3 h");
        let ahead = |mean_ns| PresentationMargin { mean_ns, ..margin(1_500_000, 2_500_000) };
        assert_eq!(outcome(ENOUGH, ahead(1_900_000.0)), Outcome::Inconclusive, "1 or more");
        assert_eq!(outcome(ENOUGH, ahead(2_100_000.0)), Outcome::Fail, "many");
    }

    #[test]
    fn milan_does_not_pass_in_silence_without_margins() {
        let not_judged = "; presentation times were not judged: analyse the capture with --clock gptp or utc";
        let (outcome, reason) = judged(ENOUGH, CapturedPresentation::default());
        assert!(outcome == Outcome::Pass && reason.ends_with(not_judged), "{reason}");
        let none = record_of(ENOUGH, 900, |_| ());
        let verdict = crate::judge(&none, &find_profile("milan").unwrap());
        assert!(verdict.outcome == Outcome::Pass && verdict.reason.ends_with(not_judged), "{}", verdict.reason);
        let (outcome, reason) = judged(ENOUGH, with_clock(CaptureClock::Gptp, Some(margin(0, 2_000_000))));
        assert!(outcome == Outcome::Pass && reason.ends_with("is tolerated"), "{reason}");
        let (outcome, reason) = judged(ENOUGH, with_clock(CaptureClock::Gptp, None));
        assert_eq!(outcome, Outcome::Inconclusive);
        assert_eq!(reason, "no frame has a presentation time that is valid and certain");
        let reference = Some(ClockReference::default());
        let of_reference = CapturedPresentation { reference, ..with_clock(CaptureClock::Gptp, None) };
        assert_eq!(judged(ENOUGH, of_reference).0, Outcome::Pass);
    }

    #[test]
    fn margins_of_another_clock_decide_nothing() {
        let of = |min_ns, max_ns| judged(ENOUGH, with_clock(CaptureClock::Utc, Some(margin(min_ns, max_ns))));
        let text = |margin| {
            format!("the margins of the presentation times ({margin}) suggest that the clock of the capture is not utc")
        };
        assert_eq!(of(-1_660_000_000, -1_658_000_000), (Outcome::Inconclusive, text("-1.66 s")));
        assert_eq!(of(1_660_000_000, 1_662_000_000), (Outcome::Inconclusive, text("1.66 s")));
        assert_eq!(outcome(50_000, margin(-90_000_000, -90_000_000)), Outcome::Fail, "as late as a talker can be");
    }

    #[test]
    fn the_worst_stream_of_a_listener_is_judged() {
        let stream = |stream_id: &str, lost| ReceivedStream {
            stream_id: stream_id.to_owned(),
            lost,
            loss_bursts: lost,
            ..ReceivedStream::default()
        };
        let judged = |frames, not_told, other: ReceivedStream| {
            let mut listener = Listener { not_told, streams: vec![stream("1", 9), other], ..Listener::default() };
            "1".clone_into(&mut listener.identity.stream_id);
            let mut record = record_of(frames, 900, |_| ());
            let kind = SeriesKind::Stream(Stream::Listener(Box::new(listener)));
            record.series.push(Series { kind, phase: record::CAPTURE.into(), period_ns: 125_000, ..Series::default() });
            let verdict = crate::judge(&record, &find_profile("avb-class-a").unwrap());
            (verdict.outcome, verdict.reason)
        };
        let of = |frames, lost, not_told| judged(frames, not_told, stream("2", lost));
        let text = "the listener lost 600 frames of another stream: a missing frame counts as later than any limit";
        assert_eq!(of(1_200, 600, 0), (Outcome::Fail, text.to_owned()));
        assert_eq!(of(ENOUGH, 0, 0).0, Outcome::Pass, "the capture shows the losses of the followed stream");
        assert_eq!(of(ENOUGH, 600, 600).0, Outcome::Pass, "read, but not counted");
        let silent = |change: &dyn Fn(&mut ReceivedStream)| {
            let mut other = stream("0200000000010007", 0);
            change(&mut other);
            judged(ENOUGH, 0, other)
        };
        let text = |silence: &str| {
            let reason = format!("the stream 02:00:00:00:00:01:0007 {silence}; restore the traffic, and run it again");
            (Outcome::Inconclusive, reason)
        };
        assert_eq!(silent(&|other| other.ended_before_ns = 9_000_000_000), text("ended 9.0 s before the run did"));
        assert_eq!(silent(&|other| other.began_after_ns = 2_100_000_000), text("began 2.1 s after the run did"));
        assert_eq!(silent(&|other| other.paused_ns = 3_000_000_000), text("had no frame for 3.0 s"));
        assert_eq!(silent(&|other| other.restarts = 2), text("restarted 2 times"));
    }
}
