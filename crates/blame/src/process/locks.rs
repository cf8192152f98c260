//! The waits of a thread for locks: who held them, and what kept the holders from releasing them.

use std::cmp::Reverse;

use record::{HeldLock, LOCKS_KEPT, LockPreempter, LockWait, LockWaits};

use super::{
    calls::{Lock, Scope},
    history::{Activity, Interval},
    selection::RunConfig,
};
use crate::Task;

/// Maximum number of distinct locks that are kept per thread; all further ones are dropped from the list.
const ENTRIES: usize = 64;
/// The largest number of holders that are followed for one wait.
const MAX_HOLDERS: u64 = 64;

/// A wait for a lock that has not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitsForLock {
    pub lock: Lock,
    /// Since when, ns on CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// The system call that waits; empty if it is not traced.
    pub call: &'static str,
}

/// One wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub lock: Lock,
    /// The system call that waited; empty if it is not traced.
    pub call: &'static str,
    /// The last holder; `None` if it is unknown.
    pub holder: Option<Task>,
    pub waited_ns: u64,
    ran_ns: u64,
    holder_waited_ns: u64,
    /// Time in which the holders of this lock slept, or waited for events, ns; part of `holder_waited_ns`.
    slept_ns: u64,
    unknown_ns: u64,
    /// The threads that kept a holder off the CPU.
    off_cpu: Vec<OffCpu>,
    /// Number of threads that held the lock.
    pub holders: u64,
    /// Number of holders that were followed, also of other locks.
    followed: u64,
}

/// A time in which a holder was ready to run, but had no CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OffCpu {
    /// The holder.
    kept: Task,
    /// The thread that ran instead; `None` if it is unknown.
    by: Option<Task>,
    ns: u64,
    /// The locks from that of the wait to that of `kept`.
    locks: Vec<Held>,
}

/// A lock with its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    lock: Lock,
    by: Task,
}

/// A thread that may have held a lock. Its priority is its own one.
pub(super) struct Holder<'a> {
    pub task: Task,
    /// What it did until the end of the wait, the newest first.
    pub intervals: Box<dyn Iterator<Item = Interval> + 'a>,
}

impl Wait {
    /// A wait until `to_ns`, which the thread with the id `last` ended. `holder` returns what a thread did between two
    /// times.
    pub fn explain<'a>(
        waits: WaitsForLock,
        to_ns: u64,
        last: Option<u32>,
        holder: &impl Fn(u32, u64, u64) -> Option<Holder<'a>>,
    ) -> Self {
        let WaitsForLock { lock, since_ns, call } = waits;
        let mut wait = Self {
            lock,
            call,
            holder: None,
            waited_ns: to_ns.saturating_sub(since_ns),
            ran_ns: 0,
            holder_waited_ns: 0,
            slept_ns: 0,
            unknown_ns: 0,
            off_cpu: Vec::new(),
            holders: 0,
            followed: 0,
        };
        wait.add_holders(&[], lock, last, (since_ns, to_ns), holder);
        wait
    }

    /// Adds the time between two points, in which threads held `lock` one after the other; the last one is `last`.
    /// `above` are the locks whose holders waited for this one.
    fn add_holders<'a>(
        &mut self,
        above: &[Held],
        lock: Lock,
        last: Option<u32>,
        (from_ns, to_ns): (u64, u64),
        holder: &impl Fn(u32, u64, u64) -> Option<Holder<'a>>,
    ) {
        let (mut next, mut until_ns) = (last, to_ns);
        while let Some(held) = next.take().and_then(|tid| holder(tid, from_ns, until_ns)) {
            if self.followed == MAX_HOLDERS {
                break;
            }
            self.followed += 1;
            if above.is_empty() {
                self.holder.get_or_insert(held.task);
                self.holders += 1;
            }
            let locks = [above, &[Held { lock, by: held.task }]].concat();
            for interval in held.intervals {
                self.unknown_ns += until_ns.saturating_sub(interval.to_ns);
                until_ns = interval.to_ns;
                match interval.activity {
                    // Before that, the other thread held the lock.
                    Activity::TookLock { lock: taken, from } if taken.is(&lock) => {
                        next = from;
                        break;
                    }
                    Activity::TookLock { lock: taken, from: from @ Some(_) } => {
                        self.add_holders(&locks, taken, from, (interval.from_ns, interval.to_ns), holder);
                    }
                    Activity::Slept if above.is_empty() => {
                        self.slept_ns += interval.to_ns - interval.from_ns;
                        self.holder_waited_ns += interval.to_ns - interval.from_ns;
                    }
                    activity => self.add(&locks, held.task, activity, interval.to_ns - interval.from_ns),
                }
                until_ns = interval.from_ns;
            }
        }
        self.unknown_ns += until_ns.saturating_sub(from_ns);
    }

    fn add(&mut self, locks: &[Held], holder: Task, activity: Activity, ns: u64) {
        match activity {
            Activity::Ran => self.ran_ns += ns,
            Activity::NoCpu { by } => self.add_off_cpu(locks, holder, by, ns),
            Activity::Slept | Activity::Waited | Activity::TookLock { .. } => self.holder_waited_ns += ns,
            Activity::Unknown => self.unknown_ns += ns,
        }
    }

    fn add_off_cpu(&mut self, locks: &[Held], kept: Task, by: Option<Task>, ns: u64) {
        let by_tid = by.map(|by| by.pid);
        match self.off_cpu.iter_mut().find(|off| off.kept.pid == kept.pid && off.by.map(|by| by.pid) == by_tid) {
            Some(off) => off.ns += ns,
            None => self.off_cpu.push(OffCpu { kept, by, ns, locks: locks.to_vec() }),
        }
    }

    /// Time in which threads of lower priority than `priority` kept a holder off the CPU, ns.
    fn inverted_ns(&self, priority: i32) -> u64 {
        self.off_cpu.iter().filter(|off| off.inverts(priority)).map(|off| off.ns).sum()
    }

    /// The thread of lower priority than `priority` that kept a holder off the CPU for the longest time.
    pub fn inverted_by(&self, priority: i32) -> Option<Task> {
        self.off_cpu.iter().filter(|off| off.inverts(priority)).max_by_key(|off| off.ns)?.by
    }

    /// True if its holders slept, or waited for events, most of the time.
    pub fn holder_slept(&self) -> bool {
        self.slept_ns > self.waited_ns / 2
    }

    /// The wait as a thread with this priority sees it.
    pub fn to_record(&self, priority: i32, config: &RunConfig) -> LockWait {
        // A thread that inverts the priorities is named before others.
        let preempter = self.off_cpu.iter().max_by_key(|off| (off.inverts(priority), off.ns));
        LockWait {
            lock: address(self.lock),
            call: if self.lock.scope == Scope::Kernel { self.call.to_owned() } else { String::new() },
            inherits_priority: self.lock.inherits_priority,
            priority,
            holder: self.holder.map(|task| task.comm.to_string()).unwrap_or_default(),
            holder_tid: self.holder.map_or(0, |task| task.pid),
            holder_priority: self.holder.map_or(0, |task| task.priority),
            preempter: preempter.and_then(|off| off.to_record(config)),
            waited_ns: self.waited_ns,
            inverted_ns: self.inverted_ns(priority),
            ran_ns: self.ran_ns,
            holder_waited_ns: self.holder_waited_ns,
            unknown_ns: self.unknown_ns,
            holders: self.holders,
        }
    }
}

/// The address of a lock in the program; empty for a lock of the kernel, whose addresses are secret.
fn address(lock: Lock) -> String {
    if lock.scope == Scope::Kernel { String::new() } else { format!("{:#x}", lock.address) }
}

impl OffCpu {
    /// True if the holder's CPU was taken by a thread of lower priority than `priority`, that of the waiting thread.
    fn inverts(&self, priority: i32) -> bool {
        self.by.is_some_and(|by| by.pid != 0 && by.priority > priority)
    }

    fn to_record(&self, config: &RunConfig) -> Option<LockPreempter> {
        let by = self.by?;
        let held = |held: &Held| HeldLock {
            lock: address(held.lock),
            inherits_priority: held.lock.inherits_priority,
            holder: held.by.comm.to_string(),
            holder_tid: held.by.pid,
        };
        Some(LockPreempter {
            comm: by.comm.to_string(),
            tid: by.pid,
            priority: by.priority,
            own: config.is_own(by.pid),
            kept: self.kept.comm.to_string(),
            ns: self.ns,
            locks: self.locks.iter().map(held).collect(),
        })
    }
}

/// The waits of one thread, summed up by lock. Locks of the kernel are told apart by the system call.
#[derive(Debug, Clone, Default)]
pub(super) struct LockSums(Vec<LockWaits>);

impl LockSums {
    /// Adds a wait.
    pub fn add(&mut self, wait: &LockWait) {
        let is_same = |sum: &&mut LockWaits| sum.worst.lock == wait.lock && sum.worst.call == wait.call;
        let rank = |wait: &LockWait| (wait.inverted_ns, wait.waited_ns);
        if let Some(sum) = self.0.iter_mut().find(is_same) {
            sum.count += 1;
            sum.waited_ns += wait.waited_ns;
            sum.inverted_ns += wait.inverted_ns;
            sum.longest_ns = sum.longest_ns.max(wait.waited_ns);
            if rank(wait) > rank(&sum.worst) {
                sum.worst = wait.clone();
            }
        } else if self.0.len() < ENTRIES {
            let LockWait { waited_ns, inverted_ns, .. } = *wait;
            let worst = wait.clone();
            self.0.push(LockWaits { count: 1, waited_ns, longest_ns: waited_ns, inverted_ns, worst });
        }
    }

    /// Drops the waits at an address that turned out to be no lock. Returns true if there were any.
    pub fn forget(&mut self, address: u64) -> bool {
        let (lock, before) = (format!("{address:#x}"), self.0.len());
        self.0.retain(|sum| sum.worst.lock != lock);
        self.0.len() < before
    }

    /// The locks with the longest total, the longest first.
    pub fn to_record(&self) -> Vec<LockWaits> {
        let mut all = self.0.clone();
        all.sort_by_key(|sum| Reverse(sum.waited_ns));
        all.truncate(LOCKS_KEPT);
        all
    }
}
