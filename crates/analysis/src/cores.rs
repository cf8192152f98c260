//! The results of each core, in a run that measured in-band and out-of-band at the same time.

use record::{BOTH_CORES, EVL, IN_BAND, OUT_OF_BAND, Record, Series, UseVerdict};

use crate::{duration::format_ns, rules::severity, summary::Summary};

/// The figures of the threads of one core, of all CPUs together.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreFigures {
    /// `in-band` or `out-of-band`.
    pub role: &'static str,
    /// The figures; percentiles and the maximum are of all its threads.
    pub figures: Summary,
}

/// True if the run measured with both cores.
#[must_use]
pub fn are_both(record: &Record) -> bool {
    record.scenario.core.as_deref() == Some(BOTH_CORES)
}

/// The figures of each core, in-band first; empty for other runs. A core without samples is left out.
#[must_use]
pub fn figures(record: &Record) -> Vec<CoreFigures> {
    if !are_both(record) {
        return Vec::new();
    }
    let of = |role: &'static str| {
        let mut sum = Series::default();
        for series in record.probe_series().filter(|series| series.role == role) {
            sum.samples += series.samples;
            sum.missed += series.missed;
            sum.early += series.early;
            sum.max_ns = sum.max_ns.max(series.max_ns);
            sum.corrected.merge(&series.corrected);
        }
        (sum.samples > 0).then(|| CoreFigures { role, figures: Summary::of(&sum) })
    };
    [IN_BAND, OUT_OF_BAND].into_iter().filter_map(of).collect()
}

/// The comparison in one sentence: `Worst 310 us late in-band, 12 us out-of-band, 25.8 times less.` `None` for other runs,
/// and if a core has no samples.
#[must_use]
pub fn comparison(record: &Record) -> Option<String> {
    let all = figures(record);
    let [in_band, out_of_band] = &all[..] else { return None };
    let (ours, theirs) = (in_band.figures.max_ns?, out_of_band.figures.max_ns?);
    // Below 1.05 the ratio would be shown as 1.0.
    let ratio = |more: i64, less: i64| Some(more as f64 / less as f64).filter(|ratio| less > 0 && *ratio >= 1.05);
    let times = match (ratio(ours, theirs), ratio(theirs, ours)) {
        (Some(times), _) => format!(", {times:.1} times less"),
        (None, Some(times)) => format!(", {times:.1} times more"),
        (None, None) => String::new(),
    };
    Some(format!("Worst {} late {IN_BAND}, {} {OUT_OF_BAND}{times}.", format_ns(ours), format_ns(theirs)))
}

/// The verdict on a use for each core, then the worse of both with the outcome of each in its reason. `judge` judges a
/// record with the series of one core. `None` for other runs.
pub(crate) fn judge(record: &Record, judge: impl Fn(&Record) -> UseVerdict) -> Option<UseVerdict> {
    if !are_both(record) {
        return None;
    }
    let each = [IN_BAND, OUT_OF_BAND].map(|role| (role, judge(&of_core(record, role))));
    let words = each.iter().map(|(role, verdict)| format!("{role} {}", verdict.outcome.name())).collect::<Vec<_>>();
    // The first of equally bad ones.
    let worst = each.into_iter().rev().max_by_key(|(_, verdict)| severity(verdict.outcome));
    worst.map(|(role, verdict)| UseVerdict {
        reason: format!("{}; {role}: {}", words.join(", "), verdict.reason),
        ..verdict
    })
}

/// The record as if only this core had measured.
fn of_core(record: &Record, role: &str) -> Record {
    let mut record = record.clone();
    record.scenario.core = (role == OUT_OF_BAND).then(|| EVL.to_owned());
    record.series.retain(|series| series.role == role);
    record
}

#[cfg(test)]
mod tests {
    use record::{Histogram, Outcome, Phase, Validity};

    use super::*;
    use crate::find_profile;

    fn series(role: &str, late_ns: i64, samples: u64) -> Series {
        let mut histogram = Histogram::default();
        (0..samples).for_each(|_| histogram.record(late_ns));
        Series {
            phase: "rest".to_owned(),
            role: role.to_owned(),
            cpu: Some(1),
            period_ns: 1_000_000,
            samples,
            max_ns: Some(late_ns),
            min_ns: Some(late_ns),
            raw: histogram.clone(),
            corrected: histogram,
            ..Series::default()
        }
    }

    fn run(in_band_ns: i64, out_of_band_ns: i64) -> Record {
        let mut record = Record {
            validity: Validity { valid: true, ..Validity::default() },
            series: vec![series(IN_BAND, in_band_ns, 1000), series(OUT_OF_BAND, out_of_band_ns, 1000)],
            phases: vec![Phase { name: "rest".to_owned(), duration_ns: 1_000_000_000, ..Phase::default() }],
            ..Record::default()
        };
        record.scenario.core = Some(BOTH_CORES.to_owned());
        record
    }

    #[test]
    fn compares_the_largest_lateness_of_the_cores() {
        assert_eq!(
            comparison(&run(310_000, 12_400)).as_deref(),
            Some("Worst 310 us late in-band, 12.4 us out-of-band, 25.0 times less.")
        );
        assert!(comparison(&run(10_000, 20_000)).is_some_and(|text| text.ends_with("2.0 times more.")));
        assert!(comparison(&run(10_000, -500)).is_some_and(|text| text.ends_with("ns out-of-band.")));
        let mut one = run(1, 1);
        one.series.pop();
        assert_eq!((comparison(&one), figures(&one).len()), (None, 1));
        one.scenario.core = None;
        assert_eq!(figures(&one), []);
    }

    /// The in-band thread alone decides, and its figures are those of the verdict.
    #[test]
    fn judges_each_core_by_its_own_figures() {
        let profile = find_profile("cnc-servo-1ms").unwrap();
        let late = run(900_000, 5_000);
        let verdict = crate::judge(&late, &profile);
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert_eq!((verdict.samples, verdict.worst_ns), (1000, Some(900_000)));
        assert!(verdict.reason.starts_with("in-band FAIL, out-of-band "), "{}", verdict.reason);
        assert!(verdict.reason.contains("; in-band: "), "{}", verdict.reason);
        let swapped = crate::judge(&run(5_000, 900_000), &profile);
        assert!(swapped.reason.contains("out-of-band FAIL; out-of-band: "), "{}", swapped.reason);
    }
}
