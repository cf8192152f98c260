//! Counting with given wake-ups and processing times.

use std::cell::Cell;

use proptest::prelude::*;
use record::{Audio, Played, Series};
use sys::clock::Clock;

use super::*;
use crate::{
    audio::{AudioSettings, Names, reader::Reader, shared::channel},
    timer::Grid,
};

thread_local! {
    static NOW_NS: Cell<i64> = const { Cell::new(0) };
}

/// A chain with given processing times, on a simulated clock.
struct FixedTimes(std::vec::IntoIter<i64>);

impl Player for FixedTimes {
    fn play(&mut self, input: &[f32], left: &mut [f32], _right: &mut [f32]) {
        left.copy_from_slice(input);
        NOW_NS.set(NOW_NS.get() + self.0.next().unwrap_or(0));
    }
}

const FIRST_NS: i64 = 5_000_000_000;

/// Returns the series of a thread with the given lateness of each wake-up and the given processing time of each period.
fn played(periods: u32, wakes_ns: &[i64], takes_ns: Vec<i64>) -> Series {
    let settings = AudioSettings {
        rate_hz: 48_000,
        frames: 64,
        periods,
        clock: Clock::Monotonic,
        threshold_ns: 1_000_000,
        spikes_kept: 1000,
        names: Names::default(),
        card: None,
        caveats: Vec::new(),
    };
    let grid: Grid = settings.grid();
    let (writer, shared, queue) = channel(settings.threshold_ns);
    let mut reader = Reader::new(queue, settings.spikes_kept);
    let mut play = Play {
        player: FixedTimes(takes_ns.into_iter()),
        card: Card::new(grid, periods),
        now_ns: || NOW_NS.get(),
        writer,
        signal: vec![0.25; 192].into(),
        at: 0,
        left: vec![0.0; 64].into(),
        right: vec![0.0; 64].into(),
    };
    let mut slot = 0;
    for late_ns in wakes_ns {
        let deadline_ns = FIRST_NS + grid.offset_ns(slot);
        let woke_ns = (deadline_ns + late_ns).max(NOW_NS.get());
        NOW_NS.set(woke_ns);
        play.at(Wake { slot, deadline_ns, woke_ns });
        slot += grid.periods_in(woke_ns - deadline_ns).cast_unsigned() + 1;
    }
    NOW_NS.set(0);
    reader.collect(&shared);
    let mut series = Series::default();
    reader.add_to(&settings, &shared, &mut series);
    series
}

fn audio(series: &Series) -> &Audio {
    series.kind.audio().expect("a series of audio")
}

fn period(series: &Series, number: usize) -> Played {
    series.spikes[number].played.expect("a spike of audio is a period")
}

#[test]
fn counts_an_xrun_for_each_period_that_takes_too_long() {
    // Every tenth period takes 1.4 times its length of 1333 us.
    let takes_ns = (0..1000).map(|n| if n % 10 == 9 { 1_900_000 } else { 200_000 }).collect();
    // Each xrun loses one period: ten of eleven deadlines are processed.
    let series = played(2, &[10_000; 990], takes_ns);
    let result = audio(&series);
    assert_eq!((result.xruns, result.lost, result.played), (90, 90, 900));
    assert_eq!((series.spikes.len(), series.spikes_total), (90, 90));
    assert!(series.spikes.iter().all(|spike| spike.lateness_ns == 1_910_000));
    assert_eq!(period(&series, 0), Played { wait_ns: 10_000, dsp_ns: 1_900_000, xrun: true });
    assert_eq!(series.spikes[0].at_ns, 9 * 4_000_000 / 3);
}

#[test]
fn a_third_period_absorbs_one_that_took_too_long() {
    let takes_ns = (0..1000).map(|n| if n % 10 == 9 { 1_900_000 } else { 200_000 }).collect();
    let series = played(3, &[10_000; 1000], takes_ns);
    assert_eq!((audio(&series).xruns, audio(&series).lost, audio(&series).played), (0, 0, 1000));
    // The next period had to wait: 1910 us after its predecessor's deadline is 577 us after its own.
    let after = series.spikes.iter().find(|spike| spike.at_ns > 9 * 4_000_000 / 3);
    assert_eq!(after.and_then(|spike| spike.played).map(|played| played.xrun), Some(false));
}

#[test]
fn a_late_thread_processes_all_captured_periods() {
    // 3 ms late: two more periods are captured. All are in time on a card with four periods.
    let series = played(4, &[0, 3_000_000, 0], vec![100_000; 5]);
    assert_eq!((audio(&series).played, audio(&series).xruns), (5, 0));
    let late = period(&series, 0);
    assert_eq!((late.wait_ns, late.dsp_ns), (3_000_000, 100_000));
    let dsp = audio(&series).dsp.as_ref().expect("periods were played");
    assert_eq!((dsp.min_ns, dsp.max_ns), (100_000, 100_000), "waiting does not count as processing");
}

#[test]
fn reports_a_silent_chain() {
    struct Mute;
    impl Player for Mute {
        fn play(&mut self, _: &[f32], left: &mut [f32], _: &mut [f32]) {
            left.fill(0.0);
        }
    }
    let settings = AudioSettings {
        rate_hz: 48_000,
        frames: 64,
        periods: 2,
        clock: Clock::Monotonic,
        threshold_ns: i64::MAX,
        spikes_kept: 1,
        names: Names::default(),
        card: None,
        caveats: Vec::new(),
    };
    let mut probe = crate::audio::Audio::prepare(settings, Mute);
    let mut work = crate::probe_threads::ProbeThreads::work(&mut probe, 0).expect("the probe has work");
    let now_ns = Clock::Monotonic.now_ns();
    (0..4_u64).for_each(|slot| {
        let deadline_ns = now_ns + slot.cast_signed() * 1_333_333;
        work.at(Wake { slot, deadline_ns, woke_ns: deadline_ns });
    });
    let reasons = crate::probe_threads::ProbeThreads::reasons(&probe);
    assert_eq!(reasons.iter().map(|reason| reason.id.as_str()).collect::<Vec<_>>(), ["audio.silent"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn each_period_is_counted_once_and_times_add_up(
        periods in 2..5u32,
        wakes_ns in prop::collection::vec(prop_oneof![5 => 0..50_000i64, 1 => 0..9_000_000i64], 1..100),
        takes_ns in prop::collection::vec(prop_oneof![5 => 0..900_000i64, 1 => 0..5_000_000i64], 400),
    ) {
        let series = played(periods, &wakes_ns, takes_ns);
        let result = audio(&series);
        let (dsp, completion) = (result.dsp.clone().unwrap_or_default(), result.completion.clone().unwrap_or_default());
        prop_assert_eq!((dsp.histogram.total(), completion.histogram.total()), (result.played, result.played));
        prop_assert!(result.due() >= wakes_ns.len() as u64 || result.xruns > 0);
        let limit_ns = 4_000_000.0 / 3.0 * f64::from(periods - 1);
        for spike in &series.spikes {
            let played = spike.played.unwrap();
            prop_assert_eq!(played.completion_ns(), spike.lateness_ns);
            // Deadlines are rounded to whole ns.
            prop_assert!(played.xrun == (spike.lateness_ns as f64 >= limit_ns) || (spike.lateness_ns as f64 - limit_ns).abs() <= 1.0);
        }
        prop_assert_eq!(series.spikes.iter().filter(|spike| spike.played.unwrap().xrun).count() as u64, result.xruns);
    }
}
