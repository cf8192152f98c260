//! Who brings frames in: interrupts, the CPUs that they go to, and the threads that serve them.

use record::Finding;

use super::{Check, judged, micros};
use crate::{
    findings::{Explain, fail, not_applicable, ok, unknown, warn},
    nic::{Hardware, Interrupt, Thread, interrupts::may_move},
};

/// What the kernel gives every interrupt thread.
const USUAL_PRIORITY: u32 = 50;
/// Above ordinary real-time work, below a measuring thread.
const GOOD_PRIORITY: u32 = 85;

pub(super) fn interrupts(check: &Check) -> Finding {
    const ID: &str = "nic.irq";
    match &check.nic.interrupts {
        None if check.nic.hardware == Some(Hardware::Software) => {
            not_applicable(ID, "no interrupts: software makes this interface", "/proc/interrupts: none of it")
        }
        None => unknown(ID, "which interrupts are its own is not known", "/proc/interrupts: none of its name"),
        Some(all) if all.is_empty() => unknown(ID, "no interrupt has occurred yet", "/proc/interrupts: all 0"),
        Some(all) => ok(ID, format!("interrupts {}", numbers(all)), format!("/proc/interrupts: {}", names(all))),
    }
}

pub(super) fn affinity(check: &Check) -> Finding {
    const ID: &str = "nic.irq.affinity";
    with_interrupts(check, ID, |all| {
        let Some(allowed) = all.iter().map(|irq| irq.allowed.as_deref()).collect::<Option<Vec<_>>>() else {
            return unknown(ID, "CPUs of its interrupts not readable", "/proc/irq/*/smp_affinity_list cannot be read");
        };
        let goes_to = |irq: &Interrupt| irq.effective.clone().unwrap_or_else(|| "?".to_owned());
        let where_to: Vec<String> = all.iter().map(|irq| format!("{} to CPU {}", irq.number, goes_to(irq))).collect();
        let read =
            all.iter().zip(&allowed).map(|(irq, cpus)| format!("/proc/irq/{}/smp_affinity_list = {cpus}", irq.number));
        let read = read.collect::<Vec<_>>().join(", ");
        let title = format!("interrupts {}", where_to.join(", "));
        if !allowed.iter().any(|cpus| may_move(cpus)) {
            return ok(ID, title, read);
        }
        let pin = |irq: &Interrupt| {
            let cpu = irq.effective.as_deref().filter(|cpus| !may_move(cpus)).unwrap_or("0").to_owned();
            format!("echo {cpu} | sudo tee /proc/irq/{}/smp_affinity_list", irq.number)
        };
        warn(ID, format!("{title}, and they may move"), read).because(
            "An interrupt that moves to the CPU of a real-time thread stops it, and finds cold caches there.",
            all.iter().map(pin).collect::<Vec<_>>().join("\n"),
        )
    })
}

pub(super) fn interrupt_threads(check: &Check) -> Finding {
    const ID: &str = "nic.irq.threads";
    with_interrupts(check, ID, |all| {
        let threads: Vec<&Thread> = all.iter().filter_map(|irq| irq.thread.as_ref()).collect();
        if threads.is_empty() && !check.nic.sees_all_tasks {
            let title = "not all threads of this machine are visible";
            return unknown(ID, title, "/proc/2/comm is not kthreadd");
        }
        if threads.is_empty() {
            return not_applicable(ID, "interrupts are served without threads", "/proc/*/comm: no irq/N of its own");
        }
        judge(ID, "interrupt", &threads)
    })
}

pub(super) fn napi_threads(check: &Check) -> Finding {
    const ID: &str = "nic.napi.threads";
    const COMMAND: &str = "netdev NAPI_GET";
    judged(|| {
        let napis = check.known(ID, "polling (NAPI)", &check.nic.napis, COMMAND)?;
        let ids: Vec<u32> = napis.iter().filter_map(|napi| napi.thread).collect();
        if ids.is_empty() {
            let title = "frames are brought in by softirqs, not by threads of their own";
            return Ok(not_applicable(ID, title, check.evidence(COMMAND, "no pid")));
        }
        let threads = &check.nic.napi_threads;
        if threads.len() < ids.len() {
            let read = ids.iter().map(|id| format!("/proc/{id}/stat")).collect::<Vec<_>>().join(", ");
            return Ok(unknown(
                ID,
                "how its polling threads are scheduled is not readable",
                format!("{read} cannot be read"),
            ));
        }
        Ok(judge(ID, "polling", &threads.iter().collect::<Vec<_>>()))
    })
}

/// Judges the threads that bring frames in.
fn judge(id: &str, what: &str, threads: &[&Thread]) -> Finding {
    let read: Vec<String> = threads
        .iter()
        .map(|thread| format!("/proc/{}/stat = {} {}", thread.id, thread.name, thread.scheduled()))
        .collect();
    let mut kinds: Vec<String> = threads.iter().map(|thread| thread.scheduled()).collect();
    kinds.sort();
    kinds.dedup();
    let (title, read) = (format!("{what} threads run as {}", kinds.join(" and ")), read.join(", "));
    let remedy = || {
        let raise = |thread: &&Thread| format!("sudo chrt -f -p {GOOD_PRIORITY} {}", thread.id);
        threads.iter().map(raise).collect::<Vec<_>>().join("\n")
    };
    if threads.iter().any(|thread| !thread.is_realtime()) {
        return fail(id, title, read).because(
            "Any busy program keeps such a thread, and with it every frame, waiting for milliseconds.",
            remedy(),
        );
    }
    if threads.iter().any(|thread| thread.policy != "deadline" && thread.priority <= USUAL_PRIORITY) {
        return warn(id, title, read).because(
            "All other interrupts of this machine, disks among them, have threads of that priority, and come first as often as not.",
            remedy(),
        );
    }
    ok(id, title, read)
}

pub(super) fn napi_defer(check: &Check) -> Finding {
    const ID: &str = "nic.napi.defer";
    const COMMAND: &str = "netdev NAPI_GET";
    judged(|| {
        let napis = check.known(ID, "polling (NAPI)", &check.nic.napis, COMMAND)?;
        let longest = napis.iter().map(|napi| Some((napi.gro_flush_timeout_ns?, napi.defer_hard_irqs?)));
        let longest = longest.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        Ok(match longest {
            None if napis.is_empty() => {
                not_applicable(ID, "nothing polls this interface", check.evidence(COMMAND, "none"))
            }
            None => unknown(
                ID,
                "how long interrupts are held back is not told",
                check.evidence(COMMAND, "no gro-flush-timeout"),
            ),
            Some((timeout_ns, defer)) => {
                let read =
                    check.evidence(COMMAND, &format!("gro-flush-timeout = {timeout_ns}, defer-hard-irqs = {defer}"));
                let title = match timeout_ns {
                    0 => "interrupts are not held back".to_owned(),
                    _ => format!("interrupts are held back for up to {}", micros(timeout_ns)),
                };
                if timeout_ns <= check.tenth_ns() {
                    ok(ID, title, read)
                } else {
                    warn(ID, title, read).because(
                        "Without a program that polls busily, frames wait for that long.",
                        format!(
                            "echo 0 | sudo tee /sys/class/net/{0}/gro_flush_timeout /sys/class/net/{0}/napi_defer_hard_irqs",
                            check.nic.interface
                        ),
                    )
                }
            }
        })
    })
}

fn with_interrupts(check: &Check, id: &str, judge: impl FnOnce(&[Interrupt]) -> Finding) -> Finding {
    match &check.nic.interrupts {
        Some(all) if !all.is_empty() => judge(all),
        _ => Finding { id: id.to_owned(), ..interrupts(check) },
    }
}

fn numbers(all: &[Interrupt]) -> String {
    all.iter().map(|irq| irq.number.to_string()).collect::<Vec<_>>().join(", ")
}

fn names(all: &[Interrupt]) -> String {
    all.iter().map(|irq| format!("{} {}", irq.number, irq.name)).collect::<Vec<_>>().join(", ")
}
