//! The affinities of single tasks, and the tasks that remained on the shielded CPUs.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
};

use record::{Left, LeftKind};

use crate::{
    CpuList, Root,
    journal::{Journal, JournalError, Masks},
    system_ops::SystemOps,
    tasks::{self, Task},
};

/// The CPUs of unbound work.
pub(super) const WORKQUEUES: &str = "sys/devices/virtual/workqueue/cpumask";

/// Limit for moving tasks that start while others are moved.
const ROUNDS: u32 = 20;
/// Limit for the names of remaining tasks in a report.
pub(super) const NAMES: usize = 3;

/// The tasks of a machine before the change: their affinity, by id and start time.
pub(crate) struct Before(HashMap<(u32, u64), CpuList>);

/// The number of tasks or interrupts that were moved, and the ones that remained.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub count: u32,
    pub left: Vec<Left>,
    /// The ids and start times of the tasks that remained.
    pub left_tasks: BTreeSet<(u32, u64)>,
    /// The numbers and handlers of interrupts that the kernel refused to move.
    pub immovable: Vec<(u32, String)>,
    pub notes: Vec<String>,
}

impl Before {
    pub(crate) fn read(root: &Root) -> Self {
        Self(tasks::others(root).into_iter().map(|task| (key(&task), task.cpus)).collect())
    }

    /// The affinities that the journal recorded.
    pub(crate) fn of(masks: &Masks) -> Self {
        Self(masks.by_task().into_iter().map(|(task, cpus)| (task, cpus.clone())).collect())
    }

    /// The affinities to record in the journal.
    pub(crate) fn masks(&self) -> BTreeMap<CpuList, Vec<(u32, u64)>> {
        let mut masks: BTreeMap<CpuList, Vec<(u32, u64)>> = BTreeMap::new();
        for (&task, cpus) in &self.0 {
            masks.entry(cpus.clone()).or_default().push(task);
        }
        masks
    }
}

fn key(task: &Task) -> (u32, u64) {
    (task.id, task.start_ticks)
}

/// Gives each task its affinity from `masks`, and repeats until no new task appears. A task that its owner has pinned
/// only to shielded CPUs gets all others.
pub(crate) fn narrow(
    ops: &dyn SystemOps,
    journal: &mut Journal,
    masks: &Masks,
    mut before: Before,
) -> Result<Moved, JournalError> {
    let mut refused: HashMap<(u32, u64), io::Error> = HashMap::new();
    for _ in 0..ROUNDS {
        let all = tasks::others(ops.root());
        let new: Vec<&Task> = all.iter().filter(|task| !before.0.contains_key(&key(task))).collect();
        if !new.is_empty() {
            journal.record_masks(|masks| {
                for task in &new {
                    masks.before.entry(task.cpus.clone()).or_default().push(key(task));
                }
            })?;
            before.0.extend(new.iter().map(|task| (key(task), task.cpus.clone())));
        }
        let wanted = |task: &Task| before.0.get(&key(task)).map(|cpus| masks.without_shielded(cpus));
        let mut changed = false;
        for task in all.iter().filter(|task| !task.is_fixed) {
            let differs = |wanted: &CpuList| !masks.same(wanted, &task.cpus) && !refused.contains_key(&key(task));
            let Some(wanted) = wanted(task).filter(differs) else { continue };
            match ops.set_affinity(task.id, &wanted) {
                Ok(()) => changed = true,
                Err(error) => drop(refused.insert(key(task), error)),
            }
        }
        if new.is_empty() && !changed {
            break;
        }
    }
    Ok(count(ops.root(), &masks.shielded, &before, &refused))
}

/// Counts the tasks that left the shielded CPUs, and lists the remaining ones.
fn count(root: &Root, shielded: &CpuList, before: &Before, refused: &HashMap<(u32, u64), io::Error>) -> Moved {
    let is_there = |cpus: &CpuList| !cpus.intersection(shielded).is_empty();
    let mut moved = Moved::default();
    let mut left: BTreeMap<(bool, String, bool), Vec<String>> = BTreeMap::new();
    for task in tasks::others(root) {
        if !is_there(&task.cpus) {
            moved.count += u32::from(before.0.get(&key(&task)).is_some_and(is_there));
            continue;
        }
        moved.left_tasks.insert(key(&task));
        let (why, no_right) = reason(root, &task, refused.get(&key(&task)));
        left.entry((task.is_kernels, why, no_right)).or_default().push(task.name);
    }
    moved.left = left
        .into_iter()
        .map(|((is_kernels, why, no_right), mut names)| {
            let kind = if is_kernels { LeftKind::KernelThreads } else { LeftKind::Tasks };
            let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
            // Names of kernel workers come last, because they say least.
            names.sort_by_key(|name| (name.starts_with("kworker"), name.clone()));
            names.truncate(NAMES);
            Left { kind, count, names, why, no_right }
        })
        .collect();
    moved
}

/// The reason why a task remained, and true if a right was missing.
fn reason(root: &Root, task: &Task, refused: Option<&io::Error>) -> (String, bool) {
    match refused {
        _ if task.is_fixed && task.cpus.len() == 1 => ("the kernel binds each to its CPU".to_owned(), false),
        _ if task.is_fixed && root.exists(WORKQUEUES) => {
            ("the kernel binds them, but now sends their work to the other CPUs".to_owned(), false)
        }
        _ if task.is_fixed => ("the kernel refuses to move them".to_owned(), false),
        Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            ("the right to move tasks of other users is needed".to_owned(), true)
        }
        Some(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            ("the kernel refuses to move tasks with a deadline policy".to_owned(), false)
        }
        Some(error) => (error.to_string(), false),
        None => ("they started while others were moved".to_owned(), false),
    }
}
