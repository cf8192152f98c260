//! Interrupts, and the kernel's unbound work.

use std::io;

use record::{Left, LeftKind};
use rustix::io::Errno;

use super::tasks::{Moved, NAMES, WORKQUEUES};
use crate::{
    CpuList, Root, cpus, facts,
    journal::{Journal, JournalError, Undo},
    system_ops::SystemOps,
};

const IRQ: &str = "proc/irq";
/// The CPUs of interrupts that are set up later.
const DEFAULT: &str = "proc/irq/default_smp_affinity";

/// A file of CPUs with its old and new contents.
struct Change {
    path: String,
    before: String,
    during: String,
    /// Number and handlers, if the file belongs to an interrupt.
    interrupt: Option<(String, String)>,
}

/// Removes the shielded CPUs from the affinity of all interrupts and of unbound work.
pub(super) fn narrow(ops: &dyn SystemOps, journal: &mut Journal, shielded: &CpuList) -> Result<Moved, JournalError> {
    let root = ops.root();
    let others = cpus::online_cpus(root).difference(shielded);
    let changes: Vec<Change> =
        masks(root, shielded, &others).into_iter().chain(lists(root, shielded, &others)).collect();
    journal.record(changes.iter().map(|change| Undo::File {
        path: change.path.clone(),
        before: change.before.clone(),
        during: change.during.clone(),
    }))?;
    let mut moved = Moved::default();
    for change in changes {
        match (ops.write(&change.path, &change.during), change.interrupt) {
            (Ok(()), interrupt) => moved.count += u32::from(interrupt.is_some()),
            (Err(error), None) => moved.notes.push(format!("/{}: {error}", change.path)),
            (Err(error), Some((number, name))) => {
                if can_interrupt(root, &number, shielded) && !name.is_empty() {
                    add(&mut moved.left, &error, format!("{number} {name}"));
                }
                moved.immovable.extend(number.parse().ok().map(|number| (number, name)));
            }
        }
    }
    Ok(moved)
}

fn masks(root: &Root, shielded: &CpuList, others: &CpuList) -> Vec<Change> {
    let isolated = facts::isolated_cpus(root);
    let change = |path: &str| {
        let before = root.read(path)?;
        let during = without(&before, shielded, others, &isolated)?;
        (before != during).then(|| Change { path: path.to_owned(), before, during, interrupt: None })
    };
    [DEFAULT, WORKQUEUES].into_iter().filter_map(change).collect()
}

fn lists(root: &Root, shielded: &CpuList, others: &CpuList) -> Vec<Change> {
    let numbers = root.list(IRQ).into_iter().filter(|name| name.parse::<u32>().is_ok());
    let isolated = facts::isolated_cpus(root);
    let change = |number: String| {
        let path = format!("{IRQ}/{number}/smp_affinity_list");
        let before: CpuList = root.read(&path)?.parse().ok()?;
        if before.intersection(shielded).is_empty() {
            return None;
        }
        let during = reduced(&before, shielded, others, &isolated);
        let name = handlers(root, &number);
        Some(Change { path, before: before.to_string(), during: during.to_string(), interrupt: Some((number, name)) })
    };
    numbers.filter_map(change).collect()
}

/// An interrupt with its CPUs before and after the change.
pub(crate) struct Affinity {
    pub number: u32,
    /// The names of its handlers, joined by `+`; empty if it has none.
    pub handlers: String,
    pub path: String,
    pub from: String,
    pub to: String,
}

/// The interrupts that may occur on these CPUs, with the affinity without them.
pub(crate) fn affinities(root: &Root, shielded: &CpuList, others: &CpuList) -> Vec<Affinity> {
    let affinity = |Change { path, before, during, interrupt }: Change| {
        let (number, handlers) = interrupt?;
        Some(Affinity { number: number.parse().ok()?, handlers, path, from: before, to: during })
    };
    lists(root, shielded, others).into_iter().filter_map(affinity).collect()
}

/// The files of the CPUs that interrupts may occur on.
pub(crate) fn affinity_files(root: &Root) -> Vec<String> {
    let numbers = root.list(IRQ).into_iter().filter(|name| name.parse::<u32>().is_ok());
    numbers.map(|number| format!("{IRQ}/{number}/smp_affinity_list")).filter(|path| root.exists(path)).collect()
}

/// The names of an interrupt's handlers; empty if it has none.
fn handlers(root: &Root, number: &str) -> String {
    let folder = format!("{IRQ}/{number}");
    let names = root.list(&folder).into_iter().filter(|name| root.path(&format!("{folder}/{name}")).is_dir());
    names.collect::<Vec<_>>().join("+")
}

/// True if an interrupt can occur on a shielded CPU: the controller may use fewer CPUs than the affinity allows.
fn can_interrupt(root: &Root, number: &str, shielded: &CpuList) -> bool {
    let effective = root.read(&format!("{IRQ}/{number}/effective_affinity_list"));
    let effective = effective.and_then(|list| list.parse::<CpuList>().ok());
    effective.is_none_or(|cpus| !cpus.intersection(shielded).is_empty())
}

fn add(left: &mut Vec<Left>, error: &io::Error, name: String) {
    // Without the right the file cannot be opened. EPERM, or EIO before Linux 6.5, is the answer for an interrupt that
    // its driver manages, also to root. Source: `write_irq_affinity` in kernel/irq/proc.c.
    let no_right = error.raw_os_error() == Some(Errno::ACCESS.raw_os_error());
    let why = if no_right {
        "root is needed".to_owned()
    } else {
        format!("the kernel refuses to move them ({error}): their driver manages them, or they are bound to a CPU")
    };
    match left.iter_mut().find(|left| left.why == why) {
        Some(left) => {
            left.count += 1;
            left.names.push(name);
            left.names.truncate(NAMES);
        }
        None => left.push(Left { kind: LeftKind::Interrupts, count: 1, names: vec![name], why, no_right }),
    }
}

/// CPUs without the shielded ones, and without other isolated ones if `others` has more: they may belong to other real-time
/// work. Offline CPUs remain.
fn reduced(before: &CpuList, shielded: &CpuList, others: &CpuList, isolated: &CpuList) -> CpuList {
    let rest = before.difference(shielded);
    let candidates = [rest.difference(isolated), rest, others.difference(isolated)];
    let usable = candidates.into_iter().find(|cpus| !cpus.intersection(others).is_empty());
    usable.unwrap_or_else(|| others.clone())
}

/// Removes CPUs from a mask as the kernel writes it (hexadecimal, in groups of eight digits), keeping its length, as
/// `reduced`. A mask without shielded CPUs stays. Returns `None` if the text is not a mask.
pub(crate) fn without(mask: &str, shielded: &CpuList, others: &CpuList, isolated: &CpuList) -> Option<String> {
    let before = CpuList::from_mask(mask)?;
    if before.intersection(shielded).is_empty() {
        return Some(mask.to_owned());
    }
    let rest = reduced(&before, shielded, others, isolated);
    // The lowest CPU of each digit, from the right.
    let mut lowest_cpus = (0_u32..).step_by(4);
    let mut digit = || {
        let lowest = lowest_cpus.next()?;
        let value = (0..4).filter(|bit| rest.contains(lowest + bit)).fold(0, |sum, bit| sum | 1 << bit);
        char::from_digit(value, 16)
    };
    // The commas keep their positions.
    let reversed: Vec<char> =
        mask.chars().rev().map(|c| if c == ',' { Some(',') } else { digit() }).collect::<Option<_>>()?;
    Some(reversed.into_iter().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keep_their_length() {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        let without = |mask, shielded, others| without(mask, &list(shielded), &list(others), &CpuList::new()).unwrap();
        assert_eq!(without("3", "1", "0"), "1");
        assert_eq!(without("f", "2-3", "0-1"), "3");
        assert_eq!(without("00000001,ffffffff", "32", "0-31"), "00000000,ffffffff");
        assert_eq!(without("0002", "1", "0,2-3"), "000d", "it had no other CPU");
        assert_eq!(without("c", "1", "0,2-3"), "c");
        assert!(super::without("none", &list("1"), &list("0"), &CpuList::new()).is_none());
    }

    #[test]
    fn interrupts_do_not_move_to_other_isolated_cpus() {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        for (before, isolated, expected) in [
            ("0-5", "2-3", "0-1,4-5"),
            ("2-3", "2-3", "2"),
            ("3", "2-3", "0-1"),
            ("3", "0-3", "0-2"),
            ("0-5", "", "0-2,4-5"),
        ] {
            let during = reduced(&list(before), &list("3"), &list("0-2"), &list(isolated));
            assert_eq!(during, list(expected), "{before}, {isolated}: CPUs 4-5 are offline");
        }
        assert_eq!(without("7", &list("3"), &list("0-2"), &list("2-3")).unwrap(), "7", "nothing to move");
        assert_eq!(without("f", &list("3"), &list("0-2"), &list("2-3")).unwrap(), "3");
    }
}
