//! What a CPU did, moment by moment: which thread had it, under which interrupts and softirqs, in which idle state.

use std::collections::HashMap;

use super::context::{Context, Edge, Open, begun_before, edge};
use crate::{
    Event, EventKind, Task,
    event::{Comm, PrevState},
};

/// A thread, as far as the events tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thread {
    pub pid: u32,
    /// Its priority and command; `None` when no event names them.
    pub known: Option<(i32, Comm)>,
}

/// Every thread that an event names.
#[derive(Debug, Default)]
pub(super) struct Tasks(HashMap<u32, Task>);

/// The idle state that the CPU was last sent into, while the idle thread has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Idle {
    /// `None` when that was before the first event, as the next.
    pub state: Option<u32>,
    pub entered_ns: Option<u64>,
    pub left_ns: Option<u64>,
}

/// Whether interrupts are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Irqs {
    On,
    /// Off, and the place that turned them off; `None` when that was before the first event.
    Off(Option<u64>),
}

/// The CPU from one event to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuState {
    pub from_ns: u64,
    pub thread: Thread,
    /// When the thread got the CPU; `None` when that was before the first event.
    pub switched_ns: Option<u64>,
    /// What runs on top of the thread.
    pub top: Option<Open>,
    /// Whether that is an interrupt, or in one.
    pub in_interrupt: bool,
    /// The softirq that runs, also below an interrupt.
    pub softirq: Option<u32>,
    pub idle: Option<Idle>,
    /// The scheduler passed over a real-time thread that could have run.
    pub passed_over: bool,
    /// `None` where the trace does not tell.
    pub irqs: Option<Irqs>,
    /// The place that turned preemption off, while it is.
    pub preempt_off: Option<u64>,
}

/// The measuring thread was made ready on this CPU.
#[derive(Debug, Clone)]
pub(super) struct Waking {
    pub at_ns: u64,
    pub by: Thread,
    /// What ran on top of that thread, the innermost last.
    pub stack: Vec<Open>,
}

/// A softirq was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raised {
    pub at_ns: u64,
    pub vec: u32,
    /// The interrupt that did it.
    pub interrupt: Option<Open>,
}

/// What a CPU did.
#[derive(Debug, Default)]
pub(super) struct CpuHistory {
    /// In order of time, the first from 0 on; each lasts until the next, the last one for ever. Empty without events.
    pub states: Vec<CpuState>,
    pub wakings: Vec<Waking>,
    pub raised: Vec<Raised>,
}

/// The state of the CPU while its events are gone through.
struct Cpu<'a> {
    tasks: &'a Tasks,
    now: CpuState,
    stack: Vec<Open>,
    /// Softirqs that threads were taken off the CPU in, as PREEMPT_RT does.
    suspended: HashMap<u32, Vec<Open>>,
    opened: u32,
    /// Whether the trace tells of idle states.
    tells_idle: bool,
}

impl CpuHistory {
    /// Goes through the events of one CPU, which are in order of time.
    pub fn of(events: &[&Event], tasks: &Tasks, waiter_pid: u32) -> Self {
        let Some(mut cpu) = Cpu::before(events, tasks) else { return Self::default() };
        let mut history = Self { states: vec![cpu.now], ..Self::default() };
        for event in events {
            cpu.take(event);
            match event.kind {
                EventKind::Waking { task, .. } if task.pid == waiter_pid => {
                    history.wakings.push(Waking { at_ns: event.at_ns, by: cpu.now.thread, stack: cpu.stack.clone() });
                }
                EventKind::SoftirqRaise { vec } => {
                    let interrupt = cpu.stack.iter().rfind(|open| open.context.is_hard()).copied();
                    history.raised.push(Raised { at_ns: event.at_ns, vec, interrupt });
                }
                _ => {}
            }
            history.note(CpuState { from_ns: event.at_ns, ..cpu.now });
        }
        history
    }

    /// Who asked for this softirq before it began.
    pub fn raised_before(&self, softirq: Open) -> Option<Raised> {
        let asked = |raised: &&Raised| {
            softirq.since_ns.is_none_or(|since_ns| raised.at_ns <= since_ns)
                && softirq.context == Context::Softirq { vec: raised.vec }
        };
        self.raised.iter().rfind(asked).copied()
    }

    fn note(&mut self, cpu_state: CpuState) {
        match self.states.last_mut() {
            Some(last) if last.from_ns >= cpu_state.from_ns => *last = CpuState { from_ns: last.from_ns, ..cpu_state },
            Some(last) if *last == (CpuState { from_ns: last.from_ns, ..cpu_state }) => {}
            _ => self.states.push(cpu_state),
        }
    }
}

impl<'a> Cpu<'a> {
    /// The CPU before the first event, as far as the events tell: who was switched away first had it; what ends
    /// without a begin was under way.
    fn before(events: &[&Event], tasks: &'a Tasks) -> Option<Self> {
        let first = events.first()?;
        let first_switch = events.iter().position(|event| matches!(event.kind, EventKind::Switch { .. }));
        let before_switch = &events[..first_switch.unwrap_or(events.len())];
        let thread = match events.get(before_switch.len()).map(|event| event.kind) {
            Some(EventKind::Switch { from, .. }) => from.into(),
            _ => tasks.thread(first.pid),
        };
        let tells_idle = events.iter().any(|event| matches!(event.kind, EventKind::Idle { .. }));
        let now = CpuState {
            from_ns: 0,
            thread,
            switched_ns: None,
            top: None,
            in_interrupt: false,
            softirq: None,
            idle: idle_before(before_switch).filter(|_| thread.pid == 0),
            passed_over: false,
            irqs: irqs_before(events),
            preempt_off: None,
        };
        let mut cpu = Self { tasks, now, stack: Vec::new(), suspended: HashMap::new(), opened: 0, tells_idle };
        for context in begun_before(before_switch) {
            cpu.open(context, None);
        }
        Some(cpu)
    }

    fn take(&mut self, event: &Event) {
        if self.now.thread.pid != event.pid {
            // A switch is missing.
            self.put_on(self.tasks.thread(event.pid), None);
        }
        match edge(&event.kind) {
            Some(Edge::Begin(context)) => return self.open(context, Some(event.at_ns)),
            Some(Edge::End(context)) => return self.close(context),
            None => {}
        }
        match event.kind {
            EventKind::Switch { from, prev_state, to } => {
                let passes_over = is_real_time(from.priority) && prev_state == PrevState::Preempted;
                let passed_over = (self.now.passed_over || passes_over) && !is_real_time(to.priority);
                self.put_on(to.into(), Some(event.at_ns));
                self.now.passed_over = passed_over;
            }
            EventKind::Idle { state: Some(state) } => {
                self.now.idle = Some(Idle { state: Some(state), entered_ns: Some(event.at_ns), left_ns: None });
            }
            EventKind::Idle { state: None } => {
                self.now.idle = Some(Idle { left_ns: Some(event.at_ns), ..self.now.idle.unwrap_or_default() });
            }
            EventKind::IrqsOff { caller } => self.now.irqs = Some(Irqs::Off(Some(caller))),
            EventKind::IrqsOn { .. } => self.now.irqs = Some(Irqs::On),
            EventKind::PreemptOff { caller } => self.now.preempt_off = Some(caller),
            EventKind::PreemptOn { .. } => self.now.preempt_off = None,
            _ => {}
        }
    }

    /// No thread is switched in or out in an interrupt. One that is in a softirq goes on with it when it is back.
    fn put_on(&mut self, thread: Thread, switched_ns: Option<u64>) {
        if let Some(hard) = self.stack.iter().position(|open| open.context.is_hard()) {
            self.stack.truncate(hard);
        }
        let back_in = self.suspended.remove(&thread.pid).unwrap_or_default();
        let prev_state = std::mem::replace(&mut self.stack, back_in);
        if !prev_state.is_empty() {
            self.suspended.insert(self.now.thread.pid, prev_state);
        }
        (self.now.thread, self.now.switched_ns) = (thread, switched_ns);
        self.now.idle = (thread.pid == 0 && !self.tells_idle).then(Idle::default);
        self.show_stack();
    }

    fn open(&mut self, context: Context, since_ns: Option<u64>) {
        self.opened += 1;
        self.stack.push(Open { context, since_ns, id: self.opened });
        self.show_stack();
    }

    /// Closes the innermost such context, and what began in it and was not seen to end.
    fn close(&mut self, context: Context) {
        if let Some(index) = self.stack.iter().rposition(|open| open.context.ends_with(context)) {
            self.stack.truncate(index);
        }
        self.show_stack();
    }

    fn show_stack(&mut self) {
        self.now.top = self.stack.last().copied();
        self.now.in_interrupt = self.stack.iter().any(|open| open.context.is_hard());
        self.now.softirq = self.stack.iter().rev().find_map(|open| match open.context {
            Context::Softirq { vec } => Some(vec),
            _ => None,
        });
    }
}

/// The idle state of an idle CPU before these events: unknown if the first thing told of it is that it leaves one, or
/// nothing; none if it is first sent into one.
fn idle_before(events: &[&Event]) -> Option<Idle> {
    let first = events.iter().find_map(|event| match event.kind {
        EventKind::Idle { state } => Some(state),
        _ => None,
    });
    if matches!(first, Some(Some(_))) { None } else { Some(Idle::default()) }
}

/// Whether interrupts were on before these events: the opposite of what is told first.
fn irqs_before(events: &[&Event]) -> Option<Irqs> {
    events.iter().find_map(|event| match event.kind {
        EventKind::IrqsOff { .. } => Some(Irqs::On),
        EventKind::IrqsOn { .. } => Some(Irqs::Off(None)),
        _ => None,
    })
}

impl From<Task> for Thread {
    fn from(task: Task) -> Self {
        Self { pid: task.pid, known: Some((task.priority, task.comm)) }
    }
}

impl Tasks {
    /// The threads that these events name, as they were named last.
    pub fn of(events: &[&Event]) -> Self {
        let mut tasks = HashMap::new();
        for event in events {
            match event.kind {
                EventKind::Switch { from, to, .. } => tasks.extend([(from.pid, from), (to.pid, to)]),
                EventKind::Waking { task, .. } => tasks.extend([(task.pid, task)]),
                _ => {}
            }
        }
        Self(tasks)
    }

    /// The thread of this number, with what is known of it.
    pub fn thread(&self, pid: u32) -> Thread {
        self.0.get(&pid).map_or(Thread { pid, known: None }, |&task| task.into())
    }
}

/// Whether a priority is of the real-time or the deadline class.
pub(super) fn is_real_time(priority: i32) -> bool {
    priority < 100
}
