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
pub use parts::{Parts, Target};
use workload::LONGEST_WINDOW_NS;

/// A run with fewer wake-ups has no bound.
const LEAST_WAKE_UPS: u64 = 1_000;
/// A shorter run has no bound, ns.
const LEAST_TIME_NS: u64 = 5_000_000_000;
/// At least this share of the measured time must be traced, percent.
const TRACED_PERCENT: u64 = 98;

/// The bound of one thread. `series` contains the thread's measurements, and `symbol` returns the name of a function.
#[must_use]
pub fn cause_bound(
    parts: &mut Parts,
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
    match refusal(parts, series).map_or_else(|| culprits(parts, series, names, symbol), Err) {
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
    series: &Series,
    names: &Names,
    symbol: &dyn Fn(u64) -> Option<String>,
) -> Result<Vec<Culprit>, BoundRefusal> {
    let max_ns = series.max_ns.unwrap_or(0).max(0).unsigned_abs();
    let mut culprits = blocking(parts, max_ns, symbol);
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

/// The longest blocking without interference, with the causes of its parts. No delay of a wake-up was longer than the
/// largest lateness.
fn blocking(parts: &Parts, max_ns: u64, symbol: &dyn Fn(u64) -> Option<String>) -> Vec<Culprit> {
    let longest = &parts.longest;
    let path_ns = longest.own_ns.min(max_ns);
    if parts.target.has_sections {
        let (closed, sections) = (longest.outside_ns.min(max_ns), &parts.sections);
        let path_ns = path_ns + sections.before_switch_ns;
        let mut culprits = vec![Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns: path_ns }];
        let outside = Cause { detail: "with interrupts and preemption on".to_owned(), ..Cause::default() };
        culprits.push(Culprit { cause: outside, ns: closed });
        let section = &sections.longest;
        if section.ns < sections.after_switch_ns {
            culprits[0].ns += sections.after_switch_ns;
        } else {
            let why = if section.irqs { Why::InterruptsOff } else { Why::PreemptionOff };
            let function = symbol(section.caller).unwrap_or_else(|| format!("{:#x}", section.caller));
            let cause = Cause {
                why: Some(why),
                detail: format!("{TURNED_OFF_IN}{function}"),
                ..Cause::new(CauseKind::Thread, section.thread.to_string())
            };
            culprits.push(Culprit { cause, ns: section.ns });
        }
        return culprits;
    }
    let (idle, busy) = (&longest.idle, &longest.busy);
    let clipped = |ns: u64| ns.min(max_ns);
    let sum_ns = |delays: &parts::Delays| clipped(delays.late_ns) + clipped(delays.blocked_ns);
    if sum_ns(idle) > sum_ns(busy) {
        // Nothing can have preemption off on an idle CPU except the way from the idle state to the thread.
        let path = Cause::new(CauseKind::WakeUp, "");
        return vec![
            Culprit { cause: Cause::new(CauseKind::IdleExit, ""), ns: clipped(idle.late_ns) },
            Culprit { cause: path, ns: clipped(idle.blocked_ns) + path_ns },
        ];
    }
    let late = Cause::new(CauseKind::LateInterrupt, name(busy.late_by));
    let blocked = Cause { why: Some(Why::PreemptionOff), ..Cause::new(CauseKind::Thread, name(busy.blocked_by)) };
    let (late_ns, blocked_ns) = (clipped(busy.late_ns), clipped(busy.blocked_ns));
    // A shorter time is the kernel's way from one thread to the next.
    let (blocked_ns, path_ns) =
        if blocked_ns > MAX_SWITCH_NS { (blocked_ns, path_ns) } else { (0, path_ns + blocked_ns) };
    vec![
        Culprit { cause: late, ns: late_ns },
        Culprit { cause: blocked, ns: blocked_ns },
        Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns: path_ns },
    ]
}

fn name(comm: Option<Comm>) -> String {
    comm.map(|comm| comm.to_string()).unwrap_or_default()
}
