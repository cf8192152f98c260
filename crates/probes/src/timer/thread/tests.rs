//! Counting with given wake-ups.

use proptest::prelude::*;
use sys::{clock::Wait, sched::Policy};

use super::*;
use crate::timer::{Core, Fraction, reader::Reader, shared::channel};

const PERIOD_NS: u64 = 25_000;

/// Returns the series of a thread with the given lateness of each wake-up.
fn series(lateness_ns: &[i64]) -> record::Series {
    stopped_series(lateness_ns, 0)
}

/// Like [`series`], but the thread is stopped `overdue_ns` after a further deadline, without a wake-up.
fn stopped_series(lateness_ns: &[i64], overdue_ns: i64) -> record::Series {
    let settings = Settings {
        role: "base".to_owned(),
        has_own_role: true,
        cpu: Some(0),
        policy: Policy::Other,
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        period_ns: PERIOD_NS,
        fraction: Fraction::default(),
        samples: None,
        threshold_ns: 10_000,
        spikes_kept: 3,
        stop_on: None,
        spin: None,
    };
    let (writer, shared, queue) = channel();
    let mut reader = Reader::new(queue, &settings);
    let first_ns = 1_000_000_000;
    let mut measuring = Measuring::new(&settings, None, Some(0), writer, first_ns, i64::MAX);
    let mut deadline_ns = first_ns;
    for &late_ns in lateness_ns {
        let missed = measuring.note(deadline_ns, deadline_ns + late_ns);
        deadline_ns += (missed + 1) * PERIOD_NS.cast_signed();
    }
    reader.collect(&shared);
    reader.count_overdue(deadline_ns - first_ns, overdue_ns);
    let grant = Grant {
        thread_id: 1,
        policy: Policy::Other,
        cpus: vec![0],
        timer_slack_ns: 0,
        policy_refused: None,
        pin_refused: None,
        floor_ns: 0,
        evl_level: None,
    };
    reader.series("rest", &settings, &grant, &shared)
}

/// Jitter by its definition: the largest |interval - period| between wake-ups.
fn jitter(lateness_ns: &[i64]) -> u64 {
    let period_ns = PERIOD_NS.cast_signed();
    let mut deadline_ns = 0;
    let mut wake_ups = Vec::new();
    for &late_ns in lateness_ns {
        wake_ups.push(deadline_ns + late_ns);
        deadline_ns += (late_ns.max(0) / period_ns + 1) * period_ns;
    }
    wake_ups.windows(2).map(|pair| (pair[1] - pair[0] - period_ns).unsigned_abs()).max().unwrap_or(0)
}

#[test]
fn constant_lateness_has_no_jitter() {
    let seen = series(&[9_000; 50]);
    assert_eq!((seen.jitter_ns, seen.max_ns, seen.missed), (0, Some(9_000), 0));
}

#[test]
fn jitter_includes_the_short_interval_after_a_late_wake_up() {
    let seen = series(&[1_000, 1_000, 8_000, 1_000]);
    assert_eq!((seen.jitter_ns, seen.max_ns), (7_000, Some(8_000)));
    // Early and then late: the interval error is larger than each lateness.
    assert_eq!(series(&[-4_000, 6_000]).jitter_ns, 10_000);
}

#[test]
fn a_stall_causes_a_long_interval_and_missed_deadlines() {
    let seen = series(&[0, 60_000, 0]);
    // The wake-ups are at 0, 85 and 100 us.
    assert_eq!((seen.jitter_ns, seen.max_ns, seen.missed, seen.samples), (60_000, Some(60_000), 2, 3));
}

#[test]
fn a_deadline_that_is_overdue_at_the_stop_counts_as_late() {
    let seen = stopped_series(&[0, 1_000], 130_000);
    assert_eq!((seen.samples, seen.missed, seen.spikes_total), (3, 5, 1));
    assert_eq!((seen.max_ns, seen.max_at_ns, seen.min_ns), (Some(130_000), Some(50_000), Some(0)));
    assert_eq!(seen.corrected.total(), 3 + 5);
    assert_eq!((seen.spikes[0].lateness_ns, seen.spikes[0].at_ns), (130_000, 50_000));
    assert!(seen.notes[0].contains("its wake-up is pending"), "{:?}", seen.notes);
    let on_time = stopped_series(&[0, 1_000], -5_000);
    assert_eq!((on_time.samples, on_time.max_ns, on_time.notes.len()), (2, Some(1_000), 0));
}

#[test]
fn a_pending_deadline_is_taken_once() {
    let (writer, shared, _queue) = channel();
    assert_eq!(shared.pending.take(), None);
    writer.shared.pending.set(7);
    assert_eq!((shared.pending.take(), writer.shared.pending.take()), (Some(7), None));
}

#[test]
fn keeps_the_worst_spikes_and_counts_all() {
    let seen = series(&[11_000, 20_000, 12_000, 13_000, 5_000, 14_000]);
    let kept: Vec<_> = seen.spikes.iter().map(|spike| spike.lateness_ns).collect();
    assert_eq!((kept, seen.spikes_total), (vec![20_000, 13_000, 14_000], 5));
}

#[test]
fn the_latest_wake_up_is_kept_even_if_the_queue_was_full() {
    let lateness_ns = [vec![20_000; 5000], vec![900_000, 11_000]].concat();
    let seen = series(&lateness_ns);
    let kept: Vec<_> = seen.spikes.iter().map(|spike| spike.lateness_ns).collect();
    assert_eq!((kept.iter().max(), kept.iter().filter(|&&ns| ns == 900_000).count()), (Some(&900_000), 1), "{kept:?}");
    assert!(seen.notes[0].contains("came too fast"), "{:?}", seen.notes);
}

proptest! {
    #[test]
    fn jitter_matches_its_definition(lateness_ns in prop::collection::vec(-5_000i64..200_000, 1..60)) {
        prop_assert_eq!(series(&lateness_ns).jitter_ns, jitter(&lateness_ns));
    }
}
