//! Printed histograms. The value of a sample is known to one cell; here it is the upper end of the cell.

use record::{ALL_THREADS, Caveat, Figures, Histogram};

use crate::{Mistake, caveat};

/// A printed histogram of one thread.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    histogram: Histogram,
    /// Samples beyond the last cell, whose values are not known.
    pub beyond: u64,
    /// The end of the last cell, ns; `None` if the file does not show it.
    pub end_ns: Option<i64>,
}

impl Cells {
    /// Adds the samples of a cell, which begins at `from_ns` and is `width_ns` wide. `None` if it is out of range.
    pub fn add(&mut self, from_ns: i64, width_ns: i64, count: u64) -> Option<()> {
        let upper_ns = from_ns.checked_add(width_ns - 1)?;
        self.total().checked_add(count)?;
        self.histogram.add(upper_ns, count);
        Some(())
    }

    /// Removes the last cell if the maximum is beyond it or unknown: some tools count all later samples in their last cell, so
    /// its samples have no known values.
    pub fn open_end(&mut self, max_ns: Option<i64>) {
        let Some((last_ns, count)) = self.histogram.iter().next_back() else { return };
        if max_ns.is_none_or(|max_ns| max_ns > last_ns) {
            self.histogram =
                Histogram::from_buckets(self.histogram.iter().filter(|(value_ns, _)| *value_ns != last_ns));
            self.beyond = self.beyond.saturating_add(count);
        }
    }

    /// All samples, also those beyond the last cell.
    pub fn total(&self) -> u64 {
        self.histogram.total().saturating_add(self.beyond)
    }

    /// Writes number, percentiles and histogram to the figures. A percentile among the samples beyond the last cell is not
    /// known, and none is above the exact maximum.
    pub fn fill(self, figures: &mut Figures) {
        figures.samples = figures.samples.or(Some(self.total()));
        if !self.histogram.is_empty() {
            figures.histogram = Some(self.histogram);
        }
        percentiles(figures);
    }

    /// The caveat about samples beyond the last cell, if there are any; `who` is the thread with this maximum.
    pub fn overflow(&self, who: &str, max_ns: Option<i64>) -> Option<Caveat> {
        let end = self.end_ns.map(|end_ns| format!(", which ends at {} us", end_ns as f64 / 1e3)).unwrap_or_default();
        (self.beyond > 0).then(|| {
            let samples =
                if self.beyond == 1 { "1 sample is".to_owned() } else { format!("{} samples are", self.beyond) };
            let known = if max_ns.is_some() {
                "only their number and the maximum are known"
            } else {
                "only their number is known"
            };
            let text = format!("{who}: {samples} beyond the last cell of the histogram{end}; {known}");
            caveat("overflow", text)
        })
    }
}

/// Writes the percentiles that follow from the histogram and the number of samples.
fn percentiles(figures: &mut Figures) {
    let (Some(histogram), Some(samples)) = (&figures.histogram, figures.samples) else { return };
    let percentile = |percent: f64| {
        let value_ns = histogram.percentile_among(samples, percent)?;
        Some(value_ns.min(figures.max_ns.unwrap_or(i64::MAX)))
    };
    (figures.p50_ns, figures.p99_ns) = (percentile(50.0), percentile(99.0));
}

/// Compares each histogram with the smallest and the largest value.
///
/// # Errors
/// Cells with samples are beyond them.
pub fn check(all: &[Figures]) -> Result<(), Mistake> {
    /// The values of a histogram are at most 0.1 % above the exact ones.
    const TOLERANCE: f64 = 1.002;
    for figures in all {
        let Some(histogram) = &figures.histogram else { continue };
        let wrong = |text: &str, ns: i64| {
            let us = ns as f64 / 1e3;
            Err(Mistake::new(0, format!("{}: the histogram has samples {text} of {us} us", figures.phase)))
        };
        let populated: Vec<i64> = histogram.iter().filter(|(_, count)| *count > 0).map(|(ns, _)| ns).collect();
        // Early wake-ups may be in the cells of late ones, by their absolute value.
        let most_ns = figures.max_ns.map(|max_ns| max_ns.max(figures.min_ns.unwrap_or(0).saturating_neg()));
        // Values are the upper ends of cells, so the largest one can be above the maximum.
        if let (Some(before_ns), Some(most_ns)) = (populated.iter().rev().nth(1), most_ns)
            && *before_ns as f64 > most_ns as f64 * TOLERANCE
        {
            return wrong("above the maximum", most_ns);
        }
        if let (Some(first_ns), Some(min_ns)) = (populated.first(), figures.min_ns)
            && *first_ns < min_ns
        {
            return wrong("below the minimum", min_ns);
        }
    }
    Ok(())
}

/// True for figures of one kind of thread: of the same probe, role, period and policy.
#[must_use]
pub fn is_same_kind(a: &Figures, b: &Figures) -> bool {
    (&a.probe, &a.role, a.period_ns, &a.policy) == (&b.probe, &b.role, b.period_ns, &b.policy)
}

/// The figures of several threads together, for each kind of thread that occurs more than once. A figure that one of them
/// lacks is absent; threads without samples do not count.
pub fn together(all: &[Figures]) -> Vec<Figures> {
    let mut kinds: Vec<Vec<&Figures>> = Vec::new();
    for figures in all {
        match kinds.iter_mut().find(|known| is_same_kind(known[0], figures)) {
            Some(known) => known.push(figures),
            None => kinds.push(vec![figures]),
        }
    }
    kinds.iter().filter(|kind| kind.len() > 1).map(|kind| sum(kind)).collect()
}

fn sum(kind: &[&Figures]) -> Figures {
    let with_samples: Vec<&Figures> = kind.iter().copied().filter(|of| of.samples != Some(0)).collect();
    let kind = if with_samples.is_empty() { kind } else { &with_samples };
    let samples = kind.iter().map(|of| of.samples).sum::<Option<u64>>();
    let each = |pick: fn(&Figures) -> Option<i64>| kind.iter().map(|of| pick(of)).collect::<Option<Vec<i64>>>();
    let weighted = |of: &Figures| Some(of.mean_ns? * of.samples? as f64);
    let mean_ns = kind.iter().map(|of| weighted(of)).sum::<Option<f64>>().zip(samples.filter(|&samples| samples > 0));
    let cpus: Vec<&str> = kind.iter().map(|of| of.cpus.as_str()).filter(|cpus| !cpus.is_empty()).collect();
    let mut histogram = Histogram::default();
    kind.iter().filter_map(|of| of.histogram.as_ref()).for_each(|of| histogram.merge(of));
    let has_all = kind.iter().all(|of| of.histogram.is_some());
    let mut figures = Figures {
        phase: ALL_THREADS.to_owned(),
        cpus: cpus.join(","),
        samples,
        min_ns: each(|of| of.min_ns).and_then(|all| all.into_iter().min()),
        max_ns: each(|of| of.max_ns).and_then(|all| all.into_iter().max()),
        mean_ns: mean_ns.map(|(sum, samples)| sum / samples as f64),
        max_at_ns: None,
        histogram: has_all.then_some(histogram),
        p50_ns: None,
        p99_ns: None,
        ..kind[0].clone()
    };
    percentiles(&mut figures);
    figures
}

/// The caveat about deadlines that passed without a sample: a tool that sleeps until the next deadline in the future leaves
/// out those that a late wake-up passed. `None` if no wake-up was that late, or if the period is not known.
pub fn omission(who: &str, max_ns: Option<i64>, period_ns: Option<u64>) -> Option<Caveat> {
    let (max_ns, period_ns) = (u64::try_from(max_ns?).ok()?, period_ns.filter(|&period_ns| period_ns > 0)?);
    let passed = max_ns / period_ns;
    (passed > 0).then(|| {
        let deadlines = if passed == 1 { "a deadline, which has no sample" } else { "deadlines, which have no samples" };
        let number = if passed == 1 { String::new() } else { format!("{passed} ") };
        let text = format!(
            "{who}: the latest wake-up passed {number}{deadlines}; percentiles are too good by that, and by other late wake-ups"
        );
        caveat("omission", text)
    })
}

/// Time in ns from a number in units of `unit_ns`; `None` if it is out of range.
pub fn to_ns(value: f64, unit_ns: f64) -> Option<i64> {
    let ns = (value * unit_ns).round();
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    (ns.abs() < 9e18).then_some(ns as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_regard_the_samples_beyond_the_last_cell() {
        let mut cells = Cells::default();
        cells.add(3_000, 1_000, 98).unwrap();
        cells.beyond = 2;
        let mut figures = Figures { max_ns: Some(700_000), ..Figures::default() };
        assert!(
            cells
                .overflow("thread 0", Some(1))
                .unwrap()
                .text
                .contains("2 samples are beyond the last cell of the histogram;")
        );
        cells.end_ns = Some(60_000);
        assert!(
            cells
                .overflow("thread 0", Some(1))
                .unwrap()
                .text
                .contains("last cell of the histogram, which ends at 60 us;")
        );
        assert!(cells.overflow("thread 0", None).unwrap().text.ends_with("; only their number is known"));
        cells.fill(&mut figures);
        assert_eq!((figures.samples, figures.p50_ns, figures.p99_ns), (Some(100), Some(3_999), None));
    }

    #[test]
    fn a_percentile_is_not_above_the_maximum() {
        let mut cells = Cells::default();
        cells.add(3_000, 1_000, 100).unwrap();
        let mut figures = Figures { max_ns: Some(3_200), ..Figures::default() };
        cells.fill(&mut figures);
        assert_eq!(figures.p99_ns, Some(3_200));
    }

    #[test]
    fn threads_of_one_kind_are_also_summed() {
        let of = |cpu: &str, count, max_ns, role: &str| {
            let mut cells = Cells::default();
            cells.add(1_000, 1_000, count).unwrap();
            cells.beyond = 1;
            let mut figures = Figures {
                cpus: cpu.to_owned(),
                role: role.to_owned(),
                max_ns: Some(max_ns),
                mean_ns: Some(max_ns as f64),
                ..Figures::default()
            };
            cells.fill(&mut figures);
            figures
        };
        let all = [of("0", 98, 5_000, "a"), of("1", 299, 9_000, "a"), of("1", 7, 1_999, "b")];
        let [sum] = &together(&all)[..] else { panic!("one kind has two threads") };
        assert_eq!((sum.samples, sum.max_ns, sum.cpus.as_str()), (Some(399), Some(9_000), "0,1"));
        assert_eq!((sum.p50_ns, sum.p99_ns), (Some(1_999), Some(1_999)), "2 of 399 are beyond");
        assert!(sum.mean_ns.is_some_and(|mean_ns| (mean_ns - (99.0 * 5e3 + 300.0 * 9e3) / 399.0).abs() < 1e-6));
    }

    #[test]
    fn a_late_wake_up_passes_deadlines() {
        assert!(omission("x", Some(999_999), Some(1_000_000)).is_none());
        assert!(omission("x", Some(1_000_828_000), Some(1_000_000)).unwrap().text.contains("passed 1000 deadlines"));
        assert!(omission("x", Some(5), None).is_none());
    }
}
