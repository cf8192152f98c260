//! Key figures and series table of a noise record, whose samples are gaps instead of wake-ups.

use analysis::{Summary, format_duration, format_ns, rounded_ns};
use record::{Noise, Record, Series, counted, grouped};

use super::{
    figure::{Key, Table},
    lines::{self, Line},
};
use crate::blame::unsigned;
use crate::terminal::noise::{common_gaps, lost};

/// The key figures.
pub fn keys(record: &Record) -> Vec<Key> {
    let all: Vec<(&Series, &Noise)> =
        record.series.iter().filter_map(|series| Some((series, series.kind.noise()?))).collect();
    let mut keys = Vec::new();
    if let Some((series, max_ns)) = all.iter().filter_map(|(s, _)| Some((s, s.max_ns?))).max_by_key(|(_, max)| *max) {
        let at_s = series.max_at_ns.map_or_else(String::new, |ns| format!(", at {:.1} s", ns as f64 / 1e9));
        let detail = format!("{}{at_s}", lines::name(series));
        keys.push(Key { label: "longest gap", value: format_ns(max_ns), detail });
    }
    let share = |noise: &Noise| noise.lost_share().unwrap_or(0.0);
    if let Some((series, noise)) = all.iter().max_by(|a, b| share(a.1).total_cmp(&share(b.1))) {
        let detail = format!("{}, of {}", lines::name(series), unsigned(noise.observed_ns));
        keys.push(Key { label: "largest share lost", value: lost(noise), detail });
    }
    let series: Vec<&Series> = all.iter().map(|(series, _)| *series).collect();
    if let Some(detail) = common_gaps(&series) {
        let count = all.iter().filter_map(|(_, noise)| noise.strikes_of_all).max().unwrap_or(0);
        keys.push(Key { label: "gaps on all CPUs at once", value: grouped(count), detail });
    }
    let gaps = series.iter().fold(0u64, |sum, series| sum.saturating_add(series.samples));
    let duration_ns = record.phases.iter().fold(0u64, |sum, phase| sum.saturating_add(phase.duration_ns));
    let detail = format!("{} in {} series", counted(gaps, "gap"), series.len());
    keys.push(Key { label: "measured", value: format_duration(duration_ns), detail });
    keys
}

/// All figures, one row per series.
pub fn summary(lines: &[Line]) -> Table {
    let head = [
        "series",
        "policy",
        "observed",
        "lost",
        "gaps",
        "per second",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "at",
        "on all CPUs",
    ];
    let caption = "CPU time that each thread lost while it observed. Gaps are longer than the threshold; on all CPUs: \
                       of the longest gaps, those that occurred on all CPUs at once.";
    Table::of_series(caption, &head, lines, |line| {
        let (series, figures) = (line.series, Summary::of(line.series));
        let noise = series.kind.noise().cloned().unwrap_or_default();
        let a_second = series.samples as f64 * 1e9 / noise.observed_ns.max(1) as f64;
        let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns);
        vec![
            series.granted.policy.clone(),
            unsigned(noise.observed_ns),
            lost(&noise),
            grouped(series.samples),
            format!("{a_second:.1}"),
            time(series.mean_ns.map(rounded_ns)),
            time(figures.p50_ns),
            time(figures.p99_ns),
            time(figures.p99_9_ns),
            time(figures.max_ns),
            series.max_at_ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1} s", ns as f64 / 1e9)),
            noise.strikes_of_all.map_or_else(|| "-".to_owned(), grouped),
        ]
    })
}
