//! A bound of the scheduling latency from its causes: the worst lateness that the parts in a trace could make together.
//!
//! The bound is the least L with `L = B + W1(L) + W2(L) + ...`: B is the longest blocking without interference, and
//! Wi(L) is the most time that source i of interference took in any window of length L (its workload curve). Interference
//! comes from interrupts, softirqs, and threads of at least the same priority.
//!
//! Source: D. B. de Oliveira, D. Casini, R. S. de Oliveira, T. Cucinotta: "Demystifying the Real-Time Linux Scheduling
//! Latency", ECRTS 2020, theorem 8, with sliding windows for the interference. With all sections traced,
//! `B = max(POID, DST) + PSD + rest`. Without them, B is the sum of the longest delays of the thread's own wake-ups.
//!
//! | module | contents |
//! |---|---|
//! | `parts` | the parts in the events of one CPU |
//! | `sections` | the sections with interrupts or preemption off |
//! | `workload` | the workload curve of one source |

mod parts;
mod sections;
#[cfg(test)]
mod tests;
mod workload;

use record::{BoundBasis, BoundRefusal, Cause, CauseBound, CauseKind, Culprit, Series, Why};

use crate::{
    Comm, Names,
    explain::{MAX_SWITCH_NS, TURNED_OFF_IN},
};
pub use parts::{Longest, Parts, Target};
use sections::Section;
use workload::LONGEST_WINDOW_NS;

/// A run with fewer wake-ups has no bound.
const LEAST_WAKE_UPS: u64 = 1_000;
/// A shorter run has no bound, ns.
const LEAST_TIME_NS: u64 = 5_000_000_000;
/// At least this share of the measured time must be traced, percent.
const TRACED_PERCENT: u64 = 98;

/// The bound of one thread. `longest` contains its delays, and those of other threads that show the sections of its CPU.
/// `series` contains its measurements, and `symbol` returns the name of a function.
#[must_use]
pub fn cause_bound(
    parts: &mut Parts,
    longest: &Longest,
    series: &Series,
    names: &Names,
    symbol: &dyn Fn(u64) -> Option<String>,
) -> CauseBound {
    parts.finish();
    let mut bound = CauseBound {
        basis: if parts.target.has_sections { BoundBasis::Sections } else { BoundBasis::WakeUps },
        wake_ups: parts.wake_ups,
        traced_ns: parts.traced_ns(),
        events: parts.events,
        lost_events: parts.lost_events,
        read_ns: parts.read_ns,
        ..CauseBound::default()
    };
    match refusal(parts, series).map_or_else(|| culprits(parts, longest, series, names, symbol), Err) {
        Ok(culprits) => {
            bound.bound_ns = Some(culprits.iter().map(|culprit| culprit.ns).sum());
            bound.parts = culprits;
        }
        Err(refusal) => bound.refused = Some(refusal),
    }
    bound
}

fn refusal(parts: &Parts, series: &Series) -> Option<BoundRefusal> {
    let measured_ns = (series.samples + series.missed).saturating_mul(series.period_ns);
    match () {
        () if parts.target.priority >= 100 => Some(BoundRefusal::NotRealTime),
        () if parts.given_up => Some(BoundRefusal::TooCostly),
        () if parts.lost => Some(BoundRefusal::LostEvents),
        () if series.samples < LEAST_WAKE_UPS || measured_ns < LEAST_TIME_NS => Some(BoundRefusal::TooShort),
        () if parts.wake_ups == 0 || parts.traced_ns() < measured_ns / 100 * TRACED_PERCENT => {
            Some(BoundRefusal::PartOfTheTime)
        }
        () => None,
    }
}

/// The parts of the bound, the largest first. They add up to it.
fn culprits(
    parts: &Parts,
    longest: &Longest,
    series: &Series,
    names: &Names,
    symbol: &dyn Fn(u64) -> Option<String>,
) -> Result<Vec<Culprit>, BoundRefusal> {
    let max_ns = series.max_ns.unwrap_or(0).max(0).unsigned_abs();
    let mut culprits = blocking(parts, longest, symbol);
    let blocking_ns = culprits.iter().map(|culprit| culprit.ns).sum();
    let bound_ns = fixed_point(blocking_ns, |window_ns| {
        parts.sources.iter().map(|(_, workload)| workload.most_ns(window_ns)).sum()
    })
    .ok_or(BoundRefusal::Overload)?;
    let of_source = |(source, workload): &(parts::Source, workload::Workload)| Culprit {
        cause: source.cause(names, parts.target.priority),
        ns: workload.most_ns(bound_ns),
    };
    culprits.extend(parts.sources.iter().map(of_source));
    let sum_ns: u64 = culprits.iter().map(|culprit| culprit.ns).sum();
    let unexplained = Cause { detail: "measured, but not traced".to_owned(), ..Cause::default() };
    culprits.push(Culprit { cause: unexplained, ns: max_ns.saturating_sub(sum_ns) });
    culprits.retain(|culprit| culprit.ns > 0);
    culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.ns));
    Ok(culprits)
}

/// The least L with `L = blocking + interference(L)`; `None` beyond the longest window of the curves.
fn fixed_point(blocking_ns: u64, interference: impl Fn(u64) -> u64) -> Option<u64> {
    let mut bound_ns = blocking_ns;
    loop {
        if bound_ns > LONGEST_WINDOW_NS {
            return None;
        }
        let next_ns = blocking_ns + interference(bound_ns);
        if next_ns == bound_ns {
            return Some(bound_ns);
        }
        bound_ns = next_ns;
    }
}

/// The longest blocking without interference, with the causes of its parts.
fn blocking(parts: &Parts, longest: &Longest, symbol: &dyn Fn(u64) -> Option<String>) -> Vec<Culprit> {
    let path = |ns| Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns };
    let &Longest { idle, busy, own_ns, outside_ns } = longest;
    if parts.target.has_sections {
        let sections = &parts.sections;
        let outside = Cause { detail: "with interrupts and preemption on".to_owned(), ..Cause::default() };
        let outside = Culprit { cause: outside, ns: outside_ns };
        let scheduler_ns = own_ns + sections.before_switch_ns;
        if sections.longest.ns < sections.after_switch_ns {
            return vec![path(scheduler_ns + sections.after_switch_ns), outside];
        }
        let Section { ns, irqs, caller, thread } = sections.longest;
        let function = symbol(caller).unwrap_or_else(|| format!("{caller:#x}"));
        let cause = Cause {
            why: Some(if irqs { Why::InterruptsOff } else { Why::PreemptionOff }),
            detail: format!("{TURNED_OFF_IN}{function}"),
            ..Cause::new(CauseKind::Thread, thread.to_string())
        };
        return vec![path(scheduler_ns), outside, Culprit { cause, ns }];
    }
    if idle.late_ns + idle.blocked_ns > busy.late_ns + busy.blocked_ns {
        // On an idle CPU, only the way from the idle state to the thread has preemption off.
        let late = Culprit { cause: Cause::new(CauseKind::IdleExit, ""), ns: idle.late_ns };
        return vec![late, path(idle.blocked_ns + own_ns)];
    }
    let late = Culprit { cause: Cause::new(CauseKind::LateInterrupt, name(busy.late_by)), ns: busy.late_ns };
    // A shorter time is the kernel's way from one thread to the next.
    if busy.blocked_ns <= MAX_SWITCH_NS {
        return vec![late, path(busy.blocked_ns + own_ns)];
    }
    let blocked = Cause { why: Some(Why::PreemptionOff), ..Cause::new(CauseKind::Thread, name(busy.blocked_by)) };
    vec![late, Culprit { cause: blocked, ns: busy.blocked_ns }, path(own_ns)]
}

fn name(comm: Option<Comm>) -> String {
    comm.map(|comm| comm.to_string()).unwrap_or_default()
}
