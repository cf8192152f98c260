//! The threads of a program with their policies and CPUs, from `/proc`.

use std::{collections::BTreeMap, fs::File, io::Read};

use blame::{Comm, ThreadInfo};
use machine::{CpuList, Root};
use record::{Series, priority_in_words};
use sys::sched::{self, Policy};

use super::program::{DEADLINE, stat};

/// The threads as they were when they were last read.
#[derive(Debug, Default)]
pub struct ThreadTable(BTreeMap<u32, Entry>);

#[derive(Debug)]
struct Entry {
    policy: String,
    cpus: Option<CpuList>,
    /// Id of its process.
    process: u32,
    /// True if its process runs a 32-bit program on a 64-bit kernel, whose system calls have other numbers.
    has_other_calls: bool,
    /// Relative deadline of the deadline policy, ns.
    deadline_ns: Option<u64>,
    /// Its priority as the kernel counts, without an inherited one.
    own_priority: i32,
}

/// Ids of the threads of a process.
pub fn thread_ids(root: &Root, pid: u32) -> Vec<u32> {
    root.list(&format!("proc/{pid}/task")).iter().filter_map(|name| name.parse().ok()).collect()
}

/// Name and state of a running thread.
pub fn thread_info(root: &Root, tid: u32) -> ThreadInfo {
    let comm = root.read(&format!("proc/{tid}/comm")).unwrap_or_default();
    let asleep = stat(root, tid).is_some_and(|stat| !stat.runnable);
    ThreadInfo { tid, comm: Comm::new(&comm), asleep }
}

impl ThreadTable {
    /// Reads these threads; entries of ended threads stay as they were.
    pub fn refresh(&mut self, root: &Root, tids: impl Iterator<Item = u32>) {
        for tid in tids {
            let (Some(stat), Some(status)) = (stat(root, tid), root.read(&format!("proc/{tid}/status"))) else {
                continue;
            };
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.trim().parse().ok());
            let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
            let Some(process) = process else { continue };
            let has_other_calls = cfg!(target_pointer_width = "64") && is_32_bit(root, process);
            let deadline_ns = match sched::policy_of(tid) {
                Ok(Policy::Deadline { deadline_ns, .. }) if stat.policy == DEADLINE => Some(deadline_ns),
                _ => None,
            };
            let policy = policy_name(stat.policy, stat.priority);
            let own_priority = stat.own_priority();
            self.0.insert(tid, Entry { policy, cpus, process, has_other_calls, deadline_ns, own_priority });
        }
    }

    /// Adds the policy and CPUs of a thread to its series.
    pub fn add_to_series(&self, series: &mut Series) {
        let Some(thread) = series.kind.process() else { return };
        match self.0.get(&thread.tid) {
            Some(Entry { policy, cpus, .. }) => {
                series.granted.policy.clone_from(policy);
                let cpus = cpus.clone().unwrap_or_default();
                series.cpu = cpus.iter().next().filter(|_| cpus.len() == 1);
                series.granted.cpus = cpus.to_string();
            }
            // The thread was created and ended between two reads. Its scheduler events contain its priority.
            None => {
                let ordinary = thread.priority >= 100;
                let policy = if ordinary { "other".to_owned() } else { priority_in_words(thread.priority) };
                series.granted.policy = policy;
            }
        }
    }

    /// The processes of these threads.
    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().filter(|&(&tid, entry)| entry.process == tid).map(|(&tid, _)| tid)
    }

    /// The threads with their processes, and whether those run 32-bit programs on a 64-bit kernel.
    pub fn programs(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        self.0.iter().map(|(&tid, entry)| (tid, entry.process, entry.has_other_calls))
    }

    /// The threads with the relative deadlines of their policies, ns (`None` for other policies), and with their own
    /// priorities.
    pub fn policies(&self) -> impl Iterator<Item = (u32, Option<u64>, i32)> + '_ {
        self.0.iter().map(|(&tid, entry)| (tid, entry.deadline_ns, entry.own_priority))
    }

    /// The CPUs that at least one of these threads is pinned to. A thread that may run on `all` CPUs is not pinned.
    pub fn pinned_cpus(&self, tids: impl Iterator<Item = u32>, all: &CpuList) -> CpuList {
        let cpus = tids.filter_map(|tid| self.0.get(&tid)?.cpus.as_ref());
        cpus.filter(|cpus| !all.difference(cpus).is_empty()).flat_map(CpuList::iter).collect()
    }
}

/// True if a process runs a 32-bit program (`EI_CLASS` in elf(5)).
fn is_32_bit(root: &Root, process: u32) -> bool {
    const CLASS_32: u8 = 1;
    let mut start = [0; 5];
    let file = File::open(root.path(&format!("proc/{process}/exe")));
    file.and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == [0x7f, b'E', b'L', b'F', CLASS_32]
}

/// The name of a policy from its number in include/uapi/linux/sched.h of Linux, written as on the command line.
fn policy_name(number: u32, priority: u8) -> String {
    match number {
        0 => Policy::Other.to_string(),
        1 => Policy::Fifo(priority).to_string(),
        2 => Policy::RoundRobin(priority).to_string(),
        3 => "batch".to_owned(),
        5 => "idle".to_owned(),
        DEADLINE => "deadline".to_owned(),
        7 => "ext".to_owned(),
        other => Policy::Unknown(other).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use record::{ProcessThread, SeriesKind};

    use super::*;

    #[test]
    fn reads_policy_and_cpus_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir_all(root.path("proc/42/task/42")).unwrap();
        fs::create_dir_all(root.path("proc/42/task/43")).unwrap();
        assert_eq!(thread_ids(&root, 42), [42, 43]);
        let mut table = ThreadTable::default();
        for (tid, priority, policy, cpus) in [(42, 80, 1, "3"), (43, 0, 0, "0-1")] {
            fs::create_dir_all(root.path(&format!("proc/{tid}"))).unwrap();
            let mut fields: Vec<String> = (4..=52).map(|field: u32| field.to_string()).collect();
            (fields[36], fields[37]) = (priority.to_string(), policy.to_string());
            fs::write(root.path(&format!("proc/{tid}/stat")), format!("{tid} (x) R {}", fields.join(" "))).unwrap();
            fs::write(root.path(&format!("proc/{tid}/comm")), "x\n").unwrap();
            fs::write(
                root.path(&format!("proc/{tid}/status")),
                format!("Name:\tx\nTgid:\t42\nCpus_allowed_list:\t{cpus}\n"),
            )
            .unwrap();
        }
        let info = thread_info(&root, 42);
        assert!(!info.asleep && info.comm == Comm::new("x"));
        table.refresh(&root, [42, 43, 44].into_iter());
        let granted = |tid, priority| {
            let thread = ProcessThread { tid, priority, ..ProcessThread::default() };
            let mut series = Series { kind: SeriesKind::Process(Box::new(thread)), ..Series::default() };
            table.add_to_series(&mut series);
            (series.granted.policy, series.granted.cpus, series.cpu)
        };
        assert_eq!(granted(42, 19), ("fifo:80".to_owned(), "3".to_owned(), Some(3)));
        assert_eq!(granted(43, 120), ("other".to_owned(), "0-1".to_owned(), None));
        assert_eq!(granted(44, 50), ("real-time 49".to_owned(), String::new(), None));
        let pinned = |all: &str| table.pinned_cpus([42, 43, 44].into_iter(), &all.parse().unwrap()).to_string();
        assert_eq!((pinned("0-3"), pinned("0-1")), ("0-1,3".to_owned(), "3".to_owned()));
        assert_eq!(table.processes().collect::<Vec<_>>(), [42]);
        assert_eq!(table.programs().collect::<Vec<_>>(), [(42, 42, false), (43, 42, false)]);
        fs::write(root.path("proc/42/exe"), b"\x7fELF\x01rest").unwrap();
        table.refresh(&root, [43].into_iter());
        assert_eq!(table.programs().collect::<Vec<_>>()[1], (43, 42, true));
    }
}
