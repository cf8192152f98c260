//! The key figures of one series.

use record::{Histogram, Series};
use serde::Serialize;

use crate::{duration::format_unsigned_ns, float::to_i64};

/// The percentiles of a summary, with their names.
pub const PERCENTILES: [(&str, f64); 6] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99), ("p99.999", 99.999)];

/// The figures of one series; times in ns, negative is early.
///
/// Percentiles are corrected, so they include missed deadlines; minimum, mean and maximum are of the wake-ups
/// themselves. Unknown figures are `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Summary {
    /// The number of wake-ups.
    pub samples: u64,
    /// Deadlines that passed before the thread read the clock again.
    pub missed: u64,
    /// Wake-ups before their deadline.
    pub early: u64,
    /// Smallest lateness.
    pub min_ns: Option<i64>,
    /// Mean lateness.
    pub mean_ns: Option<f64>,
    /// Median lateness. Percentiles are `None` if there are too few samples to separate them from the maximum.
    pub p50_ns: Option<i64>,
    /// 90 % were not later.
    pub p90_ns: Option<i64>,
    /// 99 % were not later.
    pub p99_ns: Option<i64>,
    /// 99.9 % were not later.
    pub p99_9_ns: Option<i64>,
    /// 99.99 % were not later.
    pub p99_99_ns: Option<i64>,
    /// 99.999 % were not later.
    pub p99_999_ns: Option<i64>,
    /// Exact largest lateness.
    pub max_ns: Option<i64>,
    /// Machine-tool jitter: largest |interval - period|.
    pub jitter_ns: u64,
}

impl Summary {
    /// The figures of `series`.
    #[must_use]
    pub fn of(series: &Series) -> Self {
        let max_ns = max_of(series);
        let [p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, p99_999_ns] =
            PERCENTILES.map(|(_, percent)| percentile(series, percent, max_ns));
        Self {
            samples: series.samples,
            missed: series.missed,
            early: series.early,
            min_ns: series.min_ns,
            mean_ns: series.mean_ns,
            p50_ns,
            p90_ns,
            p99_ns,
            p99_9_ns,
            p99_99_ns,
            p99_999_ns,
            max_ns,
            jitter_ns: series.jitter_ns,
        }
    }

    /// The percentiles in rising order with their names: `("p99.9", Some(41_300))`.
    #[must_use]
    pub fn percentiles(&self) -> [(&'static str, Option<i64>); 6] {
        let values =
            [self.p50_ns, self.p90_ns, self.p99_ns, self.p99_9_ns, self.p99_99_ns, self.p99_999_ns].into_iter();
        let mut named = PERCENTILES.map(|(name, _)| (name, None));
        named.iter_mut().zip(values).for_each(|(entry, value)| entry.1 = value);
        named
    }
}

/// A mean time in whole ns.
#[must_use]
pub fn rounded_ns(mean_ns: f64) -> i64 {
    to_i64(mean_ns.round())
}

/// The phase of a series in words: `at rest`, `at rest, 125 us`, `under load`; other phases have their own names.
#[must_use]
pub fn when(series: &Series) -> String {
    phase_in_words(&series.phase, series.period_ns)
}

/// The name of a phase in words, as [`when`]. `period_ns` is the time between two deadlines.
#[must_use]
pub fn phase_in_words(name: &str, period_ns: u64) -> String {
    match name {
        "rest" => "at rest".to_owned(),
        "rest-fast" if period_ns == 0 => "at rest, short period".to_owned(),
        "rest-fast" => format!("at rest, {}", format_unsigned_ns(period_ns)),
        "load" => "under load".to_owned(),
        other => other.to_owned(),
    }
}

/// The largest lateness of a series: exact if the record contains it, otherwise the value of its highest bucket.
pub(crate) fn max_of(series: &Series) -> Option<i64> {
    series.max_ns.or_else(|| series.raw.iter().next_back().map(|(value_ns, _)| value_ns))
}

/// The reason why a series supports no PASS because its exact maximum is missing, or is in no bucket of its histograms: late
/// values can be missing in them, too.
pub(crate) fn unsure_maximum(series: &Series) -> Option<String> {
    let place = || format!("{}, {}", series.place(), when(series));
    let Some(max_ns) = series.max_ns else {
        return (series.samples > 0).then(|| format!("the record does not contain the largest value of {}", place()));
    };
    let largest = |histogram: &Histogram| histogram.iter().next_back().map(|(value_ns, _)| value_ns);
    let lacks_it = [&series.raw, &series.corrected].into_iter().filter_map(largest).any(|value_ns| value_ns < max_ns);
    // A bucket of early wake-ups is named by its earliest value; where the latest one was early, no late value is missing.
    (lacks_it && max_ns > 0).then(|| format!("the histogram of {} does not contain its largest value", place()))
}

fn percentile(series: &Series, percent: f64, max_ns: Option<i64>) -> Option<i64> {
    // A bucket has its highest value, which can be above the exact maximum.
    let value_ns = series.corrected.percentile_below_max(percent)?;
    Some(max_ns.map_or(value_ns, |max_ns| value_ns.min(max_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use record::Histogram;

    fn series(values: &[i64], period_ns: u64) -> Series {
        let mut raw = Histogram::default();
        values.iter().for_each(|&value| raw.record(value));
        Series {
            samples: values.len() as u64,
            max_ns: values.iter().max().copied(),
            corrected: raw.corrected(values, period_ns),
            raw,
            period_ns,
            ..Series::default()
        }
    }

    #[test]
    fn omits_percentiles_that_equal_the_maximum() {
        let summary = Summary::of(&series(&(1..=100).collect::<Vec<_>>(), 1_000_000));
        assert_eq!((summary.p50_ns, summary.p90_ns, summary.p99_ns), (Some(50), Some(90), Some(99)));
        assert_eq!((summary.p99_9_ns, summary.max_ns), (None, Some(100)));
        assert_eq!(Summary::of(&Series::default()), Summary::default());
    }

    #[test]
    fn a_maximum_is_unsure_if_no_bucket_contains_it() {
        let mut series = series(&[-3_486, -3_484], 200_000);
        assert_eq!(unsure_maximum(&series), None);
        series.max_ns = Some(3_486);
        assert!(unsure_maximum(&series).is_some_and(|reason| reason.contains("does not contain its largest value")));
        series.raw.record(3_486);
        series.corrected.record(3_486);
        assert_eq!(unsure_maximum(&series), None);
    }

    #[test]
    fn percentiles_include_missed_deadlines() {
        let mut values = vec![5_000; 3000];
        values.push(1_000_400_000);
        let summary = Summary::of(&series(&values, 1_000_000));
        assert!(summary.p90_ns > Some(500_000_000), "{summary:?}");
        assert_eq!(summary.max_ns, Some(1_000_400_000));
    }

    proptest! {
        #[test]
        fn percentiles_rise_to_the_maximum(values in prop::collection::vec(-10_000_000i64..100_000_000, 1..400)) {
            let summary = Summary::of(&series(&values, 1_000_000));
            let known: Vec<_> = summary.percentiles().iter().filter_map(|(_, value)| *value).collect();
            prop_assert!(known.is_sorted());
            prop_assert!(known.last() <= summary.max_ns.as_ref());
        }
    }
}
