//! The entries of a journal: how each change is undone, and when it is left alone.
//!
//! The rule for all entries: a value that is as before needs no change; a value that is as we set it is set back; any
//! other value was set by others since and is kept.

use std::{
    collections::{BTreeMap, HashMap},
    io, thread,
    time::Duration,
};

use record::{Monitor, PutBack, counted, file::writer_of_unfinished};
use serde::{Deserialize, Serialize};

use crate::{
    CpuList, Root, Unreadable, cgroup, cpus,
    netns::{self, NamespaceAccess},
    nic::{Parameter, Thread, Value},
    run_groups,
    system_ops::SystemOps,
    tasks::{self, Task},
    tune,
};

/// Limits for removing a control group, whose last tasks need time to leave.
const GROUP_TRIES: u32 = 200;
const GROUP_PAUSE: Duration = Duration::from_millis(10);
/// Limit for the number of ancestors that are searched for a recorded task.
const MAX_ANCESTORS: u32 = 64;

/// A change and the values that undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum Undo {
    /// A kernel file contained `before` and was set to `during`.
    File { path: String, before: String, during: String },
    /// A file of systemd was created with this text.
    Created { path: String, text: String },
    /// A folder was created for such files.
    Folder { path: String },
    /// A controller was enabled for the control groups below `folder`.
    Controller { folder: String, name: String },
    /// A control group was created. Its tasks move to the group above, through the file `members` of both.
    Group { folder: String, members: String },
    /// Affinities of tasks were changed.
    Masks(Masks),
    /// A setting of an interface in this network namespace was `before` and was set to `during`.
    Nic {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        interface: String,
        #[serde(rename = "knob")]
        parameter: Parameter,
        before: Value,
        during: Value,
    },
    /// CPUs got a share of the cache.
    Cache(tune::Share),
    /// A thread, identified by id and start time, had the policy `before` and was given `during`.
    Policy { thread: u32, start_ticks: u64, name: String, before: String, during: String },
}

/// The affinities before the change, and the rule for the new ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Masks {
    /// The CPUs that all tasks must leave.
    pub shielded: CpuList,
    /// The online CPUs.
    pub online: CpuList,
    /// True if control groups did it. The kernel then changes affinities itself, including inherited ones.
    pub by_groups: bool,
    /// True if tasks that are pinned only to CPUs that all tasks must leave stay there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_pinned: bool,
    /// Id and start time of the tasks, by their affinity.
    pub before: BTreeMap<CpuList, Vec<(u32, u64)>>,
}

impl Masks {
    /// The new affinity of a task: the same without the shielded CPUs. If none remained, it is all other CPUs, or for tasks
    /// that stay unchanged.
    pub(crate) fn without_shielded(&self, cpus: &CpuList) -> CpuList {
        let others = self.online.difference(&self.shielded);
        let rest = cpus.difference(&self.shielded);
        match rest.intersection(&others).is_empty() {
            false => rest,
            true if self.keeps_pinned => cpus.clone(),
            true => others,
        }
    }

    /// The recorded affinity of each task.
    pub(crate) fn by_task(&self) -> HashMap<(u32, u64), &CpuList> {
        self.before.iter().flat_map(|(cpus, tasks)| tasks.iter().map(move |&task| (task, cpus))).collect()
    }

    /// True if two affinities differ only in offline CPUs.
    pub(crate) fn same(&self, one: &CpuList, other: &CpuList) -> bool {
        one.intersection(&self.online) == other.intersection(&self.online)
    }
}

impl Undo {
    /// The folder of the control group that the change made.
    pub(crate) fn group(&self) -> Option<&str> {
        if let Self::Group { folder, .. } = self { Some(folder) } else { None }
    }

    /// True if the change concerns only what punctual changes: a journal cannot name any other file.
    pub(super) fn is_ours(&self, root: &Root) -> bool {
        match self {
            Self::File { path, .. } => is_changed_file(root, path),
            Self::Created { path, .. } => tune::is_created_file(path),
            Self::Folder { path } => tune::is_created_folder(path),
            Self::Controller { folder, name } => name == "cpuset" && cgroup::tops(root).contains(folder),
            Self::Group { folder, members } => {
                let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
                run_groups::is_run_group(folder)
                    && matches!(members.as_str(), "tasks" | "cgroup.threads")
                    && cgroup::tops(root).iter().any(|top| top == above)
            }
            Self::Cache(share) => share.is_ours(),
            // These name no files. The kernel checks them, because a journal is undone with the rights of its owner.
            Self::Masks(_) | Self::Nic { .. } | Self::Policy { .. } => true,
        }
    }

    pub(crate) fn file(&self) -> &str {
        match self {
            Self::File { path, .. } | Self::Created { path, .. } | Self::Folder { path } => path,
            Self::Controller { folder, .. } | Self::Group { folder, .. } => folder,
            Self::Masks(_) | Self::Nic { .. } | Self::Cache(_) | Self::Policy { .. } => "",
        }
    }

    pub(crate) fn masks(&mut self) -> Option<&mut Masks> {
        match self {
            Self::Masks(masks) => Some(masks),
            _ => None,
        }
    }
}

/// True for the kernel's files that a run changes.
fn is_changed_file(root: &Root, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match parts[..] {
        _ if parts.iter().any(|part| matches!(*part, "" | "." | "..")) => false,
        ["proc", "irq", "default_smp_affinity"] | ["sys", "devices", "virtual", "workqueue", "cpumask"] => true,
        ["sys", "devices", "virtual", "clock", "monotonic", "gravity"] => true,
        ["proc", "irq", irq, "smp_affinity_list"] => number(irq),
        ["sys", "devices", "system", "cpu", cpu, "power", "pm_qos_resume_latency_us"] => {
            cpu.strip_prefix("cpu").is_some_and(number)
        }
        ["sys", "kernel", "tracing", "rv", "monitors", ref names @ .., "enable"] => {
            names.len() <= 2 && names.last().is_some_and(|name| Monitor::of_name(name).is_some())
        }
        ["sys", "bus", "iio", "devices", device, ref file @ ..] => {
            device.strip_prefix("iio:device").is_some_and(number) && is_setting_of_samples(file)
        }
        _ if tune::is_tuned_file(path) => true,
        [.., "cpuset.cpus"] => cgroup::tops(root).iter().any(|top| path.starts_with(&format!("{top}/"))),
        _ => false,
    }
}

/// True for the files of an industrial I/O device that a run changes.
fn is_setting_of_samples(file: &[&str]) -> bool {
    match file {
        ["trigger", "current_trigger"]
        | ["current_timestamp_clock"]
        | ["buffer", "length" | "watermark" | "enable"] => true,
        ["scan_elements", element] => element.starts_with("in_") && element.ends_with("_en"),
        _ => false,
    }
}

/// The result of undoing entries.
#[derive(Debug)]
pub(crate) struct Undone {
    /// The restored entries and the failures, counted.
    pub(crate) put_back: PutBack,
    /// The entries that a later attempt must undo.
    pub(crate) remaining: Vec<Undo>,
}

/// Undoes the entries in reverse order. Tasks of `owner`, a running process, are left alone.
pub(crate) fn restore(ops: &dyn SystemOps, undo: &[Undo], owner: Option<u32>) -> Undone {
    let mut result = PutBack::default();
    // The entries whose files come back, by the reason why they are absent.
    let mut waiting: BTreeMap<String, Vec<&Undo>> = BTreeMap::new();
    let changed = count_changed(ops.root(), undo);
    for undo in undo.iter().rev() {
        match undo {
            other if !other.is_ours(ops.root()) => {
                result
                    .failed
                    .push(format!("/{}: punctual does not change this, so the journal is wrong", other.file()));
            }
            Undo::File { path, before, during } => {
                if let Some(why) = file(ops, path, before, during, &mut result) {
                    waiting.entry(why).or_default().push(undo);
                }
            }
            Undo::Created { path, text } => created(ops, path, text, &mut result),
            Undo::Folder { path } => created_folder(ops, path, &mut result),
            Undo::Controller { folder, name } => controller(ops, folder, name, &mut result),
            Undo::Group { folder, members } => group(ops, folder, members, &mut result),
            Undo::Masks(masks) => affinities(ops, masks, owner, &mut result),
            Undo::Nic { namespace, interface, parameter, before, during } => {
                if is_in_current_namespace(ops.root(), namespace.as_deref(), interface, *parameter, &mut result) {
                    nic(ops, interface, *parameter, (*before, *during), &mut result);
                }
            }
            Undo::Cache(share) => share.put_back(ops, &mut result),
            Undo::Policy { thread, start_ticks, name, before, during } => {
                if tasks::start_ticks(ops.root(), &thread.to_string()) == Some(*start_ticks) {
                    policy(ops, (*thread, name), before, during, &mut result);
                }
            }
        }
    }
    // Most affinities return by themselves when their group is removed.
    result.tasks += changed.saturating_sub(count_changed(ops.root(), undo));
    // Another failure can need the entries that were undone, such as the affinities of tasks in a group.
    let remaining: Vec<Undo> = match result.failed.is_empty() {
        true => undo.iter().filter(|undo| waiting.values().flatten().any(|own| own == undo)).cloned().collect(),
        false => undo.to_vec(),
    };
    let of_file = |(why, entries): (&String, &Vec<&Undo>)| {
        format!("{} {why}, and run the command again", counted(entries.len() as u64, "setting"))
    };
    result.failed.extend(waiting.iter().map(of_file));
    Undone { put_back: result, remaining }
}

/// The reason why a file is absent only for a time, with the remedy: the value remains, and is found again with the file. `None`
/// for all others, such as those of a device, an interrupt, a process or a control group, which are gone with their value.
fn absent_for_a_time(root: &Root, path: &str) -> Option<String> {
    const DEBUG: &str = "sys/kernel/debug";
    if path.strip_prefix(DEBUG).is_some_and(|rest| rest.starts_with('/')) && root.list(DEBUG).is_empty() {
        return Some(format!("below /{DEBUG}, which is not mounted: mount it (sudo mount -t debugfs none /{DEBUG})"));
    }
    let below = path.strip_prefix("sys/devices/system/cpu/")?;
    // The policy of a frequency is called by its first CPU.
    let number = below.strip_prefix("cpufreq/policy").or_else(|| below.strip_prefix("cpu"))?;
    let cpu: u32 = number.split('/').next()?.parse().ok()?;
    let is_offline = cpus::present_cpus(root).contains(cpu) && !cpus::online_cpus(root).contains(cpu);
    is_offline.then(|| {
        format!(
            "of CPU {cpu}, which is offline: bring it online (echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online)"
        )
    })
}

/// The number of recorded tasks whose affinity differs from the recorded one.
fn count_changed(root: &Root, undo: &[Undo]) -> u32 {
    let masks = undo.iter().filter_map(|undo| if let Undo::Masks(masks) = undo { Some(masks) } else { None });
    let count = |masks: &Masks| {
        let known = masks.by_task();
        let is_changed = |task: &Task| {
            let before = known.get(&(task.id, task.start_ticks));
            before.is_some_and(|before| !task.is_fixed && !masks.same(before, &task.cpus))
        };
        u32::try_from(tasks::all(root).iter().filter(|task| is_changed(task)).count()).unwrap_or(u32::MAX)
    };
    masks.map(count).max().unwrap_or(0)
}

/// Restores the value of a file. Returns the reason if it cannot be restored now, but later.
fn file(ops: &dyn SystemOps, path: &str, before: &str, during: &str, result: &mut PutBack) -> Option<String> {
    let now = match ops.root().try_read(path) {
        Ok(now) => now,
        Err(reason) => {
            let why = absent_for_a_time(ops.root(), path);
            // Otherwise the file disappeared with its device.
            if why.is_none() && reason != Unreadable::Absent {
                result.failed.push(format!("/{path}: {reason}"));
            }
            return why;
        }
    };
    let now = present(&now);
    if now == before {
        return None;
    }
    if now != during {
        result.changed_since.push(format!("/{path}: {now}"));
        return None;
    }
    // A write of no bytes would not reach the driver.
    match ops.write(path, if before.is_empty() { "\n" } else { before }) {
        Ok(()) if path.ends_with("/smp_affinity_list") => result.interrupts += 1,
        Ok(()) => result.settings += 1,
        Err(error) => {
            let why = absent_for_a_time(ops.root(), path);
            if why.is_none() && error.kind() != io::ErrorKind::NotFound {
                result.failed.push(format!("/{path}: {error}"));
            }
            return why;
        }
    }
    None
}

/// Removes a created file, unless others have changed it, and the incomplete files that killed processes left in its
/// folder. Only one process creates files there at a time.
fn created(ops: &dyn SystemOps, path: &str, text: &str, result: &mut PutBack) {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for name in ops.root().list(folder).into_iter().filter(|name| writer_of_unfinished(name).is_some()) {
        let unfinished = format!("{folder}/{name}");
        match ops.remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                result.failed.push(format!("/{unfinished}: {error}"));
            }
            _ => {}
        }
    }
    match ops.root().try_read(path) {
        Err(Unreadable::Absent) => {}
        Err(reason) => result.failed.push(format!("/{path}: {reason}")),
        Ok(now) if now != text.trim() => result.changed_since.push(format!("/{path}: edited")),
        Ok(_) => match ops.remove_file(path) {
            Ok(()) => result.settings += 1,
            Err(error) => result.failed.push(format!("/{path}: {error}")),
        },
    }
}

/// Removes a created folder, unless others have files in it.
fn created_folder(ops: &dyn SystemOps, path: &str, result: &mut PutBack) {
    match ops.remove_folder(path) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
        Err(error) => result.failed.push(format!("/{path}: {error}")),
    }
}

/// The value in force in the text of a file. Some files of the kernel list all values with the one in force in brackets
/// (`always [madvise] never`), but take only one.
pub(crate) fn present(text: &str) -> &str {
    let mut chosen = text.split_whitespace().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match (chosen.next(), chosen.next()) {
        (Some(word), None) if text.split_whitespace().nth(1).is_some() => word,
        _ => text,
    }
}

/// True if the interface is in the current network namespace. Another namespace may have an interface of the same name,
/// so the setting must not be changed from here.
fn is_in_current_namespace(
    root: &Root,
    namespace: Option<&str>,
    interface: &str,
    parameter: Parameter,
    result: &mut PutBack,
) -> bool {
    let Some(namespace) = namespace else { return true };
    let name = format!("{interface} {}", parameter.name());
    match netns::access(root, namespace) {
        NamespaceAccess::Current => return true,
        NamespaceAccess::Gone => result.changed_since.push(format!("{name}: its network namespace no longer exists")),
        NamespaceAccess::ByFile(file) => result
            .failed
            .push(format!("{name}, in another network namespace: run `sudo nsenter --net={file} punctual restore`")),
        NamespaceAccess::NotVisible => result
            .failed
            .push(format!("{name}, in another network namespace: `sudo punctual restore` shows how to enter it")),
    }
    false
}

fn nic(
    ops: &dyn SystemOps,
    interface: &str,
    parameter: Parameter,
    (before, during): (Value, Value),
    result: &mut PutBack,
) {
    let name = format!("{interface} {}", parameter.name());
    let restored = ops.nic_parameter(interface, parameter).and_then(|now| match now {
        now if now == before => Ok(None),
        now if now == during => ops.set_nic_parameter(interface, parameter, before).map(Some),
        now => {
            result.changed_since.push(format!("{name}: {now}"));
            Ok(None)
        }
    });
    match restored {
        Ok(done) => result.settings += u32::from(done.is_some()),
        // The settings disappeared with the interface.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => result.failed.push(refused(&name, &error, &before.to_string())),
    }
}

fn policy(ops: &dyn SystemOps, (id, name): (u32, &str), before: &str, during: &str, result: &mut PutBack) {
    let Some(now) = Thread::of(ops.root(), id).map(|thread| thread.scheduled()) else { return };
    if now == before {
        return;
    }
    if now != during {
        return result.changed_since.push(format!("{name}: {now}"));
    }
    let restored = before.parse().map_err(io::Error::other).and_then(|policy| ops.set_policy(id, policy));
    match restored {
        Ok(()) => result.settings += 1,
        Err(error) if has_ended(&error) => {}
        Err(error) => result.failed.push(refused(&format!("thread {id} ({name})"), &error, before)),
    }
}

/// A failure of the kernel, with the remedy if it is a refusal that root would not get.
fn refused(name: &str, error: &io::Error, before: &str) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
            format!("{name}: {error}: set it back to {before} as root")
        }
        _ => format!("{name}: {error}"),
    }
}

fn controller(ops: &dyn SystemOps, folder: &str, name: &str, result: &mut PutBack) {
    let path = format!("{folder}/cgroup.subtree_control");
    let is_on = ops.root().read(&path).is_some_and(|on| on.split_whitespace().any(|on| on == name));
    if !is_on {
        return;
    }
    match ops.write(&path, &format!("-{name}")) {
        Ok(()) => result.settings += 1,
        // Another group needs the controller now.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            result.changed_since.push(format!("/{path}: {name} is in use"));
        }
        Err(error) => result.failed.push(format!("/{path}: {error}")),
    }
}

fn group(ops: &dyn SystemOps, folder: &str, members: &str, result: &mut PutBack) {
    let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
    let mut refused = None;
    for _ in 0..GROUP_TRIES {
        if !ops.root().exists(folder) {
            return;
        }
        for member in ops.root().read(&format!("{folder}/{members}")).unwrap_or_default().lines() {
            // A task that has just ended cannot be moved.
            let _ = ops.write(&format!("{above}/{members}"), member);
        }
        match ops.remove_group(folder) {
            Ok(()) => {
                result.groups += 1;
                return;
            }
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(GROUP_PAUSE),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let reason = refused.map_or_else(|| "tasks remain in it".to_owned(), |error| error.to_string());
    result.failed.push(format!("/{folder}: {reason}"));
}

fn affinities(ops: &dyn SystemOps, masks: &Masks, owner: Option<u32>, result: &mut PutBack) {
    let known = masks.by_task();
    let all = tasks::all(ops.root());
    let by_id: HashMap<u32, &Task> = all.iter().map(|task| (task.id, task)).collect();
    let others = masks.online.difference(&masks.shielded);
    for task in all.iter().filter(|task| owner != Some(task.process) && !task.is_fixed) {
        let own = known.get(&(task.id, task.start_ticks)).copied();
        // Control groups widen inherited affinities by themselves; otherwise this is done here.
        let inherited = || if masks.by_groups { None } else { inherited(task, &by_id, &known) };
        let Some(before) = own.or_else(inherited) else { continue };
        if masks.same(&task.cpus, before) {
            continue;
        }
        let given = masks.same(&task.cpus, &masks.without_shielded(before));
        // Control groups give a task all their CPUs: while the group exists, and again when it is removed.
        let by_groups = masks.by_groups && (masks.same(&task.cpus, &others) || masks.same(&task.cpus, &masks.online));
        if given || by_groups {
            match ops.set_affinity(task.id, before) {
                // Recorded tasks are counted by the caller.
                Ok(()) => result.tasks += u32::from(own.is_none()),
                Err(error) if has_ended(&error) => {}
                Err(error) => {
                    result.failed.push(refused(
                        &format!("task {} ({})", task.id, task.name),
                        &error,
                        &before.in_words(),
                    ));
                }
            }
        } else if own.is_some() {
            result.changed_since.push(format!("task {} ({}): {}", task.id, task.name, task.cpus.in_words()));
        }
    }
}

/// The recorded affinity of the nearest ancestor: a new task has inherited the narrowed form of it.
fn inherited<'a>(
    task: &Task,
    by_id: &HashMap<u32, &Task>,
    known: &HashMap<(u32, u64), &'a CpuList>,
) -> Option<&'a CpuList> {
    let mut task = task;
    for _ in 0..MAX_ANCESTORS {
        let from = if task.id == task.process { task.parent } else { task.process };
        task = by_id.get(&from)?;
        if let Some(before) = known.get(&(task.id, task.start_ticks)) {
            return Some(before);
        }
    }
    None
}

/// True if the task no longer exists.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}
