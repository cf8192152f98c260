//! All changes that a run makes on the machine: one list of guards, undone in reverse order.
//!
//! Each guard writes its change to the journal before it makes it, so `punctual restore` can undo it after a crash.

use blame::{Timerlat, Watch};
use machine::{AwakeHold, IrqPriorityHold, NicHold, Shield};
use record::Record;

use crate::shielded;

/// One change; dropping it undoes it.
#[derive(Debug)]
pub enum Change {
    /// CPUs that are kept free of other work.
    Shield(Box<Shield>),
    /// The kernel's trace.
    Trace(Box<Watch>),
    /// The kernel's timerlat tracer.
    Timerlat(Box<Timerlat>),
    /// CPUs that are kept out of their idle states.
    Awake(AwakeHold),
    /// Settings of a network interface.
    Nic(NicHold),
    /// Priority of the threads that serve a network interface.
    IrqPriority(IrqPriorityHold),
}

/// The changes, in the order of their creation.
#[derive(Debug, Default)]
pub struct Changes(Vec<Change>);

/// The changes that a phase uses.
pub struct InUse<'a> {
    /// The shield.
    pub shield: Option<&'a Shield>,
    /// The trace.
    pub trace: Option<&'a mut Watch>,
    /// The timerlat tracer.
    pub timerlat: Option<&'a mut Timerlat>,
}

impl Changes {
    /// Adds a change that was just made.
    pub fn push(&mut self, change: Change) {
        self.0.push(change);
    }

    /// The changes that a phase uses.
    pub fn in_use(&mut self) -> InUse<'_> {
        let mut found = InUse { shield: None, trace: None, timerlat: None };
        for change in &mut self.0 {
            match change {
                Change::Shield(shield) => found.shield = Some(shield),
                Change::Trace(watch) => found.trace = Some(watch),
                Change::Timerlat(timerlat) => found.timerlat = Some(timerlat),
                Change::Awake(_) | Change::Nic(_) | Change::IrqPriority(_) => {}
            }
        }
        found
    }

    /// The method that keeps the CPUs awake; `None` if they are not kept awake.
    pub fn how_awake(&self) -> Option<&str> {
        self.0.iter().find_map(|change| if let Change::Awake(hold) = change { Some(hold.method()) } else { None })
    }

    /// Stops the timerlat tracer before the other changes are undone.
    pub fn stop_timerlat(&mut self) {
        self.0.retain(|change| !matches!(change, Change::Timerlat(_)));
    }

    /// Undoes all changes, the last one first. Adds the settings that were applied, and all failures to undo, to the
    /// record.
    pub fn undo(mut self, record: &mut Record) {
        while let Some(change) = self.0.pop() {
            match change {
                Change::Shield(shield) => shielded::release(record, *shield),
                Change::Trace(watch) => drop(watch),
                Change::Timerlat(timerlat) => drop(timerlat),
                Change::Awake(hold) => record.settings.extend(hold.release()),
                Change::Nic(hold) => record.settings.extend(hold.release()),
                Change::IrqPriority(hold) => record.settings.extend(hold.release()),
            }
        }
    }
}

impl Drop for Changes {
    /// Undoes the changes in the same order after an error.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}
