//! Sound cards: a loopback in software, a card without hardware that keeps exact time, and the HD audio of an emulated PC.
//!
//! The loopback counts in ticks of the kernel, so its periods are some of those long.

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
const BOTH: u32 = 2;

/// As the kernel's timer and its cards like it: 21 ms a period, for the loopback.
const SLOW: StreamConfig =
    StreamConfig { rate_hz: RATE_HZ, period_frames: 1024, periods: 2, inputs: BOTH, format: None };
/// As a guitarist likes it: 1.3 ms.
const QUICK: StreamConfig = StreamConfig { period_frames: 64, ..SLOW };

fn node(name: &str, direction: Direction) -> Result<Node> {
    let (card, device) = sound::find(&Root::system(), name)?;
    Ok(Node { card, device, direction })
}

fn open(capture: &str, playback: &str, asked: &StreamConfig) -> Result<Duplex> {
    Ok(Duplex::open(node(capture, Direction::Capture)?, node(playback, Direction::Playback)?, asked)?)
}

/// Waits for a period that comes without the card having stopped.
fn period(duplex: &mut Duplex) -> Result<Wake> {
    match duplex.wait()? {
        WaitResult::Period(wake) => Ok(wake),
        WaitResult::Xrun => anyhow::bail!("an xrun that nobody caused"),
    }
}

/// The sample of a noise that never repeats within the test, on the grid of 16-bit samples.
fn noise(frame: usize, channel: u32) -> f32 {
    let mixed = (frame as u32 + 1).wrapping_mul(0x9e37_79b9).wrapping_add(channel.wrapping_mul(0x85eb_ca6b));
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d);
    f32::from((mixed >> 16) as u16 as i16) / 32_768.0
}

/// In every format that the loopback has, what is played comes back to the bit, all of it in order, on both channels.
pub fn what_is_played_comes_back_to_the_bit() -> Result<()> {
    let offer = sys::pcm::offer(node("hw:Loopback,1", Direction::Capture)?)?;
    ensure!(offer.formats.contains(&Format::S16) && offer.formats.contains(&Format::S32), "{offer:?}");
    for format in offer.formats {
        let asked = StreamConfig { format: Some(format), ..SLOW };
        let mut duplex = open("hw:Loopback,1", "hw:Loopback,0", &asked)?;
        ensure!(duplex.capture().format() == format && duplex.capture().channels() == BOTH);
        duplex.start()?;
        let mut heard = [Vec::new(), Vec::new()];
        let mut block = [0.0; 1024];
        for turn in 0..12 {
            period(&mut duplex)?;
            for channel in 0..BOTH {
                duplex.capture().read(channel, &mut block);
                heard[channel as usize].extend_from_slice(&block);
                block = std::array::from_fn(|frame| noise(turn * block.len() + frame, channel));
                duplex.playback().write(channel, &block);
            }
            duplex.advance()?;
        }
        for (channel, heard) in (0..).zip(&heard) {
            let begin = heard.iter().position(|&sample| sample != 0.0).context("nothing came back")?;
            let wrong = heard[begin..].iter().enumerate().find(|&(at, &sample)| sample != noise(at, channel));
            ensure!(wrong.is_none(), "{format}, channel {channel}: {wrong:?} where {begin} frames were silent");
            ensure!(heard.len() - begin > 6 * 1024, "{format}: only {} frames came back", heard.len() - begin);
        }
    }
    Ok(())
}

/// Sleeping past the end of the buffer stops the card, each time and only then, and it goes on afterwards.
pub fn xruns_are_those_that_were_made() -> Result<()> {
    for (capture, playback, asked, linked) in [
        ("hw:Dummy", "hw:Dummy", QUICK, true),
        ("hw:Loopback,1", "hw:Loopback,0", SLOW, true),
        ("hw:Dummy", "hw:Dummy", QUICK, false),
        ("hw:Loopback,1", "hw:Loopback,0", SLOW, false),
    ] {
        let mut duplex = open(capture, playback, &asked)?;
        if !linked {
            duplex.unlink()?;
        }
        ensure!(duplex.is_linked() == linked, "{playback}: linked {}", duplex.is_linked());
        duplex.start()?;
        let buffer = Duration::from_secs_f64(f64::from(asked.buffer_frames()) / f64::from(RATE_HZ));
        let (mut made, mut found) = (0, 0);
        for turn in 1..=100 {
            match duplex.wait()? {
                WaitResult::Period(_) => duplex.advance()?,
                WaitResult::Xrun => {
                    found += 1;
                    duplex.start()?;
                }
            }
            if turn % 20 == 10 {
                thread::sleep(2 * buffer);
                made += 1;
            }
        }
        ensure!(made == 5 && found == made, "{playback}, linked {linked}: {found} xruns where {made} were made");
    }
    Ok(())
}

/// Where the directions are not linked, one can stop while the other still runs: both go on afterwards. The loopback learns of its
/// position a tick late, so among waits of about a buffer there are some after which the other card alone has stopped.
pub fn an_xrun_of_one_direction_is_no_end() -> Result<()> {
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
                    duplex.start().with_context(|| format!("not started anew after {wait:?}"))?;
                }
            }
        }
    }
    ensure!((1..40).contains(&xruns), "{xruns} xruns in 40 waits");
    Ok(())
}

/// A card without hardware wakes us once a period, as exactly as its clock: 64 frames, two periods.
pub fn a_card_paces() -> Result<()> {
    const PERIODS: u32 = 1500;
    let mut duplex = open("hw:Dummy", "hw:Dummy", &QUICK)?;
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
    let took_ms = (last.woke_ns - begin.woke_ns) as f64 / 1e6;
    let due_ms = f64::from(PERIODS - 1) * 64.0 / f64::from(RATE_HZ) * 1e3;
    ensure!((took_ms - due_ms).abs() < 1.0, "{took_ms} ms where {due_ms} ms were due");
    Ok(())
}

/// The driver of real cards, on an emulated one: both directions are linked, and no period is lost.
pub fn hd_audio_plays() -> Result<()> {
    const PERIODS: u32 = 60;
    let asked = StreamConfig { periods: 4, ..SLOW };
    let mut duplex = open("hw:2", "hw:2", &asked)?;
    ensure!(duplex.is_linked(), "playback and capture of one card are not linked");
    duplex.start()?;
    let begin = Instant::now();
    for _ in 0..PERIODS {
        period(&mut duplex)?;
        duplex.playback().write(0, &[0.5; 1024]);
        duplex.advance()?;
    }
    let (took_s, due_s) =
        (begin.elapsed().as_secs_f64(), f64::from(PERIODS * asked.period_frames) / f64::from(RATE_HZ));
    ensure!((took_s - due_s).abs() < 0.05, "{took_s} s where {due_s} s were due");
    Ok(())
}

/// What a card has not is refused with what it has, and nothing else is, however unusual; who holds one is told.
pub fn what_cannot_be_is_refused() -> Result<()> {
    drop(open("hw:Dummy", "hw:Dummy", &StreamConfig { rate_hz: 24_000, ..QUICK }).context("24 kHz")?);
    let refused = |asked: &StreamConfig| match open("hw:Dummy", "hw:Dummy", asked) {
        Err(error) => Ok(error.to_string()),
        Ok(_) => anyhow::bail!("granted: {asked}"),
    };
    let error = refused(&StreamConfig { rate_hz: 96_000, ..QUICK })?;
    ensure!(error.contains("does not run at 96000 Hz, only at 8000,") && error.contains("48000"), "{error}");
    let error = refused(&StreamConfig { format: Some(Format::S24In3), ..QUICK })?;
    ensure!(error.contains("has no S24_3 samples, only"), "{error}");
    let error = refused(&StreamConfig { period_frames: 1 << 20, ..QUICK })?;
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

/// The cards are listed with what they can do.
pub fn are_listed() -> Result<()> {
    let ways = as_json(0, "amp devices --json")?;
    let ways = ways.as_array().context("no list")?;
    let found = |device: &str, direction: &str| {
        ways.iter().find(|way| way["device"] == device && way["direction"] == direction).context("not listed")
    };
    // Two devices of the loopback, one of the dummy, and the HD audio's: each in both directions.
    ensure!(ways.len() == 8, "{ways:?}");
    let dummy = found("hw:Dummy,0", "playback")?;
    ensure!(dummy["can_map"] == true && dummy["error"].is_null(), "{dummy}");
    ensure!(dummy["rates_hz"].as_array().is_some_and(|rates| rates.contains(&RATE_HZ.into())), "{dummy}");
    found("hw:Loopback,1", "capture").map(drop)
}

/// A cable in software: the round trip is that of the buffers and what the loopback adds, the same in every round; without
/// a cable no figure is claimed.
pub fn the_round_trip_is_that_of_the_cable() -> Result<()> {
    let cable = "latency loop --json --quiet --no-record --rounds 3 --frames 1024 --capture hw:Loopback,1 --playback hw:Loopback,0";
    for periods in [2, 4] {
        let record = as_json(0, &format!("{cable} --periods {periods}"))?;
        let told = &record["sound_loop"];
        let number = |name: &str| told[name].as_u64().with_context(|| format!("no {name} in {told}"));
        let (buffer, samples) = (number("computed_samples")?, number("round_trip_samples")?);
        ensure!(buffer == periods * 1024 && number("xruns")? == 0, "{told}");
        ensure!(number("least_samples")? == number("most_samples")?, "{told}");
        // Two ticks of the kernel's timer, by which the loopback counts, at 4 ms each.
        ensure!((buffer..=buffer + 2 * 192).contains(&samples), "{told}");
    }
    expect(3, &punctual("latency loop --quiet --record none --rounds 1 --frames 256 --device hw:Dummy")?)?;
    let none = recorded("none")?;
    let told = none.sound_loop.as_ref().context("no round trip")?;
    ensure!(told.round_trip_samples.is_none() && told.rounds.len() == 1 && told.xruns == 0, "{told:?}");
    let shown = expect(0, &punctual("show /out/none.punctual.json")?)?;
    ensure!(shown.contains("no signal returned in 1 rounds"), "{shown}");
    Ok(())
}
