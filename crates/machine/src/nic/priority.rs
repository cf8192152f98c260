//! The threads that serve an interface, at another priority for a run, and as they were afterwards, also after a crash.

use std::{io, net::IpAddr};

use record::Setting;
use sys::{
    link::Links,
    sched::{Policy, PolicyError},
};
use thiserror::Error;

use super::{Answers, Folder, NicError, Thread, find, interrupts, netdev};
use crate::{
    Root,
    hands::Hands,
    journal::{Journal, JournalError, Purpose, Undo},
    tasks,
};

/// Why threads were not given another priority.
#[derive(Debug, Error)]
pub enum IrqPriorityError {
    /// There is no such interface, or it is no wired one.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// Handlers interrupt whatever runs, at no priority.
    #[error(
        "this kernel serves the interrupts of {0} without threads, so nothing has a priority: boot it with `threadirqs` on its command line, or boot one with PREEMPT_RT"
    )]
    NotThreaded(String),
    /// Software makes it, or its driver is silent.
    #[error("no interrupt is known to be that of {0}, as with an interface that software makes: go over a NIC")]
    NoInterrupt(String),
    /// The kernel's threads cannot be seen.
    #[error("the kernel's threads cannot be seen from here: run as root, and outside of a container")]
    Hidden,
    /// A policy that could not be put back.
    #[error("{thread} is scheduled as `{policy}`, which could not be put back ({source}): sudo chrt -f -p 50 {id}")]
    Strange {
        /// Its name.
        thread: String,
        /// Its number.
        id: u32,
        /// Its policy.
        policy: String,
        /// Why.
        source: PolicyError,
    },
    /// What is to be put back could not be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused.
    #[error("cannot run {thread} as {during} ({source}): run as root")]
    Refused {
        /// Its name.
        thread: String,
        /// How it was to be scheduled.
        during: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// Why no interface leads to an address.
#[derive(Debug, Error)]
pub enum WayError {
    /// It is this machine itself.
    #[error("{0} is this machine, and what stays here goes over no network card: name another machine")]
    Here(IpAddr),
    /// No route leads there.
    #[error("no way leads to {address} ({source}): compare with `ip route get {address}`")]
    None {
        /// The address.
        address: IpAddr,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// The interface that datagrams to this address go out on.
///
/// # Errors
/// [`WayError`].
pub fn way_to(address: IpAddr) -> Result<String, WayError> {
    let way = Links::open().and_then(|mut links| links.towards(address));
    let link = way.map_err(|source| WayError::None { address, source })?;
    if link.hardware == super::ARPHRD_LOOPBACK { Err(WayError::Here(address)) } else { Ok(link.name) }
}

/// Threads held at a priority until released or dropped; the journal puts their policies back after SIGKILL.
#[derive(Debug)]
pub struct IrqPriorityHold {
    hands: Box<dyn Hands>,
    journal: Journal,
    interface: String,
    /// As they were.
    threads: Vec<Thread>,
    during: String,
}

impl IrqPriorityHold {
    /// Gives the threads that serve an interface, those of its interrupts and those that poll it, the policy SCHED_FIFO at
    /// this priority, 1 to 99.
    ///
    /// # Errors
    /// [`IrqPriorityError`]; nothing stays changed then.
    pub fn take(root: &Root, interface: &str, priority: u8) -> Result<Self, IrqPriorityError> {
        Self::take_with(Box::new(root.clone()), interface, Policy::Fifo(priority))
    }

    fn take_with(hands: Box<dyn Hands>, interface: &str, policy: Policy) -> Result<Self, IrqPriorityError> {
        let root = hands.root();
        let threads = serving(root, interface)?;
        for thread in &threads {
            let (name, policy) = (thread.name.clone(), thread.scheduled());
            let strange = |source| IrqPriorityError::Strange { thread: name, id: thread.id, policy, source };
            thread.scheduled().parse::<Policy>().map_err(strange)?;
        }
        let during = policy.to_string();
        let mut journal = Journal::begin(root, Purpose::IrqPriority)?;
        let undo = |thread: &Thread| {
            Some(Undo::Policy {
                thread: thread.id,
                start_ticks: tasks::start_ticks(root, &thread.id.to_string())?,
                name: thread.name.clone(),
                before: thread.scheduled(),
                during: during.clone(),
            })
        };
        journal.promise(threads.iter().filter_map(undo))?;
        // From here on, dropping it restores.
        let hold = Self { hands, journal, interface: interface.to_owned(), threads, during };
        for Thread { id, name, .. } in hold.threads.iter().filter(|thread| thread.scheduled() != hold.during) {
            let refused =
                |source| IrqPriorityError::Refused { thread: name.clone(), during: hold.during.clone(), source };
            hold.hands.set_policy(*id, policy).map_err(refused)?;
        }
        Ok(hold)
    }

    /// Puts everything back, and tells what was set, read back afterwards.
    #[must_use]
    pub fn release(self) -> Vec<Setting> {
        let _ = self.journal.put_back(&*self.hands);
        let setting = |thread: &Thread| Setting {
            name: format!("{} {}", self.interface, thread.name),
            before: thread.scheduled(),
            during: self.during.clone(),
            after: Thread::of(self.hands.root(), thread.id).map(|thread| thread.scheduled()),
        };
        self.threads.iter().map(setting).collect()
    }
}

impl Drop for IrqPriorityHold {
    fn drop(&mut self) {
        let _ = self.journal.put_back(&*self.hands);
    }
}

/// The threads that serve an interface; at least one.
fn serving(root: &Root, interface: &str) -> Result<Vec<Thread>, IrqPriorityError> {
    let mut answers = Answers::of(root);
    let (link, _) = find(root, &mut answers, interface)?;
    let napis = netdev::napis(&mut answers, &link);
    match interrupts::serving(&Folder::of(root, &link), &napis, interface) {
        Some(threads) if !threads.is_empty() => Ok(threads),
        _ if !interrupts::sees_all_tasks(root) => Err(IrqPriorityError::Hidden),
        Some(_) => Err(IrqPriorityError::NotThreaded(interface.to_owned())),
        None => Err(IrqPriorityError::NoInterrupt(interface.to_owned())),
    }
}

#[cfg(test)]
mod tests;
