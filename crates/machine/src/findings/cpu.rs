//! The CPUs: frequency, idle states, sharing.

use record::Finding;

use super::{Check, CheckContext, Explain, evidence, not_applicable, ok, unknown, warn, without};
use crate::facts::idle_states_of;
use crate::kernel::isolation_arguments;
use crate::{CpuList, Unreadable};

const CPU: &str = "sys/devices/system/cpu";

/// Exit latency above which an idle state is worth a warning, us.
const IDLE_EXIT_LIMIT_US: u64 = 10;

pub(super) const CHECKS: &[Check] = &[governor, idle_states, latency_request, isolated, smt, mitigations];

fn governor(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.governor";
    let file = |cpu: u32, name: &str| format!("{CPU}/cpu{cpu}/cpufreq/scaling_{name}");
    if context.online.is_empty() {
        return unknown(ID, "frequency governor not readable", context.evidence(&format!("{CPU}/online")));
    }
    let Some(governor) = &context.machine.governor else {
        let path = file(0, "governor");
        return match context.root.try_read(&path) {
            Err(Unreadable::Absent) => {
                not_applicable(ID, "this kernel does not set the CPU frequency", without(&path, Unreadable::Absent))
            }
            _ => unknown(ID, "frequency governor not readable", context.evidence(&path)),
        };
    };
    let number = |cpu, name| context.root.number::<u64>(&file(cpu, name));
    let scaled: Vec<u32> = context
        .online
        .iter()
        .filter(|&cpu| context.root.read(&file(cpu, "governor")).is_some_and(|name| name != "performance"))
        .filter(|&cpu| number(cpu, "min_freq").is_none() || number(cpu, "min_freq") != number(cpu, "max_freq"))
        .collect();
    let Some(&first) = scaled.first() else {
        let cpu = context.online.first().unwrap_or(0);
        let read = |name| context.evidence(&file(cpu, name));
        return match governor.as_str() {
            "performance" => ok(ID, "frequency governor performance", read("governor")),
            _ => {
                let title = format!("frequency fixed (governor {governor})");
                ok(ID, title, format!("{}, {}", read("min_freq"), read("max_freq")))
            }
        };
    };
    warn(
        ID,
        format!("frequency changes with the load (governor {governor})"),
        context.evidence(&file(first, "governor")),
    )
    .because(
        "After a pause the CPU runs slowly for some time, and each change of the frequency stops it briefly.",
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
}

fn idle_states(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.idle_states";
    let deepest = context
        .online
        .iter()
        .flat_map(|cpu| {
            let states = idle_states_of(context.root, cpu).into_iter().enumerate();
            states.filter(|(_, state)| state.enabled).map(move |(number, state)| (state, cpu, number))
        })
        // Keeps the first of equals, so that the evidence names the lowest CPU.
        .reduce(|deepest, next| if next.0.exit_us > deepest.0.exit_us { next } else { deepest });
    if context.is_guest() {
        let own = context.machine.idle_states.as_deref().unwrap_or("no states");
        let title = format!("idle states of the host not visible from this guest (the guest has: {own})");
        return unknown(ID, title, context.evidence("sys/devices/system/cpu/cpuidle/current_driver"));
    }
    let Some((state, cpu, number)) = deepest else {
        let path = format!("{CPU}/cpu0/cpuidle/state0/latency");
        return match context.root.try_read(&path) {
            Ok(_) => {
                ok(ID, "all idle states are disabled", context.evidence(&format!("{CPU}/cpu0/cpuidle/state0/disable")))
            }
            Err(Unreadable::Absent) if !context.online.is_empty() => {
                not_applicable(ID, "the kernel has no idle states for this CPU", without(&path, Unreadable::Absent))
            }
            Err(why) => unknown(ID, "idle states not readable", without(&path, why)),
        };
    };
    let read = evidence(&format!("{CPU}/cpu{cpu}/cpuidle/state{number}/latency"), &state.exit_us.to_string());
    let title = format!("deepest idle state {} takes {} us to leave", state.name, state.exit_us);
    if state.exit_us <= IDLE_EXIT_LIMIT_US {
        return ok(ID, title, read);
    }
    warn(ID, title, read).because(
        "A sleeping CPU must wake before it can handle its timer, which adds to the latency.",
        "punctual measure timer --hold-cpu-awake, or until the next boot: \
         echo 1 | sudo tee /sys/devices/system/cpu/cpu*/cpuidle/state[1-9]/disable",
    )
}

/// A latency limit for single CPUs, perhaps left by a tool that was killed.
fn latency_request(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.latency_request";
    let file = |cpu: u32| format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us");
    let read: Vec<(u32, String)> =
        context.online.iter().filter_map(|cpu| Some((cpu, context.root.read(&file(cpu))?))).collect();
    let Some((first, value)) = read.iter().find(|(_, value)| value != "0").or(read.first()) else {
        return match context.root.try_read(&file(0)) {
            Err(Unreadable::Absent) if !context.online.is_empty() => {
                not_applicable(ID, "this kernel takes no latency limits for single CPUs", context.evidence(&file(0)))
            }
            _ => unknown(ID, "latency limits of single CPUs not readable", context.evidence(&file(0))),
        };
    };
    let read_first = evidence(&file(*first), value);
    if value == "0" {
        return ok(ID, "no latency limit for any CPU", read_first);
    }
    let held: CpuList = read.iter().filter(|(_, value)| value != "0").map(|(cpu, _)| *cpu).collect();
    let files = held.iter().map(|cpu| format!("/{}", file(cpu))).collect::<Vec<_>>().join(" ");
    warn(ID, format!("{} kept out of idle states by a latency limit", held.in_words()), read_first).because(
        "Results are better than without this limit, which disappears at the next boot.",
        format!("echo 0 | sudo tee {files}"),
    )
}

fn isolated(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.isolated";
    let path = format!("{CPU}/isolated");
    match context.machine.cpus_isolated.as_deref() {
        None => unknown(ID, "isolated CPUs not readable", context.evidence(&path)),
        Some("") if context.online.len() == 1 => {
            not_applicable(ID, "one CPU alone cannot be isolated", context.evidence(&path))
        }
        Some("") => {
            let cpu = context.last_cpu();
            warn(ID, "no CPU is isolated", context.evidence(&path)).because(
                "The scheduler may run any other thread on the CPU of a real-time thread, which adds kernel work and cold caches.",
                format!("kernel arguments: `{}`", isolation_arguments(cpu)),
            )
        }
        Some(cpus) => ok(ID, format!("isolated CPUs: {cpus}"), evidence(&path, cpus)),
    }
}

fn smt(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.smt";
    let active = format!("{CPU}/smt/active");
    match context.root.try_read(&active) {
        Ok(value) if value == "0" && context.is_guest() => {
            unknown(ID, "sharing of the host's cores not visible from this guest", evidence(&active, &value))
        }
        Ok(value) if value == "0" => ok(ID, "no two CPUs share a core", evidence(&active, &value)),
        Ok(value) if value == "1" => warn(ID, "two CPUs share each core (SMT)", evidence(&active, &value)).because(
            "Threads on the sibling take execution units and cache from the measured CPU at any time.",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        ),
        Ok(value) => unknown(ID, "state of SMT not understood", evidence(&active, &value)),
        // Kernels for CPUs without SMT lack the file, and so do kernels before 4.19: the topology decides.
        Err(why) => {
            let siblings = format!("{CPU}/cpu0/topology/thread_siblings_list");
            match context.root.read(&siblings).and_then(|list| list.parse::<CpuList>().ok()) {
                Some(list) if list.len() == 1 => {
                    not_applicable(ID, "these CPUs have no SMT", context.evidence(&siblings))
                }
                Some(_) => warn(ID, "CPUs share a core (SMT)", context.evidence(&siblings)).because(
                    "Threads on the sibling take execution units and cache from the measured CPU at any time.",
                    "kernel argument: `nosmt`",
                ),
                None => unknown(ID, "state of SMT not readable", without(&active, why)),
            }
        }
    }
}

/// Parts of the states of mitigations that act on each kernel entry or thread switch; the others cost almost nothing.
const COSTLY: [&str; 5] = ["PTI", "Clear CPU buffers", "IBPB: always-on", "untrained return thunk", "Safe RET"];

fn mitigations(context: &CheckContext) -> Finding {
    const ID: &str = "cpu.mitigations";
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    if !context.root.exists(FOLDER) {
        return unknown(ID, "mitigations of CPU vulnerabilities not readable", context.evidence(FOLDER));
    }
    // Includes mitigations that are in force but insufficient: `Vulnerable: Clear CPU buffers attempted, no microcode`.
    let costly = |name: String| {
        let state = context.root.read(&format!("{FOLDER}/{name}"))?;
        COSTLY.iter().any(|word| state.contains(word)).then_some((name, state))
    };
    let found: Vec<(String, String)> = context.root.list(FOLDER).into_iter().filter_map(costly).collect();
    let Some((name, state)) = found.first() else {
        let count = context.machine.mitigations.len();
        return ok(ID, "no costly mitigation of CPU vulnerabilities", format!("/{FOLDER}: {count} in force"));
    };
    let names = found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let read = evidence(&format!("{FOLDER}/{name}"), state);
    warn(ID, format!("mitigations that cost time on each kernel entry: {names}"), read).because(
        "Each system call, interrupt or thread switch takes up to a few microseconds longer.",
        "kernel argument, only where all code on the machine is trusted: `mitigations=off`",
    )
}
