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
    /// The least number of cycles that its results make late. A stall counts no more seconds than cycles.
    pub cycles: u64,
}

/// Late and missing results.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    /// The largest number of cycles of the use that they made late.
    pub cycles: u64,
    /// The smallest possible number of stalls.
    pub stalls_at_least: u64,
    /// The parts of the run that contain those of known times.
    pub stretches: Vec<Stretch>,
    /// The largest number of cycles of those.
    pub cycles_in_stretches: u64,
    /// The largest number of runs of those of unknown times, and the most seconds that they count if all are in one stall.
    pub unknown_runs: u64,
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
        let Self { cycles, stalls_at_least, cycles_in_stretches, unknown_runs, unknown_seconds, gap_ns, .. } = self;
        let known = seconds_of(&joined(self.stretches, gap_ns), cycles_in_stretches);
        let mut seconds = with_unknown(known, unknown_runs, unknown_seconds, gap_ns);
        // There can be fewer if the figures of the record are not exact.
        let counted = seconds.iter().copied().fold(0, u64::saturating_add);
        seconds.extend(Some(stalls_at_least.saturating_sub(counted)).filter(|&more| more > 0));
        Late { cycles, stalls: Grouped::of(seconds).at_most(cycles.max(stalls_at_least)), stalls_at_least }
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

/// The seconds of the longest possible stall in each chain, the longest one first, for `cycles` in all of them.
fn seconds_of(chains: &[Stretch], cycles: u64) -> Vec<u64> {
    let length = |chain: &Stretch| chain.end_ns.saturating_sub(chain.start_ns).div_ceil(SECOND_NS).max(1);
    let mut extra = chains.iter().fold(cycles, |left, chain| left.saturating_sub(chain.cycles));
    let mut longest_first: Vec<&Stretch> = chains.iter().collect();
    longest_first.sort_by_key(|chain| std::cmp::Reverse(length(chain)));
    let mut seconds: Vec<u64> = longest_first
        .into_iter()
        .map(|chain| {
            let seconds = length(chain).min(chain.cycles.saturating_add(extra));
            extra -= seconds.saturating_sub(chain.cycles);
            seconds
        })
        .collect();
    seconds.sort_unstable_by_key(|&seconds| std::cmp::Reverse(seconds));
    seconds
}

/// The stalls if `runs` runs of results of unknown times join the longest of the `known` ones to one. A time on time is then
/// before and after each run.
fn with_unknown(mut known: Vec<u64>, runs: u64, seconds: u64, gap_ns: u64) -> Vec<u64> {
    if runs == 0 {
        return known;
    }
    let count = usize::try_from(runs).unwrap_or(usize::MAX).saturating_add(1).min(known.len());
    let longest = known.drain(..count).fold(seconds, u64::saturating_add);
    let between = (count as u64).saturating_mul(gap_ns.div_ceil(SECOND_NS));
    known.push(longest.saturating_add(between));
    known
}
