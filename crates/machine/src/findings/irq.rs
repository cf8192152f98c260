//! Interrupts of devices: their CPUs, their threads, their number.

use std::collections::BTreeMap;

use record::Finding;

use super::{
    Check, CheckContext, Explain, evidence, files, isolation::none_isolated, not_applicable, ok, unknown, warn, without,
};
use crate::{
    CpuList, Unreadable, boot_arguments,
    init::Init,
    interrupts::{self, Counted, DeviceInterrupt, InterruptWatch, Mover, STORM_PER_SECOND},
    irqbalance::{self, Environment},
    shield,
    tasks::{Realtime, Scheduled},
    virt,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "irq.balance",
        subject: "a running irqbalance, which moves interrupts to quiet CPUs",
        source: "irqbalance(1)",
        run: irq_balance,
    },
    Check {
        id: "irq.affinity",
        subject: "interrupts of devices on isolated CPUs",
        source: "Linux, Documentation/core-api/irq/irq-affinity.rst",
        run: affinity,
    },
    Check {
        id: "irq.default_affinity",
        subject: "interrupts of future devices on isolated CPUs",
        source: "Linux, Documentation/core-api/irq/irq-affinity.rst",
        run: default_affinity,
    },
    Check {
        id: "irq.storm",
        subject: "a device with very many interrupts, now or on average since boot",
        source: "punctual; a Raspberry Pi had 5000 a second in place of 300 because of a faulty driver",
        run: storm,
    },
    Check {
        id: "irq.threads",
        subject: "real-time threads of programs that wait for interrupt threads (priority 50)",
        source: "Linux, Documentation/core-api/real-time/theory.rst; kernel/irq/manage.c, sched_set_fifo",
        run: threads,
    },
];

fn irq_balance(context: &CheckContext) -> Finding {
    const ID: &str = "irq.balance";
    match irqbalance::process(context.root) {
        Some(pid) => {
            let environment = Environment::read(context.root);
            let mut read = evidence(&format!("proc/{pid}/comm"), "irqbalance");
            if let Some((path, text)) = &environment.decider {
                read += &format!(", {}", evidence(path, text));
            }
            if let Some(banned) = left_alone(context, &environment) {
                return ok(ID, format!("irqbalance runs, and leaves {} alone", banned.in_words()), read);
            }
            warn(ID, "irqbalance runs", read)
                .because(
                    "It moves interrupts between CPUs during a run, also to the CPU of a real-time thread.",
                    Init::of(context.root).disable(irqbalance::SERVICE),
                )
                .permanent()
        }
        // In a container, or if /proc hides the processes of others, a missing process proves nothing.
        None if context.in_container() && virt::initial_namespace(context.root, "pid") != Some(true) => {
            unknown(ID, "the host's processes are not visible from this container", context.evidence("proc/1/comm"))
        }
        None if context.root.read("proc/1/comm").is_some_and(|name| !name.is_empty()) => {
            ok(ID, "irqbalance does not run", "/proc/*/comm: no irqbalance")
        }
        None => unknown(ID, "the processes of other users are not visible", context.evidence("proc/1/comm")),
    }
}

/// The priority of most interrupt threads: those above were raised on purpose. `None` if none has a real-time priority.
pub(super) fn usual_priority(threads: &[Scheduled]) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    let handlers = threads.iter().filter(|thread| thread.is_kernels && thread.name.starts_with("irq/"));
    let priorities = handlers.filter_map(|thread| thread.realtime.and_then(Realtime::priority));
    priorities.for_each(|priority| *counts.entry(priority).or_default() += 1);
    counts.into_iter().max_by_key(|&(priority, count)| (count, priority)).map(|(priority, _)| priority)
}

/// The CPUs that irqbalance leaves alone: the isolated ones, or the ones of its settings if no CPU is isolated. `None` if it
/// uses all CPUs, or an isolated one.
fn left_alone(context: &CheckContext, environment: &Environment) -> Option<CpuList> {
    let banned = environment.banned(context.root)?.intersection(context.online());
    let wanted = if context.isolated().is_empty() { &banned } else { context.isolated() };
    (!wanted.is_empty() && wanted.intersection(context.online()).difference(&banned).is_empty()).then(|| wanted.clone())
}

fn interrupts_unread(context: &CheckContext, id: &str) -> Finding {
    unknown(id, "interrupts not readable", context.evidence("proc/interrupts"))
}

fn affinity(context: &CheckContext) -> Finding {
    const ID: &str = "irq.affinity";
    let isolated = context.isolated();
    if let Some(finding) = none_isolated(context, ID) {
        return finding;
    }
    let Some(devices) = context.interrupts() else { return interrupts_unread(context, ID) };
    let cpus = |irq: &DeviceInterrupt| -> Option<(String, CpuList)> {
        match interrupts::effective(context.root, irq.number) {
            Ok(cpus) if !cpus.is_empty() => Some((interrupts::effective_file(irq.number), cpus)),
            // The allowed ones.
            Ok(_) | Err(Unreadable::Absent) => {
                let path = interrupts::affinity_file(irq.number);
                let cpus: CpuList = context.root.parsed(&path, |text| text.parse().ok()).ok()?;
                (!cpus.is_empty()).then_some((path, cpus))
            }
            Err(_) => None,
        }
    };
    let is_movable = |irq: &&DeviceInterrupt| !irq.handlers.is_empty() && !interrupts::is_per_cpu(&irq.handlers);
    let movable: Vec<&DeviceInterrupt> = devices.iter().filter(is_movable).collect();
    let placed: Vec<_> = movable.iter().filter_map(|irq| Some((*irq, cpus(irq)?))).collect();
    let unread = movable.iter().find(|irq| !placed.iter().any(|(placed, _)| placed.number == irq.number));
    let Some((_, (first_path, first_cpus))) = placed.first() else {
        return unknown(ID, "CPUs of the interrupts not readable", "/proc/irq/*/smp_affinity_list: none readable");
    };
    let (mut arriving, mut own_queues) = (Vec::new(), false);
    for (irq, (path, cpus)) in placed.iter().filter(|(_, (_, cpus))| !cpus.intersection(isolated).is_empty()) {
        match interrupts::mover(context.root, irq.number, &irq.handlers) {
            Mover::Queue(queue) if queue.difference(isolated).is_empty() => own_queues = true,
            // It arrives through that of its controller, which has CPUs.
            Mover::Nobody if !path.ends_with("effective_affinity_list") => {}
            mover => arriving.push((*irq, path, cpus, mover)),
        }
    }
    let Some((irq, path, cpus, _)) = arriving.first() else {
        if let Some(irq) = unread {
            let title = format!("CPUs of interrupt {} ({}) not readable", irq.number, irq.handlers);
            return unknown(ID, title, context.evidence(&interrupts::affinity_file(irq.number)));
        }
        let only = if own_queues { ", except for disk I/O that they start" } else { "" };
        let title = format!("no interrupt of a device arrives at {}{only}", isolated.in_words());
        return ok(
            ID,
            title,
            format!("{} of {} interrupts", evidence(first_path, &first_cpus.to_string()), placed.len()),
        );
    };
    let others = match arriving.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let title = format!("interrupt {} ({}){others} can arrive at {}", irq.number, irq.handlers, isolated.in_words());
    let movers = arriving.iter().map(|(irq, _, _, mover)| (irq.number, mover)).collect::<Vec<_>>();
    with_remedies(context, warn(ID, title, evidence(path, &cpus.to_string())), &movers)
}

/// The finding with the remedies of interrupts that arrive at isolated CPUs: by their number, and who can move them.
fn with_remedies(context: &CheckContext, found: Finding, arriving: &[(u32, &Mover)]) -> Finding {
    let numbers = |is_meant: fn(&Mover) -> bool| -> Vec<u32> {
        arriving.iter().filter(|(_, mover)| is_meant(mover)).map(|(number, _)| *number).collect()
    };
    let by_user = numbers(|mover| *mover == Mover::User);
    let queues = numbers(|mover| matches!(mover, Mover::Queue(_)));
    let fixed = numbers(|mover| *mover == Mover::Nobody);
    let mut remedies = Vec::new();
    if !by_user.is_empty() {
        let paths: Vec<String> = by_user.iter().map(|&number| interrupts::affinity_file(number)).collect();
        let files = files(paths.iter().map(String::as_str));
        remedies.push(format!("echo {} | sudo tee {files}", context.housekeeping()));
    }
    if let Some(&first) = queues.first() {
        remedies.push(queue_remedy(context, first));
    }
    if let Some(first) = fixed.first() {
        let text = "use another CPU for real-time work, because the kernel cannot move interrupt";
        remedies.push(format!("{text} {first}: see ls -l /{}", interrupts::affinity_file(*first)));
    }
    let why = match queues.is_empty() {
        true => "An interrupt stops the thread on its CPU, and its softirq and thread run there as well.",
        false => {
            "An interrupt stops the thread on its CPU, and its softirq and thread run there as well. The driver of a disk or its controller manages the interrupts of its queues: the kernel refuses to move them."
        }
    };
    let found = found.because(why, remedies.join("\n"));
    match (by_user.is_empty(), queues.is_empty()) {
        (false, _) => found.until_boot(),
        (true, false) => found.permanent(),
        (true, true) => found,
    }
}

/// The remedy for the queue of a disk that serves isolated CPUs and others.
fn queue_remedy(context: &CheckContext, number: u32) -> String {
    let cmdline = context.machine.cmdline.as_deref().unwrap_or_default();
    let arguments = context.isolation().arguments(context.isolated());
    let argument = arguments.split(' ').next().filter(|argument| boot_arguments::keeps_queues_away(argument));
    match argument {
        _ if boot_arguments::keeps_queues_away(cmdline) => {
            let list = interrupts::affinity_file(number);
            format!("isolcpus=managed_irq needs another CPU of the queue that is online: see cat /{list}")
        }
        Some(argument) => format!("kernel argument: `{argument}`"),
        None => "use a kernel from Linux 5.6 on, whose argument isolcpus=managed_irq keeps the queues of disks away"
            .to_owned(),
    }
}

fn default_affinity(context: &CheckContext) -> Finding {
    const ID: &str = "irq.default_affinity";
    const PATH: &str = "proc/irq/default_smp_affinity";
    if let Some(finding) = none_isolated(context, ID) {
        return finding;
    }
    let (cpus, mask) = match context.root.parsed(PATH, CpuList::from_kernel_mask) {
        Ok(read) => read,
        Err(Unreadable::Absent) if context.root.exists("proc/irq") => {
            return not_applicable(ID, "interrupts have no default CPUs", without(PATH, Unreadable::Absent));
        }
        Err(why) => return unknown(ID, "default CPUs of interrupts not readable", without(PATH, why)),
    };
    let read = evidence(PATH, &mask);
    let shared = cpus.intersection(context.isolated());
    if shared.is_empty() {
        return ok(ID, "interrupts of new devices stay off isolated CPUs", read);
    }
    let found = warn(ID, format!("interrupts of new devices may arrive at {}", shared.in_words()), read);
    let why = "A device that is plugged in or restarted later gets these CPUs.";
    // The kernel adds CPU 0 to the argument, because it boots on it (`irq_affinity_setup` in kernel/irq/irqdesc.c). Others
    // can change the file after the boot.
    let of_boot = context.boot_argument("irqaffinity").and_then(|value| boot_arguments::cpus_of(context.root, value));
    let helps = !shared.contains(0) && of_boot.is_none_or(|cpus| !cpus.intersection(&shared).is_empty());
    if helps {
        return found
            .because(why, format!("kernel argument: `irqaffinity={}`", context.housekeeping_at_boot()))
            .permanent();
    }
    match shield::mask_without(&mask, context.isolated(), &context.housekeeping(), context.isolated()) {
        Some(mask) => found.because(why, format!("echo {mask} | sudo tee /{PATH}")).until_boot(),
        None => unknown(ID, "default CPUs of interrupts not readable", without(PATH, Unreadable::NotUnderstood)),
    }
}

fn storm(context: &CheckContext) -> Finding {
    const ID: &str = "irq.storm";
    let Some(devices) = context.interrupts() else { return interrupts_unread(context, ID) };
    let Some(uptime_s) = context.uptime_s().filter(|&seconds| seconds > 0.0) else {
        return unknown(ID, "time since boot not readable", context.evidence("proc/uptime"));
    };
    let is_device = |irq: &&DeviceInterrupt| !irq.handlers.is_empty() && !interrupts::is_per_cpu(&irq.handlers);
    // A storm may have begun or ended since the boot.
    let now = match context.watched.map(InterruptWatch::parts) {
        Some(2..) => "in the busiest second",
        _ => "now",
    };
    let rates = devices.iter().filter(is_device).flat_map(|irq| {
        let since_boot = Counted { count: irq.count, time_s: uptime_s };
        let watched = context.watched.and_then(|watched| watched.busiest(irq.number));
        [Some((irq, since_boot, "on average since boot")), watched.map(|counted| (irq, counted, now))]
    });
    let busiest = rates.flatten().max_by(|(_, one, _), (_, other, _)| one.per_second().total_cmp(&other.per_second()));
    let Some((busiest, counted, when)) = busiest else {
        return not_applicable(ID, "no device has an interrupt", "/proc/interrupts: no numbered line with a handler");
    };
    let in_words = |rate: f64| if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
    let (rate, in_seconds) = (counted.per_second(), in_words(counted.time_s));
    // The average since boot is of so many that it needs no interval.
    let interval = match context.watched.and_then(|watched| watched.busiest(busiest.number)) {
        Some(watched) if watched == counted => {
            let (low, high) = counted.interval_per_second();
            format!(" ({} to {} a second, 95 % confidence)", in_words(low), in_words(high))
        }
        _ => String::new(),
    };
    let read = format!(
        "/proc/interrupts = {}: {} in {in_seconds} s{interval}, {}",
        busiest.number, counted.count, busiest.handlers
    );
    let in_words = in_words(rate);
    if rate < STORM_PER_SECOND {
        return ok(ID, format!("at most {in_words} interrupts a second from a device, {when}"), read);
    }
    warn(ID, format!("{in_words} interrupts a second from {}, {when}", busiest.handlers), read).because(
        "Each interrupt takes some microseconds from the thread on its CPU. A faulty driver, cable or hub causes more than the device needs.",
        format!("see which device and driver it is: cat /proc/irq/{}/spurious /proc/irq/{}/smp_affinity_list; ls /proc/irq/{}", busiest.number, busiest.number, busiest.number),
    )
}

/// Threads of programs at or below the priority of interrupt threads wait for them.
fn threads(context: &CheckContext) -> Finding {
    const ID: &str = "irq.threads";
    let Some(threads) = context.threads() else { return context.unseen_threads(ID) };
    let priority = |thread: &&Scheduled| thread.realtime.and_then(Realtime::priority);
    let handlers: Vec<&Scheduled> =
        threads.iter().filter(|thread| thread.is_kernels && thread.name.starts_with("irq/")).collect();
    let Some(any) = handlers.first() else {
        return not_applicable(ID, "interrupts are handled without threads", "/proc/*/comm: no irq/N");
    };
    let Some(limit) = usual_priority(threads) else {
        let path = format!("proc/{}/task/{}/stat", any.process, any.id);
        return unknown(ID, "no interrupt thread has a real-time priority", context.evidence(&path));
    };
    let usual = handlers.iter().find(|thread| priority(thread) == Some(limit)).unwrap_or(any);
    let raised = handlers.iter().filter_map(priority).filter(|&priority| priority > limit).min();
    let read = |thread: &Scheduled| {
        let policy = thread.realtime.map(|realtime| realtime.to_string()).unwrap_or_default();
        evidence(&format!("proc/{}/task/{}/stat", thread.process, thread.id), &format!("{}, {policy}", thread.name))
    };
    let below = threads.iter().filter(|thread| !thread.is_kernels);
    let below: Vec<&Scheduled> = below.filter(|thread| priority(thread).is_some_and(|own| own <= limit)).collect();
    let Some(first) = below.first() else {
        return ok(
            ID,
            format!("most interrupt threads run at priority {limit}; no real-time thread of a program is below"),
            read(usual),
        );
    };
    let names = match below.len() - 1 {
        0 => first.name.clone(),
        1 => format!("{} and another thread", first.name),
        more => format!("{} and {more} more threads", first.name),
    };
    let title = format!("{names} at or below the priority of interrupt threads ({limit})");
    warn(ID, title, format!("{}, {}", read(first), read(usual)))
        .because(
            "Each interrupt of any device delays these threads. Only the interrupt that a thread waits for should be above it.",
            format!("sudo chrt --fifo --pid {} {}", (limit + 20).min(raised.map_or(98, |raised| raised - 1)), first.id),
        )
        .until_exit()
}
