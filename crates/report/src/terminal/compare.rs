//! Comparison of the run with other records, figure by figure.

use record::{ComparedPair, Comparison, Record};

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::compare::{YOURS, conditions, name, origin, rows, theirs};
use crate::style::Ink;

/// One section per record that this one is compared with.
pub(super) fn section(page: &mut Page, record: &Record) {
    record.against.iter().for_each(|against| comparison(page, against));
}

/// The largest lateness against that of each other record, in one line each: of the group where the ratio is largest, and
/// of equal ratios the largest lateness.
pub(super) fn brief(page: &mut Page, record: &Record, column: usize) {
    for against in &record.against {
        let pairs = against.pairs.iter().filter(|pair| pair.ratios.max.is_some());
        let ratio = |pair: &ComparedPair| pair.ratios.max.unwrap_or(0.0);
        let worst = pairs.max_by(|a, b| ratio(a).total_cmp(&ratio(b)).then_with(|| a.ours.max_ns.cmp(&b.ours.max_ns)));
        let largest = worst.and_then(|pair| rows(pair).into_iter().find(|row| row[0] == "max"));
        let text = match (worst, largest) {
            (Some(pair), Some([_, ours, theirs, ratio])) => {
                let (group, other) = (name(&pair.ours), &against.name);
                format!("{other} ({group}): largest lateness {theirs}, here {ours} ({ratio}; one run is not judged)")
            }
            _ => format!("no figure to compare with {}", against.name),
        };
        page.fact("against", column, &text);
    }
}

fn comparison(page: &mut Page, against: &Comparison) {
    page.heading(&format!("Compared with {}: {}", against.name, against.on));
    page.text(Ink::Quiet, &origin(against));
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
