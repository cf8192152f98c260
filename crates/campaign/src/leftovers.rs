//! Restores the machine after runs that were killed.

use blame::trace::{Tracefs, remove_leftovers};
use machine::{
    RestoreError, Restored, Root,
    journal::{self, Purpose},
};

/// Undoes what killed runs left: the changes in their journals, their control groups, and their trace instances.
/// Returns one entry for each. The things of processes that still run are left alone.
///
/// # Errors
/// If it is unknown which processes run. Nothing is changed then.
pub fn restore(root: &Root) -> Result<Vec<Restored>, RestoreError> {
    Ok(with_traces(journal::restore(root)?))
}

/// Like [`restore`], and also undoes the changes that remain until the user restores them, such as the gravity of the EVL
/// core's clock.
///
/// # Errors
/// As for [`restore`].
pub fn restore_all(root: &Root) -> Result<Vec<Restored>, RestoreError> {
    Ok(with_traces(journal::restore_all(root)?))
}

/// Removes the traces of killed runs, too.
fn with_traces(mut restored: Vec<Restored>) -> Vec<Restored> {
    // Without the right to trace, or without tracefs, there is nothing to remove.
    if let Ok(tracefs) = Tracefs::open() {
        let traces = remove_leftovers(&tracefs).into_iter();
        restored.extend(traces.map(|(process, put_back)| Restored { process, purpose: Purpose::Trace, put_back }));
    }
    restored
}
