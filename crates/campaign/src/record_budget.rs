//! What a run of very many series leaves out, so that its record stays of a size that can be read: a matrix of 16 CPUs
//! has a thousand series. The record says so.

use record::{Caveat, SPIKES_KEPT, Series};

use crate::plan::Plan;

/// Up to so many series of threads of their own, each keeps as many spikes as a series can.
const FEW: usize = 8;
/// Above, all of them together keep so many, each at least [`SPIKES_AT_LEAST`].
const SPIKES_IN_ALL: usize = 5000;
const SPIKES_AT_LEAST: usize = 10;
/// Above so many, histograms are coarse.
const MANY: usize = 100;

/// How much each series keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordBudget {
    /// The worst spikes, so many of them.
    pub spikes_kept: usize,
    /// Whether histograms have wider buckets.
    pub coarse: bool,
}

impl RecordBudget {
    /// What a run can afford, by its number of threads of their own in all phases.
    pub fn of(plan: &Plan) -> Self {
        let series: usize = plan.phases.iter().map(|phase| phase.threads.len()).sum();
        let share = (SPIKES_IN_ALL / series.max(1)).clamp(SPIKES_AT_LEAST, SPIKES_KEPT);
        Self { spikes_kept: if series <= FEW { SPIKES_KEPT } else { share }, coarse: series > MANY }
    }

    /// Makes the histograms of series that are done as coarse as they are to be.
    pub fn apply(self, series: &mut [Series]) {
        if self.coarse {
            for one in series {
                (one.raw, one.corrected) = (one.raw.coarse(), one.corrected.coarse());
            }
        }
    }

    /// What the record then lacks.
    pub fn caveats(self) -> Vec<Caveat> {
        let caveat = |kind: &str, text: String| Caveat { kind: kind.to_owned(), text };
        let mut caveats = Vec::new();
        if self.spikes_kept < SPIKES_KEPT {
            let kept = self.spikes_kept;
            let text = format!(
                "with so many series each keeps its worst {kept} spikes instead of {SPIKES_KEPT}; all are counted"
            );
            caveats.push(caveat("spikes", text));
        }
        if self.coarse {
            let text = "with so many series histograms are coarse: percentiles are up to 6 % above the exact ones, \
                        maxima are exact";
            caveats.push(caveat("coarse", text.to_owned()));
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::{
            Length, PhasePlan,
            tests::{phase, plan},
        },
        probe::threads::{self, ThreadAsk},
    };

    fn cells(count: usize) -> RecordBudget {
        let threads = threads::place(&ThreadAsk::base_and_servo(), 0);
        RecordBudget::of(&plan(vec![PhasePlan { threads, ..phase(1, Length::UntilStopped) }; count]))
    }

    #[test]
    fn very_many_series_share_what_a_record_can_hold() {
        assert_eq!([1, 4, 5, 32, 512].map(|count| cells(count).spikes_kept), [1000, 1000, 500, 78, 10]);
        assert_eq!([48, 50, 51].map(|count| cells(count).coarse), [false, false, true]);
        assert!(cells(1).caveats().is_empty());
        assert_eq!(cells(512).caveats().len(), 2);
    }

    #[test]
    fn what_is_left_out_is_detail_and_no_count() {
        let mut series = Series::default();
        (0..10_000).for_each(|n| series.raw.record(n * 37));
        let before = series.clone();
        cells(1).apply(std::slice::from_mut(&mut series));
        assert_eq!(series, before);
        cells(512).apply(std::slice::from_mut(&mut series));
        assert_eq!(series.raw.total(), before.raw.total());
        assert!(series.raw.iter().count() < 500);
    }
}
