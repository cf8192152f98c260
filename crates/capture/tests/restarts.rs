//! Talkers that restart their numbers, with losses, duplicates and frames in another order elsewhere: each is counted, or not
//! known.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of frames in test captures are small")]

mod support;

use proptest::prelude::*;
use record::Capture;
use support::{Seen, Talker, avtp, scatter};

const PERIOD_NS: i64 = 1_000_000;

fn ethernet(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &[0, 0, 0, 0, 1, 9], &ethertype.to_be_bytes(), packet].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A frame of EtherCAT with these indexes of its datagrams.
fn ethercat(indexes: &[u64]) -> Vec<u8> {
    let datagram = |(n, index): (usize, &u64)| {
        let more = if n + 1 < indexes.len() { 0x80 } else { 0 };
        [&[0x0c, *index as u8, 0, 0, 0, 0, 16, more, 0, 0][..], &[0; 18]].concat()
    };
    let all: Vec<u8> = indexes.iter().enumerate().flat_map(datagram).collect();
    ethernet(0x88a4, &[&(0x1000 | all.len() as u16).to_le_bytes()[..], &all].concat())
}

/// A protocol whose numbers start again after few frames.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Numbers {
    Avtp,
    /// So many datagrams of EtherCAT with the index of the frame.
    Frames(u64),
    /// So many datagrams of EtherCAT with an index each.
    Datagrams(u64),
    /// EtherCAT frames with indexes below this.
    Below(u64),
    Profinet,
    /// Sampled values, 4000 a second.
    Samples,
}

impl Numbers {
    /// The frame with this number.
    fn frame(self, talker: &mut Talker, n: u64) -> Vec<u8> {
        match self {
            Self::Avtp => talker.seen(n, 0).bytes,
            Self::Frames(datagrams) => ethercat(&vec![n; datagrams as usize]),
            Self::Datagrams(datagrams) => ethercat(&(n * datagrams..(n + 1) * datagrams).collect::<Vec<_>>()),
            Self::Below(values) => ethercat(&[n % values, n % values]),
            Self::Profinet => {
                let cycle = ((n * 32) as u16).to_be_bytes();
                ethernet(0x8892, &[&[0x80, 0x01][..], &[0; 40], &cycle, &[0x35, 0]].concat())
            }
            Self::Samples => {
                let count = ((n % 4000) as u16).to_be_bytes();
                let asdu =
                    [&[0x80, 3, b'M', b'U', b'1', 0x82, 2], &count[..], &[0x83, 4, 0, 0, 0, 1, 0x87, 8], &[0; 8]];
                let asdu = asdu.concat();
                let asdus = [&[0x30, asdu.len() as u8][..], &asdu].concat();
                let pdu = [&[0x80, 1, 1, 0xa2, asdus.len() as u8][..], &asdus].concat();
                ethernet(0x88ba, &[&[0x40, 0, 0, 60, 0, 0, 0, 0, 0x60, pdu.len() as u8][..], &pdu].concat())
            }
        }
    }

    fn period_ns(self) -> i64 {
        match self {
            Self::Avtp => 125_000,
            Self::Samples => 250_000,
            _ => PERIOD_NS,
        }
    }

    /// Frames after which the numbers start again.
    fn frames(self) -> u64 {
        match self {
            Self::Datagrams(datagrams) if datagrams.is_power_of_two() => 256 / datagrams,
            Self::Avtp | Self::Frames(_) | Self::Datagrams(_) => 256,
            Self::Below(values) => values,
            Self::Profinet => 2048,
            Self::Samples => 4000,
        }
    }
}

/// A stream of 4000 frames.
#[derive(Debug, Clone)]
struct Sent {
    numbers: Numbers,
    /// The talker restarts with number 0 at this frame, so many tenths of the period after the one before; 0 if it does not.
    restart: u64,
    tenths: i64,
    /// So many frames are lost before frame 1,000.
    lost: u64,
    /// Frame 700 comes again in this tenth of the period, and frame 800 before the one before it.
    again: i64,
    swapped: bool,
    seed: u64,
}

impl Sent {
    fn frames(&self) -> Vec<Seen> {
        let mut talker = Talker::plain(1);
        let period_ns = self.numbers.period_ns();
        let mut at = |n: u64, slot: u64, tenth: i64| {
            let is_after = self.restart > 0 && n >= self.restart;
            let more_ns = if is_after { (self.tenths - 10) * period_ns / 10 } else { 0 };
            let number = if is_after { n - self.restart } else { n };
            let bytes = self.numbers.frame(&mut talker, number);
            let at_ns = slot.cast_signed() * period_ns + more_ns + tenth * period_ns / 10 + scatter(n + self.seed);
            Seen { at_ns: support::BEGIN_NS + at_ns.cast_unsigned(), interface: 0, bytes }
        };
        let mut all = Vec::new();
        for n in 0..4_000 {
            if (1_000..1_000 + self.lost).contains(&n) {
                continue;
            }
            let slot = match n {
                800 if self.swapped => 801,
                801 if self.swapped => 800,
                _ => n,
            };
            all.push(at(n, slot, 0));
            if n == 700 && self.again > 0 {
                all.push(at(n, slot, self.again));
            }
        }
        support::sorted(all)
    }

    /// True if the restart looks like a loss, because as many slots passed as the number is ahead, or like nothing, because the
    /// numbers continue; or like duplicates, because wide numbers are a little behind.
    fn looks_lost(&self) -> bool {
        let frames = self.numbers.frames().cast_signed();
        let ahead = (-self.restart.cast_signed()).rem_euclid(frames);
        let slots = (self.tenths - 10) as f64 / 10.0;
        let apart = (slots - ahead as f64 + 3.0).rem_euclid(frames as f64) - 3.0;
        self.restart > 0 && (apart.abs() <= 2.0 || ahead == 0 || frames > 256 && frames - ahead <= 16)
    }

    /// The numbers of lost, repeated and reordered frames, and of restarts.
    fn counts(&self) -> [u64; 4] {
        [self.lost, u64::from(self.again > 0), u64::from(self.swapped), u64::from(self.restart > 0)]
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let numbers = prop_oneof![
        Just(Numbers::Avtp),
        (1..6u64).prop_map(Numbers::Frames),
        (1..6u64).prop_map(Numbers::Datagrams),
        Just(Numbers::Below(16)),
        Just(Numbers::Profinet),
        Just(Numbers::Samples),
    ];
    let restart = prop_oneof![1 => Just(0), 8 => 2_000..3_500u64];
    let tenths = prop_oneof![Just(10i64), 10..40i64, 40..400i64, 400..3_000i64, 3_000..20_000i64];
    (numbers, restart, tenths, 0..6u64, 0..40i64, any::<bool>(), 0..1_000u64).prop_map(
        |(numbers, restart, tenths, lost, again, swapped, seed)| Sent {
            numbers,
            restart,
            tenths,
            lost,
            again: if again % 10 == 0 { 0 } else { again },
            swapped,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn restarts_are_counted_or_not_known(sent in sent()) {
        prop_assume!(!sent.looks_lost());
        let capture = avtp(&sent.frames()).capture;
        let Capture { lost, duplicates, reordered, restarts, .. } = capture;
        let found = [lost, duplicates, reordered, restarts];
        let agree = found.into_iter().zip(sent.counts()).all(|(found, count)| found.is_none_or(|found| found == count));
        prop_assert!(agree, "{:?} {:?}", found, sent.counts());
        prop_assert!(lost.is_some() || sent.restart > 0, "without a restart, the numbers show each loss");
    }
}

/// Frames are lost only if their slots have passed: a number that is as far ahead as these belongs to a talker that restarted.
#[test]
fn fewer_slots_than_frames_show_a_restart() {
    for numbers in [Numbers::Avtp, Numbers::Frames(1), Numbers::Frames(2), Numbers::Datagrams(1), Numbers::Profinet] {
        for ahead in [20u64, 32, 33, 36, 40, 43, 60] {
            for tenths in [15, 25, 55, 136, 376] {
                if tenths > 10 * ahead.cast_signed() {
                    continue;
                }
                let restart = numbers.frames() * (2_000 / numbers.frames() + 1) - ahead;
                let sent = Sent { numbers, restart, tenths, lost: 3, again: 0, swapped: false, seed: 1 };
                let Capture { lost, restarts, duplicates, late, steps_total, .. } = avtp(&sent.frames()).capture;
                let counts = [lost, restarts, duplicates, late, steps_total];
                assert_eq!(counts, [3, 1, 0, 0, 1].map(Some), "{numbers:?}, {ahead} ahead after {tenths} tenths");
            }
        }
    }
}

/// The master SOEM numbers frames from 0 to 15. A duplicate is 15 frames ahead, too.
#[test]
fn few_numbers_show_duplicates_and_swaps() {
    for (again, swapped) in [(1, false), (8, false), (9, true), (23, true), (0, true)] {
        let sent = Sent { numbers: Numbers::Below(16), restart: 0, tenths: 10, lost: 5, again, swapped, seed: 3 };
        let Capture { lost, duplicates, reordered, restarts, .. } = avtp(&sent.frames()).capture;
        assert_eq!([lost, duplicates, reordered, restarts], sent.counts().map(Some), "{sent:?}");
    }
}
