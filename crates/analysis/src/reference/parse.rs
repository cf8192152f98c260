//! A reference as its file is written, and the record that it makes.

use record::{Caveat, Figures, Histogram, Machine, Published, Reason, Record, SCHEMA, Scenario, State, Tool, Validity};
use serde::Deserialize;

use super::matrix::Matrix;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    title: String,
    #[serde(default)]
    author: String,
    #[serde(default)]
    place: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    date: String,
    on: String,
    #[serde(default)]
    machine: Machine,
    #[serde(default)]
    figures: Vec<Figures>,
    #[serde(default)]
    matrix: Vec<Matrix>,
    #[serde(default)]
    caveats: Vec<Caveat>,
    #[serde(default)]
    remarks: Vec<String>,
}

/// Reads a reference called `name` from its TOML text, as a record.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub(super) fn parse(name: &str, text: &str) -> Result<Record, (usize, String)> {
    let wire: Wire = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        (line_at(text, offset), error.message().replace('\n', ", "))
    })?;
    let Wire { title, author, place, url, date, on, machine, mut figures, remarks, mut caveats, .. } = wire;
    for figures in &mut figures {
        with_histogram(figures).map_err(|(key, message)| (line_of(text, key), message))?;
    }
    let mut cells = Vec::new();
    for matrix in &wire.matrix {
        let of_it = matrix.cells().map_err(|message| (line_of(text, "jitter_us"), message))?;
        figures.extend(matrix.figures(&of_it));
        cells.extend(of_it);
    }
    caveats.insert(0, Caveat { kind: "published".to_owned(), text: NOT_MEASURED.to_owned() });
    let reason = Reason {
        id: "published".to_owned(),
        text: NOT_MEASURED.to_owned(),
        remedy: format!("punctual measure timer --against {name}"),
    };
    let record = Record {
        schema: SCHEMA.to_owned(),
        tool: Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        state: State::Complete,
        scenario: Scenario { probe: probe_of(&figures), ..Scenario::default() },
        machine,
        validity: Validity { valid: false, reasons: vec![reason] },
        cells,
        caveats,
        published: Some(Published {
            name: name.to_owned(),
            title,
            author,
            place,
            url,
            date,
            on,
            figures,
            remarks,
            ..Published::default()
        }),
        ..Record::default()
    };
    check(&record).map_or(Ok(record), |(key, message)| Err((line_of(text, key), message)))
}

/// What no published record can tell.
const NOT_MEASURED: &str = "these figures were published elsewhere, not measured by punctual: whether what was asked \
                            for is what ran cannot be checked";

/// Cells of a histogram as tools print it, 1 us wide: a line a cell, its lower end and how many it holds.
const HISTOGRAM: &str = "histogram_us";

/// Reads the printed histogram of `figures`, and the percentiles that it gives. The error names its key.
fn with_histogram(figures: &mut Figures) -> Result<(), (&'static str, String)> {
    let Some(printed) = figures.extra.remove(HISTOGRAM) else { return Ok(()) };
    let printed = printed.as_str().ok_or_else(|| (HISTOGRAM, format!("{HISTOGRAM} must be a text, a line a cell")))?;
    let mut histogram = Histogram::default();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let numbers: Option<Vec<i64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let Some(&[from_us @ 0..1_000_000_000, count @ 0..=i64::MAX]) = numbers.as_deref() else {
            return Err((
                HISTOGRAM,
                format!("{line:?} is no cell: write its lower end in us and its count, as 8 9973"),
            ));
        };
        histogram.add((from_us + 1) * 1_000 - 1, count as u64);
    }
    if let Some(samples) = figures.samples.filter(|&samples| samples != histogram.total()) {
        let (phase, total) = (&figures.phase, histogram.total());
        return Err((HISTOGRAM, format!("the histogram of {phase:?} holds {total} and samples says {samples}")));
    }
    // A cell's upper end may lie above the exact maximum.
    let percentile = |percent| Some(histogram.percentile(percent)?.min(figures.max_ns.unwrap_or(i64::MAX)));
    figures.p50_ns = figures.p50_ns.or(percentile(50.0));
    figures.p99_ns = figures.p99_ns.or(percentile(99.0));
    figures.histogram = Some(histogram);
    Ok(())
}

/// The probe of the figures, where they have one in common.
fn probe_of(figures: &[Figures]) -> String {
    let first = figures.first().map_or("", |figures| figures.probe.as_str());
    if figures.iter().all(|figures| figures.probe == first) { first.to_owned() } else { String::new() }
}

/// The first thing that makes no sense: its key and what is wrong.
fn check(record: &Record) -> Option<(&'static str, String)> {
    let published = record.published.as_ref()?;
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if published.name.is_empty() || !published.name.chars().all(kebab) {
        return Some(("title", "the file's name must be lower case with hyphens".to_owned()));
    }
    for (key, text) in [("title", &published.title), ("on", &published.on)] {
        if text.trim().is_empty() || text.contains('\n') {
            return Some((key, format!("{key} must be one line of plain words")));
        }
    }
    if let Some(key) = record.machine.extra.keys().next() {
        return Some(("[machine]", format!("unknown key {key:?} in [machine]: docs/record.md says which there are")));
    }
    if published.figures.is_empty() {
        return Some(("title", "it holds no figures: add a [[figures]] table".to_owned()));
    }
    for figures in &published.figures {
        if let Some(key) = figures.extra.keys().next() {
            return Some((
                "[[figures]]",
                format!("unknown key {key:?} in [[figures]]: docs/references.md says which there are"),
            ));
        }
        if figures.probe.is_empty() || figures.phase.is_empty() {
            return Some(("[[figures]]", "each of [[figures]] needs a probe and a phase".to_owned()));
        }
    }
    None
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The line on which `key` stands first.
fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(key)).map_or(1, |line| line + 1)
}
