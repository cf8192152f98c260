//! Time segments with their causes: merged to a time line of limited length, and summed to shares.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use record::{Cause, CauseKind, Culprit, Stretch, Why};

/// Maximum number of stretches of a time line.
pub const MAX_STRETCHES: usize = 64;
/// Maximum number of stretches before the deadline.
const MAX_BEFORE: usize = 8;
/// If the normal wake-up path has the largest share, another cause with at least 1/`WAKE_UP_DIVISOR` of the lateness is
/// the main cause.
const WAKE_UP_DIVISOR: u64 = 4;
/// If the thread's own work has the largest share but was not longer than usual: the same with 1/`WORK_DIVISOR`.
const WORK_DIVISOR: u64 = 10;

/// A time segment and its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub from_ns: u64,
    pub to_ns: u64,
    pub cause: Cause,
    /// Distinguishes the runs of a thread or handler.
    pub run: u64,
}

impl Segment {
    fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// Causes with the same key are one culprit.
type Key<'a> = (CauseKind, &'a str, Option<u32>, Option<Why>);

fn key(cause: &Cause) -> Key<'_> {
    (cause.kind, &cause.name, cause.number, cause.why)
}

/// The segments of one cause.
struct Share<'a> {
    ns: u64,
    runs: HashSet<u64>,
    longest: &'a Segment,
}

/// Sums the time of each cause: the main cause first, then the largest share. The shares add up to the length of the
/// segments. `usual_work_ns` is the usual time of the thread's own work.
pub(super) fn culprits(segments: &[Segment], usual_work_ns: u64) -> Vec<Culprit> {
    let mut shares: Vec<Share<'_>> = Vec::new();
    let mut indices: HashMap<Key<'_>, usize> = HashMap::new();
    for segment in segments {
        let index = *indices.entry(key(&segment.cause)).or_insert(shares.len());
        if index == shares.len() {
            shares.push(Share { ns: 0, runs: HashSet::new(), longest: segment });
        }
        let share = &mut shares[index];
        share.ns += segment.ns();
        share.runs.insert(segment.run);
        if segment.ns() > share.longest.ns() {
            share.longest = segment;
        }
    }
    let mut culprits: Vec<Culprit> = shares.iter().map(Share::culprit).collect();
    let excess = split_excess_work(&mut culprits, usual_work_ns);
    culprits.extend(excess);
    culprits.sort_by_key(|culprit| Reverse(culprit.ns));
    if let Some(main) = main(&culprits, usual_work_ns) {
        culprits[..=main].rotate_right(1);
    }
    culprits
}

/// Splits the unexplained part from the thread's own work. A cold cache or a slower clock can double the usual time; a
/// longer time has a cause outside the trace.
fn split_excess_work(culprits: &mut [Culprit], usual_work_ns: u64) -> Option<Culprit> {
    let is_work = |culprit: &&mut Culprit| culprit.cause.kind == CauseKind::Work;
    let work = culprits.iter_mut().find(is_work).filter(|work| usual_work_ns > 0 && work.ns / 2 > usual_work_ns)?;
    let ns = std::mem::take(&mut work.ns) - usual_work_ns;
    work.ns = usual_work_ns;
    let detail = "the work took this much longer than usual, and no trace event explains it".to_owned();
    Some(Culprit { cause: Cause { detail, ..Cause::default() }, ns })
}

impl Share<'_> {
    fn culprit(&self) -> Culprit {
        let mut cause = self.longest.cause.clone();
        let is_transient = matches!(
            cause.kind,
            CauseKind::Interrupt | CauseKind::Softirq | CauseKind::Nmi | CauseKind::Timer | CauseKind::Thread
        );
        if self.runs.len() > 1 && is_transient && cause.detail.is_empty() {
            cause.detail = format!("ran {} times", self.runs.len());
        }
        Culprit { cause, ns: self.ns }
    }
}

/// Index of the main culprit. `culprits` are sorted, the largest share first.
///
/// Usually the first. Every wake-up has the normal wake-up path, so another named cause with a quarter of the lateness
/// is preferred to it. The thread's own work yields to a cause that took a tenth of the lateness and more than the work
/// exceeded its usual time.
fn main(culprits: &[Culprit], usual_work_ns: u64) -> Option<usize> {
    let first = culprits.first()?;
    let lateness_ns: u64 = culprits.iter().map(|culprit| culprit.ns).sum();
    let min_ns = match first.cause.kind {
        CauseKind::WakeUp => lateness_ns / WAKE_UP_DIVISOR,
        CauseKind::Work => (lateness_ns / WORK_DIVISOR).max(first.ns.saturating_sub(usual_work_ns).saturating_add(1)),
        _ => return Some(0),
    };
    let is_usual = |kind| matches!(kind, CauseKind::Unexplained | CauseKind::WakeUp);
    let is_informative = |culprit: &Culprit| !is_usual(culprit.cause.kind) && culprit.ns >= min_ns;
    Some(culprits.iter().skip(1).position(is_informative).map_or(0, |index| index + 1))
}

/// Merges segments of the same cause to a time line of at most [`MAX_STRETCHES`] stretches. The deadline is a boundary.
pub(super) fn timeline(mut segments: Vec<Segment>, deadline_ns: u64) -> Vec<Stretch> {
    let first_late = segments.partition_point(|segment| segment.from_ns < deadline_ns);
    let late = segments.split_off(first_late);
    let limited = [limited(segments, MAX_BEFORE), limited(late, MAX_STRETCHES - MAX_BEFORE)];
    let stretch = |segment: Segment| Stretch {
        start_ns: segment.from_ns.wrapping_sub(deadline_ns).cast_signed(),
        ns: segment.ns(),
        cause: segment.cause,
    };
    limited.into_iter().flatten().map(stretch).collect()
}

/// Merges neighbours of the same cause. If more than `max` segments remain, the shortest take the cause of the segment
/// before them (the first ones, of that after them).
fn limited(segments: Vec<Segment>, max: usize) -> Vec<Segment> {
    let merged = merge_neighbours(segments.into_iter());
    if merged.len() <= max {
        return merged;
    }
    let mut by_length: Vec<usize> = (0..merged.len()).collect();
    by_length.sort_by_key(|&index| Reverse(merged[index].ns()));
    let mut kept = vec![false; merged.len()];
    for &index in &by_length[..max] {
        kept[index] = true;
    }
    let first_kept = kept.iter().position(|&kept| kept).unwrap_or(0);
    let mut cause = merged[first_kept].cause.clone();
    merge_neighbours(merged.into_iter().zip(kept).map(|(segment, kept)| {
        if kept {
            cause.clone_from(&segment.cause);
        }
        Segment { cause: cause.clone(), ..segment }
    }))
}

fn merge_neighbours(segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut merged: Vec<Segment> = Vec::new();
    for segment in segments {
        match merged.last_mut() {
            Some(last) if key(&last.cause) == key(&segment.cause) => {
                if segment.ns() > last.ns() {
                    last.cause = segment.cause;
                }
                last.to_ns = segment.to_ns;
            }
            _ => merged.push(segment),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(of: &[(CauseKind, &str, u64)]) -> Vec<Segment> {
        let mut at_ns = 1000;
        let segment = |&(kind, name, ns): &(CauseKind, &str, u64)| {
            at_ns += ns;
            Segment { from_ns: at_ns - ns, to_ns: at_ns, cause: Cause::new(kind, name), run: at_ns }
        };
        of.iter().map(segment).collect()
    }

    fn names(culprits: &[Culprit]) -> Vec<(&str, u64)> {
        culprits.iter().map(|culprit| (culprit.cause.name.as_str(), culprit.ns)).collect()
    }

    #[test]
    fn sums_shares_and_counts_runs() {
        let segments = segments(&[
            (CauseKind::Interrupt, "eth0", 30),
            (CauseKind::Thread, "a", 50),
            (CauseKind::Interrupt, "eth0", 40),
            (CauseKind::WakeUp, "", 5),
        ]);
        let culprits = culprits(&segments, 0);
        assert_eq!(names(&culprits), [("eth0", 70), ("a", 50), ("", 5)]);
        assert_eq!(culprits[0].cause.detail, "ran 2 times");
    }

    #[test]
    fn prefers_a_quarter_of_the_lateness_to_the_wake_up_path() {
        let shares = |other: u64, kind| {
            let culprits = culprits(&segments(&[(CauseKind::WakeUp, "", 100 - other), (kind, "other", other)]), 0);
            names(&culprits)[0].0.to_owned()
        };
        assert_eq!(shares(25, CauseKind::Thread), "other");
        assert_eq!(shares(24, CauseKind::Thread), "");
        assert_eq!(shares(49, CauseKind::Unexplained), "", "the unexplained part is not preferred");
        assert_eq!(shares(51, CauseKind::Unexplained), "other", "the unexplained part is largest");
        assert_eq!(culprits(&[], 0), []);
    }

    #[test]
    fn prefers_other_causes_to_usual_work() {
        let main = |work: u64, other: u64, usual: u64| {
            let segments = segments(&[(CauseKind::Work, "", work), (CauseKind::Thread, "other", other)]);
            names(&culprits(&segments, usual))[0].0.to_owned()
        };
        assert_eq!(main(800, 200, 790), "other", "a fifth of the time, and the work was as long as usual");
        assert_eq!(main(800, 200, 500), "", "the work took 300 longer than usual");
        assert_eq!(main(950, 50, 950), "", "below a tenth");
        let stalled = culprits(&segments(&[(CauseKind::Work, "", 1900)]), 140);
        let found = stalled.iter().map(|culprit| (culprit.cause.kind, culprit.ns)).collect::<Vec<_>>();
        assert_eq!(found, [(CauseKind::Unexplained, 1760), (CauseKind::Work, 140)], "a stall is not work");
    }

    #[test]
    fn limits_the_time_line_and_keeps_its_length() {
        let mut of = vec![(CauseKind::Thread, "before", 40)];
        for at in 0..300 {
            of.push((CauseKind::Interrupt, if at % 2 == 0 { "a" } else { "b" }, 3 + at % 7));
        }
        of.insert(150, (CauseKind::Softirq, "long", 5000));
        let segments = segments(&of);
        let timeline = timeline(segments, 1040);
        assert!((10..=MAX_STRETCHES).contains(&timeline.len()));
        assert!(timeline.iter().any(|stretch| stretch.cause.name == "long" && stretch.ns >= 5000));
        assert_eq!((timeline[0].start_ns, timeline[0].ns), (-40, 40));
        assert_eq!(timeline[1].start_ns, 0);
        for pair in timeline.windows(2) {
            assert_eq!(pair[0].start_ns.saturating_add_unsigned(pair[0].ns), pair[1].start_ns);
        }
        let total: u64 = timeline[1..].iter().map(|stretch| stretch.ns).sum();
        assert_eq!(total, of[1..].iter().map(|&(_, _, ns)| ns).sum::<u64>());
    }
}
