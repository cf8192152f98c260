//! A record as an [`Event`]: by its number, which fields make which event.

use std::collections::HashMap;

use super::{
    format::{Field, Format, Word},
    states::States,
};
use crate::event::{Comm, Event, Name, Names, Task, What};

/// Turns records into events, for one kernel's formats.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// By event id.
    recipes: Vec<Option<Recipe>>,
    names: Names,
    kernel: Kernel,
}

/// What formats leave to be known about the kernel.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// Where its code begins (`_stext`); sections with interrupts or preemption off count from there.
    pub code_start: u64,
    /// Strings that records name by address alone.
    pub strings: HashMap<u64, String>,
}

/// Where an event's parts are in its record.
#[derive(Debug, Clone)]
struct Recipe {
    pid: Word,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Switch(Box<Switch>),
    Waking { comm: Field, pid: Word, priority: Word, target_cpu: Word },
    IrqEntry { irq: Word, name: Field },
    IrqExit { irq: Word },
    Vector { name: Name, entry: bool },
    Ipi { reason: Field, names: HashMap<u64, Name>, unknown: Name, entry: bool },
    SoftirqEntry { vec: Word },
    SoftirqExit { vec: Word },
    SoftirqRaise { vec: Word },
    Nmi { handler: Field, took: Field },
    TimerEntry { timer: Field, function: Field },
    TimerExit { timer: Field },
    Idle { state: Word },
    Section { caller: Field, code_start: u64, section: Section },
    PageFault { address: Field, in_kernel: bool },
    Signal { signal: Word, pid: Word },
    Fork { child: Word },
    Exit,
    Timerlat { cycle: Word, context: Word, latency: Field },
}

#[derive(Debug, Clone)]
struct Switch {
    from: TaskFields,
    state: Field,
    states: States,
    to: TaskFields,
}

#[derive(Debug, Clone, Copy)]
struct TaskFields {
    comm: Field,
    pid: Word,
    priority: Word,
}

/// Which edge of which section.
#[derive(Debug, Clone, Copy)]
enum Section {
    IrqsOff,
    IrqsOn,
    PreemptOff,
    PreemptOn,
}

impl Decoder {
    /// A decoder that knows no event yet.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel, ..Self::default() }
    }

    /// Learns the records of one event. Whether it is one that has a meaning here.
    pub fn learn(&mut self, system: &str, format: &Format) -> bool {
        let Some(recipe) = self.recipe(system, format) else { return false };
        let at = usize::from(format.id);
        if self.recipes.len() <= at {
            self.recipes.resize(at + 1, None);
        }
        self.recipes[at] = Some(recipe);
        true
    }

    /// The names in the events that this made.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The event that a record tells; `None` where it is of no known kind, or too short.
    #[inline]
    pub fn event(&mut self, cpu: u32, at_ns: u64, record: &[u8]) -> Option<Event> {
        let id = u16::from_le_bytes(*record.first_chunk()?);
        let recipe = self.recipes.get(usize::from(id))?.as_ref()?;
        let pid = recipe.pid.get(record)?;
        Some(Event { at_ns, cpu, pid, what: recipe.kind.what(record, &mut self.names)? })
    }

    fn recipe(&mut self, system: &str, format: &Format) -> Option<Recipe> {
        let pid = format.field("common_pid")?.word()?;
        Some(Recipe { pid, kind: self.kind(system, format)? })
    }

    /// Facts: include/trace/events/*.h, arch/x86/include/asm/trace/, kernel/trace/trace_entries.h of Linux.
    fn kind(&mut self, system: &str, format: &Format) -> Option<Kind> {
        let field = |name| format.field(name);
        let word = |name| format.field(name)?.word();
        Some(match (system, format.name.as_str()) {
            ("sched", "sched_switch") => Kind::Switch(Box::new(Switch {
                from: TaskFields::of(format, "prev_")?,
                state: field("prev_state")?,
                states: States::parse(&format.print),
                to: TaskFields::of(format, "next_")?,
            })),
            ("sched", "sched_waking" | "sched_wakeup_new") => {
                let TaskFields { comm, pid, priority } = TaskFields::of(format, "")?;
                Kind::Waking { comm, pid, priority, target_cpu: word("target_cpu")? }
            }
            ("sched", "sched_process_fork") => Kind::Fork { child: word("child_pid")? },
            ("sched", "sched_process_exit") => Kind::Exit,
            ("irq", "irq_handler_entry") => Kind::IrqEntry { irq: word("irq")?, name: field("name")? },
            ("irq", "irq_handler_exit") => Kind::IrqExit { irq: word("irq")? },
            ("irq", "softirq_entry") => Kind::SoftirqEntry { vec: word("vec")? },
            ("irq", "softirq_exit") => Kind::SoftirqExit { vec: word("vec")? },
            ("irq", "softirq_raise") => Kind::SoftirqRaise { vec: word("vec")? },
            ("irq_vectors", name) => {
                let (vector, entry) = edge(name)?;
                Kind::Vector { name: self.names.name(vector), entry }
            }
            ("ipi", name @ ("ipi_entry" | "ipi_exit")) => {
                let strings = self.kernel.strings.iter();
                let names = strings.map(|(&address, text)| (address, self.names.name(text))).collect();
                let entry = name == "ipi_entry";
                Kind::Ipi { reason: field("reason")?, names, unknown: self.names.name("ipi"), entry }
            }
            ("nmi", "nmi_handler") => Kind::Nmi { handler: field("handler")?, took: field("delta_ns")? },
            ("timer", "hrtimer_expire_entry") => {
                Kind::TimerEntry { timer: field("hrtimer")?, function: field("function")? }
            }
            ("timer", "hrtimer_expire_exit") => Kind::TimerExit { timer: field("hrtimer")? },
            ("timer", "timer_expire_entry") => {
                Kind::TimerEntry { timer: field("timer")?, function: field("function")? }
            }
            ("timer", "timer_expire_exit") => Kind::TimerExit { timer: field("timer")? },
            ("power", "cpu_idle") => Kind::Idle { state: word("state")? },
            ("preemptirq", name) => {
                let section = match name {
                    "irq_disable" => Section::IrqsOff,
                    "irq_enable" => Section::IrqsOn,
                    "preempt_disable" => Section::PreemptOff,
                    "preempt_enable" => Section::PreemptOn,
                    _ => return None,
                };
                Kind::Section { caller: field("caller_offs")?, code_start: self.kernel.code_start, section }
            }
            ("exceptions", "page_fault_user") => Kind::PageFault { address: field("address")?, in_kernel: false },
            ("exceptions", "page_fault_kernel") => Kind::PageFault { address: field("address")?, in_kernel: true },
            ("signal", "signal_generate") => Kind::Signal { signal: word("sig")?, pid: word("pid")? },
            ("ftrace", "timerlat") => {
                Kind::Timerlat { cycle: word("seqnum")?, context: word("context")?, latency: field("timer_latency")? }
            }
            _ => return None,
        })
    }
}

/// `local_timer_entry`: the vector's name, and whether its handler begins.
fn edge(name: &str) -> Option<(&str, bool)> {
    let entry = name.strip_suffix("_entry").map(|vector| (vector, true));
    entry.or_else(|| Some((name.strip_suffix("_exit")?, false)))
}

impl TaskFields {
    fn of(format: &Format, prefix: &str) -> Option<Self> {
        let field = |name| format.field(&format!("{prefix}{name}"));
        Some(Self { comm: field("comm")?, pid: field("pid")?.word()?, priority: field("prio")?.word()? })
    }

    #[inline]
    fn task(&self, record: &[u8]) -> Option<Task> {
        task(record, self.comm, self.pid, self.priority)
    }
}

#[inline]
fn task(record: &[u8], comm: Field, pid: Word, priority: Word) -> Option<Task> {
    Some(Task {
        pid: pid.get(record)?,
        priority: priority.get(record)?.cast_signed(),
        comm: comm_of(comm.bytes(record)?),
    })
}

/// The kernel's own 16 bytes. Behind the NUL there may be the rest of an older name, which is left out.
#[inline]
fn comm_of(bytes: &[u8]) -> Comm {
    let whole = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        padded
    });
    const EACH: u128 = u128::MAX / 0xff;
    let name = u128::from_le_bytes(whole);
    // The highest bit of the lowest byte that is 0; the last byte always ends the name.
    let ends = (name.wrapping_sub(EACH) & !name & (EACH << 7)) | (1 << 127);
    let kept = (1 << (ends.trailing_zeros() & !7)) - 1;
    Comm((name & kept).to_le_bytes())
}

impl Kind {
    #[inline]
    fn what(&self, record: &[u8], names: &mut Names) -> Option<What> {
        let small = |word: &Word| word.get(record);
        let wide = |field: &Field| field.number(record).map(|number| number as u64);
        Some(match self {
            Self::Switch(switch) => What::Switch {
                from: switch.from.task(record)?,
                left: switch.states.left(switch.state.number(record)?),
                to: switch.to.task(record)?,
            },
            Self::Waking { comm, pid, priority, target_cpu } => {
                What::Waking { task: task(record, *comm, *pid, *priority)?, target_cpu: small(target_cpu)? }
            }
            Self::IrqEntry { irq, name } => {
                let text = String::from_utf8_lossy(name.text(record)?);
                What::IrqEntry { irq: small(irq)?, name: names.name(&text) }
            }
            Self::IrqExit { irq } => What::IrqExit { irq: small(irq)? },
            &Self::Vector { name, entry: true } => What::VectorEntry { name },
            &Self::Vector { name, entry: false } => What::VectorExit { name },
            Self::Ipi { reason, names, unknown, entry } => {
                let name = *names.get(&wide(reason)?).unwrap_or(unknown);
                if *entry { What::VectorEntry { name } } else { What::VectorExit { name } }
            }
            Self::SoftirqEntry { vec } => What::SoftirqEntry { vec: small(vec)? },
            Self::SoftirqExit { vec } => What::SoftirqExit { vec: small(vec)? },
            Self::SoftirqRaise { vec } => What::SoftirqRaise { vec: small(vec)? },
            Self::Nmi { handler, took } => What::Nmi { handler: wide(handler)?, took_ns: wide(took)? },
            Self::TimerEntry { timer, function } => What::TimerEntry { timer: wide(timer)?, function: wide(function)? },
            Self::TimerExit { timer } => What::TimerExit { timer: wide(timer)? },
            // On the way out the state is -1 in 32 bits.
            Self::Idle { state } => {
                What::Idle { state: small(state).map(|state| (state != u32::MAX).then_some(state))? }
            }
            Self::Section { caller, code_start, section } => {
                let caller = code_start.wrapping_add(wide(caller)?);
                match section {
                    Section::IrqsOff => What::IrqsOff { caller },
                    Section::IrqsOn => What::IrqsOn { caller },
                    Section::PreemptOff => What::PreemptOff { caller },
                    Section::PreemptOn => What::PreemptOn { caller },
                }
            }
            Self::PageFault { address, in_kernel } => {
                What::PageFault { address: wide(address)?, in_kernel: *in_kernel }
            }
            Self::Signal { signal, pid } => What::Signal { signal: small(signal)?, pid: small(pid)? },
            Self::Fork { child } => What::Fork { child: small(child)? },
            Self::Exit => What::Exit,
            Self::Timerlat { cycle, context, latency } => {
                What::Timerlat { cycle: small(cycle)?, context: small(context)?, latency_ns: wide(latency)? }
            }
        })
    }
}

#[cfg(test)]
mod tests;
