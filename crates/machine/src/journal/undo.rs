//! One promise each: how what was changed is put back, and when it is left alone.
//!
//! The rule everywhere: what is as it was before needs nothing; what is as we made it goes back; anything else is someone
//! else's doing since, and stays.

use std::{
    collections::{BTreeMap, HashMap},
    io, thread,
    time::Duration,
};

use record::PutBack;
use serde::{Deserialize, Serialize};

use crate::{
    CpuList, Root, Unreadable,
    hands::Hands,
    netns::{self, Way},
    nic::{Knob, Thread, Value},
    tasks::{self, Task},
};

/// How long the last tasks may take to leave a control group that is to be removed.
const GROUP_TRIES: u32 = 200;
const GROUP_PAUSE: Duration = Duration::from_millis(10);
/// How many generations apart a task may be from one that was there before.
const GENERATIONS: u32 = 64;

/// What was changed, and what puts it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum Undo {
    /// A file of the kernel said `before`, and was made to say `during`.
    File { path: String, before: String, during: String },
    /// A controller was switched on for the control groups below `folder`.
    Controller { folder: String, name: String },
    /// A control group was made; who is in it goes to the group above, through the file `members` of both.
    Group { folder: String, members: String },
    /// The affinity of tasks was changed.
    Masks(Masks),
    /// A value of a network interface was `before`, and was made `during`, in a network namespace of this name.
    Nic {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        interface: String,
        knob: Knob,
        before: Value,
        during: Value,
    },
    /// A thread, by its number and time of start, had the policy `before`, and was given `during`.
    Policy { thread: u32, start_ticks: u64, name: String, before: String, during: String },
}

/// The affinity that all tasks had, and the rule by which they got another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Masks {
    /// The CPUs that all were to leave.
    pub shielded: CpuList,
    /// The CPUs that were online.
    pub online: CpuList,
    /// Whether control groups did it: then the kernel itself changes the affinity of tasks, too, and knows who inherits.
    pub by_groups: bool,
    /// Number and time of start of the tasks, by the affinity they had.
    pub before: BTreeMap<CpuList, Vec<(u32, u64)>>,
}

impl Masks {
    /// What becomes of an affinity: the same without the shielded CPUs; all others where it had no other.
    pub(crate) fn without_shielded(&self, cpus: &CpuList) -> CpuList {
        let others = self.online.difference(&self.shielded);
        let rest = cpus.difference(&self.shielded);
        if rest.intersection(&others).is_empty() { others } else { rest }
    }

    /// The affinity that each known task had.
    pub(crate) fn by_task(&self) -> HashMap<(u32, u64), &CpuList> {
        self.before.iter().flat_map(|(cpus, tasks)| tasks.iter().map(move |&task| (task, cpus))).collect()
    }

    /// Whether two affinities differ by offline CPUs alone.
    pub(crate) fn same(&self, one: &CpuList, other: &CpuList) -> bool {
        one.intersection(&self.online) == other.intersection(&self.online)
    }
}

impl Undo {
    pub(crate) fn masks(&mut self) -> Option<&mut Masks> {
        match self {
            Self::Masks(masks) => Some(masks),
            _ => None,
        }
    }
}

/// Undoes the last first. The tasks of `owner`, a process that still runs, are its own business.
pub(crate) fn put_back(hands: &dyn Hands, undo: &[Undo], owner: Option<u32>) -> PutBack {
    let mut told = PutBack::default();
    let away = away(hands.root(), undo);
    for undo in undo.iter().rev() {
        match undo {
            Undo::File { path, before, during } => file(hands, path, before, during, &mut told),
            Undo::Controller { folder, name } => controller(hands, folder, name, &mut told),
            Undo::Group { folder, members } => group(hands, folder, members, &mut told),
            Undo::Masks(masks) => affinities(hands, masks, owner, &mut told),
            Undo::Nic { namespace, interface, knob, before, during } => {
                if is_reached(hands.root(), namespace.as_deref(), interface, *knob, &mut told) {
                    nic(hands, interface, *knob, (*before, *during), &mut told);
                }
            }
            Undo::Policy { thread, start_ticks, name, before, during } => {
                if tasks::start_ticks(hands.root(), &thread.to_string()) == Some(*start_ticks) {
                    policy(hands, (*thread, name), before, during, &mut told);
                }
            }
        }
    }
    // Most come back by themselves when their group is removed.
    told.tasks += away.saturating_sub(self::away(hands.root(), undo));
    told
}

/// How many of the known tasks do not have the affinity that they had.
fn away(root: &Root, undo: &[Undo]) -> u32 {
    let masks = undo.iter().filter_map(|undo| if let Undo::Masks(masks) = undo { Some(masks) } else { None });
    let count = |masks: &Masks| {
        let known = masks.by_task();
        let is_away = |task: &Task| {
            let before = known.get(&(task.id, task.start_ticks));
            before.is_some_and(|before| !task.is_fixed && !masks.same(before, &task.cpus))
        };
        tasks::all(root).iter().filter(|task| is_away(task)).count() as u32
    };
    masks.map(count).max().unwrap_or(0)
}

fn file(hands: &dyn Hands, path: &str, before: &str, during: &str, told: &mut PutBack) {
    let now = match hands.root().try_read(path) {
        // It went with its device.
        Err(Unreadable::Absent) => return,
        Err(reason) => return told.failed.push(format!("/{path}: {reason:?}")),
        Ok(now) => now,
    };
    if now == before {
        return;
    }
    if now != during {
        return told.changed_since.push(format!("/{path}: {now}"));
    }
    match hands.write(path, before) {
        Ok(()) if path.ends_with("/smp_affinity_list") => told.interrupts += 1,
        Ok(()) => told.settings += 1,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => told.failed.push(format!("/{path}: {error}")),
    }
}

/// Whether an interface is one of ours: another namespace may have one of the same name, and we cannot see those inside.
fn is_reached(root: &Root, namespace: Option<&str>, interface: &str, knob: Knob, told: &mut PutBack) -> bool {
    let Some(namespace) = namespace else { return true };
    let name = format!("{interface} {}", knob.name());
    match netns::way_into(root, namespace) {
        Way::Here => return true,
        Way::Gone => told.changed_since.push(format!("{name}: its network namespace is gone")),
        Way::Through(file) => told.failed.push(format!(
            "{name}, which is in another network namespace: run `sudo nsenter --net={file} punctual restore`"
        )),
        Way::Unseen => told.failed.push(format!(
            "{name}, which is in another network namespace: `sudo punctual restore` tells the way there"
        )),
    }
    false
}

fn nic(hands: &dyn Hands, interface: &str, knob: Knob, (before, during): (Value, Value), told: &mut PutBack) {
    let name = format!("{interface} {}", knob.name());
    let put_back = hands.nic_value(interface, knob).and_then(|now| match now {
        now if now == before => Ok(None),
        now if now == during => hands.set_nic_value(interface, knob, before).map(Some),
        now => {
            told.changed_since.push(format!("{name}: {now}"));
            Ok(None)
        }
    });
    match put_back {
        Ok(done) => told.settings += u32::from(done.is_some()),
        // An interface that has gone has taken its values along.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => told.failed.push(format!("{name}: {error}")),
    }
}

fn policy(hands: &dyn Hands, (id, name): (u32, &str), before: &str, during: &str, told: &mut PutBack) {
    let Some(now) = Thread::of(hands.root(), id).map(|thread| thread.scheduled()) else { return };
    if now == before {
        return;
    }
    if now != during {
        return told.changed_since.push(format!("{name}: {now}"));
    }
    let put_back = before.parse().map_err(io::Error::other).and_then(|policy| hands.set_policy(id, policy));
    match put_back {
        Ok(()) => told.settings += 1,
        Err(error) if has_ended(&error) => {}
        Err(error) => told.failed.push(format!("{name}: {error}")),
    }
}

fn controller(hands: &dyn Hands, folder: &str, name: &str, told: &mut PutBack) {
    let path = format!("{folder}/cgroup.subtree_control");
    let is_on = hands.root().read(&path).is_some_and(|on| on.split_whitespace().any(|on| on == name));
    if !is_on {
        return;
    }
    match hands.write(&path, &format!("-{name}")) {
        Ok(()) => told.settings += 1,
        // Another group has come to need it.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            told.changed_since.push(format!("/{path}: {name} is in use"));
        }
        Err(error) => told.failed.push(format!("/{path}: {error}")),
    }
}

fn group(hands: &dyn Hands, folder: &str, members: &str, told: &mut PutBack) {
    let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
    let mut refused = None;
    for _ in 0..GROUP_TRIES {
        if !hands.root().exists(folder) {
            return;
        }
        for member in hands.root().read(&format!("{folder}/{members}")).unwrap_or_default().lines() {
            // One that has just ended cannot be moved, and need not be.
            let _ = hands.write(&format!("{above}/{members}"), member);
        }
        match hands.remove_group(folder) {
            Ok(()) => {
                told.groups += 1;
                return;
            }
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(GROUP_PAUSE),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let reason = refused.map_or_else(|| "someone is in it".to_owned(), |error| error.to_string());
    told.failed.push(format!("/{folder}: {reason}"));
}

fn affinities(hands: &dyn Hands, masks: &Masks, owner: Option<u32>, told: &mut PutBack) {
    let known = masks.by_task();
    let all = tasks::all(hands.root());
    let by_id: HashMap<u32, &Task> = all.iter().map(|task| (task.id, task)).collect();
    let others = masks.online.difference(&masks.shielded);
    for task in all.iter().filter(|task| owner != Some(task.process) && !task.is_fixed) {
        let own = known.get(&(task.id, task.start_ticks)).copied();
        // Control groups widen those who inherited a narrow affinity; else that is to be done here.
        let inherited = || if masks.by_groups { None } else { inherited(task, &by_id, &known) };
        let Some(before) = own.or_else(inherited) else { continue };
        if masks.same(&task.cpus, before) {
            continue;
        }
        let given = masks.same(&task.cpus, &masks.without_shielded(before));
        // Control groups give a task all CPUs that the group has: while they are there, and again when they go.
        let by_groups = masks.by_groups && (masks.same(&task.cpus, &others) || masks.same(&task.cpus, &masks.online));
        if given || by_groups {
            match hands.set_affinity(task.id, before) {
                // The known ones are counted by who is away.
                Ok(()) => told.tasks += u32::from(own.is_none()),
                Err(error) if has_ended(&error) => {}
                Err(error) => told.failed.push(format!("task {} ({}): {error}", task.id, task.name)),
            }
        } else if own.is_some() {
            told.changed_since.push(format!("task {} ({}): {}", task.id, task.name, task.cpus.in_words()));
        }
    }
}

/// The affinity that the nearest ancestor had which is known from before: a new task has inherited what became of it.
fn inherited<'a>(
    task: &Task,
    by_id: &HashMap<u32, &Task>,
    known: &HashMap<(u32, u64), &'a CpuList>,
) -> Option<&'a CpuList> {
    let mut task = task;
    for _ in 0..GENERATIONS {
        let from = if task.id == task.process { task.parent } else { task.process };
        task = by_id.get(&from)?;
        if let Some(before) = known.get(&(task.id, task.start_ticks)) {
            return Some(before);
        }
    }
    None
}

/// Whether the kernel knows no such task any more.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}
