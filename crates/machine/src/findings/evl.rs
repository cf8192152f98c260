//! Real-time cores next to Linux: the EVL core (Xenomai 4) and Cobalt (Xenomai 3).
//!
//! Source of the options: the list of `evl check` (`utils/kconf-checklist.evl` of libevl), and "Things you definitely
//! want to know" of the EVL project (<https://v4.xenomai.org/core/caveat/>).

use record::Finding;

use super::kernel::no_config;
use super::{Check, CheckContext, Explain, chosen, evidence, fail, not_applicable, ok, unknown, warn};
use crate::{CpuList, Unreadable, evl::Gravity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "evl.core",
        subject: "a running [EVL core](evl.md) (Xenomai 4)",
        source: "https://v4.xenomai.org/core/caveat/",
        run: core,
    },
    Check {
        id: "evl.cpus",
        subject: "isolated CPUs of the EVL core (`evl.oob_cpus`, `isolcpus`)",
        source: "https://v4.xenomai.org/core/caveat/",
        run: cpus,
    },
    Check {
        id: "evl.gravity",
        subject: "a calibrated gravity that is not implausibly large",
        source: "https://v4.xenomai.org/core/benchmarks/",
        run: gravity,
    },
    Check {
        id: "evl.debug_options",
        subject: "debug options of the kernel that delay out-of-band threads",
        source: "https://v4.xenomai.org/core/caveat/",
        run: debug_options,
    },
    Check {
        id: "evl.kernel_options",
        subject: "other kernel options that `evl check` of libevl reports, and `EVL_RUNSTATS`",
        source: "https://v4.xenomai.org/core/caveat/",
        run: kernel_options,
    },
    Check {
        id: "xenomai.cobalt",
        subject: "a Cobalt core (Xenomai 3), whose threads are not measured",
        source: "punctual",
        run: cobalt,
    },
];

const ABI: &str = "sys/devices/virtual/evl/control/abi";
const STATE: &str = "sys/devices/virtual/evl/control/state";
const CPUS: &str = "sys/devices/virtual/evl/control/cpus";
const GRAVITY: &str = "sys/devices/virtual/clock/monotonic/gravity";

/// Twice the largest gravity that a kernel with the core has by default (6 us on 32-bit ARM), ns.
const GRAVITY_USUAL_MAX_NS: u64 = 12_000;

/// Debug options that delay out-of-band threads, each with the options to disable in its place if others select it.
const DEBUG_OPTIONS: [(&str, &str); 11] = [
    ("DEBUG_HARD_LOCKS", "DEBUG_HARD_LOCKS"),
    ("LOCKDEP", "PROVE_LOCKING DEBUG_LOCK_ALLOC LOCK_STAT"),
    ("KASAN", "KASAN"),
    ("DEBUG_LIST", "DEBUG_LIST"),
    ("DEBUG_VM", "DEBUG_VM"),
    ("DEBUG_PER_CPU_MAPS", "DEBUG_PER_CPU_MAPS"),
    ("DEBUG_ENTRY", "DEBUG_ENTRY"),
    ("EVL_DEBUG_CORE", "EVL_DEBUG_CORE"),
    ("EVL_DEBUG_MEMORY", "EVL_DEBUG_MEMORY"),
    ("EVL_DEBUG_NET", "EVL_DEBUG_NET"),
    ("EVL_DEBUG_WOLI", "EVL_DEBUG_WOLI"),
];
/// Non-zero if the kernel may move locked pages. Their next access then faults and moves a thread in-band.
const LOCKED_PAGES: &str = "COMPACT_UNEVICTABLE_DEFAULT";
/// Debug options that check each lock or memory access, which takes hundreds of microseconds.
const SLOWEST: [&str; 3] = ["DEBUG_HARD_LOCKS", "LOCKDEP", "KASAN"];

/// The finding for a kernel without the core; `None` with one.
fn without_core(context: &CheckContext, id: &str) -> Option<Finding> {
    if context.machine.evl.is_some() || context.machine.evl_gravity.is_some() {
        return None;
    }
    let read = context.evidence(ABI);
    // The clock of a core that is stopped has a gravity, too.
    let has_clock = context.root.exists(GRAVITY);
    Some(if !has_clock && context.root.exists("sys/devices") {
        not_applicable(id, "no EVL core", read)
    } else {
        unknown(id, "EVL core not readable", read)
    })
}

fn core(context: &CheckContext) -> Finding {
    const ID: &str = "evl.core";
    if let Some(absent) = without_core(context, ID) {
        let is_absent =
            context.root.try_read(ABI) == Err(Unreadable::Absent) && context.root.exists("sys/devices/virtual");
        return match context.config().filter(|config| is_absent && config.has("EVL")) {
            Some(config) => fail(ID, "the kernel has an EVL core that is not available", config.evidence(&["EVL"]))
                .because(
                    "The core is disabled, for example by the boot argument evl.state=disabled, or it failed at boot.",
                    "sudo dmesg | grep -i evl",
                ),
            None => absent,
        };
    }
    let core = context.machine.evl.clone().unwrap_or_default();
    match core.state.as_deref() {
        Some("running") => {
            let abi = core.abi.map_or_else(String::new, |abi| format!(", ABI {abi}"));
            ok(ID, format!("EVL core running{abi}"), context.evidence(STATE))
        }
        Some(state) => fail(ID, format!("EVL core {state}"), context.evidence(STATE))
            .because(
                "No thread can be attached to the core, so every thread is scheduled by Linux.",
                format!("echo start | sudo tee /{STATE}"),
            )
            .until_boot(),
        None => unknown(ID, "state of the EVL core not readable", context.evidence(STATE)),
    }
}

/// The CPUs of the core must be free of other work: Linux threads evict the caches of out-of-band threads.
fn cpus(context: &CheckContext) -> Finding {
    const ID: &str = "evl.cpus";
    if let Some(absent) = without_core(context, ID) {
        return absent;
    }
    let requested = context.boot_argument("evl.oob_cpus").and_then(|cpus| cpus.parse::<CpuList>().ok());
    let reported = context.root.number::<CpuList>(CPUS);
    let (Some(own), Some(isolated)) = (
        reported.clone().or_else(|| requested.clone()),
        context.machine.cpus_isolated.as_deref().and_then(|cpus| cpus.parse::<CpuList>().ok()),
    ) else {
        return unknown(ID, "CPUs of the EVL core not readable", context.evidence(CPUS));
    };
    let source = match (&reported, &requested) {
        (None, Some(requested)) => format!("/proc/cmdline = evl.oob_cpus={requested}"),
        _ => evidence(CPUS, &own.to_string()),
    };
    let read = format!("{source}, {}", evidence("sys/devices/system/cpu/isolated", &isolated.to_string()));
    if let (Some(reported), Some(requested)) = (&reported, &requested)
        && let missing = requested.difference(reported)
        && !missing.is_empty()
    {
        let title = format!("the EVL core does not use {}, requested by evl.oob_cpus={requested}", missing.in_words());
        return warn(ID, title, read)
            .because(
                "The core takes only CPUs that are present at boot; threads cannot be attached to it on the others.",
                format!("kernel argument: `evl.oob_cpus={}`", requested.intersection(reported)),
            )
            .permanent();
    }
    let shared = own.difference(&isolated);
    if context.online().len() == 1 {
        return not_applicable(ID, "one CPU alone cannot be isolated", read);
    }
    if shared.is_empty() {
        return ok(ID, format!("{} of the EVL core isolated", own.in_words()), read);
    }
    let cpus = if own == *context.online() { CpuList::from_iter([context.last_cpu()]) } else { own };
    warn(ID, format!("{} of the EVL core not isolated", shared.in_words()), read).because(
        "Linux threads on these CPUs evict the cached data of out-of-band threads, which costs them microseconds at each wake-up.",
        format!("kernel arguments: `isolcpus={cpus} evl.oob_cpus={cpus}`"),
    ).permanent()
}

fn gravity(context: &CheckContext) -> Finding {
    const ID: &str = "evl.gravity";
    const CALIBRATE: &str = "sudo \"$(command -v punctual)\" evl gravity --set";
    if let Some(absent) = without_core(context, ID) {
        return absent;
    }
    let read = context.evidence(GRAVITY);
    let Some(gravity) = context.root.read(GRAVITY).and_then(|text| text.parse::<Gravity>().ok()) else {
        return unknown(ID, "gravity of the EVL core's clock not readable", read);
    };
    let Gravity { irq_ns, kernel_ns, user_ns } = gravity;
    if irq_ns.max(kernel_ns).max(user_ns) > GRAVITY_USUAL_MAX_NS {
        return warn(ID, format!("gravity {gravity} is unusually large"), read).because(
            "If the gravity is larger than the time the core needs to reach a thread, threads wake before their deadline.",
            CALIBRATE,
        ).until_boot();
    }
    if irq_ns > kernel_ns || kernel_ns > user_ns {
        return warn(ID, format!("gravity {gravity} is implausible"), read).because(
            "An interrupt handler is reached before a kernel thread, and that before a user thread: one of the values makes wake-ups early or late.",
            CALIBRATE,
        ).until_boot();
    }
    // The core's default has one value for threads and none for interrupts.
    if irq_ns == 0 && kernel_ns == user_ns {
        return warn(ID, format!("gravity not calibrated (default {gravity})"), read).because(
            "The default is a guess for the whole architecture, so wake-ups may be some microseconds late or early.",
            CALIBRATE,
        ).until_boot();
    }
    ok(ID, format!("gravity {gravity}"), read)
}

fn debug_options(context: &CheckContext) -> Finding {
    const ID: &str = "evl.debug_options";
    if let Some(absent) = without_core(context, ID) {
        return absent;
    }
    let Some(config) = context.config() else { return no_config(context, ID) };
    let set: Vec<(&str, &str)> = DEBUG_OPTIONS.into_iter().filter(|(option, _)| config.has(option)).collect();
    let names: Vec<&str> = set.iter().map(|(option, _)| *option).collect();
    if names.is_empty() {
        return ok(ID, "no debug options that delay out-of-band threads", config.evidence(&["EVL_DEBUG_CORE"]));
    }
    let disable: Vec<&str> = set.iter().flat_map(|(_, options)| options.split(' ')).collect();
    let title = format!("debug options that delay out-of-band threads: {}", names.join(", "));
    let slow = names.iter().any(|name| SLOWEST.contains(name));
    let finding = if slow { fail } else { warn }(ID, title, config.evidence(&names));
    let why = if slow {
        "They check each lock or memory access with interrupts disabled in hardware, which takes up to hundreds of microseconds."
    } else {
        "Their checks run in the paths of the core that wake a thread."
    };
    finding.because(why, rebuild(&[], &disable, &[])).permanent()
}

/// The other options of the list of `evl check`, unless a setting of the running system replaces them.
fn kernel_options(context: &CheckContext) -> Finding {
    const ID: &str = "evl.kernel_options";
    if let Some(absent) = without_core(context, ID) {
        return absent;
    }
    let Some(config) = context.config() else { return no_config(context, ID) };
    let root = context.root;
    // A file that exists and cannot be read is no reason for a warning.
    let is_set = |path: &str, value: u64| match root.parsed(path, |text| text.parse::<u64>().ok()) {
        Ok(number) => number == value,
        Err(why) => why != Unreadable::Absent,
    };
    let no_pages = || match root.parsed("sys/kernel/mm/transparent_hugepage/enabled", chosen) {
        Ok(mode) => mode == "never",
        Err(why) => why != Unreadable::Absent,
    };
    let no_firmware_calls = || {
        !root.exists("sys/firmware/efi")
            || context.boot_argument("noefi").is_some()
            || context.boot_argument("efi").is_some_and(|efi| efi.split(',').any(|word| word == "noruntime"))
    };
    let governed = config.has("CPU_FREQ") && context.machine.governor.as_deref() != Some("performance");
    let mut enable = Vec::new();
    let mut disable = Vec::new();
    if !config.has("EVL_RUNSTATS") {
        enable.push("EVL_RUNSTATS");
    }
    if governed && !config.has("CPU_FREQ_DEFAULT_GOV_PERFORMANCE") {
        enable.push("CPU_FREQ_DEFAULT_GOV_PERFORMANCE");
    }
    if config.has("EFI") && !config.has("EFI_DISABLE_RUNTIME") && !no_firmware_calls() {
        enable.push("EFI_DISABLE_RUNTIME");
    }
    if config.has("ARM") && !config.has("VDSO") {
        enable.push("VDSO");
    }
    disable.extend(["ACPI_PROCESSOR_IDLE", "FTRACE"].into_iter().filter(|option| config.has(option)));
    if config.has("TRANSPARENT_HUGEPAGE") && !no_pages() {
        disable.push("TRANSPARENT_HUGEPAGE");
    }
    if config.has("NUMA_BALANCING") && !is_set("proc/sys/kernel/numa_balancing", 0) {
        disable.push("NUMA_BALANCING");
    }
    let moves_locked = config.value(LOCKED_PAGES).is_some_and(|value| value != "0")
        && !is_set("proc/sys/vm/compact_unevictable_allowed", 0);
    let zero: &[&str] = if moves_locked { &[LOCKED_PAGES] } else { &[] };
    let names: Vec<&str> = enable.iter().chain(&disable).chain(zero).copied().collect();
    if names.is_empty() {
        return ok(ID, "kernel options as the EVL core needs them", config.evidence(&["EVL_RUNSTATS", "FTRACE"]));
    }
    let missing = enable.iter().map(|option| format!("{option} not set"));
    let set = disable.iter().chain(zero).map(|option| format!("{option} set"));
    let words: Vec<String> = missing.chain(set).collect();
    let title = format!("kernel options to change for the EVL core: {}", words.join(", "));
    warn(ID, title, config.evidence(&names)).because(
        "They allow idle states, frequency changes, firmware calls or page moves that delay out-of-band threads, or add \
         code to their wake-ups. Without FTRACE, punctual cannot name the cause of a spike; without EVL_RUNSTATS, it \
         cannot measure out-of-band.",
        rebuild(&enable, &disable, zero),
    ).permanent()
}

/// Threads of the older core are invisible to punctual, whose threads Linux schedules on such a kernel.
fn cobalt(context: &CheckContext) -> Finding {
    const ID: &str = "xenomai.cobalt";
    let Some(version) = &context.machine.cobalt else {
        let read = context.evidence("proc/xenomai/version");
        return if context.root.exists("proc/sys/kernel") {
            not_applicable(ID, "no Cobalt core (Xenomai 3)", read)
        } else {
            unknown(ID, "Cobalt core (Xenomai 3) not readable", read)
        };
    };
    warn(ID, format!("Cobalt core of Xenomai 3 ({version}): measured in-band only"), context.evidence("proc/xenomai/version"))
        .because(
            "punctual's threads are scheduled by Linux, which Cobalt threads preempt. Its figures are not those of Cobalt threads.",
            "measure Cobalt threads with the program latency of Xenomai: sudo /usr/xenomai/bin/latency",
        )
}

/// The command that changes options, in the folder of the kernel's source.
fn rebuild(enable: &[&str], disable: &[&str], zero: &[&str]) -> String {
    let enable = enable.iter().map(|option| format!(" --enable {option}"));
    let disable = disable.iter().map(|option| format!(" --disable {option}"));
    let zero = zero.iter().map(|option| format!(" --set-val {option} 0"));
    let changes: String = enable.chain(disable).chain(zero).collect();
    format!("build the kernel after: scripts/config{changes} && make olddefconfig")
}
