//! Early frames, and frames in another order than their times, make no other frame late. What stamps do not show is not known.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "numbers of frames in test captures are small"
)]

mod support;

use capture::Options;
use record::StepKind;
use support::{OPTIONS, Seen, Talker, analysed, avtp, datagram, losses, scatter};

const PERIOD_NS: i64 = 125_000;

/// A talker's frames, each so many ns after its slot.
fn late_by(count: u64, late_ns: impl Fn(u64) -> i64) -> Vec<Seen> {
    let mut talker = Talker::plain(1);
    (0..count).map(|n| talker.seen(n, n as i64 * PERIOD_NS + scatter(n) + late_ns(n))).collect()
}

#[test]
fn early_frames_in_a_row_make_no_other_late() {
    for early_ns in [5_000, 60_000] {
        for early in [4, 7, 12, 30, 63] {
            for from in [100, 1_000, 4_000, 4_090, 8_000] {
                let is_early = |n: u64| (from..from + early).contains(&n);
                let found = avtp(&late_by(10_000, |n| if is_early(n) { -early_ns } else { 0 }));
                let counts = (found.capture.late, found.capture.steps_total, losses(&found.capture));
                assert_eq!(counts, (Some(0), Some(0), [0; 6]), "{early} by {early_ns} ns from {from}");
                assert!(found.series.early >= early, "{}", found.series.early);
            }
        }
    }
}

#[test]
fn more_early_frames_in_a_row_are_two_changes_of_the_phase() {
    for (early, from) in [(64, 4_000), (65, 1_000), (190, 4_000), (128, 8_000)] {
        let is_early = |n: u64| (from..from + early).contains(&n);
        let capture = avtp(&late_by(14_000, |n| if is_early(n) { -60_000 } else { 0 })).capture;
        let steps: Vec<_> = capture.steps.iter().map(|step| (step.kind, step.frame)).collect();
        assert_eq!(steps, [(StepKind::Phase, from + 1), (StepKind::Phase, from + early + 1)], "{early} from {from}");
        assert_eq!(capture.late, Some(0));
    }
}

#[test]
fn a_talker_that_runs_ahead_and_waits_is_early() {
    for (from, count) in [(1_000, 40), (4_000, 40), (4_000, 60), (6_000, 40), (9_940, 60), (9_992, 8)] {
        let ahead = |n: u64| if (from..from + count).contains(&n) { -123_000 * (n - from) as i64 } else { 0 };
        let found = avtp(&late_by(10_000, ahead));
        assert_eq!((found.capture.late, found.capture.steps_total), (Some(0), Some(0)), "{count} from {from}");
        assert!(found.series.max_ns.unwrap() < 2_000, "{:?}", found.series.max_ns);
    }
}

#[test]
fn single_early_frames_are_no_change_of_the_phase() {
    for every in [8, 30] {
        let is_early = |n: u64| (4_000..4_096).contains(&n) && n.is_multiple_of(every);
        let found = avtp(&late_by(10_000, |n| if is_early(n) { -60_000 } else { 0 }));
        assert_eq!((found.capture.late, found.capture.steps_total), (Some(0), Some(0)), "{every}");
    }
}

#[test]
fn frames_in_another_order_than_their_times_are_no_bursts() {
    let mut frames = late_by(8_000, |_| 0);
    (0..20).for_each(|n| frames.swap(300 * n + 40, 300 * n + 41));
    let capture = avtp(&frames).capture;
    let counts = (capture.out_of_order, capture.lost, capture.reordered, capture.late, capture.bursts);
    assert_eq!(counts, (20, Some(0), Some(20), Some(0), Some(0)));
    assert_eq!(capture.shaper.unwrap().violations, 0);
}

#[test]
fn a_clock_that_is_set_by_years_keeps_the_resolution() {
    let years_ns = 1_700_000_000_000_000_000;
    for step_ns in [years_ns, -years_ns] {
        let mut frames = late_by(16_000, |_| 0);
        let set = |seen: &mut Seen| seen.at_ns = seen.at_ns.wrapping_add_signed(step_ns);
        frames[8_000..].iter_mut().for_each(set);
        if step_ns < 0 {
            frames.iter_mut().for_each(|seen| seen.at_ns = seen.at_ns.wrapping_add_signed(years_ns));
        }
        let found = avtp(&frames);
        assert_eq!((found.capture.late, found.capture.steps_total), (Some(0), Some(1)), "{step_ns}");
        assert!(found.series.max_ns.unwrap() < 1_250);
        if step_ns < 0 {
            assert_eq!(found.capture.duration_ns / 1_000_000, 999, "until the clock was set");
        }
    }
}

/// In a stall, the oldest frames are dropped, and the last ones are sent at once.
#[test]
fn frames_dropped_in_a_stall_are_lost() {
    for (stall, sent) in [(40, 8), (43, 10), (100, 10), (100, 14), (200, 12), (400, 12)] {
        let all = late_by(14_000, |n| {
            let end = 8_000 + stall;
            if (8_000..end).contains(&n) {
                (end - n) as i64 * PERIOD_NS + ((n + sent) as i64 - end as i64) * 1_500
            } else {
                0
            }
        });
        let is_kept = |n: usize| !(8_000..8_000 + (stall - sent) as usize).contains(&n);
        let frames: Vec<Seen> =
            all.into_iter().enumerate().filter(|(n, _)| is_kept(*n)).map(|(_, seen)| seen).collect();
        let capture = avtp(&frames).capture;
        assert_eq!((capture.lost, capture.restarts), (Some(stall - sent), Some(0)), "{sent} of {stall}");
    }
}

#[test]
fn datagrams_in_another_order_than_their_times_are_in_their_slots() {
    for block in [1, 2, 10] {
        let mut frames: Vec<Seen> = (0..8_000).map(|n| datagram(n as i64 * PERIOD_NS + scatter(n), 5_000)).collect();
        (0..20).for_each(|n| frames[300 * n + 40..300 * n + 40 + 2 * block].rotate_left(block));
        let options = Options { period_ns: Some(125_000), ..OPTIONS };
        let capture = analysed(&frames, true, &options).capture;
        let counts = (capture.late, capture.skipped_slots, capture.surplus, capture.steps_total, capture.clock_steps);
        assert_eq!(counts, (Some(0), Some(0), Some(0), Some(0), Some(0)), "{block}");
    }
}

#[test]
fn too_few_frames_or_another_period_show_no_rate_of_the_clock() {
    let ppm = |count: u64, period_ns: Option<u64>| {
        let frames = Talker::plain(1).steady(count);
        analysed(&frames, true, &Options { period_ns, ..OPTIONS }).capture.period.clock_ppm
    };
    assert!(ppm(8_000, None).is_some() && ppm(8_000, Some(125_000)).is_some());
    for (count, period_ns) in
        [(1, Some(125_000)), (2, None), (8_000, Some(1_000_000)), (8_000, Some(3_600_000_000_000))]
    {
        assert_eq!(ppm(count, period_ns), None, "{count} {period_ns:?}");
    }
}

#[test]
fn stamps_as_coarse_as_the_period_show_no_bursts_and_no_credit() {
    let mut frames = Talker::plain(1).steady(8_000);
    frames.iter_mut().for_each(|seen| seen.at_ns -= seen.at_ns % 1_000_000);
    let found = analysed(&frames, true, &OPTIONS);
    assert_eq!((found.capture.bursts, found.capture.shaper.is_some()), (None, false));
    assert!(found.caveats.iter().all(|caveat| caveat.kind != "batches"));
}
