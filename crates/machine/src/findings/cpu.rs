//! The CPUs: frequency, idle states, sharing.

use std::collections::{BTreeMap, BTreeSet};

use record::Finding;

use super::host::hypervisor_evidence;
use super::{
    Check, CheckContext, Explain, evidence, fail, latency_request, not_applicable, ok, unknown, warn, without,
};
use crate::facts::{IdleState, usable_idle_states};
use crate::{
    CpuList, PUNCTUAL, Unreadable,
    conditions::{cooling, cools_cpu},
    cpus::{self, Ceiling, Turbo},
    program_limit, topology,
};

const CPU: &str = "sys/devices/system/cpu";

/// Exit latency above which an idle state is worth a warning if the use is not known, ns.
pub(crate) const IDLE_EXIT_LIMIT_NS: u64 = 10_000;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cpu.governor",
        subject: "a constant CPU frequency",
        source: "Linux, Documentation/admin-guide/pm/cpufreq.rst",
        run: governor,
    },
    Check {
        id: "cpu.frequency_limit",
        subject: "a frequency limit below what the CPU can do",
        source: "Linux, Documentation/admin-guide/pm/cpufreq.rst",
        run: frequency_limit,
    },
    Check {
        id: "cpu.turbo",
        subject: "frequencies above the nominal one, which depend on heat and on other cores",
        source: "Linux, Documentation/admin-guide/pm/cpufreq.rst",
        run: turbo,
    },
    Check {
        id: "cpu.energy_preference",
        subject: "preference of the processor between speed and energy (EPP)",
        source: "Linux, Documentation/admin-guide/pm/intel_pstate.rst",
        run: energy_preference,
    },
    Check {
        id: "cpu.throttled",
        subject: "CPUs that were slowed down because of heat",
        source: "Linux, Documentation/ABI/testing/sysfs-devices-system-cpu",
        run: throttled,
    },
    Check {
        id: "cpu.idle_states",
        subject: "exit latency of the deepest idle state",
        source: "Linux, Documentation/admin-guide/pm/cpuidle.rst",
        run: idle_states,
    },
    Check {
        id: "cpu.latency_request",
        subject: "CPUs that a limit keeps out of idle states, and what set it",
        source: "Linux, Documentation/power/pm_qos_interface.rst",
        run: latency_request::check,
    },
    Check {
        id: "cpu.smt",
        subject: "CPUs that share a core",
        source: "Linux, Documentation/admin-guide/cputopology.rst",
        run: smt,
    },
    Check {
        id: "cpu.mitigations",
        subject: "costly mitigations of CPU vulnerabilities",
        source: "Linux, Documentation/admin-guide/hw-vuln",
        run: mitigations,
    },
    Check {
        id: "cpu.resctrl",
        subject: "a share of cache and memory bandwidth for real-time work",
        source: "Linux, Documentation/filesystems/resctrl.rst",
        run: resctrl,
    },
];

fn governor(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.governor";
    let file = |cpu: u32, name: &str| format!("{CPU}/cpu{cpu}/cpufreq/scaling_{name}");
    if context.online().is_empty() {
        return unknown(ID, "frequency governor not readable", context.evidence(&format!("{CPU}/online")));
    }
    if let Some(finding) = context.unread_isolation(ID) {
        return finding;
    }
    // A fault of one CPU counts, also if the file of another one cannot be read.
    if let Some(finding) = slow_governor(context, ID).or_else(|| scaling_governor(context, ID)) {
        return finding;
    }
    let judged = context.realtime_cpus();
    let unread = judged.iter().find(|&cpu| context.root.word(&file(cpu, "governor")).is_err());
    if let (Some(_), Some(cpu)) = (&context.machine.governor, unread) {
        return unknown(
            ID,
            format!("frequency governor of CPU {cpu} not readable"),
            context.evidence(&file(cpu, "governor")),
        );
    }
    let Some(governor) = &context.machine.governor else {
        let path = file(0, "governor");
        return match context.root.try_read(&path) {
            Err(Unreadable::Absent) => {
                let title =
                    "the kernel does not control the CPU frequency: it is fixed, or the firmware or host changes it";
                unknown(ID, title, without(&path, Unreadable::Absent))
            }
            _ => unknown(ID, "frequency governor not readable", context.evidence(&path)),
        };
    };
    let without_frequency = |cpu: &u32| {
        context.root.word(&file(*cpu, "governor")).is_ok_and(|name| name == "userspace")
            && cpus::has_fixed_frequency(context.root, *cpu) != Some(true)
    };
    if let Some(cpu) = judged.iter().find(without_frequency) {
        let read = |name| context.evidence(&file(cpu, name));
        let title = format!("the frequency that a program has set for CPU {cpu} is not readable (governor userspace)");
        return unknown(ID, title, format!("{}, {}", read("governor"), read("setspeed")));
    }
    let may_scale = |cpu: &u32| context.root.word(&file(*cpu, "governor")).is_ok_and(|name| name != "performance");
    let scaled: Vec<u32> = judged.iter().filter(may_scale).collect();
    if let Some(cpu) = scaled.iter().find(|cpu| cpus::has_fixed_frequency(context.root, **cpu).is_none()) {
        let read = |name| context.evidence(&file(*cpu, name));
        let title = format!("frequency limits of CPU {cpu} not readable (governor {governor})");
        return unknown(ID, title, format!("{}, {}", read("min_freq"), read("max_freq")));
    }
    let governors: BTreeSet<String> =
        scaled.iter().filter_map(|cpu| context.root.word(&file(*cpu, "governor")).ok()).collect();
    let governors = governors.into_iter().collect::<Vec<_>>().join(", ");
    let of_cpus = context.on_realtime_cpus();
    let Some(&cpu) = scaled.first() else {
        let read = context.evidence(&file(judged.first().unwrap_or(0), "governor"));
        return ok(ID, format!("frequency governor performance{of_cpus}"), read);
    };
    let read = |path: &str| context.evidence(path);
    let evidence = match cpus::constant_file(context.root, cpu) {
        Some(path) => format!("{}, {}", read(&file(cpu, "governor")), read(&path)),
        None => format!("{}, {}", read(&file(cpu, "min_freq")), read(&file(cpu, "max_freq"))),
    };
    ok(ID, format!("frequency fixed{of_cpus} (governor {governors})"), evidence)
}

/// The finding if the governor of a CPU changes its frequency. A frequency that a program sets is not known to change.
fn scaling_governor(context: &CheckContext, id: &str) -> Option<Finding> {
    let path = |cpu: u32| format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
    let is_scaling = |cpu: &u32| {
        let governor = context.root.word(&path(*cpu));
        governor.is_ok_and(|name| !["performance", "userspace"].contains(&name.as_str()))
            && cpus::has_fixed_frequency(context.root, *cpu) == Some(false)
    };
    let first = context.realtime_cpus().iter().find(is_scaling)?;
    let own = || context.root.word(&path(first)).unwrap_or_default();
    let governor = context.machine.governor.clone().unwrap_or_else(own);
    let title = format!("frequency changes with the load (governor {governor})");
    let found = warn(id, title, context.evidence(&path(first))).because(
        "After a pause the CPU runs slowly for some time, and each change of the frequency stops it briefly.",
        highest_frequency(context),
    );
    Some(found.until_boot())
}

/// The command that makes the CPUs that count run at their highest frequency.
fn highest_frequency(context: &CheckContext) -> String {
    let offered = |cpu: u32| format!("{CPU}/cpu{cpu}/cpufreq/scaling_available_governors");
    match context.realtime_cpus().iter().all(|cpu| offers(context, &offered(cpu))) {
        true => format!("echo performance | sudo tee {}", context.realtime_files("cpufreq/scaling_governor")),
        false => format!("sudo {PUNCTUAL} tune --only cpu.frequency --setting cpu.frequency=max --yes"),
    }
}

/// The finding if the governor of a CPU keeps it below its highest frequency at any load.
fn slow_governor(context: &CheckContext, id: &str) -> Option<Finding> {
    let slow: Vec<(u32, u64, u64)> = context
        .realtime_cpus()
        .iter()
        .filter_map(|cpu| {
            let own = cpus::constant_khz(context.root, cpu)?;
            let highest = cpus::highest_khz(context.root, cpu).filter(|highest| own < *highest)?;
            Some((cpu, own, highest))
        })
        .collect();
    let (first, own, highest) = *slow.first()?;
    let cpus: CpuList = slow.iter().map(|(cpu, ..)| *cpu).collect();
    let path = format!("{CPU}/cpu{first}/cpufreq/scaling_governor");
    let governor = context.root.word(&path).unwrap_or_default();
    let (own, highest) = (own / 1000, highest / 1000);
    let title = format!("{} kept at {own} of {highest} MHz by the governor {governor}", cpus.in_words());
    let why =
        "Everything on the CPU takes longer. A slow frequency can be meant: it is constant, and a board stays cooler.";
    let kept_in = cpus::constant_file(context.root, first).map(|path| format!(", {}", context.evidence(&path)));
    let finding = warn(id, title, evidence(&path, &governor) + &kept_in.unwrap_or_default());
    Some(finding.because(why, highest_frequency(context)).until_boot())
}

/// True if a list of words has `performance`, or is not readable.
fn offers(context: &CheckContext, path: &str) -> bool {
    context.root.read(path).is_none_or(|words| words.split_whitespace().any(|word| word == "performance"))
}

fn idle_states(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.idle_states";
    if let Some(finding) = context.unread_isolation(ID) {
        return finding;
    }
    let judged = context.realtime_cpus();
    let deepest_within = |programs_us: Option<u64>| {
        judged
            .iter()
            .flat_map(|cpu| {
                let usable = usable_idle_states(context.root, cpu, programs_us);
                usable.map(move |(number, state)| (state, cpu, number))
            })
            // Keeps the first of equals, so that the evidence names the lowest CPU.
            .reduce(|deepest, next| if next.0.exit_us > deepest.0.exit_us { next } else { deepest })
    };
    let deepest = deepest_within(None);
    if context.is_guest() {
        let own = context.machine.idle_states.as_deref().unwrap_or("no states");
        let title = format!("idle states of the host not visible from this guest (the guest has: {own})");
        return unknown(ID, title, context.evidence("sys/devices/system/cpu/cpuidle/current_driver"));
    }
    let Some((state, cpu, number)) = deepest else {
        let file = |name: &str| format!("{CPU}/cpu{}/cpuidle/state0/{name}", judged.first().unwrap_or(0));
        let path = file("latency");
        return match context.root.try_read(&path) {
            Ok(_) => {
                let title = format!("all idle states are disabled{}", context.on_realtime_cpus());
                ok(ID, title, context.evidence(&file("disable")))
            }
            Err(Unreadable::Absent) if !context.online().is_empty() => {
                not_applicable(ID, "the kernel has no idle states for this CPU", without(&path, Unreadable::Absent))
            }
            Err(why) => unknown(ID, "idle states not readable", without(&path, why)),
        };
    };
    let read_of = |state: &IdleState, cpu: u32, number: usize| {
        evidence(&format!("{CPU}/cpu{cpu}/cpuidle/state{number}/latency"), &state.exit_us.to_string())
    };
    let title_of = |state: &IdleState| {
        format!("deepest idle state {}{} takes {} us to leave", state.name, context.on_realtime_cpus(), state.exit_us)
    };
    let (title, read) = (title_of(&state), read_of(&state, cpu, number));
    let limit_ns = context.limit_ns.map_or(IDLE_EXIT_LIMIT_NS, |limit_ns| limit_ns / 10);
    if state.exit_us.saturating_mul(1000) <= limit_ns {
        return ok(ID, title, read);
    }
    // Only a limit of programs could make these states harmless.
    let mut why = "A sleeping CPU must wake before it can handle its timer, which adds to the latency.".to_owned();
    match program_limit::limit_us(context.root) {
        Ok(None) => {}
        Ok(Some(limit_us)) => {
            let within =
                deepest_within(Some(limit_us)).filter(|(state, ..)| state.exit_us.saturating_mul(1000) <= limit_ns);
            if let Some((state, cpu, number)) = within {
                let limit = evidence(program_limit::DEVICE, &format!("{limit_us} us"));
                return ok(ID, title_of(&state), format!("{}, {limit}", read_of(&state, cpu, number)));
            }
        }
        Err(Unreadable::Forbidden) => {
            why += &format!(" A limit of programs (/{}) can prevent it; only root may read it.", program_limit::DEVICE);
        }
        Err(reason) => {
            return unknown(ID, "latency limits of programs not readable", without(program_limit::DEVICE, reason));
        }
    }
    // Without all states, idle CPUs would poll: hot, and slower for their siblings.
    let slow: BTreeSet<usize> = judged
        .iter()
        .flat_map(|cpu| usable_idle_states(context.root, cpu, None))
        .filter(|(_, state)| state.exit_us.saturating_mul(1000) > limit_ns)
        .map(|(number, _)| number)
        .collect();
    let files = slow.iter().map(|number| context.realtime_files(&format!("cpuidle/state{number}/disable")));
    warn(ID, title, read)
        .because(
            why,
            format!(
                "punctual measure timer --hold-cpu-awake, or until the next boot: echo 1 | sudo tee {}",
                files.collect::<Vec<_>>().join(" ")
            ),
        )
        .until_boot()
}

/// The lists of siblings decide, as for `tune`. Where they are not readable, the kernel's own answer does.
fn smt(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.smt";
    const WHY: &str = "Threads on the sibling take execution units and cache from the measured CPU at any time.";
    /// In these states, the kernel refuses to switch SMT off.
    const REFUSING: [&str; 3] = ["notimplemented", "notsupported", "forceoff"];
    let (active, control) = (format!("{CPU}/smt/active"), format!("{CPU}/smt/control"));
    let list = |cpu: u32| format!("{CPU}/cpu{cpu}/topology/thread_siblings_list");
    if let Some(finding) = context.unread_isolation(ID) {
        return finding;
    }
    let (mut cores, is_complete) = topology::shared_cores(context.root);
    let (judged, shared) = (context.realtime_cpus(), cores.len());
    cores.retain(|core| !core.intersection(&judged).is_empty());
    if cores.is_empty() && shared > 0 && is_complete && !context.is_guest() {
        let title = format!("no CPU shares the core of isolated {}", judged.in_words());
        return ok(ID, title, context.evidence(&list(judged.first().unwrap_or(0))));
    }
    let has_switch = || context.root.word(&control).is_ok_and(|state| !REFUSING.contains(&&*state));
    // Kernels for CPUs without SMT lack the file, and so do kernels before 4.19.
    let answer = context.root.try_read(&active);
    if let Some(core) = cores.first() {
        // The switch takes all threads of a core but the first one offline.
        let is_first_kept = cores.iter().all(|core| kept_thread(context, core) == core.first());
        let remedy = match answer.as_deref() {
            Ok("1") if has_switch() && is_first_kept && cores.len() == shared => {
                format!("echo off | sudo tee /{control}")
            }
            _ => without_siblings(context, &cores),
        };
        let more = match cores.len() - 1 {
            0 => String::new(),
            more => format!(", and those of {}", record::counted(more as u64, "more core")),
        };
        let read = context.evidence(&list(core.first().unwrap_or(0)));
        return warn(ID, format!("{} share a core (SMT){more}", core.in_words()), read)
            .because(WHY, remedy)
            .until_boot();
    }
    let answer_read = || context.evidence(&active);
    match answer.as_deref() {
        Ok("1") if !is_complete => {
            let found = warn(ID, "two CPUs share each core (SMT)", answer_read());
            match has_switch() {
                true => found.because(WHY, format!("echo off | sudo tee /{control}")).until_boot(),
                false => found.because(WHY, "switch SMT off in the setup of the firmware").permanent(),
            }
        }
        _ if is_complete && context.is_guest() => {
            unknown(ID, "sharing of the host's cores not visible from this guest", context.evidence(&list(0)))
        }
        Ok("0") if context.is_guest() => {
            unknown(ID, "sharing of the host's cores not visible from this guest", answer_read())
        }
        Ok("0") => ok(ID, "no two CPUs share a core", answer_read()),
        answer if is_complete => {
            let read = context.evidence(&list(context.online().first().unwrap_or(0)));
            match answer {
                Ok(_) => ok(ID, "no two CPUs share a core", read),
                Err(_) => not_applicable(ID, "these CPUs have no SMT", read),
            }
        }
        Ok(_) => unknown(ID, "state of SMT not understood", answer_read()),
        Err(why) => unknown(ID, "state of SMT not readable", without(&active, *why)),
    }
}

/// The thread of a core that stays online: an isolated one, because it is for real-time work, or the first one.
fn kept_thread(context: &CheckContext, core: &CpuList) -> Option<u32> {
    core.intersection(context.isolated()).first().or(core.first())
}

/// The command that takes all other threads of these cores offline.
fn without_siblings(context: &CheckContext, cores: &[CpuList]) -> String {
    let (mut files, mut steps) = (Vec::new(), Vec::new());
    for core in cores {
        let kept = kept_thread(context, core);
        for cpu in core.iter().filter(|cpu| Some(*cpu) != kept) {
            match (cpus::can_go_offline(context.root, cpu), kept) {
                (true, _) | (false, None) => files.push(format!("/{CPU}/cpu{cpu}/online")),
                (false, Some(kept)) => {
                    steps.push(format!("isolate another CPU than {kept}: CPU {cpu} of its core cannot go offline"));
                }
            }
        }
    }
    if !files.is_empty() {
        steps.insert(0, format!("echo 0 | sudo tee {}", files.join(" ")));
    }
    steps.join("\n")
}

/// Parts of the states of mitigations that act on each kernel entry or thread switch; the others cost almost nothing.
const COSTLY: [&str; 7] = [
    "PTI",
    "Clear CPU buffers",
    "Clear Register File",
    "SW loop",
    "IBPB: always-on",
    "untrained return thunk",
    "Safe RET",
];

/// True if a part of the state of a mitigation acts on each kernel entry: one of [`COSTLY`], or `IBRS` or `IBPB` alone,
/// which write to a register or flush the predictor there.
fn is_costly(state: &str) -> bool {
    let parts = state.split(';').map(|part| part.trim().trim_start_matches("Mitigation: ").trim());
    COSTLY.iter().any(|word| state.contains(word)) || parts.into_iter().any(|part| matches!(part, "IBRS" | "IBPB"))
}

/// True for the state of a vulnerability (`Documentation/ABI/testing/sysfs-devices-system-cpu`); some states are longer.
fn is_vulnerability(text: &str) -> bool {
    let states = ["Not affected", "Vulnerable", "Mitigation", "Unknown", "Processor vulnerable", "KVM: "];
    states.iter().any(|state| text.starts_with(state))
}

fn mitigations(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.mitigations";
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    if !context.root.exists(FOLDER) {
        return unknown(ID, "mitigations of CPU vulnerabilities not readable", context.evidence(FOLDER));
    }
    // Includes mitigations that are in force but insufficient: `Vulnerable: Clear CPU buffers attempted, no microcode`.
    let states: Vec<(String, Option<String>)> = context
        .root
        .list(FOLDER)
        .into_iter()
        .map(|name| (name.clone(), context.root.text_if(&format!("{FOLDER}/{name}"), is_vulnerability).ok()))
        .collect();
    let found: Vec<(&str, &str)> = states
        .iter()
        .filter_map(|(name, state)| Some((name.as_str(), state.as_deref().filter(|state| is_costly(state))?)))
        .collect();
    let Some((name, state)) = found.first() else {
        if let Some((name, _)) = states.iter().find(|(_, state)| state.is_none()) {
            let read = context.evidence(&format!("{FOLDER}/{name}"));
            return unknown(ID, "mitigations of CPU vulnerabilities not readable", read);
        }
        if states.is_empty() {
            return unknown(ID, "mitigations of CPU vulnerabilities not readable", format!("/{FOLDER} is empty"));
        }
        let count = context.machine.mitigations.len();
        return ok(ID, "no costly mitigation of CPU vulnerabilities", format!("/{FOLDER}: {count} in force"));
    };
    let names = found.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let read = evidence(&format!("{FOLDER}/{name}"), state);
    warn(ID, format!("mitigations that cost time on each kernel entry: {names}"), read)
        .because(
            "Each system call, interrupt or thread switch takes up to a few microseconds longer.",
            "kernel argument, only where all code on the machine is trusted: `mitigations=off`",
        )
        .permanent()
}

/// The CPUs with each pair of the maximum and the highest frequency, kHz; the smallest part of the highest one comes first.
fn by_limit(all: &[&(u32, u64, u64)]) -> Vec<(CpuList, u64, u64)> {
    let mut groups: BTreeMap<(u64, u64), Vec<u32>> = BTreeMap::new();
    for (cpu, max, able) in all {
        groups.entry((*max, *able)).or_default().push(*cpu);
    }
    let mut groups: Vec<(CpuList, u64, u64)> =
        groups.into_iter().map(|((max, able), cpus)| (cpus.into_iter().collect(), max, able)).collect();
    groups.sort_by_key(|(_, max, able)| max * 1000 / able.max(&1));
    groups
}

/// A maximum below what the CPU can do, perhaps left by a tool or by the firmware.
fn frequency_limit(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.frequency_limit";
    if let Some(finding) = context.unread_isolation(ID) {
        return finding;
    }
    let judged = context.realtime_cpus();
    let file = |cpu: u32, name: &str| format!("{CPU}/cpu{cpu}/cpufreq/{name}");
    let positive = |text: &str| text.parse::<u64>().ok().filter(|khz| *khz > 0);
    let number = |cpu: u32, name: &str| context.root.parsed(&file(cpu, name), positive).ok();
    let known: Vec<(u32, u64, u64)> = judged
        .iter()
        .filter_map(|cpu| Some((cpu, number(cpu, "scaling_max_freq")?, number(cpu, "cpuinfo_max_freq")?)))
        .collect();
    let Some(&(first, max, able)) = known.iter().find(|(_, max, able)| max < able).or(known.first()) else {
        let path = file(judged.first().unwrap_or(0), "cpuinfo_max_freq");
        return match context.root.try_read(&path) {
            Err(Unreadable::Absent) if !context.online().is_empty() => {
                not_applicable(ID, "this kernel does not set the CPU frequency", without(&path, Unreadable::Absent))
            }
            _ => unknown(ID, "frequency limit not readable", context.evidence(&path)),
        };
    };
    if let Some(percent) = context.root.number::<u64>(cpus::MAX_PERCENT).filter(|percent| *percent < 100) {
        return warn(
            ID,
            format!("all CPUs limited to {percent} % of their highest performance"),
            context.evidence(cpus::MAX_PERCENT),
        )
        .because("Everything on the CPU takes longer.", format!("echo 100 | sudo tee /{}", cpus::MAX_PERCENT))
        .until_boot();
    }
    let mhz = |khz: u64| khz / 1000;
    let (path, best) = (file(first, "scaling_max_freq"), file(first, "cpuinfo_max_freq"));
    let read = format!("{}, {}", evidence(&path, &max.to_string()), evidence(&best, &able.to_string()));
    if max >= able {
        if slow_governor(context, ID).is_some() {
            return not_applicable(ID, "a governor keeps a lower frequency than the limit: see cpu.governor", read);
        }
        let title = format!("no limit below the highest frequency{}", context.on_realtime_cpus());
        return ok(ID, title, read);
    }
    let limited: Vec<&(u32, u64, u64)> = known.iter().filter(|(_, max, able)| max < able).collect();
    let cpus: CpuList = limited.iter().map(|(cpu, _, _)| *cpu).collect();
    if let Some(ceiling) = cpus::frequency_ceiling(context.root, first) {
        let title = format!("{} limited to {} of {} MHz: {ceiling}", cpus.in_words(), mhz(max), mhz(able));
        let with_turbo = || format!("{read}, {}", context.evidence(cpus::NO_TURBO));
        return match ceiling {
            Ceiling::NoTurbo => ok(ID, title, with_turbo()),
            Ceiling::PerhapsNoTurbo => unknown(ID, title, with_turbo()),
            Ceiling::Heat => unknown(ID, format!("{title}: see cpu.throttled"), read),
            Ceiling::Firmware => warn(ID, title, format!("{read}, {}", context.evidence(&file(first, "bios_limit"))))
                .because("Everything on the CPU takes longer.", "allow the highest frequency in the firmware's setup")
                .permanent(),
        };
    }
    let is_nominal = match all_are_nominal(context, &cpus) {
        Ok(is_nominal) => is_nominal,
        Err(read) => return unknown(ID, "nominal frequency not readable", read),
    };
    let of_base = |cpu: u32| cpus::is_nominal_limit(context.root, cpu) == Ok(true);
    let others: Vec<&(u32, u64, u64)> = limited.iter().copied().filter(|(cpu, ..)| !of_base(*cpu)).collect();
    if is_nominal {
        let title = format!(
            "{} limited to the nominal frequency, {} of {} MHz: no turbo",
            cpus.in_words(),
            mhz(max),
            mhz(able)
        );
        return ok(ID, title, format!("{read}, {}", context.evidence(&file(first, "base_frequency"))));
    }
    // As for `tune`, those at the nominal frequency stay there. CPUs of several kinds can have several limits.
    let groups = by_limit(&others);
    let worst = groups.first().and_then(|(cpus, ..)| cpus.first());
    let read = worst.map_or(read, |cpu| {
        format!(
            "{}, {}",
            context.evidence(&file(cpu, "scaling_max_freq")),
            context.evidence(&file(cpu, "cpuinfo_max_freq"))
        )
    });
    let limits = groups
        .iter()
        .map(|(cpus, max, able)| format!("{} limited to {} of {} MHz", cpus.in_words(), mhz(*max), mhz(*able)));
    let remedies =
        others.iter().map(|(cpu, _, able)| format!("echo {able} | sudo tee /{}", file(*cpu, "scaling_max_freq")));
    warn(ID, limits.collect::<Vec<_>>().join(", "), read)
        .because(
            "Everything on the CPU takes longer. A limit can be meant: a board stays cooler, and its frequency constant.",
            remedies.collect::<Vec<_>>().join("\n"),
        )
        .until_boot()
}

/// True if the user limits all these CPUs to their nominal frequency; the evidence if that cannot be read.
fn all_are_nominal(context: &CheckContext, cpus: &CpuList) -> Result<bool, String> {
    if cpus.is_empty() {
        return Err(context.evidence(cpus::ONLINE));
    }
    let each: Vec<_> = cpus.iter().map(|cpu| (cpu, cpus::is_nominal_limit(context.root, cpu))).collect();
    if each.iter().any(|(_, is_nominal)| *is_nominal == Ok(false)) {
        return Ok(false);
    }
    match each.iter().find(|(_, is_nominal)| is_nominal.is_err()) {
        Some((cpu, _)) => Err(context.evidence(&format!("{CPU}/cpu{cpu}/cpufreq/base_frequency"))),
        None => Ok(true),
    }
}

fn turbo(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.turbo";
    // Each with the value that switches turbo off.
    const FILES: [(&str, &str); 2] = [(cpus::NO_TURBO, "1"), (cpus::BOOST, "0")];
    let turbo = match cpus::turbo(context.root) {
        Ok(turbo) => turbo,
        Err(why) => return unknown(ID, "flags of the processor not readable", without("proc/cpuinfo", why)),
    };
    let Some((path, off, value)) =
        FILES.into_iter().find_map(|(path, off)| Some((path, off, context.root.read(path)?)))
    else {
        let path = FILES[1].0;
        return match context.root.try_read(path) {
            Err(Unreadable::Absent) if let Turbo::Flag(flag) = turbo => {
                let read = format!("/proc/cpuinfo = flags: ... {flag} ..., {}", without(path, Unreadable::Absent));
                unknown(ID, "the CPU has turbo frequencies, but the kernel has no switch for them", read)
            }
            Err(Unreadable::Absent) if !context.online().is_empty() => {
                not_applicable(ID, "no frequencies above the nominal one", without(path, Unreadable::Absent))
            }
            _ => unknown(ID, "turbo frequencies not readable", context.evidence(path)),
        };
    };
    let read = evidence(path, &value);
    if turbo == Turbo::Lacking {
        // Intel's driver has the switch on each processor.
        let read = format!("/proc/cpuinfo = flags without ida, cpb, {read}");
        return not_applicable(ID, "the CPU has no turbo frequencies", read);
    }
    if value != off
        && let Some(finding) = context.unread_isolation(ID)
    {
        return finding;
    }
    let judged = context.realtime_cpus();
    let boosted = match own_switches(context, &judged).filter(|_| path == cpus::BOOST && value == "1") {
        Some(Ok(switches)) => switches.into_iter().filter_map(|(cpu, is_on)| is_on.then_some(cpu)).collect(),
        Some(Err(read)) => return unknown(ID, "turbo frequencies not understood", read),
        None => judged.clone(),
    };
    let read = match boosted.first().or(judged.first()).map(cpus::boost_file) {
        Some(own) if path == cpus::BOOST && context.root.exists(&own) => format!("{read}, {}", context.evidence(&own)),
        _ => read,
    };
    let is_out_of_reach = match all_are_nominal(context, &judged) {
        Ok(is_nominal) => is_nominal,
        Err(read) if value != off => return unknown(ID, "frequency limits not readable", read),
        Err(_) => false,
    };
    match value.as_str() {
        value if value == off => ok(ID, "no turbo frequencies", read),
        _ if boosted.is_empty() && !judged.is_empty() => {
            ok(ID, format!("no turbo frequencies{}", context.on_realtime_cpus()), read)
        }
        "0" | "1" if is_out_of_reach => {
            let limit = format!("{CPU}/cpu{}/cpufreq/scaling_max_freq", judged.first().unwrap_or(0));
            let title = format!("no turbo frequencies{}: limited to the nominal one", context.on_realtime_cpus());
            ok(ID, title, format!("{read}, {}", context.evidence(&limit)))
        }
        "0" | "1" => {
            let has_own = path == cpus::BOOST && boosted.iter().all(|cpu| context.root.exists(&cpus::boost_file(cpu)));
            let is_for_some = has_own && boosted != *context.online();
            let (of_cpus, files) = match is_for_some {
                true => {
                    let paths: Vec<String> = boosted.iter().map(cpus::boost_file).collect();
                    (format!(" for {}", boosted.in_words()), super::files(paths.iter().map(String::as_str)))
                }
                false => (String::new(), format!("/{path}")),
            };
            warn(ID, format!("turbo frequencies are on{of_cpus}"), read)
                .because(
                    "The frequency then depends on heat and on the work of other cores: a thread takes longer as soon as they are busy.",
                    format!("echo {off} | sudo tee {files}"),
                )
                .until_boot()
        }
        _ => unknown(ID, "turbo frequencies not understood", read),
    }
}

/// The own switches of turbo frequencies of these CPUs: true if on; the evidence of one that is not understood. `None` unless
/// each CPU has one.
fn own_switches(context: &CheckContext, judged: &CpuList) -> Option<Result<Vec<(u32, bool)>, String>> {
    let files: Vec<(u32, String)> = judged.iter().map(|cpu| (cpu, cpus::boost_file(cpu))).collect();
    if files.is_empty() || !files.iter().all(|(_, path)| context.root.exists(path)) {
        return None;
    }
    let switch = |(cpu, path): &(u32, String)| match context.root.word(path).as_deref() {
        Ok("0") => Ok((*cpu, false)),
        Ok("1") => Ok((*cpu, true)),
        _ => Err(context.evidence(path)),
    };
    Some(files.iter().map(switch).collect())
}

fn energy_preference(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.energy_preference";
    if let Some(finding) = context.unread_isolation(ID) {
        return finding;
    }
    let judged = context.realtime_cpus();
    let file = |cpu: u32| format!("{CPU}/cpu{cpu}/cpufreq/energy_performance_preference");
    // Names of intel_pstate and amd-pstate, or a number.
    let is_known = |text: &str| {
        ["default", "performance", "balance_performance", "balance_power", "power"].contains(&text)
            || text.parse::<u8>().is_ok()
    };
    let read: Vec<(u32, String)> =
        judged.iter().filter_map(|cpu| Some((cpu, context.root.text_if(&file(cpu), is_known).ok()?))).collect();
    // `0` is the number of `performance`.
    let saves = |value: &str| !matches!(value, "performance" | "0");
    let Some((cpu, value)) = read.iter().find(|(_, value)| saves(value)).or(read.first()) else {
        let path = file(judged.first().unwrap_or(0));
        return match context.root.try_read(&path) {
            Err(Unreadable::Absent) if !context.online().is_empty() => {
                not_applicable(ID, "the processor takes no preference", without(&path, Unreadable::Absent))
            }
            _ => unknown(ID, "energy preference not readable", context.evidence(&path)),
        };
    };
    let seen = evidence(&file(*cpu), value);
    let unread = judged.iter().find(|cpu| !read.iter().any(|(known, _)| known == cpu));
    if let Some(unread) = unread.filter(|_| !saves(value)) {
        return unknown(ID, format!("energy preference of CPU {unread} not readable"), context.evidence(&file(unread)));
    }
    if !saves(value) {
        return ok(ID, format!("the processor prefers speed{}", context.on_realtime_cpus()), seen);
    }
    let offered = format!("{CPU}/cpu{cpu}/cpufreq/energy_performance_available_preferences");
    // The lowest number prefers speed most.
    let wanted = if offers(context, &offered) { "performance" } else { "0" };
    let remedy =
        format!("echo {wanted} | sudo tee {}", context.realtime_files("cpufreq/energy_performance_preference"));
    warn(ID, format!("the processor saves energy ({value})"), seen)
        .because("It raises its frequency late and lowers it early, whatever the governor is called.", remedy)
        .until_boot()
}

/// The kernel of x86 counts how often heat slowed a core or the whole package; a cooling device of ARM has a step above
/// 0.
fn throttled(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.throttled";
    const THERMAL: &str = "sys/class/thermal";
    if context.is_guest() {
        return unknown(ID, "the heat of the host is not visible from this guest", hypervisor_evidence(context));
    }
    let cooled = cooling(context.root);
    if let Some((device, step)) = cooled.iter().next() {
        let read = format!("/{THERMAL}/*/cur_state = {step} ({device})");
        return fail(ID, format!("a frequency is limited because of heat now ({device})"), read).because(HEAT, COOL);
    }
    let files = context.online().iter().flat_map(|cpu| {
        ["core", "package"].map(|part| format!("{CPU}/cpu{cpu}/thermal_throttle/{part}_throttle_count"))
    });
    let counts: Vec<(String, u64)> =
        files.filter_map(|path| Some((path.clone(), context.root.number(&path)?))).collect();
    if let Some((path, count)) = counts.iter().max_by_key(|(_, count)| *count) {
        let read = evidence(path, &count.to_string());
        return match count {
            0 => ok(ID, "no CPU was slowed down because of heat since boot", read),
            _ => warn(ID, format!("CPUs were slowed down because of heat {count} times since boot"), read)
                .because(HEAT, COOL),
        };
    }
    let kind = |name: &String| context.root.word(&format!("{THERMAL}/{name}/type")).ok();
    let devices = context.root.list(THERMAL).into_iter();
    match devices.filter_map(|name| Some((kind(&name)?, name))).find(|(kind, _)| cools_cpu(kind)) {
        Some((kind, name)) => {
            let read = evidence(&format!("{THERMAL}/{name}/type"), &kind);
            ok(ID, "no frequency is limited because of heat now", read)
        }
        None => unknown(
            ID,
            "the kernel does not see if heat slows the CPUs",
            format!("/{THERMAL}: no cooling device of a CPU"),
        ),
    }
}

const HEAT: &str = "A CPU that is too hot runs at a lower frequency, for milliseconds to minutes.";
const COOL: &str = "clean or improve the cooling, or limit the frequency to one that it can keep";

fn resctrl(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.resctrl";
    const MOUNT: &str = "sys/fs/resctrl";
    // Each line is `L3:0=ff;1=ff`.
    let has_schemata = |folder: &str| {
        let is_schemata = |text: &str| text.lines().all(|line| line.contains(':') && line.contains('='));
        context.root.parsed(&format!("{folder}/schemata"), |text| is_schemata(text).then_some(()))
            != Err(Unreadable::Absent)
    };
    if has_schemata(MOUNT) {
        let folders = context.root.list(MOUNT);
        let is_group = |name: &&String| has_schemata(&format!("{MOUNT}/{name}"));
        let title = match folders.iter().filter(is_group).count() {
            0 => "the CPU can reserve cache; not in use".to_owned(),
            others => format!("cache is divided into {} groups", others + 1),
        };
        return ok(ID, title, context.evidence(&format!("{MOUNT}/schemata")));
    }
    let Ok(cpuinfo) = cpus::cpuinfo(context.root) else {
        return unknown(ID, "features of the CPU not readable", context.evidence("proc/cpuinfo"));
    };
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let found: Vec<&str> =
        flags.split_whitespace().filter(|flag| ["cat_l3", "cat_l2", "cdp_l3", "mba"].contains(flag)).collect();
    if found.is_empty() {
        return not_applicable(
            ID,
            "the CPU cannot reserve cache or memory bandwidth",
            "/proc/cpuinfo = flags without cat_l3, cat_l2, mba",
        );
    }
    let read = format!("/proc/cpuinfo = flags: ... {} ...", found.join(" "));
    if !context.root.exists(MOUNT) {
        return unknown(
            ID,
            "the CPU can reserve cache, the kernel cannot (CONFIG_X86_CPU_RESCTRL)",
            format!("{read}, /{MOUNT} does not exist"),
        );
    }
    ok(
        ID,
        "the CPU can reserve cache; not in use (resctrl not mounted)",
        format!("{read}, /{MOUNT}/schemata does not exist"),
    )
}
