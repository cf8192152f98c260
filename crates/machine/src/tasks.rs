//! All tasks of a machine: the threads of all processes, including kernel threads.

use std::process;

use crate::{CpuList, Root, Unreadable};

/// `PF_KTHREAD` and `PF_NO_SETAFFINITY` of the flags in proc(5), `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;
const FIXED_AFFINITY: u64 = 0x0400_0000;

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its thread id.
    pub id: u32,
    /// The id of its process.
    pub process: u32,
    /// The id of the parent of its process.
    pub parent: u32,
    /// Its name.
    pub name: String,
    /// Start time, clock ticks after boot. Together with the id it identifies a task uniquely.
    pub start_ticks: u64,
    /// True for a kernel thread.
    pub is_kernels: bool,
    /// True if the kernel does not allow changes of its affinity.
    pub is_fixed: bool,
    /// The CPUs that it may run on, possibly including offline ones.
    pub cpus: CpuList,
}

/// All tasks except zombies.
pub(crate) fn all(root: &Root) -> Vec<Task> {
    let offset_ticks = boot_offset_ticks(root);
    ids(root).filter_map(|(process, id)| task(root, process, id, offset_ticks)).collect()
}

/// All tasks except our own.
pub(crate) fn others(root: &Root) -> Vec<Task> {
    let mut all = all(root);
    all.retain(|task| task.process != process::id());
    all
}

fn task(root: &Root, process: u32, id: u32, offset_ticks: i64) -> Option<Task> {
    let folder = format!("proc/{process}/task/{id}");
    let stat = Stat::read(root, &folder, offset_ticks)?;
    let status = root.read(&format!("{folder}/status"))?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.parse().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(Task {
        id,
        process,
        parent: stat.parent,
        name: stat.name,
        start_ticks: stat.start_ticks,
        is_kernels: stat.flags & KERNEL_THREAD != 0,
        is_fixed: stat.flags & FIXED_AFFINITY != 0,
        cpus,
    })
}

/// A thread that does not belong to the kernel, with its last CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OnCpu {
    pub id: u32,
    pub process: u32,
    /// The parent of its process.
    pub parent: u32,
    /// The process group.
    pub group: u32,
    pub name: String,
    pub start_ticks: u64,
    /// The CPU on which it runs, ran last, or waits to run.
    pub cpu: u32,
    /// CPU time since its start, ns; 0 if the kernel does not count it.
    pub ran_ns: u64,
}

/// The threads whose last CPU is one of `cpus`, except those of the kernel and zombies.
pub(crate) fn on_cpus(root: &Root, cpus: &CpuList) -> Vec<OnCpu> {
    let offset_ticks = boot_offset_ticks(root);
    let found = |(process, id): (u32, u32)| {
        let folder = format!("proc/{process}/task/{id}");
        let stat = Stat::read(root, &folder, offset_ticks)?;
        let cpu = stat.cpu.filter(|&cpu| cpus.contains(cpu))?;
        if stat.flags & KERNEL_THREAD != 0 || matches!(stat.state, 'Z' | 'X') {
            return None;
        }
        let ran = root.read(&format!("{folder}/schedstat")).unwrap_or_default();
        let ran_ns = ran.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        let Stat { name, parent, group, start_ticks, .. } = stat;
        Some(OnCpu { id, process, parent, group, name, start_ticks, cpu, ran_ns })
    };
    ids(root).filter_map(found).collect()
}

/// The policies of `sched.h` for real-time threads.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const DEADLINE: u32 = 6;

/// A thread and its CPU time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub id: u32,
    pub process: u32,
    /// The parent of its process.
    pub parent: u32,
    pub name: String,
    /// True for a kernel thread.
    pub is_kernels: bool,
    /// Policy and priority if it is real-time.
    pub realtime: Option<Realtime>,
    /// Start time, clock ticks after boot.
    pub start_ticks: u64,
    /// CPU time since its start, clock ticks.
    pub ran_ticks: u64,
}

/// A real-time policy with its priority, in the syntax of `--policy`: `fifo:50`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Realtime {
    /// SCHED_FIFO or SCHED_RR, priority 1 to 99.
    Priority { round_robin: bool, priority: u32 },
    /// SCHED_DEADLINE, above all priorities.
    Deadline,
}

impl Realtime {
    /// The priority; `None` for a deadline, which is above all of them.
    pub(crate) fn priority(self) -> Option<u32> {
        match self {
            Self::Priority { priority, .. } => Some(priority),
            Self::Deadline => None,
        }
    }
}

impl std::fmt::Display for Realtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Priority { round_robin: false, priority } => write!(f, "fifo:{priority}"),
            Self::Priority { round_robin: true, priority } => write!(f, "rr:{priority}"),
            Self::Deadline => f.write_str("deadline"),
        }
    }
}

/// All threads except zombies, each with its policy and CPU time; one read for each.
pub(crate) fn scheduled(root: &Root) -> Vec<Scheduled> {
    let offset_ticks = boot_offset_ticks(root);
    let found = |(process, id): (u32, u32)| {
        let stat = Stat::read(root, &format!("proc/{process}/task/{id}"), offset_ticks)?;
        let realtime = match (stat.policy?, stat.priority?) {
            (policy @ (FIFO | ROUND_ROBIN), priority) => {
                Some(Realtime::Priority { round_robin: policy == ROUND_ROBIN, priority })
            }
            (DEADLINE, _) => Some(Realtime::Deadline),
            _ => None,
        };
        let Stat { name, parent, start_ticks, ran_ticks, flags, .. } = stat;
        let is_kernels = flags & KERNEL_THREAD != 0;
        (!matches!(stat.state, 'Z' | 'X')).then_some(Scheduled {
            id,
            process,
            parent,
            name,
            is_kernels,
            realtime,
            start_ticks,
            ran_ticks,
        })
    };
    ids(root).filter_map(found).collect()
}

/// The process and thread ids of all threads.
fn ids(root: &Root) -> impl Iterator<Item = (u32, u32)> {
    let numbers =
        |folder: &str| -> Vec<u32> { root.list(folder).iter().filter_map(|name| name.parse().ok()).collect() };
    let threads = move |process: u32| numbers(&format!("proc/{process}/task")).into_iter().map(move |id| (process, id));
    numbers("proc").into_iter().flat_map(threads)
}

/// The name of a process; a program can make its own empty.
///
/// # Errors
/// The errors of [`Root::parsed`].
pub(crate) fn name(root: &Root, process: &str) -> Result<String, Unreadable> {
    root.parsed(&format!("proc/{process}/comm"), |name| Some(name.to_owned()))
}

/// True if a process has ended, and its parent has not noticed that yet.
pub(crate) fn is_zombie(root: &Root, process: &str) -> bool {
    Stat::read(root, &format!("proc/{process}"), 0).is_some_and(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// The ids and names of all processes, including kernel threads.
pub(crate) fn processes(root: &Root) -> Vec<(u32, String)> {
    let name = |id: u32| Some((id, name(root, &id.to_string()).ok()?));
    root.list("proc").iter().filter_map(|file| name(file.parse().ok()?)).collect()
}

/// Start time of a process, clock ticks after boot, the same in each time namespace; `None` if it does not exist. `process`
/// may be `self`.
#[must_use]
pub fn start_ticks(root: &Root, process: &str) -> Option<u64> {
    let stat = Stat::read(root, &format!("proc/{process}"), boot_offset_ticks(root))?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.start_ticks)
}

/// The fields of `/proc/PID/stat` that this crate uses.
struct Stat {
    name: String,
    state: char,
    parent: u32,
    group: u32,
    flags: u64,
    start_ticks: u64,
    /// User and system time, clock ticks.
    ran_ticks: u64,
    /// The last CPU.
    cpu: Option<u32>,
    /// Real-time priority, 0 for other policies.
    priority: Option<u32>,
    policy: Option<u32>,
}

/// How many clock ticks (`USER_HZ`: 100 a second) the boot time in this process's time namespace is ahead.
fn boot_offset_ticks(root: &Root) -> i64 {
    const NS_PER_TICK: i64 = 10_000_000;
    let offset = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("boottime"))?.to_owned();
        let mut parts = line.split_whitespace().map(|part| part.parse::<i64>().ok());
        Some(parts.next()??.saturating_mul(100).saturating_add(parts.next()?? / NS_PER_TICK))
    };
    root.read("proc/self/timens_offsets").and_then(offset).unwrap_or(0)
}

impl Stat {
    /// The fields of this process or thread. The kernel adds the offset of the reader's time namespace to the start time.
    fn read(root: &Root, folder: &str, offset_ticks: i64) -> Option<Self> {
        let stat = root.parsed(&format!("{folder}/stat"), Self::parse).ok()?;
        let start_ticks = stat.start_ticks.saturating_add_signed(offset_ticks.saturating_neg());
        Some(Self { start_ticks, ..stat })
    }

    fn parse(text: &str) -> Option<Self> {
        // A name may contain blanks and brackets.
        let (head, tail) = text.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        Some(Self {
            name: head.split_once('(')?.1.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            flags: fields.get(6)?.parse().ok()?,
            ran_ticks: fields.get(11)?.parse::<u64>().ok()?.saturating_add(fields.get(12)?.parse().ok()?),
            start_ticks: fields.get(19)?.parse().ok()?,
            cpu: fields.get(36).and_then(|cpu| cpu.parse().ok()),
            priority: fields.get(37).and_then(|priority| priority.parse().ok()),
            policy: fields.get(38).and_then(|policy| policy.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_name_that_contains_brackets() {
        let line = "17 (a) S 1 (b)) R 2 17 17 0 -1 69238848 0 0 0 0 0 3 0 0 -100 0 1 0 4711 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent, stat.start_ticks), ("a) S 1 (b)", 'R', 2, 4711));
        assert_eq!((stat.flags & KERNEL_THREAD != 0, stat.flags & FIXED_AFFINITY != 0), (true, true));
        assert!(Stat::parse("17 (a) S 1").is_none());
    }

    #[test]
    fn a_start_time_is_the_same_in_each_time_namespace() {
        let folder = std::env::temp_dir().join(format!("punctual-timens-{}", process::id()));
        let proc = |offset: &str, started: u64| {
            let process = folder.join("proc/17");
            std::fs::create_dir_all(&process).unwrap();
            std::fs::create_dir_all(folder.join("proc/self")).unwrap();
            let line = format!("17 (a) R 2 17 17 0 -1 0 0 0 0 0 0 3 0 0 20 0 1 0 {started} 0 0");
            std::fs::write(process.join("stat"), line).unwrap();
            std::fs::write(folder.join("proc/self/timens_offsets"), offset).unwrap();
            start_ticks(&Root::at(&folder), "17")
        };
        assert_eq!(proc("monotonic           0         0\nboottime            0         0\n", 4_711), Some(4_711));
        assert_eq!(proc("monotonic      0  0\nboottime  100000  20000000\n", 10_004_713), Some(4_711));
        assert_eq!(proc("boottime  -10  0\n", 3_711), Some(4_711));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn lists_the_current_thread() {
        let all = all(&Root::system());
        let this = all.iter().find(|task| task.id == sys::sched::thread_id()).unwrap();
        assert_eq!(this.process, process::id());
        assert!(!this.is_kernels && !this.cpus.is_empty());
        let bound = |task: &&Task| task.name.starts_with("ksoftirqd/");
        if let Some(task) = all.iter().find(bound) {
            assert!(task.is_kernels && task.is_fixed && task.cpus.len() == 1, "{task:?}");
        }
        assert!(start_ticks(&Root::system(), "self").is_some());
    }
}
