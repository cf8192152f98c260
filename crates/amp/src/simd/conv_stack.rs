//! Convolutions one after the other with nothing but an activation between them, in one piece: entered once, however many
//! they are, and the common activations while the sums are in registers.

use super::{
    Activation, Op, Pass, Rows, Simd,
    functions::{Elementwise, LeakyRelu, TANH_SCALE, scaled_tanh},
    matrix::strip_of,
    strip::{TILE, add_row, biases},
    wide::Wide,
};
use crate::{delay_line::DelayLine, memory::BLOCK};

/// Convolutions one after the other, each with the same activation behind it.
#[derive(Debug)]
pub struct ConvStack {
    activation: FusedActivation,
    layers: Vec<Layer>,
    /// Values of memory that the inputs lie within, whatever their positions.
    reach: usize,
}

/// An activation: those that are fused with the convolution, done while the sums are in registers, and any other.
#[derive(Debug)]
enum FusedActivation {
    Tanh,
    Relu,
    LeakyRelu(f32),
    /// Done apart.
    None(Activation),
}

#[derive(Debug)]
struct Layer {
    input: DelayLine,
    /// How long ago each tap is, frames; the oldest first.
    delays: Vec<usize>,
    outputs: usize,
    /// For each strip of rows: biases, then the weights of each tap's channels.
    weights: Vec<f32>,
}

impl ConvStack {
    /// None yet.
    #[must_use]
    pub fn new(activation: &Activation) -> Self {
        let activation = match activation {
            Activation::Tanh => FusedActivation::Tanh,
            Activation::Relu => FusedActivation::Relu,
            Activation::LeakyRelu(slopes) if slopes.len() == 1 => FusedActivation::LeakyRelu(slopes[0]),
            other => FusedActivation::None(other.clone()),
        };
        Self { activation, layers: Vec::new(), reach: 0 }
    }

    /// Adds a convolution of the taps `delays` of `input` to `outputs` channels, with `weight(output, input, tap)` and
    /// `bias(output)`.
    ///
    /// # Panics
    /// When `input` is not what the convolution before makes, or keeps fewer frames than `delays` ask for.
    pub fn push(
        &mut self,
        input: DelayLine,
        delays: Vec<usize>,
        outputs: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize) -> f32,
    ) {
        let inputs = input.current().count;
        assert!(self.layers.last().is_none_or(|before| before.outputs == inputs), "channels that do not fit");
        assert!(delays.iter().all(|&delay| input.reaches(delay)), "a delay beyond the line");
        let scale = if matches!(self.activation, FusedActivation::Tanh) { TANH_SCALE } else { 1.0 };
        let mut weights = Vec::with_capacity(outputs * (delays.len() * inputs + 1));
        let mut first = 0;
        while first < outputs {
            let rows = first..first + strip_of(outputs - first);
            weights.extend(rows.clone().map(|row| scale * bias(row)));
            for (tap, channel) in (0..delays.len()).flat_map(|tap| (0..inputs).map(move |channel| (tap, channel))) {
                weights.extend(rows.clone().map(|row| scale * weight(row, channel, tap)));
            }
            first = rows.end;
        }
        self.reach = self.reach.max(input.end());
        self.layers.push(Layer { input, delays, outputs, weights });
    }

    /// Where the first one takes its input from.
    #[must_use]
    pub fn input(&self) -> Rows {
        self.layers[0].input.current()
    }

    /// Back to the beginning; the memory is another's to restore.
    pub fn reset(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.input.reset());
    }

    /// Computes a block, at most `BLOCK` frames, into `last`. Frames beyond it up to a multiple of 16 are written, too.
    ///
    /// # Panics
    /// When signals do not lie within `memory`, or `last` has another number of channels.
    pub fn run(&mut self, pass: Pass, memory: &mut [f32], last: Rows) {
        let outputs = self.layers.last().map_or(0, |layer| layer.outputs);
        let fits = last.count == outputs && last.fit(pass.frames.next_multiple_of(TILE), memory.len());
        assert!(fits && pass.frames <= BLOCK && self.reach <= memory.len(), "signals outside a model's memory");
        pass.instructions.run(Run { stack: self, pass, memory, last });
    }
}

/// A block whose signals were checked.
struct Run<'a> {
    stack: &'a mut ConvStack,
    pass: Pass,
    memory: &'a mut [f32],
    last: Rows,
}

impl Op for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { stack: ConvStack { activation, layers, .. }, pass, memory, last } = self;
        for index in 0..layers.len() {
            let next = layers.get(index + 1).map_or(last, |next| next.input.current());
            let layer = &mut layers[index];
            layer.input.mirror_wrap_with(simd, memory, pass.frames, TILE);
            let mut frame = 0;
            while frame < pass.frames {
                let (memory, next) = (memory.as_mut_ptr(), (next, frame));
                // SAFETY: the memory holds all signals, and each layer's weights are those of its channels, as was checked.
                unsafe {
                    match S::LANES {
                        4 => layer.tile(Wide::<S, 4>(simd), activation, memory, next),
                        8 => layer.tile(Wide::<S, 2>(simd), activation, memory, next),
                        _ => layer.tile(simd, activation, memory, next),
                    }
                }
                frame += TILE;
            }
            if let FusedActivation::None(activation) = activation {
                activation.apply(pass, memory, next);
            }
            layer.input.advance(pass.frames);
        }
    }
}

impl Layer {
    /// Computes one vector of frames.
    ///
    /// # Safety
    /// The input and `next`, which has as many rows as there are outputs, lie within the memory for these frames.
    #[inline(always)]
    unsafe fn tile<S: Simd>(&self, simd: S, activation: &FusedActivation, memory: *mut f32, next: (Rows, usize)) {
        let (mut weights, mut first) = (self.weights.as_ptr(), 0);
        while first < self.outputs {
            let strip = strip_of(self.outputs - first);
            // SAFETY: as the caller promises; strips are those that the weights were laid out in.
            unsafe {
                match strip {
                    4 => self.strip::<S, 4>(simd, activation, memory, first, next, &mut weights),
                    2 => self.strip::<S, 2>(simd, activation, memory, first, next, &mut weights),
                    _ => self.strip::<S, 1>(simd, activation, memory, first, next, &mut weights),
                }
            }
            first += strip;
        }
    }

    /// Computes `R` rows from `first` on; `weights` becomes where the next ones are.
    ///
    /// # Safety
    /// As for [`Layer::tile`]; there are weights for so many rows.
    #[inline(always)]
    unsafe fn strip<S: Simd, const R: usize>(
        &self,
        simd: S,
        activation: &FusedActivation,
        memory: *mut f32,
        first: usize,
        (next, frame): (Rows, usize),
        weights: &mut *const f32,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = biases::<S, R>(simd, weights);
            for &delay in &self.delays {
                let rows = self.input.delayed_from(frame, delay);
                let mut from = memory.wrapping_add(rows.at).cast_const();
                for _ in 0..rows.count {
                    add_row::<S, R>(simd, &mut sums, weights, simd.load(from));
                    from = from.wrapping_add(rows.stride);
                }
            }
            for r in 0..R {
                let made = match *activation {
                    FusedActivation::Tanh => scaled_tanh(simd, sums[r]),
                    FusedActivation::Relu => simd.max(sums[r], simd.splat(0.0)),
                    FusedActivation::LeakyRelu(slope) => LeakyRelu(slope).apply(simd, sums[r]),
                    FusedActivation::None(_) => sums[r],
                };
                simd.store(memory.wrapping_add(next.start(first + r) + frame), made);
            }
        }
    }
}
