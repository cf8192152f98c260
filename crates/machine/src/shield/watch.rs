//! Watches a shield during a run: the files that it has written, and the threads that run on its CPUs.
//!
//! A thread that ran there between two checks and has left since cannot be seen. Kernel threads are expected, because the
//! kernel binds some to each CPU.

use std::{
    collections::{BTreeMap, BTreeSet},
    process,
};

use crate::{
    CpuList, Root,
    journal::Undo,
    tasks::{self, OnCpu},
};

/// CPU time between two checks above which a thread that was there before has run, ns.
const RAN_NS: u64 = 1_000_000;

/// The watch of a shield.
#[derive(Clone, Debug)]
pub struct Watch {
    root: Root,
    cpus: CpuList,
    /// Files with the contents that the shield gave them.
    files: BTreeMap<String, String>,
    /// CPU time of each foreign thread whose last CPU is shielded, by id and start time, ns.
    known: BTreeMap<(u32, u64), u64>,
    /// The threads that were reported, or are already in the record.
    reported: BTreeSet<(u32, u64)>,
}

impl Watch {
    pub(super) fn new(root: &Root, cpus: &CpuList) -> Self {
        let (files, known, reported) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { root: root.clone(), cpus: cpus.clone(), files, known, reported }
    }

    /// Remembers the shield as it was taken: the files of `undo` and `partition`, the file of a cpuset partition, and
    /// the threads `left` on its CPUs. A refused write and a thread that could not be moved are already in the record.
    pub(super) fn remember(&mut self, undo: &[Undo], partition: Option<String>, left: BTreeSet<(u32, u64)>) {
        let changed = undo.iter().filter_map(|undo| match undo {
            Undo::File { path, .. } => Some(path.clone()),
            _ => None,
        });
        let contents = |path: String| (path.clone(), self.root.read(&path).unwrap_or_default());
        self.files = partition.into_iter().chain(changed).map(contents).collect();
        self.reported = left;
    }

    /// This watch for a phase that begins now. What changed before, and a thread that came before and still runs, are
    /// reported.
    pub(super) fn restarted(mut self) -> Self {
        self.known = self.foreign(&[]).map(|task| (key(&task), task.ran_ns)).collect();
        self
    }

    /// Returns the changes since the last check in words. `own_groups` are the process groups of the loads.
    pub fn check(&mut self, own_groups: &[u32]) -> Vec<String> {
        let mut found = Vec::new();
        for (path, contents) in &mut self.files {
            let Some(now) = self.root.read(path).filter(|now| now != contents) else { continue };
            found.push(format!("somebody changed /{path} of the shield from `{contents}` to `{now}`"));
            *contents = now;
        }
        let foreign: Vec<OnCpu> = self.foreign(own_groups).collect();
        for task in &foreign {
            // The last CPU of a thread changes only when it runs or is about to: a new one has run there.
            let ran = self.known.get(&key(task)).is_none_or(|&before| task.ran_ns >= before + RAN_NS);
            if ran && self.reported.insert(key(task)) {
                let OnCpu { name, id, cpu, .. } = task;
                found.push(format!("another thread ran on the shielded CPU {cpu}: {name} ({id})"));
            }
        }
        self.known = foreign.iter().map(|task| (key(task), task.ran_ns)).collect();
        found
    }

    /// The threads of other programs whose last CPU is shielded.
    fn foreign(&self, own_groups: &[u32]) -> impl Iterator<Item = OnCpu> {
        let own = process::id();
        tasks::on_cpus(&self.root, &self.cpus)
            .into_iter()
            .filter(move |task| task.process != own && task.parent != own && !own_groups.contains(&task.group))
    }
}

fn key(task: &OnCpu) -> (u32, u64) {
    (task.id, task.start_ticks)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder like `/` with threads: id, flags, last CPU, and CPU time.
    fn tasks(folder: &std::path::Path, tasks: &[(u32, u64, u32, u64)]) {
        for &(id, flags, cpu, ran_ns) in tasks {
            let path = folder.join(format!("proc/{id}/task/{id}"));
            fs::create_dir_all(&path).unwrap();
            let zeroes = "0 ".repeat(12);
            let after = "0 ".repeat(16);
            let stat = format!("{id} (task{id}) S 1 {id} {id} 0 -1 {flags} {zeroes}{id} {after}{cpu} 0");
            fs::write(path.join("stat"), stat).unwrap();
            fs::write(path.join("schedstat"), format!("{ran_ns} 0 1\n")).unwrap();
        }
    }

    #[test]
    fn reports_a_thread_that_came_before_the_phase_and_still_runs() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        tasks(folder.path(), &[(11, 0, 1, 5), (12, 0, 1, 5)]);
        let mut watch = Watch::new(&root, &"1".parse().unwrap());
        watch.remember(&[], None, [(11, 11)].into());
        let mut phase = watch.clone().restarted();
        assert_eq!(phase.check(&[]), [] as [&str; 0]);
        tasks(folder.path(), &[(11, 0, 1, 2_000_000), (12, 0, 1, 2_000_000)]);
        assert_eq!(phase.check(&[]), ["another thread ran on the shielded CPU 1: task12 (12)"]);
        assert_eq!(watch.restarted().check(&[]), [] as [&str; 0], "it has not run in this phase");
    }

    #[test]
    fn reports_a_thread_that_enters_and_a_file_that_changes() {
        const KERNEL: u64 = 0x0020_0000;
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let file = "cpus";
        fs::write(folder.path().join(file), "0").unwrap();
        tasks(folder.path(), &[(11, 0, 0, 5), (12, 0, 1, 5), (13, KERNEL, 1, 5)]);
        let undo = Undo::File { path: file.to_owned(), before: "0-1".to_owned(), during: "0".to_owned() };
        let mut watch = Watch::new(&root, &"1".parse().unwrap());
        watch.remember(&[undo], None, BTreeSet::new());
        let mut watch = watch.restarted();
        assert_eq!(watch.check(&[]), [] as [&str; 0], "a thread that left but has not run since is not there");
        tasks(folder.path(), &[(11, 0, 1, 6), (13, KERNEL, 1, 9_000_000), (14, 0, 1, 1)]);
        assert_eq!(watch.check(&[14]), ["another thread ran on the shielded CPU 1: task11 (11)"]);
        tasks(folder.path(), &[(11, 0, 1, 9_000_000), (12, 0, 1, 2_000_000)]);
        fs::write(folder.path().join(file), "0-1").unwrap();
        let found = watch.check(&[14]);
        let expected = [
            "somebody changed /cpus of the shield from `0` to `0-1`",
            "another thread ran on the shielded CPU 1: task12 (12)",
        ];
        assert_eq!(found, expected);
        assert_eq!(watch.check(&[14]), [] as [&str; 0]);
    }
}
