//! What a chain does to a few samples, stage by stage.

use super::{Chain, amplifier::Amplifier, controls::Gone, gains::Gains, meters::Signal};
use crate::{cabinet::Cabinet, resample::Bridge};

/// Most frames that are computed at a time.
pub const PIECE: usize = Bridge::MOST;
/// Samples beyond this are cut off, and counted: 60 dB above full scale, which no sound has, and with which no filter overflows.
const MOST: f32 = 1000.0;

impl Chain {
    /// At most [`PIECE`] samples through all of it.
    pub(super) fn piece(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
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
            self.metering.counts.output_clips += u64::from(left.abs().max(right.abs()) > 1.0);
            *left = left.abs().max(right.abs());
        }
        self.metering.measure(Signal::Output, made_left);
    }

    /// Cuts off what would make filters overflow.
    fn bound(&mut self, signal: &mut [f32]) {
        for sample in signal {
            if sample.is_nan() || sample.abs() > MOST {
                *sample = if sample.is_nan() { 0.0 } else { sample.clamp(-MOST, MOST) };
                self.metering.counts.overloads += 1;
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
