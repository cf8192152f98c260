//! The whole way from a guitar to a loudspeaker, as one audio thread plays it and another controls it.
//!
//! In order: the input is looked at (level, tuner, key of the gate) and amplified; one model, two in series, or two side
//! by side; the gate; tone; cabinet; offsets taken away; output gain; limiter. All between the models and the limiter
//! is linear, so the gain that brings a model to its level stands behind the model itself.
//!
//! What is switched off goes on computing: what a block costs does not change, and what is switched on again has heard
//! all. With parameters at rest the output does not depend on how the signal is cut into calls, to the bit.

mod amplifier;
mod controls;
mod crossfade;
mod dc;
mod delay;
mod exchange;
mod gains;
mod gate;
mod limiter;
mod meters;
mod parameter;
mod settings;
mod smooth;
mod stages;
mod tone;

pub use self::{
    amplifier::{Amplifier, AmplifierError, LOUDNESS_DB, Levels},
    controls::{ControlError, Controls},
    exchange::Exchange,
    meters::{Meters, SignalLevel},
    parameter::{Info, Parameter, ParameterError, ValueKind},
    settings::{OutputLevel, Settings},
};
use self::{
    amplifier::{Place, delay_of, gains_db},
    controls::{AudioEnds, Command, Retired},
    crossfade::Crossfade,
    dc::DcBlock,
    delay::Delay,
    gains::Gains,
    gate::Gate,
    limiter::Limiter,
    meters::Metering,
    stages::BLOCK,
    tone::Tone,
};
pub(crate) use self::{exchange::Change, parameter::nearest};
use crate::{cabinet::Cabinet, simd::flush_denormals};

/// What a chain plays, at its rate.
#[derive(Debug, Default)]
pub struct Parts {
    /// One model, or two.
    pub models: [Option<Amplifier>; 2],
    /// The cabinet.
    pub cabinet: Option<Cabinet>,
}

/// The chain: the audio thread's side.
#[derive(Debug)]
pub struct Chain {
    settings: Settings,
    ends: AudioEnds,
    metering: Metering,
    models: [Crossfade<Amplifier>; 2],
    /// The input beside the models, as late as they are.
    bypass: Delay,
    cabinet: Crossfade<Cabinet>,
    gate: Gate,
    tone: Tone,
    dc: [DcBlock; 2],
    limiter: Limiter,
    gains: Gains,
}

/// One goes to the audio thread, the other stays elsewhere.
const _: () = {
    const fn may_go_to_another_thread<T: Send>() {}
    may_go_to_another_thread::<Chain>();
    may_go_to_another_thread::<Controls>();
};

impl Chain {
    /// A chain that plays at this rate, and its controls. Its models begin as after long silence; where offsets are taken away, so does
    /// all behind them, which would else begin with the step from nothing to the models' offset. This plays half a second and as
    /// long as the cabinet.
    #[must_use]
    pub fn new(rate_hz: u32, settings: &Settings, parts: Parts) -> (Self, Controls) {
        let rate = rate_hz as f32;
        let (metering, reading) = meters::meters(rate);
        let delays = parts.models.each_ref().map(|model| model.as_ref().map_or(0, Amplifier::delay));
        let (controls, ends) = Controls::new(rate_hz, settings.clone(), delays, reading);
        let mut chain = Self {
            settings: settings.clone(),
            ends,
            metering,
            models: parts.models.map(|model| Crossfade::new(model.map(Box::new), rate)),
            bypass: Delay::new(rate),
            cabinet: Crossfade::new(parts.cabinet.map(Box::new), rate),
            gate: Gate::new(rate),
            tone: Tone::new(rate, Self::tone_of(settings)),
            dc: [DcBlock::new(rate), DcBlock::new(rate)],
            limiter: Limiter::new(rate),
            gains: Gains::new(rate),
        };
        chain.apply_settings(true);
        if settings.is_on(Parameter::DcBlockOn) {
            chain.settle(rate_hz as usize / 2);
        }
        (chain, controls)
    }

    /// Samples by which the output is late: 0 unless a model is resampled. Tells what plays in the end, when something
    /// is being exchanged.
    #[must_use]
    pub fn delay(&self) -> usize {
        delay_of(self.delays(), &self.settings)
    }

    fn delays(&self) -> [usize; 2] {
        self.models.each_ref().map(|model| model.latest().map_or(0, Amplifier::delay))
    }

    /// Plays `input`. Neither allocates, locks nor calls the system, whatever was told it meanwhile.
    ///
    /// # Panics
    /// When the three are of different lengths.
    pub fn process(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        assert!(input.len() == left.len() && input.len() == right.len(), "a chain makes as many samples as it gets");
        let _flushed = flush_denormals();
        self.take_changes();
        for (at, input) in input.chunks(BLOCK).enumerate() {
            let now = at * BLOCK..at * BLOCK + input.len();
            self.process_block(input, &mut left[now.clone()], &mut right[now]);
        }
        let muted = self.models.each_mut().map(|model| model.each().any(|model| model.is_muted()));
        let gate_is_open = self.gate.is_open() || !self.settings.is_on(Parameter::GateOn);
        // Taken in any case: switched on again, it must not tell of before.
        let least = self.limiter.take_least();
        let limiter_gain = if self.settings.is_on(Parameter::LimiterOn) { least } else { 1.0 };
        self.metering.publish(gate_is_open, limiter_gain, muted);
    }

    fn take_changes(&mut self) {
        let mut any = false;
        while let Ok(command) = self.ends.changes.pop() {
            any = true;
            let unplayed = match command {
                Command::Set(parameter, value) => {
                    // The other side has checked it.
                    let _ = self.settings.set(parameter, value);
                    None
                }
                Command::Amplifier(place, mut model) => {
                    if let Some(model) = &mut model {
                        model.set_gains(gains_db(model.levels(), &self.settings, self.standing(place)), true);
                    }
                    self.models[place].offer(model).map(Retired::Amplifier)
                }
                Command::Cabinet(cabinet) => self.cabinet.offer(cabinet).map(Retired::Cabinet),
            };
            self.ends.give_back(unplayed);
        }
        if any {
            self.apply_settings(false);
        }
    }

    fn tone_of(settings: &Settings) -> [f32; 3] {
        [Parameter::Bass, Parameter::Middle, Parameter::Treble].map(|band| settings.get(band))
    }

    /// Brings all to what is set: at once, or smoothly.
    fn apply_settings(&mut self, at_once: bool) {
        let second = match (self.settings.is_parallel(), self.models.each_ref().map(|model| model.latest().is_some())) {
            (true, [true, true]) => self.settings.get(Parameter::Mix),
            (true, [true, false]) => 0.0,
            // What is not there lets all through, and behind one another the second place is the end.
            _ => 1.0,
        };
        let settings = &self.settings;
        self.gains.apply_settings(settings, second, at_once);
        self.gate.set(settings.get(Parameter::GateThreshold), settings.get(Parameter::GateRelease));
        self.tone.set(Self::tone_of(settings));
        self.set_model_gains(at_once);
        self.align_latency(at_once);
    }

    /// Side by side, the model that is sooner waits for the other; the input beside them always does.
    fn align_latency(&mut self, at_once: bool) {
        self.bypass.set(self.delay(), at_once);
        let late = if self.settings.is_parallel() { self.delay() } else { 0 };
        self.models.iter_mut().flat_map(Crossfade::each).for_each(|model| model.align_latency(late, at_once));
    }

    /// How the model at a place stands to the other.
    fn standing(&self, place: usize) -> Place {
        let series = !self.settings.is_parallel();
        let levels = |place: usize| self.models[place].latest().map(Amplifier::levels);
        Place { behind: levels(0).filter(|_| place == 1 && series), feeds: place == 0 && series && levels(1).is_some() }
    }

    /// Brings the models to their levels.
    fn set_model_gains(&mut self, at_once: bool) {
        for place in 0..2 {
            let standing = self.standing(place);
            for model in self.models[place].each() {
                model.set_gains(gains_db(model.levels(), &self.settings, standing), at_once);
            }
        }
    }
}
