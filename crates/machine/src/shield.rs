//! Shields CPUs from other work during a run: moves all tasks and interrupts that can be moved, and undoes it
//! afterwards.
//!
//! | module | contents |
//! |---|---|
//! | `groups` | control groups that keep tasks away: a partition (v2) or cpusets (v1) |
//! | `tasks` | affinities of single tasks, and the tasks that remained |
//! | `interrupts` | interrupts, and the kernel's unbound work |
//! | `watch` | notices changes of the shield during a run |

mod groups;
mod interrupts;
mod tasks;
mod watch;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, rc::Rc};

use record::{ShieldMeans, Shielding, Strikes};
use thiserror::Error;

use crate::{
    CpuError, CpuList, Root, cpus, interrupts as interrupt_counts,
    journal::{self, Journal, JournalError, Masks, OtherShield, Purpose, Undo},
    system_ops::SystemOps,
    tune::{Lock, TuneError},
    usable_cpus,
};

pub(crate) use interrupts::{Affinity, affinities, affinity_files, without as mask_without};
pub(crate) use tasks::{Before, narrow};
pub use watch::Watch;

/// Shielded CPUs. Released or dropped, it undoes all changes; after SIGKILL the journal does.
#[derive(Debug)]
pub struct Shield {
    cpus: CpuList,
    summary: Shielding,
    journal: Journal,
    /// The partition for threads on the shielded CPUs, and the group of all other threads.
    partition: Option<(String, String)>,
    /// The control group that this process was in before.
    own_group: Option<String>,
    /// The interrupts that could not be moved: numbers and handlers.
    immovable: Vec<(u32, String)>,
    /// Count of each interrupt on the shielded CPUs at the start of counting.
    counted_from: BTreeMap<u32, u64>,
    watch: Watch,
    /// The right to change settings: others must not move the tasks meanwhile. Dropped last, after all is undone.
    lock: Lock,
}

/// Error: CPUs cannot be shielded.
#[derive(Debug, Error)]
pub enum ShieldError {
    /// A CPU does not exist or is not allowed.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// No CPU remains for other work.
    #[error(
        "shielding {} would leave no CPU for other work: shield fewer of {usable}, e.g. --shield {}",
        requested.in_words(),
        usable.last().unwrap_or(0)
    )]
    NothingLeft {
        /// The CPUs to shield.
        requested: CpuList,
        /// The CPUs that this process may use.
        usable: CpuList,
    },
    /// Another run shields CPUs now.
    #[error("process {process} already shields CPUs: wait until it ends, or end it with `kill {process}`")]
    Busy {
        /// The process id of that run.
        process: u32,
    },
    /// Another run in another namespace of process ids may shield CPUs now.
    #[error(
        "process {process} of another container may shield CPUs: wait until it ends, or, if it was killed, run `sudo punctual \
         restore` on the host"
    )]
    BusyElsewhere {
        /// The process id of that run in its namespace.
        process: u32,
    },
    /// A thread cannot enter or leave the shield.
    #[error("cannot move a thread into or out of the shield: /{path}: {source}; omit --shield, or see docs/shield.md")]
    Enter {
        /// The file that the kernel refused.
        path: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another process changes settings of the machine now.
    #[error(transparent)]
    Tuned(#[from] TuneError),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Shield {
    /// Moves all tasks and interrupts that can be moved away from `cpus`.
    ///
    /// Tasks and interrupts that cannot be moved are listed in [`Shielding::left`]; they are not an error. `lock` is the right to
    /// change settings, if this process has it already.
    ///
    /// # Errors
    /// [`ShieldError`]; nothing stays changed then.
    pub fn take(root: &Root, cpus: &CpuList, lock: Option<&Lock>) -> Result<Self, ShieldError> {
        Self::take_with(Rc::new(root.clone()), cpus, lock)
    }

    fn take_with(ops: Rc<dyn SystemOps>, cpus: &CpuList, lock: Option<&Lock>) -> Result<Self, ShieldError> {
        let root = ops.root();
        match journal::other_shield(root) {
            Some(OtherShield { process, is_here: true }) => return Err(ShieldError::Busy { process }),
            Some(OtherShield { process, is_here: false }) => return Err(ShieldError::BusyElsewhere { process }),
            None => {}
        }
        let cpus = usable_cpus(root, Some(cpus))?;
        let usable = usable_cpus(root, None)?;
        if usable.difference(&cpus).is_empty() {
            return Err(ShieldError::NothingLeft { requested: cpus, usable });
        }
        let lock = lock.cloned().map_or_else(|| Lock::take(root), Ok)?;
        let isolated = cpus::list(root, "isolated").unwrap_or_default().intersection(&cpus);
        let journal = Journal::begin(ops, Purpose::Shield)?;
        let summary =
            Shielding { cpus: cpus.to_string(), isolated_at_boot: isolated.to_string(), ..Shielding::default() };
        let mut shield = Self {
            watch: Watch::new(journal.ops().root(), &cpus),
            cpus,
            summary,
            journal,
            partition: None,
            own_group: None,
            immovable: Vec::new(),
            counted_from: BTreeMap::new(),
            lock,
        };
        shield.move_everything(&isolated)?;
        shield.begin_counting();
        Ok(shield)
    }

    fn move_everything(&mut self, isolated: &CpuList) -> Result<(), JournalError> {
        let ops = self.journal.ops();
        let before = Before::read(ops.root());
        let isolated_already = *isolated == self.cpus;
        let by_groups = !isolated_already && self.use_control_groups(&before)?;
        if !by_groups {
            self.summary.means = if isolated_already { ShieldMeans::Boot } else { ShieldMeans::Affinity };
            let masks = self.masks(false, &before);
            self.journal.record([Undo::Masks(masks)])?;
        }
        let masks = self.masks(by_groups, &before);
        let moved = narrow(&*ops, &mut self.journal, &masks, before)?;
        self.summary.tasks_moved = moved.count;
        self.summary.left = moved.left;
        let moved = interrupts::narrow(&*ops, &mut self.journal, &self.cpus)?;
        self.summary.interrupts_moved = moved.count;
        self.summary.left.extend(moved.left);
        self.immovable = moved.immovable;
        self.summary.notes.extend(moved.notes);
        let partition = self.partition.as_ref().map(|(inside, _)| format!("{inside}/cpuset.cpus.partition"));
        self.watch.remember(self.journal.entries(), partition, moved.left_tasks);
        Ok(())
    }

    /// Tries the available control groups, the best first. Returns true if one worked.
    fn use_control_groups(&mut self, before: &Before) -> Result<bool, JournalError> {
        let ops = self.journal.ops();
        for plan in groups::plans(ops.root(), &self.cpus) {
            let from = self.journal.entries().len();
            let masks = Undo::Masks(self.masks(true, before));
            self.journal.record([masks].into_iter().chain(plan.undo.iter().cloned()))?;
            self.own_group.clone_from(&plan.own_group);
            match plan.execute(&*ops, &self.journal) {
                Ok(means) => {
                    self.summary.means = means;
                    if means != ShieldMeans::CpusetV1 {
                        self.partition = Some((plan.group, plan.top));
                    }
                    return Ok(true);
                }
                Err(why) => {
                    self.summary.notes.push(why);
                    self.return_to_own_group();
                    self.journal.restore_from(from);
                }
            }
        }
        Ok(false)
    }

    fn masks(&self, by_groups: bool, before: &Before) -> Masks {
        let online = cpus::online_cpus(self.journal.ops().root());
        Masks { shielded: self.cpus.clone(), online, by_groups, keeps_pinned: false, before: before.masks() }
    }

    /// The right to change settings, which the shield holds.
    #[must_use]
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// The shielded CPUs.
    #[must_use]
    pub fn cpus(&self) -> &CpuList {
        &self.cpus
    }

    /// The means of shielding, and what could not be moved.
    #[must_use]
    pub fn summary(&self) -> &Shielding {
        &self.summary
    }

    /// True if a thread must [`enter`](Self::enter) the shield to run on the shielded CPUs; it can then run on no
    /// others.
    #[must_use]
    pub fn needs_entering(&self) -> bool {
        self.partition.is_some()
    }

    /// Runs `make` while the calling thread is inside the shield, if that needs a partition. Threads and processes that
    /// `make` starts stay inside.
    ///
    /// # Errors
    /// [`ShieldError::Enter`]; `make` did not run, or its result is lost.
    pub fn enter<T>(&self, make: impl FnOnce() -> T) -> Result<T, ShieldError> {
        let Some((inside, outside)) = &self.partition else { return Ok(make()) };
        // Writing 0 moves the writing thread.
        let to = |group: &str| {
            let path = format!("{group}/cgroup.threads");
            self.journal.ops().write(&path, "0").map_err(|source| ShieldError::Enter { path, source })
        };
        to(inside)?;
        let made = make();
        to(outside)?;
        Ok(made)
    }

    /// A watch for a phase that begins now. It also reports changes by others since the shield was taken.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch.clone().restarted()
    }

    /// Begins to count the interrupts that could not be moved and occur on the shielded CPUs, anew if called again.
    pub fn begin_counting(&mut self) {
        self.counted_from = interrupt_counts::counts_on(self.journal.ops().root(), &self.cpus);
    }

    /// The interrupts that could not be moved and have occurred on the shielded CPUs since counting began.
    #[must_use]
    pub fn strikes(&self) -> Vec<Strikes> {
        let now = interrupt_counts::counts_on(self.journal.ops().root(), &self.cpus);
        let since = |interrupt: &u32| {
            let before = self.counted_from.get(interrupt).copied().unwrap_or_default();
            now.get(interrupt).copied().unwrap_or_default().saturating_sub(before)
        };
        let all = self.immovable.iter();
        let all =
            all.map(|(interrupt, name)| Strikes { interrupt: *interrupt, name: name.clone(), count: since(interrupt) });
        all.filter(|strikes| strikes.count > 0).collect()
    }

    /// Undoes all changes and reports the result.
    #[must_use]
    pub fn release(mut self) -> Shielding {
        self.return_to_own_group();
        self.summary.put_back = Some(self.journal.restore());
        std::mem::take(&mut self.summary)
    }

    fn return_to_own_group(&mut self) {
        if let Some(group) = self.own_group.take() {
            // If the group no longer exists, there is nothing to return to.
            let _ = self.journal.ops().write(&format!("{group}/cgroup.procs"), &std::process::id().to_string());
        }
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        self.return_to_own_group();
        // Dropping the journal undoes the rest.
    }
}
