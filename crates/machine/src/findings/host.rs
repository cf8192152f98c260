//! The hypervisor, which takes CPU time from its guests.

use record::Finding;

use super::{Check, CheckContext, Explain, not_applicable, ok, unknown, warn};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "machine.hypervisor",
        subject: "a hypervisor that can take the CPU away",
        source: "punctual",
        run: hypervisor,
    },
    Check {
        id: "machine.steal",
        subject: "CPU time that the hypervisor gave to others",
        source: "proc(5), /proc/stat",
        run: steal,
    },
];

fn hypervisor(context: &CheckContext) -> Finding {
    const ID: &str = "machine.hypervisor";
    match context.machine.hypervisor.as_deref() {
        None => unknown(ID, "hypervisor not readable", context.evidence("sys/class/dmi/id/sys_vendor")),
        Some("none") => ok(ID, "no hypervisor", hypervisor_evidence(context)),
        Some(kind) => warn(ID, format!("virtual machine: {kind}"), hypervisor_evidence(context)).because(
            "The host can take the CPU away at any time, for milliseconds, and the guest cannot prevent it.",
            "measure on the hardware itself, or on the host pin each virtual CPU to a CPU of its own (vcpupin of virsh)",
        ),
    }
}

fn hypervisor_evidence(context: &CheckContext) -> String {
    let flags = context.root.read("proc/cpuinfo").unwrap_or_default();
    match flags.lines().find(|line| line.starts_with("flags")) {
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => {
            "/proc/cpuinfo = flags: ... hypervisor ...".to_owned()
        }
        Some(_) => "/proc/cpuinfo = flags without hypervisor".to_owned(),
        None if context.root.exists("proc/device-tree/psci/method") => context.evidence("proc/device-tree/psci/method"),
        None if context.root.exists("proc/device-tree") => context.evidence("proc/device-tree/hypervisor/compatible"),
        None => context.evidence("sys/class/dmi/id/sys_vendor"),
    }
}

/// Share of stolen time since boot above which the host is busy.
const STEAL_LIMIT: f64 = 0.001;

fn steal(context: &CheckContext) -> Finding {
    const ID: &str = "machine.steal";
    const PATH: &str = "proc/stat";
    match context.machine.hypervisor.as_deref() {
        None => return unknown(ID, "hypervisor not readable", context.evidence("sys/class/dmi/id/sys_vendor")),
        Some("none") => return not_applicable(ID, "no hypervisor", hypervisor_evidence(context)),
        Some(_) => {}
    }
    // user nice system idle iowait irq softirq steal; guest time is contained in user time.
    let stat = context.root.read(PATH).unwrap_or_default();
    let times = stat.lines().next().and_then(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> =
        times.unwrap_or_default().split_whitespace().take(8).filter_map(|ticks| ticks.parse().ok()).collect();
    let (total, &[.., steal]) = (ticks.iter().sum::<u64>(), ticks.as_slice()) else {
        return unknown(ID, "stolen time not readable", format!("/{PATH}: no line of all CPUs"));
    };
    if ticks.len() < 8 || total == 0 {
        return unknown(ID, "stolen time not readable", format!("/{PATH}: no column of stolen time"));
    }
    let share = steal as f64 / total as f64;
    let title = format!("the host gave {:.2} % of the CPU time since boot to others", share * 100.0);
    let read = format!("/{PATH} = steal {steal} of {total} ticks");
    if share < STEAL_LIMIT {
        return ok(ID, title, read);
    }
    warn(ID, title, read).because(
        "A virtual CPU stands still meanwhile, mostly for milliseconds at a time.",
        "give each virtual CPU a CPU of its own on the host (vcpupin of virsh), or choose an instance with dedicated CPUs",
    )
}
