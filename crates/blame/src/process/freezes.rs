//! When the control groups of the program's processes were frozen, as far as readings show.

use std::collections::{HashMap, VecDeque};

/// The number of stretches that are kept per process.
const KEPT: usize = 64;

/// The freezes of each process.
#[derive(Debug, Clone, Default)]
pub(super) struct Freezes(HashMap<u32, OfProcess>);

#[derive(Debug, Clone, Default)]
struct OfProcess {
    /// The last reading, ns on CLOCK_MONOTONIC.
    read_ns: Option<u64>,
    stretches: VecDeque<Stretch>,
    /// Length of all stretches, ns.
    total_ns: u64,
}

/// A stretch of readings that found a process frozen, ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// The last reading before it, or the first one in it.
    before_ns: u64,
    first_ns: u64,
    last_ns: u64,
    /// The first reading after it; `None` if it goes on.
    after_ns: Option<u64>,
}

impl Freezes {
    /// Adds a reading for a process at `at_ns` on CLOCK_MONOTONIC.
    pub fn add(&mut self, process: u32, at_ns: u64, is_frozen: bool) {
        self.0.entry(process).or_default().add(at_ns, is_frozen);
    }

    /// Time between these points (ns on CLOCK_MONOTONIC) in which a process was frozen, ns. It is too long by up to the
    /// time between two readings at each end; 0 if no reading between them found it frozen.
    pub fn stopped_ns(&self, process: Option<u32>, from_ns: u64, to_ns: u64) -> u64 {
        let Some(of_process) = process.and_then(|process| self.0.get(&process)) else { return 0 };
        let is_within = |stretch: &&Stretch| stretch.first_ns <= to_ns && stretch.last_ns >= from_ns;
        let overlap_ns = |stretch: &Stretch| {
            let until_ns = stretch.after_ns.unwrap_or(u64::MAX).min(to_ns);
            until_ns.saturating_sub(stretch.before_ns.max(from_ns))
        };
        of_process.stretches.iter().filter(is_within).map(overlap_ns).sum()
    }

    /// The longest time for which a process was frozen, ns, apart from about the time between two readings.
    pub fn longest_ns(&self) -> u64 {
        self.0.values().map(OfProcess::frozen_ns).max().unwrap_or(0)
    }
}

impl OfProcess {
    fn add(&mut self, at_ns: u64, is_frozen: bool) {
        let before_ns = self.read_ns.replace(at_ns).unwrap_or(at_ns);
        match (self.stretches.back_mut().filter(|last| last.after_ns.is_none()), is_frozen) {
            (Some(last), true) => last.last_ns = at_ns,
            (Some(last), false) => {
                last.after_ns = Some(at_ns);
                self.total_ns += at_ns.saturating_sub(last.first_ns);
            }
            (None, true) => {
                if self.stretches.len() == KEPT {
                    self.stretches.pop_front();
                }
                self.stretches.push_back(Stretch { before_ns, first_ns: at_ns, last_ns: at_ns, after_ns: None });
            }
            (None, false) => {}
        }
    }

    fn frozen_ns(&self) -> u64 {
        let open = self.stretches.back().filter(|last| last.after_ns.is_none());
        self.total_ns + open.map_or(0, |open| open.last_ns.saturating_sub(open.first_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_lasts_from_the_reading_before_it_to_the_one_after_it() {
        let mut freezes = Freezes::default();
        [(100, false), (140, true), (180, true)].iter().for_each(|&(at_ns, frozen)| freezes.add(7, at_ns, frozen));
        assert_eq!((freezes.stopped_ns(Some(7), 120, 200), freezes.longest_ns()), (80, 40), "it goes on");
        freezes.add(7, 220, false);
        freezes.add(7, 260, false);
        assert_eq!((freezes.stopped_ns(Some(7), 0, 1000), freezes.longest_ns()), (120, 80));
        assert_eq!(freezes.stopped_ns(Some(7), 150, 170), 20);
        assert_eq!(freezes.stopped_ns(Some(7), 200, 1000), 0, "no reading in this time found it frozen");
        assert_eq!([Some(8), None].map(|process| freezes.stopped_ns(process, 0, 1000)), [0; 2]);
    }
}
