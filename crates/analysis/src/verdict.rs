//! The verdicts on all uses, and the verdict on a run.

use std::path::Path;

use record::{Outcome, Record, UseVerdict, Verdict};

use crate::{
    data_file::stem,
    judge,
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

/// The verdict on the run: the worst outcome of the requested profiles, with its reason.
///
/// The worst outcome is INVALID, then FAIL, INCONCLUSIVE, PASS. Without requested profiles, the result is `None` for a
/// valid or published record, and INVALID with the first reason for an invalid one. `uses` can contain further
/// verdicts.
#[must_use]
pub fn verdict(record: &Record, uses: &[UseVerdict]) -> Option<Verdict> {
    let requested = &record.scenario.profiles;
    if requested.is_empty() {
        let reason = record.validity.reasons.first().map(|reason| reason.text.clone());
        let reason = reason.unwrap_or_else(|| "the record does not confirm that the run went as requested".to_owned());
        return (!record.validity.valid && record.published.is_none())
            .then_some(Verdict { outcome: Outcome::Invalid, reason });
    }
    // Reversed, so that the first of several equally bad verdicts wins.
    let each =
        requested.iter().rev().map(|name| match uses.iter().find(|verdict| verdict.profile == profile_name(name)) {
            Some(verdict) => {
                Verdict { outcome: verdict.outcome, reason: format!("{}: {}", verdict.profile, verdict.reason) }
            }
            None => Verdict { outcome: Outcome::Inconclusive, reason: format!("{}: not judged", profile_name(name)) },
        });
    each.max_by_key(|verdict| severity(verdict.outcome))
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
    fn only_invalid_runs_have_a_verdict_without_profiles() {
        assert_eq!(verdict(&asking(&[], true), &[of("a", Outcome::Fail)]), None);
        let mut record = asking(&[], false);
        assert_eq!(verdict(&record, &[]).unwrap().outcome, Outcome::Invalid);
        record.validity.reasons =
            ["first", "second"].map(|text| Reason { text: text.into(), ..Reason::default() }).to_vec();
        assert_eq!(verdict(&record, &[]).unwrap().reason, "first");
    }

    #[test]
    fn the_ladder_contains_every_profile_of_wake_ups() {
        let uses = ladder(&Record::default());
        assert_eq!(uses.len(), profiles().iter().filter(|profile| profile.judges == Judges::WakeUps).count());
        assert!(uses.iter().any(on_short_ladder) && !uses.iter().all(on_short_ladder));
        assert!(!on_short_ladder(&of("unheard-of", Outcome::Pass)));
    }
}
