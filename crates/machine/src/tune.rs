//! Settings of this machine that `punctual tune` and the option `--setting` change, and undo.
//!
//! | module | contents |
//! |---|---|
//! | `table` | every setting, defined once: its files, values, effect and risk |
//! | `values` | the values that the user gives |
//! | `old_value` | the values that a file may have before the change |
//! | `writes` | writes to files, and the reasons why there are none |
//! | `frequency` | frequencies and governors |
//! | `idle_states` | the longest time to leave an idle state |
//! | `away` | masks of CPUs that other work leaves |
//! | `interrupts` | the CPUs of interrupts, and the priorities of their threads |
//! | `watchdogs` | the watchdogs and their CPUs |
//! | `programs` | the CPUs of programs |
//! | `cache` | a share of the cache |
//! | `boot` | arguments of the kernel, which are only printed |
//! | `reboot` | changes for one boot, by kexec |
//! | `files` | files of systemd that are created |
//! | `apply` | makes the changes: for a run, or until the user reverts them |
//!
//! No file outside the table is ever written: the journal checks each path against `is_tuned_file`.

mod apply;
mod away;
mod boot;
mod cache;
mod files;
pub(crate) mod firmware;
mod frequency;
mod idle_states;
mod interrupts;
mod old_value;
mod programs;
pub mod reboot;
mod table;
#[cfg(test)]
mod tests;
mod values;
mod watchdogs;
mod writes;

use std::{collections::HashMap, fmt, rc::Rc, str::FromStr};

use record::Lasts;
use serde::{Serialize, Serializer};
use thiserror::Error;

pub use self::{
    apply::{Kept, Lock, Refused, TuneError, Tuning, apply, changed_since, check_journals, in_force, keep, revert},
    boot::{Boot, boot, by_hand, steps_for, with_running_isolation},
    files::{KeptFiles, NewFile, Service, drop_in, keep_files, search_unit, unit, without_effect},
    firmware::{AdvisedLine, Firmware, firmware},
    table::{DEFINITIONS, Definition},
};
pub(crate) use self::{
    boot::{VENDOR, arguments_to_add, is_boot_file, known_boot_lines, known_preset_lines, known_tuned_lines},
    cache::Share,
    files::{is_created_file, is_created_folder, is_persistent},
};
use crate::{
    CpuList, Root, cpus, facts,
    nic::{Parameter, Value},
    system_ops::SystemOps,
    virt,
};

/// A setting that the user names: `cpu.governor`, `cpu.max_freq=1000MHz`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The id of the setting.
    pub id: &'static str,
    /// Its value; `None` for the default value.
    pub value: Option<String>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.id),
            None => f.write_str(self.id),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, value) = text.split_once('=').map_or((text, None), |(id, value)| (id, Some(value)));
        let Some(definition) = definition(id.trim()) else {
            let ids: Vec<&str> = DEFINITIONS.iter().map(|definition| definition.id).collect();
            return Err(format!("unknown setting `{id}`: the settings are {}", ids.join(", ")));
        };
        let value = value.map(str::trim);
        if value.is_some_and(|value| value.is_empty() || value.contains(char::is_control)) {
            return Err(format!("`{}` has no value: use {}", definition.id, definition.values));
        }
        Ok(Self { id: definition.id, value: value.map(str::to_owned) })
    }
}

/// The definition with this id.
#[must_use]
pub fn definition(id: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.id == id)
}

/// True for the files that the table of settings names.
pub(crate) fn is_tuned_file(path: &str) -> bool {
    DEFINITIONS.iter().flat_map(|definition| definition.files).any(|pattern| matches(pattern, path))
}

/// True if a path has the form of a pattern: `#` is a number, and `*` the name of a device.
fn matches(pattern: &str, path: &str) -> bool {
    let (parts, patterns): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), pattern.split('/').collect());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = |(pattern, part): (&&str, &&str)| match pattern.split_once('#') {
        Some((before, after)) => {
            part.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).is_some_and(is_number)
        }
        _ if *pattern == "*" => !matches!(*part, "" | "." | "..") && !part.contains(char::is_control),
        _ => pattern == part,
    };
    parts.len() == patterns.len() && patterns.iter().zip(&parts).all(part)
}

/// The purpose of a plan.
#[derive(Debug, Clone, Default)]
pub struct Need {
    /// CPUs for real-time work: settings of CPUs change these only, and other work is moved away from them. `None` for all
    /// CPUs, and no work is moved.
    pub cpus: Option<CpuList>,
    /// Settings with values, and settings on request.
    pub set: Vec<Choice>,
    /// The ids of the only settings to change; empty for all.
    pub only: Vec<&'static str>,
    /// The ids of settings to leave alone.
    pub without: Vec<&'static str>,
    /// The largest lateness that the use of the machine tolerates, ns, if it is known. A CPU may use a tenth of it to leave
    /// an idle state.
    pub limit_ns: Option<u64>,
}

/// How a user chose a setting, the strongest choice first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// With a value.
    Value,
    /// By its name only.
    Name,
    /// Not at all: it gets its default value.
    Default,
}

impl Need {
    /// How the user chose the setting `id`.
    #[must_use]
    pub fn rank(&self, id: &str) -> Rank {
        let mut named = self.set.iter().filter(|choice| choice.id == id).peekable();
        match named.peek().is_some() || self.only.contains(&id) {
            true if named.any(|choice| choice.value.is_some()) => Rank::Value,
            true => Rank::Name,
            false => Rank::Default,
        }
    }

    /// True if the plan contains the setting of the highest frequency, with its default value.
    fn lifts_limits(&self) -> bool {
        const ID: &str = "cpu.max_freq";
        let is_planned = self.only.is_empty() || self.rank(ID) != Rank::Default;
        let is_fixed = self.set.iter().any(|choice| choice.id == "cpu.frequency");
        is_planned && self.rank(ID) != Rank::Value && !is_fixed && !self.without.contains(&ID)
    }
}

/// Settings of this machine, sorted by what changing them would do.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// Settings that would change something here.
    pub changes: Vec<Setting>,
    /// Settings that already have the wanted value.
    pub right: Vec<Setting>,
    /// Settings that this machine does not have, or that cannot be changed here. Those that the user named come first.
    pub not_here: Vec<NotHere>,
    /// Settings that would change something, but only change if they are named, because of their cost.
    pub on_request: Vec<OnRequest>,
}

/// A setting with its values before and after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Stable id: that of the finding that it answers, if there is one.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The values to write, in this order. Equal ones are not written.
    pub writes: Vec<Write>,
    /// Expected effect.
    pub effect: &'static str,
    /// Risk, or cost.
    pub risk: &'static str,
    /// Duration of the change.
    pub lasts: Lasts,
    /// The document that describes it.
    pub source: &'static str,
    /// The reason why it has less effect than that here, or none; `None` if nothing speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Setting {
    /// The values to change.
    pub fn changes(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(|write| write.from != write.to)
    }

    /// True if everything has the wanted value.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.changes().next().is_none()
    }

    /// The values of several writes in one text, each value once: `powersave`, `800000, 1000000`. In words where the value of
    /// the kernel has another meaning than it seems.
    #[must_use]
    pub fn values(writes: &[&Write], value: impl Fn(&Write) -> &str) -> String {
        let mut values: Vec<String> = writes.iter().map(|write| write.target.in_words(value(write))).collect();
        let mut seen = std::collections::HashSet::new();
        values.retain(|value| seen.insert(value.clone()));
        match values.as_slice() {
            [first, second, third, _, ..] => format!("{first}, {second}, {third}, ..."),
            _ => values.join(", "),
        }
    }
}

/// One value to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// The place that is changed.
    pub target: Target,
    /// The value that it has.
    pub from: String,
    /// The value that it gets.
    pub to: String,
    /// The expectation that the kernel refuses this one while the setting as a whole is useful.
    #[serde(skip)]
    pub refusal: Refusal,
}

/// The expectation of a refusal: the kernel moves no interrupt that its driver manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A refusal would be a failure of the setting.
    Failure,
    /// The kernel may refuse it.
    Possible,
    /// The kernel probably refuses it: the handler with this name is that of a managed interrupt.
    Likely(String),
}

/// The target of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file of the kernel, without the leading slash.
    File(String),
    /// The scheduling policy of a thread of the kernel.
    Thread {
        /// Thread id.
        id: u32,
        /// Its start, in clock ticks since boot: with the id, it identifies the thread.
        start_ticks: u64,
        /// Its name.
        name: String,
    },
    /// A share of the cache for some CPUs.
    Cache(Share),
    /// The CPUs of all programs: they leave these.
    Programs(CpuList),
    /// A driver setting of an interface, with the values from and to.
    Nic {
        /// The interface.
        interface: String,
        /// The setting.
        parameter: Parameter,
        /// Its value.
        from: Value,
        /// The value that it gets.
        to: Value,
    },
}

impl Target {
    /// A value of this target, in words where the value alone says little.
    #[must_use]
    pub fn in_words(&self, value: &str) -> String {
        match (self, value) {
            (Self::File(path), "0") if path.ends_with("/pm_qos_resume_latency_us") => "no limit".to_owned(),
            (Self::File(path), "n/a") if path.ends_with("/pm_qos_resume_latency_us") => "no idle state".to_owned(),
            (Self::File(path), us) if path.ends_with("/pm_qos_resume_latency_us") => format!("{us} us"),
            (Self::Programs(_), programs::NONE) => "free".to_owned(),
            (Self::Programs(_), _) => "in use".to_owned(),
            _ => value.to_owned(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "/{path}"),
            Self::Thread { id, name, .. } => write!(f, "thread {id} ({name})"),
            Self::Cache(_) => f.write_str("share of the cache"),
            Self::Programs(freed) => write!(f, "programs on {}", freed.in_words()),
            Self::Nic { interface, parameter, .. } => write!(f, "{interface} {}", parameter.name()),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A setting that cannot be changed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotHere {
    /// Its id.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The reason.
    pub reason: String,
    /// True if the user named it.
    pub is_named: bool,
    /// True if it would change something, but is read-only here, e.g. in a container.
    pub is_read_only: bool,
}

/// A setting that only changes if it is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OnRequest {
    /// Its id.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its values, in words.
    pub values: &'static str,
    /// Its risk or cost.
    pub risk: &'static str,
}

/// Error: a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A value that the setting does not take.
    #[error("{id}: {reason}")]
    Value {
        /// The setting.
        id: &'static str,
        /// The reason, with the values that it takes.
        reason: String,
    },
    /// A setting that the user named cannot be changed here.
    #[error("{} cannot be changed: {}", .0.id, .0.reason)]
    NotHere(NotHere),
    /// The list of CPUs for real-time work is empty.
    #[error("the list of CPUs is empty: name at least one of {0}")]
    NoCpus(CpuList),
    /// A CPU does not exist or is offline.
    #[error("{} not online here: see /sys/devices/system/cpu/online", cpus::with_verb(.0))]
    Cpus(CpuList),
}

/// The reason why a setting has no writes.
enum WhyNot {
    /// It cannot be changed here.
    Here(String),
    /// It can be changed, but that would have no effect here. One that the user names is changed nevertheless.
    NoEffect(String),
    /// The file or device that would change is read-only here.
    ReadOnly(Target),
    /// It does not take this value.
    Value(String),
}

/// A machine and the purpose, for the functions of the table.
#[derive(Clone)]
struct Context<'a> {
    ops: &'a dyn SystemOps,
    root: &'a Root,
    online: CpuList,
    /// CPUs whose settings change: for a setting that the user did not name, those that `check` judges.
    cpus: CpuList,
    /// CPUs that other work is moved away from; empty if there are none, or if no CPU would remain for other work.
    freed: CpuList,
    /// True if all online CPUs are named for real-time work.
    is_all_named: bool,
    limit_ns: Option<u64>,
    /// True if limits below the highest frequency of a CPU are lifted as well.
    lifts_limits: bool,
    /// True if the user named the setting that is read, so that it changes also where no effect is expected.
    is_named: bool,
}

impl<'a> Context<'a> {
    fn new(ops: &'a dyn SystemOps, root: &'a Root, need: &Need) -> Result<Self, PlanError> {
        let online = cpus::online_cpus(root);
        if need.cpus.as_ref().is_some_and(CpuList::is_empty) {
            return Err(PlanError::NoCpus(online));
        }
        let missing = need.cpus.as_ref().map(|cpus| cpus.difference(&online)).unwrap_or_default();
        if !missing.is_empty() {
            return Err(PlanError::Cpus(missing));
        }
        let cpus = need.cpus.clone().unwrap_or_else(|| online.clone());
        let freed = need.cpus.clone().unwrap_or_else(|| facts::isolated_cpus(root).intersection(&online));
        let freed = if online.difference(&freed).is_empty() { CpuList::new() } else { freed };
        let is_all_named = need.cpus.is_some() && online.difference(&cpus).is_empty();
        let (limit_ns, lifts_limits) = (need.limit_ns, need.lifts_limits());
        Ok(Self { ops, root, online, cpus, freed, is_all_named, limit_ns, lifts_limits, is_named: false })
    }
}

/// Reads this machine, and sorts all settings. Changes nothing.
///
/// # Errors
/// [`PlanError`]: a CPU or a value that this machine does not have.
pub fn plan(root: &Root, need: &Need) -> Result<Plan, PlanError> {
    plan_with(root, need)
}

fn plan_with(ops: &dyn SystemOps, need: &Need) -> Result<Plan, PlanError> {
    let root = ops.root().kept_at_once();
    let mut context = Context::new(ops, &root, need)?;
    let all = context.cpus.clone();
    let judged = if context.freed.is_empty() { all.clone() } else { all.intersection(&context.freed) };
    let mut plan = Plan::default();
    for definition in DEFINITIONS {
        let rank = need.rank(definition.id);
        let is_named = rank != Rank::Default;
        if need.without.contains(&definition.id) {
            if is_named {
                let reason = "it is both named and left alone: leave one of them out".to_owned();
                return Err(PlanError::Value { id: definition.id, reason });
            }
            continue;
        }
        if !need.only.is_empty() && !is_named {
            continue;
        }
        context.is_named = is_named;
        context.cpus = if is_named { all.clone() } else { judged.clone() };
        // Only what this setting reads says why it has no device.
        root.take_unread();
        match read(definition, &context, need) {
            Err(WhyNot::Value(reason)) if is_named => return Err(PlanError::Value { id: definition.id, reason }),
            Err(why @ (WhyNot::Here(_) | WhyNot::NoEffect(_) | WhyNot::ReadOnly(_))) => {
                let (reason, is_read_only) = match why {
                    WhyNot::ReadOnly(target) => {
                        let why = match virt::container(&root).as_deref() {
                            Some("none") => "and not because of a container: see `mount`",
                            _ => "e.g. in a container: run on the host",
                        };
                        (format!("{target} is read-only, {why}"), true)
                    }
                    WhyNot::Here(reason) | WhyNot::NoEffect(reason) | WhyNot::Value(reason) => (reason, false),
                };
                let Definition { id, name, .. } = *definition;
                plan.not_here.push(NotHere { id, name, reason, is_named, is_read_only });
            }
            Ok(setting) if setting.is_right() => plan.right.push(setting),
            Ok(setting) if is_named || !definition.is_on_request => plan.changes.push(setting),
            // Without a value, the settings that need one are not read further.
            Ok(_) | Err(WhyNot::Value(_)) => plan.on_request.push(definition.on_request()),
        }
    }
    remove_conflicts(&mut plan, need);
    check_frequencies(&plan, &root)?;
    plan.not_here.sort_by_key(|not| !not.is_named);
    Ok(plan)
}

/// Reads a setting with the value that the user gave. Of several values, only those of a setting that names devices are
/// used together; a later one has precedence for the same device.
fn read(definition: &Definition, context: &Context<'_>, need: &Need) -> Result<Setting, WhyNot> {
    let mut values: Vec<&str> = Vec::new();
    for choice in need.set.iter().filter(|choice| choice.id == definition.id) {
        values.extend(choice.value.as_deref().filter(|value| !values.contains(value)));
    }
    let (first, others) = match values.as_slice() {
        [] => (None, &[][..]),
        [first, others @ ..] => (Some(*first), others),
    };
    if let (Some(first), [second, ..]) = (first, others)
        && !definition.names_devices()
    {
        return Err(WhyNot::Value(format!("it has two values, {first} and {second}: leave one out")));
    }
    let mut setting = definition.read(context, first)?;
    for value in others {
        for write in definition.read(context, Some(value))?.writes {
            setting.writes.retain(|earlier| earlier.target.to_string() != write.target.to_string());
            setting.writes.push(write);
        }
    }
    Ok(setting)
}

/// Refuses a lowest frequency above the highest one: the kernel would reduce it without a word.
fn check_frequencies(plan: &Plan, root: &Root) -> Result<(), PlanError> {
    const ID: &str = "cpu.min_freq";
    let writes = || plan.changes.iter().chain(&plan.right).flat_map(|setting| &setting.writes);
    let lowest = plan.changes.iter().filter(|setting| setting.id == ID).flat_map(|setting| &setting.writes);
    for write in lowest {
        let Target::File(path) = &write.target else { continue };
        let limit = path.replace("scaling_min_freq", "scaling_max_freq");
        let planned = writes().find(|write| matches!(&write.target, Target::File(path) if *path == limit));
        let highest = planned.map(|write| write.to.clone()).or_else(|| root.read(&limit));
        if let (Ok(lowest), Some(Ok(highest))) = (write.to.parse::<u64>(), highest.map(|khz| khz.parse::<u64>()))
            && lowest > highest
        {
            let [lowest, highest] = [lowest, highest].map(frequency::in_mhz);
            let reason = format!(
                "{lowest} is above the highest frequency of {highest} (/{limit}): give a lower one, or a higher cpu.max_freq"
            );
            return Err(PlanError::Value { id: ID, reason });
        }
    }
    Ok(())
}

/// Leaves one of several settings that give the same target different values: the one to which the user gave a value, or
/// else one that was named, or else the first of the table. The others would be refused when they are applied.
fn remove_conflicts(plan: &mut Plan, need: &Need) {
    let position = |id: &str| DEFINITIONS.iter().position(|definition| definition.id == id);
    let mut settings: Vec<&Setting> = plan.changes.iter().chain(&plan.right).collect();
    settings.sort_by_key(|setting| (need.rank(setting.id), position(setting.id)));
    let mut values: HashMap<String, (&str, &'static str)> = HashMap::new();
    let mut conflicts = Vec::new();
    for setting in settings {
        let known = |write: &&Write| values.get(&write.target.to_string()).filter(|(value, _)| *value != write.to);
        if let Some(write) = setting.writes.iter().find(|write| known(write).is_some()) {
            let (value, other) = values[&write.target.to_string()];
            let reason = format!("{other} sets {} to {value}", write.target);
            let Setting { id, name, .. } = *setting;
            let is_named = need.rank(id) != Rank::Default;
            conflicts.push(NotHere { id, name, reason, is_named, is_read_only: false });
            continue;
        }
        values.extend(setting.writes.iter().map(|write| (write.target.to_string(), (&*write.to, setting.id))));
    }
    let is_left = |setting: &Setting| !conflicts.iter().any(|conflict| conflict.id == setting.id);
    plan.changes.retain(is_left);
    plan.right.retain(is_left);
    plan.not_here.extend(conflicts);
}

/// Reads everything that plans of this machine depend on, for any CPUs and settings that the user may name.
pub(crate) fn read_all(root: &Root) {
    let online = cpus::online_cpus(root);
    let first: CpuList = online.first().into_iter().collect();
    let others = online.difference(&first);
    let sets = [None, Some(first), Some(others)];
    for cpus in sets.iter().filter(|cpus| cpus.as_ref().is_none_or(|cpus| !cpus.is_empty())) {
        let cpus = || cpus.clone();
        if let Ok(plan) = plan(root, &Need { cpus: cpus(), ..Need::default() }) {
            let _ = firmware(root, &plan);
        }
        for id in DEFINITIONS.iter().map(|definition| definition.id) {
            // Without a value, these settings read nothing.
            let value = match id {
                "cpu.frequency" => Some("max".to_owned()),
                "irq.priority" => Some("50".to_owned()),
                _ => None,
            };
            let _ =
                plan(root, &Need { cpus: cpus(), only: vec![id], set: vec![Choice { id, value }], ..Need::default() });
        }
        let freed = cpus().unwrap_or_else(|| facts::isolated_cpus(root));
        let _ = (boot(root, &freed), by_hand(root, &freed));
    }
}

/// The settings that the user named, for these CPUs, in the order of the table. One that already has its value has no
/// changes.
///
/// # Errors
/// [`PlanError`]: one cannot be changed here, or does not take its value.
pub fn chosen(root: &Root, choices: &[Choice], cpus: Option<&CpuList>) -> Result<Vec<Setting>, PlanError> {
    chosen_with(root, choices, cpus)
}

fn chosen_with(ops: &dyn SystemOps, choices: &[Choice], cpus: Option<&CpuList>) -> Result<Vec<Setting>, PlanError> {
    let ids = choices.iter().map(|choice| choice.id).collect();
    let need = Need { cpus: cpus.cloned(), set: choices.to_vec(), only: ids, ..Need::default() };
    if need.only.is_empty() {
        return Ok(Vec::new());
    }
    let Plan { changes, right, not_here, .. } = plan_with(ops, &need)?;
    if let Some(first) = not_here.into_iter().next() {
        return Err(PlanError::NotHere(first));
    }
    let position = |setting: &Setting| DEFINITIONS.iter().position(|definition| definition.id == setting.id);
    let mut settings: Vec<Setting> = changes.into_iter().chain(right).collect();
    settings.sort_by_key(position);
    Ok(settings)
}

/// The operations on the machine below a root.
fn ops_of(root: &Root) -> Rc<dyn SystemOps> {
    Rc::new(root.clone())
}
