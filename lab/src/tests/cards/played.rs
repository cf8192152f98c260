//! `amp play` between two ends of the loopback: the signal returns as processed by the preset.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, Result, ensure};
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::{Pid, Signal, kill_process},
};
use sys::pcm::{Format, StreamConfig};

use super::{SLOW, noise, open, period};
use crate::inside::{expect, start, wait_until};

/// A preset with gain only.
const PLAIN: &str = "[tone]\non = false\n[limiter]\non = false\n[output]\ndc_block = false\nlevel = 'raw'\n";
const PORT: &str = "/tmp/midi";
/// Number of periods to send.
const PERIODS: usize = 40;

const DUMMY: &str = "/sys/bus/platform/drivers/snd_dummy";

/// If the card is removed while playing, the program ends with a message.
pub fn reports_a_removed_card() -> Result<()> {
    fs::write("/tmp/plain.toml", PLAIN)?;
    let run = start("amp play --quiet --device hw:Dummy --frames 256 --preset /tmp/plain.toml")?;
    wait_until("playing", || Ok(fs::read_to_string("/proc/asound/Dummy/pcm0p/sub0/status")?.contains("RUNNING")))?;
    // The write returns once the program has closed the card.
    fs::write(format!("{DUMMY}/unbind"), "snd_dummy.0")?;
    let output = run.wait_with_output()?;
    fs::write(format!("{DUMMY}/bind"), "snd_dummy.0")?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1) && stderr.contains("the card was removed: plug it in"), "{stderr}");
    Ok(())
}

/// The signal passes unchanged, a MIDI program change switches the preset during playback, there is no xrun, and the
/// program ends with a summary on request.
pub fn passes_audio_and_switches_presets_by_midi() -> Result<()> {
    fs::create_dir_all("/tmp/presets")?;
    fs::write("/tmp/presets/1.toml", PLAIN)?;
    fs::write("/tmp/presets/2.toml", format!("{PLAIN}gain_db = -20\n"))?;
    if !Path::new(PORT).exists() {
        mknodat(CWD, PORT, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    }
    let card = "--device hw:Loopback,1 --sample-format FLOAT --frames 1024 --periods 3";
    let run = start(&format!("amp play --quiet {card} --presets /tmp/presets --midi {PORT}"))?;
    wait_until("playing", || Ok(fs::read_to_string("/proc/asound/card0/pcm1p/sub0/status")?.contains("RUNNING")))?;

    let config = StreamConfig { format: Some(Format::Float), periods: 3, ..SLOW };
    let mut duplex = open("hw:Loopback,0", "hw:Loopback,0", &config)?;
    duplex.start()?;
    let (mut received, mut block) = (Vec::new(), [0.0; 1024]);
    for round in 0..PERIODS {
        period(&mut duplex)?;
        duplex.capture().read(0, &mut block);
        received.extend_from_slice(&block);
        block = std::array::from_fn(|frame| 0.5 * noise(round * block.len() + frame, 0));
        duplex.playback().write(0, &block);
        duplex.advance()?;
        if round == PERIODS / 2 {
            fs::OpenOptions::new().write(true).open(PORT)?.write_all(&[0xc0, 1])?;
        }
    }
    drop(duplex);
    let pid = i32::try_from(run.id()).ok().and_then(Pid::from_raw).context("no process")?;
    kill_process(pid, Signal::INT)?;
    let summary = expect(0, &run.wait_with_output()?)?;
    ensure!(summary.contains("xruns    0\n") && summary.contains("3,072 frames, 64.00 ms"), "{summary}");

    let begin = received.iter().position(|&sample| sample != 0.0).context("no signal was received")?;
    let sent = (0..).map(|frame| 0.5 * noise(frame, 0));
    // Silence has no gain.
    let both = received[begin..].iter().zip(sent).filter(|(_, sent)| *sent != 0.0);
    let gains: Vec<f32> = both.map(|(received, sent)| received / sent).collect();
    let (first, last) = (gains.first().context("no sample")?, gains.last().context("no sample")?);
    let steady = gains.iter().take_while(|gain| (**gain - 1.0).abs() < 1e-4).count();
    let quiet = gains.iter().rev().take_while(|gain| (**gain - 0.1).abs() < 1e-4).count();
    ensure!(
        steady > 8 * 1024 && quiet > 4 * 1024,
        "{steady} unchanged, {quiet} quieter of {}: {first} to {last}",
        gains.len()
    );
    ensure!(
        gains[steady..gains.len() - quiet].iter().all(|gain| (0.09..=1.01).contains(gain)),
        "a click during the switch"
    );
    Ok(())
}
