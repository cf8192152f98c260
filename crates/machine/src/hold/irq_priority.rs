//! Changes the priority of the threads that serve an interface for a run, and undoes it afterwards, also after a crash.

use std::{io, rc::Rc};

use record::Setting;
use sys::sched::{Policy, PolicyError};
use thiserror::Error;

use super::SettingsWatch;
use crate::{
    Root,
    journal::{Journal, JournalError, Purpose, Undo},
    nic::{self, NicError, ServingThreads, Thread},
    system_ops::SystemOps,
    tasks,
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
    /// A thread has a policy that could not be restored.
    #[error("{thread} is scheduled as `{policy}`, which could not be restored ({source}): sudo chrt -f -p 50 {id}")]
    UnknownPolicy {
        /// Name of the thread.
        thread: String,
        /// Thread id.
        id: u32,
        /// Its policy.
        policy: String,
        /// The reason.
        source: PolicyError,
    },
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused the change.
    #[error("cannot run {thread} as {during} ({source}): run as root")]
    Refused {
        /// Name of the thread.
        thread: String,
        /// The requested policy.
        during: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Threads with a changed priority, until released or dropped; after SIGKILL the journal restores their policies.
#[derive(Debug)]
pub struct IrqPriorityHold {
    journal: Journal,
    interface: String,
    /// The threads as they were before.
    threads: Vec<Thread>,
    during: String,
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
        let threads = serving(ops.root(), interface)?;
        for thread in &threads {
            let (name, policy) = (thread.name.clone(), thread.scheduled());
            let unknown_policy =
                |source| IrqPriorityError::UnknownPolicy { thread: name, id: thread.id, policy, source };
            thread.scheduled().parse::<Policy>().map_err(unknown_policy)?;
        }
        let during = policy.to_string();
        let mut journal = Journal::begin(ops, Purpose::IrqPriority)?;
        let ops = journal.ops();
        let undo = |thread: &Thread| {
            Some(Undo::Policy {
                thread: thread.id,
                start_ticks: tasks::start_ticks(ops.root(), &thread.id.to_string())?,
                name: thread.name.clone(),
                before: thread.scheduled(),
                during: during.clone(),
            })
        };
        journal.record(threads.iter().filter_map(undo))?;
        let hold = Self { journal, interface: interface.to_owned(), threads, during };
        for Thread { id, name, .. } in hold.threads.iter().filter(|thread| thread.scheduled() != hold.during) {
            let refused =
                |source| IrqPriorityError::Refused { thread: name.clone(), during: hold.during.clone(), source };
            ops.set_policy(*id, policy).map_err(refused)?;
        }
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
        let setting = |thread: &Thread| Setting {
            name: format!("{} {}", self.interface, thread.name),
            before: thread.scheduled(),
            during: self.during.clone(),
            after: Thread::of(self.journal.ops().root(), thread.id).map(|thread| thread.scheduled()),
        };
        self.threads.iter().map(setting).collect()
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
