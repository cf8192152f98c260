//! The interrupts of an interface, their CPUs, and the threads that serve them.

use serde::Serialize;

use super::{Folder, UnreadFiles, answers::Reading, netdev::Napi};
use crate::{CpuList, Root, interrupts, tasks};

/// An interrupt of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Interrupt number.
    pub number: u32,
    /// Name, e.g. `eth0-TxRx-0`.
    pub name: String,
    /// The allowed CPUs, as a list in the kernel's syntax.
    pub allowed: Option<String>,
    /// The CPU that currently receives it.
    pub effective: Option<String>,
    /// The thread that serves it, if it has one.
    pub thread: Option<Thread>,
}

/// A thread and its scheduling policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Thread id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// `other`, `fifo`, `rr`, …
    pub policy: String,
    /// Real-time priority, 1 to 99; 0 for other policies.
    pub priority: u32,
}

impl Thread {
    /// True if it has a real-time policy.
    #[must_use]
    pub fn is_realtime(&self) -> bool {
        self.priority > 0 || self.policy == "deadline"
    }

    /// The policy in the syntax of `--policy`: `fifo:50`.
    #[must_use]
    pub fn scheduled(&self) -> String {
        match self.priority {
            0 => self.policy.clone(),
            priority => format!("{}:{priority}", self.policy),
        }
    }

    /// Reads the thread with this id.
    pub(crate) fn of(root: &Root, id: u32) -> Option<Self> {
        root.parsed(&format!("proc/{id}/stat"), |stat| Self::parse(id, stat)).ok()
    }

    fn parse(id: u32, stat: &str) -> Option<Self> {
        // A name may contain blanks and brackets; proc(5) numbers the fields after it from 3 on.
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

/// The interrupts that have occurred; `None` if it is not known which ones belong to the interface.
///
/// Drivers choose the names freely (`virtio2-input.0`), so the name alone is not sufficient.
pub(super) fn all(folder: &Folder, napis: &Reading<Vec<Napi>>, unread: &mut UnreadFiles) -> Option<Vec<Interrupt>> {
    let root = folder.root;
    let table = interrupts::table(root).unwrap_or_default();
    let lines: Vec<Line> = table.lines().skip(1).filter_map(Line::parse).collect();
    let sources: [&dyn Fn() -> Vec<u32>; 2] = [&|| of_polling(napis), &|| of_device(folder, &lines)];
    let own = sources.iter().map(|source| source()).find(|numbers| !numbers.is_empty());
    unread.interrupts = root.take_unread();
    let (own, false) = (own?, lines.is_empty()) else { return None };
    let own = lines.iter().filter(|line| own.contains(&line.number) && line.count > 0);
    let interrupt = |line: &Line| {
        let is_list = |text: &str| text.parse::<CpuList>().is_ok();
        let read = |file: &str| root.text_if(&format!("proc/irq/{}/{file}", line.number), is_list).ok();
        let (allowed, effective) = (read("smp_affinity_list"), read("effective_affinity_list"));
        Interrupt { number: line.number, name: line.name.to_owned(), allowed, effective, thread: None }
    };
    let mut interrupts: Vec<Interrupt> = own.map(interrupt).collect();
    unread.affinity = root.take_unread();
    let threads = tasks::processes(root);
    for interrupt in &mut interrupts {
        let head = format!("irq/{}-", interrupt.number);
        let thread = threads.iter().find(|(_, name)| name.starts_with(&head));
        interrupt.thread = thread.and_then(|&(id, _)| Thread::of(root, id));
    }
    unread.threads = root.take_unread();
    Some(interrupts)
}

/// The interrupts of the NAPI instances.
fn of_polling(napis: &Reading<Vec<Napi>>) -> Vec<u32> {
    napis.known().into_iter().flatten().filter_map(|napi| napi.interrupt).collect()
}

/// The interrupts of the device, or of the device that it is a part of, as with virtio.
fn of_device(folder: &Folder, lines: &[Line]) -> Vec<u32> {
    let of_files = |files: Vec<String>| -> Vec<u32> { files.iter().filter_map(|name| name.parse().ok()).collect() };
    let of_name = || {
        let name = folder.path.as_deref().and_then(|path| path.rsplit('/').next());
        lines.iter().filter(|line| name.is_some_and(|name| is_named(line.name, name))).map(|line| line.number).collect()
    };
    let sources: [&dyn Fn() -> Vec<u32>; 3] =
        [&|| of_files(folder.list("device/msi_irqs")), &of_name, &|| of_files(folder.list("device/../msi_irqs"))];
    sources.iter().map(|source| source()).find(|numbers| !numbers.is_empty()).unwrap_or_default()
}

/// The threads that serve an interface: those of all interrupts of its device, whether they have occurred or not, and
/// threads that poll it. `None` if no interrupt is known and no thread polls it.
///
/// The threads of shared interrupts are included completely: such an interrupt is only unmasked when the threads of all
/// its devices have run.
pub(super) fn serving(folder: &Folder, napis: &Reading<Vec<Napi>>, interface: &str) -> Option<Vec<Thread>> {
    let root = folder.root;
    let table = interrupts::table(root).unwrap_or_default();
    let lines: Vec<Line> = table.lines().skip(1).filter_map(Line::parse).collect();
    let own = [of_polling(napis), of_device(folder, &lines)].concat();
    let serves = |name: &str| {
        let number = name.strip_prefix("irq/").and_then(|rest| rest.split_once('-')?.0.parse().ok());
        number.is_some_and(|number| own.contains(&number))
    };
    let polls = |id: u32, name: &str| {
        let queue = name.strip_prefix("napi/").and_then(|rest| rest.strip_prefix(interface)?.strip_prefix('-'));
        match napis.known() {
            // NAPI instances for transmission only, as with virtio, have no id and are not reported.
            Some(napis) => napis.iter().any(|napi| napi.thread == Some(id)) || queue == Some("0"),
            // Kernels before 6.7 do not report NAPI instances.
            None => queue.is_some(),
        }
    };
    let all = tasks::processes(root).into_iter().filter(|(id, name)| serves(name) || polls(*id, name));
    let found: Vec<Thread> = all.filter_map(|(id, _)| Thread::of(root, id)).collect();
    (!own.is_empty() || !found.is_empty()).then_some(found)
}

/// The threads that poll an interface.
pub(super) fn of_napis(root: &Root, napis: &Reading<Vec<Napi>>) -> Vec<Thread> {
    let ids = napis.known().into_iter().flatten().filter_map(|napi| napi.thread);
    ids.filter_map(|id| Thread::of(root, id)).collect()
}

/// True for `eth0`, `eth0-rx`, `eth0:0`, but not for `eth01`.
fn is_named(name: &str, interface: &str) -> bool {
    name.strip_prefix(interface).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// True if all tasks of the machine are visible. Kernel threads are not if /proc hides the tasks of others, or in a
/// container.
pub(crate) fn sees_all_tasks(root: &Root) -> bool {
    root.read("proc/2/comm").as_deref() == Some("kthreadd")
}

/// A line of `/proc/interrupts`.
struct Line<'a> {
    number: u32,
    /// Count on all CPUs together.
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

/// True if a list of CPUs has more than one.
pub(super) fn may_move(allowed: &str) -> bool {
    allowed.parse::<CpuList>().is_ok_and(|cpus| cpus.len() > 1)
}
