//! The identity of runs: one that is named twice, also in two formats, would count as two rounds.

use std::{
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
};

use record::{ALL_THREADS, Figures, Histogram, Record};

/// The logarithm of the largest chance with which histograms of two runs are equal, if that shows that they are one run: one
/// in 100 000. Runs of a quiet machine whose samples fill two cells are equal more often.
const LEAST_CHANCE_LN: f64 = -11.5;
/// Fewer threads without histograms can have equal figures by chance.
const LEAST_THREADS: usize = 3;
/// A microsecond, ns: tools print a mean with different digits.
const US: f64 = 1_000.0;

/// A run in a file.
#[derive(Debug)]
pub struct Run {
    /// The name of its record.
    pub name: String,
    /// Its path, without links.
    path: OsString,
    /// Start and host name; the start is empty if unknown.
    start: (String, Option<String>),
    /// True if punctual measured it, so that its start identifies it.
    is_own: bool,
    /// True if a thread has a histogram.
    has_histograms: bool,
    /// A digest of the histogram of each thread, sorted; empty if other runs can have equal ones by chance. A record and its
    /// exports, and the formats of a tool, have equal ones.
    histograms: Vec<u64>,
    /// Number of samples, smallest, largest and mean time of each thread, sorted; empty if a thread lacks one.
    figures: Vec<[i64; 4]>,
}

impl Run {
    /// The run of the record with this name.
    pub fn of(name: &str, record: &Record) -> Self {
        let threads: Vec<&Figures> = record
            .published
            .iter()
            .flat_map(|published| &published.figures)
            .filter(|figures| figures.phase != ALL_THREADS)
            .collect();
        let published = threads.iter().filter_map(|figures| figures.histogram.as_ref());
        let measured = record.series.iter().map(|series| &series.corrected);
        let all: Vec<&Histogram> = published.chain(measured).filter(|histogram| !histogram.is_empty()).collect();
        let has_histograms = !all.is_empty();
        let shows_run = all.iter().map(|histogram| chance_ln(histogram)).sum::<f64>() <= LEAST_CHANCE_LN;
        let mut histograms: Vec<u64> = if shows_run { all.into_iter().map(digest).collect() } else { Vec::new() };
        histograms.sort_unstable();
        let mut figures: Vec<[i64; 4]> = threads.into_iter().map(of_figures).collect::<Option<_>>().unwrap_or_default();
        figures.sort_unstable();
        Self {
            name: name.to_owned(),
            path: fs::canonicalize(name).map_or_else(|_| name.into(), Into::into),
            start: (record.started_at.clone(), record.machine.hostname.clone()),
            is_own: record.published.is_none(),
            has_histograms,
            histograms,
            figures,
        }
    }

    /// Why two runs are the same: `because their histograms are equal`; `None` if they are not.
    ///
    /// Measured records are identified by their start, because runs in virtual time have equal histograms.
    pub fn same(&self, other: &Self) -> Option<String> {
        let (start, other_start) = (&self.start.0, &other.start.0);
        if self.is_own && other.is_own {
            return (self.start == other.start).then(|| format!("because both started at {start}"));
        }
        if self.path == other.path {
            return Some("because they are the same file".to_owned());
        }
        // Only a time of a day is one of a run.
        let is_time = |start: &str| start.contains('T');
        let started_apart = is_time(start) && is_time(other_start) && start != other_start;
        let why = match self.has_histograms && other.has_histograms {
            true => (!self.histograms.is_empty() && self.histograms == other.histograms)
                .then_some("because their histograms are equal"),
            false => (self.figures.len() >= LEAST_THREADS && self.figures == other.figures)
                .then_some("because the figures of all their threads are equal"),
        };
        why.filter(|_| !started_apart).map(str::to_owned)
    }
}

/// The logarithm of the chance that another run has an equal histogram, about: counts that vary like Poisson's are equal with a
/// chance of 1 / (2 sqrt(pi n)), and the largest count follows from the others.
fn chance_ln(histogram: &Histogram) -> f64 {
    let counts = || histogram.iter().map(|(_, count)| count as f64);
    let of = |count: f64| -(2.0 * (std::f64::consts::PI * count).sqrt()).ln();
    counts().map(of).sum::<f64>() - counts().max_by(f64::total_cmp).map_or(0.0, of)
}

/// A digest of a histogram. Early wake-ups count as 0, as in formats without negative values.
fn digest(histogram: &Histogram) -> u64 {
    let mut digest = DefaultHasher::new();
    let early: u64 = histogram.iter().take_while(|(value_ns, _)| *value_ns <= 0).map(|(_, count)| count).sum();
    early.hash(&mut digest);
    histogram.iter().filter(|(value_ns, _)| *value_ns > 0).for_each(|cell| cell.hash(&mut digest));
    digest.finish()
}

/// Number of samples, smallest, largest and mean time, in whole us.
#[expect(clippy::cast_possible_truncation, reason = "a mean is below the largest time, which fits")]
fn of_figures(figures: &Figures) -> Option<[i64; 4]> {
    let mean_us = (figures.mean_ns? / US).floor() as i64;
    Some([i64::try_from(figures.samples?).ok()?, figures.min_ns?, figures.max_ns?, mean_us])
}

#[cfg(test)]
mod tests {
    use record::{Published, Series};

    use super::*;

    fn histogram(cells: &[(i64, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        cells.iter().for_each(|&(value_ns, count)| histogram.add(value_ns, count));
        histogram
    }

    fn published(started_at: &str, figures: Vec<Figures>) -> Record {
        let published = Some(Published { figures, ..Published::default() });
        Record { started_at: started_at.to_owned(), published, ..Record::default() }
    }

    fn is_same(a: &Record, b: &Record) -> bool {
        let why = Run::of("a", a).same(&Run::of("b", b));
        assert_eq!(why.is_some(), Run::of("b", b).same(&Run::of("a", a)).is_some());
        why.is_some()
    }

    /// A record has early wake-ups, which its exports have as 0.
    #[test]
    fn a_record_and_its_export_are_one_run() {
        let late = [(5_000, 970), (6_000, 400), (9_000, 80), (12_000, 9), (20_000, 2)];
        let cells = [histogram(&[&[(-900, 2), (0, 1)], &late[..]].concat()), histogram(&[(7_000, 100)])];
        let series = cells.iter().map(|corrected| Series { corrected: corrected.clone(), ..Series::default() });
        let measured =
            Record { started_at: "2026-11-21T03:00:01Z".to_owned(), series: series.collect(), ..Record::default() };
        let export = |cells: [Histogram; 2], started_at: &str| {
            let of = |histogram| Figures { histogram: Some(histogram), ..Figures::default() };
            let all = Figures { phase: ALL_THREADS.to_owned(), ..of(cells[0].clone()) };
            published(started_at, [vec![all], cells.map(of).into()].concat())
        };
        let folded = [cells[1].clone(), histogram(&[&[(0, 3)], &late[..]].concat())];
        assert!(is_same(&measured, &export(folded.clone(), "")));
        assert!(is_same(&export(folded.clone(), ""), &export(cells, "2026-11-21")));
        assert!(is_same(&measured, &export(folded.clone(), "2026-11-21T03:00:01Z")));
        assert!(!is_same(&measured, &export(folded.clone(), "2026-11-21T03:10:01Z")), "started at another time");
        let other = [folded[0].clone(), histogram(&[&[(0, 3), (4_000, 1)], &late[..]].concat())];
        assert!(!is_same(&export(folded, ""), &export(other, "")));
    }

    /// The samples of a quiet machine fill two cells, and a time is equal in both runs by chance.
    #[test]
    fn runs_of_a_quiet_machine_can_be_equal_by_chance() {
        let of = |counts: &[(i64, u64)]| {
            let figures = Figures {
                histogram: Some(histogram(counts)),
                samples: Some(20_000),
                min_ns: Some(2_000),
                max_ns: Some(3_000),
                mean_ns: Some(2_004.0),
                ..Figures::default()
            };
            published("", vec![figures; 6])
        };
        let quiet = [(2_000, 19_980), (3_000, 20)];
        assert!(is_same(&of(&quiet), &of(&quiet)), "six threads are not");
        let one = |record: Record| {
            let published =
                Published { figures: record.published.unwrap().figures[..1].to_vec(), ..Published::default() };
            Record { published: Some(published), ..Record::default() }
        };
        assert!(!is_same(&one(of(&quiet)), &one(of(&quiet))));
        let busy = [(2_000, 9_000), (3_000, 700), (4_000, 200), (5_000, 50), (9_000, 3)];
        assert!(is_same(&one(of(&busy)), &one(of(&busy))));
    }

    /// Runs in virtual time repeat exactly.
    #[test]
    fn measured_records_with_equal_histograms_are_two_runs() {
        let of = |started_at: &str| Record {
            started_at: started_at.to_owned(),
            series: vec![Series { corrected: histogram(&[(5_000, 9)]), ..Series::default() }],
            ..Record::default()
        };
        assert!(is_same(&of("2026-11-21T03:00:01Z"), &of("2026-11-21T03:00:01Z")));
        assert!(!is_same(&of("2026-11-21T03:00:01Z"), &of("2026-11-21T03:00:02Z")));
    }

    #[test]
    fn figures_of_a_few_threads_can_be_equal_by_chance() {
        let thread = |max_ns, mean_ns| Figures {
            samples: Some(10_000),
            min_ns: Some(2_000),
            max_ns: Some(max_ns),
            mean_ns: Some(mean_ns),
            ..Figures::default()
        };
        let of = |threads: i64, more_ns: f64| {
            published("", (0..threads).map(|number| thread(9_000 + 1_000 * number, 3_000.0 + more_ns)).collect())
        };
        assert!(is_same(&of(4, 0.0), &of(4, 210.0)), "one format prints a mean with two digits, another without");
        assert!(!is_same(&of(2, 0.0), &of(2, 0.0)));
        assert!(!is_same(&of(4, 0.0), &of(4, 1_000.0)));
    }
}
