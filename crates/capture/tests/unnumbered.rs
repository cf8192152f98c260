//! Missing and surplus frames of streams without numbers are counted exactly, and neither makes another frame late.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "numbers of frames in test captures are small")]

mod support;

use std::collections::BTreeSet;

use capture::{Options, analyse};
use proptest::prelude::*;
use record::Capture;
use support::{LITTLE, OPTIONS, datagram, pcap};

const FRAMES: u64 = 6_000;
const PERIOD_NS: i64 = 1_000_000;

fn analysed(mut times_ns: Vec<i64>, period_ns: Option<u64>) -> Capture {
    times_ns.sort_unstable();
    let frames: Vec<_> = times_ns.into_iter().map(|at_ns| datagram(at_ns, 7_000)).collect();
    let file = pcap(LITTLE, true, 1, &frames);
    analyse(|| Ok(&file[..]), "test", &Options { period_ns, ..OPTIONS }).unwrap().capture
}

/// Skipped slots, surplus frames, late packets and changes of the grid.
fn counts(capture: &Capture) -> [Option<u64>; 4] {
    [capture.skipped_slots, capture.surplus, capture.late_packets, capture.steps_total]
}

/// A pseudo-random number below `below`.
fn random(n: u64, below: i64) -> i64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x ^ x >> 32) % below as u64) as i64
}

#[test]
fn a_missing_frame_and_a_later_duplicate_make_no_frame_late() {
    for after in [1, 2, 3, 10, 49, 50, 63, 64, 65, 500, 4_000] {
        let times = (0..FRAMES).filter(|n| *n != 1_000).map(|n| n as i64 * PERIOD_NS + random(n, 2_000));
        let duplicate = (1_000 + after) * PERIOD_NS + 5_000;
        let found = analysed(times.chain([duplicate]).collect(), None);
        assert_eq!(counts(&found), [Some(1), Some(1), Some(0), Some(0)], "{after}");
    }
}

#[test]
fn frames_that_catch_up_are_late_and_not_missing() {
    for slots in [2, 3, 10, 100] {
        let at = |n: i64| {
            if (1_000..1_000 + slots).contains(&n) { (1_000 + slots) * PERIOD_NS - 1_000 } else { n * PERIOD_NS }
        };
        let found = analysed((0..FRAMES).map(|n| at(n as i64) + random(n, 900)).collect(), None);
        assert_eq!(counts(&found), [Some(0), Some(0), Some(slots as u64), Some(0)], "{slots}");
    }
}

/// Each frame comes again with the same bytes, as from a mirror port: neither of them is late.
#[test]
fn copies_of_each_frame_have_no_slots() {
    for later_ns in [100_000, 400_000, 600_000] {
        let frame = |n: u64, at_ns: i64| {
            let mut seen = datagram(at_ns + random(n, 900), 7_000);
            seen.bytes[50..58].copy_from_slice(&n.to_be_bytes());
            seen
        };
        let twice = |n: u64| [0, later_ns].map(|later_ns| frame(n, n as i64 * PERIOD_NS + later_ns));
        let frames: Vec<_> = (0..FRAMES).flat_map(twice).collect();
        let file = pcap(LITTLE, true, 1, &frames);
        let found = analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap().capture;
        let why = found.lateness_unknown.clone().unwrap_or_default();
        assert!(why.contains("in groups of 2 every 1"), "{later_ns}: {why}");
        assert_eq!(counts(&found), [None; 4], "{later_ns}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn missing_and_surplus_frames_are_counted_exactly(
        missing in prop::collection::btree_set(1..FRAMES - 1, 0..60),
        surplus in prop::collection::btree_set(1..FRAMES - 1, 0..60),
        jitter_ns in 1..PERIOD_NS / 4,
        later_ns in 1_000..PERIOD_NS / 5,
        seed: u32,
        is_given: bool,
    ) {
        let surplus: BTreeSet<u64> = surplus.difference(&missing).copied().collect();
        let at = |n: u64| n as i64 * PERIOD_NS + random(n + u64::from(seed), jitter_ns);
        let times = (0..FRAMES).filter(|n| !missing.contains(n)).map(at);
        let again = surplus.iter().map(|&n| at(n) + later_ns);
        let found = analysed(times.chain(again).collect(), is_given.then_some(PERIOD_NS as u64));
        let expected = [missing.len() as u64, surplus.len() as u64, 0, 0].map(Some);
        prop_assert_eq!(counts(&found), expected, "{:?}", found.steps);
    }

    #[test]
    fn frames_anywhere_between_two_slots_move_no_slots(
        between in prop::collection::btree_map(100..FRAMES - 100, PERIOD_NS / 20..PERIOD_NS * 19 / 20, 0..400),
        jitter_ns in 1..9_000i64,
        seed: u32,
    ) {
        let times = (0..FRAMES).map(|n| n as i64 * PERIOD_NS + random(n + u64::from(seed), jitter_ns));
        let others = between.iter().map(|(&n, &later_ns)| n as i64 * PERIOD_NS + later_ns);
        let found = analysed(times.chain(others).collect(), None);
        prop_assert_eq!(counts(&found), [0, between.len() as u64, 0, 0].map(Some), "{:?}", found.steps);
        // No frame is late by more than the jitter.
        prop_assert_eq!(found.late, Some(0));
    }
}
