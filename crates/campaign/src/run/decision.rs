//! Ends a run as soon as its verdict is decided.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use analysis::Profile;
use record::{Outcome, Record, SeriesKind};

/// Time between two looks. The evidence holds however often one looks.
const EVERY: Duration = Duration::from_secs(1);

/// Judges the profiles once a second during a run.
pub(super) struct Decision<'a> {
    profiles: &'a [Profile],
    looked: Instant,
    /// The further time without a stall until all profiles are decided, ns; `None` before the first look.
    pub left_ns: Option<u64>,
}

impl<'a> Decision<'a> {
    /// Without `profiles` there is nothing to decide.
    pub fn on(profiles: &'a [Profile]) -> Self {
        Self { profiles, looked: Instant::now(), left_ns: None }
    }

    /// True if it is time to look.
    pub fn is_due(&self) -> bool {
        !self.profiles.is_empty() && self.looked.elapsed() >= EVERY
    }

    /// True if the verdict is decided: a profile failed, the run is invalid, or all profiles passed.
    pub fn look(&mut self, record: &Record) -> bool {
        self.looked = Instant::now();
        let (mut outcomes, mut left_ns) = (Vec::new(), None);
        for profile in self.profiles {
            let record = &*at_the_end(record, profile);
            outcomes.push(analysis::judge(record, profile).outcome);
            left_ns = left_ns.max(analysis::time_to_pass_ns(record, profile));
        }
        self.left_ns = left_ns;
        outcomes.iter().any(|outcome| matches!(outcome, Outcome::Fail | Outcome::Invalid))
            || outcomes.iter().all(|outcome| *outcome == Outcome::Pass)
    }
}

/// The record as if its outside judge had ended now. It reports its totals at the end, and the run is then judged with
/// them. latmon also reports its histogram only then: until then each answer counts as the largest one if that is in time,
/// and it is not known how many were late if it is not.
fn at_the_end<'r>(record: &'r Record, profile: &Profile) -> Cow<'r, Record> {
    if record.series.iter().all(|series| series.kind.responses().is_none()) {
        return Cow::Borrowed(record);
    }
    let mut record = record.clone();
    for series in &mut record.series {
        let SeriesKind::Responses(responses) = &mut series.kind else { continue };
        responses.complete = true;
        if series.samples == 0 {
            series.max_ns = series.max_ns.filter(|max_ns| *max_ns <= profile.limit_ns);
            let answered = series.max_ns.map_or(0, |_| responses.answered);
            series.samples = answered;
            series.raw.add(series.max_ns.unwrap_or_default(), answered);
            series.corrected = series.raw.clone();
        }
    }
    Cow::Owned(record)
}

#[cfg(test)]
mod tests {
    use record::{Histogram, JudgeProtocol, Phase, Responses, Series};

    use super::*;

    fn run(protocol: JudgeProtocol, raw: Histogram, max_ns: i64) -> Record {
        let responses = Responses { protocol, questions: 40_000, answered: 40_000, ..Responses::default() };
        let series = Series {
            phase: "rest".to_owned(),
            role: record::RESPONSE.to_owned(),
            cpu: Some(0),
            period_ns: 5_000_000,
            samples: raw.total(),
            max_ns: Some(max_ns),
            corrected: raw.clone(),
            raw,
            kind: SeriesKind::Responses(Box::new(responses)),
            ..Series::default()
        };
        let phase = Phase { name: "rest".to_owned(), duration_ns: 40_000 * 5_000_000, ..Phase::default() };
        let mut record = Record { phases: vec![phase], series: vec![series], ..Record::default() };
        (record.validity.valid, record.scenario.until_decided) = (true, true);
        record
    }

    /// Without its totals, which a judge reports only at the end, nothing was decided.
    #[test]
    fn a_run_with_an_outside_judge_is_decided() {
        let text = "title = 'loose'\ngroup = 'control'\nperiod = '5ms'\nlimit = '1ms'\ntolerates = '30 per minute'\n\
                    meaning = 'test'\n[[sources]]\nwhat = 'limit'\nwhere = 'own'\n";
        let profile = analysis::profile::parse("loose", text).unwrap();
        let is_decided = |record: &Record| Decision::on(std::slice::from_ref(&profile)).look(record);
        let all = |ns: i64| {
            let mut raw = Histogram::default();
            raw.add(ns, 40_000);
            raw
        };
        assert!(is_decided(&run(JudgeProtocol::Punctual, all(500_000), 500_000)));
        assert!(is_decided(&run(JudgeProtocol::Latmon, Histogram::default(), 500_000)));
        // Only the histogram says how many were late.
        assert!(!is_decided(&run(JudgeProtocol::Latmon, Histogram::default(), 1_500_000)));
    }
}
