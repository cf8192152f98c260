//! The CPUs of programs: all programs that may use the CPUs for real-time work and others leave the former. Programs that
//! are pinned to CPUs for real-time work stay there, and new ones can be pinned to them.

use record::counted;

use crate::{
    CpuList, Root, cpus,
    journal::{self, Journal, JournalError, Masks, Undo},
    shield::{Before, narrow},
    tasks::{self, Task},
};

/// The value if no program is left to move.
pub(super) const NONE: &str = "none";
/// Limit for the names in a reason.
const NAMES: usize = 3;

/// Programs that the kernel did not move.
pub(super) struct Stayed {
    pub reason: String,
    /// True if nothing could be moved without another right.
    pub has_no_right: bool,
}

/// The programs that may use CPUs among `freed` and others.
fn movable(root: &Root, freed: &CpuList) -> Vec<Task> {
    let is_movable = |task: &Task| {
        !task.is_fixed && !task.cpus.intersection(freed).is_empty() && !task.cpus.difference(freed).is_empty()
    };
    tasks::others(root).into_iter().filter(is_movable).collect()
}

/// The CPUs among `freed` that programs may use together with other CPUs.
pub(super) fn value(root: &Root, freed: &CpuList) -> String {
    let used =
        movable(root, freed).iter().fold(CpuList::new(), |used, task| used.union(&task.cpus.intersection(freed)));
    if used.is_empty() { NONE.to_owned() } else { used.to_string() }
}

/// The other CPUs that programs were moved off by a tuning in force: programs that seem to be pinned to `freed` may not be.
pub(super) fn moved_off_others(root: &Root, freed: &CpuList) -> Option<CpuList> {
    journal::kept_masks(root).into_iter().map(|masks| masks.shielded).find(|shielded| shielded != freed)
}

/// The entry of the journal that moves all programs back.
pub(super) fn undo(root: &Root, freed: &CpuList) -> Undo {
    let (online, before) = (cpus::online_cpus(root), Before::read(root).masks());
    Undo::Masks(Masks { shielded: freed.clone(), online, by_groups: false, keeps_pinned: true, before })
}

/// Moves the programs of the last entry of the journal, which is that of [`undo`], and programs that start meanwhile. Returns
/// the programs that stay.
pub(super) fn move_away(journal: &mut Journal, freed: &CpuList) -> Result<Option<Stayed>, JournalError> {
    let ops = journal.ops();
    let Some(Undo::Masks(masks)) = journal.entries().last().cloned() else { return Ok(None) };
    let moved = narrow(&*ops, journal, &masks, Before::of(&masks))?;
    let stayed = movable(ops.root(), freed);
    if stayed.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = stayed.iter().take(NAMES).map(|task| &*task.name).collect();
    let has_no_right = moved.left.iter().any(|left| left.no_right);
    let why = match () {
        () if has_no_right => "run as root",
        () if !ops.root().is_system() => "those of another machine are never moved",
        () => "the kernel refuses to move them, e.g. with a deadline policy",
    };
    let count = counted(stayed.len() as u64, "program");
    Ok(Some(Stayed { reason: format!("{count} not moved ({}): {why}", names.join(", ")), has_no_right }))
}
