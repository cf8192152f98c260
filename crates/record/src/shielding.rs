//! CPUs shielded from other work during a run: the method, the tasks and interrupts that were moved, those that could
//! not be moved, and the settings that were restored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, counted, grouped};

/// The shield of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Shielding {
    /// The shielded CPUs, as the kernel writes a list.
    pub cpus: String,
    /// The method that keeps tasks off these CPUs.
    pub means: ShieldMeans,
    /// Shielded CPUs that were isolated at boot, as the kernel writes a list; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub isolated_at_boot: String,
    /// Tasks (threads) that could run there before and no longer can.
    pub tasks_moved: u32,
    /// Interrupts that could be delivered there before and no longer can.
    pub interrupts_moved: u32,
    /// Tasks and interrupts that could not be moved.
    #[serde(default)]
    pub left: Vec<Left>,
    /// Why better methods were not available, and other refusals of the kernel.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The interrupts that could not be moved and occurred on the shielded CPUs during the run; absent if they were not
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub struck: Option<Vec<Strikes>>,
    /// The settings restored afterwards; absent during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_back: Option<PutBack>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An interrupt that occurred on shielded CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Strikes {
    /// Its number.
    pub interrupt: u32,
    /// The names of its handlers.
    pub name: String,
    /// How often it occurred there during the run.
    pub count: u64,
}

/// A method that keeps tasks off shielded CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShieldMeans {
    /// The affinity of each task, set one by one. New tasks inherit it, but any task may change it.
    #[default]
    Affinity,
    /// An isolated cpuset partition (cgroup v2): no other task can run there, and the scheduler does no load balancing.
    IsolatedPartition,
    /// A cpuset partition (cgroup v2): no other task can run there.
    RootPartition,
    /// Cpusets (cgroup v1): tasks that were moved cannot run there.
    CpusetV1,
    /// Isolation at boot; remaining tasks were moved by their affinity.
    Boot,
}

/// Tasks or interrupts that could not be moved off the shielded CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// Kind of task or interrupt.
    pub kind: LeftKind,
    /// Number of them.
    pub count: u32,
    /// The names of some of them.
    pub names: Vec<String>,
    /// Why it could not be moved.
    pub why: String,
    /// True if only a permission was missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_right: bool,
}

/// A kind of task or interrupt that could not be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftKind {
    /// Kernel threads.
    KernelThreads,
    /// User-space tasks.
    #[default]
    Tasks,
    /// Interrupts.
    Interrupts,
}

/// The restored settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PutBack {
    /// Tasks whose affinity was restored.
    pub tasks: u32,
    /// Interrupts whose affinity was restored.
    pub interrupts: u32,
    /// Other kernel settings that were restored.
    pub settings: u32,
    /// Control groups that were removed.
    pub groups: u32,
    /// Trace instances that were removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub traces: u32,
    /// Probes of the kernel in programs that were removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probes: u32,
    /// Settings that were left alone because something else changed them meanwhile.
    #[serde(default)]
    pub changed_since: Vec<String>,
    /// Settings that the kernel refused to restore, and why.
    #[serde(default)]
    pub failed: Vec<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ShieldMeans {
    /// Describes the method: `an isolated cpuset partition`.
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
    /// Describes it: `6 kernel threads (ksoftirqd/1, migration/1, ...): each belongs to its CPU`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let noun = match (self.kind, self.count) {
            (LeftKind::KernelThreads, 1) => "kernel thread",
            (LeftKind::KernelThreads, _) => "kernel threads",
            (LeftKind::Tasks, 1) => "task",
            (LeftKind::Tasks, _) => "tasks",
            (LeftKind::Interrupts, 1) => "interrupt",
            (LeftKind::Interrupts, _) => "interrupts",
        };
        let more = if self.names.len() < self.count as usize { ", ..." } else { "" };
        format!("{} {noun} ({}{more}): {}", grouped(self.count.into()), self.names.join(", "), self.why)
    }
}

impl Strikes {
    /// Describes it: `interrupt 36 (virtio1-req.0) 12 times`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { interrupt, name, count } = self;
        format!("interrupt {interrupt} ({name}) {}", counted(*count, "time"))
    }
}

impl PutBack {
    /// Lists the counts: `153 tasks, 12 interrupts, 1 setting and 1 control group`; `nothing` if all are 0.
    #[must_use]
    pub fn in_words(&self) -> String {
        let parts = [
            (self.tasks, "task"),
            (self.interrupts, "interrupt"),
            (self.settings, "setting"),
            (self.groups, "control group"),
            (self.traces, "trace instance"),
            (self.probes, "trace probe"),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|&(count, noun)| counted(count.into(), noun)).collect();
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
    fn describes_counts_in_words() {
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
