//! Real-time policies of the threads of interrupts, for a run.

use std::io;

use record::Setting;
use sys::sched::{Policy, PolicyError};
use thiserror::Error;

use crate::{Root, journal::Undo, nic::Thread, system_ops::SystemOps, tasks};

/// Error: a policy could not be changed.
#[derive(Debug, Error)]
pub enum ThreadPolicyError {
    /// A thread has a policy that could not be restored.
    #[error("{thread} is scheduled as `{policy}`, which could not be restored ({source}): sudo chrt -f -p 50 {id}")]
    Unknown {
        /// Name of the thread.
        thread: String,
        /// Thread id.
        id: u32,
        /// Its policy.
        policy: String,
        /// The reason.
        source: PolicyError,
    },
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

/// Threads as they were before, and the policy that they get.
#[derive(Debug)]
pub(super) struct ThreadPolicies {
    threads: Vec<Thread>,
    policy: Policy,
}

impl ThreadPolicies {
    /// Threads whose policies can be restored.
    pub(super) fn of(threads: Vec<Thread>, policy: Policy) -> Result<Self, ThreadPolicyError> {
        for thread in &threads {
            let (name, policy) = (thread.name.clone(), thread.scheduled());
            let unknown = |source| ThreadPolicyError::Unknown { thread: name, id: thread.id, policy, source };
            thread.scheduled().parse::<Policy>().map_err(unknown)?;
        }
        Ok(Self { threads, policy })
    }

    /// The entries for the journal. A thread that has ended has none.
    pub(super) fn undo(&self, root: &Root) -> Vec<Undo> {
        let undo = |thread: &Thread| {
            Some(Undo::Policy {
                thread: thread.id,
                start_ticks: tasks::start_ticks(root, &thread.id.to_string())?,
                name: thread.name.clone(),
                before: thread.scheduled(),
                during: self.policy.to_string(),
            })
        };
        self.threads.iter().filter_map(undo).collect()
    }

    /// Changes the policies, after the journal has their entries.
    pub(super) fn apply(&self, ops: &dyn SystemOps) -> Result<(), ThreadPolicyError> {
        let during = self.policy.to_string();
        for Thread { id, name, .. } in self.threads.iter().filter(|thread| thread.scheduled() != during) {
            let refused = |source| ThreadPolicyError::Refused { thread: name.clone(), during: during.clone(), source };
            ops.set_policy(*id, self.policy).map_err(refused)?;
        }
        Ok(())
    }

    /// The policy of each thread before, during and after; `owner` is the interface or source that they serve.
    pub(super) fn settings(&self, root: &Root, owner: &str) -> Vec<Setting> {
        let setting = |thread: &Thread| Setting {
            name: format!("{owner} {}", thread.name),
            before: thread.scheduled(),
            during: self.policy.to_string(),
            after: Thread::of(root, thread.id).map(|thread| thread.scheduled()),
        };
        self.threads.iter().map(setting).collect()
    }
}
