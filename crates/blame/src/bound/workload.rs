//! The workload curve of one source of interference.

use std::{collections::VecDeque, ops::Range};

/// Number of windows of the curve.
const WINDOWS: usize = 51;
/// The longest window, ns.
pub const LONGEST_WINDOW_NS: u64 = window_ns(WINDOWS - 1);
/// The first window of each tier.
const TIERS: [usize; 2] = [0, 20];
/// Executions are merged while together they are at most this part of the first window of their tier. Without merging,
/// the curve of a source with a million executions a second would cost a third of a CPU.
const MERGED_PART: u64 = 4;

/// Length of a window, ns: from 16 us, four to each doubling.
const fn window_ns(index: usize) -> u64 {
    const QUARTERS_NS: [u64; 4] = [16_000, 19_028, 22_628, 26_909];
    QUARTERS_NS[index % 4] << (index / 4)
}

/// The most time that a source took in any window of each length. A window counts an execution in full even if it
/// contains only a part of it.
#[derive(Debug)]
pub struct Workload {
    tiers: [Tier; TIERS.len()],
}

/// Windows of similar lengths.
#[derive(Debug)]
struct Tier {
    /// Executions are merged up to this length, ns.
    merged_ns: u64,
    /// The executions that are still merged.
    latest: Execution,
    /// The executions that the longest window may still contain, oldest first.
    recent: VecDeque<Execution>,
    /// Number of executions before `recent`.
    dropped: usize,
    windows: Vec<Window>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Execution {
    start_ns: u64,
    end_ns: u64,
    ns: u64,
}

/// The window of one length that ends at the start of the latest execution.
#[derive(Debug, Clone, Copy)]
struct Window {
    length_ns: u64,
    /// Number of the first execution in it.
    first: usize,
    sum_ns: u64,
    most_ns: u64,
}

impl Default for Workload {
    fn default() -> Self {
        let ends = TIERS[1..].iter().copied().chain([WINDOWS]);
        let mut tiers = TIERS.into_iter().zip(ends).map(|(from, to)| Tier::new(from..to));
        Self { tiers: std::array::from_fn(|_| tiers.next().expect("one for each start")) }
    }
}

impl Workload {
    /// Adds an execution of `ns` between two times. Executions of a source do not overlap and are added in order.
    pub fn add(&mut self, start_ns: u64, end_ns: u64, ns: u64) {
        self.tiers.iter_mut().for_each(|tier| tier.add(Execution { start_ns, end_ns, ns }));
    }

    /// Completes the curve after the last execution.
    pub fn finish(&mut self) {
        self.tiers.iter_mut().for_each(Tier::count_latest);
    }

    /// The most time in a window of this length, ns. Lengths between two windows count as the longer one; lengths above
    /// the longest window count as that.
    pub fn most_ns(&self, length_ns: u64) -> u64 {
        let mut windows = self.tiers.iter().flat_map(|tier| &tier.windows);
        let last = self.tiers.iter().rev().find_map(|tier| tier.windows.last());
        windows.find(|window| window.length_ns >= length_ns).or(last).map_or(0, |window| window.most_ns)
    }
}

impl Tier {
    fn new(windows: Range<usize>) -> Self {
        let window = |index| Window { length_ns: window_ns(index), first: 0, sum_ns: 0, most_ns: 0 };
        Self {
            merged_ns: window_ns(windows.start) / MERGED_PART,
            latest: Execution::default(),
            recent: VecDeque::new(),
            dropped: 0,
            windows: windows.map(window).collect(),
        }
    }

    fn add(&mut self, added: Execution) {
        if self.latest.ns > 0 && added.end_ns - self.latest.start_ns <= self.merged_ns {
            self.latest.end_ns = added.end_ns;
            self.latest.ns += added.ns;
        } else {
            self.count_latest();
            self.latest = added;
        }
    }

    /// Adds the merged executions to all windows.
    fn count_latest(&mut self) {
        let latest = std::mem::take(&mut self.latest);
        if latest.ns == 0 {
            return;
        }
        self.recent.push_back(latest);
        let (recent, dropped) = (&self.recent, self.dropped);
        for window in &mut self.windows {
            // Any window of this length whose last execution is this one begins at this time or later.
            let from_ns = latest.start_ns.saturating_sub(window.length_ns);
            window.sum_ns += latest.ns;
            while let Some(first) = recent.get(window.first - dropped).filter(|first| first.end_ns < from_ns) {
                window.sum_ns -= first.ns;
                window.first += 1;
            }
            window.most_ns = window.most_ns.max(window.sum_ns);
        }
        let needed = self.windows.last().map_or(0, |longest| longest.first - dropped);
        self.recent.drain(..needed);
        self.dropped += needed;
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn windows_grow_by_a_fifth_to_93_ms() {
        for index in 1..WINDOWS {
            let percent = window_ns(index) * 100 / window_ns(index - 1);
            assert!((118..=119).contains(&percent), "{index}: {percent}");
        }
        assert_eq!(LONGEST_WINDOW_NS, 22_628 << 12);
    }

    proptest! {
        /// No window of the source's time line is busier than the curve says, and the curve is no longer than all
        /// executions that a window can touch.
        #[test]
        fn no_window_is_busier(
            executions in vec((1..300_000u64, 1..60_000u64), 1..60),
            length_ns in 1..400_000u64,
            at_ns in 0..10_000_000u64,
        ) {
            let (mut workload, mut now_ns, mut spans) = (Workload::default(), 0, Vec::new());
            for (pause_ns, ns) in executions {
                let start_ns = now_ns + pause_ns;
                now_ns = start_ns + ns;
                workload.add(start_ns, now_ns, ns);
                spans.push((start_ns, now_ns));
            }
            workload.finish();
            let busy_ns: u64 = spans
                .iter()
                .map(|&(start_ns, end_ns)| end_ns.min(at_ns + length_ns).saturating_sub(start_ns.max(at_ns)))
                .sum();
            prop_assert!(busy_ns <= workload.most_ns(length_ns));
            let all_ns: u64 = spans.iter().map(|(start_ns, end_ns)| end_ns - start_ns).sum();
            prop_assert!(workload.most_ns(length_ns) <= all_ns);
            prop_assert_eq!(workload.most_ns(u64::MAX), workload.most_ns(LONGEST_WINDOW_NS));
        }
    }

    #[test]
    fn executions_of_a_periodic_source_count_once_each_period() {
        let mut workload = Workload::default();
        for period in 1..1_000 {
            workload.add(period * 1_000_000, period * 1_000_000 + 10_000, 10_000);
        }
        workload.finish();
        assert_eq!(workload.most_ns(500_000), 10_000);
        assert_eq!(workload.most_ns(1_500_000), 20_000);
        assert!((100_000..=130_000).contains(&workload.most_ns(10_000_000)));
        assert!(workload.tiers.iter().all(|tier| tier.recent.len() <= 100));
    }

    #[test]
    fn merging_hides_no_pause() {
        let mut workload = Workload::default();
        for number in 0..1_000_000 {
            workload.add(number * 1_000, number * 1_000 + 250, 250);
        }
        workload.finish();
        for length_us in [16, 100, 1_000, 20_000] {
            let percent = workload.most_ns(length_us * 1_000) / (length_us * 10);
            assert!((25..=60).contains(&percent), "{percent} % of {length_us} us");
        }
        let merged: Vec<u64> = workload.tiers.iter().map(|tier| tier.dropped as u64).collect();
        assert!(merged[0] < 300_000 && merged[1] < 10_000, "{merged:?}");
    }
}
