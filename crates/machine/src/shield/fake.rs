//! A simulated machine: a folder, and operations that change it as the kernel would.
//!
//! It behaves like older kernels: a control group overwrites the affinity of tasks that enter or leave it.

use std::{
    cell::Cell,
    fs,
    io::{self, ErrorKind},
};

use tempfile::TempDir;

use crate::{CpuList, Root, system_ops::SystemOps, tasks};

/// The control groups of the simulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Groups {
    V2,
    V1,
    None,
}

/// The flags of a kernel thread that is bound to its CPU, and of any kernel thread.
pub(super) const BOUND: u64 = 0x0420_0000;
pub(super) const KERNEL: u64 = 0x0020_0000;

#[derive(Debug)]
pub(super) struct Fake {
    /// Removed on drop.
    _folder: TempDir,
    root: Root,
    /// The number of changes until all further ones fail.
    pub left: Cell<usize>,
    pub done: Cell<usize>,
}

impl Fake {
    /// A machine with CPUs 0 to 3.
    pub(super) fn new(groups: Groups) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let fake = Self { _folder: folder, root, left: Cell::new(usize::MAX), done: Cell::new(0) };
        fake.put("sys/devices/system/cpu/online", "0-3");
        fake.put("sys/devices/system/cpu/present", "0-3");
        fake.put("sys/devices/system/cpu/isolated", "");
        fake.put("sys/devices/virtual/workqueue/cpumask", "0000000f");
        fake.put("proc/irq/default_smp_affinity", "0000000f");
        match groups {
            Groups::V2 => {
                fake.put("proc/self/cgroup", "0::/session");
                fake.put("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
                fake.put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu");
                fake.put("sys/fs/cgroup/cgroup.subtree_control", "cpu");
                fake.put("sys/fs/cgroup/cgroup.threads", "");
                fake.put("sys/fs/cgroup/cgroup.procs", "");
                fake.put("sys/fs/cgroup/session/cgroup.procs", "");
            }
            Groups::V1 => {
                fake.put("proc/self/cgroup", "3:cpuset:/");
                fake.put("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset");
                fake.set("sys/fs/cgroup/cpuset", "0-3");
                fake.set("sys/fs/cgroup/cpuset/box", "1-2");
                fake.set("sys/fs/cgroup/cpuset/box/inner", "1");
            }
            Groups::None => fake.put("proc/self/cgroup", ""),
        }
        fake
    }

    fn set(&self, folder: &str, cpus: &str) {
        self.put(&format!("{folder}/cpuset.cpus"), cpus);
        self.put(&format!("{folder}/cpuset.mems"), "0");
        self.put(&format!("{folder}/tasks"), "");
        self.put(&format!("{folder}/cgroup.procs"), "");
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.root.path(path).parent().unwrap()).unwrap();
        fs::write(self.root.path(path), text).unwrap();
    }

    /// Adds a process with one thread to the topmost cpuset.
    pub(super) fn add_task(&self, id: u32, parent: u32, flags: u64, cpus: &str) {
        let stat = format!("{id} (task{id}) S {parent} 0 0 0 0 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {} 0", 100 + id);
        self.put(&format!("proc/{id}/stat"), &stat);
        self.put(&format!("proc/{id}/task/{id}/stat"), &stat);
        self.set_mask(id, &cpus.parse().unwrap());
        let set = "sys/fs/cgroup/cpuset/tasks";
        if self.root.exists(set) {
            self.put(set, &format!("{}\n{id}", self.root.read(set).unwrap()));
        }
    }

    pub(super) fn add_interrupt(&self, number: u32, cpus: &str) {
        self.put(&format!("proc/irq/{number}/smp_affinity_list"), cpus);
        fs::create_dir_all(self.root.path(&format!("proc/irq/{number}/disk"))).unwrap();
    }

    pub(super) fn mask(&self, id: u32) -> String {
        let all = tasks::all(&self.root);
        all.iter().find(|task| task.id == id).unwrap().cpus.to_string()
    }

    pub(super) fn set_mask(&self, id: u32, cpus: &CpuList) {
        self.put(&format!("proc/{id}/task/{id}/status"), &format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n"));
    }

    /// The contents of all files except journals.
    pub(super) fn state(&self) -> Vec<(String, String)> {
        fn walk(root: &Root, folder: &str, state: &mut Vec<(String, String)>) {
            for name in root.list(folder) {
                let path = format!("{folder}/{name}");
                match root.read(&path) {
                    // The order of the members of a set does not matter.
                    Some(text) => {
                        let mut lines: Vec<&str> = text.lines().collect();
                        lines.sort_unstable();
                        state.push((path, lines.join("\n")));
                    }
                    None => walk(root, &path, state),
                }
            }
        }
        let mut state = Vec::new();
        ["proc", "sys"].into_iter().for_each(|folder| walk(&self.root, folder, &mut state));
        state
    }

    fn members(&self, folder: &str) -> Vec<u32> {
        let tasks = self.root.read(&format!("{folder}/tasks")).unwrap_or_default();
        tasks.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Gives tasks the CPUs of their group, as the kernel does.
    fn overwrite(&self, ids: &[u32], cpus: &CpuList) {
        for task in tasks::all(&self.root).iter().filter(|task| ids.contains(&task.id) && !task.is_fixed) {
            self.set_mask(task.id, cpus);
        }
    }

    fn overwrite_all(&self, cpus: &CpuList) {
        let ids: Vec<u32> = tasks::all(&self.root).iter().map(|task| task.id).collect();
        self.overwrite(&ids, cpus);
    }

    fn count(&self) -> io::Result<()> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(ErrorKind::ConnectionAborted.into());
        };
        self.left.set(left);
        self.done.set(self.done.get() + 1);
        Ok(())
    }
}

impl SystemOps for Fake {
    fn root(&self) -> &Root {
        &self.root
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.count()?;
        let (folder, file) = path.rsplit_once('/').unwrap();
        let cpus = || text.parse::<CpuList>().unwrap();
        let online: CpuList = "0-3".parse().unwrap();
        match file {
            _ if !self.root.exists(path) => return Err(ErrorKind::NotFound.into()),
            "smp_affinity_list" if folder.ends_with("/9") => return Err(io::Error::from_raw_os_error(5)),
            // A managed interrupt, and one whose file only root can open.
            "smp_affinity_list" if folder.ends_with("/91") => return Err(io::Error::from_raw_os_error(1)),
            "smp_affinity_list" if folder.ends_with("/92") => return Err(io::Error::from_raw_os_error(13)),
            "cgroup.procs" | "cgroup.threads" => return Ok(()),
            "cgroup.subtree_control" => {
                let on = self.root.read(path).unwrap();
                let now = match text.split_at(1) {
                    ("+", name) => format!("{on} {name}"),
                    (_, name) => on.replace(&format!(" {name}"), ""),
                };
                self.put(path, &now);
                return Ok(());
            }
            "cpuset.cpus.partition" => {
                let cpus = self.root.read(&format!("{folder}/cpuset.cpus")).unwrap().parse().unwrap();
                self.overwrite_all(&online.difference(&cpus));
            }
            "cpuset.cpus" => self.overwrite(&self.members(folder), &cpus()),
            "tasks" => {
                let id: u32 = text.parse().unwrap();
                let task = tasks::all(&self.root).into_iter().find(|task| task.id == id);
                if task.ok_or(ErrorKind::NotFound)?.is_fixed {
                    return Err(ErrorKind::InvalidInput.into());
                }
                let top = "sys/fs/cgroup/cpuset";
                for name in self.root.list(top).iter().map(String::as_str).chain([""]) {
                    let tasks = format!("{top}/{name}/tasks");
                    if self.root.exists(&tasks) {
                        let stay = self.members(&format!("{top}/{name}")).into_iter().filter(|&other| other != id);
                        self.put(&tasks, &stay.map(|id| format!("{id}\n")).collect::<String>());
                    }
                }
                self.put(path, &format!("{}\n{id}", self.root.read(path).unwrap()));
                let cpus = self.root.read(&format!("{folder}/cpuset.cpus")).unwrap().parse().unwrap();
                self.overwrite(&[id], &cpus);
                return Ok(());
            }
            _ => {}
        }
        self.put(path, text);
        Ok(())
    }

    fn make_group(&self, folder: &str) -> io::Result<()> {
        self.count()?;
        for file in ["cgroup.procs", "cgroup.threads", "cgroup.type", "tasks"] {
            self.put(&format!("{folder}/{file}"), "");
        }
        for file in ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition"] {
            self.put(&format!("{folder}/{file}"), "");
        }
        Ok(())
    }

    fn remove_group(&self, folder: &str) -> io::Result<()> {
        self.count()?;
        if !self.members(folder).is_empty() {
            return Err(ErrorKind::ResourceBusy.into());
        }
        if self.root.read(&format!("{folder}/cpuset.cpus.partition")).is_some_and(|kind| !kind.is_empty()) {
            self.overwrite_all(&"0-3".parse().unwrap());
        }
        fs::remove_dir_all(self.root.path(folder))
    }

    fn keep_text(&self, folder: &str, text: &str) -> io::Result<()> {
        self.put(&format!("kept/{folder}/text"), text);
        Ok(())
    }

    fn kept_text(&self, folder: &str) -> Option<String> {
        self.root.read(&format!("kept/{folder}/text"))
    }

    fn set_affinity(&self, thread_id: u32, cpus: &CpuList) -> io::Result<()> {
        self.count()?;
        let task = tasks::all(&self.root).into_iter().find(|task| task.id == thread_id);
        if task.ok_or(ErrorKind::NotFound)?.is_fixed {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.set_mask(thread_id, cpus);
        Ok(())
    }
}
