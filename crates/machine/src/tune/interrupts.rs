//! The CPUs of interrupts, and the priorities of their threads.

use super::{
    Context, Refusal, Target, WhyNot, Write,
    away::others,
    old_value::OldValue,
    values::{needs_a_value, only_word},
    writes::file,
};
use crate::{
    facts,
    interrupts::{self, Mover},
    nic::Thread,
    shield::{self, Affinity},
    tasks,
};

pub(super) fn affinity(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    only_word(value, "away")?;
    let others = others(context)?;
    // One that cannot be understood would seem to be away.
    for path in shield::affinity_files(context.root) {
        OldValue::Cpus.read(context, &path)?;
    }
    let is_isolated = context.freed.difference(&facts::isolated_cpus(context.root)).is_empty();
    let mut writes: Vec<Write> = Vec::new();
    for Affinity { number, handlers, path, from, to } in shield::affinities(context.root, &context.freed, &others) {
        let refusal = match interrupts::mover(context.root, number, &handlers) {
            // Since Linux 6.13, the file of an interrupt that its driver manages cannot be written.
            _ if context.root.is_fixed(&path) || interrupts::is_per_cpu(&handlers) => continue,
            // It arrives only for disk I/O that these CPUs start.
            Mover::Queue(cpus) if cpus.difference(&context.freed).is_empty() => continue,
            // `check` goes by the CPUs at which it arrives, too.
            _ if !context.is_named && is_isolated && arrives_elsewhere(context, number) => continue,
            Mover::Queue(_) | Mover::Nobody => Refusal::Likely(handlers),
            Mover::User => Refusal::Possible,
        };
        writes.push(Write { refusal, ..file(path, from, to) });
    }
    if context.is_named {
        return Ok(writes);
    }
    if let Some(reason) = stays(&writes).filter(|_| writes.iter().all(is_likely)) {
        return Err(WhyNot::NoEffect(reason));
    }
    // The plan names them, but contains nothing that the kernel refuses.
    writes.iter_mut().filter(|write| is_likely(write)).for_each(|write| write.to.clone_from(&write.from));
    Ok(writes)
}

/// True if an interrupt arrives at other CPUs than those for real-time work now, although it may arrive at these.
fn arrives_elsewhere(context: &Context<'_>, number: u32) -> bool {
    interrupts::effective(context.root, number)
        .is_ok_and(|cpus| !cpus.is_empty() && cpus.intersection(&context.freed).is_empty())
}

/// True if the kernel probably refuses the write.
fn is_likely(write: &Write) -> bool {
    matches!(write.refusal, Refusal::Likely(_))
}

/// The interrupts that probably stay where they are, in words; `None` if there are none.
pub(super) fn stays(writes: &[Write]) -> Option<String> {
    let handlers: Vec<&str> = writes
        .iter()
        .filter_map(|write| match &write.refusal {
            Refusal::Likely(handler) => Some(&**handler),
            Refusal::Failure | Refusal::Possible => None,
        })
        .collect();
    let (first, others) = handlers.split_first()?;
    Some(match others.len() {
        0 => format!("{first} stays: its driver probably manages this interrupt"),
        more => format!("{first} and {more} more stay: their drivers probably manage these interrupts"),
    })
}

/// Length to which kernels before 5.17 cut the names of their threads, bytes (`TASK_COMM_LEN` without the zero byte).
const KEPT_OF_NAME: usize = 15;

pub(super) fn irq_priority(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    const VALUES: &str = "NAME:PRIORITY for the threads irq/N-NAME..., or a priority for all: eth0:90, 50";
    let Some(value) = value else { return Err(needs_a_value(VALUES)) };
    let (name, priority) = value.rsplit_once(':').unwrap_or(("", value));
    let priority = priority.parse::<u8>().ok().filter(|priority| (1..=99).contains(priority));
    let Some(priority) = priority else {
        return Err(WhyNot::Value(format!("the priority of `{value}` must be 1 to 99: use {VALUES}")));
    };
    if context.root.read("proc/2/comm").as_deref() != Some("kthreadd") {
        let remedy = match context.root.is_system() {
            true => "run on the host",
            false => "they are not in this copy of a machine (--root)",
        };
        return Err(WhyNot::Here(format!("the kernel's threads are not visible: {remedy}")));
    }
    let threads = tasks::scheduled(context.root);
    let handlers: Vec<_> =
        threads.iter().filter(|thread| thread.is_kernels && thread.name.starts_with("irq/")).collect();
    if handlers.is_empty() {
        let remedy = "boot with `threadirqs`, or use a PREEMPT_RT kernel";
        return Err(WhyNot::Here(format!("this kernel handles interrupts without threads: {remedy}")));
    }
    let is_meant = |thread: &str| {
        let is_cut = thread.len() >= KEPT_OF_NAME;
        let is = |own: &str| own.starts_with(name) || is_cut && name.starts_with(own);
        name.is_empty() || thread.split_once('-').is_some_and(|(_, own)| is(own))
    };
    let mut writes = Vec::new();
    for thread in handlers.iter().filter(|thread| is_meant(&thread.name)) {
        let (Some(now), Some(start_ticks)) =
            (Thread::of(context.root, thread.id), tasks::start_ticks(context.root, &thread.id.to_string()))
        else {
            continue;
        };
        let from = now.scheduled();
        if from.parse::<sys::sched::Policy>().is_err() {
            return Err(WhyNot::Here(format!("{} is scheduled as `{from}`, which could not be restored", now.name)));
        }
        let target = Target::Thread { id: now.id, start_ticks, name: now.name };
        writes.push(Write { target, from, to: format!("fifo:{priority}"), refusal: Refusal::Failure });
    }
    if writes.is_empty() {
        let mut names: Vec<&str> = handlers.iter().filter_map(|thread| Some(thread.name.split_once('-')?.1)).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(12);
        return Err(WhyNot::Value(format!("no interrupt thread is called `{name}`: there are {}", names.join(", "))));
    }
    Ok(writes)
}
