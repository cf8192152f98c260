//! All layers of a stack, for each number of channels, so that their values stay in registers or near them.

use std::{hint::black_box, marker::PhantomData, mem::MaybeUninit};

use super::{Layer, Signals};
use crate::{
    memory::Rows,
    simd::{
        Op, Simd,
        functions::{Elementwise, LeakyRelu, ScaledTanh, scaled_sigmoid, scaled_tanh},
        strip::{TILE, add_row, biases},
        wide::Wide,
    },
};

/// Most channels of a layer.
pub const MAX_CHANNELS: usize = 16;

/// An activation that a layer is built with.
pub trait LayerActivation: Elementwise {
    /// Whether each channel has a second sum, the logistic function of which its activation is multiplied with.
    const IS_GATED: bool = false;
    /// With the layer's slope, where it has one.
    fn new(slope: f32) -> Self;
    /// Whether a strip's activations are made while its sums are in registers: those that take little, and gated ones
    /// where [`Simd::FUSES_GATES`]. Others are made of all strips together, where no sum has to wait for them.
    #[inline(always)]
    fn is_made_at_once<S: Simd>() -> bool {
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
    fn is_made_at_once<S: Simd>() -> bool {
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
    fn is_made_at_once<S: Simd>() -> bool {
        true
    }
}

/// A block whose signals were checked.
pub struct Job<'a> {
    pub layers: &'a mut [Layer],
    pub memory: &'a mut [f32],
    pub frames: usize,
    pub signals: Signals,
}

/// All layers, of `C` channels in strips of `R`, the last of what is left; 0 for as many as there are: that is slower, and less
/// to build.
pub struct Run<'a, F, const C: usize, const R: usize>(Job<'a>, PhantomData<F>);

impl<'a, F, const C: usize, const R: usize> Run<'a, F, C, R> {
    /// A job to be done, with weights laid out in strips of `laid_out` rows.
    ///
    /// # Safety
    /// The condition has one row, all other signals `C`, or where that is 0 as many as each other: a multiple of `R`, at most
    /// [`MAX_CHANNELS`]. They lie within the memory, for the frames up to a multiple of a tile; the layers have as
    /// many channels, and weights for them. These are as many for any strips: how they are laid out decides what is computed,
    /// not what is read.
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
        // Where there are several strips, the compiler must not know that nobody else sees the buffer: it would load all of it
        // before the first strip that reads it, and put it elsewhere for want of registers.
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
                // SAFETY: as whoever made it promised.
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

/// What a layer's frames are made of and go to.
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

/// What a tile's activations are made of, and then they, by their channels; behind them the same of their gates.
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
        const { assert!(C.is_multiple_of(R) || C % R == 4, "what is left after the last strip has no code") };
        // SAFETY: as the caller promises; all channels' activations are written before they are read.
        unsafe {
            let mut weights = self.layer.conv.as_ptr();
            for strip in 0..self.channels() / R {
                self.convolve::<S, R>(simd, frame, strip * R, &mut weights);
            }
            if C % R == 4 {
                self.convolve::<S, 4>(simd, frame, C - 4, &mut weights);
            }
            if !F::is_made_at_once::<S>() {
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

    /// How many there are.
    #[inline(always)]
    fn channels(self) -> usize {
        if C == 0 { self.input.count } else { C }
    }

    /// Where a vector of frames of a row is.
    #[inline(always)]
    fn at(self, rows: Rows, row: usize, frame: usize) -> *mut f32 {
        self.memory.wrapping_add(rows.start(row) + frame)
    }

    /// Where a row of the tile's own is.
    #[inline(always)]
    fn buffer(self, row: usize) -> *mut f32 {
        self.buffer.cast::<f32>().wrapping_add(row * TILE)
    }

    /// The convolution of the `N` channels from `first` on, which lies in the buffer, or its activations do; `weights` becomes
    /// where the next channels' are.
    ///
    /// # Safety
    /// As for [`Run::new`]; there are as many channels, with weights in a strip.
    #[inline(always)]
    unsafe fn convolve<S: Simd, const N: usize>(self, simd: S, frame: usize, first: usize, weights: &mut *const f32) {
        // SAFETY: as the caller promises.
        unsafe {
            let x = simd.load(self.at(self.condition, 0, frame));
            let mut sums = biases::<S, N>(simd, weights);
            let mut gates = if F::IS_GATED { biases::<S, N>(simd, weights) } else { sums };
            add_to_both::<S, F, N>(simd, &mut sums, &mut gates, weights, x);
            for &delay in &self.layer.delays {
                let rows = self.layer.input.delayed_from(frame, delay);
                let mut from = self.memory.wrapping_add(rows.at).cast_const();
                for _ in 0..self.channels() {
                    add_to_both::<S, F, N>(simd, &mut sums, &mut gates, weights, simd.load(from));
                    from = from.wrapping_add(rows.stride);
                }
            }
            for n in 0..N {
                if F::is_made_at_once::<S>() {
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

    /// Makes a channel's activation, and adds it to the sum.
    ///
    /// # Safety
    /// As for [`Run::new`]; there are as many channels.
    #[inline(always)]
    unsafe fn activate<S: Simd>(self, simd: S, frame: usize, row: usize, x: S::V, gate: S::V) {
        let mut made = self.function.apply(simd, x);
        if F::IS_GATED {
            made = simd.mul(made, scaled_sigmoid(simd, gate));
        }
        let sum = self.at(self.sum, row, frame);
        // SAFETY: as the caller promises.
        unsafe {
            simd.store(self.buffer(row), made);
            simd.store(sum, simd.add(simd.load(sum), made));
        }
    }

    /// What the next layer sees of the `N` channels from `first` on: the input and what is made of all activations; `weights`
    /// becomes where the next channels' are.
    ///
    /// # Safety
    /// As for [`Run::new`]; there are as many channels, with weights in a strip, and all activations were made.
    #[inline(always)]
    unsafe fn pointwise<S: Simd, const N: usize>(
        self,
        simd: S,
        frame: usize,
        first: usize,
        weights: &mut *const f32,
        next: Rows,
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = biases::<S, N>(simd, weights);
            for n in 0..N {
                sums[n] = simd.add(simd.load(self.at(self.input, first + n, frame)), sums[n]);
            }
            for channel in 0..self.channels() {
                add_row::<S, N>(simd, &mut sums, weights, simd.load(self.buffer(channel)));
            }
            for n in 0..N {
                simd.store(self.at(next, first + n, frame), sums[n]);
            }
        }
    }
}

/// Adds one row of a signal to `R` sums, and to those of their gates where they have some, as [`add_row`] does.
///
/// # Safety
/// There are `R` weights, and as many for the gates.
#[inline(always)]
unsafe fn add_to_both<S: Simd, F: LayerActivation, const R: usize>(
    simd: S,
    sums: &mut [S::V; R],
    gates: &mut [S::V; R],
    weights: &mut *const f32,
    x: S::V,
) {
    // SAFETY: as the caller promises.
    unsafe {
        add_row::<S, R>(simd, sums, weights, x);
        if F::IS_GATED {
            add_row::<S, R>(simd, gates, weights, x);
        }
    }
}
