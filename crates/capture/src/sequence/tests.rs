use super::*;
use crate::convert::signed;
use proptest::prelude::*;

const PERIOD_NS: i64 = 1_000;

fn sequence() -> Sequence {
    Sequence::new(Schedule::new(PERIOD_NS as f64, None, 1))
}

/// Frames in the order of arrival, each with its time. Given for each frame: lost, late by so many slots, duplicated.
fn arrivals(fates: &[(bool, i64, bool)]) -> Vec<(i64, u64)> {
    let mut seen = Vec::new();
    for (n, &(lost, later, twice)) in fates.iter().enumerate() {
        let due_ns = (signed(n) + later) * PERIOD_NS + if later > 0 { PERIOD_NS / 2 } else { 0 };
        if !lost {
            seen.push((due_ns, n as u64));
        }
        if !lost && twice {
            seen.push((due_ns + PERIOD_NS / 4, n as u64));
        }
    }
    seen.sort_unstable();
    seen
}

fn fates() -> impl Strategy<Value = Vec<(bool, i64, bool)>> {
    let fate = (prop::bool::weighted(0.05), prop_oneof![60 => Just(0i64), 1 => 1..200i64], prop::bool::weighted(0.02));
    prop::collection::vec(fate, 2..600)
}

/// Counts of lost, duplicated and reordered frames from the first arrival to the newest frame.
fn expected_counts(seen: &[(i64, u64)]) -> (u64, u64, u64) {
    let (first, mut newest) = (seen[0].1, None);
    let mut known = std::collections::BTreeSet::new();
    let (mut duplicates, mut reordered) = (0, 0);
    for &(_, n) in seen {
        if !known.insert(n) {
            duplicates += 1;
        } else if Some(n) < newest {
            reordered += 1;
        }
        newest = newest.max(Some(n));
    }
    let in_range = known.iter().filter(|&&n| n >= first).count() as u64;
    (newest.map_or(0, |newest| newest - first + 1 - in_range), duplicates, reordered)
}

proptest! {
    #[test]
    fn classifies_each_frame(fates in fates(), whole: bool) {
        // 8-bit numbers need the first and the last frames to be on time.
        let on_time = vec![(false, 0, false); 220];
        let seen = arrivals(&[&on_time, &fates[..], &on_time].concat());
        let mut sequence = sequence();
        let mut indexes = Vec::new();
        for &(at_ns, n) in &seen {
            let number = if whole { Number::Whole { run: 1, seq: n } } else { Number::Eight(n.to_le_bytes()[0]) };
            sequence.add(n, at_ns, number, &mut |placed| indexes.push((placed.frame, placed.index)));
        }
        sequence.flush(&mut |placed| indexes.push((placed.frame, placed.index)));
        prop_assert_eq!((sequence.lost, sequence.duplicates, sequence.reordered), expected_counts(&seen));
        prop_assert_eq!((sequence.too_late, sequence.restarts), (0, 0));
        indexes.iter().for_each(|(n, index)| assert_eq!(n.cast_signed(), *index));
    }

    #[test]
    fn arbitrary_numbers_do_not_panic(
        numbers in prop::collection::vec((any::<u64>(), 0..3u8, any::<i64>()), 0..300),
        period_ns in 1.0..1e12,
    ) {
        let mut sequence = Sequence::new(Schedule::new(period_ns, Some(1.0), 1));
        let mut placed = 0;
        for &(n, kind, at_ns) in &numbers {
            let number = match kind {
                0 => Number::Eight(n.to_le_bytes()[0]),
                1 => Number::Whole { run: (n % 3) as u32, seq: n },
                _ => Number::None,
            };
            sequence.add(0, at_ns, number, &mut |_| placed += 1);
        }
        sequence.flush(&mut |_| placed += 1);
        prop_assert!(placed <= numbers.len());
    }
}

#[test]
fn a_new_run_continues_after_the_previous_one() {
    let mut sequence = sequence();
    let mut indexes = Vec::new();
    let mut place = |placed: Placed| indexes.push((placed.index, placed.restarts));
    for (n, (run, seq)) in (0..).zip([(1, 500), (1, 501), (2, 0), (2, 2)]) {
        sequence.add(0, n * PERIOD_NS, Number::Whole { run, seq }, &mut place);
    }
    sequence.flush(&mut place);
    assert_eq!(indexes, [(0, false), (1, false), (2, true), (4, false)]);
    assert_eq!((sequence.restarts, sequence.lost, sequence.duplicates), (1, 1, 0));
}

#[test]
fn few_frames_of_another_run_before_this_one_continues_are_too_late() {
    for (others, restarts) in [(1, 0), (15, 0), (16, 2)] {
        let mut sequence = sequence();
        let mut placed = 0;
        let runs = (0..20).map(|n| (1, n)).chain((0..others).map(|n| (2, n))).chain((20..40).map(|n| (1, n)));
        for (at, (run, seq)) in (0..).zip(runs) {
            sequence.add(0, at * PERIOD_NS, Number::Whole { run, seq }, &mut |_| placed += 1);
        }
        sequence.flush(&mut |_| placed += 1);
        let too_late = if restarts == 0 { others } else { 0 };
        assert_eq!((sequence.restarts, sequence.too_late), (restarts, too_late), "{others}");
        assert_eq!(placed, 40 + others - too_late, "{others}");
    }
}
