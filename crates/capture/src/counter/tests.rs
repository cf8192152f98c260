use proptest::prelude::*;

use super::*;

const INTERVAL_NS: i64 = 1_000_000;

fn of(value: u64, range: Range) -> Contained {
    Contained::Candidate(Count {
        value: u32::try_from(value).unwrap(),
        range,
        step: None,
        parts: None,
        media: None,
        state: None,
    })
}

/// The frames with these indexes, on time, of a talker whose numbers are below `values`.
fn frames(indexes: &[u64], step: u64, first: u64, values: u64, range: Range) -> Vec<(Contained, i64)> {
    let frame = |&n: &u64| (of((first + n * step) % values, range), n.cast_signed() * INTERVAL_NS);
    indexes.iter().map(frame).collect()
}

/// The extended numbers relative to the first, with their runs.
fn extended(frames: &[(Contained, i64)]) -> Vec<(u32, i64)> {
    let mut counter = Counter::learn(&frames[..frames.len().min(256)]).expect("numbers that count");
    let extend = |&(number, at_ns): &(Contained, i64)| {
        let Contained::Candidate(count) = number else { panic!("{number:?}") };
        match counter.extend(count, at_ns) {
            Number::Whole { run, seq } => (run, seq.cast_signed() - FIRST.cast_signed()),
            other => panic!("{other:?}"),
        }
    };
    frames.iter().map(extend).collect()
}

/// Within a video frame, packets follow each other more closely than on average: slots of that interval are ever farther
/// behind.
#[test]
fn frames_in_bursts_have_not_lost_as_many_as_there_are_numbers() {
    const BURST: i64 = 1_500;
    let at_ns = |n: i64| n * INTERVAL_NS + n / BURST * (BURST / 5) * INTERVAL_NS;
    let frame = |n: i64| (of((n % 65_536).unsigned_abs(), Range::Bits(16)), at_ns(n));
    let indexes: Vec<i64> = (0..900_000).filter(|n| !(450_000..450_000 + BURST).contains(n)).collect();
    let found = extended(&indexes.iter().map(|&n| frame(n)).collect::<Vec<_>>());
    let wrong = indexes.iter().zip(&found).find(|(n, found)| **found != (0, **n));
    assert_eq!(wrong, None);
}

#[test]
fn numbers_that_use_a_part_of_their_field_start_again_below_its_end() {
    // The master SOEM numbers EtherCAT frames from 0 to 15.
    let indexes: Vec<u64> = (0..2_000).filter(|n| n % 333 != 50).collect();
    let expected: Vec<_> = indexes.iter().map(|n| (0, n.cast_signed())).collect();
    assert_eq!(extended(&frames(&indexes, 1, 0, 16, Range::Bits(8))), expected);
    // More values than the first frames showed: a restart, and then all values of the field.
    let more =
        (0..1_000).map(|n| (of(if n < 300 { n % 16 } else { n % 256 }, Range::Bits(8)), n.cast_signed() * INTERVAL_NS));
    let last = extended(&more.collect::<Vec<_>>()).pop().unwrap();
    assert!(last.0 <= 2, "{last:?}");
}

#[test]
fn frames_that_a_mirror_port_repeats_keep_their_numbers() {
    let twice: Vec<u64> = (0..2_000).flat_map(|n| [n, n]).collect();
    let expected: Vec<_> = twice.iter().map(|n| (0, n.cast_signed())).collect();
    assert_eq!(extended(&frames(&twice, 1, 0, 1 << 16, Range::Bits(16))), expected);
    let constant = frames(&[7; 256], 1, 0, 1 << 16, Range::Bits(16));
    assert_eq!(Counter::learn(&constant), None);
    let rare: Vec<u64> = (0..256).map(|n| n / 10).collect();
    assert_eq!(Counter::learn(&frames(&rare, 1, 0, 1 << 16, Range::Bits(16))), None, "a state that changes rarely");
}

#[test]
fn frames_in_groups_and_coarse_stamps_keep_the_interval() {
    let perfect: Vec<_> = (0..2_000).map(|n| (0, n)).collect();
    for (group, resolution_ns) in [(1, 1), (2, 1), (8, 1), (1, 4 * INTERVAL_NS), (1, 15_600_000), (8, 4 * INTERVAL_NS)]
    {
        let frame = |n: i64| {
            // Frames of a group follow each other after 5 us.
            let at_ns = n / group * group * INTERVAL_NS + n % group * 5_000;
            (of(n.cast_unsigned(), Range::Bits(16)), at_ns / resolution_ns * resolution_ns)
        };
        let frames: Vec<_> = (0..2_000).map(frame).collect();
        assert_eq!(extended(&frames), perfect, "groups of {group}, stamps of {resolution_ns} ns");
    }
}

#[test]
fn numbers_that_do_not_count_are_none() {
    let constant: Vec<_> = (0..99).map(|n| (of(7, Range::Bits(16)), n * INTERVAL_NS)).collect();
    assert_eq!(Counter::learn(&constant), None);
    let random: Vec<_> = (0..99).map(|n| (of(n * n * 7919 % 65_536, Range::Bits(16)), 0)).collect();
    assert_eq!(Counter::learn(&random), None);
    assert_eq!(Counter::learn(&[(Contained::None, 0), (Contained::None, 1)]), None);
    let backward: Vec<_> = (0..99).map(|n| (of(500 - n, Range::Bits(16)), 0)).collect();
    assert_eq!(Counter::learn(&backward), None);
}

#[test]
fn a_restart_begins_another_run() {
    let mut all = frames(&(0..300).collect::<Vec<_>>(), 1, 40_000, 65_536, Range::Bits(16));
    let again = frames(&(0..10).collect::<Vec<_>>(), 1, 0, 65_536, Range::Bits(16));
    all.extend(again.into_iter().map(|(number, at_ns)| (number, at_ns + 301 * INTERVAL_NS)));
    let runs: Vec<u32> = extended(&all).iter().map(|(run, _)| *run).collect();
    assert_eq!((runs[299], runs[300], runs[309]), (0, 1, 1));
}

#[test]
fn frames_that_are_far_too_late_begin_no_run() {
    for (behind, in_a_row) in [(258, 1), (300, 1), (300, 3), (5_000, 15), (20_000, 2)] {
        let mut indexes: Vec<u64> = (0..30_000).collect();
        let late: Vec<u64> = (25_000 - behind..).take(in_a_row).collect();
        indexes.splice(25_000..25_000, late.clone());
        let mut all = frames(&indexes, 1, 40_000, 65_536, Range::Bits(16));
        for (n, frame) in all.iter_mut().enumerate() {
            frame.1 = n.cast_signed() as i64 * INTERVAL_NS;
        }
        let found = extended(&all);
        let of_others = found.iter().zip(&indexes).filter(|((run, _), _)| *run == 0);
        assert!(of_others.clone().all(|((_, seq), n)| *seq == n.cast_signed()), "{behind}");
        assert_eq!(of_others.count(), 30_000, "{behind}");
    }
}

#[test]
fn numbers_that_continue_after_a_silence_show_a_pause() {
    for lost in [0, 5] {
        let all: Vec<_> = (0..400u64)
            .map(|n| {
                let (n, later) = if n < 300 { (n, 0) } else { (n + lost, 70_000) };
                (of(n, Range::Bits(16)), (n + later).cast_signed() * INTERVAL_NS)
            })
            .collect();
        let expected = (399 + lost).cast_signed();
        assert_eq!(extended(&all).last(), Some(&(0, expected)), "{lost}");
    }
}

#[test]
fn the_samples_of_a_second_are_found_with_a_loss_at_its_end() {
    for rate in SAMPLES_A_SECOND.map(u64::from) {
        let lost = rate - 10..rate + 7;
        let indexes: Vec<u64> = (0..3 * rate).filter(|n| !lost.contains(n)).collect();
        let found = extended(&frames(&indexes, 1, 0, rate, Range::Second));
        let expected: Vec<_> = indexes.iter().map(|n| (0, n.cast_signed())).collect();
        assert_eq!(found, expected, "{rate}");
    }
}

#[test]
fn a_loss_of_whole_seconds_is_counted_by_time() {
    for gap in [8000, 8001, 11_999, 6000] {
        let indexes: Vec<u64> = (0..5000).chain(5000 + gap..6000 + gap).collect();
        let found = extended(&frames(&indexes, 1, 0, 4000, Range::Second));
        assert!(found.iter().zip(&indexes).all(|(found, n)| *found == (0, n.cast_signed())), "{gap}");
    }
}

#[test]
fn a_restart_that_looks_like_the_end_of_a_second_is_forgotten() {
    // The talker started its numbers again at 1023.
    let mut all = frames(&(0..1024).collect::<Vec<_>>(), 1, 0, 4000, Range::Second);
    let again = frames(&(0..9000).collect::<Vec<_>>(), 1, 0, 4000, Range::Second);
    all.extend(again.into_iter().map(|(number, at_ns)| (number, at_ns + 1024 * INTERVAL_NS)));
    let expected: Vec<(u32, i64)> = (0..all.len()).map(|n| (0, n.cast_signed() as i64)).collect();
    assert_eq!(extended(&all), expected);
}

#[test]
fn a_silence_longer_than_all_values_is_counted_by_time() {
    let indexes: Vec<u64> = (0..300).chain(150_000..150_300).collect();
    let found = extended(&frames(&indexes, 1, 65_000, 65_536, Range::Bits(16)));
    assert!(found.iter().zip(&indexes).all(|(found, n)| *found == (0, n.cast_signed())));
}

proptest! {
    #[test]
    fn lost_reordered_and_repeated_frames_keep_their_numbers(
        step in prop::sample::select(vec![1u64, 8, 32, 64, 4096]),
        first in 0u64..65_536,
        lost in prop::collection::btree_set(100u64..3000, 0..200),
        swapped in prop::collection::vec(300usize..2500, 0..20),
        late_ns in 0i64..200 * INTERVAL_NS,
        stall in 400usize..2000,
    ) {
        let mut indexes: Vec<u64> = (0..3000).filter(|n| !lost.contains(n)).collect();
        for at in swapped {
            indexes.swap(at, at + 1);
        }
        indexes.insert(1500, indexes[1490]);
        let mut all = frames(&indexes, step, first, 65_536, Range::Bits(16));
        // Frames cannot pass each other: times rise. A stall and its burst.
        let end_ns = all[stall].1 + late_ns;
        for (n, frame) in all.iter_mut().enumerate().skip(stall) {
            frame.1 = frame.1.max(end_ns + n.cast_signed() as i64 * 10);
        }
        // With few values, an early number looks like one a whole turn later.
        prop_assume!(65_536 / step > 600);
        let found = extended(&all);
        for (found, n) in found.iter().zip(&indexes) {
            prop_assert_eq!(*found, (0, n.cast_signed()));
        }
    }
}
