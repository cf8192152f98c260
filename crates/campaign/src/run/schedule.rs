//! The order of the phases of a run: all of them, or a binary search for the smallest buffer without dropouts.

use std::ops::Range;

use record::Record;

use crate::plan::Plan;

/// The phases of a run that have not been measured yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseSchedule {
    /// All of these phases, one after the other.
    All(Range<usize>),
    /// A binary search. Phases below `open` have dropouts, and phases above it have none.
    Search {
        /// The phases that are not decided yet.
        open: Range<usize>,
        /// The phase measured last.
        last: Option<usize>,
    },
}

impl PhaseSchedule {
    /// The schedule of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let all = 0..plan.phases.len();
        if plan.searches() { Self::Search { open: all, last: None } } else { Self::All(all) }
    }

    /// The next phase, chosen from the results in the record; `None` at the end.
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

#[cfg(test)]
mod tests {
    use record::{Audio, Phase, Series, SeriesKind, Times};

    use super::*;
    use crate::{
        plan::{
            Length, PhasePlan,
            tests::{phase, plan},
        },
        probe::{AudioProbe, Probe},
    };

    fn searching(sizes: usize) -> Plan {
        let phases = (0..sizes).map(|n| PhasePlan { name: n.to_string(), ..phase(1, Length::Duration(1)) }).collect();
        let audio = AudioProbe { find: true, ..AudioProbe::default() };
        Plan { probe: Probe::Audio(Box::new(audio)), ..plan(phases) }
    }

    /// Searches `sizes` candidates; those from index `first` on have no dropouts. Returns the index found, and the
    /// number of measured candidates.
    fn found(sizes: usize, first: usize) -> (Option<usize>, usize) {
        let plan = searching(sizes);
        let mut record = Record::default();
        let (mut schedule, mut held) = (PhaseSchedule::of(&plan), None);
        while let Some(at) = schedule.next(&plan, &record) {
            let name = plan.phases[at].name.clone();
            let completion = Some(Times::default());
            let audio = Audio { played: 10, xruns: u64::from(at < first), completion, ..Audio::default() };
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
    fn finds_the_smallest_buffer_within_the_announced_steps() {
        assert_eq!([0, 1, 2, 3, 7, 8, 64].map(|sizes| searching(sizes).steps()), [0, 1, 2, 2, 3, 4, 7]);
        for sizes in 1..20 {
            for first in 0..=sizes {
                let (held, measured) = found(sizes, first);
                assert_eq!(held, (first < sizes).then_some(first), "{first} of {sizes}");
                assert!(measured <= searching(sizes).steps(), "{first} of {sizes}: {measured}");
            }
        }
    }
}
