//! Spikes of all CPUs at once: what no CPU does by itself.
//!
//! A trace shows firmware and hypervisors as nothing at all: a late timer's interrupt, a long way out of an idle state,
//! an unexplained rest. When every measured CPU has such a gap at the same time, it is one of these two.

use record::{Cause, CauseKind};

/// Ends or begins of one stall on different CPUs lie this close together, ns, or within a tenth of its length.
const MAX_SPREAD_NS: u64 = 50_000;
/// No idle state takes longer to leave, ns. Shorter ones may coincide because the deadlines do.
const MAX_IDLE_EXIT_NS: i64 = 1_000_000;

/// A spike, as the ledger keeps it.
#[derive(Debug, Clone)]
pub(super) struct LedgerSpike {
    pub cpu: u32,
    pub phase: usize,
    pub at_ns: u64,
    pub deadline_ns: u64,
    pub lateness_ns: i64,
    /// Line of the ledger and share in ns, the main one first.
    pub shares: Vec<(usize, u64)>,
    pub main: Cause,
}

impl LedgerSpike {
    /// Whether it could be one CPU's part of a stall of all.
    pub fn may_be_stall(&self) -> bool {
        matches!(self.main.kind, CauseKind::LateInterrupt | CauseKind::IdleExit | CauseKind::Unexplained)
    }

    fn end_ns(&self) -> u64 {
        self.deadline_ns.saturating_add_signed(self.lateness_ns)
    }
}

/// For each of the stalls, whether it is part of one that all the measured CPUs had.
///
/// Deadlines coincide, so short stalls may do so by chance. A group counts only if at least half of the stalls of its
/// length or more are in groups, on every CPU.
pub(super) fn part_of_stall(stalls: &[LedgerSpike], measured: &[u32]) -> Vec<bool> {
    let groups = groups(stalls, measured);
    let shortest = |group: &Vec<usize>| group.iter().map(|&at| stalls[at].lateness_ns).min().unwrap_or(0);
    let lengths: Vec<i64> = groups.iter().map(shortest).collect();
    let mut everywhere = vec![false; stalls.len()];
    let grouped = Lengths::of(lengths.iter().copied());
    let by_cpu: Vec<Lengths> = measured
        .iter()
        .map(|&cpu| Lengths::of(stalls.iter().filter(|stall| stall.cpu == cpu).map(|stall| stall.lateness_ns)))
        .collect();
    for (group, &length) in groups.iter().zip(&lengths) {
        if by_cpu.iter().all(|cpu| 2 * grouped.at_least(length) >= cpu.at_least(length)) {
            for &at in group {
                everywhere[at] = true;
            }
        }
    }
    everywhere
}

/// Rising lengths.
struct Lengths(Vec<i64>);

impl Lengths {
    fn of(lengths: impl Iterator<Item = i64>) -> Self {
        let mut lengths: Vec<i64> = lengths.collect();
        lengths.sort_unstable();
        Self(lengths)
    }

    /// How many are no shorter than this.
    fn at_least(&self, length: i64) -> usize {
        self.0.len() - self.0.partition_point(|&other| other < length)
    }
}

/// Stalls that overlap, one of each measured CPU, whose ends or begins lie together.
fn groups(stalls: &[LedgerSpike], measured: &[u32]) -> Vec<Vec<usize>> {
    let [first, others @ ..] = measured else { return Vec::new() };
    if others.is_empty() {
        return Vec::new();
    }
    let of_cpu = |cpu: u32| {
        let mut of_cpu: Vec<usize> = (0..stalls.len()).filter(|&at| stalls[at].cpu == cpu).collect();
        of_cpu.sort_unstable_by_key(|&at| stalls[at].deadline_ns);
        of_cpu
    };
    let others: Vec<Vec<usize>> = others.iter().map(|&cpu| of_cpu(cpu)).collect();
    let mut groups = Vec::new();
    for at in of_cpu(*first) {
        let partner = |others: &Vec<usize>| {
            // Those of one CPU do not overlap: the last that begins before this ends, or one before it.
            let until = others.partition_point(|&other| stalls[other].deadline_ns < stalls[at].end_ns());
            let near = &others[until.saturating_sub(3)..until];
            near.iter().copied().max_by_key(|&other| overlap_ns(&stalls[at], &stalls[other]))
        };
        let mut group = vec![at];
        group.extend(others.iter().filter_map(partner));
        if group.len() == measured.len() && is_one_stall(&group.iter().map(|&at| &stalls[at]).collect::<Vec<_>>()) {
            groups.push(group);
        }
    }
    groups
}

fn overlap_ns(a: &LedgerSpike, b: &LedgerSpike) -> u64 {
    a.end_ns().min(b.end_ns()).saturating_sub(a.deadline_ns.max(b.deadline_ns))
}

fn is_one_stall(group: &[&LedgerSpike]) -> bool {
    let spread = |of: fn(&LedgerSpike) -> u64| {
        let times = group.iter().map(|stall| of(stall));
        times.clone().max().unwrap_or(0) - times.min().unwrap_or(0)
    };
    let last_begin = group.iter().map(|stall| stall.deadline_ns).max();
    let first_end = group.iter().map(|stall| stall.end_ns()).min();
    let longest_ns = group.iter().map(|stall| stall.lateness_ns.unsigned_abs()).max().unwrap_or(0);
    let together_ns = MAX_SPREAD_NS + longest_ns / 10;
    let only_idle = group.iter().all(|stall| stall.main.kind == CauseKind::IdleExit);
    let long = group.iter().all(|stall| stall.lateness_ns >= MAX_IDLE_EXIT_NS);
    last_begin < first_end
        && (spread(|stall| stall.deadline_ns) <= together_ns || spread(LedgerSpike::end_ns) <= together_ns)
        && (long || !only_idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(cpu: u32, kind: CauseKind, deadline_us: u64, lateness_us: i64) -> LedgerSpike {
        let (deadline_ns, lateness_ns) = (deadline_us * 1000, lateness_us * 1000);
        let main = Cause::new(kind, "x");
        LedgerSpike { cpu, phase: 0, at_ns: deadline_ns, deadline_ns, lateness_ns, shares: vec![(0, 1)], main }
    }

    const LATE: CauseKind = CauseKind::LateInterrupt;
    const IDLE: CauseKind = CauseKind::IdleExit;

    #[test]
    fn a_gap_of_every_cpu_is_one_stall() {
        let stalls = [
            stall(0, LATE, 10_000, 180),
            stall(1, IDLE, 10_050, 131),
            stall(0, LATE, 30_000, 180),
            stall(1, LATE, 50_000, 180),
        ];
        assert_eq!(part_of_stall(&stalls, &[0, 1]), [true, true, false, false]);
        assert_eq!(part_of_stall(&stalls, &[0, 1, 2]), [false; 4], "CPU 2 had no gap");
        assert_eq!(part_of_stall(&stalls[..1], &[0]), [false], "one CPU alone shows nothing");
    }

    #[test]
    fn deadlines_at_one_time_make_no_stall_of_idle_states_or_of_chance() {
        let idle: Vec<LedgerSpike> =
            (0..100).flat_map(|k| [stall(0, IDLE, k * 1000, 150), stall(1, IDLE, k * 1000, 155)]).collect();
        assert!(!part_of_stall(&idle, &[0, 1]).contains(&true));
        let long = [stall(0, IDLE, 1000, 8000), stall(1, IDLE, 1000, 8010)];
        assert_eq!(part_of_stall(&long, &[0, 1]), [true, true], "no idle state takes 8 ms to leave");
        let random: Vec<LedgerSpike> =
            (0..100_u64).flat_map(|k| [stall(0, LATE, k * 3000, 80), stall(1, LATE, k * 7000, 80)]).collect();
        assert!(!part_of_stall(&random, &[0, 1]).contains(&true));
    }

    #[test]
    fn long_stalls_of_all_stand_out_among_short_ones_of_each() {
        let mut stalls: Vec<LedgerSpike> =
            (0..100_u64).flat_map(|k| [stall(0, LATE, k * 3000, 60), stall(1, LATE, k * 7000, 70)]).collect();
        stalls.extend((1..4_u64).flat_map(|k| [stall(0, LATE, k * 100_400, 300), stall(1, LATE, k * 100_400, 310)]));
        let everywhere = part_of_stall(&stalls, &[0, 1]);
        let count = everywhere.iter().filter(|&&everywhere| everywhere).count();
        assert_eq!((count, &everywhere[200..]), (6, &[true; 6][..]));
    }
}
