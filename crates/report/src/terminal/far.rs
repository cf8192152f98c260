//! The far end of a measurement between two machines.

use record::Record;

use super::machine::{findings_there, list, of_machine};
use super::page::Page;
use super::series::proofs;
use crate::far::{answered, clock, rights, set, title};
use crate::shielding;

/// What it is, how it was set, how its clock relates, what ran there and what it answered; nothing for a run on one machine.
pub(super) fn section(page: &mut Page, record: &Record) {
    let Some(far) = &record.far else { return };
    page.heading(&title(far));
    let [model, kernel, set_up] = of_machine(&far.machine);
    let others = [
        ("shield", shielding::how(far.shielding.as_ref())),
        ("stayed", shielding::left(far.shielding.as_ref()).join("; ")),
        ("set", set(far)),
        ("rights", rights(record, far)),
        ("clock", clock(&far.clock)),
        ("answers", answered(record, far)),
        ("lost", far.lost.clone().unwrap_or_default()),
    ];
    list(page, &[model, kernel, set_up]);
    list(page, &others);
    proofs(page, &far.loads);
    findings_there(page, &far.findings);
}
