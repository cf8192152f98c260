//! The far end of a measurement between two machines.

use record::Record;

use super::facts::{self, Fact, FindingView};
use crate::far::{answered, clock, rights, set, title};
use crate::terminal::series::proof;

/// The far end, as the template sees it.
pub struct FarView<'a> {
    /// The title of the section.
    pub title: String,
    /// Clock, rights, answers and settings, then the facts about the machine.
    pub facts: Vec<Fact>,
    /// Findings that may cause lateness.
    pub open: Vec<FindingView<'a>>,
}

/// The section about the far end; `None` for a run on one machine.
pub fn section(record: &Record) -> Option<FarView<'_>> {
    let far = record.far.as_deref()?;
    let mut all = vec![
        ("clock", clock(&far.clock)),
        ("granted", rights(record, far)),
        ("answered", answered(record, far)),
        ("lost", far.lost.clone().unwrap_or_default()),
        ("set for the run", set(far)),
    ];
    all.extend(facts::shielding(far.shielding.as_ref()));
    all.extend(far.loads.iter().map(|load| (if load.ran { "load" } else { "did not run" }, proof(load))));
    all.retain(|(_, text)| !text.is_empty());
    all.extend(facts::machine(&far.machine));
    Some(FarView { title: title(far), facts: all, open: facts::findings(&far.findings).0 })
}
