//! `measure audio` at the pace of a card: every period is counted, and xruns are those that were made, by the card's count and
//! by the clock's.

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use record::{Audio, Record, Series};
use rustix::process::{Pid, Signal, kill_process};

use crate::inside::{expect, punctual, recorded, start, wait_until};

/// A model that this emulated CPU plays in good time.
const RIG: &str = "--model builtin:nano --cab none --blame=off";
/// How often a process is stopped, for longer than the whole buffer, 10.7 ms.
const STOPS: u64 = 10;
const STOP: Duration = Duration::from_millis(30);

fn audio(record: &Record) -> Result<(&Series, &Audio)> {
    let series = record.series.first().context("no series")?;
    Ok((series, series.kind.audio().context("a series of audio")?))
}

/// 3 s on each card: all periods are played, none is lost, and the card's rate is that of the clock.
pub fn every_period_is_counted() -> Result<()> {
    for (name, device, frames, periods, due) in [
        ("dummy", "hw:Dummy", 256, 2, 562.5),
        ("hda", "hw:2", 1024, 4, 140.625),
        ("loopback", "hw:Loopback,1", 1024, 3, 140.625),
    ] {
        let card = format!("--device {device} --frames {frames} --periods {periods}");
        expect(0, &punctual(&format!("measure audio --quiet --record {name} --duration 3s {card} {RIG}"))?)?;
        let record = recorded(name)?;
        let (series, told) = audio(&record)?;
        let card = told.card.as_ref().context("no card")?;
        println!("{device}: {} played, {:?} ns late, {card:?}", told.played, (series.min_ns, series.max_ns));
        ensure!((told.played as f64 - due).abs() <= 1.0, "{device}: {} periods in 3 s", told.played);
        ensure!((told.xruns, told.lost, told.silent) == (0, 0, 0), "{device}: {} xruns", told.xruns);
        ensure!(told.pacer == device && card.capture == device, "{device}: {card:?}");
        ensure!(series.min_ns.is_some_and(|ns| ns >= 0), "{device}: {:?}", series.min_ns);
        let rate_ppm = card.rate_ppm.context("no rate")?;
        ensure!(record.validity.valid && rate_ppm.abs() < 1000.0, "{device}: {:?}", record.validity);
    }
    Ok(())
}

/// A process that is stopped for longer than the buffer has one xrun for it, each time and only then, with the card and with
/// the clock.
pub fn xruns_are_those_that_were_made() -> Result<()> {
    for (name, device) in [("by-clock", "clock"), ("by-card", "hw:Dummy")] {
        let run =
            start(&format!("measure audio --quiet --record {name} --endless --frames 256 --device {device} {RIG}"))?;
        wait_until("periods are played", || {
            let record = recorded(name)?;
            Ok(audio(&record)?.1.played > 0)
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
        let (_, told) = audio(&record)?;
        println!("{device}: {} xruns, {} lost of {}", told.xruns, told.lost, told.due());
        ensure!(told.xruns == STOPS, "{device}: {} xruns where {STOPS} were made", told.xruns);
        // 30 ms are 5.6 periods.
        ensure!((4 * STOPS..=6 * STOPS).contains(&told.lost), "{device}: {} lost", told.lost);
    }
    Ok(())
}

/// Format and input are those asked for, as the kernel tells while it plays, or refused with what there is.
pub fn format_and_input_are_those_asked_for() -> Result<()> {
    let card = "--device hw:Loopback,1 --frames 1024 --periods 3 --format S16 --input 3";
    let run = start(&format!("measure audio --quiet --record chosen --endless {card} {RIG}"))?;
    wait_until("periods are played", || {
        let record = recorded("chosen")?;
        Ok(audio(&record)?.1.played > 0)
    })?;
    let set = fs::read_to_string("/proc/asound/Loopback/pcm1c/sub0/hw_params")?;
    let played = fs::read_to_string("/proc/asound/Loopback/pcm1p/sub0/hw_params")?;
    let pid = i32::try_from(run.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process(pid, Signal::INT)?;
    expect(0, &run.wait_with_output()?)?;
    ensure!(set.contains("format: S16_LE") && set.contains("channels: 3"), "{set}");
    ensure!(played.contains("format: S16_LE") && played.contains("channels: 2"), "{played}");
    let record = recorded("chosen")?;
    let card = audio(&record)?.1.card.clone().context("no card")?;
    println!("{card:?}");
    ensure!((&*card.format, card.asked_format.as_deref(), card.input) == ("S16", Some("S16"), Some(3)), "{card:?}");

    for (asked, told) in [
        ("--device hw:Dummy --format S24_3", "has no S24_3 samples, only"),
        (
            "--device hw:Loopback,1 --frames 1024 --input 64",
            "hw:Loopback,1 has only 32 inputs: choose one of them, e.g. --input 1",
        ),
    ] {
        let refused = punctual(&format!("measure audio --quiet --no-record {asked} {RIG}"))?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(refused.status.code() == Some(1) && said.contains(told), "{asked}: {said}");
    }
    Ok(())
}

/// A search tries the sizes that the card has, on the card.
pub fn the_smallest_buffer_is_searched_for() -> Result<()> {
    let search = "measure audio --quiet --record search --device hw:Dummy --find-buffer=256..1024 --duration 500ms";
    expect(0, &punctual(&format!("{search} {RIG}"))?)?;
    let record = recorded("search")?;
    let found = record.buffer.as_ref().context("no search")?;
    ensure!(found.held == Some(256) && found.candidates == [256, 512, 1024], "{found:?}");
    ensure!(record.series.iter().all(|series| series.kind.audio().is_some_and(|audio| audio.pacer == "hw:Dummy")));
    let refused = punctual(&format!("measure audio --quiet --no-record --device hw:Dummy --rate 96000 {RIG}"))?;
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && told.contains("does not run at 96000 Hz, only at 8000,"), "{told}");
    Ok(())
}
