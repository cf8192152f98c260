//! The clock of the capture is set: no false lateness, and each loss is counted or not known.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames and times in test captures are small"
)]

mod support;

use capture::Options;
use record::StepKind;
use support::{OPTIONS, Seen, Talker, analysed, avtp, losses};

const PERIOD_NS: i64 = 125_000;

/// The stamps before the clock was set back are later than the last one of the capture.
#[test]
fn a_set_clock_does_not_end_a_stream() {
    for (from, step_ns) in [(5_000, -3_600_000_000_000), (9_900, -5_000_000_000), (9_900, -50_000_000)] {
        // The stream that is analysed ends so many frames before the other one, or with it.
        for missing in [0, 60, 1_000] {
            let is_kept = |n: usize| n < 10_000 - missing;
            let set = |frames: Vec<Seen>| {
                let moved = |(n, seen): (usize, Seen)| {
                    let at_ns = seen.at_ns.wrapping_add_signed(if n < from { 0 } else { step_ns });
                    Seen { at_ns, ..seen }
                };
                frames.into_iter().enumerate().map(moved).collect::<Vec<_>>()
            };
            let (own, other) = (set(Talker::plain(1).steady(10_000)), set(Talker::plain(2).steady(10_000)));
            let both = own.into_iter().zip(other).enumerate();
            let frames: Vec<Seen> = both
                .flat_map(|(n, (own, other))| Some(own).filter(|_| is_kept(n)).into_iter().chain([other]))
                .collect();
            let options = Options { analysed: Some(support::stream(1).stream_id), ..OPTIONS };
            let ended_ns = analysed(&frames, true, &options).capture.ended_before_ns as i64;
            let expected_ns = missing as i64 * PERIOD_NS;
            // Across the step, the interval of one frame is not known.
            assert!((ended_ns - expected_ns).abs() <= PERIOD_NS + 500, "{from} {step_ns} {missing}: {ended_ns}");
            assert_eq!(ended_ns == 0, missing == 0, "{from} {step_ns} {missing}: {ended_ns}");
        }
    }
}

/// Frames are lost where the clock of the capture is set. A talker that restarts does not set that clock.
#[test]
fn losses_where_the_clock_is_set_are_counted_by_the_numbers() {
    const BACK: [i64; 5] = [-3_600_000_000_000, -5_000_000_000, -1_000_000_000, -20_000_000, -1_000_000];
    for (step_ns, lost) in
        BACK.iter().flat_map(|ns| [1, 3, 64].map(|lost| (*ns, lost))).chain([1, 3].map(|lost| (100_010_000_000, lost)))
    {
        for (talker, from) in
            [(Talker::new as fn(u16) -> Talker, 5_000), (Talker::plain, 5_000), (Talker::plain, 9_960 - lost)]
        {
            let mut frames = talker(1).steady(10_000);
            frames[from..].iter_mut().for_each(|seen| seen.at_ns = seen.at_ns.wrapping_add_signed(step_ns));
            frames.drain(from..from + lost);
            let found = avtp(&frames);
            let capture = &found.capture;
            let context = format!("{step_ns} {lost} {from}: {:?}", capture.steps);
            assert_eq!(losses(capture), [lost as u64, 1, 0, 0, 0, 0], "{context}");
            assert_eq!(capture.longest_loss, Some(lost as u64), "{context}");
            let shaper = capture.shaper.as_ref().unwrap();
            assert_eq!((capture.bursts, shaper.violations), (Some(0), 0), "{context}");
            assert_eq!((capture.late, capture.skipped_slots), (Some(0), Some(0)), "{context}");
            let [step] = &capture.steps[..] else { panic!("{context}") };
            assert_eq!((step.frame, capture.steps_total), (from as u64 + 1, Some(1)), "{context}");
            assert!((step.ns.unwrap() - step_ns).abs() < 500, "{context}");
            // With more time lost than set back, no stamp went back.
            let went_back = step_ns + (lost as i64 + 1) * PERIOD_NS < 0;
            let kind = if went_back {
                StepKind::ClockSet
            } else if step_ns > 0 {
                StepKind::Silence
            } else {
                StepKind::Phase
            };
            assert_eq!(step.kind, kind, "{context}");
        }
    }
}

/// A number modulo 256 that is 200 ahead is 56 behind, too.
#[test]
fn losses_are_unknown_if_the_numbers_do_not_show_them_where_the_clock_is_set() {
    for (step_ns, lost) in [
        (-3_600_000_000_000, 200),
        (-5_000_000_000, 200),
        (-5_000_000_000, 130),
        (3_600_000_000_000, 64),
        (3_600_000_000_000, 1),
    ] {
        let mut frames = Talker::plain(1).steady(10_000);
        frames[5_000..].iter_mut().for_each(|seen| seen.at_ns = seen.at_ns.wrapping_add_signed(step_ns));
        frames.drain(5_000..5_000 + lost);
        let found = avtp(&frames);
        let capture = &found.capture;
        assert_eq!((capture.lost, capture.losses, capture.longest_loss), (None, None, None), "{step_ns} {lost}");
        assert_eq!(
            (capture.duplicates, capture.restarts, capture.too_late),
            (Some(0), Some(0), Some(0)),
            "{step_ns} {lost}"
        );
        let [step] = &capture.steps[..] else { panic!("{:?}", capture.steps) };
        let kind = if step_ns < 0 { StepKind::ClockSet } else { StepKind::Silence };
        assert_eq!((step.frame, step.kind), (5_001, kind), "{step_ns} {lost}");
        assert!(
            found.caveats.iter().any(|caveat| caveat.text.contains("lost frames is not known")),
            "{:?}",
            found.caveats
        );
        assert_eq!(capture.streams[0].lost, None);
    }
}

/// The parts of a capture in the wrong order: no frame of the second one is a duplicate, although its numbers are behind.
#[test]
fn parts_in_the_wrong_order_are_no_duplicates() {
    let mut frames = Talker::plain(1).steady(20_000);
    frames.rotate_left(10_000);
    let capture = avtp(&frames).capture;
    assert_eq!((capture.lost, capture.duplicates, capture.restarts), (None, Some(0), Some(0)));
    let [step] = &capture.steps[..] else { panic!("{:?}", capture.steps) };
    assert_eq!((step.frame, step.kind, capture.ended_before_ns), (10_001, StepKind::ClockSet, 0));
    // No numbers modulo 256 between the parts are losses.
    for (all, first) in (0..64).map(|n| (20_000 + 37 * n as u64, 5_000 + 93 * n)) {
        let mut frames = Talker::plain(1).steady(all);
        frames.rotate_left(first);
        let capture = avtp(&frames).capture;
        assert_eq!((capture.lost, capture.duplicates, capture.restarts), (None, Some(0), Some(0)), "{all} {first}");
        assert_eq!((capture.late, capture.skipped_slots), (Some(0), Some(0)), "{all} {first}");
    }
    // Frames that are in the file again are duplicates.
    let mut frames = Talker::plain(1).steady(20_000);
    let again = frames[9_900..10_000].to_vec();
    frames.splice(10_000..10_000, again);
    let capture = avtp(&frames).capture;
    assert_eq!((capture.lost, capture.duplicates, capture.restarts), (Some(0), Some(100), Some(0)));
}

/// Neither the number nor the time continues: the talker restarted, or frames were lost while the clock was set.
#[test]
fn losses_are_unknown_if_neither_number_nor_time_continues() {
    for (step_ns, lost) in [
        (-20_000_000, 200),
        (-10_000_000, 160),
        (-6_000_000, 90),
        (200_000_000, 64),
        (200_000_000, 200),
        (1_000_000_000, 100),
    ] {
        let mut frames = Talker::plain(1).steady(10_000);
        frames[5_000..].iter_mut().for_each(|seen| seen.at_ns = seen.at_ns.wrapping_add_signed(step_ns));
        frames.drain(5_000..5_000 + lost);
        let found = avtp(&frames);
        let capture = &found.capture;
        let counts = (capture.lost, capture.duplicates, capture.too_late, capture.late, capture.skipped_slots);
        assert_eq!(counts, (None, Some(0), Some(0), Some(0), Some(0)), "{step_ns} {lost}: {:?}", capture.steps);
        assert_eq!(capture.steps_total, Some(1), "{step_ns} {lost}: {:?}", capture.steps);
        let texts: Vec<_> = found.caveats.iter().map(|caveat| caveat.text.as_str()).collect();
        let says = texts.iter().any(|text| text.contains("neither numbers nor time continue at frame 5,001"));
        assert!(says, "{texts:?}");
    }
}
