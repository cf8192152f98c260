//! What a chain does to a few samples, stage by stage.

use super::{
    Chain,
    amplifier::Amplifier,
    controls::{AudioEnds, Retired},
    crossfade::Crossfade,
    gains::Gains,
    meters::Signal,
    parameter::Parameter,
    smooth::Smooth,
};
use crate::{cabinet::Cabinet, resample::ResampledInsert, simd::flush_denormals};

/// Most frames that are computed at a time.
pub const BLOCK: usize = ResampledInsert::MAX_FRAMES;
/// Samples beyond this are cut off, and counted: 60 dB above full scale, which no sound has, and with which no filter overflows.
const MAX_AMPLITUDE: f32 = 1000.0;

impl Chain {
    /// At most [`BLOCK`] samples through all of it.
    pub(super) fn process_block(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        let frames = input.len();
        let (mut signal, mut gate) = ([0.0; BLOCK], [0.0; BLOCK]);
        let (signal, gate) = (&mut signal[..frames], &mut gate[..frames]);
        signal.copy_from_slice(input);
        self.sanitize_and_meter(signal);
        self.gate.listen(signal, gate);
        self.gains.input.apply([signal]);
        self.amplify(signal);
        for (sample, gate) in signal.iter_mut().zip(&*gate) {
            *sample *= 1.0 + self.gains.gate_on.next() * (gate - 1.0);
        }
        self.process_tone(signal);
        self.clip(signal);
        self.process_cabinet(signal, left, right);
        self.finish(left, right);
    }

    /// Plays silence for so long, and as long as the cabinet, through all that remembers it.
    pub(super) fn settle(&mut self, frames: usize) {
        let _flushed = flush_denormals();
        let frames = frames + self.cabinet.latest().map_or(0, Cabinet::frames);
        for _ in 0..frames.div_ceil(BLOCK) {
            let (mut signal, mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            self.amplify(&mut signal);
            // A gate would have closed.
            if self.settings.is_on(Parameter::GateOn) {
                signal.fill(0.0);
            }
            self.process_tone(&mut signal);
            self.process_cabinet(&signal, &mut left, &mut right);
            self.block_dc(&mut left, &mut right);
        }
    }

    /// Takes out what is no signal, measures it, and lets the tuner hear it.
    fn sanitize_and_meter(&mut self, signal: &mut [f32]) {
        for sample in signal.iter_mut() {
            if sample.is_nan() || sample.abs() > MAX_AMPLITUDE {
                *sample = 0.0;
                self.metering.counts.bad_input += 1;
            }
            self.metering.counts.input_clips += u64::from(sample.abs() >= 1.0);
        }
        self.metering.measure(Signal::Input, signal);
        // Where the tuner does not keep up, or nobody asks, it misses something.
        let room = self.ends.tap.slots().min(signal.len());
        if let Ok(chunk) = self.ends.tap.write_chunk_uninit(room) {
            chunk.fill_from_iter(signal.iter().copied());
        }
    }

    fn amplify(&mut self, signal: &mut [f32]) {
        let Self { models: [first, second], bypass, gains, ends, .. } = self;
        let Gains { models_on, side_by_side, shares: [first_share, second_share], .. } = gains;
        let (mut one, mut other, mut between, mut dry) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let one = &mut one[..signal.len()];
        let other = &mut other[..signal.len()];
        let between = &mut between[..signal.len()];
        let dry = &mut dry[..signal.len()];
        play_model(first, signal, one, ends);
        between.copy_from_slice(signal);
        side_by_side.blend([one], [between]);
        play_model(second, between, other, ends);
        first_share.apply([one]);
        second_share.apply([other]);
        dry.copy_from_slice(signal);
        bypass.process(dry);
        for ((sum, one), other) in signal.iter_mut().zip(one).zip(other) {
            *sum = *one + *other;
        }
        models_on.blend([dry], [&mut *signal]);
        self.clip(signal);
    }

    fn process_tone(&mut self, signal: &mut [f32]) {
        bypassable(&mut self.gains.tone_on, [signal], |[signal]| self.tone.process(signal));
    }

    fn process_cabinet(&mut self, signal: &[f32], left: &mut [f32], right: &mut [f32]) {
        play_cabinet(&mut self.cabinet, signal, [left, right], &mut self.ends);
        self.gains.cabinet.apply([left, right]);
        self.gains.cabinet_on.blend([signal, signal], [left, right]);
    }

    fn finish(&mut self, left: &mut [f32], right: &mut [f32]) {
        self.block_dc(left, right);
        self.gains.output.apply([left, right]);
        self.clip(left);
        self.clip(right);
        let Gains { limiter_on, ceiling, .. } = &mut self.gains;
        bypassable(limiter_on, [left, right], |[left, right]| self.limiter.process(ceiling, left, right));
        self.meter_output(left, right);
    }

    fn block_dc(&mut self, left: &mut [f32], right: &mut [f32]) {
        bypassable(&mut self.gains.dc_on, [left, right], |sides| {
            self.dc.iter_mut().zip(sides).for_each(|(dc, side)| dc.process(side));
        });
    }

    fn meter_output(&mut self, left: &[f32], right: &[f32]) {
        let mut louder = [0.0; BLOCK];
        let louder = &mut louder[..left.len()];
        for ((louder, left), right) in louder.iter_mut().zip(left).zip(right) {
            *louder = left.abs().max(right.abs());
            self.metering.counts.output_clips += u64::from(*louder > 1.0);
        }
        self.metering.measure(Signal::Output, louder);
    }

    /// Cuts off what would make filters overflow.
    fn clip(&mut self, signal: &mut [f32]) {
        for sample in signal {
            if sample.is_nan() || sample.abs() > MAX_AMPLITUDE {
                *sample = if sample.is_nan() { 0.0 } else { sample.clamp(-MAX_AMPLITUDE, MAX_AMPLITUDE) };
                self.metering.counts.overloads += 1;
            }
        }
    }
}

/// Does `process` to a copy of the signals, of which as much is heard as the switch says: switched off, it goes on all the same.
fn bypassable<const N: usize>(
    switch: &mut Smooth,
    mut signals: [&mut [f32]; N],
    process: impl FnOnce([&mut [f32]; N]),
) {
    let mut processed = [[0.0; BLOCK]; N];
    let frames = signals[0].len();
    let mut processed = processed.each_mut().map(|copy| &mut copy[..frames]);
    processed.iter_mut().zip(&signals).for_each(|(copy, signal)| copy.copy_from_slice(signal));
    process(processed.each_mut().map(|copy| &mut **copy));
    switch.blend(signals.each_ref().map(|signal| &**signal), processed.each_mut().map(|copy| &mut **copy));
    signals.iter_mut().zip(processed).for_each(|(signal, copy)| signal.copy_from_slice(copy));
}

/// What plays at a place, and what takes its place while it does.
fn play_model(models: &mut Crossfade<Amplifier>, input: &[f32], output: &mut [f32], ends: &mut AudioEnds) {
    amplify(models.current(), input, output);
    if models.is_fading() {
        let (mut faded_in, mut made) = ([0.0; BLOCK], [0.0; BLOCK]);
        let (faded_in, made) = (&mut faded_in[..input.len()], &mut made[..input.len()]);
        faded_in.copy_from_slice(input);
        models.fade_in_input(faded_in);
        amplify(models.coming(), faded_in, made);
        models.mix([output], [made]);
        ends.give_back(models.advance(input.len()).map(Retired::Amplifier));
    }
}

fn play_cabinet(cabinets: &mut Crossfade<Cabinet>, input: &[f32], outputs: [&mut [f32]; 2], ends: &mut AudioEnds) {
    let [left, right] = outputs;
    convolve(cabinets.current(), input, left, right);
    if cabinets.is_fading() {
        let (mut faded_in, mut made_left, mut made_right) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let faded_in = &mut faded_in[..input.len()];
        let made_left = &mut made_left[..input.len()];
        let made_right = &mut made_right[..input.len()];
        faded_in.copy_from_slice(input);
        cabinets.fade_in_input(faded_in);
        convolve(cabinets.coming(), faded_in, made_left, made_right);
        cabinets.mix([left, right], [made_left, made_right]);
        ends.give_back(cabinets.advance(input.len()).map(Retired::Cabinet));
    }
}

/// What is not there lets all through.
fn amplify(model: Option<&mut Amplifier>, input: &[f32], output: &mut [f32]) {
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
