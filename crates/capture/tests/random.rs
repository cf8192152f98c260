//! Random streams with random faults at safe distances: each fault is found, and nothing else.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames and times in test captures are small"
)]

mod support;

use std::ops::Range;

use analysis::profiles;
use capture::{Analysis, Filter, Options, analyse, to_record};
use proptest::prelude::*;
use record::{Outcome, StepKind};
use support::{LITTLE, OPTIONS, Seen, Talker, datagram, pcap, scatter};

const PERIOD_NS: i64 = 125_000;
/// Frames from one fault to the next, and from the last one to the end.
const APART: u64 = 1_500;

/// A fault of a stream, at a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// So many frames are lost.
    Loss(u64),
    /// Frames wait for so many slots and follow in a burst.
    Stall(u64),
    /// The frame arrives after this many later ones.
    Reorder(u64),
    /// The frame arrives again, this many ns later.
    Duplicate(i64),
    /// The talker skips so many slots.
    Skip(u64),
    /// The talker changes its phase, ns.
    Phase(i64),
    /// The talker continues with a number that is so much larger, without a pause.
    Restart(u64),
    /// The talker pauses for so long, ns.
    Pause(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Numbers {
    None,
    Eight,
    Whole,
}

/// A stream with a fault every [`APART`] frames.
#[derive(Debug, Clone)]
struct Sent {
    numbers: Numbers,
    /// Frames per period.
    group: u64,
    /// The largest jitter, ns.
    jitter_ns: i64,
    /// The error of the clock.
    ppm: i64,
    seed: u64,
    faults: Vec<Fault>,
}

/// A pause; losses of multiples of 256 frames do not explain it.
fn pause((rounds, slots, more_ns): (i64, i64, i64)) -> Fault {
    Fault::Pause((256 * rounds + slots) * PERIOD_NS + more_ns)
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => prop_oneof![1..40u64, 250..260u64, 1..700u64].prop_map(Fault::Loss),
        1 => (2..200u64).prop_map(Fault::Stall),
        1 => (1..20u64).prop_map(Fault::Reorder),
        1 => (1_000..60_000i64).prop_map(Fault::Duplicate),
        1 => (1..20u64).prop_map(Fault::Skip),
        1 => (22_000..56_000i64).prop_map(Fault::Phase),
        1 => (60..200u64).prop_map(Fault::Restart),
        1 => (4..90i64, 20..230i64, 30_000..95_000i64).prop_map(pause),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let numbers = prop_oneof![3 => Just(Numbers::Eight), 1 => Just(Numbers::Whole), 1 => Just(Numbers::None)];
    let group = prop_oneof![3 => Just(1), 1 => 2..5u64];
    let jitter_ns = prop_oneof![Just(200), Just(2_000), Just(8_000)];
    let faults = prop::collection::vec(fault(), 0..6);
    (numbers, group, jitter_ns, -100..100i64, any::<u32>(), faults, any::<bool>()).prop_map(
        |(numbers, group, jitter_ns, ppm, seed, mut faults, earlier)| {
            // Without numbers, the frames of a group cannot be told from each other.
            let group = if numbers == Numbers::None { 1 } else { group };
            faults.retain(|fault| match fault {
                Fault::Loss(_) | Fault::Duplicate(_) => true,
                _ if group > 1 => false,
                Fault::Reorder(_) | Fault::Restart(_) => numbers != Numbers::None,
                _ => true,
            });
            for fault in &mut faults {
                match fault {
                    // A step back to the phase before it would end an episode of lateness.
                    Fault::Phase(ns) if earlier => *ns = -*ns,
                    // Without numbers, a longer loss looks like a pause.
                    Fault::Loss(lost) if numbers == Numbers::None => *lost = *lost % 500 + 1,
                    // A duplicate that is nearer to the next slot looks like the next frame.
                    Fault::Duplicate(ns) if group > 1 => *ns = *ns % 2_000 + 1_000,
                    _ => {}
                }
            }
            Sent { numbers, group, jitter_ns, ppm, seed: u64::from(seed), faults }
        },
    )
}

/// The counts that must be found.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    lost: u64,
    losses: u64,
    duplicates: u64,
    reordered: u64,
    restarts: u64,
    skipped: u64,
    surplus: u64,
    phases: usize,
    silences: usize,
    others: usize,
}

impl Sent {
    fn fault_at(&self, n: u64) -> Option<Fault> {
        let faults = n.is_multiple_of(APART).then(|| (n / APART).checked_sub(1)).flatten();
        faults.and_then(|fault| self.faults.get(fault as usize)).copied()
    }

    /// The frames as captured, and the lateness of each, ns.
    fn frames(&self) -> (Vec<Seen>, Vec<i64>) {
        let mut talker = if self.numbers == Numbers::Whole { Talker::new(1) } else { Talker::plain(1) };
        let (mut shift_ns, mut number, mut lost) = (0, 0, 0..0);
        let mut stall: Option<(u64, i64)> = None;
        let (mut frames, mut latenesses) = (Vec::new(), Vec::new());
        for n in 0..(self.faults.len() as u64 + 1) * APART + 100 {
            let fault = self.fault_at(n);
            let slot_ns = (n / self.group) as i64 * PERIOD_NS + (n % self.group) as i64 * 12_000;
            let due_ns = |shift_ns: i64| {
                let due_ns = slot_ns + shift_ns;
                due_ns + due_ns / 1_000 * self.ppm / 1_000
            };
            match fault {
                Some(Fault::Skip(slots)) => shift_ns += slots as i64 * PERIOD_NS,
                Some(Fault::Phase(ns) | Fault::Pause(ns)) => shift_ns += ns,
                Some(Fault::Restart(more)) => {
                    talker.restart();
                    number += more;
                }
                Some(Fault::Loss(count)) => lost = Range { start: n, end: n + count },
                Some(Fault::Stall(slots)) => stall = Some((n, due_ns(shift_ns) + slots as i64 * PERIOD_NS)),
                Some(Fault::Reorder(_) | Fault::Duplicate(_)) | None => {}
            }
            let on_time_ns = due_ns(shift_ns) + scatter(n + self.seed) * self.jitter_ns / 201;
            let burst_ns = stall.map_or(i64::MIN, |(from, end_ns)| end_ns + (n - from) as i64 * 1_500);
            let mut at_ns = on_time_ns.max(burst_ns);
            if let Some(Fault::Reorder(frames)) = fault {
                at_ns += frames as i64 * PERIOD_NS + PERIOD_NS / 2;
            }
            number += 1;
            if lost.contains(&n) {
                continue;
            }
            latenesses.push(at_ns - due_ns(shift_ns));
            let mut seen = |at_ns| match self.numbers {
                Numbers::None => datagram(at_ns, 7_000),
                Numbers::Eight | Numbers::Whole => talker.seen(number, at_ns),
            };
            frames.push(seen(at_ns));
            if let Some(Fault::Duplicate(after_ns)) = fault {
                frames.push(seen(at_ns + after_ns));
            }
        }
        frames.sort_by_key(|seen| seen.at_ns);
        (frames, latenesses)
    }

    fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for &fault in &self.faults {
            let is_numbered = self.numbers != Numbers::None;
            match fault {
                Fault::Loss(lost) if is_numbered => {
                    (expected.lost, expected.losses) = (expected.lost + lost, expected.losses + 1);
                }
                Fault::Loss(slots) | Fault::Skip(slots) => expected.skipped += slots,
                Fault::Reorder(_) => expected.reordered += 1,
                Fault::Duplicate(_) if is_numbered => expected.duplicates += 1,
                Fault::Duplicate(_) => expected.surplus += 1,
                Fault::Phase(_) => expected.phases += 1,
                Fault::Restart(_) => expected.restarts += 1,
                Fault::Pause(_) => expected.silences += 1,
                Fault::Stall(_) => {}
            }
        }
        expected
    }

    /// FAIL if a frame was late or missing, unless the clock of the capture may have been set.
    fn outcome(&self) -> Outcome {
        let has = |is_such: fn(&Fault) -> bool| self.faults.iter().any(is_such);
        let is_late =
            |fault: &Fault| matches!(fault, Fault::Loss(_) | Fault::Stall(_) | Fault::Skip(_) | Fault::Reorder(_));
        let fails = has(is_late) && !has(|fault| matches!(fault, Fault::Pause(_)));
        if fails { Outcome::Fail } else { Outcome::Inconclusive }
    }
}

fn found(sent: &Sent, frames: &[Seen]) -> Analysis {
    let udp = sent.numbers == Numbers::None;
    let options = Options {
        filter: Filter { udp: udp.then_some(7_000), ..Filter::default() },
        period_ns: udp.then_some(PERIOD_NS as u64),
        ..OPTIONS
    };
    let file = pcap(LITTLE, true, 1, frames);
    analyse(|| Ok(&file[..]), "test", &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_each_fault_and_no_other(sent in sent()) {
        let (frames, latenesses) = sent.frames();
        let found = found(&sent, &frames);
        let capture = &found.capture;
        prop_assert_eq!(&capture.lateness_unknown, &None);
        prop_assert_eq!(capture.lost.is_some(), capture.is_numbered());
        let steps = |kind| capture.steps.iter().filter(|step| step.kind == kind).count();
        let counted = Expected {
            lost: capture.lost.unwrap_or(0),
            losses: capture.losses.unwrap_or(0),
            duplicates: capture.duplicates.unwrap_or(0),
            reordered: capture.reordered.unwrap_or(0),
            restarts: capture.restarts.unwrap_or(0),
            skipped: capture.skipped_slots.unwrap(),
            surplus: capture.surplus.unwrap(),
            phases: steps(StepKind::Phase),
            silences: steps(StepKind::Silence),
            others: steps(StepKind::Drift) + steps(StepKind::ClockSet),
        };
        prop_assert_eq!(counted, sent.expected(), "{:?}", &capture.steps);
        prop_assert_eq!((capture.too_late.unwrap_or(0), capture.frames_per_period), (0, sent.group));
        // The grid starts near the earliest frames. Steps that are near whole periods make it less exact.
        let wander_ns = capture.period.wander_ns.unwrap_or(0.0) as i64;
        let error_ns = sent.jitter_ns / 6 + 400 + wander_ns;
        let max_ns = latenesses.iter().max().unwrap();
        prop_assert!((found.series.max_ns.unwrap() - max_ns).abs() <= error_ns, "{:?} {max_ns}", found.series.max_ns);
        let tolerance_ns = capture.tolerance_ns as i64;
        let later = |ns| latenesses.iter().filter(|late_ns| **late_ns > ns).count() as u64;
        let late = later(tolerance_ns + error_ns)..=later(tolerance_ns - error_ns);
        prop_assert!(late.contains(&capture.late.unwrap()), "{} {late:?}", capture.late.unwrap());
        let ppm = capture.period.clock_ppm.unwrap();
        let span_ns = APART as i64 * PERIOD_NS;
        let ppm_error = capture.period.clock_error_ppm.unwrap() + 0.1 + 1e6 * wander_ns as f64 / span_ns as f64;
        prop_assert!((ppm - sent.ppm as f64).abs() <= ppm_error, "{ppm} {ppm_error}");
        let profile = profiles().iter().find(|profile| profile.name == "avb-class-a").unwrap();
        let verdict = analysis::judge(&to_record(found.clone(), Vec::new()), profile);
        prop_assert_eq!(verdict.outcome, sent.outcome(), "{}", verdict.reason);
    }
}
