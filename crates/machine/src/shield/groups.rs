//! Control groups that keep tasks off CPUs, as lists of steps: a v2 cpuset partition, or v1 cpusets.

use std::process;

use record::ShieldMeans;

use crate::{
    CpuList, Root,
    cgroup::{self, Group},
    cpus,
    journal::{Journal, Undo},
    run_groups,
    system_ops::SystemOps,
};

/// Limit for moving tasks that start while others are moved.
const ROUNDS: u32 = 20;

/// The steps, and the entries that undo them.
#[derive(Debug)]
pub(super) struct Plan {
    /// Folder of the new group.
    pub group: String,
    /// Folder of the topmost group.
    pub top: String,
    /// Folder of the group that this process must leave for the topmost one.
    pub own_group: Option<String>,
    /// The entries that undo all steps.
    pub undo: Vec<Undo>,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Make(String),
    Write(String, String),
    /// Turns the group into a partition, an isolated one if the kernel supports it.
    Partition,
    /// Moves all tasks of the topmost group, except our own, into the group.
    Gather,
}

/// The plans that this machine supports, the best first.
pub(super) fn plans(root: &Root, cpus: &CpuList) -> Vec<Plan> {
    partition(root, cpus).into_iter().chain(cpusets(root, cpus)).collect()
}

/// A threaded group, because the threads of our process must be on both sides. The process itself must then be in the
/// group above, the topmost one.
fn partition(root: &Root, cpus: &CpuList) -> Option<Plan> {
    let own = cgroup::group_v2(root)?;
    let has_cpuset = |file: &str| {
        let listed = root.read(&format!("{}/{file}", own.top)).unwrap_or_default();
        listed.split_whitespace().any(|name| name == "cpuset")
    };
    if !has_cpuset("cgroup.controllers") {
        return None;
    }
    let group = format!("{}/{}", own.top, run_groups::own_name(root));
    let (mut undo, mut steps) = (Vec::new(), Vec::new());
    if !has_cpuset("cgroup.subtree_control") {
        undo.push(Undo::Controller { folder: own.top.clone(), name: "cpuset".to_owned() });
        steps.push(Step::Write(format!("{}/cgroup.subtree_control", own.top), "+cpuset".to_owned()));
    }
    undo.push(Undo::Group { folder: group.clone(), members: "cgroup.threads".to_owned() });
    steps.extend([
        Step::Make(group.clone()),
        Step::Write(format!("{group}/cgroup.type"), "threaded".to_owned()),
        Step::Write(format!("{group}/cpuset.cpus"), cpus.to_string()),
        Step::Partition,
    ]);
    Some(leaving_own_group(own, group, undo, steps))
}

/// A cpuset for all tasks of the topmost one; the other cpusets lose the shielded CPUs. This process moves to the
/// topmost cpuset, which keeps them.
fn cpusets(root: &Root, cpus: &CpuList) -> Option<Plan> {
    let own = cgroup::group_v1(root, "cpuset")?;
    let list = |folder: &str| root.read(&format!("{folder}/cpuset.cpus"))?.parse::<CpuList>().ok();
    let rest = list(&own.top)?.intersection(&cpus::online_cpus(root)).difference(cpus);
    let memory = root.read(&format!("{}/cpuset.mems", own.top))?;
    let group = format!("{}/{}", own.top, run_groups::own_name(root));
    let mut undo = vec![Undo::Group { folder: group.clone(), members: "tasks".to_owned() }];
    let mut steps = vec![
        Step::Make(group.clone()),
        Step::Write(format!("{group}/cpuset.cpus"), rest.to_string()),
        Step::Write(format!("{group}/cpuset.mems"), memory),
    ];
    // The deepest first, because a cpuset may only have CPUs of the one above it.
    for folder in sets_below(root, &own.top).into_iter().rev() {
        let Some(before) = list(&folder).filter(|before| !before.intersection(cpus).is_empty()) else { continue };
        let during = before.difference(cpus);
        let during = if during.is_empty() { &rest } else { &during };
        let (path, before, during) = (format!("{folder}/cpuset.cpus"), before.to_string(), during.to_string());
        steps.push(Step::Write(path.clone(), during.clone()));
        undo.push(Undo::File { path, before, during });
    }
    let mut plan = leaving_own_group(own, group, undo, steps);
    plan.steps.push(Step::Gather);
    Some(plan)
}

fn leaving_own_group(own: Group, group: String, undo: Vec<Undo>, mut steps: Vec<Step>) -> Plan {
    let own_group = (own.folder != own.top).then_some(own.folder);
    if own_group.is_some() {
        steps.insert(0, Step::Write(format!("{}/cgroup.procs", own.top), process::id().to_string()));
    }
    Plan { group, top: own.top, own_group, undo, steps }
}

/// The cpusets below a folder, parents before children.
fn sets_below(root: &Root, folder: &str) -> Vec<String> {
    let below = |name: String| format!("{folder}/{name}");
    let sets = root.list(folder).into_iter().map(below).filter(|set| root.exists(&format!("{set}/cpuset.cpus")));
    sets.flat_map(|set| [vec![set.clone()], sets_below(root, &set)].concat()).collect()
}

impl Plan {
    /// Executes the steps. The error is a sentence that names what the kernel refused.
    pub(super) fn execute(&self, ops: &dyn SystemOps, journal: &Journal) -> Result<ShieldMeans, String> {
        let mut means = ShieldMeans::CpusetV1;
        for step in &self.steps {
            let done = match step {
                Step::Make(folder) => {
                    let made = ops.make_group(folder).map_err(|error| (folder.clone(), error));
                    journal.keep_copy();
                    made
                }
                Step::Write(path, text) => ops.write(path, text).map_err(|error| (path.clone(), error)),
                Step::Partition => {
                    means = self.make_partition(ops)?;
                    Ok(())
                }
                Step::Gather => {
                    self.gather(ops);
                    Ok(())
                }
            };
            done.map_err(|(path, error)| format!("{} did not work: /{path}: {error}", self.in_words()))?;
        }
        Ok(means)
    }

    fn make_partition(&self, ops: &dyn SystemOps) -> Result<ShieldMeans, String> {
        let path = format!("{}/cpuset.cpus.partition", self.group);
        let mut state = String::new();
        // Kernels before 6.1 have no isolated partitions.
        for (kind, means) in [("isolated", ShieldMeans::IsolatedPartition), ("root", ShieldMeans::RootPartition)] {
            if let Err(error) = ops.write(&path, kind) {
                state = error.to_string();
                continue;
            }
            state = ops.root().read(&path).unwrap_or_default();
            if state == kind {
                return Ok(means);
            }
        }
        Err(format!("{} did not work: /{path}: {state}", self.in_words()))
    }

    /// Tasks that the kernel refuses to move (most of them kernel threads) are handled by their affinity.
    fn gather(&self, ops: &dyn SystemOps) {
        let root = ops.root();
        let own = root.list(&format!("proc/{}/task", process::id()));
        let mut refused: Vec<String> = Vec::new();
        for _ in 0..ROUNDS {
            let tasks = root.read(&format!("{}/tasks", self.top)).unwrap_or_default();
            let tasks = tasks.lines().map(str::to_owned);
            let left: Vec<String> = tasks.filter(|task| !own.contains(task) && !refused.contains(task)).collect();
            if left.is_empty() {
                break;
            }
            let to = format!("{}/tasks", self.group);
            refused.extend(left.into_iter().filter(|task| ops.write(&to, task).is_err()));
        }
    }

    fn in_words(&self) -> &'static str {
        let is_v1 = self.steps.iter().any(|step| matches!(step, Step::Gather));
        if is_v1 { "cpusets of control groups v1" } else { "a cpuset partition" }
    }
}
