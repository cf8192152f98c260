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
    /// Begin and width of the highest cell with samples, ns; `None` if its samples have no known values.
    highest: Option<(i64, i64)>,
}

impl Cells {
    /// Adds the samples of a cell, which begins at `from_ns` and is `width_ns` wide. `None` if it is out of range.
    pub fn add(&mut self, from_ns: i64, width_ns: i64, count: u64) -> Option<()> {
        let upper_ns = from_ns.checked_add(width_ns - 1)?;
        self.total().checked_add(count)?;
        self.histogram.add(upper_ns, count);
        if count > 0 && self.highest.is_none_or(|(highest_ns, _)| from_ns >= highest_ns) {
            self.highest = Some((from_ns, width_ns));
        }
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
            self.highest = None;
        }
    }

    /// The begin of the highest cell with samples, ns.
    pub fn highest_ns(&self) -> Option<i64> {
        self.highest.map(|(from_ns, _)| from_ns)
    }

    /// All samples, also those beyond the last cell.
    pub fn total(&self) -> u64 {
        self.histogram.total().saturating_add(self.beyond)
    }

    /// Writes number, percentiles and histogram to the figures. A percentile among the samples beyond the last cell is not
    /// known, and none is above the exact maximum.
    ///
    /// # Errors
    /// The maximum contradicts the cells.
    pub fn fill(self, figures: &mut Figures) -> Result<(), Mistake> {
        self.check(figures)?;
        self.fill_unchecked(figures);
        Ok(())
    }

    /// The maximum is in the highest cell with samples, or beyond the last cell if samples are.
    fn check(&self, figures: &Figures) -> Result<(), Mistake> {
        let Some(max_ns) = largest_ns(figures) else { return Ok(()) };
        let max_us = max_ns as f64 / 1e3;
        let wrong = |text: String| Err(Mistake::new(0, format!("{}: {text}", name(figures))));
        if let Some((from_ns, _)) = self.highest
            && from_ns as f64 > max_ns as f64 * TOLERANCE
        {
            return wrong(format!("the histogram has samples above the maximum of {max_us} us"));
        }
        let end_ns = self.end_ns.or_else(|| self.highest.and_then(|(from_ns, width_ns)| from_ns.checked_add(width_ns)));
        if let Some(end_ns) = end_ns
            && self.beyond > 0
            && max_ns < end_ns
        {
            return wrong(format!(
                "{} beyond the last cell of the histogram, but the maximum of {max_us} us is not",
                samples_are(self.beyond)
            ));
        }
        // A tool can round its maximum up.
        let most_ns = self.highest.and_then(|(from_ns, width_ns)| from_ns.checked_add(width_ns)?.checked_add(width_ns));
        if let Some(most_ns) = most_ns
            && self.beyond == 0
            && max_ns as f64 > most_ns as f64 * TOLERANCE
        {
            return wrong(format!(
                "no cell of the histogram has the maximum of {max_us} us, and no sample is beyond the last"
            ));
        }
        Ok(())
    }

    /// The same for a histogram whose maximum is not that of the same samples.
    pub fn fill_unchecked(self, figures: &mut Figures) {
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
            let samples = samples_are(self.beyond);
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

fn samples_are(number: u64) -> String {
    if number == 1 { "1 sample is".to_owned() } else { format!("{number} samples are") }
}

/// Writes the percentiles that follow from the histogram and the number of samples.
fn percentiles(figures: &mut Figures) {
    let (Some(histogram), Some(samples)) = (&figures.histogram, figures.samples) else { return };
    // A histogram that also counts omitted deadlines has more values than samples.
    let values = samples.max(histogram.total());
    let percentile = |percent: f64| {
        let value_ns = histogram.percentile_among(values, percent)?;
        Some(value_ns.min(figures.max_ns.unwrap_or(i64::MAX)))
    };
    (figures.p50_ns, figures.p99_ns) = (percentile(50.0), percentile(99.0));
}

/// The values of a histogram are at most 0.1 % above the exact ones.
const TOLERANCE: f64 = 1.002;

/// The largest value by its size: early wake-ups may be in the cells of late ones, by their absolute value.
fn largest_ns(figures: &Figures) -> Option<i64> {
    let max_ns = figures.max_ns.or(figures.max_above_ns)?;
    Some(max_ns.max(figures.min_ns.unwrap_or(0).saturating_neg()))
}

/// The name of the thread in messages.
fn name(figures: &Figures) -> String {
    match (figures.role.as_str(), figures.cpus.as_str()) {
        ("", _) | (_, "") => figures.phase.clone(),
        (role, cpus) => format!("{role} of CPU {cpus}"),
    }
}

/// Compares the values of each thread: smallest, mean, percentiles, largest, and its histogram.
///
/// # Errors
/// They contradict each other.
pub fn check(all: &[Figures]) -> Result<(), Mistake> {
    for figures in all {
        let wrong = |text: String| Err(Mistake::new(0, format!("{}: {text}", name(figures))));
        // The percentiles of a histogram are the upper ends of its cells, which can be above a lower bound of the maximum.
        let max_ns = figures.max_ns.or(figures.max_above_ns.filter(|_| figures.histogram.is_none()));
        let float = |ns: Option<i64>| ns.map(|ns| ns as f64);
        let rising = [
            ("minimum", float(figures.min_ns)),
            ("median", float(figures.p50_ns)),
            ("99th percentile", float(figures.p99_ns)),
            ("maximum", float(max_ns)),
        ];
        let with_mean = [rising[0], ("mean", figures.mean_ns), rising[3]];
        for values in [&rising[..], &with_mean[..]] {
            let known: Vec<(&str, f64)> = values.iter().filter_map(|(name, ns)| Some((*name, (*ns)?))).collect();
            for pair in known.windows(2) {
                let [(below, lower_ns), (above, higher_ns)] = [pair[0], pair[1]];
                if lower_ns > higher_ns + rounding_ns(lower_ns, higher_ns) {
                    let (lower_us, higher_us) = (lower_ns / 1e3, higher_ns / 1e3);
                    return wrong(format!("its {below}, {lower_us} us, is above its {above}, {higher_us} us"));
                }
            }
        }
        let Some(histogram) = &figures.histogram else { continue };
        let populated: Vec<i64> = histogram.iter().filter(|(_, count)| *count > 0).map(|(ns, _)| ns).collect();
        // Values are the upper ends of cells, so the largest one can be above the maximum.
        if let (Some(before_ns), Some(most_ns)) = (populated.iter().rev().nth(1), largest_ns(figures))
            && *before_ns as f64 > most_ns as f64 * TOLERANCE
        {
            return wrong(format!("the histogram has samples above the maximum of {} us", most_ns as f64 / 1e3));
        }
        if let (Some(first_ns), Some(min_ns)) = (populated.first(), figures.min_ns)
            && *first_ns < min_ns
        {
            return wrong(format!("the histogram has samples below the minimum of {} us", min_ns as f64 / 1e3));
        }
    }
    Ok(())
}

/// Compares the percentiles of `who` that a tool prints, each with its value, in any order. Minimum and maximum are those of
/// 0 and 100 %.
///
/// # Errors
/// A value is below that of a lower percentile.
pub fn check_percentiles(who: &str, percentiles: &[(f64, f64)]) -> Result<(), Mistake> {
    let mut sorted = percentiles.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    match sorted.windows(2).find(|pair| pair[1].1 < pair[0].1) {
        None => Ok(()),
        Some(pair) => {
            let [(low, lower), (high, higher)] = [pair[0], pair[1]];
            Err(Mistake::new(0, format!("{who}: the value at {high} %, {higher}, is below that at {low} %, {lower}")))
        }
    }
}

/// The largest error of two values by rounding, ns: tools print whole microseconds of some, and fractions of others.
fn rounding_ns(lower_ns: f64, higher_ns: f64) -> f64 {
    const US: f64 = 1e3;
    let has_fraction = [lower_ns, higher_ns].iter().all(|ns| ns % US != 0.0);
    if has_fraction { higher_ns.abs() * (TOLERANCE - 1.0) + 1.0 } else { US }
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
    // A thread without a CPU can run on all of them.
    let is_pinned = kind.iter().all(|of| !of.cpus.is_empty());
    let mut cpus: Vec<&str> = Vec::new();
    for of in kind.iter().filter(|_| is_pinned) {
        if !cpus.contains(&of.cpus.as_str()) {
            cpus.push(&of.cpus);
        }
    }
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
        max_above_ns: each(|of| of.max_ns.or(of.max_above_ns)).and_then(|all| all.into_iter().max()),
        missed: kind.iter().try_fold(0_u64, |sum, of| Some(sum.saturating_add(of.missed?))),
        max_at_ns: None,
        mode_ns: None,
        histogram: has_all.then_some(histogram),
        p50_ns: None,
        p99_ns: None,
        ..kind[0].clone()
    };
    if figures.max_ns.is_some() {
        figures.max_above_ns = None;
    }
    // A remark about one of them is not one about all.
    if kind.iter().any(|of| of.note != figures.note) {
        figures.note.clear();
    }
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

/// Time in ns from a number in units of `unit_ns`, of a figure with this name.
///
/// # Errors
/// It is out of range.
pub fn time_ns(value: f64, unit_ns: f64, name: &str) -> Result<i64, Mistake> {
    to_ns(value, unit_ns).ok_or_else(|| Mistake::new(0, format!("{name} is out of range: {value}")))
}

/// A number of samples: programs for numbers write whole ones as `7`, `7.0` or `1.7e+01`. `None` if it is none.
pub fn whole(text: &str) -> Option<u64> {
    /// All whole numbers up to this have a floating-point number of their own: 2^53.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let of_float = || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..=MOST).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    text.parse().ok().or_else(|| Some(of_float()? as u64))
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
        cells.fill(&mut figures).unwrap();
        assert_eq!((figures.samples, figures.p50_ns, figures.p99_ns), (Some(100), Some(3_999), None));
    }

    #[test]
    fn a_percentile_is_not_above_the_maximum() {
        let mut cells = Cells::default();
        cells.add(3_000, 1_000, 100).unwrap();
        let mut figures = Figures { max_ns: Some(3_200), ..Figures::default() };
        cells.fill(&mut figures).unwrap();
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
            cells.fill(&mut figures).unwrap();
            figures
        };
        let all = [of("0", 98, 5_000, "a"), of("1", 299, 9_000, "a"), of("1", 7, 2_500, "b")];
        let [sum] = &together(&all)[..] else { panic!("one kind has two threads") };
        assert_eq!((sum.samples, sum.max_ns, sum.cpus.as_str()), (Some(399), Some(9_000), "0,1"));
        assert_eq!((sum.p50_ns, sum.p99_ns), (Some(1_999), Some(1_999)), "2 of 399 are beyond");
        assert!(sum.mean_ns.is_some_and(|mean_ns| (mean_ns - (99.0 * 5e3 + 300.0 * 9e3) / 399.0).abs() < 1e-6));
    }

    /// Cells of 1 us, with this number of samples beyond 100 us if there are any.
    fn filled(populated_us: &[i64], beyond: u64, max_ns: i64) -> Result<(), String> {
        let mut cells = Cells::default();
        populated_us.iter().for_each(|us| cells.add(us * 1_000, 1_000, 5).unwrap());
        cells.add(99_000, 1_000, 0).unwrap();
        (cells.beyond, cells.end_ns) = (beyond, (beyond > 0).then_some(100_000));
        let mut figures = Figures { phase: "x".to_owned(), max_ns: Some(max_ns), ..Figures::default() };
        cells.fill(&mut figures).and_then(|()| check(&[figures])).map_err(|mistake| mistake.text)
    }

    #[test]
    fn a_maximum_is_in_the_highest_cell_or_beyond_the_last_one() {
        // Rounded down, exact, rounded up, and beyond the last cell.
        for (populated, beyond, max_ns) in [
            (&[1, 50][..], 0, 50_000),
            (&[1, 50], 0, 50_900),
            (&[1, 50], 0, 51_000),
            (&[1], 3, 100_000),
            (&[], 3, 700_000),
            (&[], 0, 5),
        ] {
            assert_eq!(filled(populated, beyond, max_ns), Ok(()), "{populated:?} {beyond} {max_ns}");
        }
        for (populated, beyond, max_ns, expected) in [
            (&[1, 50][..], 0, 49_000, "x: the histogram has samples above the maximum of 49 us"),
            (&[50], 0, 2_000, "x: the histogram has samples above the maximum of 2 us"),
            (&[1, 50, 51], 0, 2_000, "x: the histogram has samples above the maximum of 2 us"),
            (
                &[1, 50],
                2,
                60_000,
                "x: 2 samples are beyond the last cell of the histogram, but the maximum of 60 us is not",
            ),
            (&[], 2, 60_000, "x: 2 samples are beyond the last cell of the histogram, but the maximum of 60 us is not"),
            (
                &[1, 50],
                0,
                250_000,
                "x: no cell of the histogram has the maximum of 250 us, and no sample is beyond the last",
            ),
        ] {
            assert_eq!(filled(populated, beyond, max_ns).unwrap_err(), expected);
        }
        let mut early = Figures { min_ns: Some(-7_500), max_ns: Some(2_000), ..Figures::default() };
        let mut cells = Cells::default();
        cells.add(7_000, 1_000, 1).unwrap();
        assert!(cells.fill(&mut early).is_ok(), "an early wake-up is in the cell of a late one");
    }

    #[test]
    fn impossible_summaries_are_refused() {
        let of = |min: i64, mean: f64, p50: i64, p99: i64, max: i64| {
            let us = |us: i64| Some(us * 1_000);
            let figures = Figures {
                role: "irq".to_owned(),
                cpus: "3".to_owned(),
                min_ns: us(min),
                mean_ns: Some(mean * 1e3),
                p50_ns: us(p50),
                p99_ns: us(p99),
                max_ns: us(max),
                ..Figures::default()
            };
            check(&[figures]).map_err(|mistake| mistake.text)
        };
        assert_eq!(of(1, 5.5, 4, 9, 10), Ok(()));
        assert_eq!(of(10, 10.9, 10, 10, 10), Ok(()), "whole us are rounded down");
        assert_eq!(of(10, 9.5, 10, 10, 10), Ok(()), "a mean can be rounded down, too");
        for (figures, expected) in [
            (of(70, 10.0, 10, 10, 18), "irq of CPU 3: its minimum, 70 us, is above its median, 10 us"),
            (of(1, 100.0, 4, 9, 18), "irq of CPU 3: its mean, 100 us, is above its maximum, 18 us"),
            (of(5, 3.0, 6, 9, 18), "irq of CPU 3: its minimum, 5 us, is above its mean, 3 us"),
            (of(1, 5.0, 10, 3, 18), "irq of CPU 3: its median, 10 us, is above its 99th percentile, 3 us"),
            (of(1, 5.0, 6, 30, 18), "irq of CPU 3: its 99th percentile, 30 us, is above its maximum, 18 us"),
        ] {
            assert_eq!(figures.unwrap_err(), expected);
        }
        let above = Figures { min_ns: Some(9_000), max_above_ns: Some(2_000), ..Figures::default() };
        assert!(check(&[above]).is_err());
        let fine = |mean_ns: f64| {
            check(&[Figures { mean_ns: Some(mean_ns), max_ns: Some(501), ..Figures::default() }]).is_ok()
        };
        assert_eq!((fine(501.4), fine(902.3)), (true, false), "values in ns are not rounded to us");
        assert_eq!(time_ns(1e25, 1e3, "max").unwrap_err().text, "max is out of range: 10000000000000000000000000");
    }

    #[test]
    fn a_sum_has_no_figure_of_a_single_thread() {
        let of = |note: &str, above_ns| Figures {
            note: note.to_owned(),
            mode_ns: Some(7),
            max_above_ns: Some(above_ns),
            ..Figures::default()
        };
        let sums = together(&[of("50 us", 3), of("90 us", 9)]);
        assert_eq!((sums[0].note.as_str(), sums[0].mode_ns, sums[0].max_above_ns), ("", None, Some(9)));
        assert_eq!(together(&[of("same", 9), of("same", 3)])[0].note, "same");
        let on = |cpus: &str| Figures { cpus: cpus.to_owned(), ..Figures::default() };
        let cpus = |threads: [&str; 2]| together(&threads.map(on))[0].cpus.clone();
        assert_eq!((cpus(["0", "1"]).as_str(), cpus(["0", ""]).as_str()), ("0,1", ""), "one of them is not pinned");
    }

    #[test]
    fn a_late_wake_up_passes_deadlines() {
        assert!(omission("x", Some(999_999), Some(1_000_000)).is_none());
        assert!(omission("x", Some(1_000_828_000), Some(1_000_000)).unwrap().text.contains("passed 1000 deadlines"));
        assert!(omission("x", Some(5), None).is_none());
    }
}
