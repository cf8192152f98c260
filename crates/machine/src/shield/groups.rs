//! Control groups that keep tasks off CPUs, as lists of steps: a cpuset partition of version 2, or cpusets of version 1.

use std::process;

use record::ShieldMeans;

use crate::{
    CpuList, Root,
    cgroup::{self, Group},
    cpus,
    hands::Hands,
    journal::Undo,
};

/// How often a set is read again for tasks that were born in it while others were moved.
const ROUNDS: u32 = 20;

/// What is to be done, and what undoes it.
#[derive(Debug)]
pub(super) struct Plan {
    /// Folder of the group that is made.
    pub group: String,
    /// Folder of the topmost group.
    pub top: String,
    /// Folder of the group that this process has to leave for the topmost one.
    pub home: Option<String>,
    /// What undoes all of it.
    pub undo: Vec<Undo>,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Make(String),
    Write(String, String),
    /// Makes the group a partition, isolated where the kernel can.
    Partition,
    /// Moves all tasks of the topmost group, but for our own, into the group.
    Gather,
}

/// The ways that this machine offers, the best first.
pub(super) fn plans(root: &Root, cpus: &CpuList) -> Vec<Plan> {
    partition(root, cpus).into_iter().chain(cpusets(root, cpus)).collect()
}

/// A threaded group: the threads of one process can be inside and outside, as ours have to be. That asks for the
/// process to be in the group above, the topmost.
fn partition(root: &Root, cpus: &CpuList) -> Option<Plan> {
    let own = cgroup::group_v2(root)?;
    let has_cpuset = |file: &str| {
        let listed = root.read(&format!("{}/{file}", own.top)).unwrap_or_default();
        listed.split_whitespace().any(|name| name == "cpuset")
    };
    if !has_cpuset("cgroup.controllers") {
        return None;
    }
    let group = format!("{}/punctual-{}", own.top, process::id());
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
    Some(leaving_home(own, group, undo, steps))
}

/// A set for all tasks of the topmost one; the sets beside it give up the shielded CPUs. This process moves to the
/// topmost set, which keeps them.
fn cpusets(root: &Root, cpus: &CpuList) -> Option<Plan> {
    let own = cgroup::group_v1(root, "cpuset")?;
    let list = |folder: &str| root.read(&format!("{folder}/cpuset.cpus"))?.parse::<CpuList>().ok();
    let rest = list(&own.top)?.intersection(&cpus::online(root)).difference(cpus);
    let memory = root.read(&format!("{}/cpuset.mems", own.top))?;
    let group = format!("{}/punctual-{}", own.top, process::id());
    let mut undo = vec![Undo::Group { folder: group.clone(), members: "tasks".to_owned() }];
    let mut steps = vec![
        Step::Make(group.clone()),
        Step::Write(format!("{group}/cpuset.cpus"), rest.to_string()),
        Step::Write(format!("{group}/cpuset.mems"), memory),
    ];
    // The deepest first, since a set may have no CPU that the one above it has not.
    for folder in sets_below(root, &own.top).into_iter().rev() {
        let Some(before) = list(&folder).filter(|before| !before.intersection(cpus).is_empty()) else { continue };
        let during = before.difference(cpus);
        let during = if during.is_empty() { &rest } else { &during };
        let (path, before, during) = (format!("{folder}/cpuset.cpus"), before.to_string(), during.to_string());
        steps.push(Step::Write(path.clone(), during.clone()));
        undo.push(Undo::File { path, before, during });
    }
    let mut plan = leaving_home(own, group, undo, steps);
    plan.steps.push(Step::Gather);
    Some(plan)
}

fn leaving_home(own: Group, group: String, undo: Vec<Undo>, mut steps: Vec<Step>) -> Plan {
    let home = (own.folder != own.top).then_some(own.folder);
    if home.is_some() {
        steps.insert(0, Step::Write(format!("{}/cgroup.procs", own.top), process::id().to_string()));
    }
    Plan { group, top: own.top, home, undo, steps }
}

/// The sets below a folder, each above those that are in it.
fn sets_below(root: &Root, folder: &str) -> Vec<String> {
    let below = |name: String| format!("{folder}/{name}");
    let sets = root.list(folder).into_iter().map(below).filter(|set| root.exists(&format!("{set}/cpuset.cpus")));
    sets.flat_map(|set| [vec![set.clone()], sets_below(root, &set)].concat()).collect()
}

impl Plan {
    /// Does it; or tells what the kernel refused, in one sentence.
    pub(super) fn make(&self, hands: &dyn Hands) -> Result<ShieldMeans, String> {
        let mut means = ShieldMeans::CpusetV1;
        for step in &self.steps {
            let done = match step {
                Step::Make(folder) => hands.make_group(folder).map_err(|error| (folder.clone(), error)),
                Step::Write(path, text) => hands.write(path, text).map_err(|error| (path.clone(), error)),
                Step::Partition => {
                    means = self.make_partition(hands)?;
                    Ok(())
                }
                Step::Gather => {
                    self.gather(hands);
                    Ok(())
                }
            };
            done.map_err(|(path, error)| format!("{} did not serve: /{path}: {error}", self.in_words()))?;
        }
        Ok(means)
    }

    fn make_partition(&self, hands: &dyn Hands) -> Result<ShieldMeans, String> {
        let path = format!("{}/cpuset.cpus.partition", self.group);
        let mut said = String::new();
        // Before Linux 6.1 there are no isolated ones.
        for (kind, means) in [("isolated", ShieldMeans::IsolatedPartition), ("root", ShieldMeans::RootPartition)] {
            if let Err(error) = hands.write(&path, kind) {
                said = error.to_string();
                continue;
            }
            said = hands.root().read(&path).unwrap_or_default();
            if said == kind {
                return Ok(means);
            }
        }
        Err(format!("{} did not serve: /{path}: {said}", self.in_words()))
    }

    /// What the kernel does not let go (its own threads, most of them) is left to their affinity.
    fn gather(&self, hands: &dyn Hands) {
        let root = hands.root();
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
            refused.extend(left.into_iter().filter(|task| hands.write(&to, task).is_err()));
        }
    }

    fn in_words(&self) -> &'static str {
        let is_v1 = self.steps.iter().any(|step| matches!(step, Step::Gather));
        if is_v1 { "cpusets of control groups v1" } else { "a cpuset partition" }
    }
}
