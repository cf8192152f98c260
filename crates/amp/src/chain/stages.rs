//! The stages of a chain, which process one block.

use super::{
    Chain,
    amplifier::Amplifier,
    controls::{AudioQueues, Retired},
    crossfade::Crossfade,
    gains::Gains,
    meters::Signal,
    parameter::Parameter,
    smooth::Smooth,
};
use crate::{cabinet::Cabinet, resample::ResampledInsert, simd::flush_denormals};

/// Maximum number of frames per block.
pub const BLOCK: usize = ResampledInsert::MAX_FRAMES;
/// Samples are clipped at this amplitude and counted: 60 dB above full scale, above any signal and below any overflow.
const MAX_AMPLITUDE: f32 = 1000.0;

impl Chain {
    /// Processes at most [`BLOCK`] samples with all stages.
    pub(super) fn process_block(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        let frames = input.len();
        let (mut signal, mut gate) = ([0.0; BLOCK], [0.0; BLOCK]);
        let (signal, gate) = (&mut signal[..frames], &mut gate[..frames]);
        signal.copy_from_slice(input);
        self.sanitize_and_meter(signal);
        self.gate.listen(signal, gate);
        self.gains.input.apply([signal]);
        play_effect(&mut self.gains.drive_on, [&mut *signal], &mut self.drive);
        self.amplify(signal);
        for (sample, gate) in signal.iter_mut().zip(&*gate) {
            *sample *= 1.0 + self.gains.gate_on.next() * (gate - 1.0);
        }
        self.process_tone(signal);
        self.clip(signal);
        self.process_cabinet(signal, left, right);
        self.finish(left, right);
    }

    /// Plays silence for `frames` samples plus the length of the cabinet through all stages with a state.
    pub(super) fn settle(&mut self, frames: usize) {
        let _flushed = flush_denormals();
        let frames = frames + self.cabinet.latest().map_or(0, Cabinet::frames);
        for _ in 0..frames.div_ceil(BLOCK) {
            let (mut signal, mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            self.amplify(&mut signal);
            // The gate closes during silence.
            if self.settings.is_on(Parameter::GateOn) {
                signal.fill(0.0);
            }
            self.process_tone(&mut signal);
            self.process_cabinet(&signal, &mut left, &mut right);
            self.block_dc(&mut left, &mut right);
        }
    }

    /// Replaces invalid samples, measures the signal, and passes it to the tuner.
    fn sanitize_and_meter(&mut self, signal: &mut [f32]) {
        for sample in signal.iter_mut() {
            if sample.is_nan() || sample.abs() > MAX_AMPLITUDE {
                *sample = 0.0;
                self.metering.counts.bad_input += 1;
            }
            self.metering.counts.input_clips += u64::from(sample.abs() >= 1.0);
        }
        self.metering.measure(Signal::Input, signal);
        // If the queue is full because nobody reads the tuner, samples are dropped.
        let count = self.queues.tap.slots().min(signal.len());
        if let Ok(chunk) = self.queues.tap.write_chunk_uninit(count) {
            chunk.fill_from_iter(signal.iter().copied());
        }
    }

    fn amplify(&mut self, signal: &mut [f32]) {
        let Self { models: [first, second], bypass, gains, queues, .. } = self;
        let Gains { models_on, parallel, shares: [first_share, second_share], .. } = gains;
        let (mut first_output, mut second_output, mut second_input, mut dry) =
            ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let first_output = &mut first_output[..signal.len()];
        let second_output = &mut second_output[..signal.len()];
        let second_input = &mut second_input[..signal.len()];
        let dry = &mut dry[..signal.len()];
        play_model(first, signal, first_output, queues);
        second_input.copy_from_slice(signal);
        parallel.blend([first_output], [second_input]);
        play_model(second, second_input, second_output, queues);
        first_share.apply([first_output]);
        second_share.apply([second_output]);
        dry.copy_from_slice(signal);
        bypass.process(dry);
        for ((sum, first_output), second_output) in signal.iter_mut().zip(first_output).zip(second_output) {
            *sum = *first_output + *second_output;
        }
        models_on.blend([dry], [&mut *signal]);
        self.clip(signal);
    }

    fn process_tone(&mut self, signal: &mut [f32]) {
        bypassable(&mut self.gains.tone_on, [signal], |[signal]| self.tone.process(signal));
    }

    fn process_cabinet(&mut self, signal: &[f32], left: &mut [f32], right: &mut [f32]) {
        convolve(&mut self.cabinet, signal, [signal, signal], [left, right], &mut self.queues);
        self.gains.cabinet.apply([left, right]);
        self.gains.cabinet_on.blend([signal, signal], [left, right]);
    }

    /// Plays the mean of both sides through the response, and mixes the result with each side.
    fn process_reverb_ir(&mut self, left: &mut [f32], right: &mut [f32]) {
        let Self { reverb_ir, gains, queues, .. } = self;
        let Gains { reverb_ir_on, reverb_ir_mix, .. } = gains;
        bypassable(reverb_ir_on, [left, right], |[left, right]| {
            let (mut mean, mut wet_left, mut wet_right) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            let mean = &mut mean[..left.len()];
            let (wet_left, wet_right) = (&mut wet_left[..left.len()], &mut wet_right[..left.len()]);
            mean.iter_mut().zip(&*left).zip(&*right).for_each(|((mean, left), right)| *mean = 0.5 * (left + right));
            convolve(reverb_ir, mean, [left, right], [wet_left, wet_right], queues);
            for ((left, right), (wet_left, wet_right)) in
                left.iter_mut().zip(right).zip(wet_left.iter().zip(&*wet_right))
            {
                let mix = reverb_ir_mix.next();
                *left += mix * (wet_left - *left);
                *right += mix * (wet_right - *right);
            }
        });
    }

    fn finish(&mut self, left: &mut [f32], right: &mut [f32]) {
        self.block_dc(left, right);
        play_effect(&mut self.gains.delay_on, [&mut *left, &mut *right], &mut self.echo);
        play_effect(&mut self.gains.reverb_on, [&mut *left, &mut *right], &mut self.reverb);
        self.process_reverb_ir(left, right);
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

    /// Clips samples at [`MAX_AMPLITUDE`], beyond which filters could overflow.
    fn clip(&mut self, signal: &mut [f32]) {
        for sample in signal {
            if sample.is_nan() || sample.abs() > MAX_AMPLITUDE {
                *sample = if sample.is_nan() { 0.0 } else { sample.clamp(-MAX_AMPLITUDE, MAX_AMPLITUDE) };
                self.metering.counts.overloads += 1;
            }
        }
    }
}

/// A stage that is not computed while it is switched off.
pub trait Effect<const N: usize> {
    /// Plays simultaneous signals.
    fn process(&mut self, signals: [&mut [f32]; N]);

    /// Forgets all sound, in a short time that does not depend on how much there was.
    fn rest(&mut self);
}

/// Applies an effect and mixes it in according to the switch. When it is switched on again, it begins with silence.
fn play_effect<const N: usize>(switch: &mut Smooth, signals: [&mut [f32]; N], effect: &mut impl Effect<N>) {
    match switch.is_off() {
        true => effect.rest(),
        false => bypassable(switch, signals, |signals| effect.process(signals)),
    }
}

/// Applies `process` to a copy of the signals and mixes it in according to the switch. Also computed while switched
/// off.
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

/// Plays the models of a slot: the current one, and during a crossfade the incoming one.
fn play_model(models: &mut Crossfade<Amplifier>, input: &[f32], output: &mut [f32], queues: &mut AudioQueues) {
    amplify(models.current(), input, output);
    if models.is_fading() {
        let (mut faded_in, mut incoming) = ([0.0; BLOCK], [0.0; BLOCK]);
        let (faded_in, incoming) = (&mut faded_in[..input.len()], &mut incoming[..input.len()]);
        faded_in.copy_from_slice(input);
        models.fade_in_input(faded_in);
        amplify(models.incoming(), faded_in, incoming);
        models.mix([output], [incoming]);
        queues.give_back(models.advance(input.len()).map(Retired::Amplifier));
    }
}

/// Convolves `input` with the response, and during a crossfade with the incoming one as well; without a response the
/// `dry` signals pass through.
fn convolve(
    responses: &mut Crossfade<Cabinet>,
    input: &[f32],
    dry: [&[f32]; 2],
    outputs: [&mut [f32]; 2],
    queues: &mut AudioQueues,
) {
    let [left, right] = outputs;
    convolve_one(responses.current(), input, dry, left, right);
    if responses.is_fading() {
        let (mut faded_in, mut incoming_left, mut incoming_right) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let faded_in = &mut faded_in[..input.len()];
        let incoming_left = &mut incoming_left[..input.len()];
        let incoming_right = &mut incoming_right[..input.len()];
        faded_in.copy_from_slice(input);
        responses.fade_in_input(faded_in);
        convolve_one(responses.incoming(), faded_in, dry, incoming_left, incoming_right);
        responses.mix([left, right], [incoming_left, incoming_right]);
        queues.give_back(responses.advance(input.len()).map(Retired::Cabinet));
    }
}

/// Plays a model; without one the signal passes through.
fn amplify(model: Option<&mut Amplifier>, input: &[f32], output: &mut [f32]) {
    match model {
        Some(model) => model.process(input, output),
        None => output.copy_from_slice(input),
    }
}

fn convolve_one(response: Option<&mut Cabinet>, input: &[f32], dry: [&[f32]; 2], left: &mut [f32], right: &mut [f32]) {
    match response {
        Some(response) => response.process(input, left, right),
        None => {
            left.copy_from_slice(dry[0]);
            right.copy_from_slice(dry[1]);
        }
    }
}
