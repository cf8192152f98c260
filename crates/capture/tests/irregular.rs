//! Streams with irregular numbers or irregular times: what their numbers show is counted exactly, or is not known.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames in test captures are small"
)]

mod support;

use capture::analyse;
use record::{Capture, PeriodSource, StepKind};
use support::{LITTLE, OPTIONS, Seen, Talker, pcap, scatter};

const PERIOD_NS: i64 = 1_000_000;

fn analysed(frames: &[Seen]) -> Capture {
    let file = pcap(LITTLE, true, 1, frames);
    analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap().capture
}

/// Lost frames, losses, duplicates, reordered frames, and restarts.
fn counts(capture: &Capture) -> [Option<u64>; 5] {
    [capture.lost, capture.losses, capture.duplicates, capture.reordered, capture.restarts]
}

/// A frame of EtherCAT with so many datagrams, which have their own indexes from this one on.
fn ethercat(index: u64, datagrams: u64) -> Vec<u8> {
    let datagram = |n: u64| {
        let more = if n + 1 < datagrams { 0x80 } else { 0 };
        [&[0x0c, (index + n) as u8, 0, 0, 0, 0, 16, more, 0, 0][..], &[0; 18]].concat()
    };
    let all: Vec<u8> = (0..datagrams).flat_map(datagram).collect();
    let [low, high] = (0x1000 | all.len() as u16).to_le_bytes();
    [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xa4, low, high], &all].concat()
}

/// Frames of a master that numbers datagrams, one each millisecond, with so many datagrams in each.
fn of_master(frames: u64, datagrams: impl Fn(u64) -> u64) -> Vec<Seen> {
    of_master_from(0, frames, datagrams)
}

/// The same from an index on.
fn of_master_from(mut index: u64, frames: u64, datagrams: impl Fn(u64) -> u64) -> Vec<Seen> {
    (0..frames)
        .map(|n| {
            let bytes = ethercat(index, datagrams(n));
            index += datagrams(n);
            let at_ns = (1_000_000_000 + n as i64 * PERIOD_NS + scatter(n)).unsigned_abs();
            Seen { at_ns, interface: 0, bytes }
        })
        .collect()
}

/// Masters that number each datagram send more of them in some frames: those of a mailbox, or of the state of a slave.
#[test]
fn frames_with_different_numbers_of_datagrams_are_counted() {
    type Datagrams = fn(u64) -> u64;
    let masters: [(&str, Datagrams); 8] = [
        ("1", |_| 1),
        ("3", |_| 3),
        ("15", |_| 15),
        ("2 and 3", |n| 2 + n % 2),
        ("3 in each fourth", |n| 2 + u64::from(n % 4 == 3)),
        ("2 in each thousandth", |n| 1 + u64::from(n % 1_000 == 700)),
        ("1 at the start, then 3", |n| if n < 100 { 1 } else { 3 }),
        ("1 to 4", |n| 1 + n * n % 7 % 4),
    ];
    for (name, datagrams) in masters {
        let all = of_master(6_000, datagrams);
        let found = |frames: &[Seen]| {
            let capture = analysed(frames);
            assert!((capture.period.fitted_ns - 1e6).abs() < 100.0, "{name}: {:?}", capture.period);
            assert_eq!((capture.late, capture.skipped_slots), (Some(0), Some(0)), "{name}");
            counts(&capture)
        };
        assert_eq!(found(&all), [Some(0); 5], "{name}");
        let single: Vec<Seen> = (0..).zip(&all).filter(|(n, _)| n % 317 != 250).map(|(_, seen)| seen.clone()).collect();
        assert_eq!(found(&single), [Some(19), Some(19), Some(0), Some(0), Some(0)], "{name}");
        let burst: Vec<Seen> =
            (0..).zip(&all).filter(|(n, _)| !(3_000..3_010).contains(n)).map(|(_, seen)| seen.clone()).collect();
        assert_eq!(found(&burst), [Some(10), Some(1), Some(0), Some(0), Some(0)], "{name}");
        let mut copied = all.clone();
        for n in [5_000, 2_000, 500] {
            let copy = Seen { at_ns: all[n].at_ns + 3_000, ..all[n].clone() };
            copied.insert(n + 1, copy);
        }
        let capture = analysed(&copied);
        assert_eq!(counts(&capture), [Some(0), Some(0), Some(3), Some(0), Some(0)], "{name}");
        let mut swapped = all.clone();
        for n in [0, 1_000, 4_000] {
            let earlier = swapped[n].bytes.clone();
            swapped[n].bytes = std::mem::replace(&mut swapped[n + 1].bytes, earlier);
        }
        let capture = analysed(&swapped);
        assert_eq!(counts(&capture), [Some(0), Some(0), Some(0), Some(3), Some(0)], "{name}");
    }
}

/// The indexes of the first frames can look like numbers of frames that begin again after 254.
#[test]
fn datagrams_are_counted_from_any_index_on() {
    for first in 0..256 {
        for (every, least) in [(10, 2), (16, 2), (30, 2), (64, 1), (250, 4)] {
            let all = of_master_from(first, 2_000, |n| least + u64::from(n % every == every - 1));
            assert_eq!(counts(&analysed(&all)), [Some(0); 5], "{least} and one more in each {every}, from {first} on");
        }
    }
}

/// In a silence, the numbers can start again. If the frames have different numbers of datagrams, any number of frames fits.
#[test]
fn a_silence_of_a_master_is_a_pause_or_unknown() {
    let silent = |datagrams: fn(u64) -> u64, silence_ns: u64| {
        let mut all = of_master(6_000, datagrams);
        all.iter_mut().skip(3_000).for_each(|seen| seen.at_ns += silence_ns);
        analysed(&all).lost
    };
    assert_eq!(silent(|_| 3, 400_300_000), Some(0), "the numbers continue");
    assert_eq!(silent(|n| 2 + n % 2, 400_300_000), None);
    assert_eq!(silent(|n| 2 + n % 2, 20_300_000), Some(0), "too short for all numbers");
    // After hours, the slots are not known, either.
    for datagrams in [|_| 1, |_| 3, |n| 2 + n % 2] as [fn(u64) -> u64; 3] {
        let mut all = of_master(6_000, datagrams);
        all.iter_mut().skip(3_000).for_each(|seen| seen.at_ns += 3 * 3_600_000_370_000);
        let found = analysed(&all);
        let steps: Vec<_> = found.steps.iter().map(|step| (step.kind, step.frame)).collect();
        assert_eq!((found.lost, &steps[..]), (None, &[(StepKind::Silence, 3_001)][..]));
    }
}

/// Frames of events, such as those of a CAN bus, can have the priority of a class. They have no period.
#[test]
fn events_with_the_priority_of_a_class_have_no_period() {
    for mean_ns in [400_000, 2_000_000, 10_000_000] {
        let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let mut talker = Talker::plain(1);
        let mut at_ns = 0;
        let all = (0..6_000).map(|n| {
            // Exponential intervals, and at least the length of a frame.
            let part = (random(n) as f64 + 1.0) / f64::from(1 << 24);
            at_ns += 10_000 + (-part.ln() * mean_ns as f64) as i64;
            talker.seen(n, at_ns)
        });
        let kept: Vec<Seen> = (0..).zip(all).filter(|(n, _)| n % 211 != 150).map(|(_, seen)| seen).collect();
        let capture = analysed(&kept);
        assert_eq!(capture.period.told_by, PeriodSource::Median, "{mean_ns}");
        let why = capture.lateness_unknown.clone().unwrap_or_default();
        assert!(why.starts_with("the frames are not regular"), "{mean_ns}: {why}");
        assert_eq!((capture.lost, capture.restarts, capture.late), (Some(28), Some(0), None), "{mean_ns}");
        assert_eq!((capture.skipped_slots, capture.late_packets), (None, None), "{mean_ns}");
        // The time does not show which of two frames was first: the counts are right, or not known.
        for first in (300..5_000).step_by(97) {
            let mut swapped = kept.clone();
            let earlier = swapped[first].bytes.clone();
            swapped[first].bytes = std::mem::replace(&mut swapped[first + 1].bytes, earlier);
            let capture = analysed(&swapped);
            assert_eq!(capture.restarts.unwrap_or(0), 0, "{mean_ns} {first}");
            assert!(capture.lost.is_none_or(|lost| lost == 28), "{mean_ns} {first}: {:?}", counts(&capture));
        }
    }
}

/// Where the capture cuts off datagrams, the indexes of the next frame are not known.
#[test]
fn frames_of_a_master_that_are_cut_have_no_numbers() {
    for (kept, lost) in [(82, Some(2)), (60, None), (30, None)] {
        let mut all = of_master(6_000, |n| 2 + n % 2);
        all.remove(4_000);
        all.remove(1_000);
        let mut file = support::Pcapng::new(LITTLE);
        file.interface(1, Some(9), 0);
        for seen in &all {
            file.truncated(seen, kept);
        }
        let capture = analyse(|| Ok(&file.bytes[..]), "test", &OPTIONS).unwrap().capture;
        assert_eq!((capture.lost, capture.skipped_slots), (lost, Some(if lost.is_some() { 0 } else { 2 })), "{kept}");
    }
}

/// Two pauses of a talker of AVTP: together as long as all numbers, but neither is.
#[test]
fn two_pauses_are_no_loss_of_all_numbers() {
    for (first, second, between) in [(63, 193, 100), (100, 156, 20), (200, 56, 90), (128, 128, 60)] {
        let mut talker = Talker::plain(1);
        let at_ns = |n: u64| {
            let n = n.cast_signed();
            let pauses = if n < 2_000 { 0 } else { first } + if n < 2_000 + between { 0 } else { second };
            (n + pauses) * 125_000 + scatter(n.cast_unsigned())
        };
        let capture = analysed(&(0..6_000).map(|n| talker.seen(n, at_ns(n))).collect::<Vec<_>>());
        assert_eq!(counts(&capture), [Some(0), Some(0), Some(0), Some(0), Some(0)], "{first} {second}");
    }
}
