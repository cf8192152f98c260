//! Limits the size of the record of a run with very many series; a matrix of 16 CPUs has a thousand. The record lists
//! what was left out as caveats.

use std::cmp::Reverse;

use record::{Caveat, SPIKES_KEPT, Series, Spike, TIME_LINES_KEPT, grouped};

/// Up to this number of series, each series keeps [`SPIKES_KEPT`] spikes.
const FULL_SPIKES_SERIES: usize = 8;
/// Spikes of all series together, if there are more.
const SPIKES_TOTAL: usize = 1024;
/// Smallest number of spikes of a series.
const SPIKES_MIN: usize = 10;
/// Up to this number of series, histograms have fine buckets.
const FINE_SERIES: usize = 256;

/// Limits for each series of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordBudget {
    /// Number of spikes, the worst ones.
    pub spikes_kept: usize,
    /// Number of spikes with a time line, the worst ones.
    time_lines_kept: usize,
    /// True if histograms have wider buckets.
    pub coarse: bool,
}

impl RecordBudget {
    /// The limits for a run with this number of series in all phases together.
    pub fn of(series: usize) -> Self {
        let share = (SPIKES_TOTAL / series.max(1)).clamp(SPIKES_MIN, SPIKES_KEPT);
        let spikes_kept = if series <= FULL_SPIKES_SERIES { SPIKES_KEPT } else { share };
        let time_lines_kept = (TIME_LINES_KEPT / series.max(1)).max(1);
        Self { spikes_kept, time_lines_kept, coarse: series > FINE_SERIES }
    }

    /// Removes the time lines of all but the worst spikes of each series.
    pub fn limit_time_lines(self, series: &mut [Series]) {
        for one in series {
            let mut worst_first: Vec<&mut Spike> = one.spikes.iter_mut().collect();
            worst_first.sort_by_key(|spike| Reverse(spike.lateness_ns));
            for spike in worst_first.into_iter().skip(self.time_lines_kept) {
                spike.timeline = Vec::new();
            }
        }
    }

    /// Coarsens the histograms of finished series, if the budget requires it.
    pub fn apply(self, series: &mut [Series]) {
        if self.coarse {
            for one in series {
                (one.raw, one.corrected) = (one.raw.coarse(), one.corrected.coarse());
            }
        }
    }

    /// The caveats about what the record leaves out.
    pub fn caveats(self) -> Vec<Caveat> {
        let caveat = |kind: &str, text: String| Caveat { kind: kind.to_owned(), text };
        let mut caveats = Vec::new();
        if self.spikes_kept < SPIKES_KEPT {
            let Self { spikes_kept, time_lines_kept, .. } = self;
            let text = format!(
                "because of the number of series, each keeps its worst {spikes_kept} spikes instead of {}, and the time \
                 lines of its worst {time_lines_kept}; all are counted",
                grouped(SPIKES_KEPT as u64)
            );
            caveats.push(caveat("spikes", text));
        }
        if self.coarse {
            let text = "because of the number of series, histograms are coarse: percentiles are up to 6 % too high, \
                      maxima are exact";
            caveats.push(caveat("coarse", text.to_owned()));
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use record::Record;

    use super::*;

    #[test]
    fn shares_the_budget_among_many_series() {
        assert_eq!([2, 8, 10, 64, 1024].map(|series| RecordBudget::of(series).spikes_kept), [1000, 1000, 102, 16, 10]);
        assert_eq!([0, 2, 64, 1024].map(|series| RecordBudget::of(series).time_lines_kept), [256, 128, 4, 1]);
        assert_eq!([200, 256, 257].map(|series| RecordBudget::of(series).coarse), [false, false, true]);
        assert!(RecordBudget::of(2).caveats().is_empty());
        assert_eq!(RecordBudget::of(1024).caveats().len(), 2);
    }

    /// Culprits of a spike, and stretches of its time line, if 32 threads share each CPU.
    const CULPRITS: usize = 12;
    const STRETCHES: usize = 32;

    /// A series of a busy machine: 2500 filled buckets, and spikes with many culprits.
    fn busy_series(spikes: usize) -> Series {
        let spike = r#"{"lateness_ns":118447,"at_ns":5232600000,"evidence":"trace","culprits":[
            {"kind":"thread","name":"kworker/u8:2","number":77,"priority":120,"why":"preemption_off","ns":92494},
            {"kind":"wake_up","ns":14024},
            {"kind":"late_interrupt","name":"kworker/u8:2","number":77,"priority":120,"ns":11929}],"timeline":[
            {"start_ns":-100000,"ns":100000,"kind":"thread","name":"kworker/u8:2","number":77,"priority":120},
            {"start_ns":0,"ns":11929,"kind":"late_interrupt","name":"kworker/u8:2","number":77,"priority":120},
            {"start_ns":11929,"ns":9827,"kind":"wake_up"},
            {"start_ns":21756,"ns":92494,"kind":"thread","name":"kworker/u8:2","number":77,"priority":120,
             "why":"preemption_off"},
            {"start_ns":114250,"ns":4197,"kind":"wake_up"}]}"#;
        let mut spike: Spike = serde_json::from_str(spike).unwrap();
        spike.culprits = spike.culprits.iter().cycle().take(CULPRITS).cloned().collect();
        spike.timeline = spike.timeline.iter().cycle().take(STRETCHES).cloned().collect();
        let mut series = Series { spikes: vec![spike; spikes], ..Series::default() };
        for value in (1000_i64..).step_by(17).take(5_000) {
            (0..1 + value % 40).for_each(|_| series.raw.record(value));
        }
        series.corrected = series.raw.clone();
        series
    }

    #[test]
    fn a_record_of_64_series_is_small() {
        let budget = RecordBudget::of(64);
        let mut record = Record { series: vec![busy_series(budget.spikes_kept); 64], ..Record::default() };
        budget.limit_time_lines(&mut record.series);
        let filled = record.series[0].raw.iter().count();
        assert!(filled > 2000, "{filled}");
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.len() < 3_460_000, "{} bytes", text.len());
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap().series[63], record.series[63]);
    }

    #[test]
    fn keeps_the_time_lines_of_the_worst_spikes() {
        let mut series = busy_series(6);
        (10..).zip(&mut series.spikes).for_each(|(n, spike)| spike.lateness_ns = n * 7 % 6);
        let before = series.clone();
        RecordBudget::of(64).limit_time_lines(std::slice::from_mut(&mut series));
        for (spike, before) in series.spikes.iter().zip(&before.spikes) {
            let timeline = if spike.lateness_ns < 2 { Vec::new() } else { before.timeline.clone() };
            assert_eq!(*spike, Spike { timeline, ..before.clone() });
        }
    }

    #[test]
    fn coarse_histograms_keep_all_counts() {
        let mut series = Series::default();
        (0..10_000).for_each(|n| series.raw.record(n * 37));
        let before = series.clone();
        RecordBudget::of(2).apply(std::slice::from_mut(&mut series));
        assert_eq!(series, before);
        RecordBudget::of(1024).apply(std::slice::from_mut(&mut series));
        assert_eq!(series.raw.total(), before.raw.total());
        assert!(series.raw.iter().count() < 500);
    }
}
