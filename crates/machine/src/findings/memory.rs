//! Memory that may be swapped out or moved while a thread needs it.

use record::Finding;

use super::{Check, CheckContext, Explain, chosen, evidence, files, not_applicable, ok, unknown, warn, without};
use crate::{
    Unreadable,
    facts::{THP, available_bytes, in_mib, thp_sizes, too_much_merged},
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "memory.swap", subject: "swap", source: "Linux, Documentation/admin-guide/sysctl/vm.rst", run: swap },
    Check {
        id: "memory.thp",
        subject: "transparent huge pages for every process",
        source: "Linux, Documentation/admin-guide/mm/transhuge.rst",
        run: thp,
    },
    Check {
        id: "memory.ksm",
        subject: "merging of equal pages (KSM)",
        source: "Linux, Documentation/admin-guide/mm/ksm.rst",
        run: ksm,
    },
    Check {
        id: "memory.numa_balancing",
        subject: "pages that move between memory nodes",
        source: "Linux, Documentation/admin-guide/sysctl/kernel.rst",
        run: numa_balancing,
    },
];

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
    if !swaps.starts_with("Filename") {
        return unknown(ID, "swap not understood", evidence(PATH, &swaps));
    }
    let areas: Vec<&str> = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    if areas.is_empty() {
        return ok(ID, "no swap", format!("/{PATH}: no entry"));
    }
    let why = match areas.iter().all(|area| area.starts_with("/dev/zram")) {
        true => "A thread whose memory was swapped out waits until it is decompressed; only locked memory is safe.",
        false => "A thread whose memory was swapped out waits milliseconds for the disk; only locked memory is safe.",
    };
    let found = warn(ID, "swap is on", evidence(PATH, &areas.join(", ")));
    // The third of the columns with numbers is the used part, KiB.
    let used_kib = |line: &str| line.split_whitespace().nth(3)?.parse::<u64>().ok();
    let used = swaps.lines().skip(1).filter_map(used_kib).fold(0, u64::saturating_add).saturating_mul(1024);
    match available_bytes(context.root).filter(|&available| used > available) {
        Some(available) => {
            let (used, available) = (in_mib(used), in_mib(available));
            let text = "lock the memory of real-time programs (mlockall), or end others before sudo swapoff -a";
            found.because(why, format!("{text}: swap contains {used}, and {available} are available"))
        }
        None => found.because(why, "sudo swapoff -a").until_boot(),
    }
}

fn thp(context: &CheckContext) -> Finding {
    const ID: &str = "memory.thp";
    const PATH: &str = THP;
    // Each size has a mode of its own since Linux 6.8.
    let (mut sizes, mut unread) = (Vec::new(), None);
    for path in thp_sizes(context.root) {
        match context.root.parsed(&path, chosen) {
            Ok(mode) if mode == "always" => sizes.push(path),
            Ok(_) | Err(Unreadable::Absent) => {}
            Err(why) => unread = Some(unknown(ID, "huge pages not readable", without(&path, why))),
        }
    }
    let is_for_all = context.root.read(PATH).is_some_and(|modes| modes.contains("[always]"));
    if let Some(first) = sizes.first().filter(|_| !is_for_all) {
        let name = |path: &String| {
            path.split('/').rev().nth(1).and_then(|name| name.strip_prefix("hugepages-")).map(str::to_owned)
        };
        let names = sizes.iter().filter_map(name).collect::<Vec<_>>().join(", ");
        return warn(ID, format!("transparent huge pages of {names} for every process"), context.evidence(first))
            .because(
                "The first access to such a page waits until the kernel has found and cleared the whole page, and can move other memory for it.",
                format!("echo madvise | sudo tee {}", files(sizes.iter().map(String::as_str))),
            )
            .until_boot();
    }
    match (context.root.try_read(PATH), unread) {
        (Ok(modes), _) if modes.contains("[always]") => {
            warn(ID, "transparent huge pages for every process", evidence(PATH, &modes))
                .because(
                    "The kernel moves memory to join it into huge pages, and threads that access it meanwhile wait.",
                    format!(
                        "echo madvise | sudo tee {}",
                        files([PATH].into_iter().chain(sizes.iter().map(String::as_str)))
                    ),
                )
                .until_boot()
        }
        // A fault that is known counts, also if the mode of another size cannot be read.
        (Ok(_), Some(unread)) => unread,
        (Ok(modes), None) if modes.contains("[madvise]") => {
            ok(ID, "huge pages only on request", evidence(PATH, &modes))
        }
        (Ok(modes), None) if modes.contains("[never]") => ok(ID, "no transparent huge pages", evidence(PATH, &modes)),
        (Ok(modes), None) => unknown(ID, "unknown mode of huge pages", evidence(PATH, &modes)),
        (Err(Unreadable::Absent), _) if context.root.exists("sys/kernel") => {
            not_applicable(ID, "this kernel has no transparent huge pages", without(PATH, Unreadable::Absent))
        }
        (Err(why), _) => unknown(ID, "huge pages not readable", without(PATH, why)),
    }
}

fn ksm(context: &CheckContext) -> Finding {
    const ID: &str = "memory.ksm";
    const PATH: &str = "sys/kernel/mm/ksm/run";
    match context.root.try_read(PATH) {
        Ok(run) if run == "1" => {
            let why = "A thread that writes to a merged page waits for a copy, and the thread ksmd takes CPU time.";
            let found = warn(ID, "equal pages are merged (KSM)", evidence(PATH, &run));
            match too_much_merged(context.root) {
                // 2 also separates the pages; the kernel kills the writer if the memory does not suffice.
                None => found.because(why, format!("echo 2 | sudo tee /{PATH}")),
                Some((needed, available)) => {
                    let (needed, available) = (in_mib(needed), in_mib(available));
                    let text = format!("pages stay merged, because to separate them takes {needed} of {available}");
                    found.because(why, format!("echo 0 | sudo tee /{PATH}   # {text}"))
                }
            }
            .until_boot()
        }
        Ok(run) if run == "0" || run == "2" => ok(ID, "equal pages are not merged", evidence(PATH, &run)),
        Ok(run) => unknown(ID, "merging of pages not understood", evidence(PATH, &run)),
        Err(Unreadable::Absent) if context.root.exists("sys/kernel") => {
            not_applicable(ID, "this kernel does not merge pages", without(PATH, Unreadable::Absent))
        }
        Err(why) => unknown(ID, "merging of pages not readable", without(PATH, why)),
    }
}

fn numa_balancing(context: &CheckContext) -> Finding {
    const ID: &str = "memory.numa_balancing";
    const PATH: &str = "proc/sys/kernel/numa_balancing";
    let balancing = context.root.parsed(PATH, |text| text.parse::<u32>().ok());
    match balancing.map(|value| (value, evidence(PATH, &value.to_string()))) {
        Ok((0, read)) => ok(ID, "pages stay on their memory node", read),
        Ok((_, read)) => warn(ID, "pages move between memory nodes", read)
            .because(
                "The kernel unmaps pages to see who uses them: each next access is a page fault, also of locked memory.",
                format!("echo 0 | sudo tee /{PATH}"),
            )
            .until_boot(),
        Err(Unreadable::Absent) if context.root.exists("proc/sys/kernel") => {
            not_applicable(ID, "this kernel does not balance memory nodes", without(PATH, Unreadable::Absent))
        }
        Err(why) => unknown(ID, "balancing of memory nodes not readable", without(PATH, why)),
    }
}
