//! The worst spikes of a series, in bounded memory.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use crate::{SPIKES_KEPT, Spike};

/// The worst spikes so far, [`SPIKES_KEPT`] of them by default.
#[derive(Debug, Clone)]
pub struct Worst {
    spikes: BinaryHeap<Reverse<ByLateness>>,
    most: usize,
}

/// A spike, ordered by lateness and then by time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ByLateness(Spike);

impl Default for Worst {
    fn default() -> Self {
        Self::keeping(SPIKES_KEPT)
    }
}

impl Worst {
    /// Creates a collection that keeps `most` spikes.
    #[must_use]
    pub fn keeping(most: usize) -> Self {
        Self { spikes: BinaryHeap::new(), most }
    }

    /// Adds a spike and drops the least late one if there are too many.
    pub fn add(&mut self, spike: Spike) {
        self.spikes.push(Reverse(ByLateness(spike)));
        if self.spikes.len() > self.most {
            self.spikes.pop();
        }
    }

    /// Returns the worst of the kept spikes and of `fresh`, which stay outside of the collection, in order of time.
    #[must_use]
    pub fn with(&self, fresh: &[Spike]) -> Vec<Spike> {
        let mut spikes: Vec<&Spike> = self.spikes.iter().map(|Reverse(ByLateness(spike))| spike).chain(fresh).collect();
        spikes.sort_unstable_by_key(|spike| Reverse(spike.lateness_ns));
        spikes.truncate(self.most);
        spikes.sort_unstable_by_key(|spike| spike.at_ns);
        spikes.into_iter().cloned().collect()
    }
}

impl Ord for ByLateness {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.lateness_ns, self.0.at_ns).cmp(&(other.0.lateness_ns, other.0.at_ns))
    }
}

impl PartialOrd for ByLateness {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spike(at_ns: u64, lateness_ns: i64) -> Spike {
        Spike { at_ns, lateness_ns, ..Spike::default() }
    }

    #[test]
    fn keeps_the_worst_in_order_of_time() {
        let mut worst = Worst::default();
        let many = SPIKES_KEPT as u64 + 500;
        (0..many).for_each(|at_ns| worst.add(spike(at_ns, (at_ns * 7919 % many).cast_signed())));
        let kept = worst.with(&[spike(many, 1_000_000), spike(many + 1, -1)]);
        assert_eq!(kept.len(), SPIKES_KEPT);
        assert!(kept.is_sorted_by_key(|spike| spike.at_ns));
        assert_eq!(kept.last().map(|spike| spike.at_ns), Some(many), "a fresh spike that is worse than the others");
        assert_eq!(kept.iter().map(|spike| spike.lateness_ns).min(), Some(501));
    }
}
