//! Other software that takes CPU time: the hypervisor and irqbalance.

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, ok, unknown, warn};

pub(super) const CHECKS: &[Check] = &[hypervisor, irq_balance];

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

fn irq_balance(context: &CheckContext) -> Finding {
    const ID: &str = "irq.balance";
    let runs = context.root.list("proc").into_iter().find(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && context.root.read(&format!("proc/{pid}/comm")).as_deref() == Some("irqbalance")
    });
    match runs {
        Some(pid) => warn(ID, "irqbalance runs", evidence(&format!("proc/{pid}/comm"), "irqbalance")).because(
            "It moves interrupts between CPUs during a run, even to CPUs that should have none.",
            "sudo systemctl disable --now irqbalance",
        ),
        // In a container, or if /proc hides the processes of others, a missing process proves nothing.
        None if context.in_container() => {
            unknown(ID, "the host's processes are not visible from this container", context.evidence("proc/1/comm"))
        }
        None if context.root.exists("proc/1/comm") => ok(ID, "irqbalance does not run", "/proc/*/comm: no irqbalance"),
        None => unknown(ID, "the processes of other users are not visible", context.evidence("proc/1/comm")),
    }
}
