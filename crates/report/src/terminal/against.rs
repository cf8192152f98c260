//! Other records beside the run, figure by figure.

use record::{Against, Record};

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::against::{YOURS, conditions, name, origin, rows, theirs};
use crate::style::Ink;

/// Each record that was laid beside this one; nothing where none was.
pub(super) fn section(page: &mut Page, record: &Record) {
    record.against.iter().for_each(|against| beside(page, against));
}

fn beside(page: &mut Page, against: &Against) {
    page.heading(&format!("Beside {}: {}", against.name, against.on));
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
        page.text(Ink::Plain, &format!("Nothing there to lay beside: {}.", against.alone.join("; ")));
    }
}
