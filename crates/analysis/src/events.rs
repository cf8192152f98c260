//! Late and missing results, collected and then counted as stalls.
//!
//! Results with less than a second between them belong to one stall. Where the record does not contain their exact times, the
//! count assumes the longest stalls that are possible, because few long stalls have the largest bound.

use crate::statistics::{Grouped, Late};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The longest time on time within a stall. Two late wake-ups of long periods can be more than a second apart.
pub(crate) fn gap_ns(period_ns: u64) -> u64 {
    SECOND_NS.max(period_ns.saturating_mul(2))
}

/// A part of the run that contains late or missing results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// Its begin, ns after the first deadline.
    pub start_ns: u64,
    /// The latest end of its results, likewise.
    pub end_ns: u64,
    /// The number of cycles that its results make late. A stall counts no more seconds than cycles.
    pub cycles: u64,
}

/// Late and missing results.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    /// Cycles of the use that they made late, if the cycles begin with each stall.
    pub cycles: u64,
    /// The largest number of such cycles, wherever they begin.
    pub most_cycles: u64,
    /// The smallest possible number of stalls.
    pub stalls_at_least: u64,
    /// The parts of the run that contain results with known times.
    pub stretches: Vec<Stretch>,
    /// The largest number of cycles in these parts, wherever they begin.
    pub cycles_in_stretches: u64,
    /// The largest number of runs of results without known times.
    pub unknown_runs: u64,
    /// The most seconds that these runs count if all are in one stall.
    pub unknown_seconds: u64,
    /// The longest time on time within a stall, ns.
    pub gap_ns: u64,
}

impl Events {
    /// Adds results of another kind. Their stalls can be the same.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.stretches.extend(others.stretches);
        Self {
            cycles: self.cycles.saturating_add(others.cycles),
            most_cycles: self.most_cycles.saturating_add(others.most_cycles),
            stalls_at_least: self.stalls_at_least.max(others.stalls_at_least),
            stretches: self.stretches,
            cycles_in_stretches: self.cycles_in_stretches.saturating_add(others.cycles_in_stretches),
            unknown_runs: self.unknown_runs.saturating_add(others.unknown_runs),
            unknown_seconds: self.unknown_seconds.saturating_add(others.unknown_seconds),
            gap_ns: self.gap_ns.max(others.gap_ns),
        }
    }

    /// The same if it is not certain that they were late.
    #[must_use]
    pub fn possible(self) -> Self {
        Self { stalls_at_least: 0, ..self }
    }

    /// Counts the stalls.
    #[must_use]
    pub fn count(self) -> Late {
        let Self { most_cycles, stalls_at_least, cycles_in_stretches, unknown_runs, unknown_seconds, gap_ns, .. } =
            self;
        let known = longest_possible(&joined(self.stretches, gap_ns), cycles_in_stretches);
        let mut seconds = with_unknown(known, unknown_runs, unknown_seconds, gap_ns);
        // There can be fewer if the figures of the record are not exact.
        let counted = seconds.iter().copied().fold(0, u64::saturating_add);
        seconds.extend(Some(stalls_at_least.saturating_sub(counted)).filter(|&more| more > 0));
        let stalls = Grouped::of(seconds).at_most(most_cycles.max(stalls_at_least));
        Late { cycles: self.cycles.max(stalls.total), stalls, stalls_at_least }
    }
}

/// The stretches in order, those joined that a single stall can contain.
pub(crate) fn joined(mut stretches: Vec<Stretch>, gap_ns: u64) -> Vec<Stretch> {
    stretches.sort_by_key(|stretch| stretch.start_ns);
    let mut chains: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        match chains.last_mut() {
            Some(chain) if stretch.start_ns <= chain.end_ns.saturating_add(gap_ns) => {
                chain.end_ns = chain.end_ns.max(stretch.end_ns);
                chain.cycles = chain.cycles.saturating_add(stretch.cycles);
            }
            _ => chains.push(stretch),
        }
    }
    chains
}

/// The longest possible stall in a chain of stretches.
struct Longest {
    /// The seconds that it counts.
    seconds: u64,
    /// Its length in seconds. It counts no more of them than it has cycles.
    length: u64,
}

/// The longest possible stall in each chain, for `cycles` in all of them. Cycles of no certain chain are in the chains that become
/// the longest.
fn longest_possible(chains: &[Stretch], cycles: u64) -> Vec<Longest> {
    let length = |chain: &Stretch| chain.end_ns.saturating_sub(chain.start_ns).div_ceil(SECOND_NS).max(1);
    let mut extra = chains.iter().fold(cycles, |left, chain| left.saturating_sub(chain.cycles));
    let mut found = Vec::new();
    let mut left: Vec<&Stretch> = chains.iter().collect();
    while extra > 0 && !left.is_empty() {
        let possible = |chain: &Stretch| length(chain).min(chain.cycles.saturating_add(extra));
        let longest = (0..left.len()).max_by_key(|&index| possible(left[index])).expect("it is not empty");
        let chain = left.swap_remove(longest);
        let seconds = possible(chain);
        extra -= seconds.saturating_sub(chain.cycles);
        found.push(Longest { seconds, length: length(chain) });
    }
    found.extend(
        left.into_iter().map(|chain| Longest { seconds: length(chain).min(chain.cycles), length: length(chain) }),
    );
    found
}

/// The seconds of each stall if `runs` runs of results without known times join the longest `known` ones. Before and after each run
/// can be a time on time.
fn with_unknown(mut known: Vec<Longest>, runs: u64, seconds: u64, gap_ns: u64) -> Vec<u64> {
    let mut joined = Vec::new();
    if runs > 0 {
        known.sort_unstable_by_key(|longest| std::cmp::Reverse(longest.length));
        let count = usize::try_from(runs).unwrap_or(usize::MAX).saturating_add(1).min(known.len());
        let lengths = known.drain(..count).map(|longest| longest.length).fold(seconds, u64::saturating_add);
        joined.push(lengths.saturating_add((count as u64).saturating_mul(gap_ns.div_ceil(SECOND_NS))));
    }
    joined.extend(known.into_iter().map(|longest| longest.seconds));
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(start_s: u64, end_s: u64, cycles: u64) -> Stretch {
        Stretch { start_ns: start_s * SECOND_NS, end_ns: end_s * SECOND_NS, cycles }
    }

    fn count(stretches: Vec<Stretch>, cycles_in_stretches: u64, [unknown_runs, unknown_seconds]: [u64; 2]) -> Grouped {
        let cycles = cycles_in_stretches + unknown_runs;
        let gap_ns = SECOND_NS;
        Events {
            cycles,
            most_cycles: cycles,
            stretches,
            cycles_in_stretches,
            unknown_runs,
            unknown_seconds,
            gap_ns,
            ..Events::default()
        }
        .count()
        .stalls
    }

    /// A chain of 400 s with 25 late wake-ups, and one of 320 s with 170 results. 150 more can be in either.
    #[test]
    fn results_of_no_certain_window_make_the_longest_stall_longer() {
        let chains = vec![stretch(0, 400, 25), stretch(1_000, 1_320, 170)];
        assert_eq!(count(chains, 345, [0, 0]), Grouped::of([320, 25]));
    }

    /// A late answer that took 19 s is one cycle. With others in its time, the stall has more.
    #[test]
    fn results_of_unknown_times_fill_the_length_of_a_known_stall() {
        let alone = || vec![stretch(100, 119, 1)];
        assert_eq!(count(alone(), 1, [0, 0]), Grouped::of([1]));
        assert_eq!(count(alone(), 1, [30, 3]), Grouped::of([23]));
        let two = vec![stretch(100, 101, 1), stretch(200, 201, 1)];
        assert_eq!(count(two, 2, [1, 1]), Grouped::of([3]), "no more seconds than cycles");
    }
}
