//! Known processing times are measured, and each period that takes too long is exactly one xrun.

use std::{hint::black_box, time::Duration};

use anyhow::{Context, Result, ensure};
use probes::{
    audio::{Audio, AudioSettings, Names, Player},
    guard::Heartbeat,
    probe_threads::ProbeThreads,
    timer::{Core, Settings, Timer},
};
use record::Series;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use crate::inside::{expect, punctual, recorded};

/// Rounds of the calibration loop, from which the rounds for the wanted processing time are computed.
const ROUNDS: u64 = 40_000;
/// Every tenth period takes three times as long, which exceeds the period.
const LONG_EVERY: u64 = 10;
const FRAMES: u32 = 64;
/// About 47 periods per second.
const MANY_FRAMES: u32 = 1024;
const DURATION_NS: i64 = 4_000_000_000;
/// Allowed difference between measured processing time and that of the loop alone.
const TOLERANCE_PERCENT: i64 = 5;

/// A loop of this many rounds. Not inlined: a round takes the same number of instructions wherever it is called.
#[inline(never)]
fn burn(rounds: u64) {
    let mut state = 1_u64;
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// The time of the loop alone, ns: the shortest of many, because a guest that has just booted is still busy.
fn alone_ns(rounds: u64) -> i64 {
    let once = |_| {
        let begin_ns = Clock::Monotonic.now_ns();
        burn(rounds);
        Clock::Monotonic.now_ns() - begin_ns
    };
    (0..25).map(once).min().unwrap_or_default()
}

/// A player that takes three times as long in every `long_every`-th period.
struct Burner {
    rounds: u64,
    long_every: u64,
    played: u64,
}

impl Player for Burner {
    fn play(&mut self, input: &[f32], left: &mut [f32], _right: &mut [f32]) {
        left.copy_from_slice(input);
        self.played += 1;
        burn(if self.played.is_multiple_of(self.long_every) { 3 * self.rounds } else { self.rounds });
    }
}

/// A busy loop instead of an amplifier.
pub fn measures_known_processing_times() -> Result<()> {
    let rounds = scaled(500_000)?;
    let series = played(FRAMES, Burner { rounds, long_every: LONG_EVERY, played: 0 })?;
    let audio = series.kind.audio().context("a series of audio")?;
    let expected_ns = alone_ns(rounds);
    let dsp = audio.dsp.as_ref().context("periods were played")?;
    let median_ns = dsp.histogram.percentile(50.0).unwrap_or_default();
    println!(
        "the loop takes {expected_ns} ns alone and {median_ns} ns in the player; {} xruns in {}",
        audio.xruns, audio.played
    );
    let error_ns = (median_ns - expected_ns).abs();
    ensure!(error_ns * 100 <= expected_ns * TOLERANCE_PERCENT, "{expected_ns} ns were measured as {median_ns}");
    // Nothing else runs in this guest: exactly every tenth period is an xrun, and one period is lost with it.
    ensure!(audio.xruns == audio.played / LONG_EVERY, "{} xruns in {} periods", audio.xruns, audio.played);
    ensure!(audio.lost.abs_diff(audio.xruns) <= 1, "{} lost with {} xruns", audio.lost, audio.xruns);
    let expected = (DURATION_NS * 48_000 / 64 / 1_000_000_000) as u64;
    ensure!(audio.due().abs_diff(expected) <= 2, "{} periods instead of {expected}", audio.due());
    Ok(())
}

/// A player that takes 92 % of each period keeps up, and the guard does not throttle it, even with few periods per
/// second. From 95 % on, the kernel's real-time throttling would interfere.
pub fn high_load_does_not_trigger_the_guard() -> Result<()> {
    let period_ns = u64::from(MANY_FRAMES) * 1_000_000_000 / 48_000;
    let rounds = scaled(period_ns * 92 / 100)?;
    let series = played(MANY_FRAMES, Burner { rounds, long_every: u64::MAX, played: 0 })?;
    let audio = series.kind.audio().context("a series of audio")?;
    println!("{} xruns and {} lost in {}; {:?}", audio.xruns, audio.lost, audio.played, series.notes);
    ensure!((audio.xruns, audio.lost) == (0, 0), "{} xruns, {} lost", audio.xruns, audio.lost);
    ensure!(!series.notes.iter().any(|note| note.contains("the guard")), "{:?}", series.notes);
    Ok(())
}

/// The number of rounds that take this long here.
fn scaled(duration_ns: u64) -> Result<u64> {
    let ns = alone_ns(ROUNDS).max(1);
    let rounds = ROUNDS * duration_ns / ns.cast_unsigned();
    ensure!(rounds > 100, "a loop of {ROUNDS} rounds takes {ns} ns");
    Ok(rounds)
}

fn played(frames: u32, chain: Burner) -> Result<Series> {
    let settings = AudioSettings {
        rate_hz: 48_000,
        frames,
        periods: 2,
        clock: Clock::Monotonic,
        threshold_ns: 1_000_000,
        spikes_kept: 1000,
        names: Names::default(),
        card: None,
        caveats: Vec::new(),
    };
    let grid = settings.grid();
    let mut audio = Audio::prepare(settings, chain);
    let timer = Settings {
        role: record::AUDIO.to_owned(),
        has_own_role: true,
        cpu: Some(0),
        policy: Policy::Fifo(80),
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        period_ns: grid.period_ns(),
        fraction: grid.fraction(),
        samples: None,
        threshold_ns: i64::MAX,
        spikes_kept: 1,
        stop_on: None,
        spin: None,
    };
    let mut timer = Timer::prepare_with(audio.work(0), &timer, Heartbeat::start()?)?;
    let first_ns = Clock::Monotonic.now_ns() + 10_000_000;
    timer.start(first_ns, first_ns + DURATION_NS - 1);
    while !timer.has_ended() {
        std::thread::sleep(Duration::from_millis(50));
        audio.collect();
        timer.collect();
    }
    audio.collect();
    timer.collect();
    let mut series = timer.series("rest");
    audio.add_to(0, &mut series);
    ensure!(series.granted.policy == "fifo:80", "{:?}", series.granted);
    Ok(series)
}

/// With the command and a built-in model: all periods of 3 s, none late.
pub fn a_small_model_meets_every_period() -> Result<()> {
    expect(
        0,
        &punctual("measure audio --quiet --record audio --model builtin:nano --frames 256 --duration 3s --blame=off")?,
    )?;
    let record = recorded("audio")?;
    let audio = record.series[0].kind.audio().context("a series of audio")?;
    // 562.5 periods of 256 frames.
    ensure!((562..=563).contains(&audio.played), "{} periods in 3 s", audio.played);
    ensure!((audio.xruns, audio.lost, audio.silent) == (0, 0, 0), "{} xruns, {} lost", audio.xruns, audio.lost);
    Ok(())
}
