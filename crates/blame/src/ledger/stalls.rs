//! Finds stalls: spikes of all CPUs at the same time.
//!
//! Firmware and hypervisors leave no trace events: the trace shows a late timer interrupt, a slow idle exit, or an
//! unexplained rest. If all measured CPUs have such a gap at the same time, firmware or the hypervisor caused it.

use record::{Cause, CauseKind};

/// The begins or the ends of a stall on different CPUs differ by at most this, ns, plus a tenth of its length.
const MAX_SPREAD_NS: u64 = 50_000;
/// Longest exit from an idle state, ns. Shorter idle exits may coincide because the deadlines coincide.
const MAX_IDLE_EXIT_NS: i64 = 1_000_000;

/// A spike as kept by the ledger.
#[derive(Debug, Clone)]
pub(super) struct LedgerSpike {
    pub cpu: u32,
    /// Id and priority of the late thread.
    pub thread: (u32, i32),
    pub phase: usize,
    pub at_ns: u64,
    pub deadline_ns: u64,
    pub lateness_ns: i64,
    /// Index of the cause's totals and share in ns, the main cause first.
    pub shares: Vec<(usize, u64)>,
    pub main: Cause,
}

impl LedgerSpike {
    /// True if the spike may be part of a stall of all CPUs.
    pub fn may_be_stall(&self) -> bool {
        matches!(self.main.kind, CauseKind::LateInterrupt | CauseKind::IdleExit | CauseKind::Unexplained)
    }

    fn end_ns(&self) -> u64 {
        self.deadline_ns.saturating_add_signed(self.lateness_ns)
    }
}

/// Returns for each spike whether it is part of a stall of all measured CPUs.
///
/// Short spikes may coincide by chance, because deadlines coincide. A group of spikes counts only if on every CPU at
/// least half of the spikes of its length or longer are in groups.
pub(super) fn in_stall_of_all_cpus(stalls: &[LedgerSpike], measured: &[u32]) -> Vec<bool> {
    let groups = groups(stalls, measured);
    let shortest = |group: &Vec<usize>| group.iter().map(|&at| stalls[at].lateness_ns).min().unwrap_or(0);
    let lengths: Vec<i64> = groups.iter().map(shortest).collect();
    let mut in_stall = vec![false; stalls.len()];
    let grouped = Lengths::of(lengths.iter().copied());
    let by_cpu: Vec<Lengths> = measured
        .iter()
        .map(|&cpu| Lengths::of(stalls.iter().filter(|stall| stall.cpu == cpu).map(|stall| stall.lateness_ns)))
        .collect();
    for (group, &length) in groups.iter().zip(&lengths) {
        if by_cpu.iter().all(|cpu| 2 * grouped.at_least(length) >= cpu.at_least(length)) {
            for &at in group {
                in_stall[at] = true;
            }
        }
    }
    in_stall
}

/// Lengths in ascending order.
struct Lengths(Vec<i64>);

impl Lengths {
    fn of(lengths: impl Iterator<Item = i64>) -> Self {
        let mut lengths: Vec<i64> = lengths.collect();
        lengths.sort_unstable();
        Self(lengths)
    }

    /// Number of lengths that are at least this long.
    fn at_least(&self, length: i64) -> usize {
        self.0.len() - self.0.partition_point(|&other| other < length)
    }
}

/// Groups of one spike from each measured CPU that overlap and whose begins or ends are close together.
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
            // The spikes of one CPU do not overlap: only the last ones that begin before this one ends are candidates.
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
        LedgerSpike {
            cpu,
            thread: (1, 9),
            phase: 0,
            at_ns: deadline_ns,
            deadline_ns,
            lateness_ns,
            shares: vec![(0, 1)],
            main,
        }
    }

    const LATE: CauseKind = CauseKind::LateInterrupt;
    const IDLE: CauseKind = CauseKind::IdleExit;

    #[test]
    fn a_gap_on_every_cpu_is_a_stall() {
        let stalls = [
            stall(0, LATE, 10_000, 180),
            stall(1, IDLE, 10_050, 131),
            stall(0, LATE, 30_000, 180),
            stall(1, LATE, 50_000, 180),
        ];
        assert_eq!(in_stall_of_all_cpus(&stalls, &[0, 1]), [true, true, false, false]);
        assert_eq!(in_stall_of_all_cpus(&stalls, &[0, 1, 2]), [false; 4], "CPU 2 had no gap");
        assert_eq!(in_stall_of_all_cpus(&stalls[..1], &[0]), [false], "one CPU is not enough");
    }

    #[test]
    fn coinciding_idle_exits_and_chance_are_not_stalls() {
        let idle: Vec<LedgerSpike> =
            (0..100).flat_map(|k| [stall(0, IDLE, k * 1000, 150), stall(1, IDLE, k * 1000, 155)]).collect();
        assert!(!in_stall_of_all_cpus(&idle, &[0, 1]).contains(&true));
        let long = [stall(0, IDLE, 1000, 8000), stall(1, IDLE, 1000, 8010)];
        assert_eq!(in_stall_of_all_cpus(&long, &[0, 1]), [true, true], "no idle exit takes 8 ms");
        let random: Vec<LedgerSpike> =
            (0..100_u64).flat_map(|k| [stall(0, LATE, k * 3000, 80), stall(1, LATE, k * 7000, 80)]).collect();
        assert!(!in_stall_of_all_cpus(&random, &[0, 1]).contains(&true));
    }

    #[test]
    fn finds_long_stalls_among_short_spikes() {
        let mut stalls: Vec<LedgerSpike> =
            (0..100_u64).flat_map(|k| [stall(0, LATE, k * 3000, 60), stall(1, LATE, k * 7000, 70)]).collect();
        stalls.extend((1..4_u64).flat_map(|k| [stall(0, LATE, k * 100_400, 300), stall(1, LATE, k * 100_400, 310)]));
        let in_stall = in_stall_of_all_cpus(&stalls, &[0, 1]);
        let count = in_stall.iter().filter(|&&in_stall| in_stall).count();
        assert_eq!((count, &in_stall[200..]), (6, &[true; 6][..]));
    }
}
