//! A preset bank that plays: carries out MIDI messages, and observes load, levels and muted models.

use std::time::{Duration, Instant};

use amp::{Controls, Meters, tuner::Pitch};

use crate::{End, Engine, Load, midi::Event, preset_bank::PresetBank};

/// Why a model was muted, and what to do.
pub const MUTED: &str = "its output was NaN or infinite; choose another model";

/// Largest expected load without a warning, as a fraction of a period. The rest is for delays of the audio thread.
const MAX_SHARE: f64 = 0.9;

/// A preset bank that plays.
#[derive(Debug)]
pub struct PlaySession {
    bank: PresetBank,
    controls: Controls,
    engine: Engine,
    began: Instant,
    load: Load,
    /// Mean load between the last two readings, as a fraction of a period.
    share: f64,
    meters: Meters,
    /// The models that were muted so far.
    muted: Vec<String>,
}

/// A snapshot of a session.
#[derive(Debug, Clone)]
pub struct Status {
    /// The preset that plays.
    pub preset: String,
    /// The card or JACK server with its settings.
    pub device: String,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// Latency from input to output; `None` if the JACK ports are not connected.
    pub latency: Option<Latency>,
    /// Load; the recent maximum is the one since the last snapshot.
    pub load: Load,
    /// Mean load since the last snapshot, as a fraction of a period.
    pub share: f64,
    /// Meters.
    pub meters: Meters,
    /// The model that is muted now.
    pub muted: Option<String>,
    /// The note that is played.
    pub pitch: Option<Pitch>,
}

/// Latency from input to output: of buffers, and of the chain itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// In frames.
    pub frames: u64,
    /// The frames of these that the resampling of models takes.
    pub resampling_frames: u64,
    /// In seconds.
    pub seconds: f64,
}

/// The result of a session that has ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The card or JACK server with its settings.
    pub device: String,
    /// Latency from input to output; `None` if the JACK ports are not connected.
    pub latency: Option<Latency>,
    /// Total load.
    pub load: Load,
    /// Why it ended.
    pub end: End,
    /// The models that were muted.
    pub muted: Vec<String>,
}

impl PlaySession {
    /// A session of a bank whose chain plays on `engine`.
    #[must_use]
    pub fn new(bank: PresetBank, controls: Controls, engine: Engine) -> Self {
        Self {
            bank,
            meters: controls.meters(),
            controls,
            engine,
            began: Instant::now(),
            load: Load::default(),
            share: 0.0,
            muted: Vec::new(),
        }
    }

    /// True if the audio thread has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.engine.end().is_some()
    }

    /// Carries out MIDI messages and takes new readings; returns notes for the user. Must be called several times a
    /// second.
    pub fn update(&mut self, events: &[Event]) -> Vec<String> {
        self.read_load();
        let mut notes = Vec::new();
        match self.bank.follow(events, &mut self.controls) {
            Ok(true) => notes.extend(crossfade_warning(self.share)),
            Ok(false) => {}
            Err(error) => notes.push(error.to_string()),
        }
        self.meters = self.controls.meters();
        notes.extend(self.newly_muted().into_iter().map(|model| format!("{model} is muted: {MUTED}")));
        self.engine.set_delay(self.controls.delay());
        notes
    }

    /// A snapshot of the last readings.
    pub fn status(&mut self) -> Status {
        let muted = self.meters.muted.iter().position(|is_muted| *is_muted);
        Status {
            preset: self.bank.describe(),
            device: self.engine.describe(),
            elapsed: self.began.elapsed(),
            latency: self.latency(),
            load: self.load,
            share: self.share,
            meters: self.meters,
            muted: muted.map(|index| self.bank.model_name(index)),
            pitch: self.controls.tune(),
        }
    }

    /// Ends the audio thread.
    #[must_use]
    pub fn finish(self) -> Summary {
        let (device, latency) = (self.engine.describe(), self.latency());
        let (load, end) = self.engine.stop();
        Summary { device, latency, load, end, muted: self.muted }
    }

    fn latency(&self) -> Option<Latency> {
        let resampling_frames = self.controls.delay() as u64;
        let frames = u64::from(self.engine.latency_frames()?) + resampling_frames;
        Some(Latency { frames, resampling_frames, seconds: frames as f64 / f64::from(self.controls.rate_hz()) })
    }

    fn read_load(&mut self) {
        let load = self.engine.load();
        // If MIDI messages come quickly, no period may have been played since the last reading.
        if load.played_ns > self.load.played_ns {
            self.share = load.share_since(&self.load);
        }
        self.load = load;
    }

    /// The models that were muted since the last call.
    fn newly_muted(&mut self) -> Vec<String> {
        if self.controls.collect() > 0 {
            // The meters may still show a model that is being exchanged.
            return Vec::new();
        }
        let muted = self.meters.muted.iter().enumerate().filter(|(_, is_muted)| **is_muted);
        let names = muted.map(|(index, _)| self.bank.model_name(index));
        let new: Vec<String> = names.filter(|name| !self.muted.contains(name)).collect();
        self.muted.extend_from_slice(&new);
        new
    }
}

/// A warning if two models that play at the same time are too much, given the load of one of them.
fn crossfade_warning(share: f64) -> Option<String> {
    let both = 2.0 * share;
    let warning = || {
        let percent = both * 100.0;
        format!(
            "both models play for 30 ms, which takes about {percent:.0} % of a period: expect xruns, or choose smaller models"
        )
    };
    (both > MAX_SHARE).then(warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_if_two_models_take_too_long() {
        assert_eq!(crossfade_warning(0.4), None);
        let warning = crossfade_warning(0.6).unwrap();
        assert!(warning.contains("takes about 120 % of a period"), "{warning}");
    }
}
