//! Clocks that do not keep one rate: only frames that are late against the schedule of the talker are late.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers of frames and times in test captures are small"
)]

mod support;

use std::io::Read;

use capture::{Analysis, Options, analyse};
use record::StepKind;
use support::{LITTLE, OPTIONS, Seen, Talker, datagram, pcap, scatter};

const PERIOD_NS: i64 = 1_000_000;
const SECOND: u64 = 1_000;

/// The time that the clocks have moved apart after so many seconds, ns.
type Apart = fn(f64) -> f64;

fn analysed(frames: &[Seen]) -> Analysis {
    let file = pcap(LITTLE, true, 1, frames);
    let options = Options { period_ns: Some(PERIOD_NS as u64), ..OPTIONS };
    analyse(|| Ok(&file[..]), "test", &options).unwrap()
}

/// The time of frame `n` by a clock that moves away, with a jitter of 0 to 200 ns.
fn at_ns(n: u64, apart: Apart) -> i64 {
    let on_time_ns = n as i64 * PERIOD_NS;
    on_time_ns + apart(on_time_ns as f64 / 1e9) as i64 + scatter(n)
}

/// `seconds` of frames. One in `late_each` is late by 30 us.
fn stream(seconds: u64, late_each: u64, at_ns: impl Fn(u64) -> i64) -> Vec<Seen> {
    let mut talker = Talker::plain(1);
    let late_ns = |n: u64| if n % late_each == late_each / 2 { 30_000 } else { 0 };
    (0..seconds * SECOND).map(|n| talker.seen(n, at_ns(n) + late_ns(n))).collect()
}

/// A rate that changes by `ppm` up and down within `every_s` seconds.
fn wave(seconds: f64, ppm: f64, every_s: f64) -> f64 {
    let turn = std::f64::consts::TAU / every_s;
    ppm * 1e3 / turn * (1.0 - (seconds * turn).cos())
}

#[test]
fn slow_wander_makes_no_frame_late() {
    for (seconds, apart) in [
        (120, (|s| wave(s, 0.5, 120.0)) as Apart),
        (200, |s| wave(s, 2.0, 60.0)),
        // A clock that becomes warm.
        (240, |s| 5_000.0 * (s - 60.0 * (1.0 - (-s / 60.0).exp()))),
        (100, |s| 30_000.0 * s + s * s * 10.0),
    ] {
        let found = analysed(&stream(seconds, 7_001, |n| at_ns(n, apart)));
        let capture = &found.capture;
        let late = seconds * SECOND / 7_001 + u64::from(seconds * SECOND % 7_001 > 3_500);
        assert_eq!((capture.late, capture.steps_total), (Some(late), Some(0)), "{seconds}: {:?}", capture.steps);
        assert!((found.series.max_ns.unwrap() - 30_000).abs() < 600, "{:?}", found.series.max_ns);
        assert!(found.series.min_ns.unwrap() > -600, "{:?}", found.series.min_ns);
        assert!(capture.period.wander_ns.unwrap() < 300.0, "{:?}", capture.period);
        let followed_ns = capture.period.followed_ns.unwrap();
        assert!((3_000.0..400_000.0).contains(&followed_ns), "{followed_ns}");
        assert!(found.caveats.iter().any(|caveat| caveat.text.contains("the slots follow it")), "{:?}", found.caveats);
    }
}

/// Without the wander, credit would be missing for frames of a talker that is faster for minutes.
#[test]
fn a_talker_that_is_faster_for_a_while_has_credit() {
    let mut talker = Talker::plain(1);
    let at_ns = |n: u64| n as i64 * 125_000 + wave(n as f64 / 8_000.0, -2.0, 60.0) as i64 + scatter(n);
    let frames: Vec<Seen> = (0..480_000).map(|n| talker.seen(n, at_ns(n))).collect();
    let file = pcap(LITTLE, true, 1, &frames);
    let found = analyse(|| Ok(&file[..]), "test", &OPTIONS).unwrap().capture;
    assert_eq!((found.late, found.shaper.unwrap().violations), (Some(0), 0));
}

#[test]
fn frames_are_late_against_the_rate_before_and_after_a_change() {
    for ppm in [100, -100, 20] {
        for turn in [25, 50, 80] {
            let at =
                |n: u64| at_ns(n, |_| 0.0) + (n as i64 - turn * SECOND as i64).max(0) * PERIOD_NS / 1_000_000 * ppm;
            let found = analysed(&stream(100, 999, at));
            let capture = &found.capture;
            let context = format!("{ppm} {turn}: {:?}", capture.steps);
            assert_eq!(capture.late, Some(100), "{context}");
            assert!((found.series.max_ns.unwrap() - 30_000).abs() < 1_000, "{context} {:?}", found.series.max_ns);
            assert!(found.series.min_ns.unwrap() > -1_000, "{context} {:?}", found.series.min_ns);
            let [step] = &capture.steps[..] else { panic!("{context}") };
            assert!(step.kind == StepKind::Rate && (step.ppm.unwrap() - ppm as f64).abs() < 1.0, "{context}");
            assert!(step.frame.abs_diff(turn as u64 * SECOND) < 100, "{context}");
        }
    }
}

/// Steps of the phase and stalls are found as without wander.
#[test]
fn wander_hides_no_step() {
    let phase_ns = |n: u64| if n >= 40 * SECOND { 200_000 } else { 0 };
    // All frames of 6 s are late.
    let late_ns = |n: u64| if (70 * SECOND..76 * SECOND).contains(&n) { 60_000 } else { 0 };
    let found = analysed(&stream(120, 7_001, |n| at_ns(n, |s| wave(s, 1.0, 100.0)) + phase_ns(n) + late_ns(n)));
    let capture = &found.capture;
    let steps: Vec<_> = capture.steps.iter().map(|step| (step.frame, step.kind)).collect();
    let expected = [40, 70, 76].map(|second| (second * SECOND + 1, StepKind::Phase));
    assert_eq!(steps, expected);
    assert_eq!(capture.late, Some(17));
    let moved_ns: Vec<i64> = capture.steps.iter().map(|step| step.ns.unwrap()).collect();
    assert!(
        moved_ns.iter().zip([200_000, 60_000, -60_000]).all(|(ns, truth)| (ns - truth).abs() < 1_500),
        "{moved_ns:?}"
    );
}

/// Nothing smooth is in scatter, and seconds of growing lateness are no wander.
#[test]
fn only_what_is_smooth_and_slow_is_followed() {
    let noisy = |n: u64| n as i64 * PERIOD_NS + scatter(n / 1_300) * 100 + scatter(n);
    assert_eq!(analysed(&stream(100, 999, noisy)).capture.period.followed_ns, None);
    let grows = |n: u64| {
        let clamped = |from: u64, to: u64| n.clamp(from * SECOND, to * SECOND) as i64;
        at_ns(n, |_| 0.0) + (clamped(40, 45) - clamped(45, 50) + 5 * SECOND as i64) * 20
    };
    let capture = analysed(&stream(100, 999, grows)).capture;
    assert_eq!((capture.period.followed_ns, capture.late), (None, None));
    assert!(capture.steps.iter().all(|step| step.kind == StepKind::Drift), "{:?}", capture.steps);
}

/// Rare frames with much jitter, and a silence over which the error of a rate is as long as many periods.
#[test]
fn a_long_silence_is_no_wander() {
    for (seed, silence_s) in [(0, 100), (1_000, 1_000), (2_000, 1_000)] {
        let at_ns = |n: u64| {
            let silence_s = if n < 700 { 0 } else { silence_s };
            n as i64 * 125_000_000 + silence_s * 1_000_000_000 + scatter(n + seed) * 40_000
        };
        let mut talker = Talker::plain(1);
        let frames: Vec<Seen> = (0..2_000).map(|n| talker.seen(n, at_ns(n))).collect();
        let file = pcap(LITTLE, true, 1, &frames);
        let options = Options { period_ns: Some(125_000_000), ..OPTIONS };
        let found = analyse(|| Ok(&file[..]), "test", &options).unwrap().capture;
        assert_eq!(found.period.followed_ns, None, "{seed} {silence_s}");
    }
}

/// A constant rate makes a slow pattern of coarse stamps, which is not that of a clock.
#[test]
fn coarse_stamps_are_no_wander() {
    for resolution_ns in [10_000, 30_000, 100_000] {
        for tenths_of_ppm in (-300..300).step_by(23) {
            let at_ns = |n: u64| {
                let at_ns = n as i64 * (PERIOD_NS * 10 + tenths_of_ppm) / 10 + scatter(n);
                at_ns.div_euclid(resolution_ns) * resolution_ns
            };
            let found = analysed(&stream(30, u64::MAX, at_ns));
            let wander = found.caveats.iter().find(|caveat| caveat.kind == "wander");
            assert_eq!(wander, None, "{resolution_ns} {tenths_of_ppm}");
        }
    }
}

/// A capture of frames every 10 ms at these times, which is not in memory.
struct Made {
    frames: u64,
    next: u64,
    at_ns: fn(u64) -> i64,
    read: Vec<u8>,
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        const HEADER: usize = 24;
        if self.read.is_empty() && self.next < self.frames {
            let until = self.frames.min(self.next + 1_000);
            let frames: Vec<Seen> = (self.next..until).map(|n| datagram((self.at_ns)(n), 7_000)).collect();
            self.read = pcap(LITTLE, true, 1, &frames).split_off(if self.next == 0 { 0 } else { HEADER });
            self.next = until;
        }
        let length = into.len().min(self.read.len());
        into[..length].copy_from_slice(&self.read[..length]);
        self.read.drain(..length);
        Ok(length)
    }
}

fn made(frames: u64, at_ns: fn(u64) -> i64) -> Analysis {
    let open = || Ok(Made { frames, next: 0, at_ns, read: Vec::new() });
    analyse(open, "test", &Options { period_ns: Some(10_000_000), ..OPTIONS }).unwrap()
}

/// In an hour, the stretches for the fit of the grid are much shorter than two minutes.
#[test]
fn wander_within_minutes_is_followed_in_a_long_capture() {
    fn at_ns(n: u64) -> i64 {
        let late_ns = if n % 7_001 == 3_500 { 300_000 } else { 0 };
        n as i64 * 10_000_000 + wave(n as f64 / 100.0, 5.0, 120.0) as i64 + scatter(n) + late_ns
    }
    let found = made(360_000, at_ns);
    let capture = &found.capture;
    assert_eq!((capture.late, capture.steps_total), (Some(51), Some(0)), "{:?}", capture.steps);
    assert!((found.series.max_ns.unwrap() - 300_000).abs() < 10_000, "{:?}", found.series.max_ns);
    assert!((180_000.0..200_000.0).contains(&capture.period.followed_ns.unwrap()), "{:?}", capture.period);
}

/// The earliest frames of a capture of many hours do not show clocks that wander within a minute.
#[test]
fn lateness_is_not_known_if_the_clocks_wander_faster_than_the_stretches() {
    fn at_ns(n: u64) -> i64 {
        n as i64 * 10_000_000 + wave(n as f64 / 100.0, 20.0, 40.0) as i64 + scatter(n)
    }
    let found = made(2_300_000, at_ns);
    assert_eq!((found.capture.late, found.capture.skipped_slots), (None, Some(0)));
    assert!(
        found.caveats.iter().any(|caveat| caveat.text.contains("faster than slots can follow")),
        "{:?}",
        found.caveats
    );
}
