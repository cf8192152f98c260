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
mod dc;
mod gate;
mod limiter;
mod meters;
mod parameter;
mod smooth;
mod swap;
mod tone;

pub(crate) use self::parameter::nearest;
pub use self::{
    amplifier::{Amplifier, AmplifierError, LOUDNESS_DB, Levels},
    controls::{ControlError, Controls},
    meters::{Level, Meters},
    parameter::{Info, Kind, Parameter, ParameterError, Settings},
};
use self::{
    amplifier::{Place, gains_db},
    controls::{Change, Ends, Gone},
    dc::DcBlock,
    gate::Gate,
    limiter::Limiter,
    meters::Metering,
    smooth::{Smooth, factor},
    swap::Swap,
    tone::Tone,
};
use crate::{cabinet::Cabinet, resample::Bridge, simd::flush_denormals};

/// Most frames that are computed at a time.
const PIECE: usize = Bridge::MOST;
/// Samples beyond this are cut off, and counted: 60 dB above full scale, which no sound has, and with which no filter overflows.
const MOST: f32 = 1000.0;

/// Counts of [`Metering`], by what they count.
const INPUT_CLIPS: usize = 0;
const OUTPUT_CLIPS: usize = 1;
const BAD_INPUT: usize = 2;
const OVERLOADS: usize = 3;

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
    ends: Ends,
    metering: Metering,
    models: [Swap<Amplifier>; 2],
    cabinet: Swap<Cabinet>,
    gate: Gate,
    tone: Tone,
    dc: [DcBlock; 2],
    limiter: Limiter,
    gains: Gains,
}

/// All that moves smoothly.
#[derive(Debug)]
struct Gains {
    input: Smooth,
    /// How far the second model gets the input rather than what the first makes of it.
    side_by_side: Smooth,
    /// Shares of what both models make.
    shares: [Smooth; 2],
    models_on: Smooth,
    gate_on: Smooth,
    tone_on: Smooth,
    cabinet: Smooth,
    cabinet_on: Smooth,
    dc_on: [Smooth; 2],
    output: [Smooth; 2],
    limiter_on: [Smooth; 2],
    ceiling: Smooth,
}

impl Gains {
    fn each(&mut self) -> impl Iterator<Item = &mut Smooth> {
        let Self { input, side_by_side, shares, models_on, gate_on, tone_on, .. } = self;
        let Self { cabinet, cabinet_on, dc_on, output, limiter_on, ceiling, .. } = self;
        [input, side_by_side, models_on, gate_on, tone_on, cabinet, cabinet_on, ceiling]
            .into_iter()
            .chain(shares.iter_mut().chain(dc_on).chain(output).chain(limiter_on))
    }
}

impl Chain {
    /// A chain that plays at this rate, and its controls.
    #[must_use]
    pub fn new(rate_hz: u32, settings: &Settings, parts: Parts) -> (Self, Controls) {
        let rate = rate_hz as f32;
        let (metering, reading) = meters::meters(rate);
        let (controls, ends) = Controls::new(rate_hz, settings.clone(), reading);
        let gain = || Smooth::new(0.0, rate);
        let pair = || [gain(), gain()];
        let mut chain = Self {
            settings: settings.clone(),
            ends,
            metering,
            models: parts.models.map(|model| Swap::new(model.map(Box::new), rate)),
            cabinet: Swap::new(parts.cabinet.map(Box::new), rate),
            gate: Gate::new(rate),
            tone: Tone::new(rate, Self::tone_of(settings)),
            dc: [DcBlock::new(rate), DcBlock::new(rate)],
            limiter: Limiter::new(rate),
            gains: Gains {
                input: gain(),
                side_by_side: gain(),
                shares: pair(),
                models_on: gain(),
                gate_on: gain(),
                tone_on: gain(),
                cabinet: gain(),
                cabinet_on: gain(),
                dc_on: pair(),
                output: pair(),
                limiter_on: pair(),
                ceiling: gain(),
            },
        };
        chain.follow(true);
        (chain, controls)
    }

    /// Samples by which the output is late: 0 unless a model is resampled. Tells what plays in the end, when something
    /// is being exchanged.
    #[must_use]
    pub fn delay(&self) -> usize {
        let [first, second] = self.models.each_ref().map(|model| model.latest().map_or(0, Amplifier::delay));
        match self.is_parallel() {
            true => first.max(second),
            false => first + second,
        }
    }

    /// Plays `input`. Neither allocates, locks nor calls the system, whatever was told it meanwhile.
    ///
    /// # Panics
    /// When the three are of different lengths.
    pub fn process(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        assert!(input.len() == left.len() && input.len() == right.len(), "a chain makes as many samples as it gets");
        let _flushed = flush_denormals();
        self.take_changes();
        for (at, input) in input.chunks(PIECE).enumerate() {
            let now = at * PIECE..at * PIECE + input.len();
            self.piece(input, &mut left[now.clone()], &mut right[now]);
        }
        let muted = self.models.each_mut().map(|model| model.each().any(|model| model.is_muted()));
        let gate_is_open = self.gate.is_open() || !self.settings.is_on(Parameter::GateOn);
        self.metering.rest(gate_is_open, self.limiter.take_least(), muted);
    }

    fn take_changes(&mut self) {
        let mut any = false;
        while let Ok(change) = self.ends.changes.pop() {
            any = true;
            let unplayed = match change {
                Change::Set(parameter, value) => {
                    // The other side has checked it.
                    let _ = self.settings.set(parameter, value);
                    None
                }
                Change::Amplifier(place, mut model) => {
                    if let Some(model) = &mut model {
                        model.level(gains_db(model.levels(), &self.settings, self.standing(place)), true);
                    }
                    self.models[place].offer(model).map(Gone::Amplifier)
                }
                Change::Cabinet(cabinet) => self.cabinet.offer(cabinet).map(Gone::Cabinet),
            };
            self.give_back(unplayed);
        }
        if any {
            self.follow(false);
        }
    }

    /// There is always room: the other side counts what is on its way.
    fn give_back(&mut self, gone: Option<Gone>) {
        if let Some(gone) = gone {
            let _ = self.ends.gone.push(gone);
        }
    }

    fn is_parallel(&self) -> bool {
        self.settings.get(Parameter::Routing) != 0.0
    }

    fn tone_of(settings: &Settings) -> [f32; 3] {
        [Parameter::Bass, Parameter::Middle, Parameter::Treble].map(|band| settings.get(band))
    }

    /// Brings all to what is set: at once, or smoothly.
    fn follow(&mut self, at_once: bool) {
        let parallel = self.is_parallel();
        let share = match (parallel, self.models.each_ref().map(|model| model.latest().is_some())) {
            (true, [true, true]) => self.settings.get(Parameter::Mix),
            // What is not there lets all through: behind one another, the second place is the end.
            (true, [true, false]) => 0.0,
            _ => 1.0,
        };
        let settings = &self.settings;
        let switch = |parameter| settings.get(parameter);
        let gain = |parameter| factor(settings.get(parameter));
        let output = gain(Parameter::OutputGain);
        let targets = [
            gain(Parameter::InputGain),
            f32::from(parallel),
            switch(Parameter::ModelsOn),
            switch(Parameter::GateOn),
            switch(Parameter::ToneOn),
            gain(Parameter::CabinetGain),
            switch(Parameter::CabinetOn),
            gain(Parameter::Ceiling),
            1.0 - share,
            share,
            switch(Parameter::DcBlockOn),
            switch(Parameter::DcBlockOn),
            output,
            output,
            switch(Parameter::LimiterOn),
            switch(Parameter::LimiterOn),
        ];
        for (value, target) in self.gains.each().zip(targets) {
            match at_once {
                true => value.jump(target),
                false => value.set(target),
            }
        }
        self.gate.set(settings.get(Parameter::GateThreshold), settings.get(Parameter::GateRelease));
        self.tone.set(Self::tone_of(settings));
        self.level_models(at_once);
    }

    /// How the model at a place stands to the other.
    fn standing(&self, place: usize) -> Place {
        let series = !self.is_parallel();
        let levels = |place: usize| self.models[place].latest().map(Amplifier::levels);
        Place { behind: levels(0).filter(|_| place == 1 && series), feeds: place == 0 && series && levels(1).is_some() }
    }

    /// Brings the models to their levels.
    fn level_models(&mut self, at_once: bool) {
        for place in 0..2 {
            let standing = self.standing(place);
            for model in self.models[place].each() {
                model.level(gains_db(model.levels(), &self.settings, standing), at_once);
            }
        }
    }

    fn piece(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        let frames = input.len();
        let (mut signal, mut gate) = ([0.0; PIECE], [0.0; PIECE]);
        let (signal, gate) = (&mut signal[..frames], &mut gate[..frames]);
        signal.copy_from_slice(input);
        self.look_at(signal);
        self.gate.listen(signal, gate);
        self.gains.input.apply(signal);
        self.amplify(signal);
        for (sample, gate) in signal.iter_mut().zip(&*gate) {
            *sample *= 1.0 + self.gains.gate_on.next() * (gate - 1.0);
        }
        self.process_tone(signal);
        self.bound(signal);
        self.process_cabinet(signal, left, right);
        self.finish(left, right);
    }

    /// Takes out what is no signal, measures it, and lets the tuner hear it.
    fn look_at(&mut self, signal: &mut [f32]) {
        for sample in signal.iter_mut() {
            if sample.is_nan() || sample.abs() > MOST {
                *sample = 0.0;
                self.metering.counts[BAD_INPUT] += 1;
            }
            self.metering.counts[INPUT_CLIPS] += u64::from(sample.abs() >= 1.0);
        }
        self.metering.level(0, signal);
        // Where the tuner does not keep up, or nobody asks, it misses something.
        let room = self.ends.tap.slots().min(signal.len());
        if let Ok(chunk) = self.ends.tap.write_chunk_uninit(room) {
            chunk.fill_from_iter(signal.iter().copied());
        }
    }

    fn amplify(&mut self, signal: &mut [f32]) {
        let (mut first, mut second) = ([0.0; PIECE], [0.0; PIECE]);
        let (first, second) = (&mut first[..signal.len()], &mut second[..signal.len()]);
        self.play_model(0, signal, first);
        let mut between = [0.0; PIECE];
        let between = &mut between[..signal.len()];
        between.copy_from_slice(signal);
        self.gains.side_by_side.blend(first, between);
        self.play_model(1, between, second);
        let [one, other] = &mut self.gains.shares;
        one.apply(first);
        other.apply(second);
        first.iter_mut().zip(&*second).for_each(|(sum, second)| *sum += second);
        self.gains.models_on.blend(signal, first);
        signal.copy_from_slice(first);
        self.bound(signal);
    }

    fn play_model(&mut self, place: usize, input: &[f32], output: &mut [f32]) {
        let models = &mut self.models[place];
        play(models.current(), input, output);
        if models.is_under_way() {
            let (mut eased, mut made) = ([0.0; PIECE], [0.0; PIECE]);
            let (eased, made) = (&mut eased[..input.len()], &mut made[..input.len()]);
            eased.copy_from_slice(input);
            models.ease(eased);
            play(models.coming(), eased, made);
            models.mix(output, made);
            let gone = models.advance(input.len()).map(Gone::Amplifier);
            self.give_back(gone);
        }
    }

    fn process_tone(&mut self, signal: &mut [f32]) {
        let mut made = [0.0; PIECE];
        let made = &mut made[..signal.len()];
        made.copy_from_slice(signal);
        self.tone.process(made);
        self.gains.tone_on.blend(signal, made);
        signal.copy_from_slice(made);
    }

    fn process_cabinet(&mut self, signal: &[f32], left: &mut [f32], right: &mut [f32]) {
        let cabinets = &mut self.cabinet;
        convolve(cabinets.current(), signal, left, right);
        if cabinets.is_under_way() {
            let (mut eased, mut made) = ([0.0; PIECE], [[0.0; PIECE]; 2]);
            let (eased, [made_left, made_right]) = (&mut eased[..signal.len()], &mut made);
            let (made_left, made_right) = (&mut made_left[..signal.len()], &mut made_right[..signal.len()]);
            eased.copy_from_slice(signal);
            cabinets.ease(eased);
            convolve(cabinets.coming(), eased, made_left, made_right);
            cabinets.mix(left, made_left);
            cabinets.mix(right, made_right);
            let gone = cabinets.advance(signal.len()).map(Gone::Cabinet);
            self.give_back(gone);
        }
        let Gains { cabinet, cabinet_on, .. } = &mut self.gains;
        let (mut gain, mut on) = (cabinet.clone(), cabinet_on.clone());
        gain.apply(left);
        on.blend(signal, left);
        cabinet.apply(right);
        cabinet_on.blend(signal, right);
    }

    fn finish(&mut self, left: &mut [f32], right: &mut [f32]) {
        let Gains { dc_on, output, .. } = &mut self.gains;
        let mut made = [[0.0; PIECE]; 2];
        for (side, signal) in [&mut *left, &mut *right].into_iter().enumerate() {
            let made = &mut made[side][..signal.len()];
            made.copy_from_slice(signal);
            self.dc[side].process(made);
            dc_on[side].blend(signal, made);
            output[side].apply(made);
            signal.copy_from_slice(made);
        }
        self.bound(left);
        self.bound(right);
        let [made_left, made_right] = &mut made;
        let (made_left, made_right) = (&mut made_left[..left.len()], &mut made_right[..right.len()]);
        made_left.copy_from_slice(left);
        made_right.copy_from_slice(right);
        let Gains { limiter_on: [on_left, on_right], ceiling, .. } = &mut self.gains;
        self.limiter.process(ceiling, made_left, made_right);
        on_left.blend(left, made_left);
        on_right.blend(right, made_right);
        left.copy_from_slice(made_left);
        right.copy_from_slice(made_right);
        for (left, right) in made_left.iter_mut().zip(&*made_right) {
            self.metering.counts[OUTPUT_CLIPS] += u64::from(left.abs() > 1.0) + u64::from(right.abs() > 1.0);
            *left = left.abs().max(right.abs());
        }
        self.metering.level(1, made_left);
    }

    /// Cuts off what would make filters overflow.
    fn bound(&mut self, signal: &mut [f32]) {
        for sample in signal {
            if sample.is_nan() || sample.abs() > MOST {
                *sample = if sample.is_nan() { 0.0 } else { sample.clamp(-MOST, MOST) };
                self.metering.counts[OVERLOADS] += 1;
            }
        }
    }
}

/// What is not there lets all through.
fn play(model: Option<&mut Amplifier>, input: &[f32], output: &mut [f32]) {
    match model {
        Some(model) => model.process(input, output),
        None => output.copy_from_slice(input),
    }
}

fn convolve(cabinet: Option<&mut Cabinet>, input: &[f32], left: &mut [f32], right: &mut [f32]) {
    match cabinet {
        Some(cabinet) => cabinet.process(input, left, right),
        None => {
            left.copy_from_slice(input);
            right.copy_from_slice(input);
        }
    }
}
