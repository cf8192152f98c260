//! Networks that are computed frame by frame: recurrent layers, and what stands between and behind them.

mod layer;
mod plan;

use self::layer::Layer;
pub use self::plan::{DenseWeights, KerasConvWeights, PiecewiseLinear, Plan, RecurrentWeights};
use super::Net;
use crate::{
    memory::{Aligned, BLOCK},
    simd::{Frames, InstructionSet, Op, Simd, padded},
};

/// Frames in which a knob gets from one end to the other.
const KNOB_FRAMES: f32 = 1024.0;

/// Layers one after the other. The first sees the signal and the knobs.
#[derive(Debug, Clone)]
pub struct Recurrent {
    instructions: InstructionSet,
    layers: Vec<Layer>,
    /// Where each knob is, and where it goes.
    knobs: Vec<(f32, f32)>,
    /// What the first layer sees: a row for each frame of a block.
    seen: Aligned,
    outputs: usize,
    prewarm_frames: usize,
    work: u64,
}

impl Recurrent {
    /// Layers that see the signal and `knobs` more inputs.
    #[must_use]
    pub fn new(plans: &[Plan], knobs: usize, prewarm_frames: usize, instructions: InstructionSet) -> Self {
        let instructions = instructions.for_values(plans.iter().map(Plan::units).max().unwrap_or_default());
        let mut width = knobs + 1;
        let mut layers = Vec::with_capacity(plans.len());
        for plan in plans {
            Layer::add(&mut layers, plan, width, instructions);
            width = plan.outputs(width);
        }
        let (seen, knobs) = (Aligned::new(BLOCK * padded(knobs + 1), []), vec![(0.0, 0.0); knobs]);
        let work = plans.iter().map(Plan::work).sum();
        Self { instructions, layers, knobs, seen, outputs: width, prewarm_frames, work }
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
        self.knobs.iter_mut().for_each(|(now, aim)| *now = *aim);
    }

    fn knobs(&self) -> usize {
        self.knobs.len()
    }

    fn turn(&mut self, knob: usize, value: f32) {
        if let Some((_, aim)) = self.knobs.get_mut(knob) {
            *aim = value;
        }
    }

    fn work(&self) -> u64 {
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
        let Recurrent { layers, knobs, seen, outputs, .. } = self.net;
        let (frames, count) = (self.input.len(), knobs.len() + 1);
        let mut signal = Frames { values: self.input, stride: 1, count };
        if count > 1 {
            let stride = padded(count);
            for (seen, &x) in seen.chunks_exact_mut(stride).zip(self.input) {
                seen[0] = x;
                for ((now, aim), value) in knobs.iter_mut().zip(&mut seen[1..]) {
                    *now += (*aim - *now).clamp(-1.0 / KNOB_FRAMES, 1.0 / KNOB_FRAMES);
                    *value = *now;
                }
            }
            signal = Frames { values: seen, stride, count };
        }
        for layer in layers.iter_mut() {
            signal = layer.block(simd, frames, signal);
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
