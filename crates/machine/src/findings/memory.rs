//! Memory that may be swapped out or moved while a thread needs it.

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, not_applicable, ok, unknown, warn, without};
use crate::Unreadable;

pub(super) const CHECKS: &[Check] = &[swap, thp];

fn swap(context: &CheckContext) -> Finding {
    const ID: &str = "memory.swap";
    const PATH: &str = "proc/swaps";
    let swaps = match context.root.try_read(PATH) {
        Ok(swaps) => swaps,
        Err(Unreadable::Absent) if context.root.exists("proc/meminfo") => {
            return not_applicable(ID, "this kernel cannot swap", without(PATH, Unreadable::Absent));
        }
        Err(why) => return unknown(ID, "swap not readable", without(PATH, why)),
    };
    let areas: Vec<&str> = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    if areas.is_empty() {
        return ok(ID, "no swap", format!("/{PATH}: no entry"));
    }
    warn(ID, "swap is on", evidence(PATH, &areas.join(", "))).because(
        "A thread whose memory was swapped out waits milliseconds for the disk; only locked memory is safe.",
        "sudo swapoff -a",
    )
}

fn thp(context: &CheckContext) -> Finding {
    const ID: &str = "memory.thp";
    const PATH: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    match context.root.try_read(PATH) {
        Ok(modes) if modes.contains("[always]") => {
            warn(ID, "transparent huge pages for every process", evidence(PATH, &modes)).because(
                "The kernel moves memory to join it into huge pages, and threads that access it meanwhile wait.",
                "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            )
        }
        Ok(modes) if modes.contains("[madvise]") || modes.contains("[never]") => {
            ok(ID, "huge pages only on request", evidence(PATH, &modes))
        }
        Ok(modes) => unknown(ID, "unknown mode of huge pages", evidence(PATH, &modes)),
        Err(Unreadable::Absent) if context.root.exists("sys/kernel") => {
            not_applicable(ID, "this kernel has no transparent huge pages", without(PATH, Unreadable::Absent))
        }
        Err(why) => unknown(ID, "huge pages not readable", without(PATH, why)),
    }
}
