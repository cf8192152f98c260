//! The interrupts of an interface, where they go, and the threads that serve them.

use serde::Serialize;

use super::{Folder, answers::Told, netdev::Napi};
use crate::{CpuList, Root, tasks};

/// An interrupt of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// Its name, as `eth0-TxRx-0`.
    pub name: String,
    /// The CPUs that it may go to, as the kernel writes a list.
    pub allowed: Option<String>,
    /// The CPU that it does go to.
    pub effective: Option<String>,
    /// The thread that serves it, where it has one.
    pub thread: Option<Thread>,
}

/// A thread and how it is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `other`, `fifo`, `rr`, …
    pub policy: String,
    /// Of a real-time policy, 1 to 99; else 0.
    pub priority: u32,
}

impl Thread {
    /// Whether it has a real-time policy.
    #[must_use]
    pub fn is_realtime(&self) -> bool {
        self.priority > 0 || self.policy == "deadline"
    }

    /// The thread of this number.
    pub(super) fn of(root: &Root, id: u32) -> Option<Self> {
        let stat = root.read(&format!("proc/{id}/stat"))?;
        // A name may hold blanks and brackets; the fields behind it are counted in proc(5) from 3 on.
        let (head, tail) = stat.rsplit_once(')')?;
        let field = |number: usize| tail.split_whitespace().nth(number - 3)?.parse::<u32>().ok();
        let policy = match field(41)? {
            0 => "other",
            1 => "fifo",
            2 => "rr",
            3 => "batch",
            5 => "idle",
            6 => "deadline",
            _ => return None,
        };
        let name = head.split_once('(')?.1.to_owned();
        Some(Self { id, name, policy: policy.to_owned(), priority: field(40)? })
    }
}

/// Those that have occurred; `None` when it is not known which are the interface's.
///
/// Drivers name them as they like (`virtio2-input.0`), so the name is asked last.
pub(super) fn all(folder: &Folder, napis: &Told<Vec<Napi>>) -> Option<Vec<Interrupt>> {
    let root = folder.root;
    let table = root.read("proc/interrupts")?;
    let lines: Vec<Line> = table.lines().skip(1).filter_map(Line::parse).collect();
    let numbers = |files: Vec<String>| -> Vec<u32> { files.iter().filter_map(|name| name.parse().ok()).collect() };
    let of_napis = || napis.known().into_iter().flatten().filter_map(|napi| napi.interrupt).collect();
    let of_name = || {
        let name = folder.path.as_deref().and_then(|path| path.rsplit('/').next());
        lines.iter().filter(|line| name.is_some_and(|name| is_named(line.name, name))).map(|line| line.number).collect()
    };
    let ways: [&dyn Fn() -> Vec<u32>; 4] = [
        &of_napis,
        &|| numbers(folder.list("device/msi_irqs")),
        &|| numbers(folder.list("device/../msi_irqs")),
        &of_name,
    ];
    let mine = ways.iter().map(|way| way()).find(|numbers| !numbers.is_empty())?;
    let threads = tasks::processes(root);
    let interrupt = |line: &Line| {
        let read = |file: &str| root.read(&format!("proc/irq/{}/{file}", line.number));
        let head = format!("irq/{}-", line.number);
        let thread = threads.iter().find(|(_, name)| name.starts_with(&head));
        Interrupt {
            number: line.number,
            name: line.name.to_owned(),
            allowed: read("smp_affinity_list"),
            effective: read("effective_affinity_list"),
            thread: thread.and_then(|&(id, _)| Thread::of(root, id)),
        }
    };
    Some(lines.iter().filter(|line| mine.contains(&line.number) && line.count > 0).map(interrupt).collect())
}

/// The threads that poll an interface.
pub(super) fn of_napis(root: &Root, napis: &Told<Vec<Napi>>) -> Vec<Thread> {
    let ids = napis.known().into_iter().flatten().filter_map(|napi| napi.thread);
    ids.filter_map(|id| Thread::of(root, id)).collect()
}

/// `eth0`, `eth0-rx`, `eth0:0`, but not `eth01`.
fn is_named(name: &str, interface: &str) -> bool {
    name.strip_prefix(interface).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Whether all tasks of the machine can be seen: those of the kernel cannot where others' are hidden, nor in a
/// container.
pub(super) fn sees_all_tasks(root: &Root) -> bool {
    root.read("proc/2/comm").as_deref() == Some("kthreadd")
}

/// A line of `/proc/interrupts`.
struct Line<'a> {
    number: u32,
    /// On all CPUs together.
    count: u64,
    name: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (number, rest) = line.split_once(':')?;
        let counts = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        Some(Self {
            number: number.trim().parse().ok()?,
            count: counts.fold(0, u64::saturating_add),
            name: rest.split_whitespace().next_back()?,
        })
    }
}

/// Whether a list of CPUs names more than one.
pub(super) fn may_move(allowed: &str) -> bool {
    allowed.parse::<CpuList>().is_ok_and(|cpus| cpus.len() > 1)
}
