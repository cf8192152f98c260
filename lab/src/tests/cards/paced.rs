//! `measure audio` paced by a card: every period is counted, and exactly the provoked xruns are detected, paced by the
//! card and by the clock.

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Audio, Record, Series};
use rustix::process::{Pid, Signal, kill_process};

use crate::inside::{expect, punctual, recorded, start, wait_until};

/// A model that the emulated CPU can process in time.
const RIG: &str = "--model builtin:nano --cab none --blame=off";
/// Number of times a process is stopped for longer than the whole buffer of 10.7 ms.
const STOPS: u64 = 10;
const STOP: Duration = Duration::from_millis(30);

fn audio_of(record: &Record) -> Result<(&Series, &Audio)> {
    let series = record.series.first().context("no series")?;
    Ok((series, series.kind.audio().context("a series of audio")?))
}

/// Runs 3 s on each card: all periods are played, none is lost, and the card's rate matches the clock.
pub fn counts_every_period() -> Result<()> {
    for (name, device, frames, periods, expected) in [
        ("dummy", "hw:Dummy", 256, 2, 562.5),
        ("hda", "hw:2", 1024, 4, 140.625),
        ("loopback", "hw:Loopback,1", 1024, 3, 140.625),
    ] {
        let card = format!("--device {device} --frames {frames} --periods {periods}");
        expect(0, &punctual(&format!("measure audio --quiet --record {name} --duration 3s {card} {RIG}"))?)?;
        let record = recorded(name)?;
        let (series, audio) = audio_of(&record)?;
        let card = audio.card.as_ref().context("no card")?;
        println!("{device}: {} played, {:?} ns late, {card:?}", audio.played, (series.min_ns, series.max_ns));
        ensure!((audio.played as f64 - expected).abs() <= 1.0, "{device}: {} periods in 3 s", audio.played);
        ensure!((audio.xruns, audio.lost, audio.silent) == (0, 0, 0), "{device}: {} xruns", audio.xruns);
        ensure!(audio.pacer == device && card.capture == device, "{device}: {card:?}");
        ensure!(series.min_ns.is_some_and(|ns| ns >= 0), "{device}: {:?}", series.min_ns);
        let rate_ppm = card.rate_ppm.context("no rate")?;
        ensure!(record.validity.valid && rate_ppm.abs() < 1000.0, "{device}: {:?}", record.validity);
    }
    Ok(())
}

/// Stopping the process for longer than the buffer causes exactly one xrun each time, with the card and with the clock.
pub fn detects_exactly_the_provoked_xruns() -> Result<()> {
    for (name, device) in [("by-clock", "clock"), ("by-card", "hw:Dummy")] {
        let run =
            start(&format!("measure audio --quiet --record {name} --endless --frames 256 --device {device} {RIG}"))?;
        wait_until("periods are played", || {
            let record = recorded(name)?;
            Ok(audio_of(&record)?.1.played > 0)
        })?;
        let pid = i32::try_from(run.id()).ok().and_then(Pid::from_raw).context("no process")?;
        for _ in 0..STOPS {
            kill_process(pid, Signal::STOP)?;
            thread::sleep(STOP);
            kill_process(pid, Signal::CONT)?;
            thread::sleep(8 * STOP);
        }
        kill_process(pid, Signal::INT)?;
        expect(0, &run.wait_with_output()?)?;
        let record = recorded(name)?;
        let (_, audio) = audio_of(&record)?;
        println!("{device}: {} xruns, {} lost of {}", audio.xruns, audio.lost, audio.due());
        ensure!(audio.xruns == STOPS, "{device}: {} xruns instead of {STOPS}", audio.xruns);
        // 30 ms are 5.6 periods.
        ensure!((4 * STOPS..=6 * STOPS).contains(&audio.lost), "{device}: {} lost", audio.lost);
    }
    Ok(())
}

/// The requested format and input are used according to the kernel, or refused with the alternatives.
pub fn uses_the_requested_format_and_input() -> Result<()> {
    let card = "--device hw:Loopback,1 --frames 1024 --periods 3 --sample-format S16 --input 3";
    let run = start(&format!("measure audio --quiet --record chosen --endless {card} {RIG}"))?;
    wait_until("periods are played", || {
        let record = recorded("chosen")?;
        Ok(audio_of(&record)?.1.played > 0)
    })?;
    let captured = fs::read_to_string("/proc/asound/Loopback/pcm1c/sub0/hw_params")?;
    let played = fs::read_to_string("/proc/asound/Loopback/pcm1p/sub0/hw_params")?;
    let pid = i32::try_from(run.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process(pid, Signal::INT)?;
    expect(0, &run.wait_with_output()?)?;
    ensure!(captured.contains("format: S16_LE") && captured.contains("channels: 3"), "{captured}");
    ensure!(played.contains("format: S16_LE") && played.contains("channels: 2"), "{played}");
    let record = recorded("chosen")?;
    let card = audio_of(&record)?.1.card.clone().context("no card")?;
    println!("{card:?}");
    ensure!((&*card.format, card.asked_format.as_deref(), card.input) == ("S16", Some("S16"), Some(3)), "{card:?}");

    for (options, expected) in [
        ("--device hw:Dummy --sample-format S24_3", "has no S24_3 samples, only"),
        (
            "--device hw:Loopback,1 --frames 1024 --input 64",
            "hw:Loopback,1 has only 32 inputs: choose one of them, e.g. --input 1",
        ),
    ] {
        let refused = punctual(&format!("measure audio --quiet --no-record {options} {RIG}"))?;
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(refused.status.code() == Some(1) && stderr.contains(expected), "{options}: {stderr}");
    }
    Ok(())
}

/// The search tries the buffer sizes of the card, on the card.
pub fn finds_the_smallest_buffer() -> Result<()> {
    let search = "measure audio --quiet --record search --device hw:Dummy --find-buffer=256..1024 --duration 500ms";
    expect(0, &punctual(&format!("{search} {RIG}"))?)?;
    let record = recorded("search")?;
    let found = record.buffer.as_ref().context("no search")?;
    ensure!(found.held == Some(256) && found.candidates == [256, 512, 1024], "{found:?}");
    ensure!(record.series.iter().all(|series| series.kind.audio().is_some_and(|audio| audio.pacer == "hw:Dummy")));
    let refused = punctual(&format!("measure audio --quiet --no-record --device hw:Dummy --rate 96000 {RIG}"))?;
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && stderr.contains("does not run at 96000 Hz, only at 8000,"), "{stderr}");
    Ok(())
}
