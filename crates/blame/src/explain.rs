//! From the events of a CPU to the culprits of one spike.
//!
//! | module | holds |
//! |---|---|
//! | `context` | what runs on top of a thread: interrupts, softirqs, timers |
//! | `replay` | what a CPU did, moment by moment |
//! | `measured` | what the measuring thread was at |
//! | `analysis` | both, laid over each other |
//! | `label` | each piece of time with its cause |
//! | `causes` | causes in the terms of the machine |
//! | `shares` | stretches of time with their causes: merged, bounded, added up |

mod analysis;
mod causes;
mod classify;
mod context;
mod replay;
mod shares;
#[cfg(test)]
mod tests;
mod thread_state;
mod wake_up;

use record::{Cause, Culprit, Evidence, Stretch};

use crate::{Event, EventKind, Names};
use analysis::Analysis;
use causes::Causes;

pub(crate) use classify::IDLE_STATE_PREFIX;
pub use shares::MAX_STRETCHES;
pub use wake_up::{MeasuredThread, WakeUp, Work};

/// How long before the deadline a time line begins, ns.
pub const BEFORE_NS: u64 = 100_000;

/// Who made a spike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// The main cause, then the others, the largest share first. The shares add up to the time from the deadline to the end.
    pub culprits: Vec<Culprit>,
    /// What had the CPU, in order of time, from a little before the deadline to the wake-up. At most [`MAX_STRETCHES`].
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
    measured: &MeasuredThread,
    wake_up: WakeUp,
    complete_since_ns: Option<u64>,
) -> Explanation {
    let (deadline_ns, end_ns) = (wake_up.deadline_ns, wake_up.end_ns());
    let known_since_ns = complete_since_ns.unwrap_or(0);
    // An NMI is told when it ends, which may be after that.
    let counts = |event: &&Event| {
        let until_ns = if matches!(event.kind, EventKind::Nmi { .. }) { u64::MAX } else { end_ns };
        (known_since_ns..=until_ns).contains(&event.at_ns)
    };
    let mut events: Vec<&Event> = events.iter().filter(counts).collect();
    events.sort_by_key(|event| event.at_ns);

    let analysis = Analysis::new(&events, *measured, wake_up, known_since_ns);
    let causes = Causes { names, symbol, cpu: measured.cpu };
    let slices =
        analysis.slices(deadline_ns.min(end_ns).saturating_sub(BEFORE_NS).max(known_since_ns.min(deadline_ns)));
    let segments = classify::segments(&analysis, &slices, &causes);
    let late = segments.partition_point(|segment| segment.from_ns < deadline_ns);
    let whole = complete_since_ns.is_some() && analysis.is_whole();
    Explanation {
        culprits: shares::culprits(&segments[late..], wake_up.work.usual_ns),
        timeline: shares::timeline(segments, deadline_ns),
        evidence: if whole { Evidence::Trace } else { Evidence::Incomplete },
    }
}
