//! What runs on top of a thread: interrupts, softirqs, timers' callbacks.

use crate::{Event, EventKind, Name};

/// Something that runs on top of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// A device's handler; its name is in the event that begins it.
    Irq { irq: u32, name: Option<Name> },
    /// An interrupt of the CPU's own.
    Vector { name: Name },
    /// A softirq.
    Softirq { vec: u32 },
    /// A timer's callback; the function is in the event that begins it.
    Timer { timer: u64, function: Option<u64> },
}

/// A context that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub context: Context,
    /// When it began; `None` when that was before the first event.
    pub since_ns: Option<u64>,
    /// Tells it from others of its kind.
    pub id: u32,
}

/// A begin or an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Begin(Context),
    End(Context),
}

impl Context {
    /// Whether it is an interrupt: no thread switch happens in it, and no other interrupt but an NMI.
    pub fn is_hard(self) -> bool {
        matches!(self, Self::Irq { .. } | Self::Vector { .. })
    }

    /// Whether an end of `other` ends this.
    pub fn ends_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Irq { irq: a, .. }, Self::Irq { irq: b, .. }) => a == b,
            (Self::Timer { timer: a, .. }, Self::Timer { timer: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// The begin or end of a context that an event tells.
pub(super) fn edge(kind: &EventKind) -> Option<Edge> {
    Some(match *kind {
        EventKind::IrqEntry { irq, name } => Edge::Begin(Context::Irq { irq, name: Some(name) }),
        EventKind::IrqExit { irq } => Edge::End(Context::Irq { irq, name: None }),
        EventKind::VectorEntry { name } => Edge::Begin(Context::Vector { name }),
        EventKind::VectorExit { name } => Edge::End(Context::Vector { name }),
        EventKind::SoftirqEntry { vec } => Edge::Begin(Context::Softirq { vec }),
        EventKind::SoftirqExit { vec } => Edge::End(Context::Softirq { vec }),
        EventKind::TimerEntry { timer, function } => Edge::Begin(Context::Timer { timer, function: Some(function) }),
        EventKind::TimerExit { timer } => Edge::End(Context::Timer { timer, function: None }),
        _ => return None,
    })
}

/// What ends in these events without having begun in them, the outermost first.
pub(super) fn begun_before(events: &[&Event]) -> Vec<Context> {
    let mut open: Vec<Context> = Vec::new();
    let mut before: Vec<Context> = Vec::new();
    for edge in events.iter().filter_map(|event| edge(&event.kind)) {
        match edge {
            Edge::Begin(context) => open.push(context),
            Edge::End(context) => match open.iter().rposition(|open| open.ends_with(context)) {
                Some(index) => open.truncate(index),
                None => before.push(context),
            },
        }
    }
    before.reverse();
    before
}
