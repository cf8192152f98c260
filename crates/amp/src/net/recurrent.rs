//! Recurrent networks: recurrent layers, and the layers between and after them. All are computed frame by frame.

mod layer;
mod plan;

use self::layer::Layer;
pub use self::plan::{DenseWeights, KerasConvWeights, PiecewiseLinear, Plan, RecurrentWeights};
use super::Net;
use crate::{
    memory::{Aligned, BLOCK},
    simd::{Frames, InstructionSet, Op, Simd, padded},
    work::Work,
};

/// Number of frames in which a knob moves from one end to the other.
const KNOB_FRAMES: f32 = 1024.0;

/// Consecutive layers. The inputs of the first one are the signal and the knobs.
#[derive(Debug, Clone)]
pub struct Recurrent {
    instructions: InstructionSet,
    layers: Vec<Layer>,
    /// Current value and target value of each knob.
    knobs: Vec<(f32, f32)>,
    /// Inputs of the first layer: a row for each frame of a block.
    first_input: Aligned,
    outputs: usize,
    prewarm_frames: usize,
    work: Work,
}

impl Recurrent {
    /// Builds the network with `knobs` inputs in addition to the signal.
    #[must_use]
    pub fn new(plans: &[Plan], knobs: usize, prewarm_frames: usize, instructions: InstructionSet) -> Self {
        let instructions = instructions.for_values(plans.iter().map(Plan::units).max().unwrap_or_default());
        let (mut width, mut work) = (knobs + 1, Work::default());
        let mut layers = Vec::with_capacity(plans.len());
        for plan in plans {
            Layer::add(&mut layers, plan, width, instructions);
            work = work + plan.work();
            width = plan.outputs(width);
        }
        let (first_input, knobs) = (Aligned::new(BLOCK * padded(knobs + 1), []), vec![(0.0, 0.0); knobs]);
        Self { instructions, layers, knobs, first_input, outputs: width, prewarm_frames, work }
    }
}

impl Net for Recurrent {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn prewarm_frames(&self) -> usize {
        self.prewarm_frames
    }

    fn block(&mut self, input: &[f32], output: &mut [f32]) {
        self.instructions.run(Block { net: self, input, output });
    }

    fn reset(&mut self) {
        self.layers.iter_mut().for_each(Layer::reset);
        self.knobs.iter_mut().for_each(|(now, target)| *now = *target);
    }

    fn knobs(&self) -> usize {
        self.knobs.len()
    }

    fn turn(&mut self, knob: usize, value: f32) {
        if let Some((_, target)) = self.knobs.get_mut(knob) {
            *target = value;
        }
    }

    fn work(&self) -> Work {
        self.work
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}

struct Block<'a> {
    net: &'a mut Recurrent,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Op for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Recurrent { layers, knobs, first_input, outputs, .. } = self.net;
        let (frames, count) = (self.input.len(), knobs.len() + 1);
        let mut signal = Frames { values: self.input, stride: 1, count };
        if count > 1 {
            let stride = padded(count);
            for (row, &x) in first_input.chunks_exact_mut(stride).zip(self.input) {
                row[0] = x;
                for ((now, target), value) in knobs.iter_mut().zip(&mut row[1..]) {
                    *now += (*target - *now).clamp(-1.0 / KNOB_FRAMES, 1.0 / KNOB_FRAMES);
                    *value = *now;
                }
            }
            signal = Frames { values: first_input, stride, count };
        }
        let mut layers = layers.iter_mut().peekable();
        while let Some(layer) = layers.next() {
            signal = match layers.next_if(|next| layer.joins::<S>(next)) {
                Some(next) => layer.block_with(next, simd, frames, signal),
                None => layer.block(simd, frames, signal),
            };
        }
        if signal.stride == 1 {
            return self.output[..frames].copy_from_slice(&signal.values[..frames]);
        }
        for index in 0..*outputs {
            let values = signal.values.iter().skip(index).step_by(signal.stride);
            self.output[index * BLOCK..].iter_mut().zip(values).take(frames).for_each(|(out, value)| *out = *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers that each process the whole block before the next one. Returns the output and the number of joined layers.
    struct OneByOne<'a> {
        layers: &'a mut [Layer],
        input: &'a [f32],
    }

    impl Op for OneByOne<'_> {
        type Output = (Vec<f32>, usize);

        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let joined = self.layers.windows(2).filter(|pair| pair[0].joins::<S>(&pair[1])).count();
            let mut signal = Frames { values: self.input, stride: 1, count: 1 };
            for layer in self.layers {
                signal = layer.block(simd, self.input.len(), signal);
            }
            (signal.values[..self.input.len()].to_vec(), joined)
        }
    }

    /// A number between -0.5 and 0.5 that depends on the index only.
    fn number(index: usize) -> f32 {
        (index * 7919 % 1009) as f32 / 1009.0 - 0.5
    }

    fn weights(inputs: usize, units: usize, sums: usize) -> RecurrentWeights {
        let numbers = |count: usize| (0..count).map(|index| number(index + units)).collect::<Vec<_>>();
        RecurrentWeights {
            inputs,
            units,
            weights: numbers(sums * units * (inputs + units)),
            biases: numbers(sums * units),
            initial_state: [numbers(units), numbers(units)],
        }
    }

    #[test]
    fn joined_layers_compute_the_same_bits_as_one_after_the_other() {
        let head = |columns: usize| {
            Plan::Dense(DenseWeights { columns, weights: (0..columns).map(number).collect(), biases: vec![0.25] })
        };
        let lstm = |inputs, units| Plan::Lstm(weights(inputs, units, 4));
        let gru = |inputs, units| Plan::Gru(weights(inputs, units, 4));
        let networks = [
            (vec![lstm(1, 8), lstm(8, 8), head(8)], 1),
            (vec![lstm(1, 3), lstm(3, 8), lstm(8, 5), lstm(5, 8), head(8)], 3),
            (vec![gru(1, 8), gru(8, 6), head(6)], 1),
            (vec![lstm(1, 8), gru(8, 8), head(8)], 0),
            (vec![lstm(1, 8), lstm(8, 20), head(20)], 0),
        ];
        for instructions in InstructionSet::all() {
            for (plans, joined) in &networks {
                let mut net = Recurrent::new(plans, 0, 0, instructions);
                let mut layers = net.layers.clone();
                let mut at = 0;
                for frames in [1, 2, 0, BLOCK, 17] {
                    let input: Vec<f32> = (at..at + frames).map(|frame| 2.0 * number(frame)).collect();
                    at += frames;
                    let mut output = vec![0.0; frames];
                    net.block(&input, &mut output);
                    let (expected, pairs) = net.instructions.run(OneByOne { layers: &mut layers, input: &input });
                    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&output), bits(&expected), "{}, {frames} frames", net.instructions.name());
                    if net.instructions.lanes() == 8 {
                        assert_eq!(pairs, *joined);
                    }
                }
            }
        }
    }
}
