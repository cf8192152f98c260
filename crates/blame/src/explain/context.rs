//! Interrupts, softirqs and timer callbacks on top of a thread.

use crate::{Event, EventKind, Name};

/// Anything that runs on top of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// The handler of a device. Only the begin event has its name.
    Irq { irq: u32, name: Option<Name> },
    /// An interrupt of the CPU itself.
    Vector { name: Name },
    /// A softirq.
    Softirq { vec: u32 },
    /// The callback of a timer. Only the begin event has its function.
    Timer { timer: u64, function: Option<u64> },
}

/// A context that has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub context: Context,
    /// Begin, ns; `None` if it was before the first event.
    pub since_ns: Option<u64>,
    /// Distinguishes it from others of its kind.
    pub id: u32,
}

/// Begin or end of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Begin(Context),
    End(Context),
}

impl Context {
    /// True for interrupts: neither a thread switch nor another interrupt can happen in them, except an NMI.
    pub fn is_hard(self) -> bool {
        matches!(self, Self::Irq { .. } | Self::Vector { .. })
    }

    /// True if the end of `other` ends this context.
    pub fn ends_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Irq { irq: a, .. }, Self::Irq { irq: b, .. }) => a == b,
            (Self::Timer { timer: a, .. }, Self::Timer { timer: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// The context that an event begins or ends.
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

/// The contexts that end in these events but began before them, the outermost first.
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
