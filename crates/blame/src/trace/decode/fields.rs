//! The fields of each event: found once in its format, then read from every record.

use std::collections::HashMap;

use record::Monitor;

use super::{KernelInfo, MARKS, TimerCallbacks};
use crate::{
    event::{Comm, EventKind, Name, Names, Task},
    trace::{
        format::{Field, Format, U32Field},
        states::StateBits,
    },
};

/// The fields of one event that its [`EventKind`] needs.
#[derive(Debug, Clone)]
pub(super) enum Fields {
    /// An event whose records all decode to the same kind.
    Fixed(EventKind),
    /// An event with one 32-bit number.
    Number {
        number: U32Field,
        kind: fn(u32) -> EventKind,
    },
    /// An event with one address, stored as an offset from `base`.
    Address {
        address: Field,
        base: u64,
        kind: fn(u64) -> EventKind,
    },
    Switch(Box<SwitchFields>),
    Waking {
        task: TaskFields,
        target_cpu: U32Field,
    },
    IrqEntry {
        irq: U32Field,
        name: Field,
    },
    /// An interrupt from another CPU, named by the address of a string.
    Ipi {
        reason: Field,
        names: HashMap<u64, Name>,
        unknown: Name,
        kind: fn(Name) -> EventKind,
    },
    Nmi {
        handler: Field,
        took: Field,
    },
    TimerEntry {
        timer: Field,
        function: Field,
    },
    Signal {
        signal: U32Field,
        pid: U32Field,
    },
    SignalDelivered {
        signal: U32Field,
        handler: Field,
    },
    /// The entry of a system call.
    CallEntry {
        call: Field,
        arguments: Field,
    },
    CallExit {
        call: Field,
    },
    MonitorReport {
        monitor: Monitor,
        tid: U32Field,
    },
    TimerStart {
        timer: Field,
        function: Field,
        expires: Field,
        latest: Field,
        wanted: TimerCallbacks,
    },
    Timerlat {
        cycle: U32Field,
        context: U32Field,
        latency: Field,
    },
}

/// The fields of `sched_switch`.
#[derive(Debug, Clone)]
pub(super) struct SwitchFields {
    from: TaskFields,
    state: Field,
    state_bits: StateBits,
    to: TaskFields,
}

/// The fields that describe one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskFields {
    comm: Field,
    pid: U32Field,
    priority: U32Field,
}

impl Fields {
    /// Finds the fields of an event; `None` if the event is unknown or lacks one of them.
    pub(super) fn of(system: &str, format: &Format, kernel: &KernelInfo, names: &mut Names) -> Option<Self> {
        match system {
            "sched" => sched(format),
            "irq" => irq(format),
            "irq_vectors" => irq_vector(format, names),
            "ipi" => ipi(format, kernel, names),
            "timer" => timer(format, kernel.timers),
            "preemptirq" => section(format, kernel.code_start),
            "exceptions" => page_fault(format),
            "raw_syscalls" => call(format),
            "lock" => lock(format),
            "rv" => monitor_report(format),
            MARKS => mark(format),
            _ => other(system, format),
        }
    }

    /// Reads the fields from a record; `None` if the record is too short.
    #[inline]
    pub(super) fn decode(&self, record: &[u8], names: &mut Names) -> Option<EventKind> {
        let small = |field: &U32Field| field.get(record);
        let wide = |field: &Field| field.number(record).map(i64::cast_unsigned);
        Some(match self {
            Self::Fixed(kind) => *kind,
            Self::Number { number, kind } => kind(small(number)?),
            Self::Address { address, base, kind } => kind(base.wrapping_add(wide(address)?)),
            Self::Switch(switch) => EventKind::Switch {
                from: switch.from.task(record)?,
                prev_state: switch.state_bits.prev_state(switch.state.number(record)?),
                to: switch.to.task(record)?,
            },
            Self::Waking { task, target_cpu } => {
                EventKind::Waking { task: task.task(record)?, target_cpu: small(target_cpu)? }
            }
            Self::IrqEntry { irq, name } => {
                let text = String::from_utf8_lossy(name.text(record)?);
                EventKind::IrqEntry { irq: small(irq)?, name: names.name(&text) }
            }
            Self::Ipi { reason, names, unknown, kind } => kind(*names.get(&wide(reason)?).unwrap_or(unknown)),
            Self::Nmi { handler, took } => EventKind::Nmi { handler: wide(handler)?, took_ns: wide(took)? },
            Self::TimerEntry { timer, function } => {
                EventKind::TimerEntry { timer: wide(timer)?, function: wide(function)? }
            }
            // 0 is SIG_DFL and 1 is SIG_IGN.
            Self::SignalDelivered { signal, handler } => {
                EventKind::SignalDelivered { signal: small(signal)?, handled: wide(handler)? > 1 }
            }
            Self::CallEntry { call, arguments } => EventKind::CallEntry {
                call: call_number(*call, record)?,
                arguments: numbers(arguments.bytes(record)?)?,
            },
            &Self::MonitorReport { monitor, tid } => EventKind::MonitorReport { monitor, tid: small(&tid)? },
            Self::CallExit { call } => EventKind::CallExit { call: call_number(*call, record)? },
            Self::TimerStart { timer, function, expires, latest, wanted } => {
                let (function, expires_ns) = (wide(function)?, expires.number(record)?);
                if wanted.fd == Some(function) {
                    return Some(EventKind::FdTimerStart { timer: wide(timer)?, expires_ns });
                }
                if wanted.sleep.is_some_and(|sleep| sleep != function) {
                    return None;
                }
                EventKind::TimerStart { function, expires_ns, latest_ns: latest.number(record)? }
            }
            Self::Signal { signal, pid } => EventKind::Signal { signal: small(signal)?, pid: small(pid)? },
            Self::Timerlat { cycle, context, latency } => {
                EventKind::Timerlat { cycle: small(cycle)?, context: small(context)?, latency_ns: wide(latency)? }
            }
        })
    }
}

fn sched(format: &Format) -> Option<Fields> {
    Some(match format.name.as_str() {
        "sched_switch" => Fields::Switch(Box::new(SwitchFields {
            from: TaskFields::of(format, "prev_")?,
            state: format.field("prev_state")?,
            state_bits: StateBits::parse(&format.print),
            to: TaskFields::of(format, "next_")?,
        })),
        "sched_waking" | "sched_wakeup_new" => {
            Fields::Waking { task: TaskFields::of(format, "")?, target_cpu: u32_field(format, "target_cpu")? }
        }
        "sched_process_fork" => {
            Fields::Number { number: u32_field(format, "child_pid")?, kind: |child| EventKind::Fork { child } }
        }
        "sched_process_exec" => Fields::Fixed(EventKind::Exec),
        "sched_process_exit" => Fields::Fixed(EventKind::Exit),
        _ => return None,
    })
}

fn irq(format: &Format) -> Option<Fields> {
    let (field, kind): (_, fn(u32) -> EventKind) = match format.name.as_str() {
        "irq_handler_entry" => {
            return Some(Fields::IrqEntry { irq: u32_field(format, "irq")?, name: format.field("name")? });
        }
        "irq_handler_exit" => ("irq", |irq| EventKind::IrqExit { irq }),
        "softirq_entry" => ("vec", |vec| EventKind::SoftirqEntry { vec }),
        "softirq_exit" => ("vec", |vec| EventKind::SoftirqExit { vec }),
        "softirq_raise" => ("vec", |vec| EventKind::SoftirqRaise { vec }),
        _ => return None,
    };
    Some(Fields::Number { number: u32_field(format, field)?, kind })
}

/// `local_timer_entry` and `local_timer_exit`: the event's name contains that of the vector.
fn irq_vector(format: &Format, names: &mut Names) -> Option<Fields> {
    let entry = format.name.strip_suffix("_entry").map(|name| EventKind::VectorEntry { name: names.name(name) });
    let exit = || format.name.strip_suffix("_exit").map(|name| EventKind::VectorExit { name: names.name(name) });
    entry.or_else(exit).map(Fields::Fixed)
}

fn ipi(format: &Format, kernel: &KernelInfo, names: &mut Names) -> Option<Fields> {
    let kind: fn(Name) -> EventKind = match format.name.as_str() {
        "ipi_entry" => |name| EventKind::VectorEntry { name },
        "ipi_exit" => |name| EventKind::VectorExit { name },
        _ => return None,
    };
    let reason = format.field("reason")?;
    let by_address = kernel.strings.iter().map(|(&address, text)| (address, names.name(text))).collect();
    Some(Fields::Ipi { reason, names: by_address, unknown: names.name("ipi"), kind })
}

/// Number of a system call; `None` for -1, which the kernel writes if the call was skipped.
#[inline]
fn call_number(field: Field, record: &[u8]) -> Option<u32> {
    u32::try_from(field.number(record)?).ok()
}

/// The first numbers of an array of 64-bit numbers.
#[inline]
fn numbers<const COUNT: usize>(bytes: &[u8]) -> Option<[u64; COUNT]> {
    let (numbers, _) = bytes.as_chunks::<8>();
    Some(numbers.first_chunk::<COUNT>()?.map(u64::from_le_bytes))
}

fn call(format: &Format) -> Option<Fields> {
    let call = format.field("id")?;
    match format.name.as_str() {
        "sys_enter" => Some(Fields::CallEntry { call, arguments: format.field("args")? }),
        "sys_exit" => Some(Fields::CallExit { call }),
        _ => None,
    }
}

fn lock(format: &Format) -> Option<Fields> {
    let kind: fn(u64) -> EventKind = match format.name.as_str() {
        "contention_begin" => |lock| EventKind::LockWait { lock },
        "contention_end" => |lock| EventKind::LockWaitEnd { lock },
        _ => return None,
    };
    Some(Fields::Address { address: format.field("lock_addr")?, base: 0, kind })
}

/// A report of a monitor: `error_NAME` with the field `pid`, or `error_env_NAME` with `id`, which is also the id of a
/// thread. For the kernel's own deadline servers it is 0 or negative, which is no thread.
fn monitor_report(format: &Format) -> Option<Fields> {
    let name = format.name.strip_prefix("error_")?;
    let (name, field) = name.strip_prefix("env_").map_or((name, "pid"), |name| (name, "id"));
    Some(Fields::MonitorReport { monitor: Monitor::of_name(name)?, tid: u32_field(format, field)? })
}

/// A mark of a cycle. The names of the events have a number at their end.
fn mark(format: &Format) -> Option<Fields> {
    let begins = match format.name.rsplit_once('_')?.0 {
        "cycle_begin" => true,
        "cycle_end" => false,
        _ => return None,
    };
    Some(Fields::Fixed(EventKind::Mark { begins }))
}

fn timer(format: &Format, wanted: TimerCallbacks) -> Option<Fields> {
    if format.name == "hrtimer_start" {
        // Kernels before 2.6.36 have no softexpires.
        let (function, expires) = (format.field("function")?, format.field("softexpires")?);
        let (timer, latest) = (format.field("hrtimer")?, format.field("expires")?);
        return Some(Fields::TimerStart { timer, function, expires, latest, wanted });
    }
    let timer = match format.name.as_str() {
        "hrtimer_expire_entry" | "hrtimer_expire_exit" => format.field("hrtimer")?,
        "timer_expire_entry" | "timer_expire_exit" => format.field("timer")?,
        _ => return None,
    };
    Some(match format.name.ends_with("_entry") {
        true => Fields::TimerEntry { timer, function: format.field("function")? },
        false => Fields::Address { address: timer, base: 0, kind: |timer| EventKind::TimerExit { timer } },
    })
}

/// Sections with interrupts or preemption off. Their callers are stored as offsets from the start of the kernel's code.
fn section(format: &Format, code_start: u64) -> Option<Fields> {
    let kind: fn(u64) -> EventKind = match format.name.as_str() {
        "irq_disable" => |caller| EventKind::IrqsOff { caller },
        "irq_enable" => |caller| EventKind::IrqsOn { caller },
        "preempt_disable" => |caller| EventKind::PreemptOff { caller },
        "preempt_enable" => |caller| EventKind::PreemptOn { caller },
        _ => return None,
    };
    Some(Fields::Address { address: format.field("caller_offs")?, base: code_start, kind })
}

fn page_fault(format: &Format) -> Option<Fields> {
    let kind: fn(u64) -> EventKind = match format.name.as_str() {
        "page_fault_user" => |address| EventKind::PageFault { address, in_kernel: false },
        "page_fault_kernel" => |address| EventKind::PageFault { address, in_kernel: true },
        _ => return None,
    };
    Some(Fields::Address { address: format.field("address")?, base: 0, kind })
}

/// The systems with one event each.
fn other(system: &str, format: &Format) -> Option<Fields> {
    Some(match (system, format.name.as_str()) {
        ("nmi", "nmi_handler") => Fields::Nmi { handler: format.field("handler")?, took: format.field("delta_ns")? },
        // The state is -1 in 32 bits when the CPU leaves an idle state.
        ("power", "cpu_idle") => Fields::Number {
            number: u32_field(format, "state")?,
            kind: |state| EventKind::Idle { state: (state != u32::MAX).then_some(state) },
        },
        ("signal", "signal_generate") => {
            Fields::Signal { signal: u32_field(format, "sig")?, pid: u32_field(format, "pid")? }
        }
        ("signal", "signal_deliver") => {
            Fields::SignalDelivered { signal: u32_field(format, "sig")?, handler: format.field("sa_handler")? }
        }
        ("block", "block_bio_queue") => Fields::Fixed(EventKind::BlockRequest),
        ("ftrace", "timerlat") => Fields::Timerlat {
            cycle: u32_field(format, "seqnum")?,
            context: u32_field(format, "context")?,
            latency: format.field("timer_latency")?,
        },
        _ => return None,
    })
}

fn u32_field(format: &Format, name: &str) -> Option<U32Field> {
    format.field(name)?.as_u32()
}

impl TaskFields {
    fn of(format: &Format, prefix: &str) -> Option<Self> {
        let comm = format.field(&format!("{prefix}comm"))?;
        let number = |name| u32_field(format, &format!("{prefix}{name}"));
        Some(Self { comm, pid: number("pid")?, priority: number("prio")? })
    }

    #[inline]
    fn task(&self, record: &[u8]) -> Option<Task> {
        Some(Task {
            pid: self.pid.get(record)?,
            priority: self.priority.get(record)?.cast_signed(),
            comm: comm(self.comm.bytes(record)?),
        })
    }
}

/// Cuts a name at its first NUL: the kernel may leave the rest of an older name after it.
///
/// Without a loop, because every switch has two names.
#[inline]
pub(super) fn comm(bytes: &[u8]) -> Comm {
    let whole = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        padded
    });
    /// 0x01 in every byte.
    const ONES: u128 = u128::MAX / 0xff;
    let name = u128::from_le_bytes(whole);
    // Sets the highest bit of the lowest byte that is 0; the last byte always ends the name.
    let ends = (name.wrapping_sub(ONES) & !name & (ONES << 7)) | (1 << 127);
    let kept = (1 << (ends.trailing_zeros() & !7)) - 1;
    Comm((name & kept).to_le_bytes())
}
