//! Comparison of the run with other records, and records of published figures.

use record::{ALL_THREADS, Comparison, Figures, Published, Record};

use super::{
    facts::Fact,
    figure::{Row, Table},
    versus::{Chart, curves_of},
};
use crate::{
    compare::{
        COLUMNS, YOURS, caveats, conditions, jitter_tables, name, not_ours, origin, published_notes, published_row,
        rows, theirs, tool,
    },
    versus::Samples,
};

/// A comparison with one other record, as the template sees it.
pub struct ComparisonView<'a> {
    /// The other record.
    pub of: &'a Comparison,
    /// The origin of the other record.
    pub origin: String,
    /// The caveats of the other record.
    pub caveats: Vec<String>,
    /// One table per pair of figures, and notes on reading it.
    pub pairs: Vec<(Table, String)>,
}

/// A record of published figures, as the template sees it.
pub struct PublishedView {
    /// `Published`, or `Imported` for the file of another tool.
    pub word: &'static str,
    /// Source and machine.
    pub facts: Vec<Fact>,
    /// The figures.
    pub table: Table,
    /// The tables of a matrix, one per load.
    pub matrix: Vec<Table>,
    /// Notes on reading each set of figures, by name.
    pub notes: Vec<(String, String)>,
    /// Further statements of the source.
    pub remarks: Vec<String>,
    /// The curves of the figures.
    pub charts: Vec<Chart>,
}

/// The comparisons in `record`.
pub fn comparisons(record: &Record) -> Vec<ComparisonView<'_>> {
    let pairs = |against: &Comparison| {
        let head = ["figure", YOURS, theirs(against), "ratio"].map(str::to_owned).to_vec();
        let table = |pair| {
            let cells = rows(pair).into_iter().map(|row| Row::plain(row.to_vec()));
            let caption = format!("{} / {}", name(&pair.ours), name(&pair.theirs));
            (Table { caption, head: head.clone(), rows: cells.collect() }, conditions(pair))
        };
        against.pairs.iter().filter(|pair| !rows(pair).is_empty()).map(table).collect()
    };
    record
        .against
        .iter()
        .map(|of| ComparisonView { of, origin: origin(of), caveats: caveats(&of.caveats), pairs: pairs(of) })
        .collect()
}

/// The published figures of a record; `None` if it was measured.
pub fn published(record: &Record) -> Option<PublishedView> {
    let published = record.published.as_ref()?;
    let facts = [
        ("title", &published.title),
        ("author", &published.author),
        ("published in", &published.place),
        ("date", &published.date),
        ("address", &published.url),
        ("machine", &published.on),
        ("measured with", &tool(published)),
    ];
    // The first two columns name the figures.
    let has_figures = |row: &[String; COLUMNS.len()]| row[2..].iter().any(|cell| !cell.is_empty());
    let rows: Vec<_> = published.figures.iter().map(published_row).filter(has_figures).collect();
    let filled: Vec<usize> = (0..COLUMNS.len()).filter(|&c| rows.iter().any(|row| !row[c].is_empty())).collect();
    let cells = |row: &[String; COLUMNS.len()]| {
        filled.iter().map(|&c| if row[c].is_empty() { "-".to_owned() } else { row[c].clone() }).collect()
    };
    Some(PublishedView {
        word: if not_ours(record).0 == "PUBLISHED" { "Published" } else { "Imported" },
        facts: facts.into_iter().filter(|(_, t)| !t.is_empty()).map(|(name, text)| (name, text.clone())).collect(),
        table: Table {
            caption: "Figures as they were written; a dash if there is none".to_owned(),
            head: filled.iter().map(|&column| COLUMNS[column].to_owned()).collect(),
            rows: rows.iter().map(|row| Row::plain(cells(row))).collect(),
        },
        matrix: jitter_tables(record).into_iter().map(Table::of_jitter).collect(),
        notes: published_notes(published),
        remarks: published.remarks.clone(),
        charts: charts(published),
    })
}

/// The curves of published figures. Of many threads, only those of all threads together.
fn charts(published: &Published) -> Vec<Chart> {
    /// More curves cover each other.
    const MOST: usize = 12;
    let figures: Vec<&Figures> =
        published.figures.iter().filter(|figures| figures.samples_with_beyond().is_some()).collect();
    let is_few = figures.len() <= MOST;
    let has_sums = figures.iter().any(|figures| figures.phase == ALL_THREADS);
    let shown = figures.into_iter().filter(|figures| is_few || !has_sums || figures.phase == ALL_THREADS);
    let curves: Vec<(String, Samples)> = shown
        .filter_map(|figures| {
            let (histogram, beyond) = figures.samples_with_beyond()?;
            Some((name(figures), Samples { histogram, beyond }))
        })
        .collect();
    let curves: Vec<(&str, Samples)> = curves.iter().map(|(name, samples)| (name.as_str(), *samples)).collect();
    curves_of("published", "Percentiles", &curves)
}

/// Samples of other records with their names, to draw as further curves.
pub fn curves(record: &Record) -> Vec<(String, Samples<'_>)> {
    let compared =
        record.against.iter().flat_map(|of| of.pairs.iter().map(move |pair| (of.name.as_str(), &pair.theirs)));
    let mut curves: Vec<(String, Samples)> = Vec::new();
    for (from, figures) in compared {
        let label = label(from, figures);
        if let Some((histogram, beyond)) = figures.samples_with_beyond()
            && curves.iter().all(|(known, _)| *known != label)
        {
            curves.push((label, Samples { histogram, beyond }));
        }
    }
    curves
}

fn label(from: &str, figures: &Figures) -> String {
    let phase = analysis::phase_in_words(&figures.phase, 0);
    let role = if figures.role.is_empty() { String::new() } else { format!(", {}", figures.role) };
    format!("{from}: {phase}{role}")
}
