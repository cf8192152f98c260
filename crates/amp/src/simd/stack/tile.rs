//! All layers of a stack, for each number of channels, so that their values stay in registers or near them.

use std::{marker::PhantomData, mem::MaybeUninit};

use super::{Layer, Signals};
use crate::simd::{
    Op, Rows, Simd,
    functions::{Function, Leaky, ScaledTanh, scaled_sigmoid, scaled_tanh},
    strip::{TILE, add_row, biases},
    wide::Wide,
};

/// Most channels of a layer.
pub const MOST_CHANNELS: usize = 16;

/// An activation that a layer is built with.
pub trait Kind: Function {
    /// Whether each channel has a second sum, the logistic function of which its activation is multiplied with.
    const IS_GATED: bool = false;
    /// With the layer's slope, where it has one.
    fn new(slope: f32) -> Self;
}

/// [`ScaledTanh`] with a gate.
#[derive(Debug, Clone, Copy)]
pub struct GatedTanh;

impl Function for GatedTanh {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::V) -> S::V {
        scaled_tanh(simd, x)
    }
}

impl Kind for GatedTanh {
    const IS_GATED: bool = true;

    #[inline(always)]
    fn new(_: f32) -> Self {
        Self
    }
}

impl Kind for ScaledTanh {
    #[inline(always)]
    fn new(_: f32) -> Self {
        Self
    }
}

impl Kind for Leaky {
    #[inline(always)]
    fn new(slope: f32) -> Self {
        Self(slope)
    }
}

/// A block whose signals were checked.
pub struct Job<'a> {
    pub layers: &'a mut [Layer],
    pub memory: &'a mut [f32],
    pub frames: usize,
    pub signals: Signals,
}

/// All layers, of `C` channels in strips of `R`; 0 for as many as there are: that is slower, and less to build.
pub struct Run<'a, F, const C: usize, const R: usize>(Job<'a>, PhantomData<F>);

impl<'a, F, const C: usize, const R: usize> Run<'a, F, C, R> {
    /// A job to be done.
    ///
    /// # Safety
    /// All signals have `C` rows, of 0 as many as each other and at most [`MOST_CHANNELS`], and lie within the memory, for the
    /// frames up to a multiple of a tile; the layers have as many channels, and weights in strips of `R`.
    pub unsafe fn new(job: Job<'a>) -> Self {
        Self(job, PhantomData)
    }
}

impl<F: Kind, const C: usize, const R: usize> Op for Run<'_, F, C, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Job { layers, memory, frames, signals: Signals { condition, sum, next } } = self.0;
        let count = layers.len();
        for index in 0..count {
            let input = &layers[index].input;
            input.complete_with(simd, memory, frames);
            let tile = Tile::<F, C, R> {
                layer: &layers[index],
                memory: memory.as_mut_ptr(),
                condition,
                input: input.now(),
                sum,
                next: if index + 1 < count { Some(layers[index + 1].input.now()) } else { next },
                function: F::new(layers[index].slope),
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
}

impl<F: Kind, const C: usize, const R: usize> Tile<'_, F, C, R> {
    /// Computes one vector of frames.
    ///
    /// # Safety
    /// As for [`Run::new`].
    #[inline(always)]
    unsafe fn run<S: Simd>(self, simd: S, frame: usize) {
        let Self { layer, memory, condition, input, sum, next, function } = self;
        let at = |rows: Rows, row: usize| memory.wrapping_add(rows.start(row) + frame);
        let channels = if C == 0 { input.count } else { C };
        let mut activated = [MaybeUninit::<S::V>::uninit(); MOST_CHANNELS];
        // SAFETY: as the caller promises; channels being a multiple of `R`, all activations are written before they are read.
        unsafe {
            let mut weights = layer.conv.as_ptr();
            let x = simd.load(at(condition, 0));
            for strip in 0..channels / R {
                let mut sums = biases::<S, R>(simd, &mut weights);
                let mut gates = if F::IS_GATED { biases::<S, R>(simd, &mut weights) } else { sums };
                add_to_both::<S, F, R>(simd, &mut sums, &mut gates, &mut weights, x);
                for &delay in &layer.delays {
                    let mut from = at(layer.input.before(delay), 0).cast_const();
                    for _ in 0..channels {
                        add_to_both::<S, F, R>(simd, &mut sums, &mut gates, &mut weights, simd.load(from));
                        from = from.wrapping_offset(input.pitch);
                    }
                }
                for r in 0..R {
                    let row = strip * R + r;
                    let mut made = function.of(simd, sums[r]);
                    if F::IS_GATED {
                        made = simd.mul(made, scaled_sigmoid(simd, gates[r]));
                    }
                    activated[row].write(made);
                    simd.store(at(sum, row), simd.add(simd.load(at(sum, row)), made));
                }
            }
            let Some(next) = next else { return };
            let mut weights = layer.mix.as_ptr();
            for strip in 0..channels / R {
                let mut sums = [x; R];
                for r in 0..R {
                    sums[r] = simd.add(simd.load(at(input, strip * R + r)), simd.splat(*weights.add(r)));
                }
                weights = weights.add(R);
                for channel in 0..channels {
                    add_row::<S, R>(simd, &mut sums, &mut weights, activated[channel].assume_init());
                }
                for r in 0..R {
                    simd.store(at(next, strip * R + r), sums[r]);
                }
            }
        }
    }
}

/// Adds one row of a signal to `R` sums, and to those of their gates where they have some, as [`add_row`] does.
///
/// # Safety
/// There are `R` weights, and as many for the gates.
#[inline(always)]
unsafe fn add_to_both<S: Simd, F: Kind, const R: usize>(
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
