//! The hypervisor and the firmware, which take CPU time from the kernel.

use std::{fs::File, io, os::unix::fs::FileExt};

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, not_applicable, ok, unknown, warn};
use crate::{
    PUNCTUAL, cpus,
    virt::{self, Hypervisor},
};

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
    Check {
        id: "machine.firmware",
        subject: "interruptions by the firmware (system management interrupts)",
        source: "Intel, Software Developer's Manual, volume 4, MSR_SMI_COUNT (34H)",
        run: firmware,
    },
];

fn hypervisor(context: &CheckContext) -> Finding {
    const ID: &str = "machine.hypervisor";
    match context.machine.hypervisor.as_deref() {
        None => unknown(ID, "hypervisor not readable", context.evidence("sys/class/dmi/id/sys_vendor")),
        Some("none") => ok(ID, "no hypervisor", hypervisor_evidence(context)),
        Some(kind) => warn(ID, format!("virtual machine: {kind}"), hypervisor_evidence(context)).because(
            "The host can take the CPU away at any time, for milliseconds, and the guest cannot prevent it.",
            format!(
                "measure on the hardware itself, or on the host pin each virtual CPU to a CPU of its own{}",
                pinning(context, kind)
            ),
        ),
    }
}

/// The setting that gives a virtual CPU a CPU of its own, in brackets; empty where the hypervisor is not known to have one.
fn pinning(context: &CheckContext, kind: &str) -> String {
    let is_dom0 = || context.root.read("proc/xen/capabilities").is_some_and(|all| all.contains("control_d"));
    let is_wsl = || virt::is_of_wsl(context.machine.kernel.as_deref().unwrap_or_default());
    let setting = match kind.split(' ').next().unwrap_or_default() {
        "xen" if is_dom0() => Some("dom0_vcpus_pin on the command line of Xen"),
        "hyperv" if is_wsl() => Some("not possible for the Windows Subsystem for Linux"),
        _ => virt::pinning(kind),
    };
    setting.map(|setting| format!(" ({setting})")).unwrap_or_default()
}

/// The file that shows if this machine is a guest, with its content.
pub(super) fn hypervisor_evidence(context: &CheckContext) -> String {
    let Hypervisor { path, line, .. } = virt::hypervisor(context.root);
    line.map_or_else(|| context.evidence(path), |line| evidence(path, line))
}

/// Share of stolen time since boot above which the host is busy.
const STEAL_LIMIT: f64 = 0.001;

/// States of CPU hotplug that a guest's kernel has only if the hypervisor reports stolen time (arch/arm64/kernel/paravirt.c,
/// arch/arm/xen/enlighten.c, arch/x86/kernel/cpu/vmware.c, arch/loongarch/kernel/paravirt.c).
const STEAL_STATES: [&str; 4] =
    ["hypervisor/arm/pvtime:online", "arm/xen_runstate:starting", "x86/vmware:online", "loongarch/pv_time:online"];
/// The state of a guest of KVM on x86, which reports stolen time if the processor names that feature (arch/x86/kernel/kvm.c).
const KVM_STATE: &str = "x86/kvm:online";

/// The evidence that the kernel counts the time that the hypervisor reports as stolen; `None` if that is not known.
fn steal_clock(context: &CheckContext) -> Option<String> {
    const STATES: &str = "sys/devices/system/cpu/hotplug/states";
    const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let is_list = |text: &str| text.lines().all(|line| line.contains(": "));
    let states = context.root.text_if(STATES, is_list).unwrap_or_default();
    let names: Vec<&str> = states.lines().filter_map(|line| Some(line.split_once(": ")?.1.trim())).collect();
    if let Some(name) = STEAL_STATES.into_iter().find(|name| names.contains(name)) {
        return Some(format!("/{STATES}: {name}"));
    }
    // x86 registers this clock together with that of stolen time (`xen_time_init` in arch/x86/xen/time.c).
    if context.root.read(CLOCKS).is_some_and(|clocks| clocks.split_whitespace().any(|clock| clock == "xen")) {
        return Some(format!("/{CLOCKS}: xen"));
    }
    let is_kvm = names.contains(&KVM_STATE) && virt::kvm_reports_steal(context.root) == Some(true);
    is_kvm.then(|| format!("/{STATES}: {KVM_STATE}, CPUID: KVM_FEATURE_STEAL_TIME"))
}

fn steal(context: &CheckContext) -> Finding {
    const ID: &str = "machine.steal";
    const PATH: &str = "proc/stat";
    let kind = match context.machine.hypervisor.as_deref() {
        None => return unknown(ID, "hypervisor not readable", context.evidence("sys/class/dmi/id/sys_vendor")),
        Some("none") => return not_applicable(ID, "no hypervisor", hypervisor_evidence(context)),
        Some(kind) => kind,
    };
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
    if steal == 0 {
        // Where the hypervisor does not report it, the column is always 0.
        return match steal_clock(context) {
            Some(clock) => ok(ID, title, format!("{read}, {clock}")),
            None => unknown(ID, "this hypervisor may not report the CPU time that it gave to others", read),
        };
    }
    if share < STEAL_LIMIT {
        return ok(ID, title, read);
    }
    warn(ID, title, read).because(
        "A virtual CPU stands still meanwhile, mostly for milliseconds at a time.",
        format!(
            "give each virtual CPU a CPU of its own on the host{}, or choose an instance with dedicated CPUs",
            pinning(context, kind)
        ),
    )
}

/// Number of the register that counts system management interrupts since the last reset.
const SMI_COUNT: u64 = 0x34;
/// Such interrupts a second, on average since boot, above which they come regularly; firmware causes some during the boot.
const SMI_PER_SECOND: f64 = 0.1;

fn firmware(context: &CheckContext) -> Finding {
    const ID: &str = "machine.firmware";
    if context.is_guest() {
        return not_applicable(
            ID,
            "a virtual machine does not see the firmware of its host",
            hypervisor_evidence(context),
        );
    }
    let Ok(processor) = cpus::cpuinfo(context.root) else {
        return unknown(ID, "processor not readable", context.evidence("proc/cpuinfo"));
    };
    let Some(vendor) = processor.lines().find_map(|line| line.strip_prefix("vendor_id")?.trim().strip_prefix(": "))
    else {
        const OTHERS: [&str; 8] = ["aarch64", "arm", "riscv", "ppc", "s390", "mips", "loongarch", "sparc"];
        let has_line = |name| processor.lines().any(|line| line.starts_with(name));
        let arch = context.machine.arch.as_deref().unwrap_or_default();
        // Processors of ARM and RISC-V have these lines, whatever the kernel calls the architecture.
        let is_other =
            OTHERS.iter().any(|other| arch.starts_with(other)) || has_line("CPU implementer") || has_line("isa");
        return match is_other {
            true => not_applicable(ID, "this processor has no system management mode", "/proc/cpuinfo: no vendor_id"),
            false => unknown(ID, "vendor of the processor not readable", "/proc/cpuinfo: no vendor_id"),
        };
    };
    if vendor != "GenuineIntel" {
        let title = "this processor does not count interruptions by the firmware; `measure noise` shows gaps";
        return unknown(ID, title, evidence("proc/cpuinfo", &format!("vendor_id: {vendor}")));
    }
    let path = format!("dev/cpu/{}/msr", context.online().iter().next().unwrap_or(0));
    let count = match smi_count(&context.root.path(&path)) {
        Ok(count) => count,
        Err(error) => {
            let title = "interruptions by the firmware not readable: run `modprobe msr`, and the check, as root";
            return unknown(ID, title, format!("/{path}: {error}"));
        }
    };
    let read = format!("/{path} = MSR_SMI_COUNT (34H): {count}");
    let rate = context.uptime_s().filter(|&seconds| seconds > 0.0).map(|seconds| f64::from(count) / seconds);
    match rate {
        _ if count == 0 => ok(ID, "the firmware has not interrupted the CPUs since the reset", read),
        Some(rate) if rate > SMI_PER_SECOND => {
            warn(ID, format!("the firmware interrupted the CPUs {count} times since the reset"), read).because(
                "All CPUs stand still meanwhile, mostly for 10 us to milliseconds, and the kernel does not see it.",
                format!("measure how long: sudo {PUNCTUAL} measure noise --duration 5m; switch off USB legacy support, power capping and monitoring in the firmware's setup"),
            )
        }
        _ => {
            let title = format!("the firmware interrupted the CPUs {count} times, perhaps only during the boot; `measure noise` shows gaps");
            unknown(ID, title, read)
        }
    }
}

/// Reads the count of a CPU through its device.
fn smi_count(device: &std::path::Path) -> io::Result<u32> {
    let mut register = [0; 8];
    File::open(device)?.read_exact_at(&mut register, SMI_COUNT)?;
    // The upper half is reserved.
    let [count @ .., _, _, _, _] = register;
    Ok(u32::from_le_bytes(count))
}
