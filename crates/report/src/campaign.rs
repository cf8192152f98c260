//! What terminal and HTML say alike of a campaign.

use analysis::format_ns;
use record::{Beside, Campaign};

/// A reference that was laid beside a campaign.
pub(crate) struct Reference {
    /// Its name.
    pub name: String,
    /// One row a scenario and role.
    pub rows: Vec<ReferenceRow>,
    /// In what the conditions differ, as a sentence.
    pub conditions: String,
}

/// A scenario beside what matches it best.
pub(crate) struct ReferenceRow {
    pub scenario: String,
    pub yours: String,
    pub theirs: String,
    pub ratio: String,
    /// The part of the reference.
    pub phase: String,
}

/// The references of a campaign, as far as it has run.
pub(crate) fn references(campaign: &Campaign) -> Vec<Reference> {
    let mut all: Vec<Reference> = Vec::new();
    for entry in &campaign.scenarios {
        for role in entry.result.iter().flat_map(|result| &result.roles) {
            let of_role = if role.role == "timer" { String::new() } else { format!(", {}", role.role) };
            let repeat = if entry.repeat > 1 { format!(" ({})", entry.repeat) } else { String::new() };
            for beside in &role.beside {
                let at = all.iter().position(|known| known.name == beside.name).unwrap_or_else(|| {
                    all.push(Reference { name: beside.name.clone(), rows: Vec::new(), conditions: conditions(beside) });
                    all.len() - 1
                });
                let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns);
                all[at].rows.push(ReferenceRow {
                    scenario: format!("{}{of_role}{repeat}", entry.name),
                    yours: time(role.max_ns),
                    theirs: time(beside.max_ns),
                    ratio: beside.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
                    phase: beside.phase.clone(),
                });
            }
        }
    }
    all
}

fn conditions(beside: &Beside) -> String {
    match &beside.differs[..] {
        [] => "No difference of conditions is known.".to_owned(),
        differs => format!("Not the same conditions; in the first: {}.", differs.join("; ")),
    }
}
