//! Settings of the machine for a run (`--setting`).

use machine::{
    CpuList, Root,
    tune::{self, Choice, Lock, Refused, Setting, Tuning},
};
use record::{Caveat, Record};

use crate::{error::RunError, validity};

/// Reads the settings that the user named, before anything is changed.
///
/// # Errors
/// This machine does not have one of them, or the setting does not take its value.
pub(crate) fn wanted(choices: &[Choice], cpus: Option<&CpuList>, root: &Root) -> Result<Vec<Setting>, RunError> {
    Ok(tune::chosen(root, choices, cpus)?)
}

/// Applies the settings. If one is refused, the run becomes invalid and goes on without it.
///
/// # Errors
/// No setting can be changed now.
pub(crate) fn take(
    record: &mut Record,
    settings: &[Setting],
    lock: Option<&Lock>,
    root: &Root,
) -> Result<Option<Tuning>, RunError> {
    if settings.is_empty() {
        return Ok(None);
    }
    let tuning = match lock {
        Some(lock) => lock.apply(root, settings)?,
        None => tune::apply(root, settings)?,
    };
    for refused in tuning.refused() {
        let Refused { id, reason, is_whole, .. } = refused;
        if *is_whole {
            let text = format!("the setting {id} was not applied: {reason}");
            validity::add(record, "setting.refused", text, "follow that advice, or leave out this --setting");
        } else {
            let text = format!("a part of the setting {id} was not applied: {reason}");
            record.caveats.push(Caveat { kind: "setting.partial".to_owned(), text });
        }
    }
    Ok(Some(tuning))
}
