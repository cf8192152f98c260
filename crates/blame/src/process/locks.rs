//! The waits of a thread for locks of the program: who held them, and what kept the holders from releasing them.

use std::cmp::Reverse;

use record::{LOCKS_KEPT, LockPreempter, LockWait};

use super::{
    calls::Lock,
    history::{Activity, Interval},
};
use crate::Task;

/// Maximum number of distinct waits that are kept per thread; all further ones are dropped from the list.
const ENTRIES: usize = 64;
/// The longest chain of holders that is followed.
const MAX_HOLDERS: u64 = 64;

/// One wait for a lock of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub lock: Lock,
    /// The last holder; `None` if it is unknown.
    pub holder: Option<Task>,
    pub waited_ns: u64,
    pub ran_ns: u64,
    pub holder_waited_ns: u64,
    pub unknown_ns: u64,
    /// The threads that kept a holder off the CPU.
    pub off_cpu: Vec<OffCpu>,
    /// Number of threads that held the lock.
    pub holders: u64,
}

/// A time in which a holder was ready to run, but had no CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffCpu {
    /// The holder.
    pub kept: Task,
    /// The thread that ran instead; `None` if it is unknown.
    pub by: Option<Task>,
    pub ns: u64,
}

/// A thread that may have held a lock.
pub(super) struct Holder<'a> {
    pub task: Task,
    /// What it did until the end of the wait, the newest first.
    pub intervals: Box<dyn Iterator<Item = Interval> + 'a>,
}

impl Wait {
    /// A wait of `from_ns` to `to_ns`, which the thread with the id `last` ended. `holder` returns what a thread did
    /// between two times.
    pub fn explain<'a>(
        lock: Lock,
        (from_ns, to_ns): (u64, u64),
        last: Option<u32>,
        holder: &impl Fn(u32, u64, u64) -> Option<Holder<'a>>,
    ) -> Self {
        let mut wait = Self {
            lock,
            holder: None,
            waited_ns: to_ns.saturating_sub(from_ns),
            ran_ns: 0,
            holder_waited_ns: 0,
            unknown_ns: 0,
            off_cpu: Vec::new(),
            holders: 0,
        };
        // The holders of the lock, and of other locks that these waited for, the last one first.
        let (mut next, mut until_ns, mut followed) = (last, to_ns, 0);
        while let Some(held) = next.take().and_then(|tid| holder(tid, from_ns, until_ns)) {
            wait.holder.get_or_insert(held.task);
            wait.holders = wait.holders.max(1);
            for interval in held.intervals {
                if interval.to_ns < until_ns {
                    wait.unknown_ns += until_ns - interval.to_ns;
                }
                until_ns = interval.to_ns;
                if let Activity::TookLock { lock: other, from } = interval.activity
                    && followed < MAX_HOLDERS
                {
                    followed += 1;
                    wait.holders += u64::from(other.address == lock.address);
                    next = from;
                    break;
                }
                wait.add(held.task, interval.activity, interval.to_ns - interval.from_ns);
                until_ns = interval.from_ns;
            }
        }
        wait.unknown_ns += until_ns.saturating_sub(from_ns);
        wait
    }

    fn add(&mut self, holder: Task, activity: Activity, ns: u64) {
        match activity {
            Activity::Ran => self.ran_ns += ns,
            Activity::NoCpu { by } => self.add_off_cpu(OffCpu { kept: holder, by, ns }),
            Activity::Waited | Activity::TookLock { .. } => self.holder_waited_ns += ns,
            Activity::Unknown => self.unknown_ns += ns,
        }
    }

    fn add_off_cpu(&mut self, new: OffCpu) {
        let tids = |off: &OffCpu| (off.kept.pid, off.by.map(|by| by.pid));
        match self.off_cpu.iter_mut().find(|off| tids(off) == tids(&new)) {
            Some(off) => off.ns += new.ns,
            None => self.off_cpu.push(new),
        }
    }

    /// Time in which threads of lower priority than `priority` kept a holder off the CPU, ns.
    fn inverted_ns(&self, priority: i32) -> u64 {
        self.off_cpu.iter().filter(|off| off.inverts(priority)).map(|off| off.ns).sum()
    }

    /// The longest time in which a thread of lower priority than `priority` kept a holder off the CPU.
    pub fn inversion(&self, priority: i32) -> Option<OffCpu> {
        self.off_cpu.iter().filter(|off| off.inverts(priority)).max_by_key(|off| off.ns).copied()
    }

    /// The wait as a thread with this priority sees it.
    pub fn to_record(&self, priority: i32) -> LockWait {
        // A thread that inverts the priorities is named before others.
        let preempter = self.off_cpu.iter().max_by_key(|off| (off.inverts(priority), off.ns));
        LockWait {
            lock: format!("{:#x}", self.lock.address),
            inherits_priority: self.lock.inherits_priority,
            holder: self.holder.map(|task| task.comm.to_string()).unwrap_or_default(),
            holder_tid: self.holder.map_or(0, |task| task.pid),
            holder_priority: self.holder.map_or(0, |task| task.priority),
            preempter: preempter.and_then(|off| off.to_record()),
            count: 1,
            waited_ns: self.waited_ns,
            longest_ns: self.waited_ns,
            inverted_ns: self.inverted_ns(priority),
            ran_ns: self.ran_ns,
            holder_waited_ns: self.holder_waited_ns,
            unknown_ns: self.unknown_ns,
            most_holders: self.holders,
        }
    }
}

impl OffCpu {
    /// True if the holder's CPU was taken by a thread of lower priority than `priority`, that of the waiting thread.
    fn inverts(&self, priority: i32) -> bool {
        self.by.is_some_and(|by| by.pid != 0 && by.priority > priority)
    }

    fn to_record(self) -> Option<LockPreempter> {
        let by = self.by?;
        Some(LockPreempter {
            comm: by.comm.to_string(),
            tid: by.pid,
            priority: by.priority,
            kept: self.kept.comm.to_string(),
            ns: self.ns,
        })
    }
}

/// The waits of one thread, summed up by lock, holder and preempting thread.
#[derive(Debug, Clone, Default)]
pub(super) struct LockWaits(Vec<LockWait>);

impl LockWaits {
    /// Adds a wait.
    pub fn add(&mut self, wait: &LockWait) {
        let by = |wait: &LockWait| wait.preempter.as_ref().map(|by| by.comm.clone());
        let is_same =
            |other: &&mut LockWait| other.lock == wait.lock && other.holder == wait.holder && by(other) == by(wait);
        if let Some(sum) = self.0.iter_mut().find(is_same) {
            sum.count += 1;
            sum.waited_ns += wait.waited_ns;
            sum.inverted_ns += wait.inverted_ns;
            sum.ran_ns += wait.ran_ns;
            sum.holder_waited_ns += wait.holder_waited_ns;
            sum.unknown_ns += wait.unknown_ns;
            sum.longest_ns = sum.longest_ns.max(wait.longest_ns);
            sum.most_holders = sum.most_holders.max(wait.most_holders);
            if let (Some(sum), Some(by)) = (&mut sum.preempter, &wait.preempter) {
                sum.ns += by.ns;
            }
        } else if self.0.len() < ENTRIES {
            self.0.push(wait.clone());
        }
    }

    /// Drops the waits at an address that turned out to be no lock.
    pub fn forget(&mut self, address: u64) {
        let lock = format!("{address:#x}");
        self.0.retain(|wait| wait.lock != lock);
    }

    /// The waits with the longest total, the longest first.
    pub fn to_record(&self) -> Vec<LockWait> {
        let mut all = self.0.clone();
        all.sort_by_key(|wait| Reverse(wait.waited_ns));
        all.truncate(LOCKS_KEPT);
        all
    }
}
