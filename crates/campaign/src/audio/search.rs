//! Which phases of a run are measured, and in what order: all of them, or those that find the smallest buffer that holds.

use std::ops::Range;

use record::Record;

use crate::{Plan, Probe};

/// The phases of a run that are still to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// These, one after the other.
    All(Range<usize>),
    /// Those that halve what is open. Phases below it do not hold, those above do.
    Search {
        /// What is open.
        open: Range<usize>,
        /// The phase that is under way.
        last: Option<usize>,
    },
}

impl Course {
    /// That of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let all = 0..plan.phases.len();
        match &plan.probe {
            Probe::Audio(audio) if audio.find => Self::Search { open: all, last: None },
            _ => Self::All(all),
        }
    }

    /// The next phase, after what stands in the record.
    pub fn next(&mut self, plan: &Plan, record: &Record) -> Option<usize> {
        match self {
            Self::All(left) => left.next(),
            Self::Search { open, last } => {
                if let Some(last) = *last {
                    let held = analysis::audio::held(record, &plan.phases[last].name);
                    *open = if held { open.start..last } else { last + 1..open.end };
                }
                *last = (open.start < open.end).then(|| open.start + open.len() / 2);
                *last
            }
        }
    }
}

/// How many of so many candidates are measured at most.
#[must_use]
pub fn steps(candidates: usize) -> usize {
    candidates.checked_ilog2().map_or(0, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use record::{Audio, Phase, Series, SeriesKind};

    use super::*;
    use crate::{
        AudioPlan, Length, PhasePlan, Through,
        plan::tests::{phase, plan},
    };

    /// What is found among so many sizes of which those from `first` on hold, and how many were measured.
    fn found(sizes: usize, first: usize) -> (Option<usize>, usize) {
        let phases = (0..sizes).map(|n| PhasePlan { name: n.to_string(), ..phase(1, Length::Duration(1)) }).collect();
        let audio = AudioPlan { rate_hz: 48_000, periods: 2, through: Through::default(), device: None, find: true };
        let plan = Plan { probe: Probe::Audio(Box::new(audio)), ..plan(phases) };
        let mut record = Record::default();
        let (mut course, mut held) = (Course::of(&plan), None);
        while let Some(at) = course.next(&plan, &record) {
            let name = plan.phases[at].name.clone();
            let audio = Audio { played: 10, xruns: u64::from(at < first), ..Audio::default() };
            record.series.push(Series {
                phase: name.clone(),
                kind: SeriesKind::Audio(Box::new(audio)),
                ..Series::default()
            });
            record.phases.push(Phase { name, ..Phase::default() });
            held = if at >= first { Some(at) } else { held };
        }
        (held, record.phases.len())
    }

    #[test]
    fn the_smallest_that_holds_is_found_in_as_many_steps_as_were_told() {
        assert_eq!([0, 1, 2, 3, 7, 8, 64].map(steps), [0, 1, 2, 2, 3, 4, 7]);
        for sizes in 1..20 {
            for first in 0..=sizes {
                let (held, measured) = found(sizes, first);
                assert_eq!(held, (first < sizes).then_some(first), "{first} of {sizes}");
                assert!(measured <= steps(sizes), "{first} of {sizes}: {measured}");
            }
        }
    }
}
