//! The CPU time of a page fault that waits for nothing.

use std::hint::black_box;

use sys::{clock::Clock, mapping::Mapping};

/// Small, so that the kernel uses no huge page.
const BYTES: usize = 64 << 10;
/// The smallest page of all architectures. A larger page is touched several times, which takes little.
const PAGE: usize = 4 << 10;
const ROUNDS: usize = 15;

/// Measures the CPU time of a page fault on this machine, ns: the median of several rounds of touching new memory; 0 if
/// there is no memory for that. Takes less than a millisecond.
#[must_use]
pub fn fault_time_ns() -> u64 {
    let mut rounds: Vec<u64> = (0..ROUNDS).filter_map(|_| touch_new_memory()).collect();
    rounds.sort_unstable();
    let pages = (BYTES / rustix::param::page_size()).max(1) as u64;
    rounds.get(rounds.len() / 2).map_or(0, |ns| ns / pages)
}

fn touch_new_memory() -> Option<u64> {
    let mut memory = Mapping::new(BYTES).ok()?;
    let begun_ns = Clock::Monotonic.now_ns();
    memory.chunks_mut(PAGE).for_each(|page| page[0] = black_box(1));
    Some(Clock::Monotonic.now_ns().abs_diff(begun_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_takes_time() {
        assert!(fault_time_ns() > 0);
    }
}
