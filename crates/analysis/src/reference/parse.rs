//! Reads a reference file into a record.

use record::{
    Caveat, Figures, Histogram, Machine, PUBLISHED, Published, Reason, Record, SCHEMA, Scenario, State, Tool, Validity,
};
use serde::Deserialize;

use super::matrix::Matrix;
use crate::data_file::{is_kebab, line_of, parse_toml};

#[derive(Deserialize)]
/// A reference as written in its file.
#[serde(deny_unknown_fields)]
struct ReferenceFile {
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
/// The line, from 1, and its mistake.
pub fn parse(name: &str, text: &str) -> Result<Record, (usize, String)> {
    let file: ReferenceFile = parse_toml(text)?;
    let ReferenceFile { title, author, place, url, date, on, machine, mut figures, remarks, mut caveats, .. } = file;
    for figures in &mut figures {
        with_histogram(figures).map_err(|(key, message)| (line_of(text, key), message))?;
    }
    let mut cells = Vec::new();
    for matrix in &file.matrix {
        let of_matrix = matrix.cells().map_err(|message| (line_of(text, "jitter_us"), message))?;
        figures.extend(matrix.figures(&of_matrix));
        cells.extend(of_matrix);
    }
    caveats.insert(0, Caveat { kind: PUBLISHED.to_owned(), text: NOT_MEASURED.to_owned() });
    let reason = Reason {
        id: PUBLISHED.to_owned(),
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

/// The caveat of every published record.
const NOT_MEASURED: &str = "these figures were published elsewhere and not measured by punctual, so it cannot be \
                            checked that the run went as requested";

/// A histogram as tools print it, with buckets 1 us wide: one line per bucket, with its lower end and count.
const HISTOGRAM: &str = "histogram_us";

/// Reads the printed histogram of `figures` and its percentiles. The error contains the key.
fn with_histogram(figures: &mut Figures) -> Result<(), (&'static str, String)> {
    let Some(printed) = figures.extra.remove(HISTOGRAM) else { return Ok(()) };
    let printed =
        printed.as_str().ok_or_else(|| (HISTOGRAM, format!("{HISTOGRAM} must be a text with one line per bucket")))?;
    let mut histogram = Histogram::default();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let numbers: Option<Vec<i64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let Some(&[from_us @ 0..1_000_000_000, count @ 0..=i64::MAX]) = numbers.as_deref() else {
            return Err((
                HISTOGRAM,
                format!("{line:?} is not a bucket: write its lower end in us and its count, e.g. 8 9973"),
            ));
        };
        histogram.add((from_us + 1) * 1_000 - 1, count.cast_unsigned());
    }
    if let Some(samples) = figures.samples.filter(|&samples| samples != histogram.total()) {
        let (phase, total) = (&figures.phase, histogram.total());
        return Err((
            HISTOGRAM,
            format!("the histogram of {phase:?} contains {total} samples, but samples is {samples}"),
        ));
    }
    // The upper end of a bucket can be above the exact maximum.
    let percentile = |percent| Some(histogram.percentile(percent)?.min(figures.max_ns.unwrap_or(i64::MAX)));
    figures.p50_ns = figures.p50_ns.or(percentile(50.0));
    figures.p99_ns = figures.p99_ns.or(percentile(99.0));
    figures.histogram = Some(histogram);
    Ok(())
}

/// The probe of the figures if all have the same one, otherwise empty.
fn probe_of(figures: &[Figures]) -> String {
    let first = figures.first().map_or("", |figures| figures.probe.as_str());
    if figures.iter().all(|figures| figures.probe == first) { first.to_owned() } else { String::new() }
}

/// The first mistake, with its key.
fn check(record: &Record) -> Option<(&'static str, String)> {
    let published = record.published.as_ref()?;
    if !is_kebab(&published.name) {
        return Some(("title", "the file's name must be lower case with hyphens".to_owned()));
    }
    for (key, text) in [("title", &published.title), ("on", &published.on)] {
        if text.trim().is_empty() || text.contains('\n') {
            return Some((key, format!("{key} must be one line of text")));
        }
    }
    if let Some(key) = record.machine.extra.keys().next() {
        return Some(("[machine]", format!("unknown key {key:?} in [machine]: see docs/record.md")));
    }
    if published.figures.is_empty() {
        return Some(("title", "no figures: add a [[figures]] table".to_owned()));
    }
    for figures in &published.figures {
        if let Some(key) = figures.extra.keys().next() {
            return Some(("[[figures]]", format!("unknown key {key:?} in [[figures]]: see docs/references.md")));
        }
        if figures.probe.is_empty() || figures.phase.is_empty() {
            return Some(("[[figures]]", "each of [[figures]] needs a probe and a phase".to_owned()));
        }
    }
    None
}
