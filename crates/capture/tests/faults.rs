//! Faults whose truth is known: no false lateness, loss or verdict.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames and times in test captures are small"
)]

mod support;

use capture::Analysis;
use record::{Capture, Outcome, StepKind};
use support::{
    Seen, Talker, analysed, assert_not_failed, avtp, datagrams, is_lost, losses, options, outcome, scatter, sorted, udp,
};

const PERIOD_NS: i64 = 125_000;

#[test]
fn one_very_late_frame_is_reordered_and_not_lost() {
    for slots in [5, 63, 64, 65, 100, 127, 128, 129, 160, 190, 191, 192, 240, 254] {
        let mut talker = Talker::plain(1);
        let mut frames = talker.steady(10_000);
        frames[5_000] = talker.seen(5_000, (5_000 + slots) * PERIOD_NS + 60_000);
        let found = avtp(&sorted(frames));
        assert_eq!(losses(&found.capture), [0, 0, 0, 1, 0, 0], "{slots}");
        assert_eq!(
            (found.capture.late.unwrap(), found.capture.skipped_slots.unwrap(), found.capture.steps_total.unwrap()),
            (1, 0, 0),
            "{slots}"
        );
        assert_eq!(found.capture.worst_late[0].ns / PERIOD_NS, slots);
    }
}

#[test]
fn one_old_duplicate_is_not_a_loss() {
    for slots in [1, 30, 64, 128, 191, 224, 240, 250] {
        let mut talker = Talker::plain(1);
        let mut frames = talker.steady(10_000);
        frames.push(talker.seen(5_000, (5_000 + slots) * PERIOD_NS + 60_000));
        let found = avtp(&sorted(frames));
        assert_eq!(losses(&found.capture), [0, 0, 1, 0, 0, 0], "{slots}");
        assert_eq!(
            (found.capture.late.unwrap(), found.capture.skipped_slots.unwrap(), found.capture.steps_total.unwrap()),
            (0, 0, 0),
            "{slots}"
        );
    }
}

#[test]
fn a_stall_with_a_burst_is_not_a_loss() {
    for slots in [100, 200, 256, 257, 300, 512] {
        let mut talker = Talker::plain(1);
        let mut frames = talker.steady(10_000);
        for n in 0..slots {
            let at_ns = ((5_000 + slots) * PERIOD_NS).max((5_000 + n) * PERIOD_NS) - 4_000 * (slots - n);
            frames[(5_000 + n) as usize] = talker.seen(5_000 + n as u64, at_ns.max((5_000 + n) * PERIOD_NS));
        }
        let found = avtp(&sorted(frames));
        assert_eq!(losses(&found.capture), [0; 6], "{slots}");
        assert!(found.capture.late.unwrap().abs_diff(slots as u64) < 5, "{slots}: {}", found.capture.late.unwrap());
    }
}

#[test]
fn fits_the_period_of_streams_without_numbers() {
    for period_ns in [110_000.0, 120_000.0, 22_675.737, 1_001.0 / 30_000.0 * 1e9, 125_000.0, 333_333.333] {
        let times = (0..6_000u64).map(|n| (n as f64 * period_ns) as i64 + scatter(n));
        let found = udp(&datagrams(times));
        let capture = &found.capture;
        assert_eq!(
            (
                capture.late.unwrap(),
                capture.skipped_slots.unwrap(),
                capture.surplus.unwrap(),
                capture.steps_total.unwrap()
            ),
            (0, 0, 0, 0),
            "{period_ns}"
        );
        assert!((capture.period.fitted_ns / period_ns - 1.0).abs() < 1e-6, "{period_ns}: {:?}", capture.period);
        assert_eq!(capture.lateness_unknown, None);
        assert_eq!(found.series.samples, 6_000);
    }
}

#[test]
fn takes_the_period_of_the_class_only_if_it_fits() {
    for (period_ns, is_class) in
        [(110_000, false), (120_000, false), (124_900, false), (124_950, true), (125_060, true)]
    {
        let mut talker = Talker::plain(1);
        let frames: Vec<_> = (0..6_000u64).map(|n| talker.seen(n, n as i64 * period_ns + scatter(n))).collect();
        let found = avtp(&frames);
        let nominal_ns = if is_class { 125_000 } else { period_ns as u64 };
        assert_eq!((found.capture.period.nominal_ns, found.capture.late.unwrap()), (nominal_ns, 0));
    }
}

#[test]
fn frames_in_groups_have_one_period_per_group() {
    for group in [2, 3] {
        let mut talker = Talker::plain(1);
        let at = |n: u64| (n / group) as i64 * PERIOD_NS + (n % group) as i64 * 5_000 + scatter(n);
        let mut frames: Vec<_> = (0..12_000).map(|n| talker.seen(n, at(n))).collect();
        let found = avtp(&frames);
        let capture = &found.capture;
        assert_eq!((capture.period.nominal_ns, capture.frames_per_period), (125_000, group));
        assert_eq!(
            (
                capture.late.unwrap(),
                capture.skipped_slots.unwrap(),
                capture.bursts.unwrap(),
                capture.steps_total.unwrap()
            ),
            (0, 0, 0, 0)
        );
        assert_eq!((capture.window_violations.unwrap(), losses(capture)), (0, [0; 6]));
        // One group is late, and one frame is lost.
        for n in 6_000..6_000 + group {
            frames[n as usize] = talker.seen(n, at(n) + 60_000);
        }
        frames.remove(9_001);
        let found = avtp(&frames);
        assert_eq!(
            (found.capture.late.unwrap(), found.capture.lost.unwrap(), found.capture.skipped_slots.unwrap()),
            (group, 1, 0),
            "{group}"
        );
        assert!((found.series.max_ns.unwrap() - 60_000).abs() < 500, "{group} {:?}", found.series.max_ns);
        // Without numbers, the slots of frames are not known after a loss.
        let found = udp(&datagrams((0..12_000).map(at)));
        let why = found.capture.lateness_unknown.as_ref().unwrap();
        assert!(why.contains(&format!("in groups of {group} every 125 us")), "{why}");
        assert_eq!((found.capture.late, found.series.samples), (None, 0));
        assert_not_failed(&found);
    }
}

#[test]
fn a_frame_left_out_of_a_group_is_one_missing_frame() {
    for group in [2_u64, 3, 7, 8] {
        let at = |n: u64| (n / group) as i64 * PERIOD_NS + (n % group) as i64 * 5_000 + scatter(n);
        for left_out in [6_000, 6_001, 11_900] {
            let mut talker = Talker::plain(1);
            let sent = (0..12_000).filter(|n| *n != left_out);
            let found = avtp(&sent.zip(0..).map(|(n, seq)| talker.seen(seq, at(n))).collect::<Vec<_>>());
            let capture = &found.capture;
            assert_eq!(
                (capture.late.unwrap(), capture.skipped_slots.unwrap(), capture.steps_total.unwrap()),
                (0, 1, 0),
                "{group} {left_out}"
            );
            assert_eq!((capture.window_violations.unwrap(), losses(capture)), (0, [0; 6]), "{group} {left_out}");
        }
        // Several groups, or single frames of some groups.
        for whole in [true, false] {
            let is_left_out = |n: &u64| {
                let of_groups = [300, 700, 1_100].map(|number| number * group);
                of_groups.iter().any(|&first| if whole { (first..first + group).contains(n) } else { *n == first })
            };
            let mut talker = Talker::plain(1);
            let sent: Vec<u64> = (0..12_000).filter(|n| !is_left_out(n)).collect();
            let missing = 12_000 - sent.len() as u64;
            let found = avtp(&sent.iter().zip(0..).map(|(&n, seq)| talker.seen(seq, at(n))).collect::<Vec<_>>());
            let capture = &found.capture;
            assert_eq!((capture.skipped_slots, losses(capture)), (Some(missing), [0; 6]), "{group} {whole}");
            assert_eq!((capture.late, capture.steps_total), (Some(0), Some(0)), "{group} {whole} {:?}", capture.steps);
        }
        // The talker starts again inside a group.
        let mut talker = Talker::new(1);
        let mut frames: Vec<_> = (0..6_001).map(|n| talker.seen(n, at(n))).collect();
        talker.restart();
        frames.extend((0..5_999).map(|n| talker.seen(n, at(n + 6_001) + 50_000_000)));
        let found = avtp(&frames);
        assert_eq!(
            (found.capture.late.unwrap(), found.capture.skipped_slots.unwrap(), found.capture.steps_total.unwrap()),
            (0, 0, 1),
            "{group}"
        );
    }
}

#[test]
fn early_frames_do_not_change_the_period() {
    let at = |n: u64| n as i64 * PERIOD_NS - (n % 2) as i64 * 30_000 + scatter(n);
    let mut talker = Talker::plain(1);
    for found in
        [avtp(&(0..8_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>()), udp(&datagrams((0..8_000).map(at)))]
    {
        assert_eq!(found.capture.period.nominal_ns, 125_000);
        assert_eq!((found.capture.late.unwrap(), found.capture.skipped_slots.unwrap()), (4_000, 0));
        assert!((found.series.max_ns.unwrap() - 30_000).abs() < 500, "{:?}", found.series.max_ns);
    }
}

#[test]
fn many_losses_are_not_lateness() {
    for talker in [Talker::new, Talker::plain] {
        for percent in [20, 55, 70, 85] {
            let frames = talker(1).steady(20_000);
            let kept: Vec<_> =
                frames.into_iter().zip(0..).filter(|&(_, n)| !is_lost(n, percent)).map(|(seen, _)| seen).collect();
            let count = kept.len() as u64;
            let found = avtp(&kept);
            let capture = &found.capture;
            assert!(
                capture.lost.unwrap() + count > 19_900 && capture.lost.unwrap() + count <= 20_000,
                "{percent}: {}",
                capture.lost.unwrap()
            );
            assert_eq!(
                (capture.late.unwrap(), capture.skipped_slots.unwrap(), capture.steps_total.unwrap()),
                (0, 0, 0),
                "{percent}"
            );
            assert_eq!(capture.period.nominal_ns, 125_000);
        }
        // Each second frame is lost.
        let frames: Vec<_> = talker(1).steady(20_000).into_iter().step_by(2).collect();
        let found = avtp(&frames);
        assert_eq!(
            (found.capture.lost.unwrap(), found.capture.late.unwrap(), found.capture.skipped_slots.unwrap()),
            (9_999, 0, 0)
        );
    }
    for percent in [20, 55, 70] {
        let kept = (0..20_000u64).filter(|&n| !is_lost(n, percent)).map(|n| n as i64 * 1_000_000 + scatter(n));
        let found = udp(&datagrams(kept));
        assert_eq!(found.capture.late, (percent < 50).then_some(0), "{percent}");
        assert_eq!(found.capture.period.nominal_ns, 1_000_000);
        assert_eq!(found.capture.lateness_unknown.is_some(), percent > 50, "{:?}", found.capture.lateness_unknown);
    }
}

#[test]
fn a_set_clock_is_not_lateness() {
    for step_ns in [-3_000_000_000, -1_000_000, -60_123_456, 5_000_000_000, 1_234_567_890] {
        for from in [30, 300, 5_000, 9_900, 9_970] {
            for talker in [Talker::new, Talker::plain] {
                let mut frames = talker(1).steady(10_000);
                frames[from..].iter_mut().for_each(|seen| seen.at_ns = seen.at_ns.wrapping_add_signed(step_ns));
                let found = avtp(&frames);
                check_set_clock(&found, from, step_ns);
                assert_eq!(losses(&found.capture), [0; 6]);
            }
            let times =
                (0..10_000u64).map(|n| n as i64 * PERIOD_NS + scatter(n) + if n >= from as u64 { step_ns } else { 0 });
            let mut frames = datagrams(times.map(|at_ns| at_ns + 4_000_000_000));
            frames.iter_mut().for_each(|seen| seen.at_ns -= 4_000_000_000);
            check_set_clock(&udp(&frames), from, step_ns);
        }
    }
}

#[track_caller]
fn check_set_clock(found: &Analysis, from: usize, step_ns: i64) {
    let capture = &found.capture;
    assert_eq!((capture.late.unwrap(), capture.skipped_slots.unwrap()), (0, 0), "{from} {step_ns} {:?}", capture.steps);
    assert_eq!(capture.lateness_unknown, None);
    let [step] = &capture.steps[..] else { panic!("{from} {step_ns}: {:?}", capture.steps) };
    let kind = if step_ns < 0 { StepKind::ClockSet } else { StepKind::Silence };
    assert_eq!((step.frame, step.kind, capture.clock_steps.unwrap()), (from as u64 + 1, kind, 1), "{step_ns}");
    assert!((step.ns.unwrap() - step_ns).abs() < 125_500, "{step:?} {step_ns}");
    let texts: Vec<_> = found.caveats.iter().map(|caveat| caveat.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("the clock of the capture was set")), "{texts:?}");
    assert_not_failed(found);
}

#[test]
fn a_restart_is_not_a_loss() {
    for (from, number) in [
        (5_000, 0u64),
        (5_000, 100),
        (5_000, 250),
        (5_000, 130),
        (200, 0),
        (5_017, 0),
        (5_120, 50),
        (5_120, 1),
        (5_120, 2),
        (5_120, 12),
        (5_120, 255),
        (5_120, 254),
    ] {
        let mut talker = Talker::plain(1);
        let count = |n: u64| if n < from { n } else { n - from + number };
        let frames: Vec<_> = (0..10_000u64).map(|n| talker.seen(count(n), n as i64 * PERIOD_NS + scatter(n))).collect();
        let found = avtp(&frames);
        assert_eq!(losses(&found.capture), [0, 0, 0, 0, 0, 1], "{from} {number}");
        assert_eq!((found.capture.late.unwrap(), found.capture.skipped_slots.unwrap()), (0, 0), "{from} {number}");
        let [step] = &found.capture.steps[..] else { panic!("{:?}", found.capture.steps) };
        assert_eq!((step.frame, step.kind), (from + 1, StepKind::Restart));
        assert_not_failed(&found);
    }
}

#[test]
fn a_phase_step_is_not_lateness() {
    for step_ns in [60_000, -60_000, 20_000, -20_000, 5_000, -40_000] {
        let at = |n: u64| n as i64 * PERIOD_NS + scatter(n) + if n >= 7_000 { step_ns } else { 0 };
        let mut talker = Talker::plain(1);
        let mut frames: Vec<_> = (0..20_000).map(|n| talker.seen(n, at(n))).collect();
        let found = avtp(&frames);
        let capture = &found.capture;
        assert_eq!(
            (capture.late.unwrap(), capture.skipped_slots.unwrap(), losses(capture)),
            (0, 0, [0; 6]),
            "{step_ns} {:?}",
            capture.steps
        );
        let [step] = &capture.steps[..] else { panic!("{step_ns}: {:?}", capture.steps) };
        assert_eq!((step.frame, step.kind), (7_001, StepKind::Phase), "{step_ns}");
        assert!((step.ns.unwrap() - step_ns).abs() < 500, "{step:?}");
        assert!(capture.period.clock_ppm.unwrap().abs() < 1.0, "{:?}", capture.period);
        assert_not_failed(&found);
        // A late frame after the step is late.
        frames[15_000] = talker.seen(15_000, at(15_000) + 70_000);
        let found = avtp(&frames);
        assert_eq!((found.capture.late.unwrap(), found.capture.steps_total.unwrap()), (1, 1));
        assert_eq!(outcome(&found, "avb-class-a").0, Outcome::Fail);
        let found = udp(&datagrams((0..20_000).map(at)));
        assert!(
            found.capture.late.unwrap() == 0 && found.capture.steps_total.unwrap() >= 1,
            "{step_ns} {:?}",
            found.capture.steps
        );
    }
}

#[test]
fn a_duplicate_without_number_is_one_surplus_frame() {
    for (at, after_ns) in [(5_000, 3_000), (40, 3_000), (9_990, 3_000), (5_000, 0), (5_000, 300_000), (0, 2_000)] {
        let mut frames = datagrams((0..10_000u64).map(|n| n as i64 * 1_000_000 + scatter(n)));
        let clean = udp(&frames);
        let again = Seen { at_ns: frames[at].at_ns + after_ns, ..frames[at].clone() };
        frames.insert(at + 1, again);
        let found = udp(&frames);
        let capture = &found.capture;
        assert_eq!(
            (capture.surplus.unwrap(), capture.late.unwrap(), capture.skipped_slots.unwrap()),
            (1, 0, 0),
            "{at} {after_ns}"
        );
        assert_eq!((capture.steps_total.unwrap(), found.series.samples), (0, 10_000), "{at} {after_ns}");
        assert_eq!(outcome(&found, "cnc-servo-1ms"), outcome(&clean, "cnc-servo-1ms"));
    }
}

#[test]
fn a_late_frame_without_number_is_late() {
    for late_ns in [60_000, 700_000] {
        let times = (0..10_000u64).map(|n| n as i64 * 1_000_000 + scatter(n) + if n == 5_000 { late_ns } else { 0 });
        let found = udp(&datagrams(times));
        assert_eq!(
            (found.capture.late.unwrap(), found.capture.surplus.unwrap(), found.capture.skipped_slots.unwrap()),
            (1, 0, 0)
        );
    }
    // One frame is missing.
    let found = udp(&datagrams((0..10_000u64).filter(|n| *n != 5_000).map(|n| n as i64 * 1_000_000 + scatter(n))));
    assert_eq!(
        (found.capture.late.unwrap(), found.capture.surplus.unwrap(), found.capture.skipped_slots.unwrap()),
        (0, 0, 1)
    );
}

#[test]
fn coarse_time_stamps_show_no_lateness() {
    let frames = |step_ns: i64| (0..10_000u64).map(move |n| n as i64 * PERIOD_NS / step_ns * step_ns);
    for (step_ns, expected) in
        [(1_000_000, "multiples of 1 ms, too coarse"), (10_000_000_000, "timestamps of the stream are equal")]
    {
        let mut talker = Talker::plain(1);
        let numbered: Vec<_> = frames(step_ns).zip(0..).map(|(at_ns, n)| talker.seen(n, at_ns)).collect();
        let given = options(true, Some(125_000));
        for found in
            [avtp(&numbered), analysed(&datagrams(frames(step_ns)), true, &given), udp(&datagrams(frames(step_ns)))]
        {
            let why = found.capture.lateness_unknown.as_ref().unwrap();
            assert!(why.contains(expected), "{why}");
            assert_eq!((found.capture.late, found.capture.skipped_slots, found.series.samples), (None, None, 0));
            if step_ns > 1_000_000 {
                let capture = &found.capture;
                assert_eq!((capture.bursts, &capture.shaper, capture.period.clock_ppm), (None, &None, None), "equal");
            }
            assert_not_failed(&found);
        }
    }
}

/// The losses by 8-bit numbers are right as long as the stamps show how often the numbers started again, and are then not known.
#[test]
fn losses_with_coarse_stamps_are_right_or_not_known() {
    // Lost frames; all at the same place among those with one stamp, for some steps.
    let lost = [100, 101, 4_000, 6_001, 6_513];
    for slots in [2, 7, 32, 64, 100, 112, 127, 128, 136, 160, 256, 264, 400, 8_000, 1_000_000] {
        let step_ns = slots * PERIOD_NS;
        let mut talker = Talker::plain(1);
        let kept = (0..20_000u64).filter(|n| !lost.contains(n));
        let frames: Vec<Seen> = kept.map(|n| talker.seen(n, n.cast_signed() * PERIOD_NS / step_ns * step_ns)).collect();
        let Capture { lost, losses, longest_loss, duplicates, reordered, restarts, .. } = avtp(&frames).capture;
        let all = [lost, losses, longest_loss, duplicates, reordered, restarts];
        let right = [5, 4, 2, 0, 0, 0].map(Some);
        assert_eq!(all, if slots < 128 { right } else { [None; 6] }, "{slots}");
    }
}

/// A network delays each frame by up to several periods, and frames overtake each other, also at the start and at the end.
#[test]
fn overtaken_frames_of_avtp_are_no_losses() {
    for (seed, spread) in (0..12).flat_map(|seed| [1, 2, 4, 6].map(|spread| (seed, spread))) {
        let lost = [3_000, 5_000, 5_001];
        // The sum of three has few large delays.
        let part = |n: u64, of: u64| scatter(n * 3 + of + seed * 100_000) * spread * PERIOD_NS / 402;
        let mut talker = Talker::plain(1);
        let kept = (0..8_000u64).filter(|n| !lost.contains(n));
        let sent = |n: u64| n.cast_signed() * PERIOD_NS + (0..3).map(|of| part(n, of)).sum::<i64>();
        let mut frames: Vec<(u64, Seen)> = kept.map(|n| (n, talker.seen(n, sent(n)))).collect();
        frames.sort_by_key(|(_, seen)| seen.at_ns);
        let mut newest = 0;
        let is_behind = |n: &u64| {
            newest = newest.max(*n);
            newest > *n
        };
        let behind = frames.iter().map(|(n, _)| *n).filter(is_behind).count() as u64;
        let capture = avtp(&frames.into_iter().map(|(_, seen)| seen).collect::<Vec<_>>()).capture;
        let Capture { lost, losses, duplicates, reordered, restarts, too_late, .. } = capture;
        let expected = [3, 2, 0, behind, 0, 0].map(Some);
        assert_eq!([lost, losses, duplicates, reordered, restarts, too_late], expected, "{seed} {spread}");
        let latest_ns = capture.worst_late.first().map_or(0, |one| one.ns);
        assert!(latest_ns < 2 * spread * PERIOD_NS, "{seed} {spread}: {latest_ns}");
    }
}

#[test]
fn a_given_period_must_be_that_of_the_stream() {
    let frames = datagrams((0..5_000u64).map(|n| n as i64 * 150_000 + scatter(n)));
    let found = analysed(&frames, true, &options(true, Some(125_000)));
    assert_eq!((found.capture.late, found.series.samples), (None, 0));
    assert!(found.capture.lateness_unknown.is_some());
    assert_not_failed(&found);
}

#[test]
fn the_tolerance_contains_the_resolution() {
    let mut talker = Talker::plain(1);
    let mut frames: Vec<_> = (0..10_000u64).map(|n| talker.seen(n, n as i64 * 125_003 + scatter(n) * 3)).collect();
    let late = |frames: &[Seen], nanoseconds| {
        let found = analysed(frames, nanoseconds, &options(false, None));
        (found.capture.tolerance_ns, found.capture.late.unwrap())
    };
    assert_eq!([late(&frames, true), late(&frames, false)], [(1_250, 0), (2_250, 0)]);
    frames[5_000] = talker.seen(5_000, 5_000 * 125_003 + 1_700);
    assert_eq!([late(&frames, true), late(&frames, false)], [(1_250, 1), (2_250, 0)]);
}

#[test]
fn an_episode_of_lateness_is_late() {
    for (from, frames_late) in [(3_000, 10), (3_000, 200), (3_000, 3_000), (50, 100)] {
        let late = from..from + frames_late;
        let at = |n: u64| n as i64 * PERIOD_NS + scatter(n) + if late.contains(&n) { 60_000 } else { 0 };
        let mut talker = Talker::plain(1);
        for found in [
            avtp(&(0..15_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>()),
            udp(&datagrams((0..15_000).map(at))),
        ] {
            assert_eq!((found.capture.late.unwrap(), found.capture.skipped_slots.unwrap()), (frames_late, 0), "{from}");
            assert_eq!(
                (found.capture.steps_total.unwrap(), found.capture.surplus.unwrap()),
                (0, 0),
                "{from} {:?}",
                found.capture.steps
            );
        }
    }
}

#[test]
fn many_phase_steps_are_no_lateness() {
    for step_ns in [60_000, -20_000] {
        for every in [500, 3_000] {
            let at = |n: u64| n as i64 * PERIOD_NS + scatter(n) + (n / every) as i64 * step_ns;
            let mut talker = Talker::plain(1);
            let found = avtp(&(0..30_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>());
            assert_eq!(
                (found.capture.late.unwrap(), found.capture.skipped_slots.unwrap()),
                (0, 0),
                "{step_ns} {every}"
            );
            assert_eq!(found.capture.steps_total.unwrap(), (30_000 - 1) / every, "{step_ns} {every}");
        }
    }
}

#[test]
fn a_restart_after_a_pause_is_neither_late_nor_lost() {
    for talker in [Talker::new, Talker::plain] {
        for pause_ns in [1_000_000, 50_060_000, 7_000_000_000] {
            let mut talker = talker(1);
            let mut frames: Vec<_> = (0..5_000).map(|n| talker.seen(n, n as i64 * PERIOD_NS + scatter(n))).collect();
            talker.restart();
            let after = |n: u64| (5_000 + n as i64) * PERIOD_NS + pause_ns + scatter(n);
            frames.extend((0..5_000).map(|n| talker.seen(n, after(n))));
            let found = avtp(&frames);
            assert_eq!(losses(&found.capture), [0, 0, 0, 0, 0, 1], "{pause_ns}");
            assert_eq!(
                (found.capture.late.unwrap(), found.capture.skipped_slots.unwrap(), found.capture.steps_total.unwrap()),
                (0, 0, 1),
                "{pause_ns}"
            );
            assert_not_failed(&found);
        }
    }
}

#[test]
fn jitter_is_measured_in_any_stream() {
    for jitter in [1, 100, 200] {
        let at = |n: u64| n as i64 * 125_030 + scatter(n) * jitter;
        let mut talker = Talker::plain(1);
        for found in [
            avtp(&(0..15_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>()),
            udp(&datagrams((0..15_000).map(at))),
        ] {
            let counts = [found.capture.skipped_slots, found.capture.surplus, found.capture.steps_total];
            assert_eq!(counts, [Some(0); 3], "{jitter} {:?}", found.capture.steps);
            let max_ns = found.series.max_ns.unwrap();
            assert!((max_ns - 200 * jitter).abs() <= 20 * jitter + 100, "{jitter} {max_ns}");
            assert_eq!(found.series.samples, 15_000);
        }
    }
}

/// A talker that skips one slot of 50 with no gap in its numbers, is late before some of them, and has a clock that is
/// wrong by 40 ppm; the number of skipped slots and of late frames.
fn skipping(frames: u64, one_of: u64) -> (Vec<Seen>, u64, u64) {
    let mut talker = Talker::new(1);
    let (mut slot, mut skipped, mut late) = (0, 0, 0);
    let mut seen = Vec::new();
    for seq in 0..frames {
        let draw = scatter(seq * 31 + 7) as u64 * 201 + scatter(seq * 17 + 3) as u64;
        if seq > 0 && draw.is_multiple_of(one_of) {
            let slots = 1 + draw % 5;
            slot += slots as i64;
            skipped += slots;
        }
        let lateness_ns = if draw % one_of == 1 { 60_000 } else { 0 };
        late += u64::from(lateness_ns > 0);
        let at_ns = slot * PERIOD_NS + lateness_ns + scatter(seq);
        seen.push(talker.seen(seq, at_ns + at_ns / 25_000));
        slot += 1;
    }
    (seen, skipped, late)
}

#[test]
fn many_skipped_slots_bend_no_grid() {
    let (frames, skipped, late) = skipping(24_000, 50);
    assert!(skipped > 500 && late > 200, "{skipped} {late}");
    for period_ns in [Some(125_000), None] {
        let found = analysed(&frames, true, &options(false, period_ns));
        let capture = &found.capture;
        let ppm = capture.period.clock_ppm.unwrap();
        assert!((ppm - 40.0).abs() < 1.0, "{ppm}");
        assert_eq!(
            (capture.skipped_slots.unwrap(), capture.late.unwrap(), found.series.missed),
            (skipped, late, skipped)
        );
        assert_eq!((losses(capture), capture.steps_total.unwrap()), ([0; 6], 0));
    }
}

#[test]
fn skipped_slots_in_a_long_capture_bend_no_grid() {
    for one_of in [60, 700, 3_000] {
        let (frames, skipped, late) = skipping(200_000, one_of);
        assert!(skipped > 50, "{skipped}");
        let found = analysed(&frames, true, &options(false, Some(125_000)));
        let capture = &found.capture;
        assert!((capture.period.clock_ppm.unwrap() - 40.0).abs() < 0.1, "{one_of} {:?}", capture.period);
        assert_eq!((capture.skipped_slots, capture.late), (Some(skipped), Some(late)), "{one_of}");
        assert_eq!((capture.steps_total, capture.period.followed_ns), (Some(0), None), "{one_of} {:?}", capture.steps);
    }
}

#[test]
fn skipped_slots_beside_jitter_are_counted() {
    for (one_of, seed) in [(100, 1), (150, 2), (200, 3), (17, 4)] {
        let mut talker = Talker::plain(1);
        let is_skipped = |slot: &u64| *slot == 0 || scatter(slot * 13 + seed) as u64 * 201 / 3 % one_of != 1;
        let sent: Vec<u64> = (0..16_000).filter(is_skipped).collect();
        let jitter_ns = |slot: u64| scatter(slot * 29 + seed * 5) * 60;
        let at_ns = |slot: u64| slot as i64 * PERIOD_NS + jitter_ns(slot);
        let frames: Vec<Seen> = sent.iter().zip(0..).map(|(&slot, n)| talker.seen(n, at_ns(slot))).collect();
        let found = avtp(&frames);
        let capture = &found.capture;
        let skipped = sent.last().unwrap() + 1 - sent.len() as u64;
        assert_eq!((capture.skipped_slots, capture.steps_total), (Some(skipped), Some(0)), "{one_of}");
        let late = sent.iter().filter(|&&slot| jitter_ns(slot) > 1_250).count() as f64;
        assert!((capture.late.unwrap() as f64 / late - 1.0).abs() < 0.02, "{one_of} {late} {:?}", capture.late);
        assert!(capture.period.clock_ppm.unwrap().abs() < 1.0, "{one_of} {:?}", capture.period);
    }
}

#[test]
fn a_clock_that_is_corrected_regularly_skips_no_slot() {
    for amplitude_ns in [60_000, 80_000, 90_000, 100_000] {
        let mut talker = Talker::plain(1);
        let at_ns = |n: i64| n * PERIOD_NS + n % 800 * amplitude_ns / 800;
        let frames: Vec<Seen> = (0..20_000).map(|n| talker.seen(n as u64, at_ns(n) + scatter(n as u64) * 8)).collect();
        let found = avtp(&sorted(frames));
        assert_eq!((found.capture.skipped_slots.unwrap_or(0), losses(&found.capture)), (0, [0; 6]), "{amplitude_ns}");
    }
}

/// A jitter that is rarely near 0: the largest of three parts, 0 to 20 us.
fn skewed(n: u64) -> i64 {
    [1, 2, 3].map(|draw| scatter(n * 7 + draw)).into_iter().max().unwrap_or(0) * 100
}

#[test]
fn a_missing_frame_beside_jitter_is_no_phase_step() {
    for missing in [150, 1_000, 5_000, 8_000, 9_800, 9_900, 9_930, 9_990] {
        for at in
            [(|n| n as i64 * PERIOD_NS + skewed(n)) as fn(u64) -> i64, |n| n as i64 * PERIOD_NS + scatter(n) * 100]
        {
            let sent = || (0..10_000u64).filter(move |n| *n != missing);
            let mut talker = Talker::plain(1);
            let skipped: Vec<_> = sent().zip(0..).map(|(slot, n)| talker.seen(n, at(slot))).collect();
            for found in [avtp(&skipped), udp(&datagrams(sent().map(at)))] {
                let capture = &found.capture;
                assert_eq!(
                    (capture.skipped_slots.unwrap(), capture.steps_total.unwrap()),
                    (1, 0),
                    "{missing} {:?}",
                    capture.steps
                );
                assert!(found.series.max_ns.unwrap() < 25_000, "{missing} {:?}", found.series.max_ns);
            }
        }
    }
}

#[test]
fn long_losses_of_eight_bit_numbers_are_no_restart() {
    for lost in [1, 200, 240, 255, 256, 257, 496, 497, 500, 511, 512, 513, 753, 767, 768, 1_020] {
        let mut talker = Talker::plain(1);
        let frames: Vec<_> =
            talker.steady(10_000).into_iter().zip(0..).filter(|(_, n)| !(5_000..5_000 + lost).contains(n)).collect();
        let found = avtp(&frames.into_iter().map(|(seen, _)| seen).collect::<Vec<_>>());
        assert_eq!(losses(&found.capture), [lost, 1, 0, 0, 0, 0], "{lost}");
        assert_eq!((found.capture.late.unwrap(), found.capture.steps_total.unwrap()), (0, 0), "{lost}");
    }
}

#[test]
fn stamps_of_half_a_period_are_coarse() {
    for parts in [1, 2, 3, 4] {
        let step_ns = PERIOD_NS / parts;
        let mut talker = Talker::plain(1);
        let at = |n: u64| (n as i64 * PERIOD_NS + 100_000 + scatter(n) * 300) / step_ns * step_ns;
        let found = avtp(&(0..10_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>());
        assert_eq!(found.capture.resolution_ns, step_ns as u64, "{parts}");
        assert_ne!(outcome(&found, "avb-class-a").0, Outcome::Pass);
        assert_not_failed(&found);
    }
}

#[test]
fn senders_of_one_stream_are_apart() {
    let mut talker = Talker::plain(1);
    let mut frames = talker.steady(10_000);
    // The other sender's frames have the numbers that the first one's lack.
    for seen in &mut frames[5_000..5_010] {
        seen.bytes[11] ^= 0xff;
    }
    let found = avtp(&frames);
    assert_eq!((losses(&found.capture), found.capture.streams.len()), ([10, 1, 0, 0, 0, 0], 2));
    let senders = found.caveats.iter().find(|caveat| caveat.kind == "senders").unwrap();
    assert!(senders.text.contains("10 frames"), "{}", senders.text);
    let mut frames = datagrams((0..10_000u64).map(|n| n as i64 * 1_000_000 + scatter(n)));
    for seen in &mut frames[5_000..5_010] {
        seen.bytes[35] = 1;
    }
    assert_eq!(udp(&frames).capture.skipped_slots.unwrap(), 10);
}

#[test]
fn a_slewed_clock_is_no_phase_step() {
    for ppm in [500, -500, 200] {
        // For 2 s, the clock of the capture runs at another rate.
        let at = |n: u64| {
            let slewed = (n as i64 - 8_000).clamp(0, 16_000);
            n as i64 * PERIOD_NS + slewed * PERIOD_NS / 1_000_000 * ppm + scatter(n)
        };
        let mut talker = Talker::plain(1);
        let found = avtp(&(0..80_000).map(|n| talker.seen(n, at(n))).collect::<Vec<_>>());
        let kinds: Vec<_> = found.capture.steps.iter().map(|step| step.kind).collect();
        assert_eq!(
            (kinds, found.capture.steps_total.unwrap()),
            (vec![StepKind::Drift], 1),
            "{ppm} {:?}",
            found.capture.steps
        );
        let moved_ns = 16_000 * PERIOD_NS / 1_000_000 * ppm;
        assert!(
            (found.capture.steps[0].ns.unwrap() - moved_ns).abs() < moved_ns.abs() / 20,
            "{:?}",
            found.capture.steps
        );
        assert_eq!((found.capture.late, losses(&found.capture)), (None, [0; 6]));
        assert!(found.series.max_ns.unwrap() < 10_000, "{:?}", found.series.max_ns);
        assert_not_failed(&found);
    }
}
