//! The verdicts on all uses, and the one verdict on a run.

use std::path::Path;

use record::{Outcome, Record, UseVerdict, Verdict};

use crate::{
    builtin, judge,
    profile::{Judges, Profile},
};

/// The verdict on each built-in profile, from the least to the most demanding; on those of round trips where there are some.
///
/// The terminal shows those for which [`on_short_ladder`] holds.
#[must_use]
pub fn ladder(record: &Record) -> Vec<UseVerdict> {
    let round_trips = record.series.iter().any(|series| series.kind.round_trip().is_some());
    let told = builtin().iter().filter(|profile| round_trips || profile.judges == Judges::WakeUps);
    told.map(|profile| judge(record, profile)).collect()
}

/// Whether `verdict` is on a built-in profile that belongs to the short ladder.
#[must_use]
pub fn on_short_ladder(verdict: &UseVerdict) -> bool {
    let is_it = |profile: &&Profile| profile.name == verdict.profile;
    builtin().iter().find(is_it).is_some_and(|profile| profile.ladder)
}

/// The verdict on the run: of the profiles that its scenario asked for, the worst outcome with its reason.
///
/// Worst is INVALID, then FAIL, INCONCLUSIVE, PASS. Without profiles there is none when the run is valid, and INVALID
/// with the first reason when it is not; a published record is none. `uses` may hold more verdicts than were asked for.
#[must_use]
pub fn verdict(record: &Record, uses: &[UseVerdict]) -> Option<Verdict> {
    let asked = &record.scenario.profiles;
    if asked.is_empty() {
        let reason = record.validity.reasons.first().map(|reason| reason.text.clone());
        let reason = reason.unwrap_or_else(|| "the record does not say that what was asked for is what ran".to_owned());
        return (!record.validity.valid && record.published.is_none())
            .then_some(Verdict { outcome: Outcome::Invalid, reason });
    }
    // Reversed, so that of equally bad verdicts the first asked for is taken.
    let each = asked.iter().rev().map(|name| match uses.iter().find(|verdict| verdict.profile == stem(name)) {
        Some(verdict) => {
            Verdict { outcome: verdict.outcome, reason: format!("{}: {}", verdict.profile, verdict.reason) }
        }
        None => Verdict { outcome: Outcome::Inconclusive, reason: format!("{}: not judged", stem(name)) },
    });
    each.max_by_key(|verdict| badness(verdict.outcome))
}

/// The larger decides between several.
pub(crate) fn badness(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Inconclusive => 1,
        Outcome::Fail => 2,
        Outcome::Invalid => 3,
    }
}

/// The name of a profile that may have been asked for by its file.
fn stem(name_or_path: &str) -> String {
    if !name_or_path.ends_with(".toml") {
        return name_or_path.to_owned();
    }
    Path::new(name_or_path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
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
    fn the_worst_of_the_asked_profiles_decides() {
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
    fn without_profiles_only_an_invalid_run_has_a_verdict() {
        assert_eq!(verdict(&asking(&[], true), &[of("a", Outcome::Fail)]), None);
        let mut record = asking(&[], false);
        assert_eq!(verdict(&record, &[]).unwrap().outcome, Outcome::Invalid);
        record.validity.reasons =
            ["first", "second"].map(|text| Reason { text: text.into(), ..Reason::default() }).to_vec();
        assert_eq!(verdict(&record, &[]).unwrap().reason, "first");
    }

    #[test]
    fn the_ladder_holds_every_profile_of_wake_ups_and_the_short_one_a_few() {
        let uses = ladder(&Record::default());
        assert_eq!(uses.len(), builtin().iter().filter(|profile| profile.judges == Judges::WakeUps).count());
        assert!(uses.iter().any(on_short_ladder) && !uses.iter().all(on_short_ladder));
        assert!(!on_short_ladder(&of("unheard-of", Outcome::Pass)));
    }
}
