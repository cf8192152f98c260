//! Presentation times and clock references with known truth.

mod support;

use capture::analyse;
use frames::{Class, avtp::CRF};
use record::{CaptureClock, CapturedPresentation};
use support::{BEGIN_NS, LITTLE, OPTIONS, Seen, pcap, scatter, stream};

/// Offset of the AVTP header behind addresses and one VLAN tag.
const AVTP_AT: usize = 18;
/// A time of gPTP shortly before its low 32 bits wrap.
const NEAR_WRAP_NS: u64 = (BEGIN_NS >> 32 << 32) + (1 << 32) - 300_000_000;

/// A frame of a class A stream whose presentation time is `due_ns`, captured at `at_ns`.
fn frame(seq: u64, at_ns: u64, due_ns: u64) -> Seen {
    let mut seen = own_frame(seq, at_ns, due_ns);
    seen.bytes[AVTP_AT + 24..AVTP_AT + 28].fill(0);
    seen
}

/// The same with the 64-bit number of our own talker.
fn own_frame(seq: u64, at_ns: u64, due_ns: u64) -> Seen {
    let stream = frames::Stream { tci: Class::A.tci(), ..stream(1) };
    let mut frame = stream.frame();
    frame.patch(&frames::Payload { seq, ..frames::Payload::default() }, 0);
    let mut bytes = frame.bytes().to_vec();
    bytes[AVTP_AT + 1] |= 1;
    bytes[AVTP_AT + 12..AVTP_AT + 16].copy_from_slice(&due_ns.to_be_bytes()[4..]);
    Seen { at_ns, interface: 0, bytes }
}

/// `count` frames every 125 us, presented 2 ms after their slots. Captured up to 200 ns late.
fn steady(count: u64, begin_ns: u64) -> Vec<Seen> {
    let slot_ns = |seq: u64| begin_ns + seq * 125_000;
    (0..count).map(|seq| frame(seq, slot_ns(seq) + scatter(seq).unsigned_abs(), slot_ns(seq) + 2_000_000)).collect()
}

fn set_due(seen: &mut Seen, due_ns: u64) {
    seen.bytes[AVTP_AT + 12..AVTP_AT + 16].copy_from_slice(&due_ns.to_be_bytes()[4..]);
}

fn presentation_of(file: &[u8], clock: Option<CaptureClock>) -> CapturedPresentation {
    let options = capture::Options { clock, ..OPTIONS };
    let found = analyse(|| Ok(file), "made", &options).expect("an analysis");
    found.capture.presentation.expect("presentation times")
}

fn presentation(frames: &[Seen], clock: Option<CaptureClock>) -> CapturedPresentation {
    presentation_of(&pcap(LITTLE, true, 1, frames), clock)
}

fn near(found: Option<f64>, expected: f64, error: f64) {
    let found = found.expect("a rate");
    assert!((found - expected).abs() < error, "{found} instead of {expected}");
}

#[test]
fn the_margin_is_exact_across_a_wrap_of_32_bits() {
    let found = presentation(&steady(6000, NEAR_WRAP_NS), Some(CaptureClock::Gptp));
    let margin = found.margin.clone().unwrap();
    let latest = (0..6000).map(scatter).max().unwrap();
    assert_eq!((margin.min_ns, margin.max_ns, margin.late), (2_000_000 - latest, 2_000_000, 0));
    assert_eq!((found.valid, found.not_valid, found.uncertain, found.restarts), (6000, 0, 0, 0));
    assert_eq!((found.jumps, found.variation_ns), (Some(0), Some(latest.unsigned_abs())));
    near(found.drift_ppm, 0.0, 0.1);
    near(found.frequency_ppm, 0.0, 0.001);
}

#[test]
fn a_capture_in_utc_is_37_s_behind() {
    let tai = steady(1000, BEGIN_NS + 37_000_000_000);
    let utc: Vec<_> = tai.into_iter().map(|seen| Seen { at_ns: seen.at_ns - 37_000_000_000, ..seen }).collect();
    let margin = presentation(&utc, Some(CaptureClock::Utc)).margin.unwrap();
    assert_eq!((margin.max_ns, margin.late), (2_000_000, 0));
    assert_ne!(presentation(&utc, Some(CaptureClock::Gptp)).margin.unwrap().max_ns, 2_000_000);
}

#[test]
fn without_a_common_clock_only_the_variation_is_known() {
    let found = presentation(&steady(1000, BEGIN_NS), None);
    assert_eq!((found.margin, found.clock), (None, None));
    assert!(found.variation_ns.is_some_and(|ns| (150..=200).contains(&ns)), "{:?}", found.variation_ns);
}

#[test]
fn late_frames_have_a_negative_margin() {
    let mut frames = steady(3000, BEGIN_NS);
    for n in [1000, 1001] {
        frames[n].at_ns += 2_050_000;
    }
    frames.sort_by_key(|seen| seen.at_ns);
    let margin = presentation(&frames, Some(CaptureClock::Gptp)).margin.unwrap();
    assert_eq!((margin.late, margin.worst.len()), (2, 2));
    assert!((-50_200..=-50_000).contains(&margin.min_ns), "{}", margin.min_ns);
    assert_eq!(margin.worst[0].ns, margin.min_ns);
}

#[test]
fn reordered_frames_do_not_restart_the_media_clock() {
    let mut frames = steady(3000, BEGIN_NS);
    for seen in &mut frames[1000..] {
        seen.bytes[AVTP_AT + 1] |= 8;
    }
    let restarts = |frames: &[Seen]| {
        let found = presentation(frames, Some(CaptureClock::Gptp));
        let changes: Vec<u64> = found.changes.iter().map(|change| change.frame).collect();
        (found.restarts, changes, found.valid)
    };
    let swap = |frames: &mut [Seen]| {
        let (earlier, later) = (frames[999].at_ns, frames[1000].at_ns);
        frames.swap(999, 1000);
        (frames[999].at_ns, frames[1000].at_ns) = (earlier, later);
    };
    assert_eq!(restarts(&frames), (1, vec![1001], 3000));
    swap(&mut frames);
    assert_eq!(restarts(&frames), (1, vec![1000], 3000));
    // Also without timestamps; the first frame with one reports it.
    for seen in &mut frames[990..1010] {
        seen.bytes[AVTP_AT + 1] &= !1;
    }
    assert_eq!(restarts(&frames), (1, vec![1011], 2980));
}

#[test]
fn frames_of_a_talker_without_synchronisation_have_no_margin() {
    let mut frames = steady(3000, BEGIN_NS);
    for seen in &mut frames[..2000] {
        seen.bytes[AVTP_AT + 3] |= 1;
    }
    for (seq, seen) in (0..2000).zip(&mut frames) {
        set_due(seen, BEGIN_NS + seq * 125_000 - 500_000_000);
    }
    let found = presentation(&frames, Some(CaptureClock::Gptp));
    assert_eq!((found.valid, found.uncertain), (3000, 2000));
    assert!(found.margin.is_some_and(|margin| margin.late == 0 && margin.max_ns == 2_000_000));
}

#[test]
fn without_a_valid_timestamp_a_given_clock_is_recorded() {
    let mut frames = steady(3000, BEGIN_NS);
    frames.iter_mut().for_each(|seen| seen.bytes[AVTP_AT + 1] &= !1);
    let found = presentation(&frames, Some(CaptureClock::Gptp));
    assert_eq!((found.valid, found.not_valid, found.clock), (0, 3000, Some(CaptureClock::Gptp)));
    assert_eq!((found.jumps, found.margin, found.variation_ns), (None, None, None));
    let file = pcap(LITTLE, true, 1, &frames);
    let unknown = analyse(|| Ok(&file[..]), "made", &OPTIONS).expect("an analysis");
    assert_eq!(unknown.capture.presentation, None);
}

#[test]
fn the_drift_of_the_media_clock_is_found() {
    let mut frames = steady(80_000, BEGIN_NS);
    for (seq, seen) in (0..).zip(&mut frames) {
        // Timestamps advance by 10 ppm more: the media clock is slower by as much.
        set_due(seen, BEGIN_NS + 2_000_000 + seq * 125_000 + seq * 125 / 100);
    }
    let found = presentation(&frames, Some(CaptureClock::Gptp));
    near(found.drift_ppm, 10.0, 0.05);
    near(found.frequency_ppm, -10.0, 0.01);
    assert_eq!(found.jumps, Some(0));
    // The same in microseconds.
    let coarse = presentation_of(&pcap(LITTLE, false, 1, &frames), None);
    near(coarse.drift_ppm, 10.0, 0.3);
    near(coarse.frequency_ppm, -10.0, 0.01);
    assert_eq!(coarse.jumps, Some(0));
}

#[test]
fn jumps_and_restarts_of_the_media_clock_have_frame_numbers() {
    let mut frames = steady(5000, BEGIN_NS);
    for (n, seen) in (0..).zip(&mut frames) {
        let due_ns = BEGIN_NS + 2_000_000 + n * 125_000;
        let jumped_ns = if n >= 2000 { 20_833 } else { 0 };
        set_due(seen, due_ns + jumped_ns - if n >= 3000 { 500_000 } else { 0 });
        if n >= 3000 {
            seen.bytes[AVTP_AT + 1] |= 8;
        }
        if (4000..4010).contains(&n) {
            seen.bytes[AVTP_AT + 3] |= 1;
        }
        if (4100..4105).contains(&n) {
            seen.bytes[AVTP_AT + 1] &= !1;
        }
    }
    // Lost frames are no jump.
    frames.drain(1000..1300);
    let found = presentation(&frames, None);
    assert_eq!((found.valid, found.not_valid, found.uncertain, found.restarts), (4695, 5, 10, 1));
    assert_eq!(found.jumps, Some(2));
    let seen: Vec<_> = found.changes.iter().map(|change| (change.frame, change.jump_ns, change.restarted)).collect();
    let [first, second] = [0, 1].map(|n| seen[n].1.unwrap());
    assert_eq!((seen.len(), seen[0].0, seen[0].2, seen[1].0, seen[1].2), (2, 1701, false, 2701, true));
    assert!((first - 20_833).abs() <= 5 && (second + 500_000).abs() <= 5, "{first} {second}");
    near(found.frequency_ppm, 0.0, 0.001);
}

/// Frames of a talker that leaves out the slots of `skipped`. The numbers continue, and each presentation time is 2 ms after
/// its slot. `captured_ns` is the time of a slot by the clock of the capture.
fn with_skipped_slots(
    slots: u64,
    is_skipped: impl Fn(u64) -> bool,
    captured_ns: impl Fn(u64) -> u64,
    of: impl Fn(u64, u64, u64) -> Seen,
) -> Vec<Seen> {
    let sent = (0..slots).filter(|&slot| !is_skipped(slot));
    let seen = |(seq, slot): (u64, u64)| {
        let at_ns = captured_ns(slot) + scatter(slot).unsigned_abs();
        of(seq, at_ns, BEGIN_NS + slot * 125_000 + 2_000_000)
    };
    (0..).zip(sent).map(seen).collect()
}

/// The frame and the size of each jump, in slots.
fn jumps_of(frames: &[Seen]) -> Vec<(u64, i64)> {
    let found = presentation(frames, None);
    let in_slots = |ns: i64| (ns + ns.signum() * 62_500) / 125_000;
    let jumps = found
        .changes
        .iter()
        .map(|change| (change.frame, in_slots(change.jump_ns.expect("a known jump"))))
        .collect::<Vec<_>>();
    assert_eq!(found.jumps, Some(jumps.len() as u64));
    jumps
}

#[test]
fn a_frame_that_was_held_does_not_jump_but_the_next_one_does() {
    for slots in [40, 160, 248, 256, 264, 400, 800] {
        for of in [frame, own_frame] {
            let is_skipped = |slot| (1001..1001 + slots).contains(&slot);
            let late_ns = |slot| if slot == 1000 { slots * 125_000 } else { 0 };
            let captured_ns = |slot| BEGIN_NS + slot * 125_000 + late_ns(slot);
            let frames = with_skipped_slots(3000, is_skipped, captured_ns, of);
            assert_eq!(jumps_of(&frames), [(1002, slots.cast_signed())], "{slots} slots");
        }
    }
}

#[test]
fn skipped_slots_are_a_jump_of_their_number() {
    let captured_ns = |slot| BEGIN_NS + slot * 125_000;
    let skipped = |slots: u64, of: fn(u64, u64, u64) -> Seen| {
        jumps_of(&with_skipped_slots(4000, |slot| (1000..1000 + slots).contains(&slot), captured_ns, of))
    };
    for slots in [1, 70, 160, 400, 1000] {
        assert_eq!(skipped(slots, frame), [(1001, slots.cast_signed())]);
    }
    // With 8 bits, these are 256 lost frames.
    assert_eq!(skipped(256, frame), []);
    assert_eq!(skipped(256, own_frame), [(1001, 256)]);
}

#[test]
fn frames_that_a_full_queue_dropped_are_no_jump() {
    for lost in [100, 200, 290, 600] {
        let mut frames = steady(4000, BEGIN_NS);
        // A switch was stalled: it kept the first 50 frames, sent them in a burst, and dropped the next ones.
        for (n, seen) in (0..).zip(&mut frames[1000..1050]) {
            seen.at_ns = BEGIN_NS + (1050 + lost) * 125_000 - 100_000 + n * 1000;
        }
        let end = 1050 + usize::try_from(lost).unwrap();
        frames.drain(1050..end);
        assert_eq!(jumps_of(&frames), [], "{lost} lost");
    }
}

#[test]
fn after_a_long_silence_8_bit_numbers_show_no_jump() {
    let captured_ns = |slot| BEGIN_NS + slot * 125_000 + if slot < 1000 { 0 } else { 20_005_000_000 };
    let frames = |of: fn(u64, u64, u64) -> Seen| {
        let mut frames = with_skipped_slots(3000, |_| false, captured_ns, of);
        for (seq, seen) in (1000..).zip(&mut frames[1000..]) {
            set_due(seen, captured_ns(seq) + 2_000_000);
        }
        frames
    };
    assert_eq!(jumps_of(&frames(frame)), []);
    assert_eq!(jumps_of(&frames(own_frame)), [(1001, 160_040)]);
}

#[test]
fn a_clock_of_the_capture_that_is_set_back_is_no_jump() {
    for back_ns in [1_000_000_000, 5_000_000_000, 3_600_000_000_000] {
        let captured_ns = |slot| BEGIN_NS + slot * 125_000 - if slot < 2000 { 0 } else { back_ns };
        let frames = with_skipped_slots(4000, |_| false, captured_ns, frame);
        let found = presentation(&frames, None);
        assert_eq!((found.jumps, found.drift_ppm), (Some(0), None), "{back_ns}");
    }
}

#[test]
fn the_drift_has_no_part_of_steps_skipped_slots_and_restarts() {
    let slots = 40_000;
    let drift = |is_skipped: &dyn Fn(u64) -> bool, moved_ns: &dyn Fn(u64) -> u64| {
        // The capture's clock is 12 ppm fast.
        let captured_ns = |slot| BEGIN_NS + slot * 125_000 + slot * 3 / 2 + moved_ns(slot);
        presentation(&with_skipped_slots(slots, is_skipped, captured_ns, frame), None).drift_ppm
    };
    let none = |_| false;
    let not_moved = |_| 0;
    near(drift(&none, &not_moved), -12.0, 0.1);
    for step_ns in [5_000, 30_000, 60_000, 100_000_000] {
        near(drift(&none, &|slot| if slot < 20_000 { 0 } else { step_ns }), -12.0, 0.1);
    }
    near(drift(&none, &|slot| slot / 9000 * 40_000), -12.0, 0.1);
    near(drift(&|slot| slot % 3600 == 3500, &not_moved), -12.0, 0.1);
    near(drift(&|slot| scatter(slot) < 10, &not_moved), -12.0, 0.1);
    near(drift(&|slot| (20_000..20_040).contains(&slot), &not_moved), -12.0, 0.1);
    near(drift(&|slot| (12_000..12_400).contains(&(slot % 14_000)), &not_moved), -12.0, 0.1);
    // The presentation times jump.
    let mut frames = steady(slots, BEGIN_NS);
    for (seq, seen) in (0..).zip(&mut frames) {
        set_due(seen, BEGIN_NS + 2_000_000 + seq * 125_000 + seq / 10_000 * 700_000);
    }
    near(presentation(&frames, None).drift_ppm, 0.0, 0.1);
}

#[test]
fn a_margin_that_steps_all_the_time_has_no_drift() {
    let mut frames = steady(20_000, BEGIN_NS);
    for (seq, seen) in (0..).zip(&mut frames) {
        set_due(seen, BEGIN_NS + 2_000_000 + seq * 125_000 + seq / 80 * 7919 % 1000 * 200_000);
    }
    assert_eq!(presentation(&frames, None).drift_ppm, None);
}

/// A frame of a clock reference of Milan: one timestamp for 96 samples of 48 kHz, every 2 ms.
fn reference(seq: u64, at_ns: u64, time_ns: u64, flags: u8) -> Seen {
    let stream = stream(1);
    let mut bytes = [&stream.destination[..], &stream.source, &[0x81, 0, 0x60, 2, 0x22, 0xf0]].concat();
    bytes.extend([CRF, 0x80 | flags, seq.to_le_bytes()[0], 1]);
    bytes.extend(stream.stream_id.to_be_bytes());
    bytes.extend([0, 0, 0xbb, 0x80, 0, 8, 0, 96]);
    bytes.extend(time_ns.to_be_bytes());
    bytes.resize(64, 0);
    Seen { at_ns, interface: 0, bytes }
}

#[test]
fn a_clock_reference_shows_its_frequency_and_losses() {
    let frame = |seq: u64| {
        let at_ns = BEGIN_NS + seq * 2_000_000 + scatter(seq).unsigned_abs();
        // The clock is 3 ppm fast: its timestamps advance by 6 ns less.
        let time_ns = BEGIN_NS + 2_000_000 + seq * (2_000_000 - 6);
        reference(seq, at_ns, time_ns, u8::from(seq < 10) | if seq >= 15_000 { 8 } else { 0 } | 2)
    };
    let mut frames: Vec<_> = (0..20_000).map(frame).collect();
    frames.drain(5000..5003);
    let file = pcap(LITTLE, true, 1, &frames);
    let options = capture::Options { clock: Some(CaptureClock::Gptp), ..OPTIONS };
    let found = analyse(|| Ok(&file[..]), "made", &options).expect("an analysis").capture;
    assert_eq!(
        (found.stream.protocol.as_str(), found.frames, found.lost.unwrap(), found.losses.unwrap()),
        ("AVTP CRF", 19_997, 3, 1)
    );
    let crf = found.presentation.unwrap();
    near(crf.frequency_ppm, 3.0, 0.001);
    near(crf.drift_ppm, -3.0, 0.01);
    assert_eq!((crf.valid, crf.uncertain, crf.restarts, crf.jumps), (19_997, 10, 1, Some(0)));
    let change = &crf.changes[0];
    assert_eq!((crf.changes.len(), change.frame, change.jump_ns, change.restarted), (1, 14_998, Some(0), true));
    let header = crf.reference.unwrap();
    assert_eq!((header.kind, header.pull, header.base_hz, header.interval, header.timestamps), (1, 0, 48_000, 96, 1));
    assert_eq!((header.frame_sync, header.changed), (19_997, 0));
    let margin = crf.margin.unwrap();
    // The margin shrinks by 6 ns with each frame.
    assert!((1_999_700..=2_000_000).contains(&margin.max_ns) && margin.late == 0, "{margin:?}");
}

#[test]
fn the_margin_of_a_clock_reference_is_that_of_its_last_timestamp() {
    let frame = |seq: u64| {
        let at_ns = BEGIN_NS + seq * 20_000_000;
        let mut seen = reference(seq, at_ns, at_ns - 14_666_667, 0);
        // 6 timestamps, one for each 160 samples: 3.33 ms.
        seen.bytes[AVTP_AT + 17..AVTP_AT + 20].copy_from_slice(&[48, 0, 160]);
        seen.bytes.truncate(AVTP_AT + 28);
        // This talker rounds the interval down.
        (1..6).for_each(|n| seen.bytes.extend((at_ns - 14_666_667 + n * 3_333_333).to_be_bytes()));
        seen
    };
    let mut frames: Vec<_> = (0..500).map(frame).collect();
    let found = presentation(&frames, Some(CaptureClock::Gptp));
    near(found.frequency_ppm, 0.0, 0.001);
    let margin = found.margin.unwrap();
    assert_eq!((margin.min_ns, margin.max_ns, margin.late), (1_999_998, 1_999_998, 0));
    // If it is not in the capture, it is computed from the first one.
    frames.iter_mut().for_each(|seen| seen.bytes.truncate(AVTP_AT + 60));
    let margin = presentation(&frames, Some(CaptureClock::Gptp)).margin.unwrap();
    assert_eq!((margin.min_ns, margin.max_ns), (2_000_000, 2_000_000));
    // A timestamp of the past is not late.
    let old = (0..500).map(|seq| reference(seq, BEGIN_NS + seq * 2_000_000, BEGIN_NS + seq * 2_000_000 - 5_000, 0));
    let margin = presentation(&old.collect::<Vec<_>>(), Some(CaptureClock::Gptp)).margin.unwrap();
    assert_eq!((margin.max_ns, margin.late, margin.worst.len()), (-5_000, 0, 0));
}

/// The clock of the capture is set forward, so that the time between two frames suggests another multiple of 2^32 ns.
#[test]
fn a_clock_that_is_set_forward_is_no_jump() {
    for (step_ns, lost) in [
        (1_000_000_000, 0),
        (2_200_000_000, 0),
        (3_000_000_000, 0),
        (3_000_000_000, 1),
        (3_000_000_000, 20),
        (4_294_967_296, 0),
        (6_500_000_000, 0),
        (15_900_000_000, 0),
        (60_005_000_000, 0),
    ] {
        let mut frames = steady(6000, NEAR_WRAP_NS);
        frames[4000..].iter_mut().for_each(|seen| seen.at_ns += step_ns);
        frames.drain(4000..4000 + usize::try_from(lost).unwrap());
        let found = presentation(&frames, None);
        assert_eq!((found.jumps, &found.changes[..], found.drift_ppm), (Some(0), &[][..], None), "{step_ns} {lost}");
        near(found.frequency_ppm, 0.0, 0.01);
        // A jump there is found, unless the error of so long a time hides how many frames were lost.
        for (seen, seq) in frames[4000..].iter_mut().zip(4000 + lost..) {
            set_due(seen, NEAR_WRAP_NS + seq * 125_000 + 2_040_000);
        }
        let found = presentation(&frames, None).changes;
        let jumps: Vec<_> = found.iter().map(|change| change.jump_ns).collect();
        assert!(jumps == [Some(40_000)] || step_ns > 10_000_000_000, "{step_ns} {lost}: {jumps:?}");
    }
}
