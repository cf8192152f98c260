//! `amp play` between two ends of the loopback: what is fed to it comes back as its preset makes it.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, Result, ensure};
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::{Pid, Signal, kill_process},
};
use sys::pcm::{Format, StreamConfig};

use super::{SLOW, noise, open, period};
use crate::inside::{expect, start, wait_until};

/// Nothing but a gain.
const PLAIN: &str = "[tone]\non = false\n[limiter]\non = false\n[output]\ndc_block = false\nlevel = 'raw'\n";
const PORT: &str = "/tmp/midi";
/// Periods that are fed.
const TURNS: usize = 40;

const DUMMY: &str = "/sys/bus/platform/drivers/snd_dummy";

/// A card that goes away while it plays ends the program, which says so.
pub fn a_card_that_is_gone_is_told() -> Result<()> {
    fs::write("/tmp/plain.toml", PLAIN)?;
    let played = start("amp play --quiet --device hw:Dummy --frames 256 --preset /tmp/plain.toml")?;
    wait_until("it plays", || Ok(fs::read_to_string("/proc/asound/Dummy/pcm0p/sub0/status")?.contains("RUNNING")))?;
    // Comes back when the program has let go of it.
    fs::write(format!("{DUMMY}/unbind"), "snd_dummy.0")?;
    let output = played.wait_with_output()?;
    fs::write(format!("{DUMMY}/bind"), "snd_dummy.0")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1) && said.contains("the card was removed: plug it in"), "{said}");
    Ok(())
}

/// A signal comes back as it was fed; a program change by MIDI exchanges the preset while it plays; no xrun; it ends with
/// its summary when it is asked to.
pub fn all_goes_through_and_midi_chooses() -> Result<()> {
    fs::create_dir_all("/tmp/presets")?;
    fs::write("/tmp/presets/1.toml", PLAIN)?;
    fs::write("/tmp/presets/2.toml", format!("{PLAIN}gain_db = -20\n"))?;
    if !Path::new(PORT).exists() {
        mknodat(CWD, PORT, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    }
    let card = "--device hw:Loopback,1 --format FLOAT --frames 1024 --periods 3";
    let played = start(&format!("amp play --quiet {card} --presets /tmp/presets --midi {PORT}"))?;
    wait_until("it plays", || Ok(fs::read_to_string("/proc/asound/card0/pcm1p/sub0/status")?.contains("RUNNING")))?;

    let asked = StreamConfig { format: Some(Format::Float), periods: 3, ..SLOW };
    let mut duplex = open("hw:Loopback,0", "hw:Loopback,0", &asked)?;
    duplex.start()?;
    let (mut heard, mut block) = (Vec::new(), [0.0; 1024]);
    for turn in 0..TURNS {
        period(&mut duplex)?;
        duplex.capture().read(0, &mut block);
        heard.extend_from_slice(&block);
        block = std::array::from_fn(|frame| 0.5 * noise(turn * block.len() + frame, 0));
        duplex.playback().write(0, &block);
        duplex.advance()?;
        if turn == TURNS / 2 {
            fs::OpenOptions::new().write(true).open(PORT)?.write_all(&[0xc0, 1])?;
        }
    }
    drop(duplex);
    let pid = i32::try_from(played.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process(pid, Signal::INT)?;
    let told = expect(0, &played.wait_with_output()?)?;
    ensure!(told.contains("xruns    0\n") && told.contains("3072 frames, 64.00 ms"), "{told}");

    let begin = heard.iter().position(|&sample| sample != 0.0).context("nothing came back")?;
    let fed = (0..).map(|frame| 0.5 * noise(frame, 0));
    // Silence tells no gain.
    let both = heard[begin..].iter().zip(fed).filter(|(_, fed)| *fed != 0.0);
    let gains: Vec<f32> = both.map(|(heard, fed)| heard / fed).collect();
    let (first, last) = (gains.first().context("nothing")?, gains.last().context("nothing")?);
    let steady = gains.iter().take_while(|gain| (**gain - 1.0).abs() < 1e-4).count();
    let quiet = gains.iter().rev().take_while(|gain| (**gain - 0.1).abs() < 1e-4).count();
    ensure!(
        steady > 8 * 1024 && quiet > 4 * 1024,
        "{steady} as fed, {quiet} quieter of {}: {first} to {last}",
        gains.len()
    );
    ensure!(gains[steady..gains.len() - quiet].iter().all(|gain| (0.09..=1.01).contains(gain)), "a click in between");
    Ok(())
}
