//! Time that other work took from threads that never sleep: one row per CPU, and gaps on all CPUs at once.

use analysis::{Summary, rounded_ns};
use record::{Noise, Phase, Record, Series, counted, grouped};

use super::page::Page;
use super::series::{heading, histograms, name, of, proofs, remarks};
use super::table::Table;
use super::{cell, time};
use crate::blame::unsigned;
use crate::style::{Ink, Spans};

/// A phase with all its figures, loads and histograms.
pub(super) fn full(page: &mut Page, record: &Record, phase: &Phase) {
    heading(page, record, phase);
    let all = of(record, phase);
    let mut table = Table::new(&[
        "CPU",
        "observed",
        "lost",
        "gaps",
        "per second",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "after",
    ]);
    for series in &all {
        table.row(row(series));
    }
    page.table(&table);
    if !all.is_empty() {
        page.text(Ink::Quiet, "lost: share of the observed time in which other work ran on the CPU");
    }
    if let Some(sentence) = common_gaps(&all) {
        page.text(Ink::Plain, &sentence);
    }
    remarks(page, record, phase);
    proofs(page, &phase.loads);
    histograms(page, record, &all);
}

fn row(series: &Series) -> Spans {
    let figures = Summary::of(series);
    let noise = series.kind.noise().cloned().unwrap_or_default();
    let per_second = series.samples as f64 * 1e9 / noise.observed_ns as f64;
    vec![
        cell(name(series)),
        cell(unsigned(noise.observed_ns)),
        (Ink::Title, lost(&noise)),
        cell(grouped(series.samples)),
        cell(if noise.observed_ns > 0 { format!("{per_second:.1}") } else { "-".to_owned() }),
        cell(time(series.mean_ns.map(rounded_ns))),
        cell(time(figures.p50_ns)),
        cell(time(figures.p99_ns)),
        cell(time(figures.p99_9_ns)),
        cell(time(figures.max_ns)),
        cell(series.max_at_ns.map_or_else(|| "-".to_owned(), unsigned)),
    ]
}

/// The lost share with three digits, or four decimals: `0.0123 %`.
pub(crate) fn lost(noise: &Noise) -> String {
    match noise.lost_share().map(|share| share * 100.0) {
        None => "-".to_owned(),
        Some(0.0) => "0 %".to_owned(),
        Some(percent @ 9.995..) => format!("{percent:.1} %"),
        Some(percent @ 0.0995..) => format!("{percent:.2} %"),
        Some(percent) => format!("{percent:.4} %"),
    }
}

/// The share lost by several series together; `None` for series of other probes.
pub(crate) fn lost_by(all: &[&Series]) -> Option<String> {
    let mut sum = Noise::default();
    for noise in noise(all.iter().copied()) {
        sum.observed_ns = sum.observed_ns.saturating_add(noise.observed_ns);
        sum.lost_ns = sum.lost_ns.saturating_add(noise.lost_ns);
    }
    all.iter().any(|series| series.kind.noise().is_some()).then(|| lost(&sum))
}

/// The number of gaps on all CPUs at once, in one sentence; `None` if it could not be determined.
pub(crate) fn common_gaps(all: &[&Series]) -> Option<String> {
    let counts: Option<Vec<u64>> = noise(all.iter().copied()).map(|noise| noise.strikes_of_all).collect();
    // Each CPU counts its own part of a common gap. On some CPUs that part is not among the worst, so the maximum
    // counts.
    let count = counts?.into_iter().max()?;
    let truncated = all.iter().any(|series| series.spikes_total > series.spikes.len() as u64);
    let subject = match (count, truncated) {
        (0, false) => "No gap".to_owned(),
        (0, true) => "None of the longest gaps".to_owned(),
        (count, true) => format!("{} of the longest gaps", grouped(count)),
        (count, false) => counted(count, "gap"),
    };
    let cause = if count > 0 { ": firmware or hypervisor" } else { "" };
    Some(format!("{subject} occurred on all {} CPUs at once{cause}.", all.len()))
}

fn noise<'a>(all: impl Iterator<Item = &'a Series>) -> impl Iterator<Item = &'a Noise> {
    all.filter_map(|series| series.kind.noise())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_shares_with_useful_digits() {
        let lost = |lost_ns| lost(&Noise { observed_ns: 1_000_000_000, lost_ns, ..Noise::default() });
        assert_eq!(lost(0), "0 %");
        assert_eq!(lost(123_456), "0.0123 %");
        assert_eq!(lost(12_345_600), "1.23 %");
        assert_eq!(lost(123_456_000), "12.3 %");
        assert_eq!(super::lost(&Noise::default()), "-");
    }
}
