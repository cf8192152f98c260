//! Comparison of a run's figures with other records, as text for terminal and HTML.

use analysis::{format_ns, matrix, rounded_ns};
use record::{Caveat, CellThread, ComparedPair, Comparison, Figures, IMPORTED, Published, Record, grouped};

use crate::blame::unsigned;

/// Heading of our own column in [`rows`].
pub(crate) const YOURS: &str = "yours";

/// Heading of the other column: `published`, or `theirs` for a record that punctual measured.
pub(crate) fn theirs(against: &Comparison) -> &'static str {
    if against.source.is_empty() { "theirs" } else { "published" }
}

/// The origin of the other figures, and a note that they are of another machine.
pub(crate) fn origin(against: &Comparison) -> String {
    if against.source.is_empty() {
        return format!("Measured on {}.", against.on);
    }
    format!(
        "Published elsewhere, not measured by punctual: {}. Another machine and another tool, so only a rough guide.",
        against.source
    )
}

/// The caveats of the other records, one sentence each. Those that differ only in numbers, such as of several threads, are one.
pub(crate) fn caveats(all: &[Caveat]) -> Vec<String> {
    let mut statements: Vec<(String, &Caveat, usize)> = Vec::new();
    for caveat in all {
        let statement = without_numbers(&caveat.text);
        match statements.iter_mut().find(|(known, ..)| *known == statement) {
            Some((.., more)) => *more += 1,
            None => statements.push((statement, caveat, 0)),
        }
    }
    let sentence = |(_, first, more): (String, &Caveat, usize)| match more {
        0 => format!("{}.", first.text.trim_end_matches('.')),
        more => format!("{} (and {more} more of this kind).", first.text.trim_end_matches('.')),
    };
    statements.into_iter().map(sentence).collect()
}

/// The text with `0` instead of each number, also of `1,234`, `0.5` and `0-3`.
fn without_numbers(text: &str) -> String {
    let words = text.split(|c: char| c.is_ascii_digit()).filter(|part| !["", ",", ".", "-"].contains(part));
    words.collect::<Vec<_>>().join("0")
}

/// Phase, role and CPUs of figures: `rest, CPUs 0-1`, or `idle, base, on one CPU`.
pub(crate) fn name(figures: &Figures) -> String {
    let mut parts = vec![analysis::phase_in_words(&figures.phase, 0)];
    if !figures.role.is_empty() && figures.role != figures.phase {
        parts.push(figures.role.clone());
    }
    match figures.together {
        Some(true) => parts.push("on one CPU".to_owned()),
        Some(false) => parts.push("on separate CPUs".to_owned()),
        None => {}
    }
    if !figures.cpus.is_empty() {
        let several = figures.cpus.contains([',', '-']);
        parts.push(format!("CPU{} {}", if several { "s" } else { "" }, figures.cpus));
    }
    parts.join(", ")
}

/// Name, our figure, their figure and ratio. The row of the maximum is always there, other rows if both sides have it.
pub(crate) fn rows(pair: &ComparedPair) -> Vec<[String; 4]> {
    let ComparedPair { ours, theirs, ratios, .. } = pair;
    let mean = |figures: &Figures| figures.mean_ns.map(rounded_ns);
    let jitter = |figures: &Figures| figures.jitter_ns.map(u64::cast_signed);
    let gap = |figures: &Figures| figures.max_gap_ns.map(u64::cast_signed);
    let all = [
        ("median", ours.p50_ns, theirs.p50_ns, ratios.p50),
        ("mean", mean(ours), mean(theirs), ratios.mean),
        ("p99", ours.p99_ns, theirs.p99_ns, ratios.p99),
        ("max", ours.max_ns, theirs.max_ns, ratios.max),
        ("jitter", jitter(ours), jitter(theirs), ratios.jitter),
        ("largest gap", gap(ours), gap(theirs), ratios.max_gap),
    ];
    let both = all.into_iter().filter_map(|(name, ours, theirs, ratio)| {
        Some([name.to_owned(), format_ns(ours?), format_ns(theirs?), ratio.map_or_else(|| "-".to_owned(), times)])
    });
    let beyond = theirs.max_above_ns.zip(ours.max_ns).map(|(above_ns, max_ns)| {
        ["max".to_owned(), format_ns(max_ns), format!("above {}", format_ns(above_ns)), "-".to_owned()]
    });
    both.chain(beyond).collect()
}

/// A ratio with two or three significant digits: `0.0017x`, `0.87x`, `14.3x`, `205x`.
pub(crate) fn times(ratio: f64) -> String {
    let decimals = decimals_of_ratio(ratio);
    format!("{ratio:.decimals$}x")
}

/// The same, with more decimals if it would be shown as 1, which it is not: `1.004x`.
pub(crate) fn times_apart(ratio: f64) -> String {
    let decimals = decimals_apart(ratio, 1.0, decimals_of_ratio(ratio));
    format!("{ratio:.decimals$}x")
}

fn decimals_of_ratio(ratio: f64) -> usize {
    match ratio {
        _ if ratio >= 99.95 => 0,
        _ if ratio >= 9.995 => 1,
        _ if ratio >= 0.0995 || ratio <= 0.0 => 2,
        _ if ratio >= 0.00995 => 3,
        _ => 4,
    }
}

/// The number of decimals, at least `least`, with which `value` is not rounded to the whole number `nothing`. The end of an
/// interval must show on which side of it the interval is.
pub(crate) fn decimals_apart(value: f64, nothing: f64, least: usize) -> usize {
    /// Smaller differences are not shown.
    const MOST: usize = 12;
    let is_shown = |&decimals: &usize| {
        let text = format!("{:.decimals$}", value - nothing);
        text.contains(|digit: char| ('1'..='9').contains(&digit))
    };
    (least..=MOST).find(is_shown).unwrap_or(least)
}

/// Differences in conditions, the load as the other side describes it, and notes on reading its figures.
pub(crate) fn conditions(pair: &ComparedPair) -> String {
    let differs =
        if pair.differs.is_empty() { String::new() } else { format!("Differs: {}.", pair.differs.join("; ")) };
    let Figures { said, note, .. } = &pair.theirs;
    let said = if said.is_empty() { String::new() } else { format!("Their load: {said}.") };
    let note = if note.is_empty() { String::new() } else { format!("Note: {note}.") };
    [differs, said, note].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The origin of figures that punctual did not measure: one word, and a sentence without its end.
pub(crate) fn not_ours(record: &Record) -> (&'static str, String) {
    let is_imported = record.validity.reasons.iter().any(|reason| reason.id == IMPORTED);
    match record.tool.name.as_str() {
        "punctual" if is_imported => ("IMPORTED", "read from an export of punctual".to_owned()),
        "punctual" => ("PUBLISHED", "published elsewhere, not measured by punctual".to_owned()),
        "" => ("IMPORTED", "measured by another tool, not by punctual".to_owned()),
        tool => ("IMPORTED", format!("measured by {tool}, not by punctual")),
    }
}

/// Headings of [`published_row`]; columns that no row fills are left out.
pub(crate) const COLUMNS: [&str; 13] =
    ["figures", "of", "period", "samples", "missed", "min", "mean", "mode", "p50", "p99", "max", "jitter", "gap"];

/// Published figures as cells under [`COLUMNS`]; empty cells for figures that were not published.
pub(crate) fn published_row(figures: &Figures) -> [String; COLUMNS.len()] {
    let time = |ns: Option<i64>| ns.map(format_ns).unwrap_or_default();
    let duration = |ns: Option<u64>| ns.map(unsigned).unwrap_or_default();
    let count = |count: Option<u64>| count.map(grouped).unwrap_or_default();
    let max = figures.max_above_ns.map(|ns| format!("above {}", format_ns(ns)));
    [
        name(figures),
        figures.probe.clone(),
        duration(figures.period_ns),
        count(figures.samples),
        count(figures.missed),
        time(figures.min_ns),
        time(figures.mean_ns.map(rounded_ns)),
        time(figures.mode_ns),
        time(figures.p50_ns),
        time(figures.p99_ns),
        max.unwrap_or_else(|| time(figures.max_ns)),
        duration(figures.jitter_ns),
        duration(figures.max_gap_ns),
    ]
}

/// Notes of each set of figures, by its name: load, method and remarks. The tool is left out if all have the same one;
/// [`tool`] returns it.
pub(crate) fn published_notes(published: &Published) -> Vec<(String, String)> {
    let has_common_tool = !tool(published).is_empty();
    let note = |figures: &Figures| {
        let late = figures.late.map(|late| format!("{} late packets, as the source counts them", grouped(late)));
        let tool = if has_common_tool { String::new() } else { tool_and_policy(figures) };
        let parts = [figures.said.clone(), tool, late.unwrap_or_default(), figures.note.clone()];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        (name(figures), text)
    };
    published.figures.iter().map(note).filter(|(_, text)| !text.is_empty()).collect()
}

/// Tool and policy of all figures; empty if they differ.
pub(crate) fn tool(published: &Published) -> String {
    let first = published.figures.first().map(tool_and_policy).unwrap_or_default();
    if published.figures.iter().all(|figures| tool_and_policy(figures) == first) { first } else { String::new() }
}

fn tool_and_policy(figures: &Figures) -> String {
    let parts = [figures.tool.as_str(), figures.policy.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A matrix under one load: one row per CPU of the first thread, one column per CPU of the second.
pub(crate) struct JitterTable {
    /// The meaning of the cells, and the load.
    pub(crate) caption: String,
    /// Headings of the columns, starting with that of the row names.
    pub(crate) head: Vec<String>,
    /// The rows, each starting with its name.
    pub(crate) rows: Vec<Vec<String>>,
}

/// The tables of a published matrix, which contain only the jitter of both threads.
pub(crate) fn jitter_tables(record: &Record) -> Vec<JitterTable> {
    let table = |of: matrix::MatrixTable| {
        let [row, column] = of.roles;
        let jitter = |thread: &CellThread| unsigned(thread.jitter_ns);
        let text = |cell: &record::Cell| format!("{} / {}", jitter(&cell.threads[1]), jitter(&cell.threads[0]));
        // Rows without a published cell are left out.
        let filled = of.rows.iter().zip(&of.cells).filter(|(_, cells)| cells.iter().any(Option::is_some));
        let rows = filled.map(|(cpu, cells)| {
            let both = cells.iter().map(|cell| cell.map_or_else(|| "-".to_owned(), text));
            [format!("{row} {cpu}")].into_iter().chain(both).collect()
        });
        JitterTable {
            caption: format!("Jitter of {column} / {row}, {}", of.load),
            head: [String::new()].into_iter().chain(of.columns.iter().map(|cpu| format!("{column} {cpu}"))).collect(),
            rows: rows.collect(),
        }
    };
    matrix::tables(record).into_iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_two_or_three_digits() {
        assert_eq!(
            [0.0, 0.001_71, 0.0213, 0.871, 1.0, 9.996, 14.33, 99.96, 205.4].map(times),
            ["0.00x", "0.0017x", "0.021x", "0.87x", "1.00x", "10.0x", "14.3x", "100x", "205x"]
        );
    }

    #[test]
    fn only_caveats_that_differ_in_numbers_are_one() {
        let texts = [
            "the file does not say its unit; microseconds are assumed",
            "thread 0: its mean is longer than its period",
            "thread 12: its mean is longer than its period",
            "thread 0: 1,234 samples are beyond the last cell, which ends at 0.5 us",
            "thread 3: 28 samples are beyond the last cell, which ends at 20 us",
        ];
        let all = texts.map(|text| Caveat { kind: "units".to_owned(), text: text.to_owned() });
        assert_eq!(
            caveats(&all),
            [
                "the file does not say its unit; microseconds are assumed.",
                "thread 0: its mean is longer than its period (and 1 more of this kind).",
                "thread 0: 1,234 samples are beyond the last cell, which ends at 0.5 us (and 1 more of this kind).",
            ]
        );
    }

    #[test]
    fn ratios_beside_1_have_more_decimals() {
        assert_eq!(
            [1.004, 0.9961, 1.000_02, 1.0, 1.47].map(times_apart),
            ["1.004x", "0.996x", "1.00002x", "1.00x", "1.47x"]
        );
    }

    /// Ten times as many threads take about ten times as long, not a hundred times.
    #[test]
    fn notes_of_many_threads_take_little_time() {
        let fastest = |threads: usize| {
            let figures = Figures { tool: "cyclictest".to_owned(), ..Figures::default() };
            let published = Published { figures: vec![figures; threads], ..Published::default() };
            let time = || {
                let begin = std::time::Instant::now();
                assert!(published_notes(&published).is_empty());
                begin.elapsed()
            };
            (0..5).map(|_| time()).min().unwrap()
        };
        let ratio = fastest(4_000).as_secs_f64() / fastest(400).as_secs_f64();
        assert!(ratio < 40.0, "{ratio}");
    }

    #[test]
    fn names_contain_the_placement_of_threads() {
        let of = |phase: &str, role: &str, cpus: &str, together| {
            let (phase, role, cpus) = (phase.to_owned(), role.to_owned(), cpus.to_owned());
            name(&Figures { phase, role, cpus, together, ..Figures::default() })
        };
        assert_eq!(of("rest", "", "0-1", None), "at rest, CPUs 0-1");
        assert_eq!(of("idle", "base", "", Some(true)), "idle, base, on one CPU");
        assert_eq!(of("rest", "", "3", Some(false)), "at rest, on separate CPUs, CPU 3");
    }
}
