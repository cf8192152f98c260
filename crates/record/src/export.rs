//! Export to other tools' formats. Each function turns a record into text.

use std::{collections::HashMap, fmt::Write};

use crate::{
    Record, Series,
    visible::{escape, one_line},
};

/// The samples of imported figures that are beyond the last cell of their histogram, so that their values are unknown.
#[must_use]
pub fn beyond(record: &Record, series: &Series) -> u64 {
    let has_some = record.published.is_some() && !series.raw.is_empty();
    if has_some { series.samples.saturating_sub(series.raw.total()) } else { 0 }
}

/// True for imported figures without a histogram, of which another number is known. A histogram without samples would say that
/// nothing was measured.
#[must_use]
pub fn lacks_histogram(record: &Record, series: &Series) -> bool {
    let is_measured = series.samples > 0 || series.max_ns.or(series.min_ns).is_some() || series.mean_ns.is_some();
    record.published.is_some() && series.raw.is_empty() && is_measured
}

/// Writes every bucket of every series as CSV, one per line, with a header line. Of a kind without correction, and of
/// imported figures, only the raw buckets are written, and one line `beyond` for samples whose values are unknown. Values are in
/// ns, counts exact.
#[must_use]
pub fn csv(record: &Record) -> String {
    // A field with a separator is quoted (RFC 4180).
    let field = |text: &str| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let mut out = String::from("phase,role,cpu,period_ns,histogram,value_ns,count\n");
    for series in &record.series {
        let cpu = series.cpu.map(|cpu| cpu.to_string()).unwrap_or_default();
        for (kind, histogram) in [("raw", &series.raw), ("corrected", &series.corrected)] {
            if kind == "corrected" && (!series.kind.properties().is_corrected || record.published.is_some()) {
                continue;
            }
            for (value_ns, count) in histogram.iter() {
                let (phase, role, period_ns) = (field(&series.phase), field(&series.role), series.period_ns);
                let _ = writeln!(out, "{phase},{role},{cpu},{period_ns},{kind},{value_ns},{count}");
            }
        }
        let beyond = beyond(record, series);
        if beyond > 0 {
            let (phase, role, period_ns) = (field(&series.phase), field(&series.role), series.period_ns);
            let _ = writeln!(out, "{phase},{role},{cpu},{period_ns},beyond,,{beyond}");
        }
    }
    escape(out)
}

/// Writes the percentiles of the corrected histograms in the text format of HdrHistogram plotters (`.hgrm`).
///
/// One block per series, values in us. Columns: value, percentile from 0 to 1, count up to it, 1 / (1 - percentile). Imported
/// figures without a histogram have a block without rows, with their maximum and number of samples if these are known.
#[must_use]
pub fn hgrm(record: &Record) -> String {
    let mut out = String::new();
    let mut seen_places: HashMap<(String, String), u32> = HashMap::new();
    for series in &record.series {
        let is_corrected = series.kind.properties().is_corrected && record.published.is_none();
        let (title, times) = if is_corrected { ("corrected", &series.corrected) } else { ("raw", &series.raw) };
        // A kind without correction has equal histograms, and an imported one may lack its longest samples.
        let lacks_histogram = lacks_histogram(record, series);
        let total = if lacks_histogram { series.samples } else { times.total() + beyond(record, series) };
        let max = series.max_ns.map(|max_ns| format!("Max = {:.3}", max_ns as f64 / 1e3));
        let count = (!lacks_histogram || total > 0).then(|| format!("Total count = {total}"));
        let end: Vec<String> = max.into_iter().chain(count).collect();
        if end.is_empty() {
            continue;
        }
        let place = format!("{} {}", series.phase, series.place());
        let number = seen_places.entry((place.clone(), series.role.clone())).or_insert(0_u32);
        *number += 1;
        // Threads that may migrate can have one name; readers take a second block of a name for another run.
        let place = if *number == 1 { place } else { format!("{place}, thread {number}") };
        let heading = one_line(&format!("{place} ({})", series.role));
        let _ = writeln!(out, "# {heading}, {title}, us");
        let _ = writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
        let mut seen = 0;
        for (value_ns, count) in times.iter() {
            seen += count;
            let share = seen as f64 / total as f64;
            let value_us = value_ns as f64 / 1e3;
            if seen < total {
                let _ = writeln!(out, "{value_us:12.3} {share:14.12} {seen:10} {:14.2}", 1.0 / (1.0 - share));
            } else {
                let _ = writeln!(out, "{value_us:12.3} {share:14.12} {seen:10}");
            }
        }
        let _ = writeln!(out, "#[{}]\n", end.join(", "));
    }
    escape(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut series =
            Series { phase: "rest".into(), role: "timer".into(), cpu: Some(1), period_ns: 1000, ..Series::default() };
        series.raw.add(5, 3);
        series.raw.record(2500);
        series.max_ns = Some(2500);
        series.corrected = series.raw.corrected(&[2500], 1000);
        Record { series: vec![series], ..Record::default() }
    }

    #[test]
    fn csv_has_one_line_per_bucket() {
        let expected = "phase,role,cpu,period_ns,histogram,value_ns,count\nrest,timer,1,1000,raw,5,3\nrest,timer,1,1000,raw,2501,1\n\
            rest,timer,1,1000,corrected,5,3\nrest,timer,1,1000,corrected,500,1\nrest,timer,1,1000,corrected,1500,1\n\
            rest,timer,1,1000,corrected,2501,1\n";
        assert_eq!(csv(&record()), expected);
    }

    #[test]
    fn hgrm_ends_at_percentile_one() {
        let text = hgrm(&record());
        assert!(text.contains("0.500000000000          3           2.00"), "{text}");
        assert!(text.contains("1.000000000000          6\n"), "{text}");
    }
}
