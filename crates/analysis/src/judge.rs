//! The verdict on one use: a record and a profile in, PASS, FAIL, INCONCLUSIVE or INVALID out, with its reason.

use record::{Outcome, Published, Record, Series, UseVerdict, layout};

use crate::{
    audio,
    consider::{Group, groups},
    duration::{format_exact, format_ns},
    profile::{Judges, Profile},
    round_trip,
    statistics::Exposure,
    stream,
    summary::max_of,
};

/// A measured period this many times longer than the use's cannot support PASS: it saw too little of what lies between
/// two wake-ups. As many times shorter, it lets the CPUs sleep less deeply than the use will.
pub(crate) const FAR: u64 = 8;

/// Whether the machine of `record` holds the limits of `profile`.
///
/// The first rule that applies decides:
/// 1. INCONCLUSIVE when the figures were published elsewhere: what others measured decides about no machine of ours.
/// 2. INVALID when the record is; the figures are filled in all the same.
/// 3. INCONCLUSIVE when nothing was measured.
/// 4. FAIL when the largest lateness of any considered series is above the limit.
/// 5. FAIL when periods of audio as long as the use's were xruns.
/// 6. INCONCLUSIVE when a load did not run, the measured period is more than 8 times the use's, or a considered series
///    has fewer wake-ups than the profile needs.
/// 7. PASS.
///
/// A talker of a stream is judged by how late it sent, not by how late it woke; where its frames were captured meanwhile, also
/// by the capture. Profiles of round trips and captured streams have rules of their own.
///
/// Considered are, for each set of loads, the series of all CPUs whose period is nearest to the use's by ratio, and the
/// faster ones. Only the nearest must have wake-ups enough.
#[must_use]
pub fn judge(record: &Record, profile: &Profile) -> UseVerdict {
    if profile.judges == Judges::RoundTrips {
        return round_trip::judge(record, profile);
    }
    match &record.capture {
        Some(capture) if capture.observer.is_none() => crate::capture::judge(record, capture, profile),
        Some(capture) => crate::capture::judge_beside(record, capture, profile, judge_run(record, profile)),
        None => judge_run(record, profile),
    }
}

/// The same by what the threads of a run saw.
fn judge_run(record: &Record, profile: &Profile) -> UseVerdict {
    let record = &*stream::as_sent(record);
    let groups = groups(record, profile.period_ns);
    let all: Vec<&Series> = groups.iter().flat_map(Group::considered).collect();
    let worst = all.iter().copied().max_by_key(|series| max_of(series));
    let (outcome, reason) = decide(record, profile, &groups, worst);
    let statement = statement(&all, profile);
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

/// Deadlines of the use that the wake-ups of `series` would have run over. A bucket counts with its lowest value.
fn missed(series: &Series, period_ns: u64) -> u64 {
    let run_over = |late_ns: i64| layout::lowest_in(layout::index_of(late_ns.max(0) as u64)) / period_ns.max(1);
    series.raw.iter().map(|(late_ns, count)| run_over(late_ns).saturating_mul(count)).fold(0, u64::saturating_add)
}

fn decide(record: &Record, profile: &Profile, groups: &[Group], worst: Option<&Series>) -> (Outcome, String) {
    let limit = format_ns(profile.limit_ns);
    let worst = worst.and_then(|series| Some((series, max_of(series)?)));
    if let Some(published) = &record.published {
        return (Outcome::Inconclusive, elsewhere(published, profile));
    }
    if !record.validity.valid {
        return (Outcome::Invalid, invalid(record, &limit, worst));
    }
    let Some((worst, worst_ns)) = worst else {
        let command = measure(profile, groups.first());
        return (Outcome::Inconclusive, format!("no wake-up was measured: run `{command}`"));
    };
    if worst_ns > profile.limit_ns {
        return (Outcome::Fail, fail(profile, groups, worst, worst_ns));
    }
    if let Some(reason) = groups.iter().flat_map(Group::considered).find_map(|series| xruns(profile, series)) {
        return (Outcome::Fail, reason);
    }
    if let Some(reason) = groups.iter().find_map(|group| not_enough(profile, group)).or_else(|| far_load(record)) {
        return (Outcome::Inconclusive, reason);
    }
    (Outcome::Pass, pass(profile, groups, worst, worst_ns))
}

/// What a published record says instead of a verdict.
fn elsewhere(published: &Published, profile: &Profile) -> String {
    let wake_ups = published.figures.iter().filter(|figures| ["timer", "threads"].contains(&figures.probe.as_str()));
    let worst = wake_ups.filter_map(|figures| Some((figures.max_ns?, figures))).max_by_key(|(max_ns, _)| *max_ns);
    let told = worst.map_or_else(String::new, |(max_ns, figures)| {
        format!(" (the largest lateness that it tells is {}, {})", format_ns(max_ns), figures.phase)
    });
    let command = measure(profile, None);
    format!("published elsewhere, not measured by punctual{told}: measure a machine of your own with `{command}`")
}

fn invalid(record: &Record, limit: &str, worst: Option<(&Series, i64)>) -> String {
    let ids: Vec<_> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
    let why = if ids.is_empty() { "no reason given".to_owned() } else { ids.join(", ") };
    let seen = worst.map_or_else(String::new, |(series, worst_ns)| {
        format!("; the worst seen was {} ({})", format_ns(worst_ns), place(series))
    });
    format!("what was asked for is not what ran ({why}), so this cannot tell whether {limit} holds{seen}")
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
    let held = match cpu_list(measured) {
        list if list.is_empty() => String::new(),
        list => format!("; CPU {list} stayed within it"),
    };
    let (worst, limit) = (format!("{} late on {}", format_ns(worst_ns), place(worst)), format_ns(profile.limit_ns));
    format!("{worst}, above the limit of {limit}{held}")
}

/// What xruns say against a use whose periods were played.
fn xruns(profile: &Profile, series: &Series) -> Option<String> {
    let audio = series.kind.audio().filter(|audio| audio.xruns > 0)?;
    // Both are rounded to whole ns.
    let is_its_period = series.period_ns.abs_diff(profile.period_ns) <= 1;
    (profile.group == "audio" && is_its_period).then(|| {
        let worst_ns = audio.completion.as_ref().map_or(0, |times| times.max_ns);
        let (worst, limit) = (format_ns(worst_ns), format_ns(audio.limit_ns as i64));
        let (xruns, played) = (audio.xruns, audio.played);
        format!(
            "{xruns} of {played} periods were xruns: done up to {worst} late on {}, and the card has {limit}",
            place(series)
        )
    })
}

/// What is to be said of a load at the far end that did not run.
pub(crate) fn far_load(record: &Record) -> Option<String> {
    let far = record.far.as_ref()?;
    let load = far.loads.iter().find(|load| !load.ran)?;
    Some(format!("the load {} did not run to its end on {}: run it again", load.spec, far.host))
}

/// What keeps a group that held the limit from supporting PASS.
fn not_enough(profile: &Profile, group: &Group) -> Option<String> {
    let command = measure(profile, Some(group));
    if let Some(load) = group.phases.iter().flat_map(|phase| &phase.loads).find(|load| !load.ran) {
        return Some(format!("the load {} did not run to its end: repeat with `{command}`", load.spec));
    }
    if group.period_ns > FAR.saturating_mul(profile.period_ns) {
        let (measured, needed) = (format_ns(group.period_ns as i64), format_ns(profile.period_ns as i64));
        return Some(format!("measured every {measured}, too coarse for a use every {needed}: run `{command}`"));
    }
    let fewest = group.series.iter().min_by_key(|series| series.samples)?;
    (fewest.samples < profile.samples_needed).then(|| {
        let (seen, needed) = (fewest.samples, profile.samples_needed);
        format!("{seen} of {needed} wake-ups needed on {}: run `{command}`", place(fewest))
    })
}

fn pass(profile: &Profile, groups: &[Group], worst: &Series, worst_ns: i64) -> String {
    let excellent = match profile.excellent_ns {
        Some(excellent_ns) if worst_ns < excellent_ns => format!(", excellent (under {})", format_ns(excellent_ns)),
        _ => String::new(),
    };
    let shallow = match groups.iter().map(|group| group.period_ns).max() {
        Some(measured) if measured.saturating_mul(FAR) < profile.period_ns => format!(
            "; measured every {}, so CPUs slept less deeply than with a cycle of {}",
            format_ns(measured as i64),
            format_ns(profile.period_ns as i64)
        ),
        _ => String::new(),
    };
    let (worst, limit) = (format!("{} late ({})", format_ns(worst_ns), place(worst)), format_ns(profile.limit_ns));
    format!("at most {worst}, within the limit of {limit}{excellent}{shallow}")
}

/// The command that gives `profile` what it needs, under the loads of `group`.
fn measure(profile: &Profile, group: Option<&Group>) -> String {
    let Profile { name, period_ns, samples_needed, .. } = profile;
    // A tenth more than needed, in whole seconds, so that a few missed deadlines do not spoil it.
    let seconds = (u128::from(*period_ns) * u128::from(*samples_needed) * 11).div_ceil(10_000_000_000);
    let first = group.and_then(|group| group.series.first());
    if let Some(command) = first.and_then(|series| audio::command(series)) {
        let seconds = seconds.max(1);
        return with_loads(format!("{command} --duration {seconds}s --profile {name}"), group);
    }
    let probe = first.and_then(|series| stream::command(series));
    let probe = probe.unwrap_or_else(|| "punctual measure timer".to_owned());
    let command =
        format!("{probe} --period {} --duration {}s --profile {name}", format_exact(*period_ns), seconds.max(1));
    with_loads(command, group)
}

/// The command with the loads of a group.
fn with_loads(mut command: String, group: Option<&Group>) -> String {
    for load in group.map_or(&[][..], |group| &group.loads) {
        command.push_str(&format!(" --load {}", record::shell::command(&[load])));
    }
    command
}

/// The statement on the place of which the least good can be said.
fn statement(all: &[&Series], profile: &Profile) -> String {
    let exposure = |series: &Series| {
        // Corrected: the deadlines that a stall ran over are cycles too.
        let counted = if series.corrected.is_empty() { &series.raw } else { &series.corrected };
        let over = if within(series, profile) { 0 } else { counted.count_above(profile.limit_ns) };
        Exposure::of(counted.total(), over, series.period_ns, profile.period_ns)
    };
    let places = all.iter().map(|series| (*series, exposure(series)));
    let weakest = places.reduce(|a, b| if b.1.rate_below() > a.1.rate_below() { b } else { a });
    match weakest {
        Some((series, exposure)) => format!("{}: {}", place(series), exposure.statement(profile.limit_ns)),
        None => "no cycle was measured, so nothing can be said".to_owned(),
    }
}

/// Wake-ups later than the limit. The exact maximum decides whether there is any; buckets know 3 digits only.
fn over_limit(series: &Series, profile: &Profile) -> u64 {
    if within(series, profile) { 0 } else { series.raw.count_above(profile.limit_ns).max(1) }
}

fn within(series: &Series, profile: &Profile) -> bool {
    max_of(series).is_none_or(|max_ns| max_ns <= profile.limit_ns)
}

fn place(series: &Series) -> String {
    format!("{}, {}", series.place(), series.phase)
}

/// CPUs as the kernel writes a list: `0,2-3`.
pub(crate) fn cpu_list(mut cpus: Vec<u32>) -> String {
    cpus.sort_unstable();
    cpus.dedup();
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let runs = runs.map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
