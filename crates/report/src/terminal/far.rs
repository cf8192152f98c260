//! The far end of a measurement between two machines.

use record::Record;

use super::machine::{list, of_machine, worst_findings};
use super::page::Page;
use super::series::proofs;
use crate::far::{answered, clock, rights, set, title};
use crate::shielding;

/// Machine, settings, clock, loads and answers of the far end; nothing for a run on one machine.
pub(super) fn section(page: &mut Page, record: &Record) {
    let Some(far) = &record.far else { return };
    page.heading(&title(far));
    let [model, kernel, configuration] = of_machine(&far.machine);
    let others = [
        ("shield", shielding::how(far.shielding.as_ref())),
        ("stayed", shielding::remaining(far.shielding.as_ref()).join("; ")),
        ("set", set(far)),
        ("rights", rights(record, far)),
        ("clock", clock(&far.clock)),
        ("answers", answered(record, far)),
        ("lost", far.lost.clone().unwrap_or_default()),
    ];
    list(page, &[model, kernel, configuration]);
    list(page, &others);
    proofs(page, &far.loads);
    worst_findings(page, &far.findings);
}
