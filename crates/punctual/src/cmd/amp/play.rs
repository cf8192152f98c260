//! `punctual amp play`.

use std::time::{Duration, Instant};

use ::play::{
    ChainPlayer, PlaySession, PresetBank,
    play_session::{Latency, MUTED, Status, Summary},
    preset_bank::{BankError, file_stem},
};
use record::grouped;
use report::live::{Playing, PlayingView};

use super::{loader, midi::Input, note, rig, to_usage};
use crate::{cli::AmpPlay, cmd::sound, output};

/// Time between two updates.
const INTERVAL: Duration = Duration::from_millis(100);

pub fn run(options: &AmpPlay) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    let mut midi = Input::open(&options.midi)?;
    let bank = bank(options)?;
    bank.unreachable_note().iter().for_each(|text| note(text));
    let ready = sound::open(&options.sound)?;
    let (chain, controls) = bank.chain(ready.rate_hz()).map_err(bank_error)?;
    let engine = sound::start(ready, Box::new(ChainPlayer(chain)))?;
    let mut session = PlaySession::new(bank, controls, engine);
    let mut view = (!options.quiet).then(|| PlayingView::new(options.color.into()));
    let end = options.duration.map(|ns| Instant::now() + Duration::from_nanos(ns));
    while !session.has_ended() && sys::signal::termination_requests() == 0 && end.is_none_or(|end| Instant::now() < end)
    {
        let (events, error) = midi.receive(INTERVAL);
        let notes: Vec<String> = error.into_iter().chain(session.update(&events)).collect();
        if !notes.is_empty() {
            view.iter_mut().for_each(PlayingView::erase);
            notes.iter().for_each(|text| note(text));
        }
        if let Some(view) = &mut view {
            view.update(&playing(session.status()));
        }
    }
    drop(view);
    let summary = session.finish();
    sound::check(summary.end)?;
    print(&summary)?;
    Ok(0)
}

/// The preset of the options first, then the presets of the folder.
fn bank(options: &AmpPlay) -> anyhow::Result<PresetBank> {
    let mut rigs = Vec::new();
    if options.rig.is_given() || options.presets.is_none() {
        let rig = rig::load(&options.rig)?;
        let path = options.rig.preset.as_ref().or(options.rig.model.as_ref()).or(options.rig.cab.as_ref());
        rigs.push((path.map_or_else(String::new, |path| file_stem(path)), rig));
    }
    if let Some(folder) = &options.presets {
        PresetBank::load_folder(folder, &mut rigs, loader()).map_err(bank_error)?;
    }
    Ok(PresetBank::new(rigs, loader()))
}

fn bank_error(error: BankError) -> anyhow::Error {
    let is_choice = error.is_choice();
    to_usage(error, is_choice)
}

fn playing(status: Status) -> Playing {
    let Status { load, meters, latency, .. } = status;
    Playing {
        what: status.preset,
        card: status.device,
        elapsed_ns: nanoseconds(status.elapsed),
        latency: latency.map(|Latency { frames, seconds, .. }| (frames, nanoseconds(Duration::from_secs_f64(seconds)))),
        period_ns: load.period_ns,
        share: status.share,
        most_share: load.recent_max_share.into(),
        xruns: load.xruns,
        peaks: [meters.input.peak, meters.output.peak],
        input_clips: meters.input_clips,
        limiter_gain: meters.limiter_gain,
        gate_is_open: meters.gate_is_open,
        muted: status.muted,
        note: status.pitch.map(|pitch| (pitch.to_string(), pitch.cents)),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

fn print(summary: &Summary) -> anyhow::Result<()> {
    let Summary { device, latency, load, muted, .. } = summary;
    let mean = load.share_since(&::play::Load::default()) * 100.0;
    let max = load.max_share * 100.0;
    output::stdout(|out| {
        writeln!(out, "played   {} periods: {device}", grouped(load.periods))?;
        match latency {
            Some(Latency { frames, resampling_frames, seconds }) => {
                let resampling = match resampling_frames {
                    0 => String::new(),
                    frames => format!(", with {} frames of resampling", grouped(*frames)),
                };
                writeln!(
                    out,
                    "latency  {} frames, {:.2} ms, computed{resampling}; `punctual latency loop` measures the round trip",
                    grouped(*frames),
                    seconds * 1e3
                )?;
            }
            None => writeln!(out, "latency  unknown, because the JACK ports are not connected")?,
        }
        writeln!(
            out,
            "load     {mean:.1} % of a period, at most {max:.0} %; {} periods took longer than a period",
            grouped(load.overruns)
        )?;
        writeln!(out, "xruns    {}", grouped(load.xruns))?;
        for model in muted {
            writeln!(out, "muted    {model}: {MUTED}")?;
        }
        if load.throttled > 0 {
            writeln!(
                out,
                "throttled {} times for 50 ms, because the audio thread never slept: choose a smaller model",
                grouped(load.throttled)
            )?;
        }
        Ok(())
    })
}
