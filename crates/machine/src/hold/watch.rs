//! Watches, during a run, the settings that the run has changed. A change that was undone between two checks is not seen.

use std::rc::Rc;

use crate::{
    journal::{Journal, Undo, present},
    nic::Thread,
    system_ops::SystemOps,
    tasks,
};

/// The settings of a hold, with the values that the run gave them.
#[derive(Debug, Clone)]
pub struct SettingsWatch {
    ops: Rc<dyn SystemOps>,
    settings: Vec<(Undo, String)>,
}

impl SettingsWatch {
    /// Begins to watch the settings of a journal.
    pub(crate) fn start(journal: &Journal) -> Self {
        let ops = journal.ops();
        let with_value = |undo: &Undo| Some((undo.clone(), value(&*ops, undo)?));
        Self { settings: journal.entries().iter().filter_map(with_value).collect(), ops }
    }

    /// Returns the changes since the last check in words.
    pub fn check(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        for (undo, last) in &mut self.settings {
            // A device that is gone has its own reason.
            let Some(now) = value(&*self.ops, undo).filter(|now| now != last) else { continue };
            found.push(format!("somebody changed {} from `{last}` to `{now}`", name(undo)));
            *last = now;
        }
        found
    }
}

/// The present value of a setting; `None` if it cannot be read, or is watched with the shield.
fn value(ops: &dyn SystemOps, undo: &Undo) -> Option<String> {
    match undo {
        Undo::File { path, .. } => ops.root().read(path).map(|text| present(&text).to_owned()),
        Undo::Nic { interface, parameter, .. } => ops.nic_parameter(interface, *parameter).ok().map(|v| v.to_string()),
        Undo::Cache(share) => Some(share.value(ops.root())),
        Undo::Policy { thread, start_ticks, .. } => {
            let is_same = tasks::start_ticks(ops.root(), &thread.to_string()) == Some(*start_ticks);
            Thread::of(ops.root(), *thread).filter(|_| is_same).map(|thread| thread.scheduled())
        }
        Undo::Created { .. } | Undo::Folder { .. } | Undo::Controller { .. } | Undo::Group { .. } | Undo::Masks(_) => {
            None
        }
    }
}

fn name(undo: &Undo) -> String {
    match undo {
        Undo::Nic { interface, parameter, .. } => format!("{} of {interface}", parameter.name()),
        Undo::Cache(_) => "the share of the cache".to_owned(),
        Undo::Policy { name, .. } => format!("the policy of {name}"),
        other => format!("/{}", other.file()),
    }
}
