//! Reception of frames: interrupts, their CPUs, and the threads that serve them.

use record::Finding;

use super::{Check, CheckContext, judged, micros};
use crate::{
    findings::{Explain, fail, not_applicable, ok, unknown, unless_unread, warn},
    nic::{Hardware, Interrupt, Thread, interrupts::may_move},
    root::Unread,
};

/// The priority that the kernel gives to every interrupt thread.
const USUAL_PRIORITY: u32 = 50;
/// Above ordinary real-time work, below a measuring thread.
const GOOD_PRIORITY: u32 = 85;

pub(super) const CHECKS: &[Check] = &[interrupts, affinity, interrupt_threads, napi_threads, napi_defer];

fn interrupts(context: &CheckContext) -> Finding {
    const ID: &str = "nic.irq";
    let finding = match &context.nic.interrupts {
        None if context.nic.hardware == Some(Hardware::Software) => {
            not_applicable(ID, "no interrupts: this is a software interface", "/proc/interrupts: none of it")
        }
        None => unknown(ID, "its interrupts are not known", "/proc/interrupts: none of its name"),
        Some(all) if all.is_empty() => unknown(ID, "no interrupt has occurred yet", "/proc/interrupts: all 0"),
        Some(all) => ok(ID, format!("interrupts {}", numbers(all)), format!("/proc/interrupts: {}", names(all))),
    };
    unless_unread(finding, &context.nic.unread.interrupts)
}

fn affinity(context: &CheckContext) -> Finding {
    const ID: &str = "nic.irq.affinity";
    with_interrupts(context, ID, &context.nic.unread.affinity, |all| {
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
            "An interrupt that moves to the CPU of a real-time thread interrupts it, and has cold caches there.",
            all.iter().map(pin).collect::<Vec<_>>().join("\n"),
        )
    })
}

fn interrupt_threads(context: &CheckContext) -> Finding {
    const ID: &str = "nic.irq.threads";
    with_interrupts(context, ID, &context.nic.unread.threads, |all| {
        let threads: Vec<&Thread> = all.iter().filter_map(|irq| irq.thread.as_ref()).collect();
        if threads.is_empty() && !context.nic.sees_all_tasks {
            let title = "not all threads of this machine are visible";
            return unknown(ID, title, "/proc/2/comm is not kthreadd");
        }
        if threads.is_empty() {
            return not_applicable(
                ID,
                "interrupts are handled without threads",
                "/proc/*/comm: no irq/N thread of this interface",
            );
        }
        judge(ID, "interrupt", &threads)
    })
}

fn napi_threads(context: &CheckContext) -> Finding {
    const ID: &str = "nic.napi.threads";
    const COMMAND: &str = "netdev NAPI_GET";
    judged(|| {
        let napis = context.known(ID, "polling (NAPI)", &context.nic.napis, COMMAND)?;
        let ids: Vec<u32> = napis.iter().filter_map(|napi| napi.thread).collect();
        if ids.is_empty() {
            let title = "frames are received in softirqs, not in separate threads";
            return Ok(not_applicable(ID, title, context.evidence(COMMAND, "no pid")));
        }
        let threads = &context.nic.napi_threads;
        if threads.len() < ids.len() {
            let read = ids.iter().map(|id| format!("/proc/{id}/stat")).collect::<Vec<_>>().join(", ");
            return Ok(unknown(ID, "policy of its polling threads not readable", format!("{read} cannot be read")));
        }
        Ok(judge(ID, "polling", &threads.iter().collect::<Vec<_>>()))
    })
}

/// Judges the policies of the threads that receive frames.
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
        return fail(id, title, read)
            .because("Any busy program delays such a thread, and every frame with it, by milliseconds.", remedy());
    }
    if threads.iter().any(|thread| thread.policy != "deadline" && thread.priority <= USUAL_PRIORITY) {
        return warn(id, title, read).because(
            "The threads of all other interrupts of this machine, e.g. of disks, have the same priority and may run first.",
            remedy(),
        );
    }
    ok(id, title, read)
}

fn napi_defer(context: &CheckContext) -> Finding {
    const ID: &str = "nic.napi.defer";
    const COMMAND: &str = "netdev NAPI_GET";
    judged(|| {
        let napis = context.known(ID, "polling (NAPI)", &context.nic.napis, COMMAND)?;
        let longest = napis.iter().map(|napi| Some((napi.gro_flush_timeout_ns?, napi.defer_hard_irqs?)));
        let longest = longest.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        Ok(match longest {
            None if napis.is_empty() => {
                not_applicable(ID, "nothing polls this interface", context.evidence(COMMAND, "none"))
            }
            None => unknown(ID, "delay of interrupts not reported", context.evidence(COMMAND, "no gro-flush-timeout")),
            Some((timeout_ns, defer)) => {
                let read =
                    context.evidence(COMMAND, &format!("gro-flush-timeout = {timeout_ns}, defer-hard-irqs = {defer}"));
                let title = match timeout_ns {
                    0 => "interrupts are not deferred".to_owned(),
                    _ => format!("interrupts are deferred for up to {}", micros(timeout_ns)),
                };
                if timeout_ns <= context.tenth_ns() {
                    ok(ID, title, read)
                } else {
                    warn(ID, title, read).because(
                        "Unless a program busy-polls, frames wait for that long.",
                        format!(
                            "echo 0 | sudo tee /sys/class/net/{0}/gro_flush_timeout /sys/class/net/{0}/napi_defer_hard_irqs",
                            context.nic.interface
                        ),
                    )
                }
            }
        })
    })
}

/// Judges the interrupts. Unknown instead of content if a file in `unread` decides the finding.
fn with_interrupts(
    context: &CheckContext,
    id: &str,
    unread: &[Unread],
    judge: impl FnOnce(&[Interrupt]) -> Finding,
) -> Finding {
    match &context.nic.interrupts {
        Some(all) if !all.is_empty() => {
            unless_unread(unless_unread(judge(all), unread), &context.nic.unread.interrupts)
        }
        _ => Finding { id: id.to_owned(), ..interrupts(context) },
    }
}

fn numbers(all: &[Interrupt]) -> String {
    all.iter().map(|irq| irq.number.to_string()).collect::<Vec<_>>().join(", ")
}

fn names(all: &[Interrupt]) -> String {
    all.iter().map(|irq| format!("{} {}", irq.number, irq.name)).collect::<Vec<_>>().join(", ")
}
