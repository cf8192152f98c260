//! The verdict on one use, with its reason: PASS, FAIL, INCONCLUSIVE or INVALID.

use record::{
    Outcome, Published, Record, Series, SeriesKind, UseVerdict, WAKE_UP_PROBES, Zero, counted, grouped, layout,
};

use crate::{
    audio, cores, cpu_list,
    duration::{format_exact, format_ns, format_unsigned_ns, parse_ns},
    events::Events,
    gaps,
    groups::{Group, groups},
    presentation, process,
    profile::{Judges, Profile},
    round_trip,
    rules::{
        FAR, Obstacles, Shown, duration_observed, excellent, load_options, measure_longer, of_emulation,
        profile_option, repeated, shown, thread_options,
    },
    stalls::{self, Missing},
    statistics::Exposure,
    stream,
    summary::{max_of, phase_in_words, unsure_maximum, when},
};

/// An error of the times may be at most one part of the limit of this many.
const ERROR_PART: u64 = 10;

/// Judges whether the machine of `record` holds the limits of `profile`.
///
/// The first rule that applies decides:
/// 1. INCONCLUSIVE if the figures were published elsewhere, because they are not of this machine.
/// 2. INVALID if the record is invalid or contradicts itself; the figures are still filled in.
/// 3. INCONCLUSIVE if nothing was measured.
/// 4. FAIL if a considered series had more stalls than the profile tolerates in its time: cycles later than the limit, or
///    xruns of audio periods of the use's length.
/// 5. INCONCLUSIVE if the run ended early, a load did not run (see [`Record::obstacle`]), the measured period is more than
///    8 times the use's, a considered series has no known maximum, or it was too short to show the tolerated rate.
/// 6. PASS.
///
/// A stream's talker is judged by its send times instead of its wake-ups, by its frames that the kernel refused or that
/// did not arrive, and also by a capture of its frames if there is one. The time of an interrupt has a known error: its
/// thread was late if it was late whatever the error was, and on time if it was on time whatever the error was. A question
/// of an outside judge without an answer is late, and an unknown result can have been. Missed
/// deadlines without a late wake-up can have been late. Profiles of round trips, watched programs, gaps of threads that
/// never sleep, and captured streams have their own rules. If the profile limits presentation times, those at the listeners
/// of a run count, too.
///
/// In a run with both cores, each core is judged by itself, and the worse verdict is that of the run.
///
/// For each set of loads, the considered series are those of all CPUs with the period nearest to the use's by ratio,
/// and faster ones. The faster ones count only if they were late.
#[must_use]
pub fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    if let Some(of_cores) = cores::judge(record, |of_core| judge(of_core, profile)) {
        return of_cores;
    }
    if profile.judges == Judges::RoundTrips {
        return round_trip::judge(record, profile);
    }
    if record.program.is_some() {
        return process::judge(record, profile);
    }
    if gaps::is_about(record) {
        return gaps::judge(record, profile);
    }
    let verdict = match &record.capture {
        Some(capture) if capture.observer.is_none() => crate::capture::judge(record, capture, profile),
        Some(capture) => crate::capture::judge_with_capture(record, capture, profile, judge_run(record, profile)),
        None => judge_run(record, profile),
    };
    presentation::with_listeners(record, profile, verdict)
}

/// Judges the threads of a run.
fn judge_run(record: &Record, profile: &Profile) -> UseVerdict {
    let sent = stream::as_sent(record);
    let groups = groups(&sent, profile.period_ns);
    let all: Vec<&Series> = groups.iter().flat_map(Group::considered).collect();
    let worst = all.iter().copied().max_by_key(|series| max_of(series));
    let judged = judged_series(record, &groups, profile);
    let command = |load: &str| command_to_measure(record, profile, with_load(&groups, load), &judged);
    let mut obstacles = Obstacles::of(record, command);
    obstacles.no_pass = obstacles
        .no_pass
        .or_else(|| groups.iter().find_map(|group| too_coarse(record, profile, group, &judged)))
        .or_else(|| all.iter().find_map(|series| unsure(series, profile)))
        .or_else(|| all.iter().find_map(|series| without_totals(series)));
    let (outcome, reason) = decide(record, profile, &groups, &judged, worst, &obstacles);
    let statement = statement(&judged, profile);
    let is_late = judged.iter().any(|one| one.exposure.late.stalls.total > 0);
    let missed = all.iter().map(|series| missed(series, profile.period_ns)).fold(0, u64::saturating_add);
    UseVerdict {
        worst_ns: worst.and_then(max_of),
        worst_where: worst.filter(|series| max_of(series).is_some()).map(place).unwrap_or_default(),
        samples: all.iter().map(|series| series.samples).sum(),
        over_limit: all.iter().map(|series| stalls::late_wake_ups(series, profile.limit_ns)).sum(),
        missed: judged.iter().map(|one| one.missing).fold(missed, u64::saturating_add),
        statement: if obstacles.invalid.is_none() || record.published.is_some() {
            statement
        } else {
            format!("of the threads as they ran: {statement}")
        },
        clean_so_far: outcome == Outcome::Inconclusive
            && record.published.is_none()
            && obstacles.no_pass.is_none()
            && all.iter().all(|series| series.samples > 0)
            && worst.is_some()
            && !is_late,
        ..profile.verdict(outcome, reason)
    }
}

/// The further time without a stall after which a run that ends itself passes, ns; `None` if nothing was measured.
#[must_use]
pub fn time_to_pass_ns(record: &Record, profile: &Profile) -> Option<u64> {
    exposures(record, profile).iter().map(|exposure| exposure.time_left_ns(profile.tolerates)).max()
}

/// The result of an unfinished run for a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoFar {
    /// Nothing: no cycle of the use was measured, or the measured period is too long for it.
    Nothing,
    /// No cycle was late.
    NoneLate,
    /// Some cycles were late, but not more than the use tolerates.
    SomeLate,
    /// More cycles were late than the use tolerates.
    TooLate,
}

/// Judges the figures so far. Unlike [`judge`], this does not need the planned end of the run.
#[must_use]
pub fn so_far(record: &Record, profile: &Profile) -> SoFar {
    let sent = stream::as_sent(record);
    let is_coarse = |group: &Group| too_coarse(record, profile, group, &[]).is_some();
    let coarse = profile.judges == Judges::WakeUps && groups(&sent, profile.period_ns).iter().any(is_coarse)
        || gaps::hidden(record, profile.limit_ns).is_some()
        || sent.probe_series().any(|series| unsure(series, profile).is_some());
    let exposures = exposures(record, profile);
    match shown(profile, &exposures) {
        Shown::Exceeded => SoFar::TooLate,
        Shown::Kept | Shown::Open if coarse || exposures.iter().all(|exposure| exposure.cycles == 0) => SoFar::Nothing,
        Shown::Kept | Shown::Open if exposures.iter().any(|exposure| exposure.late.stalls.total > 0) => SoFar::SomeLate,
        Shown::Kept | Shown::Open => SoFar::NoneLate,
    }
}

/// The cycles of the use that each series covered, with their stalls.
fn exposures(record: &Record, profile: &Profile) -> Vec<Exposure> {
    match profile.judges {
        Judges::RoundTrips => round_trip::exposures(record, profile),
        Judges::WakeUps if gaps::is_about(record) => gaps::exposures(record, profile),
        Judges::WakeUps => {
            let sent = stream::as_sent(record);
            let judged = judged_series(record, &groups(&sent, profile.period_ns), profile);
            judged.into_iter().map(|one| one.exposure).collect()
        }
    }
}

/// Deadlines of the use that the wake-ups of `series` would have missed. A bucket counts with its lowest value.
fn missed(series: &Series, period_ns: u64) -> u64 {
    let missed_by =
        |late_ns: i64| layout::lowest_in(layout::index_of(late_ns.max(0).unsigned_abs())) / period_ns.max(1);
    series.raw.iter().map(|(late_ns, count)| missed_by(late_ns).saturating_mul(count)).fold(0, u64::saturating_add)
}

/// A series that decides.
#[derive(Debug, Clone, Copy)]
struct Judged<'a> {
    series: &'a Series,
    /// The cycles of the use that it covered, and its stalls.
    exposure: Exposure,
    /// Frames of a talker that were not sent or did not arrive.
    missing: u64,
}

/// The outcome with its reason.
fn decide(
    record: &Record,
    profile: &Profile,
    groups: &[Group],
    judged: &[Judged],
    worst: Option<&Series>,
    obstacles: &Obstacles,
) -> (Outcome, String) {
    let limit = format_ns(profile.limit_ns);
    let worst = worst.and_then(|series| Some((series, max_of(series)?)));
    if let Some(published) = &record.published {
        return (Outcome::Inconclusive, published_elsewhere(record, published, profile));
    }
    if let Some(why) = &obstacles.invalid {
        return (Outcome::Invalid, invalid(why, &limit, worst));
    }
    let Some((worst, worst_ns)) = worst else {
        if has_only_listeners(record) {
            return (Outcome::Inconclusive, listener_without_capture(record));
        }
        let command = command_to_measure(record, profile, groups.first(), judged);
        return (Outcome::Inconclusive, format!("no wake-up was measured: run `{command}`"));
    };
    let exposures: Vec<Exposure> = judged.iter().map(|one| one.exposure).collect();
    let shown = shown(profile, &exposures);
    match shown {
        Shown::Exceeded => (Outcome::Fail, fail(profile, groups, judged)),
        Shown::Kept | Shown::Open => match &obstacles.no_pass {
            Some(why) => (Outcome::Inconclusive, why.clone()),
            None if shown == Shown::Open => (Outcome::Inconclusive, open(record, profile, groups, judged)),
            None => (Outcome::Pass, pass(record, profile, groups, judged, worst, worst_ns)),
        },
    }
}

/// True if all series of the probe are those of listeners, which have no wake-ups at a deadline.
fn has_only_listeners(record: &Record) -> bool {
    let mut series = record.probe_series().peekable();
    series.peek().is_some() && series.all(|series| series.kind.listener().is_some())
}

/// The reason for a listener without a capture, or with one that could not be analysed.
fn listener_without_capture(record: &Record) -> String {
    if let Some(failure) = record.caveats.iter().find(|caveat| caveat.kind == record::CAPTURE) {
        return format!("a listener's gaps are judged from a capture: {}", failure.text);
    }
    let is_measurement = record.command.get(1).is_some_and(|word| ["measure", "pair"].contains(&word.as_str()));
    let how = match is_measurement {
        true => format!("run `{}`", record::shell::with_options(&record.command, &[("--capture", "FILE")])),
        false => "add `capture = true` to its probe".to_owned(),
    };
    format!("a listener's gaps are judged from a capture: {how}")
}

/// The reason for a published record.
fn published_elsewhere(record: &Record, published: &Published, profile: &Profile) -> String {
    let wake_ups = published.figures.iter().filter(|figures| WAKE_UP_PROBES.contains(&figures.probe.as_str()));
    let worst = wake_ups.filter_map(|figures| Some((figures.max_ns?, figures))).max_by_key(|(max_ns, _)| *max_ns);
    let largest = worst.map_or_else(String::new, |(max_ns, figures)| {
        format!(" (largest published lateness {}, {})", format_ns(max_ns), phase_in_words(&figures.phase, 0))
    });
    let command = command_to_measure(record, profile, None, &[]);
    format!("published elsewhere, not measured by punctual{largest}: measure your own machine with `{command}`")
}

fn invalid(why: &str, limit: &str, worst: Option<(&Series, i64)>) -> String {
    let seen = worst.map_or_else(String::new, |(series, worst_ns)| {
        format!("; the worst measured was {} ({})", format_ns(worst_ns), place(series))
    });
    format!("{why}, so it does not show whether {limit} holds{seen}")
}

/// The reason for FAIL, from the series that had more stalls than tolerated.
fn fail(profile: &Profile, groups: &[Group], judged: &[Judged]) -> String {
    let exceeding: Vec<Judged> =
        judged.iter().copied().filter(|one| one.exposure.exceeds(profile.tolerates, judged.len())).collect();
    let late = exceeding.iter().filter_map(|one| Some((one.series, max_of(one.series)?)));
    let certain = |&(series, max_ns): &(&Series, i64)| max_ns > profile.limit_ns.saturating_add(stamp_error_ns(series));
    match late.max_by_key(|&(_, max_ns)| max_ns).filter(certain) {
        Some((worst, worst_ns)) => late_wake_up(profile, groups, worst, worst_ns),
        None => missing(&exceeding).or_else(|| xruns(&exceeding)).unwrap_or_default(),
    }
}

/// The reason for FAIL if a wake-up was later than the limit.
fn late_wake_up(profile: &Profile, groups: &[Group], worst: &Series, worst_ns: i64) -> String {
    let mut failing = Vec::new();
    let mut measured = Vec::new();
    for series in groups.iter().flat_map(Group::considered) {
        measured.extend(series.cpu);
        if max_of(series) > Some(profile.limit_ns) {
            failing.extend(series.cpu);
        }
    }
    measured.retain(|cpu| !failing.contains(cpu));
    let held = match cpu_list::format(measured) {
        list if list.is_empty() => String::new(),
        list => format!("; CPU {list} stayed within it"),
    };
    let (worst, limit) = (format!("{} late on {}", format_ns(worst_ns), place(worst)), format_ns(profile.limit_ns));
    format!("{worst}, above the limit of {limit}{held}")
}

/// The reason for FAIL if no frame was sent later than the limit, but some are missing.
fn missing(judged: &[Judged]) -> Option<String> {
    let Judged { series, missing, .. } = judged.iter().filter(|one| one.missing > 0).max_by_key(|one| one.missing)?;
    if let Some(interrupts) = series.kind.interrupts() {
        let [missing, all] = [*missing, missing.saturating_add(series.samples)].map(grouped);
        return Some(format!(
            "{missing} of {all} interrupts of {} are missing: a missing one counts as later than any limit",
            interrupts.source
        ));
    }
    if let Some(responses) = series.kind.responses() {
        let [missing, all] = [*missing, responses.questions].map(grouped);
        return Some(format!(
            "{missing} of {all} questions of the judge {} had no answer: a missing one counts as later than any limit",
            responses.judge
        ));
    }
    let talker = series.kind.talker()?;
    let [missing, slots, refused] =
        [*missing, talker.frames.saturating_add(talker.refused).saturating_add(talker.missed_slots), talker.refused]
            .map(grouped);
    Some(format!(
        "{missing} of {slots} frames are missing, {refused} of them refused by the kernel ({}): a missing frame counts \
         as later than any limit",
        place(series)
    ))
}

/// The reason for FAIL if no wake-up was later than the limit, but periods of the use's length were xruns.
fn xruns(judged: &[Judged]) -> Option<String> {
    let with_xruns = judged.iter().filter_map(|one| Some((one.series, one.series.kind.audio()?)));
    let (series, audio) = with_xruns.max_by_key(|(_, audio)| audio.xruns)?;
    let worst_ns = audio.completion.as_ref().map_or(0, |times| times.max_ns);
    let (worst, limit) = (format_ns(worst_ns), format_unsigned_ns(audio.limit_ns));
    let (xruns, played) = (grouped(audio.xruns), grouped(audio.played));
    Some(format!(
        "{xruns} of {played} periods were xruns: done up to {worst} after the deadline on {}, limit {limit}",
        place(series)
    ))
}

/// The group that was measured under `load`, otherwise the first.
fn with_load<'a>(groups: &'a [Group<'a>], load: &str) -> Option<&'a Group<'a>> {
    groups.iter().find(|group| group.loads.iter().any(|one| one == load)).or(groups.first())
}

/// The reason why a group cannot support PASS, however long it was measured.
fn too_coarse(record: &Record, profile: &Profile, group: &Group, judged: &[Judged]) -> Option<String> {
    if group.period_ns > FAR.saturating_mul(profile.period_ns) {
        let command = command_to_measure(record, profile, Some(group), judged);
        let (measured, needed) = (format_unsigned_ns(group.period_ns), format_unsigned_ns(profile.period_ns));
        return Some(format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"));
    }
    None
}

/// The reason why the figures of a series cannot support PASS, however long it was measured.
fn unsure(series: &Series, profile: &Profile) -> Option<String> {
    unsure_maximum(series)
        .or_else(|| unsure_interrupts(series, profile))
        .or_else(|| rough_responses(series, profile))
        .or_else(|| audio::hidden_xrun(series))
}

/// The reason why the times of an outside judge cannot support PASS: their steps are too large for the limit.
fn rough_responses(series: &Series, profile: &Profile) -> Option<String> {
    let responses = series.kind.responses()?;
    (responses.resolution_ns > profile.limit_ns.unsigned_abs() / ERROR_PART).then(|| {
        let (step, limit) = (format_unsigned_ns(responses.resolution_ns), format_ns(profile.limit_ns));
        format!("the judge {} measures in steps of {step}, more than a tenth of the limit of {limit}", responses.judge)
    })
}

/// The reason if an outside judge did not report its totals, so that questions without an answer may not be counted.
fn without_totals(series: &Series) -> Option<String> {
    let responses = series.kind.responses().filter(|responses| !responses.complete)?;
    Some(format!("the judge {} did not report its totals: answers may be missing", responses.judge))
}

/// The reason why the figures of a source of interrupts cannot support PASS: an unknown number was lost, or their times are
/// known too roughly.
fn unsure_interrupts(series: &Series, profile: &Profile) -> Option<String> {
    let interrupts = series.kind.interrupts()?;
    if interrupts.overruns > 0 {
        let full = counted(interrupts.overruns, "time");
        return Some(match interrupts.zero {
            Zero::Trace => {
                let untimed = counted(interrupts.overruns, "interrupt");
                format!("the kernel's trace does not contain the handler of {untimed}, whose time is not known")
            }
            Zero::Counter | Zero::Edge | Zero::Handler => {
                format!("the kernel's queue of events was full {full}: an unknown number of interrupts was lost")
            }
        });
    }
    let Some(error_ns) = interrupts.largest_error_ns() else {
        return Some("the record does not contain the largest error of the times of the interrupts".to_owned());
    };
    (error_ns > profile.limit_ns.unsigned_abs() / ERROR_PART).then(|| {
        let (error, limit) = (format_unsigned_ns(error_ns), format_ns(profile.limit_ns));
        format!("the time of an interrupt is known to {error}, which is more than a tenth of the limit of {limit}")
    })
}

/// Largest error of the lateness of a series, ns: that of the stamps of interrupts, or the steps of an outside judge; 0 for
/// other series.
fn stamp_error_ns(series: &Series) -> i64 {
    let of_interrupts = series.kind.interrupts().and_then(|interrupts| interrupts.largest_error_ns());
    let error_ns = of_interrupts.or_else(|| series.kind.responses().map(|responses| responses.resolution_ns));
    error_ns.map_or(0, |error_ns| i64::try_from(error_ns).unwrap_or(i64::MAX))
}

/// The wake-ups that were later than the limit if the stamps have their largest error. Those that were later by more than that
/// error are certain.
fn late_within_error(series: &Series, profile: &Profile) -> Events {
    let late = |limit_ns: i64| stalls::late(series, profile.period_ns, limit_ns);
    let error_ns = stamp_error_ns(series);
    let certain = late(profile.limit_ns.saturating_add(error_ns));
    Events { stalls_at_least: certain.stalls_at_least, ..late(profile.limit_ns.saturating_sub(error_ns).max(0)) }
}

/// The reason if the run showed neither that the stalls are rare enough nor that they are too frequent.
fn open(record: &Record, profile: &Profile, groups: &[Group], judged: &[Judged]) -> String {
    let Some(Judged { series, exposure, .. }) = weakest(judged) else { return String::new() };
    let group = groups.iter().find(|group| group.considered().any(|one| std::ptr::eq(one, series)));
    let command = command_to_measure(record, profile, group, judged);
    if exposure.cycles == 0 {
        return format!("no cycle of the use was measured on {}: run `{command}`", place(series));
    }
    // Fewer doubtful stalls than tolerated do not prevent PASS in a longer run.
    let can_reach = |events: Events| exposure.can_reach(events.count().stalls, profile.tolerates);
    let without_time = || unknown_decide(series).or_else(|| unexplained_decide(series, profile));
    let doubt = if can_reach(possibly_late(series, profile)) { without_time() } else { None };
    let within_error = || error_decides(series, profile).filter(|_| can_reach(late_within_error(series, profile)));
    if let Some(doubt) = doubt.or_else(within_error) {
        return doubt;
    }
    measure_longer(profile, &exposure, &place(series), &format!("run `{command}`"))
}

/// The reason if the error of the stamps decides whether a series was late.
fn error_decides(series: &Series, profile: &Profile) -> Option<String> {
    let (worst_ns, error_ns) = (max_of(series)?, stamp_error_ns(series));
    (error_ns > 0 && worst_ns.abs_diff(profile.limit_ns) <= error_ns.unsigned_abs()).then(|| {
        let [worst, error, limit] = [worst_ns, error_ns, profile.limit_ns].map(format_ns);
        let what = if series.kind.responses().is_some() { "a response" } else { "an interrupt" };
        format!("at most {worst} late, but the time of {what} is known to {error}, and the limit is {limit}")
    })
}

/// The reason if results of an outside judge that are unknown decide whether answers were late.
fn unknown_decide(series: &Series) -> Option<String> {
    let responses = series.kind.responses().filter(|responses| responses.unknown() > 0)?;
    let questions = counted(responses.unknown(), "question");
    Some(format!("the results of {questions} of the judge {} are unknown: they can have been late", responses.judge))
}

/// The reason if missed deadlines without a late wake-up decide whether a series was late.
fn unexplained_decide(series: &Series, profile: &Profile) -> Option<String> {
    (possibly_late(series, profile).cycles > 0).then(|| {
        let missed = counted(stalls::without_late_wake_up(series), "deadline");
        format!(
            "{missed} passed without a late wake-up ({}), so it is not known how late the thread was",
            place(series)
        )
    })
}

/// The missed deadlines without a late wake-up. Those of a talker are slots without a frame, which are missing.
fn possibly_late(series: &Series, profile: &Profile) -> Events {
    match (series.kind.talker(), series.kind.responses()) {
        (Some(_), _) => Events::default(),
        (None, Some(responses)) => {
            let unknown = Missing::anywhere(responses.unknown());
            stalls::of_missing(unknown, series.period_ns, profile.period_ns).possible()
        }
        (None, None) => stalls::possibly_late(series, profile.period_ns, profile.limit_ns),
    }
}

fn pass(
    record: &Record,
    profile: &Profile,
    groups: &[Group],
    judged: &[Judged],
    worst: &Series,
    worst_ns: i64,
) -> String {
    let excellent = excellent(profile, worst_ns);
    let shallow = match groups.iter().map(|group| group.period_ns).max() {
        Some(measured) if measured.saturating_mul(FAR) < profile.period_ns => format!(
            "; measured every {}, so CPUs used less deep idle states than with a cycle of {}",
            format_unsigned_ns(measured),
            format_unsigned_ns(profile.period_ns)
        ),
        _ => String::new(),
    };
    let (worst, limit) = (format!("{} late ({})", format_ns(worst_ns), place(worst)), format_ns(profile.limit_ns));
    let missing = judged.iter().map(|one| one.missing).fold(0, u64::saturating_add);
    let unknown = groups.iter().flat_map(Group::considered).filter_map(|series| series.kind.responses());
    let unknown = unknown.map(record::Responses::unknown).fold(0, u64::saturating_add);
    let some = |count: u64, what: &str| if count > 0 { format!(", {} {what}", grouped(count)) } else { String::new() };
    let xruns = judged.iter().filter_map(|one| with_xruns(one.series, profile));
    let xruns = xruns.map(|audio| audio.xruns).fold(0, u64::saturating_add);
    let worst = worst + &some(missing, "missing") + &some(unknown, "unknown") + &some(xruns, "xruns");
    let is_rare = worst_ns > profile.limit_ns || missing.max(unknown).max(xruns) > 0;
    let kept = if is_rare { "rarely above" } else { "within" };
    let excellent = if is_rare { "" } else { &*excellent };
    let bound = weakest(judged).map_or_else(String::new, |one| one.exposure.bound_per_span());
    let tolerates = profile.tolerates;
    let (not_measured, emulated) = (not_measured(record, groups), of_emulation(record));
    let measured_by = measured_by(groups);
    format!(
        "at most {worst}, {kept} the limit of {limit}{excellent}; {bound}, {tolerates} is tolerated{measured_by}{not_measured}{shallow}{emulated}"
    )
}

/// The suffix of the reason for PASS that names the outside judge and the measured way.
fn measured_by(groups: &[Group]) -> String {
    let judge = groups.iter().flat_map(Group::considered).find_map(|series| series.kind.responses());
    judge.map_or_else(String::new, |responses| {
        let (protocol, judge) = (responses.protocol.in_words(), &responses.judge);
        format!("; from the question to the answer at the pins of the {protocol} {judge}, by its clock")
    })
}

/// The suffix of the reason for PASS that names the part of the way that was not measured: before the kernel's stamp of an
/// interrupt, and after a talker handed its frames to the kernel.
fn not_measured(record: &Record, groups: &[Group]) -> &'static str {
    let any = |is_it: fn(&Series) -> bool| groups.iter().flat_map(Group::considered).any(is_it);
    let is_received = || record.series.iter().any(|series| series.kind.listener().is_some());
    match any(|series| series.kind.talker().is_some()) {
        _ if any(is_from_handler) => "; from the kernel's stamp on, the time before it was not measured",
        true if is_received() => "; until a frame was handed to the kernel, its time on the wire was not measured",
        true => "; until a frame was handed to the kernel, its time on the wire and its arrival were not measured",
        false => "",
    }
}

fn is_from_handler(series: &Series) -> bool {
    series.kind.interrupts().is_some_and(|interrupts| matches!(interrupts.zero, Zero::Handler | Zero::Trace))
}

/// The command that measures enough for `profile`, under the loads of `group`, after the run with these series.
fn command_to_measure(record: &Record, profile: &Profile, group: Option<&Group>, judged: &[Judged]) -> String {
    let first = group.and_then(|group| group.series.first());
    let with_period = |probe: &str| format!("{probe} --period {}", format_exact(profile.period_ns));
    let kind = first.map(|series| &series.kind);
    let is_fine = |ns: &u64| *ns <= FAR.saturating_mul(profile.period_ns);
    let period_ns = first.map(|series| series.period_ns).filter(is_fine).unwrap_or(profile.period_ns);
    let measure = if let Some(audio) = kind.and_then(SeriesKind::audio) {
        audio::command(&audio::with_period_of(audio, profile))
    } else if let Some(interrupts) = kind.and_then(SeriesKind::interrupts) {
        let (source, period) = (record::shell::command(&[&interrupts.source]), format_exact(period_ns));
        format!("punctual measure interrupt --source {source} --period {period}{}", thread_options(record))
    } else if let Some(responses) = kind.and_then(SeriesKind::responses) {
        let source = record.series.iter().find_map(|series| Some(&*series.kind.interrupts()?.source));
        let answer = line_in_words(&responses.answer_line);
        let (source, answer) = (source.unwrap_or("gpio:CHIP/LINE"), answer.as_deref().unwrap_or("CHIP/LINE"));
        let lines = record::shell::command(&["--judge", &responses.judge, "--source", source, "--answer", answer]);
        let period = format_exact(period_ns);
        format!("punctual measure interrupt {lines} --period {period}{}", thread_options(record))
    } else if let Some(talker) = kind.and_then(SeriesKind::talker) {
        with_period(&stream::command(talker))
    } else {
        // A profile judges wake-ups, which the timer measures with any period.
        with_period(&format!("punctual measure timer{}", thread_options(record)))
    };
    // Threads with roles have periods, CPUs and policies of their own, and interrupts have lines; both can be far away.
    let has_roles = first.is_some() && record.command.get(2).is_some_and(|probe| probe == "threads");
    let has_lines = kind.is_some_and(|kind| kind.interrupts().is_some() || kind.responses().is_some());
    let other_period_ns = (has_lines && first.is_some_and(|series| !is_fine(&series.period_ns))).then_some(period_ns);
    let weakest = weakest(judged).map(|one| one.exposure);
    // With the same period, a further run covers the same share of its time.
    let is_same_period = (has_roles || has_lines) && other_period_ns.is_none();
    let share = weakest.filter(|_| is_same_period).map_or(1.0, |exposure| exposure.covered_share());
    let duration = duration_observed(profile, weakest.as_ref(), share);
    let loads = group.map_or(&[][..], |group| &group.loads);
    if let Some(rounds) = record.cells.iter().map(|cell| cell.rounds.len() as u64).max() {
        // Each round of a pair has its share of the duration.
        let of_round_ns = parse_ns(&duration).unwrap_or(profile.period_ns);
        let of_cell = format_exact(of_round_ns.saturating_mul(rounds.max(1)));
        let options = [("--cell-duration", &*of_cell), ("--profile", &*profile.argument)];
        return record::shell::with_options(&record.command, &options);
    }
    if (has_roles || has_lines)
        && let Some(command) = repeated(record, profile, &duration, other_period_ns, loads)
    {
        return command;
    }
    format!("{measure} --duration {duration}{}{}", profile_option(profile), load_options(loads))
}

/// The name of a line as options take it, from its name in words: `line 27 (GPIO27) of gpiochip0, fakechip`.
fn line_in_words(words: &str) -> Option<String> {
    let (line, chip) = words.strip_prefix("line ")?.split_once(" of ")?;
    Some(format!("{}/{}", chip.split(',').next()?, line.split(' ').next()?))
}

/// The series that decide, with the cycles of the use that each covered: those of the nearest period, and faster ones
/// that were late. A faster series without a late wake-up does not support PASS.
fn judged_series<'a>(record: &Record, groups: &[Group<'a>], profile: &Profile) -> Vec<Judged<'a>> {
    let of = |series: &&'a Series| judged(record, series, profile);
    let late_faster = groups.iter().flat_map(|group| &group.faster).map(of);
    let late_faster = late_faster.filter(|one| one.exposure.late.stalls.total > 0);
    groups.iter().flat_map(|group| &group.series).map(of).chain(late_faster).collect()
}

fn judged<'a>(record: &Record, series: &'a Series, profile: &Profile) -> Judged<'a> {
    // The corrected histogram also counts deadlines missed by a stall.
    let counted = stalls::corrected(series);
    let late = late_within_error(series, profile);
    let late = late.with(possibly_late(series, profile));
    let late = match with_xruns(series, profile) {
        Some(audio) => late.with(stalls::of_xruns(series, audio)),
        None => late,
    };
    let of_losses = |missing, apart_ns| {
        (missing, stalls::of_losses(Missing::anywhere(missing), &series.losses, apart_ns, profile.period_ns))
    };
    let (missing, of_missing) = match (series.kind.talker(), series.kind.interrupts(), series.kind.responses()) {
        (Some(talker), ..) => stream::missing(record, talker, series.period_ns, profile.period_ns),
        (None, Some(interrupts), _) => {
            let (missing, events) = of_losses(interrupts.lost.saturating_add(interrupts.unanswered), series.period_ns);
            let stalls_at_least = match interrupts.has_period() {
                true => events.stalls_at_least,
                false => stalls::least_in_windows(&series.losses, missing, profile.period_ns.max(series.period_ns)),
            };
            (missing, Events { stalls_at_least, ..events })
        }
        (None, None, Some(responses)) => of_losses(responses.missed, responses.unanswered_ns(series.period_ns)),
        (None, None, None) => (0, Events::default()),
    };
    let refused = series.kind.talker().map_or(0, record::Talker::most_refused);
    let deadlines = match (series.kind.interrupts(), series.kind.responses()) {
        (Some(_), _) => counted.total().saturating_add(missing).min(periods_of_phase(record, series)),
        (None, Some(responses)) => {
            let periods = responses.unanswered_ns(series.period_ns) / series.period_ns.max(1);
            let unanswered = missing.saturating_mul(periods);
            let reported = counted.total().saturating_sub(responses.unreported);
            let all = reported.saturating_add(unanswered).saturating_add(responses.unknown());
            periods_asked(all, responses, series, profile).min(periods_of_phase(record, series))
        }
        (None, None) => counted.total().saturating_add(refused),
    };
    let exposure = Exposure::of(deadlines, late.with(of_missing).count(), series.period_ns, profile.period_ns);
    // Questions and interrupts can be further apart than requested.
    let lasts_whole_phase = series.kind.interrupts().is_some() || series.kind.responses().is_some();
    let of_phase_ns = if lasts_whole_phase { measured_ns(record, series) } else { 0 };
    let lasted_ns = exposure.lasted_ns.max(of_phase_ns);
    Judged { series, exposure: Exposure { any_time: record.scenario.until_decided, lasted_ns, ..exposure }, missing }
}

/// The audio of a series with the period of the use, if it had xruns.
fn with_xruns<'a>(series: &'a Series, profile: &Profile) -> Option<&'a record::Audio> {
    // Both periods are rounded to whole ns.
    let is_its_period = profile.group == "audio" && series.period_ns.abs_diff(profile.period_ns) <= 1;
    series.kind.audio().filter(|audio| is_its_period && audio.xruns > 0)
}

/// The periods that the phase of a series lasted. Interrupts can come faster than their expected period, but do not cover
/// more time for that.
fn periods_of_phase(record: &Record, series: &Series) -> u64 {
    (measured_ns(record, series) / series.period_ns.max(1)).saturating_add(1)
}

/// The time that the phase of a series measured, ns: a run waits for the first interrupt before its planned time.
fn measured_ns(record: &Record, series: &Series) -> u64 {
    let of_phase = |phase: &record::Phase| phase.planned_ns.unwrap_or(phase.duration_ns).min(phase.duration_ns);
    record.phase(&series.phase).map_or(0, of_phase)
}

/// The periods that the questions of a judge cover. A random part is added to each, and a judge can ask more slowly than
/// requested, but a question covers no more than a cycle of the use.
fn periods_asked(questions: u64, responses: &record::Responses, series: &Series, profile: &Profile) -> u64 {
    let Some(asked_ns) = responses.asked_ns.filter(|_| series.period_ns < profile.period_ns) else { return questions };
    let each_ns = (asked_ns / responses.questions.max(1)).clamp(series.period_ns, profile.period_ns);
    let covered_ns = u128::from(questions) * u128::from(each_ns);
    u64::try_from(covered_ns / u128::from(series.period_ns.max(1))).unwrap_or(u64::MAX)
}

/// The series with the largest bound.
fn weakest<'a>(judged: &[Judged<'a>]) -> Option<Judged<'a>> {
    let bound = |one: &Judged| one.exposure.stalls_in(1.0);
    judged.iter().copied().reduce(|a, b| if bound(&b) > bound(&a) { b } else { a })
}

/// The statement on the series with the largest bound.
fn statement(judged: &[Judged], profile: &Profile) -> String {
    match weakest(judged) {
        Some(Judged { series, exposure, .. }) => {
            let from = if is_from_handler(series) { ", from the kernel's stamp on" } else { "" };
            format!("{}{from}: {}", place(series), exposure.statement(profile.limit_ns))
        }
        None => "no cycle was measured, so there is no conclusion".to_owned(),
    }
}

fn place(series: &Series) -> String {
    format!("{}, {}", series.place(), when(series))
}

#[cfg(test)]
mod tests;
