//! Comparison of the run with other records, figure by figure.

use analysis::NOT_AS_REQUESTED;
use record::{ComparedPair, Comparison, Record};

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::compare::{YOURS, caveats, conditions, name, origin, rows, theirs};
use crate::style::Ink;

/// One section per record that this one is compared with.
pub(super) fn section(page: &mut Page, record: &Record) {
    record.against.iter().for_each(|against| comparison(page, against));
}

/// The largest lateness against that of each other record, in one line each: of the group where the ratio is largest, and
/// of equal ratios the largest lateness. The jitter instead if the other record has no lateness, such as a published
/// matrix.
pub(super) fn brief(page: &mut Page, record: &Record, column: usize) {
    for against in &record.against {
        let text = worst(against, "max", |pair| pair.ratios.max)
            .or_else(|| worst(against, "jitter", |pair| pair.ratios.jitter))
            .unwrap_or_else(|| format!("no figure to compare with {}", against.name));
        page.fact("against", column, &text);
    }
}

/// The group with the largest ratio of a figure, in words; `None` if no group has it on both sides.
fn worst(against: &Comparison, figure: &str, ratio: impl Fn(&ComparedPair) -> Option<f64>) -> Option<String> {
    let ratios = against.pairs.iter().filter_map(|pair| Some((pair, ratio(pair)?)));
    let (pair, _) =
        ratios.max_by(|(a, of_a), (b, of_b)| of_a.total_cmp(of_b).then(a.ours.max_ns.cmp(&b.ours.max_ns)))?;
    let [_, ours, theirs, ratio] = rows(pair).into_iter().find(|row| row[0] == figure)?;
    let what = if figure == "max" { "largest lateness" } else { figure };
    let (group, other) = (name(&pair.ours), &against.name);
    let run = against.caveats.iter().find(|caveat| caveat.kind == NOT_AS_REQUESTED);
    let why = run.map_or("one run is not judged", |caveat| &caveat.text);
    Some(format!("{other} ({group}): {what} {theirs}, here {ours} ({ratio}; {why})"))
}

fn comparison(page: &mut Page, against: &Comparison) {
    page.heading(&format!("Compared with {}: {}", against.name, against.on));
    page.text(Ink::Quiet, &origin(against));
    caveats(&against.caveats).iter().for_each(|caveat| page.text(Ink::Quiet, &format!("Caveat: {caveat}")));
    for pair in &against.pairs {
        page.gap();
        page.text(Ink::Plain, &format!("{} / {}", name(&pair.ours), name(&pair.theirs)));
        let mut table = Table::new(&["", YOURS, theirs(against), "ratio"]);
        for row in rows(pair) {
            table.row(row.map(cell).to_vec());
        }
        page.table(&table);
        page.below(4, Ink::Quiet, &conditions(pair));
    }
    if !against.alone.is_empty() {
        page.text(Ink::Plain, &format!("Without a counterpart: {}.", against.alone.join("; ")));
    }
}
