//! Finds the culprits of one spike in the events of its CPU.
//!
//! | module | contents |
//! |---|---|
//! | `context` | interrupts, softirqs and timer callbacks on top of a thread |
//! | `replay` | replays the events of a CPU to its states over time |
//! | `thread_state` | the states of the measuring thread over time |
//! | `analysis` | combines both for one wake-up |
//! | `classify` | gives each time slice its cause |
//! | `causes` | builds causes from threads, interrupts and timers |
//! | `shares` | merges slices to a time line, and sums them to shares |
//! | `wake_up` | the wake-up to explain |

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

pub(crate) use causes::TURNED_OFF_IN;
pub(crate) use classify::LOST_EVENTS;
pub(crate) use classify::{IDLE_STATE_PREFIX, IN_PREVIOUS_CYCLE, MAX_SWITCH_NS};
pub use shares::MAX_STRETCHES;
pub use wake_up::{MeasuredThread, WakeUp, Work};

/// Length of the time line before the deadline, ns.
pub const BEFORE_NS: u64 = 100_000;

/// The culprits of one spike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// The main cause, then the others, the largest share first. The shares add up to the time from the deadline to the
    /// end.
    pub culprits: Vec<Culprit>,
    /// The use of the CPU over time, from a little before the deadline to the wake-up: at most [`MAX_STRETCHES`]
    /// stretches.
    pub timeline: Vec<Stretch>,
    /// Source and completeness of the explanation.
    pub evidence: Evidence,
}

impl Explanation {
    /// The main cause of the spike; `None` if the wake-up was not late.
    #[must_use]
    pub fn main(&self) -> Option<&Cause> {
        self.culprits.first().map(|culprit| &culprit.cause)
    }
}

/// Finds what kept the CPU from the measuring thread between its deadline and its wake-up, and during its work after
/// that.
///
/// `events` are in order of time, and start well before the deadline; they may include events of other CPUs. `symbol`
/// returns the name of the kernel function at an address. From `complete_since_ns` on, no event is missing; `None` if
/// it is unknown whether events are missing.
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
    // The event of an NMI is written at its end, which may be after the end of the spike.
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
    let complete = complete_since_ns.is_some() && analysis.is_complete();
    Explanation {
        culprits: shares::culprits(&segments[late..], wake_up.work.usual_ns),
        timeline: shares::timeline(segments, deadline_ns),
        evidence: if complete { Evidence::Trace } else { Evidence::Incomplete },
    }
}
