//! Restores the machine after runs that were killed.

use blame::trace::{Tracefs, remove_leftovers};
use machine::{
    Restored, Root,
    journal::{self, Purpose},
};

/// Undoes what killed runs left: the changes in their journals, their control groups, and their trace instances.
/// Returns one entry for each. The things of processes that still run are left alone.
#[must_use]
pub fn restore(root: &Root) -> Vec<Restored> {
    let mut restored = journal::restore(root);
    // Without the right to trace, or without tracefs, there is nothing to remove.
    if let Ok(tracefs) = Tracefs::open() {
        let traces = remove_leftovers(&tracefs).into_iter();
        restored.extend(traces.map(|(process, put_back)| Restored { process, purpose: Purpose::Trace, put_back }));
    }
    restored
}
