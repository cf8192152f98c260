//! CPUs kept free of other work during a run: how, what was moved, what could not be, and what was put back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// The shield of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Shielding {
    /// The shielded CPUs, as the kernel writes a list.
    pub cpus: String,
    /// What keeps tasks off them.
    pub means: ShieldMeans,
    /// Those of them that were isolated at boot.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub isolated_at_boot: String,
    /// Tasks (threads) that could run there and no longer can.
    pub tasks_moved: u32,
    /// Interrupts that could strike there and no longer can.
    pub interrupts_moved: u32,
    /// What stayed there.
    #[serde(default)]
    pub left: Vec<Left>,
    /// Why better means did not serve, and what else was refused.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What was put back afterwards; absent while the run is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_back: Option<PutBack>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What keeps tasks off shielded CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShieldMeans {
    /// The affinity of each task, set one by one: new tasks inherit it, but any task may set it anew.
    #[default]
    Affinity,
    /// An isolated cpuset partition of control groups v2: no other task can get there, and nothing is balanced there.
    IsolatedPartition,
    /// A cpuset partition of control groups v2: no other task can get there.
    RootPartition,
    /// Cpusets of control groups v1: no task that was moved can get there.
    CpusetV1,
    /// They were isolated at boot; tasks that are there nevertheless were moved by their affinity.
    Boot,
}

/// Something that could not be moved off the shielded CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// What it is.
    pub kind: LeftKind,
    /// How many.
    pub count: u32,
    /// The names of some of them.
    pub names: Vec<String>,
    /// Why it could not be moved.
    pub why: String,
    /// Whether only a right was missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_right: bool,
}

/// What could not be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftKind {
    /// Threads of the kernel.
    KernelThreads,
    /// Threads of programs.
    #[default]
    Tasks,
    /// Interrupts.
    Interrupts,
}

/// What was put back as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PutBack {
    /// Tasks that have their affinity again.
    pub tasks: u32,
    /// Interrupts that have their CPUs again.
    pub interrupts: u32,
    /// Other settings of the kernel.
    pub settings: u32,
    /// Control groups that were removed.
    pub groups: u32,
    /// What someone else has changed meanwhile, and is left so.
    #[serde(default)]
    pub changed_since: Vec<String>,
    /// What the kernel did not let put back, and why.
    #[serde(default)]
    pub failed: Vec<String>,
}

impl ShieldMeans {
    /// In words: `an isolated cpuset partition`.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Affinity => "the affinity of each task",
            Self::IsolatedPartition => "an isolated cpuset partition",
            Self::RootPartition => "a cpuset partition",
            Self::CpusetV1 => "cpusets (v1)",
            Self::Boot => "isolation at boot",
        }
    }
}

impl Left {
    /// In words: `6 kernel threads (ksoftirqd/1, migration/1, ...): each belongs to its CPU`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let what = match (self.kind, self.count) {
            (LeftKind::KernelThreads, 1) => "kernel thread",
            (LeftKind::KernelThreads, _) => "kernel threads",
            (LeftKind::Tasks, 1) => "task",
            (LeftKind::Tasks, _) => "tasks",
            (LeftKind::Interrupts, 1) => "interrupt",
            (LeftKind::Interrupts, _) => "interrupts",
        };
        let more = if (self.names.len() as u32) < self.count { ", ..." } else { "" };
        format!("{} {what} ({}{more}): {}", self.count, self.names.join(", "), self.why)
    }
}

impl PutBack {
    /// In words: `153 tasks, 12 interrupts, 1 setting and 1 control group`; `nothing` where there was nothing to do.
    #[must_use]
    pub fn in_words(&self) -> String {
        let parts = [
            (self.tasks, "task", "tasks"),
            (self.interrupts, "interrupt", "interrupts"),
            (self.settings, "setting", "settings"),
            (self.groups, "control group", "control groups"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|&(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
            .collect();
        match &parts[..] {
            [] => "nothing".to_owned(),
            [one] => one.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_a_sentence() {
        let back = |tasks, interrupts, groups| PutBack { tasks, interrupts, groups, ..PutBack::default() }.in_words();
        assert_eq!(back(0, 0, 0), "nothing");
        assert_eq!(back(1, 0, 0), "1 task");
        assert_eq!(back(153, 12, 1), "153 tasks, 12 interrupts and 1 control group");
        let left = Left {
            kind: LeftKind::KernelThreads,
            count: 3,
            names: vec!["ksoftirqd/1".into(), "migration/1".into()],
            why: "each belongs to its CPU".into(),
            no_right: false,
        };
        assert_eq!(left.in_words(), "3 kernel threads (ksoftirqd/1, migration/1, ...): each belongs to its CPU");
    }
}
