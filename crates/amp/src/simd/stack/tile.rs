//! All layers of a stack, with code for each number of channels, so that values stay in registers or the first-level
//! cache.

use std::{hint::black_box, marker::PhantomData, mem::MaybeUninit};

use super::{Layer, Signals};
use crate::{
    memory::Rows,
    simd::{
        Op, Simd,
        functions::{Elementwise, LeakyRelu, ScaledTanh, scaled_sigmoid, scaled_tanh},
        strip::{TILE, add_biases, add_row, biases},
        wide::Wide,
    },
};

/// Maximum number of channels of a layer.
pub const MAX_CHANNELS: usize = 16;

/// An activation that is compiled into a layer.
pub trait LayerActivation: Elementwise {
    /// True if each channel has a second sum, whose logistic function multiplies the activation.
    const IS_GATED: bool = false;
    /// The activation; `slope` is for negative values.
    fn new(slope: f32) -> Self;
    /// True if the activations of a strip are computed while its sums are in registers: cheap ones, and gated ones if
    /// [`Simd::FUSES_GATES`]. Others are computed after all strips, so that no sum waits for them.
    #[inline(always)]
    fn is_fused<S: Simd>() -> bool {
        false
    }
}

/// [`ScaledTanh`] with a gate.
#[derive(Debug, Clone, Copy)]
pub struct GatedTanh;

impl Elementwise for GatedTanh {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V {
        scaled_tanh(simd, x)
    }
}

impl LayerActivation for GatedTanh {
    const IS_GATED: bool = true;

    #[inline(always)]
    fn new(_: f32) -> Self {
        Self
    }

    #[inline(always)]
    fn is_fused<S: Simd>() -> bool {
        S::FUSES_GATES
    }
}

impl LayerActivation for ScaledTanh {
    #[inline(always)]
    fn new(_: f32) -> Self {
        Self
    }
}

impl LayerActivation for LeakyRelu {
    #[inline(always)]
    fn new(slope: f32) -> Self {
        Self(slope)
    }

    #[inline(always)]
    fn is_fused<S: Simd>() -> bool {
        true
    }
}

/// A block whose signals have been checked.
pub struct Job<'a> {
    pub layers: &'a mut [Layer],
    pub memory: &'a mut [f32],
    pub frames: usize,
    pub signals: Signals,
}

/// All layers, with `C` channels in strips of `R` channels; the last strip may be shorter. With `C` = 0, the code works
/// for any number of channels; it is slower, but one copy suffices.
pub struct Run<'a, F, const C: usize, const R: usize>(Job<'a>, PhantomData<F>);

impl<'a, F, const C: usize, const R: usize> Run<'a, F, C, R> {
    /// A block, with weights in strips of `laid_out` rows.
    ///
    /// # Safety
    /// The condition has one row. All other signals have `C` rows, or if `C` is 0 the same number: a multiple of `R`,
    /// at most [`MAX_CHANNELS`]. They are inside the memory for the frames up to a multiple of a tile. The layers have
    /// as many channels, and weights for them. The number of weights does not depend on the strips: wrong strips give
    /// wrong results, but no access out of bounds.
    pub unsafe fn new(job: Job<'a>, laid_out: usize) -> Self {
        debug_assert_eq!(laid_out, R, "weights of other strips");
        Self(job, PhantomData)
    }
}

impl<F: LayerActivation, const C: usize, const R: usize> Op for Run<'_, F, C, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Job { layers, memory, frames, signals: Signals { condition, sum, next } } = self.0;
        let count = layers.len();
        let mut buffer = MaybeUninit::<TileBuffer>::uninit();
        let buffer = &raw mut buffer;
        // With several strips, the compiler must not know that the buffer is private: it would load all of it before
        // the first strip that reads it, and spill the registers.
        let buffer = if C == R { buffer } else { black_box(buffer) };
        for index in 0..count {
            let input = &layers[index].input;
            input.mirror_wrap_with(simd, memory, frames, TILE);
            let tile = Tile::<F, C, R> {
                layer: &layers[index],
                memory: memory.as_mut_ptr(),
                condition,
                input: input.current(),
                sum,
                next: if index + 1 < count { Some(layers[index + 1].input.current()) } else { next },
                function: F::new(layers[index].slope),
                buffer,
            };
            let mut frame = 0;
            while frame < frames {
                // SAFETY: guaranteed by the caller of `new`.
                unsafe {
                    match S::LANES {
                        4 => tile.run(Wide::<S, 4>(simd), frame),
                        8 => tile.run(Wide::<S, 2>(simd), frame),
                        _ => tile.run(simd, frame),
                    }
                }
                frame += TILE;
            }
            layers[index].input.advance(frames);
        }
    }
}

/// The signals and weights of a layer.
#[derive(Clone, Copy)]
struct Tile<'a, F, const C: usize, const R: usize> {
    layer: &'a Layer,
    memory: *mut f32,
    condition: Rows,
    input: Rows,
    sum: Rows,
    next: Option<Rows>,
    function: F,
    buffer: *mut MaybeUninit<TileBuffer>,
}

/// Sums of the channels of a tile, replaced by their activations; then the sums of the gates.
#[repr(align(64))]
struct TileBuffer {
    _rows: [[f32; TILE]; 2 * MAX_CHANNELS],
}

impl<F: LayerActivation, const C: usize, const R: usize> Tile<'_, F, C, R> {
    /// Computes one vector of frames.
    ///
    /// # Safety
    /// As for [`Run::new`].
    #[inline(always)]
    unsafe fn run<S: Simd>(self, simd: S, frame: usize) {
        const { assert!(C.is_multiple_of(R) || C % R == 4, "no code for the last strip") };
        // SAFETY: guaranteed by the caller; the activations of all channels are written before they are read.
        unsafe {
            let mut weights = self.layer.conv.as_ptr();
            for strip in 0..self.channels() / R {
                self.convolve::<S, R>(simd, frame, strip * R, &mut weights);
            }
            if C % R == 4 {
                self.convolve::<S, 4>(simd, frame, C - 4, &mut weights);
            }
            if !F::is_fused::<S>() {
                for row in 0..self.channels() {
                    let gate = if F::IS_GATED { simd.load(self.buffer(MAX_CHANNELS + row)) } else { simd.splat(0.0) };
                    self.activate(simd, frame, row, simd.load(self.buffer(row)), gate);
                }
            }
            let Some(next) = self.next else { return };
            let mut weights = self.layer.pointwise.as_ptr();
            for strip in 0..self.channels() / R {
                self.pointwise::<S, R>(simd, frame, strip * R, &mut weights, next);
            }
            if C % R == 4 {
                self.pointwise::<S, 4>(simd, frame, C - 4, &mut weights, next);
            }
        }
    }

    /// Number of channels.
    #[inline(always)]
    fn channels(self) -> usize {
        if C == 0 { self.input.count } else { C }
    }

    /// Address of a vector of frames of a row.
    #[inline(always)]
    fn at(self, rows: Rows, row: usize, frame: usize) -> *mut f32 {
        self.memory.wrapping_add(rows.start(row) + frame)
    }

    /// Address of a row of the buffer.
    #[inline(always)]
    fn buffer(self, row: usize) -> *mut f32 {
        self.buffer.cast::<f32>().wrapping_add(row * TILE)
    }

    /// Computes the convolution of `N` channels from channel `first` and stores it, or its activation, in the buffer.
    /// Advances `weights` past theirs.
    ///
    /// # Safety
    /// As for [`Run::new`]; there are this many channels, with weights in one strip.
    #[inline(always)]
    unsafe fn convolve<S: Simd, const N: usize>(self, simd: S, frame: usize, first: usize, weights: &mut *const f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = [simd.splat(0.0); N];
            let mut gates = sums;
            for &delay in &self.layer.delays {
                let rows = self.layer.input.delayed_from(frame, delay);
                let mut from = self.memory.wrapping_add(rows.at).cast_const();
                for _ in 0..self.channels() {
                    add_to_both::<S, F, N>(simd, &mut sums, &mut gates, weights, simd.load(from));
                    from = from.wrapping_add(rows.stride);
                }
            }
            // These are often larger than the products above, which would be rounded to their precision if they came
            // first.
            add_to_both::<S, F, N>(simd, &mut sums, &mut gates, weights, simd.load(self.at(self.condition, 0, frame)));
            add_biases::<S, N>(simd, &mut sums, weights);
            if F::IS_GATED {
                add_biases::<S, N>(simd, &mut gates, weights);
            }
            for n in 0..N {
                if F::is_fused::<S>() {
                    self.activate(simd, frame, first + n, sums[n], gates[n]);
                } else {
                    simd.store(self.buffer(first + n), sums[n]);
                    if F::IS_GATED {
                        simd.store(self.buffer(MAX_CHANNELS + first + n), gates[n]);
                    }
                }
            }
        }
    }

    /// Computes the activation of a channel and adds it to the sum.
    ///
    /// # Safety
    /// As for [`Run::new`]; there are this many channels.
    #[inline(always)]
    unsafe fn activate<S: Simd>(self, simd: S, frame: usize, row: usize, x: S::V, gate: S::V) {
        let mut output = self.function.apply(simd, x);
        if F::IS_GATED {
            output = simd.mul(output, scaled_sigmoid(simd, gate));
        }
        let sum = self.at(self.sum, row, frame);
        // SAFETY: guaranteed by the caller.
        unsafe {
            simd.store(self.buffer(row), output);
            simd.store(sum, simd.add(simd.load(sum), output));
        }
    }

    /// Computes the input of the next layer for `N` channels from channel `first`: the input plus the 1x1 convolution
    /// of all activations. Advances `weights` past theirs.
    ///
    /// # Safety
    /// As for [`Run::new`]; there are this many channels, with weights in one strip, and all activations are in the
    /// buffer.
    #[inline(always)]
    unsafe fn pointwise<S: Simd, const N: usize>(
        self,
        simd: S,
        frame: usize,
        first: usize,
        weights: &mut *const f32,
        next: Rows,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = biases::<S, N>(simd, weights);
            for channel in 0..self.channels() {
                add_row::<S, N>(simd, &mut sums, weights, simd.load(self.buffer(channel)));
            }
            // The input is often larger than the sum. If it came first, every product would be rounded to its precision.
            for n in 0..N {
                let input = simd.load(self.at(self.input, first + n, frame));
                simd.store(self.at(next, first + n, frame), simd.add(input, sums[n]));
            }
        }
    }
}

/// Adds a row of a signal to `R` sums, and to those of their gates if there are any, like [`add_row`].
///
/// # Safety
/// `weights` points to `R` weights, and as many for the gates.
#[inline(always)]
unsafe fn add_to_both<S: Simd, F: LayerActivation, const R: usize>(
    simd: S,
    sums: &mut [S::V; R],
    gates: &mut [S::V; R],
    weights: &mut *const f32,
    x: S::V,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        add_row::<S, R>(simd, sums, weights, x);
        if F::IS_GATED {
            add_row::<S, R>(simd, gates, weights, x);
        }
    }
}
