//! `punctual amp play`: the audio thread plays, this one shows, and does what MIDI asks for.

mod bank;

use std::time::{Duration, Instant};

use amp::{Controls, chain::Meters};
use anyhow::Context;
use machine::{Root, sound::find};
use play::{ChainPlayer, Engine, Load, port::Port};
use report::live::{Playing, PlayingView};

use self::bank::PresetBank;
use crate::{cli::AmpPlay, cmd::sound, output};

/// Why a model plays no more, and what to do.
const MUTED: &str = "it made what is no number; choose another model";

/// Share of a period that leaves room for what else delays the audio thread.
const MAX_SHARE: f64 = 0.9;

/// How often is looked at the audio thread.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub fn run(options: &AmpPlay) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    let mut midi = options.midi.as_deref().map(open_midi).transpose()?;
    let mut bank = PresetBank::read(options)?;
    if let Some(told) = bank.out_of_reach() {
        say!("note: {told}");
    }
    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    let (chain, controls) = bank.chain(rate_hz)?;
    let engine = sound::start(ready, Box::new(ChainPlayer(chain)))?;
    let mut session = Session {
        controls,
        engine,
        rate_hz,
        began: Instant::now(),
        load: Load::default(),
        share: 0.0,
        muted: Vec::new(),
    };
    let mut view = (!options.quiet).then(|| PlayingView::new(options.color.into()));
    let until = options.duration.map(|ns| session.began + Duration::from_nanos(ns));
    while session.engine.end().is_none()
        && sys::signal::termination_requests() == 0
        && until.is_none_or(|until| Instant::now() < until)
    {
        let events = match &mut midi {
            Some(port) => port.events(LOOK_EVERY),
            None => {
                std::thread::sleep(LOOK_EVERY);
                Ok(Vec::new())
            }
        };
        let mut note = |text: String| {
            view.iter_mut().for_each(PlayingView::erase);
            say!("note: {text}");
        };
        let events = events.unwrap_or_else(|error| {
            // Playing goes on.
            note(format!("MIDI stopped: {error}; is it still plugged in?"));
            midi = None;
            Vec::new()
        });
        session.take_load();
        match bank.follow(&events, &mut session.controls) {
            Ok(is_exchange) => {
                let too_much = is_exchange.then(|| too_much_for_two(session.share)).flatten();
                too_much.into_iter().for_each(&mut note);
            }
            Err(error) => note(format!("{error:#}")),
        }
        let meters = session.controls.meters();
        for model in session.take_muted(&meters, &bank) {
            note(format!("{model} is muted: {MUTED}"));
        }
        session.engine.report_delay(session.controls.delay());
        if let Some(view) = &mut view {
            view.update(&session.look(&meters, &bank));
        }
    }
    drop(view);
    session.end()
}

/// A port by its name, `hw:CARD,DEVICE`, or a file or pipe by its path.
fn open_midi(name: &str) -> anyhow::Result<Port> {
    let path = match name.starts_with("hw:") {
        true => {
            let (card, device) = find(&Root::system(), name)?;
            format!("/dev/snd/midiC{card}D{device}")
        }
        false => name.to_owned(),
    };
    Port::open(path.as_ref()).with_context(|| format!("cannot read MIDI from {path}: `ls /dev/snd/midi*` lists ports"))
}

/// What to expect, in words, where two models play at a time and one of them takes this share of a period.
fn too_much_for_two(share: f64) -> Option<String> {
    let both = 2.0 * share;
    let told = || {
        let percent = both * 100.0;
        format!(
            "both models play for 30 ms, which takes about {percent:.0} % of a period: expect xruns, or choose smaller models"
        )
    };
    (both > MAX_SHARE).then(told)
}

/// What is on while playing.
struct Session {
    controls: Controls,
    engine: Engine,
    rate_hz: u32,
    began: Instant,
    /// As it was last looked at, and the mean share of a period that computing had taken since the time before.
    load: Load,
    share: f64,
    /// The models that were muted, each once.
    muted: Vec<String>,
}

impl Session {
    fn latency_frames(&self) -> u64 {
        u64::from(self.engine.latency_frames()) + self.controls.delay() as u64
    }

    fn ms(&self, frames: u64) -> f64 {
        frames as f64 / f64::from(self.rate_hz) * 1e3
    }

    fn take_load(&mut self) {
        let load = self.engine.load();
        // Where MIDI comes quickly, nothing may have been played in between.
        if load.played_ns > self.load.played_ns {
            self.share = load.share_since(&self.load);
        }
        self.load = load;
    }

    /// The models that are muted and were not before.
    fn take_muted(&mut self, meters: &Meters, bank: &PresetBank) -> Vec<String> {
        if self.controls.collect() > 0 {
            // It may be one that is just being exchanged.
            return Vec::new();
        }
        let muted = meters.muted.iter().enumerate().filter(|(_, is_muted)| **is_muted);
        let new: Vec<String> =
            muted.map(|(place, _)| bank.model(place)).filter(|it| !self.muted.contains(it)).collect();
        self.muted.extend_from_slice(&new);
        new
    }

    fn look(&mut self, meters: &Meters, bank: &PresetBank) -> Playing {
        let Self { load, share, .. } = *self;
        let note = self.controls.tune().map(|pitch| (pitch.to_string(), pitch.cents));
        let muted = meters.muted.iter().position(|is_muted| *is_muted).map(|place| bank.model(place));
        Playing {
            what: bank.playing(),
            card: self.engine.describe(),
            elapsed_ns: self.began.elapsed().as_nanos() as u64,
            latency_ns: (self.ms(self.latency_frames()) * 1e6) as u64,
            latency_frames: self.latency_frames(),
            period_ns: load.period_ns,
            share,
            most_share: load.recent_max_share.into(),
            xruns: load.xruns,
            peaks: [meters.input.peak, meters.output.peak],
            input_clips: meters.input_clips,
            limiter_gain: meters.limiter_gain,
            gate_is_open: meters.gate_is_open,
            muted,
            note,
        }
    }

    /// Ends the audio thread, and says how it was.
    fn end(self) -> anyhow::Result<u8> {
        let latency = self.latency_frames();
        let (ms, card) = (self.ms(latency), self.engine.describe());
        let Self { engine, muted, .. } = self;
        let (load, end) = engine.stop();
        sound::check(end)?;
        let mean = load.share_since(&Load::default()) * 100.0;
        let most = load.max_share * 100.0;
        output::stdout(|out| {
            writeln!(out, "played   {} periods: {card}", load.periods)?;
            writeln!(
                out,
                "latency  {latency} frames, {ms:.2} ms, computed; `punctual latency loop` measures the true one"
            )?;
            writeln!(
                out,
                "load     {mean:.1} % of a period, at most {most:.0} %; {} periods took longer",
                load.overruns
            )?;
            writeln!(out, "xruns    {}", load.xruns)?;
            for model in &muted {
                writeln!(out, "muted    {model}: {MUTED}")?;
            }
            if load.throttled > 0 {
                writeln!(
                    out,
                    "rests    {} of 50 ms, because the audio thread never slept: choose a smaller model",
                    load.throttled
                )?;
            }
            Ok(())
        })?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_models_that_fill_a_period_are_told() {
        assert_eq!(too_much_for_two(0.4), None);
        let told = too_much_for_two(0.6).unwrap();
        assert!(told.contains("takes about 120 % of a period"), "{told}");
    }
}
