//! Builds causes from the observed threads, interrupts and timers.

use record::{Cause, CauseKind, Why};

use super::{
    context::{Context, Open},
    replay::{CpuState, Idle, Irqs, Thread, is_real_time},
    thread_state::{StopSignal, stop_name},
};
use crate::{Comm, Names, event::softirq_name};

/// Start of a cause's detail that names the function that disabled interrupts or preemption.
pub(crate) const TURNED_OFF_IN: &str = "turned off in ";

/// Builds causes for one CPU of the traced machine.
pub(super) struct Causes<'a> {
    pub names: &'a Names,
    pub symbol: &'a dyn Fn(u64) -> Option<String>,
    /// The CPU of the explained thread.
    pub cpu: u32,
}

impl Causes<'_> {
    /// Name of the function at an address, or the address.
    pub fn function(&self, address: u64) -> String {
        (self.symbol)(address).unwrap_or_else(|| format!("{address:#x}"))
    }

    /// Command of a thread, or its id if the command is unknown.
    pub fn thread_name(&self, thread: Thread) -> String {
        match thread {
            Thread { known: Some((_, comm)), .. } => comm.to_string(),
            Thread { pid: 0, .. } => format!("swapper/{}", self.cpu),
            Thread { pid, .. } => format!("pid {pid}"),
        }
    }

    /// A thread on the CPU.
    pub fn thread(&self, kind: CauseKind, thread: Thread) -> Cause {
        let mut cause = Cause::new(kind, self.thread_name(thread));
        if thread.pid != 0 {
            (cause.number, cause.priority) = (Some(thread.pid), thread.known.map(|(priority, _)| priority));
        }
        cause
    }

    /// An interrupt, softirq or timer callback on top of a thread.
    pub fn context(&self, open: Open, thread: Thread) -> Cause {
        match open.context {
            Context::Irq { irq, name } => {
                let name = name.map_or_else(|| format!("irq {irq}"), |name| self.names.text(name).to_owned());
                Cause { number: Some(irq), ..Cause::new(CauseKind::Interrupt, name) }
            }
            Context::Vector { name } => Cause::new(CauseKind::Interrupt, self.names.text(name)),
            Context::Timer { function, .. } => {
                let name = function.map_or_else(|| "?".to_owned(), |function| self.function(function));
                Cause::new(CauseKind::Timer, name)
            }
            Context::Softirq { vec } => {
                let mut cause = Cause::new(CauseKind::Softirq, softirq_name(vec));
                // Outside these threads, a softirq runs at the end of an interrupt, on top of any thread.
                if let Some((priority, comm)) = thread.known.filter(|(_, comm)| runs_softirqs(comm)) {
                    cause.priority = Some(priority);
                    cause.detail = format!("in {comm}");
                }
                cause
            }
        }
    }

    pub fn nmi(&self, handler: u64) -> Cause {
        Cause::new(CauseKind::Nmi, self.function(handler))
    }

    /// The timer's interrupt is due but has not begun.
    pub fn late_interrupt(&self, cpu_state: &CpuState) -> Cause {
        let mut cause = self.thread(CauseKind::LateInterrupt, cpu_state.thread);
        match (cpu_state.irqs, cpu_state.softirq) {
            (Some(Irqs::Off(by)), _) => {
                cause.why = Some(Why::InterruptsOff);
                cause.detail = by.map(|by| format!("{TURNED_OFF_IN}{}", self.function(by))).unwrap_or_default();
            }
            (Some(Irqs::On), _) => cause.detail = "interrupts were on: hardware, firmware or hypervisor".to_owned(),
            (None, Some(vec)) => cause.detail = format!("in softirq {}", softirq_name(vec)),
            (None, None) => {}
        }
        cause
    }

    /// A thread of lower priority keeps the CPU although the measuring thread is ready.
    pub fn preemption_off(&self, cpu_state: &CpuState) -> Cause {
        let mut cause = self.thread(CauseKind::Thread, cpu_state.thread);
        cause.why = Some(Why::PreemptionOff);
        let caller = match cpu_state.irqs {
            Some(Irqs::Off(Some(by))) => Some(by),
            _ => cpu_state.preempt_off,
        };
        cause.detail = caller.map(|caller| format!("{TURNED_OFF_IN}{}", self.function(caller))).unwrap_or_default();
        cause
    }

    pub fn stopped(&self, by: Option<StopSignal>, sender: Option<Thread>, woken_by: Option<String>) -> Cause {
        let mut cause = Cause::new(CauseKind::Stopped, by.map_or("a signal", |sent| stop_name(sent.signal)));
        cause.number = by.map(|sent| sent.by);
        let sent = sender.map(|thread| format!("sent by {}", self.thread_name(thread)));
        let woken = woken_by.map(|waker| format!("continued by {waker}"));
        cause.detail = [sent, woken].into_iter().flatten().collect::<Vec<_>>().join(", ");
        cause
    }
}

/// The thread waits for something else until `woken_by` makes it ready.
pub(super) fn waiting(fault: bool, woken_by: Option<String>) -> Cause {
    if fault {
        return with_detail(CauseKind::PageFault, "major: the page had to be fetched");
    }
    with_detail(CauseKind::Blocked, woken_by.map(|waker| format!("woken by {waker}")).unwrap_or_default())
}

/// The exit from an idle state; without a name if no event names the state.
pub(super) fn idle_exit(idle: Idle) -> Cause {
    Cause::new(CauseKind::IdleExit, idle.state.map(|state| state.to_string()).unwrap_or_default())
}

pub(super) fn with_detail(kind: CauseKind, detail: impl Into<String>) -> Cause {
    Cause { kind, detail: detail.into(), ..Cause::default() }
}

/// True for threads that run softirqs instead of the end of an interrupt.
fn runs_softirqs(comm: &Comm) -> bool {
    ["ksoftirqd/", "ktimers/", "irq/", "napi/"].iter().any(|start| comm.0.starts_with(start.as_bytes()))
}

/// Reason why a thread runs although a thread of priority `own_priority` is ready.
///
/// Ordinary threads share the CPU, regardless of their nice values.
pub(super) fn why(thread: Thread, own_priority: i32) -> Option<Why> {
    let (priority, comm) = thread.known?;
    // The thread that stops a CPU is above all priorities, but has the highest real-time priority in events.
    let stopper = comm.0.starts_with(b"migration/");
    Some(if stopper {
        Why::HigherPriority
    } else if priority == own_priority || !is_real_time(priority) && !is_real_time(own_priority) {
        Why::SamePriority
    } else if priority < own_priority {
        Why::HigherPriority
    } else {
        Why::PreemptionOff
    })
}
