//! Changes the priority of the threads that serve an interface for a run, and undoes it afterwards, also after a crash.

use std::rc::Rc;

use record::Setting;
use sys::sched::Policy;
use thiserror::Error;

use super::{SettingsWatch, ThreadPolicyError, thread_policies::ThreadPolicies};
use crate::{
    Root,
    journal::{Journal, JournalError, Purpose},
    nic::{self, NicError, ServingThreads, Thread},
    system_ops::SystemOps,
};

/// Error: the priority of threads could not be changed.
#[derive(Debug, Error)]
pub enum IrqPriorityError {
    /// The interface cannot be used.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// The kernel has no interrupt threads, and interrupt handlers have no priority.
    #[error(
        "this kernel handles the interrupts of {0} without threads, which have no priority: boot with `threadirqs`, or use a PREEMPT_RT kernel"
    )]
    NotThreaded(String),
    /// A software interface, or a driver whose interrupts are not known.
    #[error("no interrupt of {0} is known, e.g. because it is a software interface: use a NIC")]
    NoInterrupt(String),
    /// Kernel threads are not visible.
    #[error("kernel threads are not visible: run as root and outside of a container")]
    Hidden,
    /// A policy could not be changed.
    #[error(transparent)]
    Policy(#[from] ThreadPolicyError),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Threads with a changed priority, until released or dropped; after SIGKILL the journal restores their policies.
#[derive(Debug)]
pub struct IrqPriorityHold {
    journal: Journal,
    interface: String,
    threads: ThreadPolicies,
}

impl IrqPriorityHold {
    /// Gives the threads that serve an interface, those of its interrupts and those that poll it, SCHED_FIFO with this
    /// priority, 1 to 99.
    ///
    /// # Errors
    /// [`IrqPriorityError`]; nothing stays changed then.
    pub fn take(root: &Root, interface: &str, priority: u8) -> Result<Self, IrqPriorityError> {
        Self::take_with(Rc::new(root.clone()), interface, Policy::Fifo(priority))
    }

    fn take_with(ops: Rc<dyn SystemOps>, interface: &str, policy: Policy) -> Result<Self, IrqPriorityError> {
        let threads = ThreadPolicies::of(serving(ops.root(), interface)?, policy)?;
        let mut journal = Journal::begin(ops, Purpose::IrqPriority)?;
        let ops = journal.ops();
        journal.record(threads.undo(ops.root()))?;
        // Dropped after an error, which undoes the changes.
        let hold = Self { journal, interface: interface.to_owned(), threads };
        hold.threads.apply(&*ops)?;
        Ok(hold)
    }

    /// Begins to watch for changes by others.
    #[must_use]
    pub fn watch(&self) -> SettingsWatch {
        SettingsWatch::start(&self.journal)
    }

    /// Undoes all changes. Returns the policy of each thread before, during and after.
    #[must_use]
    pub fn release(mut self) -> Vec<Setting> {
        self.journal.restore();
        self.threads.settings(self.journal.ops().root(), &self.interface)
    }
}

/// The threads that serve an interface; at least one.
fn serving(root: &Root, interface: &str) -> Result<Vec<Thread>, IrqPriorityError> {
    match nic::serving_threads(root, interface)? {
        ServingThreads::Threads(threads) => Ok(threads),
        ServingThreads::NotThreaded => Err(IrqPriorityError::NotThreaded(interface.to_owned())),
        ServingThreads::NoInterrupt => Err(IrqPriorityError::NoInterrupt(interface.to_owned())),
        ServingThreads::Hidden => Err(IrqPriorityError::Hidden),
    }
}

#[cfg(test)]
mod tests;
