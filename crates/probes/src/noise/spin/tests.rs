//! Counting with given readings of the counter.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use super::*;
use crate::timer::{Core, Fraction, reader::Reader, shared::channel};

/// Time between two readings, ns.
const STEP_NS: u64 = 10;
const THRESHOLD_NS: u64 = 1_000;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static READINGS: Cell<usize> = const { Cell::new(0) };
    /// Readings that are preceded by a gap, and the length of the gap.
    static GAPS: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
}

/// A simulated counter of ns that advances with each reading.
struct SimulatedCounter;

impl Ticks for SimulatedCounter {
    fn now() -> u64 {
        let reading = READINGS.replace(READINGS.get() + 1);
        let gap_ns =
            GAPS.with_borrow(|gaps| gaps.iter().find(|&&(before, _)| before == reading).map_or(0, |gap| gap.1));
        NOW.set((NOW.get() + STEP_NS).wrapping_add(gap_ns));
        NOW.get()
    }
}

/// Readings before the loop: nine pairs of both clocks, and one to start.
const FIRST: usize = 2 * 9 + 1;

/// Returns the series of a thread with 8192 readings and the given gaps.
fn series(gaps: &[(usize, u64)]) -> record::Series {
    NOW.set(0);
    READINGS.set(0);
    GAPS.set(gaps.to_vec());
    let spin = Spin { runtime_ns: 1, counter: Counter::Clock, scale: Scale::NANOSECONDS };
    let settings = Settings {
        role: "noise".to_owned(),
        has_own_role: false,
        cpu: None,
        policy: Policy::Other,
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        period_ns: 1_000_000,
        fraction: Fraction::default(),
        samples: None,
        threshold_ns: THRESHOLD_NS.cast_signed(),
        spikes_kept: 1000,
        stop_on: None,
        spin: Some(spin),
    };
    let (writer, shared, queue) = channel();
    let mut reader = Reader::new(queue, &settings);
    let mut spinning = Spinning::new(&settings, spin, STEP_NS, None, writer, 0, i64::MAX);
    spinning.threshold_ns = THRESHOLD_NS;
    spinning.observe::<SimulatedCounter>(0);
    reader.collect(&shared);
    let grant = crate::setup::Grant {
        thread_id: 1,
        policy: Policy::Other,
        cpus: vec![0],
        timer_slack_ns: 0,
        policy_refused: None,
        pin_refused: None,
        floor_ns: STEP_NS,
        evl_level: None,
    };
    reader.series("rest", &settings, &grant, &shared)
}

fn lengths(series: &record::Series) -> Vec<i64> {
    series.spikes.iter().map(|spike| spike.lateness_ns).collect()
}

#[test]
fn finds_a_gap_with_its_length_and_time() {
    let series = series(&[(FIRST + 100, 100_000), (FIRST + 5000, 1_500), (FIRST + 6000, 900)]);
    assert_eq!(lengths(&series), [100_010, 1_510], "the third is below the threshold");
    assert_eq!(series.spikes[1].at_ns - series.spikes[0].at_ns, 100_000 + 4900 * STEP_NS);
    let noise = series.kind.noise().unwrap();
    assert_eq!((noise.lost_ns, noise.iterations), (101_500, BLOCK));
    // Counting a gap takes one reading here.
    assert_eq!(noise.observed_ns, 101_500 + 900 + (BLOCK - 2) * STEP_NS + 2 * STEP_NS);
    assert_eq!((series.max_ns, series.min_ns, series.samples), (Some(100_010), Some(1_510), 2));
}

#[test]
fn a_counter_that_steps_back_is_not_a_gap() {
    assert!(lengths(&series(&[(FIRST + 10, 50_u64.wrapping_neg())])).is_empty());
}

proptest! {
    #[test]
    fn finds_every_gap_once(mut readings in prop::collection::btree_set(1_usize..8000, 0..50), ns in 2_000_u64..1_000_000) {
        // Each gap is followed by the reading that ends its counting.
        readings.retain(|reading| reading % 2 == 0);
        let mut shift = 0;
        let gaps: Vec<(usize, u64)> = readings.iter().map(|reading| {
            shift += 1;
            (FIRST + reading + shift - 1, ns + *reading as u64)
        }).collect();
        let series = series(&gaps);
        let expected: Vec<i64> = gaps.iter().map(|gap| (gap.1 + STEP_NS).cast_signed()).collect();
        prop_assert_eq!(lengths(&series), expected);
        prop_assert_eq!(series.kind.noise().unwrap().lost_ns, gaps.iter().map(|gap| gap.1).sum::<u64>());
    }
}
