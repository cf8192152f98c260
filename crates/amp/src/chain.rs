//! The signal chain from the guitar to the loudspeaker: one audio thread plays it, another thread controls it.
//!
//! The stages in order: measuring the input (level, tuner, key signal of the gate) and input gain; drive; one model, or
//! two in series or in parallel; gate; tone; cabinet; removal of offsets; delay; reverb;
//! reverb by impulse response; output gain; limiter. Everything between the models
//! and the limiter is linear, so the gain that normalises a model's level can be applied directly after the model.
//!
//! Stages that are switched off continue to compute: the time per block stays the same, and a stage that is switched on
//! again has processed the whole signal. Drive, delay and reverb are an exception (`stages::Effect`): few players need
//! all of them, and old echoes would be wrong. While no parameter changes, the output bits do not depend on how the
//! signal is divided into calls.

mod amplifier;
mod controls;
mod crossfade;
mod dc;
mod delay;
mod drive;
mod echo;
mod exchange;
mod gains;
mod gate;
mod limiter;
mod meters;
mod one_pole;
mod oversampling;
mod parameter;
mod reverb;
mod settings;
mod smooth;
mod stages;
mod tap;
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
    amplifier::{SeriesPosition, delay_of, gains_db},
    controls::{AudioQueues, Command, Retired},
    crossfade::Crossfade,
    dc::DcBlock,
    delay::Delay,
    drive::Drive,
    echo::Echo,
    gains::Gains,
    gate::Gate,
    limiter::Limiter,
    meters::MeterWriter,
    reverb::Reverb,
    stages::{BLOCK, Effect},
    tone::Tone,
};
pub(crate) use self::{exchange::Change, parameter::nearest};
use crate::{cabinet::Cabinet, simd::flush_denormals};

/// The models and the impulse responses of a chain, for its sample rate.
#[derive(Debug, Default)]
pub struct Parts {
    /// The first and the second model.
    pub models: [Option<Amplifier>; 2],
    /// The cabinet.
    pub cabinet: Option<Cabinet>,
    /// The response of the reverb.
    pub reverb_ir: Option<Cabinet>,
}

/// The signal chain; it belongs to the audio thread.
#[derive(Debug)]
pub struct Chain {
    settings: Settings,
    queues: AudioQueues,
    metering: MeterWriter,
    drive: Drive,
    models: [Crossfade<Amplifier>; 2],
    /// The dry input with the delay of the models, for switching them off.
    bypass: Delay,
    cabinet: Crossfade<Cabinet>,
    gate: Gate,
    tone: Tone,
    dc: [DcBlock; 2],
    echo: Echo,
    reverb: Reverb,
    reverb_ir: Crossfade<Cabinet>,
    limiter: Limiter,
    gains: Gains,
}

/// The chain is sent to the audio thread, the controls to any thread.
const _: () = {
    const fn may_go_to_another_thread<T: Send>() {}
    may_go_to_another_thread::<Chain>();
    may_go_to_another_thread::<Controls>();
};

impl Chain {
    /// A chain for a sample rate, and its controls. The models start in the state after long silence. If offsets are
    /// removed, so do all stages after the models, which would otherwise start with a step to the models' offset. This
    /// processes half a second plus the length of the cabinet.
    #[must_use]
    pub fn new(rate_hz: u32, settings: &Settings, parts: Parts) -> (Self, Controls) {
        let rate = rate_hz as f32;
        let (metering, reading) = meters::meters(rate);
        let delays = parts.models.each_ref().map(|model| model.as_ref().map_or(0, Amplifier::delay));
        let (controls, queues) = Controls::new(rate_hz, settings.clone(), delays, reading);
        let mut chain = Self {
            settings: settings.clone(),
            queues,
            metering,
            drive: Drive::new(rate),
            models: parts.models.map(|model| Crossfade::new(model.map(Box::new), rate)),
            bypass: Delay::new(rate),
            cabinet: Crossfade::new(parts.cabinet.map(Box::new), rate),
            gate: Gate::new(rate),
            tone: Tone::new(rate, Self::tone_of(settings)),
            dc: [DcBlock::new(rate), DcBlock::new(rate)],
            echo: Echo::new(rate),
            reverb: Reverb::new(rate),
            reverb_ir: Crossfade::new(parts.reverb_ir.map(Box::new), rate),
            limiter: Limiter::new(rate),
            gains: Gains::new(rate),
        };
        chain.apply_settings(true);
        if settings.is_on(Parameter::DcBlockOn) {
            chain.settle(rate_hz as usize / 2);
        }
        (chain, controls)
    }

    /// Delay of the output, samples: 0 unless a model is resampled. During an exchange, the delay after it.
    #[must_use]
    pub fn delay(&self) -> usize {
        delay_of(self.delays(), &self.settings)
    }

    fn delays(&self) -> [usize; 2] {
        self.models.each_ref().map(|model| model.latest().map_or(0, Amplifier::delay))
    }

    /// Sets a parameter from the audio thread itself; the chain reaches the value within 20 ms. The settings of the
    /// [`Controls`] do not change.
    ///
    /// # Errors
    /// [`ParameterError::Value`] if the value is not allowed; then nothing has changed.
    pub fn set(&mut self, parameter: Parameter, value: f32) -> Result<(), ParameterError> {
        self.settings.set(parameter, value)?;
        self.apply_settings(false);
        Ok(())
    }

    /// Plays `input`. Never allocates, locks or makes a system call, whatever the controls do meanwhile.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn process(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        assert!(input.len() == left.len() && input.len() == right.len(), "input and outputs have different lengths");
        let _flushed = flush_denormals();
        self.take_changes();
        for (at, input) in input.chunks(BLOCK).enumerate() {
            let now = at * BLOCK..at * BLOCK + input.len();
            self.process_block(input, &mut left[now.clone()], &mut right[now]);
        }
        let muted = self.models.each_mut().map(|model| model.each().any(|model| model.is_muted()));
        let gate_is_open = self.gate.is_open() || !self.settings.is_on(Parameter::GateOn);
        // Read in any case, so that a limiter that is switched on again does not report an old value.
        let least = self.limiter.take_least();
        let limiter_gain = if self.settings.is_on(Parameter::LimiterOn) { least } else { 1.0 };
        self.metering.publish(gate_is_open, limiter_gain, muted);
    }

    /// Forgets the sound in drive, delay and reverb: silence follows when the sound in models, cabinet and response of the
    /// reverb has ended. Never allocates, locks or makes a system call.
    pub fn end_echoes(&mut self) {
        self.drive.rest();
        self.echo.rest();
        self.reverb.rest();
    }

    fn take_changes(&mut self) {
        let mut any = false;
        while let Ok(command) = self.queues.changes.pop() {
            any = true;
            let unplayed = match command {
                Command::Set(parameter, value) => {
                    // The controls have checked the value.
                    let _ = self.settings.set(parameter, value);
                    None
                }
                Command::Amplifier(slot, mut model) => {
                    if let Some(model) = &mut model {
                        model.set_gains(gains_db(model.levels(), &self.settings, self.series_position(slot)), true);
                    }
                    self.models[slot].offer(model).map(Retired::Amplifier)
                }
                Command::Cabinet(cabinet) => self.cabinet.offer(cabinet).map(Retired::Cabinet),
                Command::ReverbIr(response) => self.reverb_ir.offer(response).map(Retired::Cabinet),
            };
            self.queues.give_back(unplayed);
        }
        if any {
            self.apply_settings(false);
        }
    }

    fn tone_of(settings: &Settings) -> [f32; 3] {
        [Parameter::Bass, Parameter::Middle, Parameter::Treble].map(|band| settings.get(band))
    }

    /// Applies the settings, immediately or with ramps.
    fn apply_settings(&mut self, at_once: bool) {
        let second = match (self.settings.is_parallel(), self.models.each_ref().map(|model| model.latest().is_some())) {
            (true, [true, true]) => self.settings.get(Parameter::Mix),
            (true, [true, false]) => 0.0,
            // An empty slot passes the signal through, and in series the second slot has the output.
            _ => 1.0,
        };
        let settings = &self.settings;
        self.gains.apply_settings(settings, second, at_once);
        self.drive.apply_settings(settings, at_once);
        self.echo.apply_settings(settings, at_once);
        self.reverb.apply_settings(settings, at_once);
        self.gate.set(settings.get(Parameter::GateThreshold), settings.get(Parameter::GateRelease));
        self.tone.set(Self::tone_of(settings));
        self.set_model_gains(at_once);
        self.align_latency(at_once);
    }

    /// In parallel, delays the model with the shorter delay; always delays the dry input.
    fn align_latency(&mut self, at_once: bool) {
        self.bypass.set(self.delay(), at_once);
        let late = if self.settings.is_parallel() { self.delay() } else { 0 };
        self.models.iter_mut().flat_map(Crossfade::each).for_each(|model| model.align_latency(late, at_once));
    }

    /// The position of a model in the signal path.
    fn series_position(&self, slot: usize) -> SeriesPosition {
        let series = !self.settings.is_parallel();
        let levels = |slot: usize| self.models[slot].latest().map(Amplifier::levels);
        SeriesPosition {
            preceded_by: levels(0).filter(|_| slot == 1 && series),
            feeds_next: slot == 0 && series && levels(1).is_some(),
        }
    }

    /// Applies the level gains of the models.
    fn set_model_gains(&mut self, at_once: bool) {
        for slot in 0..2 {
            let position = self.series_position(slot);
            for model in self.models[slot].each() {
                model.set_gains(gains_db(model.levels(), &self.settings, position), at_once);
            }
        }
    }
}
