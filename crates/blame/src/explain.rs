//! From the events of a CPU to the culprits of one spike.
//!
//! | module | holds |
//! |---|---|
//! | `context` | what runs on top of a thread: interrupts, softirqs, timers |
//! | `replay` | what a CPU did, moment by moment |
//! | `waiter` | what the measuring thread was at |
//! | `scene` | both, laid over each other |
//! | `label` | each piece of time with its cause |
//! | `words` | causes in the terms of the machine |
//! | `shares` | stretches of time with their causes: merged, bounded, added up |

mod context;
mod label;
mod replay;
mod scene;
mod shares;
#[cfg(test)]
mod tests;
mod waiter;
mod words;

use record::{Cause, Culprit, Evidence, Stretch};

use crate::{Event, Names, What};
use scene::Scene;
use words::Words;

pub use shares::STRETCHES;

/// How long before the deadline a time line begins, ns.
pub const BEFORE_NS: u64 = 100_000;

/// The measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// Its process id (that of the thread).
    pub pid: u32,
    /// Its priority as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus it), 100 to 139 ordinary.
    pub priority: i32,
    /// The CPU on which it woke.
    pub cpu: u32,
    /// It never sleeps: what is explained is a gap, from the deadline to the wake-up, in which it did not get on.
    pub spins: bool,
}

/// One wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// When it was to be, ns on CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// When the measuring thread looked at the clock, ns on CLOCK_MONOTONIC.
    pub woke_ns: u64,
    /// What it did then, where that is to be explained, too.
    pub work: Work,
}

/// Work that a measuring thread did as soon as it woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// How long it took, ns.
    pub ns: u64,
    /// How long it usually takes, ns.
    pub usual_ns: u64,
}

impl Wake {
    /// When everything that is to be explained was over, ns on CLOCK_MONOTONIC.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.woke_ns.saturating_add(self.work.ns)
    }
}

/// Who made a spike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// The main cause, then the others, the largest share first. The shares add up to the time from the deadline to the end.
    pub culprits: Vec<Culprit>,
    /// What had the CPU, in order of time, from a little before the deadline to the wake-up. At most [`STRETCHES`].
    pub timeline: Vec<Stretch>,
    /// What it was found from.
    pub evidence: Evidence,
}

impl Explanation {
    /// The main cause of the spike; `None` when it was not late.
    #[must_use]
    pub fn main(&self) -> Option<&Cause> {
        self.culprits.first().map(|culprit| &culprit.cause)
    }
}

/// Finds who kept the CPU from the measuring thread between its deadline and its wake-up, and while it worked after that.
///
/// `events` are in order of time and reach from well before the deadline to the end; those of other CPUs may be
/// among them. `symbol` names the kernel function at an address. The trace is complete from `complete_since_ns` on;
/// `None` when that is not known of any time.
#[must_use]
pub fn explain(
    events: &[Event],
    names: &Names,
    symbol: &dyn Fn(u64) -> Option<String>,
    waiter: &Waiter,
    wake: Wake,
    complete_since_ns: Option<u64>,
) -> Explanation {
    let (deadline_ns, end_ns) = (wake.deadline_ns, wake.end_ns());
    let known_since_ns = complete_since_ns.unwrap_or(0);
    // An NMI is told when it ends, which may be after that.
    let counts = |event: &&Event| {
        let until_ns = if matches!(event.what, What::Nmi { .. }) { u64::MAX } else { end_ns };
        (known_since_ns..=until_ns).contains(&event.at_ns)
    };
    let mut events: Vec<&Event> = events.iter().filter(counts).collect();
    events.sort_by_key(|event| event.at_ns);

    let scene = Scene::new(&events, *waiter, wake, known_since_ns);
    let words = Words { names, symbol, cpu: waiter.cpu };
    let slices = scene.slices(deadline_ns.min(end_ns).saturating_sub(BEFORE_NS).max(known_since_ns.min(deadline_ns)));
    let pieces = label::pieces(&scene, &slices, &words);
    let late = pieces.partition_point(|piece| piece.from_ns < deadline_ns);
    let whole = complete_since_ns.is_some() && scene.is_whole();
    Explanation {
        culprits: shares::culprits(&pieces[late..], wake.work.usual_ns),
        timeline: shares::timeline(pieces, deadline_ns),
        evidence: if whole { Evidence::Trace } else { Evidence::Incomplete },
    }
}
