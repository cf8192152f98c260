//! Sound cards: a software loopback, a dummy card with an exact clock, and the HD audio of an emulated PC.
//!
//! The loopback counts kernel ticks, so its periods are several ticks long.

pub mod paced;
pub mod played;

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use machine::{
    Root,
    sound::{self, Holder},
};
use serde_json::Value;
use sys::pcm::{Direction, Duplex, Format, Node, PcmError, StreamConfig, WaitResult, Wake};

use crate::inside::{expect, punctual, recorded};

const RATE_HZ: u32 = 48_000;
const STEREO: u32 = 2;

/// A period of 21 ms, which suits the loopback.
const SLOW: StreamConfig =
    StreamConfig { rate_hz: RATE_HZ, period_frames: 1024, periods: 2, inputs: STEREO, format: None };
/// A period of 1.3 ms, as used by guitarists.
const FAST: StreamConfig = StreamConfig { period_frames: 64, ..SLOW };

fn node(name: &str, direction: Direction) -> Result<Node> {
    let (card, device) = sound::find(&Root::system(), name)?;
    Ok(Node { card, device, direction })
}

fn open(capture: &str, playback: &str, config: &StreamConfig) -> Result<Duplex> {
    Ok(Duplex::open(node(capture, Direction::Capture)?, node(playback, Direction::Playback)?, config)?)
}

/// Waits for a period; an xrun is an error.
fn period(duplex: &mut Duplex) -> Result<Wake> {
    match duplex.wait()? {
        WaitResult::Period(wake) => Ok(wake),
        WaitResult::Xrun => anyhow::bail!("unexpected xrun"),
    }
}

/// A sample of noise that does not repeat within the test, quantised to 16 bits.
fn noise(frame: usize, channel: u32) -> f32 {
    let frame = u32::try_from(frame).expect("the test has fewer than 2^32 frames");
    let mixed = (frame + 1).wrapping_mul(0x9e37_79b9).wrapping_add(channel.wrapping_mul(0x85eb_ca6b));
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d);
    f32::from(((mixed >> 16) as u16).cast_signed()) / 32_768.0
}

/// In every format of the loopback, all samples return bit-exact, in order and on both channels.
pub fn loopback_is_bit_exact() -> Result<()> {
    let offer = sys::pcm::offer(node("hw:Loopback,1", Direction::Capture)?)?;
    ensure!(offer.formats.contains(&Format::S16) && offer.formats.contains(&Format::S32), "{offer:?}");
    for format in offer.formats {
        let config = StreamConfig { format: Some(format), ..SLOW };
        let mut duplex = open("hw:Loopback,1", "hw:Loopback,0", &config)?;
        ensure!(duplex.capture().format() == format && duplex.capture().channels() == STEREO);
        duplex.start()?;
        let mut received = [Vec::new(), Vec::new()];
        let mut block = [0.0; 1024];
        for round in 0..12 {
            period(&mut duplex)?;
            for channel in 0..STEREO {
                duplex.capture().read(channel, &mut block);
                received[channel as usize].extend_from_slice(&block);
                block = std::array::from_fn(|frame| noise(round * block.len() + frame, channel));
                duplex.playback().write(channel, &block);
            }
            duplex.advance()?;
        }
        for (channel, received) in (0..).zip(&received) {
            let begin = received.iter().position(|&sample| sample != 0.0).context("no signal was received")?;
            let mismatch = received[begin..].iter().enumerate().find(|&(at, &sample)| sample != noise(at, channel));
            ensure!(mismatch.is_none(), "{format}, channel {channel}: {mismatch:?} after {begin} silent frames");
            ensure!(
                received.len() - begin > 6 * 1024,
                "{format}: only {} frames were received",
                received.len() - begin
            );
        }
    }
    Ok(())
}

/// Sleeping longer than the buffer causes exactly one xrun each time, and streaming continues afterwards.
pub fn detects_exactly_the_provoked_xruns() -> Result<()> {
    for (capture, playback, config, linked) in [
        ("hw:Dummy", "hw:Dummy", FAST, true),
        ("hw:Loopback,1", "hw:Loopback,0", SLOW, true),
        ("hw:Dummy", "hw:Dummy", FAST, false),
        ("hw:Loopback,1", "hw:Loopback,0", SLOW, false),
    ] {
        let mut duplex = open(capture, playback, &config)?;
        if !linked {
            duplex.unlink()?;
        }
        ensure!(duplex.is_linked() == linked, "{playback}: linked {}", duplex.is_linked());
        duplex.start()?;
        let buffer = Duration::from_secs_f64(f64::from(config.buffer_frames()) / f64::from(RATE_HZ));
        let (mut provoked, mut found) = (0, 0);
        for round in 1..=100 {
            match duplex.wait()? {
                WaitResult::Period(_) => duplex.advance()?,
                WaitResult::Xrun => {
                    found += 1;
                    duplex.start()?;
                }
            }
            if round % 20 == 10 {
                thread::sleep(2 * buffer);
                provoked += 1;
            }
        }
        ensure!(provoked == 5 && found == provoked, "{playback}, linked {linked}: {found} xruns instead of {provoked}");
    }
    Ok(())
}

/// With unlinked directions, one can stop while the other still runs; both must restart. The loopback updates its
/// position one tick late, so after some sleeps of about a buffer only the other card has stopped.
pub fn restarts_after_an_xrun_of_one_direction() -> Result<()> {
    let mut duplex = open("hw:Dummy", "hw:Loopback,0", &SLOW)?;
    duplex.unlink()?;
    duplex.start()?;
    let buffer = Duration::from_secs_f64(f64::from(SLOW.buffer_frames()) / f64::from(RATE_HZ));
    let mut xruns = 0;
    for step in 0..40 {
        let shorter = Duration::from_millis(12);
        for wait in [Duration::ZERO, buffer - shorter + step * Duration::from_micros(500)] {
            thread::sleep(wait);
            match duplex.wait()? {
                WaitResult::Period(_) => duplex.advance()?,
                WaitResult::Xrun => {
                    xruns += 1;
                    duplex.start().with_context(|| format!("cannot restart after {wait:?}"))?;
                }
            }
        }
    }
    ensure!((1..40).contains(&xruns), "{xruns} xruns in 40 rounds");
    Ok(())
}

/// The dummy card wakes the thread once per period, as exactly as its clock: 64 frames, two periods.
pub fn a_card_sets_the_pace() -> Result<()> {
    const PERIODS: u32 = 1500;
    let mut duplex = open("hw:Dummy", "hw:Dummy", &FAST)?;
    duplex.start()?;
    let begin = period(&mut duplex)?;
    duplex.advance()?;
    let mut last = begin;
    for _ in 1..PERIODS {
        last = period(&mut duplex)?;
        ensure!(last.captured >= 64 && last.queued <= 64, "{last:?}");
        ensure!((0..1_000_000).contains(&(last.woke_ns - last.card_ns)), "{last:?}");
        duplex.advance()?;
    }
    let elapsed_ms = (last.woke_ns - begin.woke_ns) as f64 / 1e6;
    let expected_ms = f64::from(PERIODS - 1) * 64.0 / f64::from(RATE_HZ) * 1e3;
    ensure!((elapsed_ms - expected_ms).abs() < 1.0, "{elapsed_ms} ms instead of {expected_ms} ms");
    Ok(())
}

/// The driver of real cards on an emulated one: both directions are linked, and no period is lost.
pub fn hd_audio_works() -> Result<()> {
    const PERIODS: u32 = 60;
    let config = StreamConfig { periods: 4, ..SLOW };
    let mut duplex = open("hw:2", "hw:2", &config)?;
    ensure!(duplex.is_linked(), "playback and capture of one card are not linked");
    duplex.start()?;
    let begin = Instant::now();
    for _ in 0..PERIODS {
        period(&mut duplex)?;
        duplex.playback().write(0, &[0.5; 1024]);
        duplex.advance()?;
    }
    let (elapsed_s, expected_s) =
        (begin.elapsed().as_secs_f64(), f64::from(PERIODS * config.period_frames) / f64::from(RATE_HZ));
    ensure!((elapsed_s - expected_s).abs() < 0.05, "{elapsed_s} s instead of {expected_s} s");
    Ok(())
}

/// Unsupported configurations are refused with the supported values; unusual ones are accepted; the process using a
/// card is named.
pub fn rejects_unsupported_configurations() -> Result<()> {
    drop(open("hw:Dummy", "hw:Dummy", &StreamConfig { rate_hz: 24_000, ..FAST }).context("24 kHz")?);
    let refused = |config: &StreamConfig| match open("hw:Dummy", "hw:Dummy", config) {
        Err(error) => Ok(error.to_string()),
        Ok(_) => anyhow::bail!("accepted: {config}"),
    };
    let error = refused(&StreamConfig { rate_hz: 96_000, ..FAST })?;
    ensure!(error.contains("does not run at 96000 Hz, only at 8000,") && error.contains("48000"), "{error}");
    let error = refused(&StreamConfig { format: Some(Format::S24In3), ..FAST })?;
    ensure!(error.contains("has no S24_3 samples, only"), "{error}");
    let error = refused(&StreamConfig { period_frames: 1 << 20, ..FAST })?;
    ensure!(error.contains("has no period of 1048576 frames, only"), "{error}");

    let (card, device) = sound::find(&Root::system(), "hw:2")?;
    ensure!(sound::holder(&Root::system(), card, device, true).is_none());
    let _held = open("hw:2", "hw:2", &StreamConfig { period_frames: 256, ..SLOW })?;
    let second = Duplex::open(node("hw:2", Direction::Capture)?, node("hw:2", Direction::Playback)?, &SLOW);
    ensure!(matches!(second, Err(PcmError::Busy(_))), "{second:?}");
    let holder = sound::holder(&Root::system(), card, device, true);
    ensure!(holder == Some(Holder { process: std::process::id(), program: "guest".to_owned() }), "{holder:?}");
    Ok(())
}

fn as_json(status: i32, arguments: &str) -> Result<Value> {
    let output = punctual(arguments)?;
    let text = expect(status, &output)?;
    serde_json::from_str(&text).with_context(|| text)
}

/// `amp devices` lists each device of all cards with its supported settings.
pub fn are_listed() -> Result<()> {
    let devices = as_json(0, "amp devices --json")?;
    let devices = devices.as_array().context("not a list")?;
    let found = |device: &str, direction: &str| {
        devices.iter().find(|entry| entry["device"] == device && entry["direction"] == direction).context("not listed")
    };
    // Two devices of the loopback, one of the dummy card and one of the HD audio, each in both directions.
    ensure!(devices.len() == 8, "{devices:?}");
    let dummy = found("hw:Dummy,0", "playback")?;
    ensure!(dummy["can_map"] == true && dummy["error"].is_null(), "{dummy}");
    ensure!(dummy["rates_hz"].as_array().is_some_and(|rates| rates.contains(&RATE_HZ.into())), "{dummy}");
    found("hw:Loopback,1", "capture").map(drop)
}

/// With a software loopback, the round trip equals the buffers plus the loopback's own delay, the same in each round.
/// Without a loopback, no figure is reported.
pub fn measures_the_loopback_latency() -> Result<()> {
    let command = "latency loop --json --quiet --no-record --rounds 3 --frames 1024 --capture-device hw:Loopback,1 --playback-device hw:Loopback,0";
    for periods in [2, 4] {
        let record = as_json(0, &format!("{command} --periods {periods}"))?;
        let result = &record["sound_loop"];
        let number = |name: &str| result[name].as_u64().with_context(|| format!("no {name} in {result}"));
        let (buffer, samples) = (number("computed_samples")?, number("round_trip_samples")?);
        ensure!(buffer == periods * 1024 && number("xruns")? == 0, "{result}");
        ensure!(number("least_samples")? == number("most_samples")?, "{result}");
        // The loopback's own delay: up to two kernel ticks of 4 ms.
        ensure!((buffer..=buffer + 2 * 192).contains(&samples), "{result}");
    }
    expect(3, &punctual("latency loop --quiet --record none --rounds 1 --frames 256 --device hw:Dummy")?)?;
    let none = recorded("none")?;
    let result = none.sound_loop.as_ref().context("no round trip")?;
    ensure!(result.round_trip_samples.is_none() && result.rounds.len() == 1 && result.xruns == 0, "{result:?}");
    let shown = expect(0, &punctual("show /out/none.punctual.json")?)?;
    ensure!(shown.contains("no signal returned in 1 rounds"), "{shown}");
    Ok(())
}
