//! The verdicts on all uses, and the verdict on a run.

use std::path::Path;

use record::{Obstacle, Outcome, ProgramLimits, Record, UseVerdict, Verdict};

use crate::{
    audio,
    data_file::stem,
    find_profile, judge, latency_limit, matrix, process,
    profile::{Judges, Profile},
    profiles,
    rules::severity,
};

/// The verdict on each built-in profile, from the least to the most demanding. Profiles of round trips are included
/// only if there are some in the record.
///
/// The terminal shows those for which [`on_short_ladder`] returns true.
#[must_use]
pub fn ladder(record: &Record) -> Vec<UseVerdict> {
    let round_trips = record.series.iter().any(|series| series.kind.round_trip().is_some());
    let relevant = profiles().iter().filter(|profile| round_trips || profile.judges == Judges::WakeUps);
    relevant.map(|profile| judge(record, profile)).collect()
}

/// True if `verdict` is about a built-in profile of the short ladder.
#[must_use]
pub fn on_short_ladder(verdict: &UseVerdict) -> bool {
    let is_it = |profile: &&Profile| profile.name == verdict.profile;
    profiles().iter().find(is_it).is_some_and(|profile| profile.ladder)
}

/// The verdict on the run: the worst outcome of the requested profiles and of the limit on its latency, with its reason.
///
/// The worst outcome is INVALID, then FAIL, INCONCLUSIVE, PASS. Without both, the result is `None` for a valid or
/// published record, and INVALID with the first reason for an invalid one. `uses` can contain further
/// verdicts.
#[must_use]
pub fn verdict(record: &Record, uses: &[UseVerdict]) -> Option<Verdict> {
    let of_limit = latency_limit::verdict(record);
    let requested = &record.scenario.profiles;
    if requested.is_empty() {
        return of_limit.or_else(|| invalid(record));
    }
    let of_profile = |name: &String| {
        let name = profile_name(name);
        let verdict = |of: &UseVerdict| Verdict { outcome: of.outcome, reason: format!("{name}: {}", of.reason) };
        // Two files may have the same name in a record that an older version wrote.
        let of_name: Vec<Verdict> = uses.iter().filter(|of| of.profile == name).map(verdict).collect();
        match of_name.is_empty() {
            true => vec![Verdict { outcome: Outcome::Inconclusive, reason: format!("{name}: not judged") }],
            false => of_name,
        }
    };
    // Reversed, so that the first of several equally bad verdicts wins.
    let each = requested.iter().rev().flat_map(of_profile);
    worst_of(std::iter::once(of_limit).chain(each.map(Some)))
}

/// The worst of these verdicts; the last of equally bad ones. `None` without any.
pub fn worst_of(verdicts: impl IntoIterator<Item = Option<Verdict>>) -> Option<Verdict> {
    verdicts.into_iter().flatten().max_by_key(|verdict| severity(verdict.outcome))
}

/// The outcome of a run: that of its verdict; INCONCLUSIVE without one for a matrix that recommends no pair; `None` if
/// there was no limit to judge by. A search that found no buffer size decides first.
#[must_use]
pub fn outcome(record: &Record) -> Option<Outcome> {
    let without_pair =
        (!record.cells.is_empty() && record.recommended_pair().is_none()).then_some(Outcome::Inconclusive);
    let judged = record.verdict.as_ref().map(|verdict| verdict.outcome);
    audio::outcome_of_search(record).or(judged).or(without_pair)
}

/// INVALID with the first reason, for an invalid record that was not published elsewhere.
pub(crate) fn invalid(record: &Record) -> Option<Verdict> {
    let Some(Obstacle::Invalid(reasons)) = record.run_obstacle() else { return None };
    let reason = reasons.first().map(|reason| reason.text.clone());
    let reason = reason.unwrap_or_else(|| "the record does not confirm that the run went as requested".to_owned());
    record.published.is_none().then_some(Verdict { outcome: Outcome::Invalid, reason })
}

/// Computes the results of a matrix and of a search for a buffer again, from the figures of the record.
pub fn conclude(record: &mut Record) {
    if matrix::is_matrix(record) && record.published.is_none() {
        matrix::fill(record);
    }
    if let Some(search) = record.buffer.take() {
        record.buffer = Some(audio::search(record, search.candidates));
    }
}

/// Computes the results in a record again, from its figures.
///
/// A stored PASS that cannot be computed again becomes INCONCLUSIVE: for a profile that is not found, and for a program
/// in a record without its limits, as older versions wrote it.
pub fn rejudge(record: &mut Record) {
    conclude(record);
    let stored = std::mem::take(&mut record.uses);
    let same_before =
        |number: usize, of: &UseVerdict| stored[..number].iter().filter(|before| before.profile == of.profile).count();
    record.uses =
        stored.iter().enumerate().map(|(number, of)| rejudged(record, of.clone(), same_before(number, of))).collect();
    record.verdict = match record.verdict.take() {
        stored if record.program.is_some() => {
            let limits = record.scenario.limits.unwrap_or_default();
            let of_limits = process::verdict(record, limits).map(|verdict| supported(record, verdict));
            let without_limits = limits == ProgramLimits::default();
            let unchecked = stored.filter(|_| without_limits).and_then(|old| unchecked(record, old));
            worst_of([unchecked, of_limits, verdict(record, &record.uses)])
        }
        _ => verdict(record, &record.uses),
    };
}

/// The verdict on the use of a stored verdict, before which the record has `same_before` verdicts on profiles of the same
/// name.
fn rejudged(record: &Record, stored: UseVerdict, same_before: usize) -> UseVerdict {
    let mut names = record.scenario.profiles.iter().filter(|name| profile_name(name) == stored.profile);
    let name = names.nth(same_before);
    match find_profile(name.unwrap_or(&stored.profile)) {
        Ok(profile) => judge(record, &profile),
        Err(_) if stored.outcome == Outcome::Pass => {
            let reason = format!(
                "the profile {} was not found, so the stored PASS cannot be checked: name its file with --profile",
                stored.profile
            );
            UseVerdict { outcome: Outcome::Inconclusive, reason, ..stored }
        }
        Err(_) => stored,
    }
}

/// A verdict, if the run supports it.
fn supported(record: &Record, verdict: Verdict) -> Verdict {
    match record.obstacle() {
        Some(obstacle) if verdict.outcome == Outcome::Pass => {
            Verdict { outcome: Outcome::Inconclusive, reason: obstacle.to_string() }
        }
        _ => verdict,
    }
}

/// A stored verdict on limits that are not in the record. PASS cannot be checked, unless it is the verdict on a profile,
/// which is judged again.
fn unchecked(record: &Record, stored: Verdict) -> Option<Verdict> {
    let is_pass = stored.outcome == Outcome::Pass;
    if is_pass && !record.scenario.profiles.is_empty() {
        return None;
    }
    let reason =
        "the record does not contain the limits of the program, so the stored PASS cannot be checked: measure \
                  again"
            .to_owned();
    Some(if is_pass { Verdict { outcome: Outcome::Inconclusive, reason } } else { stored })
}

/// The name of a requested profile, which can be given as a file.
fn profile_name(name_or_path: &str) -> String {
    if !name_or_path.ends_with(".toml") {
        return name_or_path.to_owned();
    }
    stem(Path::new(name_or_path))
}

#[cfg(test)]
mod tests {
    use record::Reason;

    use super::*;

    fn of(profile: &str, outcome: Outcome) -> UseVerdict {
        UseVerdict { profile: profile.into(), outcome, reason: format!("is {}", outcome.name()), ..Default::default() }
    }

    fn asking(profiles: &[&str], valid: bool) -> Record {
        let mut record = Record::default();
        record.scenario.profiles = profiles.iter().map(|&name| name.to_owned()).collect();
        record.validity.valid = valid;
        record
    }

    #[test]
    fn the_worst_of_the_requested_profiles_decides() {
        let uses = [
            of("a", Outcome::Pass),
            of("b", Outcome::Inconclusive),
            of("c", Outcome::Fail),
            of("d", Outcome::Invalid),
            of("e", Outcome::Fail),
        ];
        for (asked, outcome, reason) in [
            (&["a"][..], Outcome::Pass, "a: is PASS"),
            (&["a", "b"], Outcome::Inconclusive, "b: is INCONCLUSIVE"),
            (&["a", "c", "b"], Outcome::Fail, "c: is FAIL"),
            (&["e", "c"], Outcome::Fail, "e: is FAIL"),
            (&["c", "d"], Outcome::Invalid, "d: is INVALID"),
            (&["my/c.toml", "a"], Outcome::Fail, "c: is FAIL"),
            (&["a", "unheard-of"], Outcome::Inconclusive, "unheard-of: not judged"),
        ] {
            let found = verdict(&asking(asked, true), &uses).unwrap();
            assert_eq!((found.outcome, found.reason.as_str()), (outcome, reason));
        }
    }

    #[test]
    fn each_of_two_profiles_of_one_name_decides() {
        let uses = [of("loop", Outcome::Pass), of("loop", Outcome::Fail)];
        assert_eq!(verdict(&asking(&["a/loop.toml", "b/loop.toml"], true), &uses).unwrap().outcome, Outcome::Fail);
    }

    #[test]
    fn only_invalid_runs_have_a_verdict_without_profiles() {
        assert_eq!(verdict(&asking(&[], true), &[of("a", Outcome::Fail)]), None);
        let mut record = asking(&[], false);
        assert_eq!(verdict(&record, &[]).unwrap().outcome, Outcome::Invalid);
        record.validity.reasons =
            ["first", "second"].map(|text| Reason { text: text.into(), ..Reason::default() }).to_vec();
        assert_eq!(verdict(&record, &[]).unwrap().reason, "first");
    }

    #[test]
    fn a_stored_verdict_is_not_believed() {
        let forged = |profile: &str| {
            let mut record = asking(&[profile], true);
            record.uses = vec![of(profile, Outcome::Pass)];
            record.verdict = Some(Verdict { outcome: Outcome::Pass, reason: "forged".to_owned() });
            rejudge(&mut record);
            let verdict = record.verdict.unwrap();
            (verdict.outcome, verdict.reason)
        };
        let (outcome, reason) = forged("control-1khz");
        assert_eq!(outcome, Outcome::Inconclusive);
        assert!(reason.starts_with("control-1khz: no wake-up was measured"), "{reason}");
        let (outcome, reason) = forged("unheard-of");
        assert_eq!(outcome, Outcome::Inconclusive);
        assert!(reason.contains("the stored PASS cannot be checked"), "{reason}");
        let mut program = Record { program: Some(record::Program::default()), ..asking(&[], true) };
        program.verdict = Some(Verdict { outcome: Outcome::Pass, reason: "forged".to_owned() });
        program.state = record::State::Interrupted;
        rejudge(&mut program);
        assert_eq!(program.verdict.unwrap().outcome, Outcome::Inconclusive);
    }

    #[test]
    fn the_limits_of_a_program_are_judged_again() {
        let judged = |limits: Option<ProgramLimits>, stored: Outcome| {
            let mut record = Record { program: Some(record::Program::default()), ..asking(&[], true) };
            record.state = record::State::Complete;
            record.scenario.limits = limits;
            let mut thread =
                record::ProcessThread { cycles: 20, release: record::Release::Event, ..Default::default() };
            thread.response.add(7_000_000, 20);
            let times = record::ThreadTimes { running_ns: 7_000_000, ..Default::default() };
            thread.longest = Some(record::Cycle { times, ..Default::default() });
            let kind = record::SeriesKind::Process(Box::new(thread));
            record.series = vec![record::Series { role: "servo".to_owned(), kind, ..Default::default() }];
            record.phases = vec![record::Phase::default()];
            record.verdict = Some(Verdict { outcome: stored, reason: "stored".to_owned() });
            rejudge(&mut record);
            record.verdict.map(|verdict| verdict.outcome)
        };
        let response = |ms: u64| Some(ProgramLimits { response_ns: Some(ms * 1_000_000), ..ProgramLimits::default() });
        assert_eq!(judged(response(5), Outcome::Pass), Some(Outcome::Fail), "7 ms, but the verdict was edited");
        assert_eq!(judged(response(9), Outcome::Fail), Some(Outcome::Pass));
        assert_eq!(judged(None, Outcome::Pass), Some(Outcome::Inconclusive), "an older record");
        assert_eq!(judged(None, Outcome::Fail), Some(Outcome::Fail));
        let emptied = Some(ProgramLimits::default());
        assert_eq!(judged(emptied, Outcome::Fail), Some(Outcome::Fail));
        assert_eq!(judged(emptied, Outcome::Pass), Some(Outcome::Inconclusive));
    }

    #[test]
    fn the_ladder_contains_every_profile_of_wake_ups() {
        let uses = ladder(&Record::default());
        assert_eq!(uses.len(), profiles().iter().filter(|profile| profile.judges == Judges::WakeUps).count());
        assert!(uses.iter().any(on_short_ladder) && !uses.iter().all(on_short_ladder));
        assert!(!on_short_ladder(&of("unheard-of", Outcome::Pass)));
    }
}
