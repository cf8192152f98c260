//! Keeping CPUs free of other work during a run: every task and interrupt that can be moved is, and is put back.
//!
//! | module | does |
//! |---|---|
//! | `groups` | control groups that keep tasks off: a partition (v2) or cpusets (v1) |
//! | `tasks` | the affinity of each task that groups do not reach, and who stayed |
//! | `interrupts` | interrupts, and the kernel's unbound work |

mod groups;
mod interrupts;
mod tasks;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::io;

use record::{PutBack, ShieldMeans, Shielding};
use thiserror::Error;

use crate::{
    CpuError, CpuList, Root, cpus,
    hands::Hands,
    journal::{self, Journal, JournalError, Masks, Purpose, Undo},
    usable_cpus,
};

/// CPUs kept free of other work. Released or dropped, it puts everything back; a journal does after SIGKILL.
#[derive(Debug)]
pub struct Shield {
    hands: Box<dyn Hands>,
    cpus: CpuList,
    told: Shielding,
    journal: Journal,
    /// The partition that a thread has to be in to run on the shielded CPUs, and the group that other threads are in.
    partition: Option<(String, String)>,
    /// The control group that this process came from.
    home: Option<String>,
    released: bool,
}

/// Why CPUs cannot be shielded.
#[derive(Debug, Error)]
pub enum ShieldError {
    /// A CPU is not there or not allowed.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// No CPU is left for everything else.
    #[error(
        "shielding {} would leave no CPU for everything else: shield fewer of {usable}, as with --shield {}",
        asked.in_words(),
        usable.last().unwrap_or(0)
    )]
    NothingLeft {
        /// The CPUs to be shielded.
        asked: CpuList,
        /// The CPUs that this process may use.
        usable: CpuList,
    },
    /// Another run shields CPUs already.
    #[error("process {process} shields CPUs at this moment: wait until it is done, or end it with `kill {process}`")]
    Busy {
        /// That run.
        process: u32,
    },
    /// A thread cannot get to its side of the shield.
    #[error(
        "cannot put a thread on its side of the shield: /{path}: {source}; leave out --shield, or see docs/shield.md"
    )]
    Side {
        /// The file that the kernel refused.
        path: String,
        /// What it answered.
        source: io::Error,
    },
    /// There is no way back after a crash.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Shield {
    /// Moves whatever can be moved off `cpus`, from now on.
    ///
    /// What cannot be moved is no error: [`Shielding::left`] tells it.
    ///
    /// # Errors
    /// [`ShieldError`]; nothing stays changed then.
    pub fn take(root: &Root, cpus: &CpuList) -> Result<Self, ShieldError> {
        Self::take_with(Box::new(root.clone()), cpus)
    }

    fn take_with(hands: Box<dyn Hands>, cpus: &CpuList) -> Result<Self, ShieldError> {
        let root = hands.root();
        let cpus = usable_cpus(root, Some(cpus))?;
        let usable = usable_cpus(root, None)?;
        if usable.difference(&cpus).is_empty() {
            return Err(ShieldError::NothingLeft { asked: cpus, usable });
        }
        if let Some(process) = journal::other_shield(root) {
            return Err(ShieldError::Busy { process });
        }
        let journal = Journal::begin(root, Purpose::Shield)?;
        let isolated = cpus::list(root, "isolated").unwrap_or_default().intersection(&cpus);
        let told = Shielding { cpus: cpus.to_string(), isolated_at_boot: isolated.to_string(), ..Shielding::default() };
        let mut shield = Self { hands, cpus, told, journal, partition: None, home: None, released: false };
        shield.raise(&isolated)?;
        Ok(shield)
    }

    fn raise(&mut self, isolated: &CpuList) -> Result<(), JournalError> {
        let before = tasks::Before::read(self.hands.root());
        let isolated_already = *isolated == self.cpus;
        let grouped = !isolated_already && self.raise_by_groups(&before)?;
        if !grouped {
            self.told.means = if isolated_already { ShieldMeans::Boot } else { ShieldMeans::Affinity };
            let masks = self.masks(false, &before);
            self.journal.promise([Undo::Masks(masks)])?;
        }
        let masks = self.masks(grouped, &before);
        let moved = tasks::narrow(&*self.hands, &mut self.journal, &masks, before)?;
        self.told.tasks_moved = moved.count;
        self.told.left = moved.left;
        let moved = interrupts::narrow(&*self.hands, &mut self.journal, &self.cpus)?;
        self.told.interrupts_moved = moved.count;
        self.told.left.extend(moved.left);
        self.told.notes.extend(moved.notes);
        Ok(())
    }

    /// Tries the control groups that there are, the best first; answers whether one serves.
    fn raise_by_groups(&mut self, before: &tasks::Before) -> Result<bool, JournalError> {
        for plan in groups::plans(self.hands.root(), &self.cpus) {
            let from = self.journal.undo().len();
            let masks = Undo::Masks(self.masks(true, before));
            self.journal.promise([masks].into_iter().chain(plan.undo.iter().cloned()))?;
            self.home.clone_from(&plan.home);
            match plan.make(&*self.hands) {
                Ok(means) => {
                    self.told.means = means;
                    if means != ShieldMeans::CpusetV1 {
                        self.partition = Some((plan.group, plan.top));
                    }
                    return Ok(true);
                }
                Err(why) => {
                    self.told.notes.push(why);
                    self.go_home();
                    self.journal.take_back(from, &*self.hands);
                }
            }
        }
        Ok(false)
    }

    fn masks(&self, by_groups: bool, before: &tasks::Before) -> Masks {
        let online = cpus::online(self.hands.root());
        Masks { shielded: self.cpus.clone(), online, by_groups, before: before.masks() }
    }

    /// The shielded CPUs.
    #[must_use]
    pub fn cpus(&self) -> &CpuList {
        &self.cpus
    }

    /// How it was done, and what could not be.
    #[must_use]
    pub fn told(&self) -> &Shielding {
        &self.told
    }

    /// Whether a thread that is to run on the shielded CPUs must [`enter`](Self::enter) first; then it can run on no
    /// others.
    #[must_use]
    pub fn has_sides(&self) -> bool {
        self.partition.is_some()
    }

    /// Runs `make` with the calling thread inside the shield, where that takes a partition: threads and processes that it
    /// makes meanwhile are inside for ever.
    ///
    /// # Errors
    /// [`ShieldError::Side`]; `make` was not run, or is lost.
    pub fn enter<T>(&self, make: impl FnOnce() -> T) -> Result<T, ShieldError> {
        let Some((inside, outside)) = &self.partition else { return Ok(make()) };
        // 0 names the thread that writes.
        let to = |group: &str| {
            let path = format!("{group}/cgroup.threads");
            self.hands.write(&path, "0").map_err(|source| ShieldError::Side { path, source })
        };
        to(inside)?;
        let made = make();
        to(outside)?;
        Ok(made)
    }

    /// Puts everything back, and tells what.
    #[must_use]
    pub fn release(mut self) -> Shielding {
        let put_back = self.put_back();
        self.told.put_back = Some(put_back);
        std::mem::take(&mut self.told)
    }

    fn put_back(&mut self) -> PutBack {
        self.released = true;
        self.go_home();
        self.journal.put_back(&*self.hands)
    }

    fn go_home(&mut self) {
        if let Some(home) = self.home.take() {
            // Where that group is gone there is nothing to return to.
            let _ = self.hands.write(&format!("{home}/cgroup.procs"), &std::process::id().to_string());
        }
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        if !self.released {
            self.put_back();
        }
    }
}
