//! The verdict on one use, with its reason: PASS, FAIL, INCONCLUSIVE or INVALID.

use record::{Outcome, Published, Record, Series, SeriesKind, UseVerdict, WAKE_UP_PROBES, layout};

use crate::{
    audio, cpu_list,
    duration::{format_exact, format_ns, format_unsigned_ns},
    groups::{Group, groups},
    profile::{Judges, Profile},
    round_trip,
    rules::{
        FAR, Shown, cut_short, duration_needed, excellent, far_load, invalid_ids, load_options, of_emulation, shown,
        too_short,
    },
    stalls,
    statistics::Exposure,
    stream,
    summary::max_of,
};

/// Judges whether the machine of `record` holds the limits of `profile`.
///
/// The first rule that applies decides:
/// 1. INCONCLUSIVE if the figures were published elsewhere, because they are not of this machine.
/// 2. INVALID if the record is invalid; the figures are still filled in.
/// 3. INCONCLUSIVE if nothing was measured.
/// 4. FAIL if a considered series had more stalls than the profile tolerates in its time: cycles later than the limit, or
///    xruns of audio periods of the use's length.
/// 5. INCONCLUSIVE if the run ended early, a load did not run, the measured period is more than 8 times the use's, or a
///    considered series was too short to show the tolerated rate.
/// 6. PASS.
///
/// A stream's talker is judged by its send times instead of its wake-ups, and also by a capture of its frames if there
/// is one. Profiles of round trips and captured streams have their own rules.
///
/// For each set of loads, the considered series are those of all CPUs with the period nearest to the use's by ratio,
/// and faster ones. The faster ones count only if they were late.
#[must_use]
pub fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    if profile.judges == Judges::RoundTrips {
        return round_trip::judge(record, profile);
    }
    match &record.capture {
        Some(capture) if capture.observer.is_none() => crate::capture::judge(record, capture, profile),
        Some(capture) => crate::capture::judge_with_capture(record, capture, profile, judge_run(record, profile)),
        None => judge_run(record, profile),
    }
}

/// Judges the threads of a run.
fn judge_run(record: &Record, profile: &Profile) -> UseVerdict {
    let record = &*stream::as_sent(record);
    let groups = groups(record, profile.period_ns);
    let all: Vec<&Series> = groups.iter().flat_map(Group::considered).collect();
    let worst = all.iter().copied().max_by_key(|series| max_of(series));
    let judged = judged_series(record, &groups, profile);
    let blocked = cut_short(record)
        .or_else(|| groups.iter().find_map(|group| unsuitable(profile, group)))
        .or_else(|| far_load(record));
    let blocked = blocked.as_deref();
    let (outcome, reason) = decide(record, profile, &groups, &judged, worst, blocked);
    let statement = statement(&judged, profile);
    let is_late = judged.iter().any(|(_, exposure)| exposure.late.stalls.total > 0);
    UseVerdict {
        profile: profile.name.clone(),
        title: profile.title.clone(),
        outcome,
        reason,
        period_ns: profile.period_ns,
        limit_ns: profile.limit_ns,
        worst_ns: worst.and_then(max_of),
        worst_where: worst.filter(|series| max_of(series).is_some()).map(place).unwrap_or_default(),
        samples: all.iter().map(|series| series.samples).sum(),
        over_limit: all.iter().map(|series| over_limit(series, profile)).sum(),
        missed: all.iter().map(|series| missed(series, profile.period_ns)).sum(),
        statement: if record.validity.valid || record.published.is_some() {
            statement
        } else {
            format!("of the threads as they ran: {statement}")
        },
        tolerates: profile.tolerates.to_string(),
        clean_so_far: outcome == Outcome::Inconclusive
            && record.published.is_none()
            && blocked.is_none()
            && worst.is_some()
            && !is_late,
        ..UseVerdict::default()
    }
}

/// The further time without a stall after which a run that ends itself passes, ns; `None` if nothing was measured.
#[must_use]
pub fn time_to_pass_ns(record: &Record, profile: &Profile) -> Option<u64> {
    let exposures = match profile.judges {
        Judges::RoundTrips => round_trip::exposures(record, profile),
        Judges::WakeUps => {
            let record = &*stream::as_sent(record);
            let judged = judged_series(record, &groups(record, profile.period_ns), profile);
            judged.into_iter().map(|(_, exposure)| exposure).collect()
        }
    };
    exposures.iter().map(|exposure| exposure.time_left_ns(profile.tolerates)).max()
}

/// Deadlines of the use that the wake-ups of `series` would have missed. A bucket counts with its lowest value.
fn missed(series: &Series, period_ns: u64) -> u64 {
    let missed_by =
        |late_ns: i64| layout::lowest_in(layout::index_of(late_ns.max(0).unsigned_abs())) / period_ns.max(1);
    series.raw.iter().map(|(late_ns, count)| missed_by(late_ns).saturating_mul(count)).fold(0, u64::saturating_add)
}

/// The outcome with its reason. `blocked` is the reason why the run cannot support PASS, however long it was.
fn decide(
    record: &Record,
    profile: &Profile,
    groups: &[Group],
    judged: &[(&Series, Exposure)],
    worst: Option<&Series>,
    blocked: Option<&str>,
) -> (Outcome, String) {
    let limit = format_ns(profile.limit_ns);
    let worst = worst.and_then(|series| Some((series, max_of(series)?)));
    if let Some(published) = &record.published {
        return (Outcome::Inconclusive, published_elsewhere(published, profile));
    }
    if !record.validity.valid {
        return (Outcome::Invalid, invalid(record, &limit, worst));
    }
    let Some((worst, worst_ns)) = worst else {
        let command = command_to_measure(profile, groups.first());
        return (Outcome::Inconclusive, format!("no wake-up was measured: run `{command}`"));
    };
    let exposures: Vec<Exposure> = judged.iter().map(|(_, exposure)| *exposure).collect();
    match shown(profile, &exposures) {
        Shown::Exceeded if worst_ns > profile.limit_ns => (Outcome::Fail, fail(profile, groups, worst, worst_ns)),
        Shown::Exceeded => (Outcome::Fail, xruns(judged)),
        Shown::Kept | Shown::Open if blocked.is_some() => {
            (Outcome::Inconclusive, blocked.unwrap_or_default().to_owned())
        }
        Shown::Open => (Outcome::Inconclusive, open(profile, groups, judged)),
        Shown::Kept => (Outcome::Pass, pass(record, profile, groups, judged, worst, worst_ns)),
    }
}

/// The reason for a published record.
fn published_elsewhere(published: &Published, profile: &Profile) -> String {
    let wake_ups = published.figures.iter().filter(|figures| WAKE_UP_PROBES.contains(&figures.probe.as_str()));
    let worst = wake_ups.filter_map(|figures| Some((figures.max_ns?, figures))).max_by_key(|(max_ns, _)| *max_ns);
    let largest = worst.map_or_else(String::new, |(max_ns, figures)| {
        format!(" (largest published lateness {}, {})", format_ns(max_ns), figures.phase)
    });
    let command = command_to_measure(profile, None);
    format!("published elsewhere, not measured by punctual{largest}: measure your own machine with `{command}`")
}

fn invalid(record: &Record, limit: &str, worst: Option<(&Series, i64)>) -> String {
    let why = invalid_ids(record);
    let seen = worst.map_or_else(String::new, |(series, worst_ns)| {
        format!("; the worst measured was {} ({})", format_ns(worst_ns), place(series))
    });
    format!("the run did not go as requested ({why}), so it does not show whether {limit} holds{seen}")
}

fn fail(profile: &Profile, groups: &[Group], worst: &Series, worst_ns: i64) -> String {
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

/// The reason for FAIL if no wake-up was later than the limit, but periods of the use's length were xruns.
fn xruns(judged: &[(&Series, Exposure)]) -> String {
    let with_xruns = judged.iter().filter_map(|(series, _)| Some((series, series.kind.audio()?)));
    let Some((series, audio)) = with_xruns.max_by_key(|(_, audio)| audio.xruns) else { return String::new() };
    let worst_ns = audio.completion.as_ref().map_or(0, |times| times.max_ns);
    let (worst, limit) = (format_ns(worst_ns), format_unsigned_ns(audio.limit_ns));
    let (xruns, played) = (audio.xruns, audio.played);
    format!(
        "{xruns} of {played} periods were xruns: done up to {worst} after the deadline on {}, limit {limit}",
        place(series)
    )
}

/// The reason why a group cannot support PASS, however long it was measured.
fn unsuitable(profile: &Profile, group: &Group) -> Option<String> {
    let command = command_to_measure(profile, Some(group));
    if let Some(load) = group.phases.iter().flat_map(|phase| &phase.loads).find(|load| !load.ran) {
        return Some(format!("the load {} did not run to its end: repeat with `{command}`", load.spec));
    }
    if group.period_ns > FAR.saturating_mul(profile.period_ns) {
        let (measured, needed) = (format_unsigned_ns(group.period_ns), format_unsigned_ns(profile.period_ns));
        return Some(format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"));
    }
    None
}

/// The reason if the run showed neither that the stalls are rare enough nor that they are too frequent.
fn open(profile: &Profile, groups: &[Group], judged: &[(&Series, Exposure)]) -> String {
    let Some((series, exposure)) = weakest(judged) else { return String::new() };
    let group = groups.iter().find(|group| group.considered().any(|one| std::ptr::eq(one, series)));
    let command = command_to_measure(profile, group);
    format!("{}: run `{command}`", too_short(profile, &exposure, &place(series)))
}

fn pass(
    record: &Record,
    profile: &Profile,
    groups: &[Group],
    judged: &[(&Series, Exposure)],
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
    let kept = if worst_ns > profile.limit_ns { "rarely above" } else { "within" };
    let bound = weakest(judged).map_or_else(String::new, |(_, exposure)| exposure.bound_per_span());
    let tolerates = profile.tolerates;
    let emulated = of_emulation(record);
    format!(
        "at most {worst}, {kept} the limit of {limit}{excellent}; {bound}, {tolerates} is tolerated{shallow}{emulated}"
    )
}

/// The command that measures enough for `profile`, under the loads of `group`.
fn command_to_measure(profile: &Profile, group: Option<&Group>) -> String {
    let first = group.and_then(|group| group.series.first());
    let with_period = |probe: &str| format!("{probe} --period {}", format_exact(profile.period_ns));
    let kind = first.map(|series| &series.kind);
    let measure = if let Some(audio) = kind.and_then(SeriesKind::audio) {
        audio::command(audio)
    } else if let Some(talker) = kind.and_then(SeriesKind::talker) {
        with_period(&stream::command(talker))
    } else {
        // A profile judges wake-ups, which the timer measures with any period.
        with_period("punctual measure timer")
    };
    let (duration, loads) = (duration_needed(profile), group.map_or(&[][..], |group| &group.loads));
    format!("{measure} --duration {duration} --profile {}{}", profile.name, load_options(loads))
}

/// The series that decide, with the cycles of the use that each covered: those of the nearest period, and faster ones
/// that were late. A faster series without a late wake-up does not support PASS.
fn judged_series<'a>(record: &Record, groups: &[Group<'a>], profile: &Profile) -> Vec<(&'a Series, Exposure)> {
    let late_faster = groups.iter().flat_map(|group| &group.faster).filter(|series| !within(series, profile));
    let all = groups.iter().flat_map(|group| &group.series).chain(late_faster);
    let any_time = record.scenario.until_decided;
    all.map(|series| (*series, Exposure { any_time, ..exposure(series, profile) })).collect()
}

fn exposure(series: &Series, profile: &Profile) -> Exposure {
    // The corrected histogram also counts deadlines missed by a stall.
    let counted = if series.corrected.is_empty() { &series.raw } else { &series.corrected };
    let late = stalls::late(series, profile.period_ns, profile.limit_ns);
    // Both periods are rounded to whole ns.
    let is_its_period = profile.group == "audio" && series.period_ns.abs_diff(profile.period_ns) <= 1;
    let late = match series.kind.audio().filter(|audio| is_its_period && audio.xruns > 0) {
        Some(audio) => late.with_others(stalls::of_xruns(series, audio)),
        None => late,
    };
    Exposure::of(counted.total(), late, series.period_ns, profile.period_ns)
}

/// The series with the largest bound.
fn weakest<'a>(judged: &[(&'a Series, Exposure)]) -> Option<(&'a Series, Exposure)> {
    let bound = |exposure: &Exposure| exposure.stalls_in(1.0);
    judged.iter().copied().reduce(|a, b| if bound(&b.1) > bound(&a.1) { b } else { a })
}

/// The statement on the series with the largest bound.
fn statement(judged: &[(&Series, Exposure)], profile: &Profile) -> String {
    match weakest(judged) {
        Some((series, exposure)) => format!("{}: {}", place(series), exposure.statement(profile.limit_ns)),
        None => "no cycle was measured, so there is no conclusion".to_owned(),
    }
}

/// Wake-ups later than the limit. The exact maximum decides whether there are any, because buckets have only 3 digits.
fn over_limit(series: &Series, profile: &Profile) -> u64 {
    if within(series, profile) { 0 } else { series.raw.count_above(profile.limit_ns).max(1) }
}

fn within(series: &Series, profile: &Profile) -> bool {
    max_of(series).is_none_or(|max_ns| max_ns <= profile.limit_ns)
}

fn place(series: &Series) -> String {
    format!("{}, {}", series.place(), series.phase)
}

#[cfg(test)]
mod tests;
