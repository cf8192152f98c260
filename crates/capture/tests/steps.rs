//! Stalls, skipped slots, and clocks that change: no false lateness, and the right steps.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames and times in test captures are small"
)]

mod support;

use record::{Outcome, StepKind};
use support::{
    Seen, Talker, analysed, assert_not_failed, avtp, datagrams, is_lost, losses, options, outcome, scatter, sorted,
};

const PERIOD_NS: i64 = 125_000;

/// The frames of a talker with 8-bit numbers that are not lost, at these times.
fn without(count: u64, at: impl Fn(u64) -> i64, is_lost: impl Fn(u64) -> bool) -> Vec<Seen> {
    let mut talker = Talker::plain(1);
    sorted((0..count).filter(|n| !is_lost(*n)).map(|n| talker.seen(n, at(n))).collect())
}

/// A frame every 125 us with a jitter of 0 to 200 ns.
fn regular(n: u64) -> i64 {
    n as i64 * PERIOD_NS + scatter(n)
}

/// Groups of frames 5 us apart, every 125 us.
fn grouped(group: u64) -> impl Fn(u64) -> i64 {
    move |n| (n / group) as i64 * PERIOD_NS + (n % group) as i64 * 5_000 + scatter(n)
}

#[test]
fn a_second_long_loss_is_no_reordering() {
    for (second, lost) in [(1_100, 450), (1_067, 715), (1_072, 256), (1_300, 300), (1_072, 1_045)] {
        let is_lost = |n: u64| (1_000..1_064).contains(&n) || (second..second + lost).contains(&n);
        let found = avtp(&without(10_000, regular, is_lost));
        assert_eq!(losses(&found.capture), [64 + lost, 2, 0, 0, 0, 0], "{second} {lost}");
        assert_eq!((found.capture.late.unwrap(), found.capture.steps_total.unwrap()), (0, 0), "{second} {lost}");
    }
}

#[test]
fn lost_groups_are_neither_late_nor_a_restart() {
    for group in [2, 3, 4, 8] {
        for lost_groups in [8, 9, 17, 32, 64, 100, 300] {
            let lost = 4_000 * group..(4_000 + lost_groups) * group;
            let found = avtp(&without(8_000 * group, grouped(group), |n| lost.contains(&n)));
            assert_eq!(losses(&found.capture), [lost_groups * group, 1, 0, 0, 0, 0], "{group} {lost_groups}");
            assert_eq!(
                (found.capture.late.unwrap(), found.capture.steps_total.unwrap()),
                (0, 0),
                "{group} {lost_groups}"
            );
        }
    }
}

#[test]
fn a_fault_soon_after_a_skip_is_found() {
    for (skipped, is_pause) in [(1, false), (3, false), (1_600, true)] {
        let at = |n: u64| regular(n) + if n >= 5_000 { skipped * PERIOD_NS } else { 0 };
        let expected = if is_pause { (0, 1) } else { (skipped as u64, 0) };
        for later in [1, 18, 63, 70, 127] {
            let mut talker = Talker::plain(1);
            let mut frames = without(10_000, at, |_| false);
            frames.push(talker.seen(5_000 + later, at(5_000 + later) + 1_000));
            let twice = avtp(&sorted(frames));
            assert_eq!(losses(&twice.capture), [0, 0, 1, 0, 0, 0], "{skipped} {later}");
            let lost = 5_000 + later..5_064 + later;
            let with_loss = avtp(&without(10_000, at, |n| lost.contains(&n)));
            assert_eq!(losses(&with_loss.capture), [64, 1, 0, 0, 0, 0], "{skipped} {later}");
            for found in [twice, with_loss] {
                assert_eq!(
                    (found.capture.skipped_slots.unwrap(), found.capture.steps_total.unwrap()),
                    expected,
                    "{skipped} {later}"
                );
                assert_eq!(found.capture.late.unwrap(), 0, "{skipped} {later}");
            }
        }
    }
}

#[test]
fn random_losses_in_groups_are_not_late() {
    for group in [2, 3, 4, 8] {
        let last_of_group = |n: u64| n % group == group - 1 && is_lost(n, 10);
        let any = |percent| move |n: u64| n > 0 && is_lost(n, percent);
        let at = grouped(group);
        for frames in [
            without(8_000 * group, &at, last_of_group),
            without(8_000 * group, &at, any(2)),
            without(8_000 * group, &at, any(10)),
        ] {
            let found = avtp(&frames);
            let capture = &found.capture;
            assert!(8_000 * group - capture.lost.unwrap() - capture.frames < 5, "{group} {}", capture.lost.unwrap());
            let wrong = [
                capture.duplicates.unwrap(),
                capture.reordered.unwrap(),
                capture.restarts.unwrap(),
                capture.late.unwrap(),
                capture.steps_total.unwrap(),
            ];
            assert_eq!((wrong, capture.frames_per_period), ([0; 5], group));
            assert!(found.series.max_ns.unwrap() < 400, "{group} {:?}", found.series.max_ns);
        }
    }
}

/// The time of a frame in a stall that starts at `from`, takes `slots`, and is followed by a burst.
fn stalled(n: u64, period_ns: i64, from: u64, slots: u64) -> i64 {
    let on_time = n as i64 * period_ns + scatter(n);
    let burst = (from + slots) as i64 * period_ns + 1_500 * (n as i64 - from as i64);
    if n < from { on_time } else { on_time.max(burst) }
}

#[test]
fn a_stall_at_the_beginning_does_not_change_the_period() {
    for (count, from, slots) in [(300, 40, 200), (20_000, 20, 200), (250, 60, 130), (1_000, 5, 100), (20_000, 100, 150)]
    {
        let found = avtp(&without(count, |n| stalled(n, PERIOD_NS, from, slots), |_| false));
        let capture = &found.capture;
        assert_eq!(
            (capture.period.nominal_ns, losses(capture), capture.steps_total.unwrap()),
            (125_000, [0; 6], 0),
            "{count}"
        );
        assert!(capture.late.unwrap().abs_diff(slots) < 6, "{count} {}", capture.late.unwrap());
        let max_ns = found.series.max_ns.unwrap() - slots as i64 * PERIOD_NS;
        assert!(max_ns.abs() < 1_000, "{count} {max_ns}");
        assert_eq!(outcome(&found, "avb-class-a").0, Outcome::Fail);
        if count > 5_000 {
            let frames = datagrams((0..count).map(|n| stalled(n, 500_000, from, slots)));
            for period_ns in [Some(500_000), None] {
                let found = analysed(&frames, true, &options(true, period_ns));
                let capture = &found.capture;
                assert_eq!((capture.period.nominal_ns, &capture.lateness_unknown), (500_000, &None), "{from}");
                assert!(capture.late.unwrap().abs_diff(slots) < 6, "{from} {}", capture.late.unwrap());
            }
        }
    }
}

#[test]
fn coarse_stamps_of_a_drifting_clock_are_no_lateness() {
    // A clock that is wrong by 20 ppm, and stamps that are multiples of `step_ns`.
    let at = |n: u64, period_ns: i64, step_ns: i64| {
        (n as i64 * period_ns + n as i64 * period_ns / 50_000 + scatter(n)) / step_ns * step_ns
    };
    for step_ns in [1_000, 5_000, 10_000, 25_000] {
        let found = avtp(&without(80_000, |n| at(n, PERIOD_NS, step_ns), |_| false));
        let capture = &found.capture;
        assert_eq!((capture.late.unwrap(), capture.steps_total.unwrap()), (0, 0), "{step_ns} {:?}", capture.steps);
        let ppm = capture.period.clock_ppm.unwrap();
        assert!((ppm - 20.0).abs() <= capture.period.clock_error_ppm.unwrap(), "{step_ns} {ppm}");
        assert_not_failed(&found);
    }
    // A short capture shows no more than a step of its stamps.
    for frames in [600, 1_000, 2_000, 4_000, 8_000] {
        let period = avtp(&without(frames, |n| at(n, PERIOD_NS, 1_000), |_| false)).capture.period;
        let (ppm, error_ppm) = (period.clock_ppm.unwrap(), period.clock_error_ppm.unwrap());
        assert!((ppm - 20.0).abs() <= error_ppm, "{frames} {ppm} {error_ppm}");
    }
    let found =
        analysed(&datagrams((0..60_000).map(|n| at(n, 1_000_000, 100_000))), true, &options(true, Some(1_000_000)));
    assert_eq!(found.capture.steps_total.unwrap(), 0, "{:?}", found.capture.steps);
    assert_eq!(outcome(&found, "ethercat-1ms").0, Outcome::Inconclusive);
}

#[test]
fn stamps_of_exactly_the_period_show_no_lateness() {
    let at = |n: u64| (n as i64 * PERIOD_NS + 10_000 + if n % 100 == 50 { 60_000 } else { 0 }) / PERIOD_NS * PERIOD_NS;
    let found = avtp(&without(20_000, at, |_| false));
    let why = found.capture.lateness_unknown.as_ref().unwrap();
    assert!(why.contains("multiples of 125 us, too coarse"), "{why}");
    assert_eq!((found.capture.late, found.series.samples, found.capture.resolution_ns), (None, 0, 125_000));
    assert_not_failed(&found);
}

/// A jitter of 0 to this many ns.
fn jitter(n: u64, most_ns: i64) -> i64 {
    (scatter(n * 3 + 1) * 201 + scatter(n * 3 + 2)) * most_ns / (201 * 201)
}

#[test]
fn a_clock_that_changes_its_rate_for_a_while_is_no_lateness() {
    const SECOND: i64 = 8_000;
    /// The number of slots since a change of the rate `from` the first slot on, up to slot `to`.
    fn since(n: i64, from: i64, to: i64) -> i64 {
        n.clamp(from, to) - from
    }
    for ppm in [20, 40, -40] {
        // For the last tenth or the first tenth of 20 s, or for 2 s in each direction.
        for slots in [
            (|n| since(n, 18 * SECOND, 20 * SECOND)) as fn(i64) -> i64,
            |n| -since(n, 0, 2 * SECOND),
            |n| since(n, 9 * SECOND, 11 * SECOND) - since(n, 11 * SECOND, 13 * SECOND),
        ] {
            let at = |n: u64| regular(n) + slots(n as i64) * PERIOD_NS * ppm / 1_000_000;
            let found = avtp(&without(160_000, at, |_| false));
            let capture = &found.capture;
            assert!(capture.steps.iter().all(|step| step.kind == StepKind::Drift), "{ppm} {:?}", capture.steps);
            assert_eq!((capture.late, losses(capture)), (None, [0; 6]), "{ppm}");
            let (max_ns, moved_ns) = (found.series.max_ns.unwrap(), capture.steps[0].ns.unwrap().abs());
            assert!(max_ns < 25_000 && (10_000..90_000).contains(&moved_ns), "{ppm} {max_ns} {moved_ns}");
            assert_not_failed(&found);
        }
    }
}

#[test]
fn a_step_to_an_earlier_phase_is_found_despite_late_frames() {
    for step_ns in [-45_000, -12_500] {
        for late in [&[2_030][..], &[2_003, 2_031, 2_032, 2_033, 2_060]] {
            let at = |n: u64| {
                let step_ns = if n >= 2_000 { step_ns } else { 0 };
                n as i64 * PERIOD_NS + jitter(n, 10_000) + step_ns + if late.contains(&n) { 44_000 } else { 0 }
            };
            let found = avtp(&without(10_000, at, |_| false));
            let [step] = &found.capture.steps[..] else { panic!("{step_ns}: {:?}", found.capture.steps) };
            assert!(step.frame.abs_diff(2_001) < 8 && step.kind == StepKind::Phase, "{step:?}");
            let max_ns = found.series.max_ns.unwrap();
            assert!((44_000..56_000).contains(&max_ns), "{step_ns} {max_ns}");
        }
    }
}

#[test]
fn a_step_back_soon_after_a_step_is_found() {
    // Steps at frames 8000 and `second`.
    for (first_ns, second_ns) in [(100_000, -65_000), (PERIOD_NS, -30_000), (1_000_000_000, -50_000)] {
        for second in [8_200, 8_500, 10_000, 12_500] {
            let at = |n: u64| {
                let steps = [(8_000, first_ns), (second, second_ns)].into_iter().filter(|step| n >= step.0);
                regular(n) + steps.map(|step| step.1).sum::<i64>()
            };
            let found = avtp(&without(30_000, at, |_| false));
            let capture = &found.capture;
            let is_skip = first_ns == PERIOD_NS;
            assert_eq!(
                (capture.late.unwrap(), capture.skipped_slots.unwrap()),
                (0, u64::from(is_skip)),
                "{first_ns} {second}"
            );
            assert_eq!(capture.steps_total.unwrap(), 2 - u64::from(is_skip), "{first_ns} {second}");
            let last = capture.steps.last().unwrap();
            assert_eq!((last.frame, last.kind), (second + 1, StepKind::Phase), "{first_ns} {second}");
            assert!((last.ns.unwrap() - second_ns).abs() < 500, "{last:?}");
        }
    }
}

#[test]
fn a_few_early_frames_make_no_other_frame_late() {
    for (early, first) in [(1, 4_000), (2, 4_000), (2, 1_000), (3, 100), (5, 6_000), (2, 7_990)] {
        for by_ns in [2_000, 5_000, 60_000, 100_000] {
            let frames = |count: u64| {
                let at = |n: u64| {
                    let is_early = (first..first + early).contains(&n);
                    n as i64 * PERIOD_NS + jitter(n, 1_000) - if is_early { by_ns } else { 0 }
                };
                without(count, at, |_| false)
            };
            for count in [8_000, 30_000] {
                let capture = avtp(&frames(count)).capture;
                let found = (capture.late, capture.late_packets, capture.steps_total, capture.skipped_slots);
                assert_eq!(found, (Some(0), Some(0), Some(0), Some(0)), "{early} from {first} by {by_ns} of {count}");
            }
        }
    }
}

#[test]
fn jitter_is_no_step_at_the_end() {
    for seed in 0..20 {
        let at = |n: u64| n as i64 * PERIOD_NS + n as i64 * PERIOD_NS / 50_000 + jitter(n + seed * 1_000_003, 31_250);
        let found = avtp(&without(20_000, at, |_| false));
        assert_eq!(
            (found.capture.steps_total.unwrap(), found.capture.skipped_slots.unwrap()),
            (0, 0),
            "{:?}",
            found.capture.steps
        );
        // A small step of the phase is sudden.
        let with_step =
            |n: u64| n as i64 * PERIOD_NS + jitter(n + seed * 1_000_003, 25_000) + if n >= 12_000 { 12_500 } else { 0 };
        let found = avtp(&without(20_000, with_step, |_| false));
        let [step] = &found.capture.steps[..] else { panic!("{seed}: {:?}", found.capture.steps) };
        assert!(step.frame.abs_diff(12_001) < 20 && step.kind == StepKind::Phase, "{seed} {step:?}");
    }
}

#[test]
fn a_stall_that_lasts_to_the_end_skips_no_slot() {
    for (from, slots) in [(9_900, 200), (9_980, 50), (9_997, 4), (9_000, 2_000)] {
        let found = avtp(&without(10_000, |n| stalled(n, PERIOD_NS, from, slots), |_| false));
        let capture = &found.capture;
        assert_eq!(
            (capture.skipped_slots.unwrap(), capture.steps_total.unwrap(), losses(capture)),
            (0, 0, [0; 6]),
            "{from}"
        );
        assert_eq!(capture.late.unwrap(), 10_000 - from, "{from}");
        assert!((found.series.max_ns.unwrap() - slots as i64 * PERIOD_NS).abs() < 500, "{from}");
    }
}

#[test]
fn a_wrong_period_does_not_change_the_losses_of_numbered_frames() {
    for lost in [1, 20, 255, 256, 300, 1_000] {
        let mut talker = Talker::plain(1);
        let sent = (0..20_000).filter(|n| !(9_000..9_000 + lost).contains(n) && n % 3_000 != 2_007);
        let mut frames: Vec<Seen> = sent.map(|n| talker.seen(n, n as i64 * PERIOD_NS + scatter(n))).collect();
        let again = Seen { at_ns: frames[4_000].at_ns + 30_000, ..frames[4_000].clone() };
        frames.insert(4_001, again);
        for period_ns in [1_000, 50_000, 100_000, 122_000, 130_000, 250_000, 1_000_000, 1_000_000_000] {
            let found = analysed(&frames, true, &options(false, Some(period_ns)));
            let counts = losses(&found.capture);
            assert_eq!(counts, [lost + 6, 7, 1, 0, 0, 0], "{lost} of {period_ns}");
            let why = found.capture.lateness_unknown.unwrap_or_default();
            assert!(why.contains("a frame every 125 us, but --period is"), "{period_ns}: {why}");
        }
    }
}

/// Two taps whose captures were joined, so that the file contains each frame twice.
#[test]
fn copies_of_frames_are_no_bursts_and_need_no_credit() {
    for talker in [Talker::new, Talker::plain] {
        let mut frames = talker(1).steady(5_000);
        frames.extend((0..5_000).map(|n| talker(1).seen(n, n as i64 * PERIOD_NS + 1_300 + scatter(n))));
        frames.sort_by_key(|seen| seen.at_ns);
        let found = avtp(&frames).capture;
        assert_eq!(losses(&found), [0, 0, 5_000, 0, 0, 0]);
        let shaper = found.shaper.unwrap();
        assert_eq!((found.bursts, found.longest_burst, shaper.violations), (Some(0), 0, 0));
        assert!(found.min_gap_ns.unwrap() < 1_600, "the intervals are those of the capture");
    }
    // Frames as close with numbers of their own are a burst.
    let mut talker = Talker::plain(1);
    let mut frames = talker.steady(5_000);
    for (n, frame) in (0..50).zip(&mut frames[3_000..]) {
        *frame = talker.seen(3_000 + n, 3_049 * PERIOD_NS + 20_000 + n as i64 * 1_300);
    }
    let found = avtp(&frames).capture;
    assert_eq!((found.bursts, found.longest_burst), (Some(1), 50));
    assert!(found.shaper.unwrap().violations > 25);
}

#[test]
fn copies_at_the_end_are_no_restart() {
    for copies in [8, 15, 16, 17, 40, 200] {
        for (after_ns, apart_ns) in [(60_000, PERIOD_NS), (3_000, 2_000)] {
            let mut talker = Talker::plain(1);
            let mut frames = talker.steady(10_000);
            let at_ns = |n: u64| 10_000 * PERIOD_NS + after_ns + n as i64 * apart_ns;
            frames.extend((0..copies).map(|n| talker.seen(10_000 - copies + n, at_ns(n))));
            let found = avtp(&frames);
            assert_eq!(losses(&found.capture), [0, 0, copies, 0, 0, 0], "{copies} {apart_ns}");
            assert_eq!((found.capture.late, found.capture.steps_total), (Some(0), Some(0)), "{copies} {apart_ns}");
        }
    }
    // A talker that starts again goes on to numbers that were not seen.
    let mut talker = Talker::plain(1);
    let frames: Vec<_> = talker.steady(10_000);
    let again = (0..500).map(|n| talker.seen(9_900 + n, (10_000 + n as i64) * PERIOD_NS + scatter(n)));
    let found = avtp(&frames.into_iter().chain(again).collect::<Vec<_>>());
    assert_eq!(losses(&found.capture), [0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_restart_with_another_period_is_a_change() {
    let mut talker = Talker::plain(1);
    let mut frames = talker.steady(10_000);
    frames.extend((0..10_000).map(|n| talker.seen(n + 177, (20_000 + 2 * n as i64) * PERIOD_NS + 33_000 + scatter(n))));
    let found = avtp(&frames).capture;
    let why = found.lateness_unknown.unwrap_or_default();
    assert!(why.starts_with("the talker changed its period from 125 us to 250 us"), "{why}");
    assert_eq!((found.late, found.skipped_slots), (None, None));
}
