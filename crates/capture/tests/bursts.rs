//! Streams in long bursts have the right period, or lateness is not known; losses are exact in both cases.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames in test captures are small"
)]

mod support;

use capture::{Options, analyse};
use record::{Capture, StepKind};
use support::{LITTLE, OPTIONS, Seen, Talker, datagram, pcap, scatter};

fn analysed(frames: &[Seen]) -> Capture {
    let file = pcap(LITTLE, true, 1, frames);
    analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap().capture
}

/// Frame number `n` of RTP with the time of the media, in a burst, captured at `at_ns`.
fn rtp(n: u64, media: u32, at_ns: i64) -> Seen {
    let mut seen = datagram(at_ns, 5004);
    let payload = [&[0x80, 96][..], &(n as u16).to_be_bytes(), &media.to_be_bytes(), &[0, 0, 0, 7]].concat();
    seen.bytes[42..54].copy_from_slice(&payload);
    seen
}

/// The time of the frame with this number, in bursts of `frames` every 20 ms.
fn at_ns(n: u64, frames: u64, interval_ns: i64) -> i64 {
    (n / frames) as i64 * 20_000_000 + (n % frames) as i64 * interval_ns + scatter(n)
}

#[test]
fn the_packets_of_a_video_frame_have_places_of_their_own() {
    for (frames, interval_ns) in [(9, 12_000), (20, 12_000), (40, 12_000), (120, 150_000), (432, 44_000), (500, 30_000)]
    {
        let sent = |n: &u64| *n != 7 * frames + 3 && *n != 9 * frames;
        let seen = |n: u64| rtp(n, (n / frames) as u32 * 1_800, at_ns(n, frames, interval_ns));
        let mut all: Vec<Seen> = (0..frames * 60).filter(sent).map(seen).collect();
        let capture = analysed(&all);
        assert_eq!(capture.frames_per_period, frames, "{:?}", capture.lateness_unknown);
        assert_eq!((capture.lost, capture.losses, capture.late), (Some(2), Some(2), Some(0)), "{frames}");
        assert_eq!((capture.skipped_slots, capture.steps_total), (Some(0), Some(0)), "{frames}");
        assert!((capture.period.fitted_ns - 20e6).abs() < 200.0, "{:?}", capture.period);
        // One frame of 20 ms is late by 1 ms.
        for n in 30 * frames..31 * frames {
            let late = all.iter_mut().find(|seen| seen.bytes == rtp(n, (n / frames) as u32 * 1_800, 0).bytes).unwrap();
            late.at_ns += 1_000_000;
        }
        let capture = analysed(&all);
        assert_eq!((capture.late, capture.skipped_slots, capture.lost), (Some(frames), Some(0), Some(2)), "{frames}");
    }
}

#[test]
fn all_frames_of_a_group_can_be_late_together() {
    for frames in [2, 3, 4, 5, 6, 7, 8, 20, 100, 400] {
        for percent in [2_i64, 10, 20] {
            // A part of the period of 20 ms, different in each group.
            let late_ns = |n: u64| scatter(n / frames) * percent * 1_000;
            let seen = |n: u64| rtp(n, (n / frames) as u32 * 1_800, at_ns(n, frames, 8_000) + late_ns(n));
            let all = frames * 400;
            let capture = analysed(&(0..all).map(seen).collect::<Vec<_>>());
            assert_eq!(capture.frames_per_period, frames, "{percent} %: {:?}", capture.lateness_unknown);
            assert!((capture.period.fitted_ns / 20e6 - 1.0).abs() < 1e-4, "{frames} {percent} %: {:?}", capture.period);
            let found = (capture.skipped_slots, capture.steps_total, capture.surplus, capture.lost);
            assert_eq!(found, (Some(0), Some(0), Some(0), Some(0)), "{frames} {percent} %");
            // A frame is late from 1 % of the period on. The slots are known to within a part of the jitter.
            let later_than = |ns: i64| (0..all).filter(|&n| late_ns(n) > ns).count() as u64;
            let (most, fewest) = (later_than(200_000 - percent * 4_000), later_than(200_000 + percent * 20_000));
            assert!((fewest..=most).contains(&capture.late.unwrap()), "{frames} {percent} %: {:?}", capture.late);
            // In the middle, the talker sends all later groups later, or earlier, by three tenths of the period. With more
            // jitter, twice its spread is larger than that.
            if percent == 20 {
                continue;
            }
            for change_ns in [6_000_000_i64, -6_000_000] {
                let changed = |n: u64| {
                    let mut seen = seen(n);
                    if n >= all / 2 {
                        seen.at_ns = seen.at_ns.strict_add_signed(change_ns);
                    }
                    seen
                };
                let capture = analysed(&(0..all).map(changed).collect::<Vec<_>>());
                assert_eq!(capture.steps_total, Some(1), "{frames} {percent} %: {:?}", capture.steps);
                assert_eq!(capture.steps[0].kind, StepKind::Phase, "{frames} {percent} %");
                let off_ns = capture.steps[0].ns.unwrap() - change_ns;
                assert!(off_ns.abs() <= percent * 200_000 / 2, "{frames} {percent} %: {:?}", capture.steps);
            }
        }
    }
}

#[test]
fn bursts_without_a_place_in_the_grid_have_no_slots() {
    // Of different lengths; longer than the grid can have; without numbers; and with the period of another talker.
    let different = |n: u64| {
        let burst = n / 60 * 2 + u64::from(n % 60 >= 13 + n / 60 % 7);
        let position = if n % 60 >= 13 + n / 60 % 7 { n % 60 - 13 - n / 60 % 7 } else { n % 60 };
        rtp(n, 0, burst as i64 * 20_000_000 + position as i64 * 15_000 + scatter(n))
    };
    let long = |n: u64| rtp(n, (n / 4_000) as u32 * 1_800, at_ns(n, 4_000, 4_700));
    let mut talker = Talker::plain(1);
    let mut batches = |n: u64| talker.seen(n, (n / 32) as i64 * 4_000_000 + (n % 32) as i64 * 1_000 + scatter(n));
    let unnumbered = |n: u64| datagram(at_ns(n, 20, 12_000), 7_000);
    let is_lost = |n: u64| n == 5_000;
    let streams: [(&str, Vec<Seen>, Option<u64>); 4] = [
        (
            "in bursts of different lengths, one every 20",
            (0..12_000).filter(|n| !is_lost(*n)).map(different).collect(),
            Some(1),
        ),
        ("in bursts of 4000, one every 20", (0..40_000).filter(|n| !is_lost(*n)).map(long).collect(), Some(1)),
        ("in bursts of 32, one every 4", (0..12_000).filter(|n| !is_lost(*n)).map(&mut batches).collect(), Some(1)),
        ("in groups of 20 every 20", (0..12_000).filter(|n| !is_lost(*n)).map(unnumbered).collect(), None),
    ];
    for (why, frames, lost) in streams {
        let capture = analysed(&frames);
        let unknown = capture.lateness_unknown.clone().unwrap_or_default();
        assert!(unknown.contains(why), "{why}: {unknown}");
        assert_eq!((capture.lost, capture.restarts), (lost, lost.map(|_| 0)), "{why}");
        assert_eq!((capture.late, capture.skipped_slots, capture.surplus), (None, None, None), "{why}");
    }
}

#[test]
fn regular_stalls_are_no_bursts() {
    // Every 100 ms, frames wait for 6 ms and then catch up.
    let at = |n: u64| {
        let position = n as i64 % 100;
        let due_ns = n as i64 / 100 * 100_000_000 + position * 1_000_000;
        if (50..56).contains(&position) {
            due_ns + (56 - position) * 1_000_000 + position * 1_000 - 60_000
        } else {
            due_ns
        }
    };
    let frames: Vec<Seen> = (0..12_000).map(|n| rtp(n, n as u32 * 48, at(n) + scatter(n))).collect();
    let capture = analysed(&frames);
    assert_eq!((capture.lateness_unknown, capture.frames_per_period), (None, 1));
    assert_eq!((capture.late, capture.skipped_slots, capture.lost), (Some(6 * 120), Some(0), Some(0)));
}

/// Compressed video in AVTP: the time does not show which frames with the same 8 bits came.
#[test]
fn faults_by_8_bit_numbers_are_unknown_in_bursts_of_different_lengths() {
    let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let counts = |is_lost: &dyn Fn(u64) -> bool| {
        let (mut talker, mut frames, mut n) = (Talker::plain(1), Vec::new(), 0);
        for video_frame in 0..900 {
            let length = 4 + random(video_frame) % 37;
            for packet in 0..length {
                let at_ns = (video_frame * 33_366_700 + packet * 20_000) as i64 + scatter(n);
                frames.extend((!is_lost(n)).then(|| talker.seen(n, at_ns)));
                n += 1;
            }
        }
        let capture = analysed(&frames);
        let why = capture.lateness_unknown.unwrap_or_default();
        assert!(why.contains("bursts of different lengths"), "{why}");
        [capture.lost, capture.restarts, capture.reordered, capture.duplicates]
    };
    assert_eq!(counts(&|n| n % 1_000 == 999), [None; 4]);
    assert_eq!(counts(&|_| false), [Some(0); 4]);
}

/// Some pictures, or parts of pictures, have more packets than most.
#[test]
fn bursts_that_are_longer_now_and_then_have_no_slots() {
    for (usual, longer, every) in [(10, 11, 97), (10, 60, 50), (3, 4, 97), (3, 30, 250), (4, 12, 240)] {
        let frames: Vec<Seen> = (0..3_000)
            .flat_map(|burst| (0..if burst % every == every / 2 { longer } else { usual }).map(move |n| (burst, n)))
            .zip(0..)
            .map(|((burst, n), number)| {
                rtp(number, burst * 1_800, i64::from(burst) * 20_000_000 + n * 12_000 + scatter(number))
            })
            .collect();
        let capture = analysed(&frames);
        let why = capture.lateness_unknown.clone().unwrap_or_default();
        assert!(why.contains("in bursts of different lengths, one every 20"), "{usual} {longer} {every}: {why}");
        assert_eq!((capture.lost, capture.late, capture.steps_total), (Some(0), None, None), "{usual} {longer}");
    }
}

/// A receiver that stamps frames in batches looks like a talker that sends bursts.
#[test]
fn frames_that_come_in_groups_although_each_is_due_alone_are_named() {
    let batched = |n: u64, period_ns: i64, batch_ns: i64| {
        let due_ns = n as i64 * period_ns;
        due_ns.div_euclid(batch_ns) * batch_ns + due_ns.rem_euclid(batch_ns) / period_ns * 1_500 + scatter(n)
    };
    let named = |frames: &[Seen]| {
        let file = pcap(LITTLE, true, 1, frames);
        let found = analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap();
        (found.caveats.iter().any(|caveat| caveat.kind == "batches"), found.capture.late)
    };
    for batch_ns in [250_000, 500_017, 1_000_000, 1_100_000] {
        let mut talker = Talker::plain(1);
        let frames: Vec<Seen> = (0..20_000).map(|n| talker.seen(n, batched(n, 125_000, batch_ns))).collect();
        assert_eq!(named(&frames), (true, None), "{batch_ns}");
    }
    // The time of the media shows that each frame is due alone.
    for (batch_ns, late) in [(8_000_000, Some(0)), (4_900_000, None)] {
        let frames: Vec<Seen> = (0..20_000).map(|n| rtp(n, n as u32 * 48, batched(n, 1_000_000, batch_ns))).collect();
        assert_eq!(named(&frames), (true, late), "{batch_ns}");
    }
    // Packets of one picture are a burst, and a talker can send two frames in each period.
    let video: Vec<Seen> = (0..6_000).map(|n| rtp(n, (n / 20) as u32 * 1_800, at_ns(n, 20, 12_000))).collect();
    assert!(!named(&video).0);
    let mut talker = Talker::plain(1);
    let pairs = |n: u64| n as i64 / 2 * 125_000 + n as i64 % 2 * 5_000 + scatter(n);
    assert!(!named(&(0..6_000).map(|n| talker.seen(n, pairs(n))).collect::<Vec<_>>()).0);
}

/// The pause after a picture is longer than half of all numbers, at the mean interval.
#[test]
fn pauses_of_avtp_video_are_no_losses() {
    for (packets, packet_ns) in [(150, 20_000), (160, 60_000), (250, 12_000), (300, 20_000), (480, 41_700)] {
        let mut talker = Talker::plain(1);
        let at_ns = |n: u64| (n / packets) as i64 * 40_000_000 + (n % packets) as i64 * packet_ns + scatter(n);
        let is_lost = |n: &u64| [5 * packets, 7 * packets + 20, 9 * packets - 1].contains(n);
        let frames: Vec<Seen> = (0..30 * packets)
            .map(|n| talker.seen(n, at_ns(n)))
            .zip(0..)
            .filter(|(_, n)| !is_lost(n))
            .map(|(seen, _)| seen)
            .collect();
        let options = Options { period_ns: Some(40_000_000), ..OPTIONS };
        let file = pcap(LITTLE, true, 1, &frames);
        let capture = analyse(|| Ok(&file[..]), "test", &options).unwrap().capture;
        let counts = (capture.lost, capture.losses, capture.restarts, capture.late, capture.bursts);
        assert_eq!(counts, (Some(3), Some(3), Some(0), Some(0), Some(0)), "{packets}");
    }
}

/// A picture of RTP is lost whole, and the pause between pictures is short.
#[test]
fn lost_pictures_are_no_restart() {
    for (packets, packet_ns) in [(270, 120_000), (500, 72_000), (1_000, 36_000), (4_500, 8_000)] {
        let at_ns = |n: u64| (n / packets) as i64 * 40_000_000 + (n % packets) as i64 * packet_ns + scatter(n) / 100;
        let sent = (0..20 * packets).filter(|n| n / packets != 12);
        let frames: Vec<Seen> = sent.map(|n| rtp(n, (n / packets) as u32 * 3_600, at_ns(n))).collect();
        let capture = analysed(&frames);
        assert_eq!((capture.lost, capture.losses, capture.restarts), (Some(packets), Some(1), Some(0)), "{packets}");
        assert_eq!(capture.bursts, Some(0), "{packets}");
    }
}

#[test]
fn every_second_frame_of_rtp_can_be_lost() {
    let frames: Vec<Seen> =
        (0..4_000).step_by(2).map(|n| rtp(n, n as u32 * 48, n as i64 * 1_000_000 + scatter(n))).collect();
    let capture = analysed(&frames);
    assert_eq!((capture.lost, capture.restarts, capture.late), (Some(1_999), Some(0), Some(0)));
}

/// The clock of the capture was set, or the talker paused: no frames are missing, however long it was.
#[test]
fn a_silence_of_groups_is_no_slots_without_a_frame() {
    for silence_ns in [2_000_333_000, 3_600_000_000_000, 1_000_000_000_000_000] {
        for frames in [2, 3] {
            let at_ns = |n: u64| {
                let silence_ns = if n < 3_000 { 0 } else { silence_ns };
                (n / frames * 2_000_000 + n % frames * 50_000) as i64 + scatter(n) + silence_ns
            };
            let capture = analysed(&(0..6_000).map(|n| rtp(n, n as u32 * 48, at_ns(n))).collect::<Vec<_>>());
            let counts = (capture.lost, capture.skipped_slots, capture.late, capture.frames_per_period);
            assert_eq!(counts, (Some(0), Some(0), Some(0), frames), "{silence_ns} {frames}");
            let [step] = &capture.steps[..] else { panic!("{silence_ns} {frames}: {:?}", capture.steps) };
            assert_eq!((step.frame, step.kind), (3_001, StepKind::Silence), "{silence_ns} {frames}");
        }
    }
}

/// A card that waits a little longer than a period delivers two frames at once now and then. Its interrupts are not the period.
#[test]
fn a_card_that_waits_changes_neither_period_nor_losses() {
    /// Stamps the frames at the interrupts of a card, each so long after the one before at least.
    fn deliver(sent: &mut [Seen], wait_ns: u64) {
        let (mut interrupt_ns, mut allowed_ns) = (0, 0);
        for (n, seen) in (0..).zip(sent) {
            let here_ns = seen.at_ns + 2_000 + scatter(n).cast_unsigned() % 500;
            if here_ns > interrupt_ns {
                interrupt_ns = here_ns.max(allowed_ns);
                allowed_ns = interrupt_ns + wait_ns;
            }
            seen.at_ns = interrupt_ns;
        }
    }
    for wait_ns in [126_000, 126_500, 127_000, 128_000, 130_000, 251_500, 498_500, 500_000, 502_000, 505_000] {
        let lost = |n: u64| n * 7_919 % 331 == 100;
        let mut frames: Vec<Seen> = Talker::plain(1).steady(8_000);
        deliver(&mut frames, wait_ns);
        let frames: Vec<Seen> = (0..).zip(frames).filter(|(n, _)| !lost(*n)).map(|(_, seen)| seen).collect();
        let file = pcap(LITTLE, false, 1, &frames);
        let capture = analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap().capture;
        let expected = (0..8_000).filter(|n| lost(*n)).count() as u64;
        assert_eq!((capture.lost, capture.restarts), (Some(expected), Some(0)), "{wait_ns}: {:?}", capture.period);
        // A card that waits a little less than four periods looks like a talker that skips slots.
        if wait_ns == 498_500 {
            continue;
        }
        assert!((capture.period.fitted_ns - 125_000.0).abs() < 100.0, "{wait_ns}: {:?}", capture.period);
        assert_eq!(capture.steps_total.unwrap_or(0), 0, "{wait_ns}: {:?}", capture.steps);
    }
}

/// A card collects frames for a time, or up to a number of them. After a lost frame, its next batch begins with another one.
#[test]
fn batches_of_a_card_are_no_groups_of_the_talker() {
    /// Stamps the frames when the card delivers them: so long after the first one of a batch, or with so many of them.
    fn deliver(sent: &mut [Seen], wait_ns: u64, most: usize) {
        let mut rest = sent;
        while let Some(first) = rest.first() {
            let until_ns = first.at_ns + wait_ns;
            let batch = rest.iter().take(most).take_while(|seen| seen.at_ns <= until_ns).count();
            let delivered_ns = if batch == most { rest[batch - 1].at_ns } else { until_ns };
            let (now, later) = rest.split_at_mut(batch);
            for (n, seen) in (0..).zip(now) {
                seen.at_ns = delivered_ns + n * 1_200;
            }
            rest = later;
        }
    }
    for (periods, most) in
        [(1.1, 64), (1.5, 64), (1.9, 64), (2.0, 64), (2.5, 64), (3.0, 64), (3.97, 64), (7.5, 64), (8.0, 64), (8.0, 8)]
    {
        for period_ns in [125_000, 1_000_000] {
            let is_lost = |n: u64| n % 523 == 100;
            let due = |n: u64| rtp(n, n as u32 * 6, n as i64 * period_ns + scatter(n));
            let mut frames: Vec<Seen> = (0..8_000).filter(|n| !is_lost(*n)).map(due).collect();
            deliver(&mut frames, (period_ns as f64 * periods) as u64, most);
            let capture = analysed(&frames);
            let counts = (capture.lost, capture.losses, capture.duplicates, capture.restarts);
            let case = format!("{periods} periods of {period_ns} ns, {most} frames");
            assert_eq!(counts, (Some(16), Some(16), Some(0), Some(0)), "{case}");
            let unknown = (capture.late, capture.skipped_slots, capture.steps_total);
            assert_eq!(unknown, (None, None, None), "{case}: {:?}", capture.steps);
            assert!(capture.lateness_unknown.is_some(), "{case}");
        }
    }
}

/// Numbers of 8 bits continue over the batches of a card: the interval within a batch is not that of the frames.
#[test]
fn numbers_of_8_bits_continue_over_batches() {
    for (batch, period_ns) in [(8, 1_000_000), (9, 1_000_000), (12, 500_000), (15, 250_000)] {
        let mut talker = Talker::plain(1);
        let (mut frames, mut n) = (Vec::new(), 0);
        for delivered in 0..700 {
            let length = if delivered % 4 == 3 { batch - 1 } else { batch };
            for place in 0..length {
                frames.push(talker.seen(n, n as i64 * period_ns - place * (period_ns - 1_100) + scatter(n)));
                n += 1;
            }
        }
        let expected = (0..n).filter(|n| n % 523 == 100).count() as u64;
        let kept: Vec<Seen> = (0..).zip(frames).filter(|(n, _)| n % 523 != 100).map(|(_, seen)| seen).collect();
        let capture = analysed(&kept);
        let counts = (capture.lost, capture.restarts, capture.late);
        assert_eq!(counts, (Some(expected), Some(0), None), "{batch} {period_ns}: {:?}", capture.lateness_unknown);
    }
}
