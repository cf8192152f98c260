//! The verdict on one use, with its reason: PASS, FAIL, INCONCLUSIVE or INVALID.

use record::{Outcome, Published, Record, Series, SeriesKind, UseVerdict, WAKE_UP_PROBES, layout};

use crate::{
    audio, cpu_list,
    duration::{format_exact, format_ns, format_unsigned_ns},
    groups::{Group, groups},
    profile::{Judges, Profile},
    round_trip,
    rules::{FAR, cut_short, excellent, far_load, invalid_ids, load_options, seconds_needed},
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
/// 4. FAIL if the largest lateness of any considered series is above the limit.
/// 5. FAIL if audio periods of the use's length were xruns.
/// 6. INCONCLUSIVE if the run ended early, a load did not run, the measured period is more than 8 times the use's, or a considered series
///    covered fewer cycles of the use than the profile needs.
/// 7. PASS.
///
/// A stream's talker is judged by its send times instead of its wake-ups, and also by a capture of its frames if there
/// is one. Profiles of round trips and captured streams have their own rules.
///
/// For each set of loads, the considered series are those of all CPUs with the period nearest to the use's by ratio,
/// and faster ones. Only the nearest ones need enough cycles.
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
    let (outcome, reason) = decide(record, profile, &groups, worst);
    let statement = statement(&groups, profile);
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
        ..UseVerdict::default()
    }
}

/// Deadlines of the use that the wake-ups of `series` would have missed. A bucket counts with its lowest value.
fn missed(series: &Series, period_ns: u64) -> u64 {
    let missed_by =
        |late_ns: i64| layout::lowest_in(layout::index_of(late_ns.max(0).unsigned_abs())) / period_ns.max(1);
    series.raw.iter().map(|(late_ns, count)| missed_by(late_ns).saturating_mul(count)).fold(0, u64::saturating_add)
}

fn decide(record: &Record, profile: &Profile, groups: &[Group], worst: Option<&Series>) -> (Outcome, String) {
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
    if worst_ns > profile.limit_ns {
        return (Outcome::Fail, fail(profile, groups, worst, worst_ns));
    }
    if let Some(reason) = groups.iter().flat_map(Group::considered).find_map(|series| xruns(profile, series)) {
        return (Outcome::Fail, reason);
    }
    let not_enough = || groups.iter().find_map(|group| not_enough(profile, group));
    if let Some(reason) = cut_short(record).or_else(not_enough).or_else(|| far_load(record)) {
        return (Outcome::Inconclusive, reason);
    }
    (Outcome::Pass, pass(profile, groups, worst, worst_ns))
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

/// The reason for FAIL if periods of the use's length were played and some were xruns.
fn xruns(profile: &Profile, series: &Series) -> Option<String> {
    let audio = series.kind.audio().filter(|audio| audio.xruns > 0)?;
    // Both periods are rounded to whole ns.
    let is_its_period = series.period_ns.abs_diff(profile.period_ns) <= 1;
    (profile.group == "audio" && is_its_period).then(|| {
        let worst_ns = audio.completion.as_ref().map_or(0, |times| times.max_ns);
        let (worst, limit) = (format_ns(worst_ns), format_unsigned_ns(audio.limit_ns));
        let (xruns, played) = (audio.xruns, audio.played);
        format!(
            "{xruns} of {played} periods were xruns: done up to {worst} after the deadline on {}, limit {limit}",
            place(series)
        )
    })
}

/// The reason why a group that held the limit does not support PASS.
fn not_enough(profile: &Profile, group: &Group) -> Option<String> {
    let command = command_to_measure(profile, Some(group));
    if let Some(load) = group.phases.iter().flat_map(|phase| &phase.loads).find(|load| !load.ran) {
        return Some(format!("the load {} did not run to its end: repeat with `{command}`", load.spec));
    }
    if group.period_ns > FAR.saturating_mul(profile.period_ns) {
        let (measured, needed) = (format_unsigned_ns(group.period_ns), format_unsigned_ns(profile.period_ns));
        return Some(format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"));
    }
    let covered = group.series.iter().map(|series| (series, exposure(series, profile).cycles));
    let (series, cycles) = covered.min_by_key(|(_, cycles)| *cycles)?;
    let (needed, period) = (profile.samples_needed, format_unsigned_ns(profile.period_ns));
    (cycles < needed)
        .then(|| format!("{cycles} of {needed} cycles of {period} needed on {}: run `{command}`", place(series)))
}

fn pass(profile: &Profile, groups: &[Group], worst: &Series, worst_ns: i64) -> String {
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
    format!("at most {worst}, within the limit of {limit}{excellent}{shallow}")
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
    let (seconds, loads) = (seconds_needed(profile), group.map_or(&[][..], |group| &group.loads));
    format!("{measure} --duration {seconds}s --profile {}{}", profile.name, load_options(loads))
}

/// The cycles of the use that a series covered, and those that were too late.
fn exposure(series: &Series, profile: &Profile) -> Exposure {
    // The corrected histogram also counts deadlines missed by a stall.
    let counted = if series.corrected.is_empty() { &series.raw } else { &series.corrected };
    let over = if within(series, profile) { 0 } else { counted.count_above(profile.limit_ns) };
    Exposure::of(counted.total(), over, series.period_ns, profile.period_ns)
}

/// The statement on the series with the weakest bound. A faster series counts only if it was late, because it does not
/// support PASS.
fn statement(groups: &[Group], profile: &Profile) -> String {
    let late_faster = groups.iter().flat_map(|group| &group.faster).filter(|series| !within(series, profile));
    let all = groups.iter().flat_map(|group| &group.series).chain(late_faster);
    let places = all.map(|series| (*series, exposure(series, profile)));
    let weakest = places.reduce(|a, b| if b.1.rate_below() > a.1.rate_below() { b } else { a });
    match weakest {
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
