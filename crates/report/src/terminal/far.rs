//! The far end of a measurement between two machines.

use record::Record;

use super::machine::{findings_there, list, of_machine};
use super::page::Page;
use crate::far::{answered, clock, rights, title};

/// What it is, how its clock relates, what it answered; nothing for a run on one machine.
pub(super) fn section(page: &mut Page, record: &Record) {
    let Some(far) = &record.far else { return };
    page.heading(&title(far));
    let [model, kernel, set_up] = of_machine(&far.machine);
    let others = [
        ("rights", rights(record, far)),
        ("clock", clock(&far.clock)),
        ("answers", answered(record, far)),
        ("lost", far.lost.clone().unwrap_or_default()),
    ];
    list(page, &[model, kernel, set_up]);
    list(page, &others);
    findings_there(page, &far.findings);
}
