//! Replays the events of a CPU: its thread, contexts and idle state over time.

use std::collections::HashMap;

use super::context::{Context, Edge, Open, begun_before, edge};
use crate::{
    Event, EventKind, Task,
    event::{Comm, PrevState},
};

/// A thread, as far as events describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thread {
    pub pid: u32,
    /// Priority and command; `None` if no event contains them.
    pub known: Option<(i32, Comm)>,
}

/// The threads that events describe, by id.
#[derive(Debug, Default)]
pub(super) struct Tasks(HashMap<u32, Task>);

/// The last idle state of the CPU, while the idle thread has the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Idle {
    /// This and the next field are `None` if the CPU entered the state before the first event.
    pub state: Option<u32>,
    pub entered_ns: Option<u64>,
    pub left_ns: Option<u64>,
}

/// State of the interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Irqs {
    On,
    /// Disabled, with the address of the code that disabled them; `None` if that was before the first event.
    Off(Option<u64>),
}

/// State of the CPU from one event to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuState {
    pub from_ns: u64,
    pub thread: Thread,
    /// When the thread got the CPU, ns; `None` if that was before the first event.
    pub switched_ns: Option<u64>,
    /// The innermost context on top of the thread.
    pub top: Option<Open>,
    /// True if an interrupt runs, also below other contexts.
    pub in_interrupt: bool,
    /// The softirq that runs, also below other contexts.
    pub softirq: Option<u32>,
    pub idle: Option<Idle>,
    /// True if the scheduler chose another thread although a real-time thread was ready.
    pub passed_over: bool,
    /// `None` if the trace does not show it.
    pub irqs: Option<Irqs>,
    /// Address of the code that disabled preemption; `None` while it is enabled.
    pub preempt_off: Option<u64>,
}

/// The measuring thread was made ready on this CPU.
#[derive(Debug, Clone)]
pub(super) struct Waking {
    pub at_ns: u64,
    pub by: Thread,
    /// The contexts on top of the waking thread, the innermost last.
    pub stack: Vec<Open>,
}

/// A softirq was raised.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raised {
    pub at_ns: u64,
    pub vec: u32,
    /// The interrupt that raised it.
    pub interrupt: Option<Open>,
}

/// The states of a CPU over time.
#[derive(Debug, Default)]
pub(super) struct CpuHistory {
    /// In order of time, starting at 0. Each state lasts until the next one. Empty without events.
    pub states: Vec<CpuState>,
    pub wakings: Vec<Waking>,
    pub raised: Vec<Raised>,
}

/// The state of the CPU during the replay.
struct Cpu<'a> {
    tasks: &'a Tasks,
    now: CpuState,
    stack: Vec<Open>,
    /// Contexts of threads that were switched out inside a softirq, as on PREEMPT_RT, by thread id.
    suspended: HashMap<u32, Vec<Open>>,
    opened: u32,
    /// True if the trace contains idle states.
    has_idle_events: bool,
}

impl CpuHistory {
    /// Replays the events of one CPU, which are in order of time.
    pub fn of(events: &[&Event], tasks: &Tasks, measured_pid: u32) -> Self {
        let Some(mut cpu) = Cpu::before(events, tasks) else { return Self::default() };
        let mut history = Self { states: vec![cpu.now], ..Self::default() };
        for event in events {
            cpu.take(event);
            match event.kind {
                EventKind::Waking { task, .. } if task.pid == measured_pid => {
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

    /// The last raise of this softirq before it began.
    pub fn raised_before(&self, softirq: Open) -> Option<Raised> {
        let is_raise = |raised: &&Raised| {
            softirq.since_ns.is_none_or(|since_ns| raised.at_ns <= since_ns)
                && softirq.context == Context::Softirq { vec: raised.vec }
        };
        self.raised.iter().rfind(is_raise).copied()
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
    /// The state before the first event. The first thread to be switched out had the CPU; contexts that end without a
    /// begin were active.
    fn before(events: &[&Event], tasks: &'a Tasks) -> Option<Self> {
        let first = events.first()?;
        let first_switch = events.iter().position(|event| matches!(event.kind, EventKind::Switch { .. }));
        let before_switch = &events[..first_switch.unwrap_or(events.len())];
        let thread = match events.get(before_switch.len()).map(|event| event.kind) {
            Some(EventKind::Switch { from, .. }) => from.into(),
            _ => tasks.thread(first.pid),
        };
        let has_idle_events = events.iter().any(|event| matches!(event.kind, EventKind::Idle { .. }));
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
        let mut cpu = Self { tasks, now, stack: Vec::new(), suspended: HashMap::new(), opened: 0, has_idle_events };
        for context in begun_before(before_switch) {
            cpu.open(context, None);
        }
        Some(cpu)
    }

    fn take(&mut self, event: &Event) {
        if self.now.thread.pid != event.pid {
            // A switch event is missing.
            self.switch_to(self.tasks.thread(event.pid), None);
        }
        match edge(&event.kind) {
            Some(Edge::Begin(context)) => return self.open(context, Some(event.at_ns)),
            Some(Edge::End(context)) => return self.close(context),
            None => {}
        }
        match event.kind {
            EventKind::Switch { from, prev_state, to } => {
                let passes_over_ready = is_real_time(from.priority) && prev_state == PrevState::Preempted;
                let passed_over = (self.now.passed_over || passes_over_ready) && !is_real_time(to.priority);
                self.switch_to(to.into(), Some(event.at_ns));
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

    /// Switches the thread. Interrupts end before a switch; a suspended softirq continues when its thread returns.
    fn switch_to(&mut self, thread: Thread, switched_ns: Option<u64>) {
        if let Some(hard) = self.stack.iter().position(|open| open.context.is_hard()) {
            self.stack.truncate(hard);
        }
        let resumed = self.suspended.remove(&thread.pid).unwrap_or_default();
        let suspended = std::mem::replace(&mut self.stack, resumed);
        if !suspended.is_empty() {
            self.suspended.insert(self.now.thread.pid, suspended);
        }
        (self.now.thread, self.now.switched_ns) = (thread, switched_ns);
        self.now.idle = (thread.pid == 0 && !self.has_idle_events).then(Idle::default);
        self.update_contexts();
    }

    fn open(&mut self, context: Context, since_ns: Option<u64>) {
        self.opened += 1;
        self.stack.push(Open { context, since_ns, id: self.opened });
        self.update_contexts();
    }

    /// Closes the innermost such context, and the contexts inside it whose end event is missing.
    fn close(&mut self, context: Context) {
        if let Some(index) = self.stack.iter().rposition(|open| open.context.ends_with(context)) {
            self.stack.truncate(index);
        }
        self.update_contexts();
    }

    fn update_contexts(&mut self) {
        self.now.top = self.stack.last().copied();
        self.now.in_interrupt = self.stack.iter().any(|open| open.context.is_hard());
        self.now.softirq = self.stack.iter().rev().find_map(|open| match open.context {
            Context::Softirq { vec } => Some(vec),
            _ => None,
        });
    }
}

/// The idle state of an idle CPU before these events: none if the first event enters a state, else unknown.
fn idle_before(events: &[&Event]) -> Option<Idle> {
    let first = events.iter().find_map(|event| match event.kind {
        EventKind::Idle { state } => Some(state),
        _ => None,
    });
    if matches!(first, Some(Some(_))) { None } else { Some(Idle::default()) }
}

/// The state of interrupts before these events: the opposite of the first change.
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
    /// The threads in these events, with their last known priority and command.
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

    /// The thread with this id.
    pub fn thread(&self, pid: u32) -> Thread {
        self.0.get(&pid).map_or(Thread { pid, known: None }, |&task| task.into())
    }
}

/// True for priorities of the real-time and deadline classes.
pub(super) fn is_real_time(priority: i32) -> bool {
    priority < 100
}
