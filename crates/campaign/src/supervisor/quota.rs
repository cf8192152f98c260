//! The CPU quotas of the control groups of punctual and of its measuring threads.
//!
//! Threads of one process can be in several groups: with version 1, and in threaded groups of version 2.

use std::collections::BTreeMap;

use machine::{QuotaFiles, Root};
use probes::probe_threads::ThreadInfo;

/// Shortest stop by quotas that counts, us.
const STOPPED_US: u64 = 1000;

/// The groups at the last check, and the time for which their quotas had stopped threads.
#[derive(Debug)]
pub(super) struct QuotaWatch {
    members: Vec<Member>,
    /// By the folder of the group, us. A group of several members counts once.
    stopped_us: BTreeMap<String, u64>,
}

/// Punctual itself, or one of its measuring threads.
#[derive(Debug)]
struct Member {
    place: String,
    /// Its folder below `/proc`.
    task: String,
    groups: QuotaFiles,
}

impl QuotaWatch {
    /// Remembers the groups of this process and of its measuring threads.
    pub fn start(root: &Root, threads: &[ThreadInfo<'_>]) -> Self {
        let of_threads =
            threads.iter().map(|thread| (thread.place.as_str(), format!("self/task/{}", thread.grant.thread_id)));
        Self::of(root, [("punctual", "self".to_owned())].into_iter().chain(of_threads))
    }

    fn of<'a>(root: &Root, members: impl Iterator<Item = (&'a str, String)>) -> Self {
        let member = |(place, task): (&str, String)| {
            let groups = QuotaFiles::of(root, &task);
            Member { place: place.to_owned(), task, groups }
        };
        let mut watch = Self { members: members.map(member).collect(), stopped_us: BTreeMap::new() };
        watch.stopped_us = watch.counts(root);
        watch
    }

    /// True if a quota can stop one of the threads.
    pub fn has_quota(&self, root: &Root) -> bool {
        self.members.iter().any(|member| member.groups.has_quota(root))
    }

    /// Returns in words what quotas have done since the last check.
    pub fn check(&mut self, root: &Root) -> Vec<String> {
        let mut found = Vec::new();
        for member in &mut self.members {
            let groups = QuotaFiles::of(root, &member.task);
            // A thread that has ended has no group.
            if groups == member.groups || groups == QuotaFiles::default() {
                continue;
            }
            // How long the quota of the new group has stopped this thread is not known.
            if groups.has_quota(root) {
                found.push(format!("{} was moved into a control group with a CPU quota", member.place));
            }
            member.groups = groups;
        }
        let now = self.counts(root);
        let before = std::mem::replace(&mut self.stopped_us, now);
        let since = |(group, us): (&String, &u64)| before.get(group).map_or(0, |before| us.saturating_sub(*before));
        let us: u64 = self.stopped_us.iter().map(since).sum();
        if us >= STOPPED_US {
            found.push(format!("the CPU quota of a control group stopped its threads for {} ms", us / 1000));
        }
        found
    }

    fn counts(&self, root: &Root) -> BTreeMap<String, u64> {
        self.members.iter().flat_map(|member| member.groups.stopped_us_by_group(root)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn adds_groups_of_threads_once_and_notices_a_move() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        let stopped = |group: &str, ms: u64| {
            write(
                &format!("sys/fs/cgroup/cpu{group}/cpu.stat"),
                &format!("nr_periods 9\nthrottled_time {}\n", ms * 1_000_000),
            );
        };
        write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
        for task in ["self", "self/task/1", "self/task/2"] {
            write(&format!("proc/{task}/cgroup"), "1:cpu:/\n");
        }
        let members = || [("CPU 0", "self/task/1"), ("CPU 1", "self/task/2")].into_iter();
        let watch = || {
            let of_threads = members().map(|(place, task)| (place, task.to_owned()));
            QuotaWatch::of(&root, [("punctual", "self".to_owned())].into_iter().chain(of_threads))
        };
        let none = watch();
        assert!(!none.has_quota(&root));

        for task in ["self/task/1", "self/task/2"] {
            write(&format!("proc/{task}/cgroup"), "1:cpu:/slow\n");
        }
        stopped("/slow", 7);
        let mut both = watch();
        assert!(both.has_quota(&root));
        assert_eq!(both.check(&root), [] as [&str; 0], "stopped before the run");
        stopped("/slow", 11);
        let text = "the CPU quota of a control group stopped its threads for 4 ms";
        assert_eq!(both.check(&root), [text], "not once for each thread");

        stopped("/other", 1000);
        write("proc/self/task/2/cgroup", "1:cpu:/other\n");
        assert_eq!(both.check(&root), ["CPU 1 was moved into a control group with a CPU quota"]);
        stopped("/other", 1004);
        assert_eq!(both.check(&root), [text]);
        fs::remove_file(root.path("proc/self/task/2/cgroup")).unwrap();
        assert_eq!(both.check(&root), [] as [&str; 0], "the thread has ended");
    }
}
