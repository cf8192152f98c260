//! All layers of a stack, for each number of channels, so that their values stay in registers or near them.

use std::{marker::PhantomData, mem::MaybeUninit};

use super::{Layer, Signals};
use crate::simd::{
    Op, Rows, Simd,
    functions::{Function, Leaky, ScaledTanh},
    wide::Wide,
};

/// Frames that go through a whole layer together. A multiple of the lanes of every vector, and part of a block.
pub const TILE: usize = 16;

/// An activation that a layer is built with.
pub trait Kind: Function {
    /// With the layer's slope, where it has one.
    fn new(slope: f32) -> Self;
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

/// All layers, of `C` channels in strips of `R`.
pub struct Run<'a, F, const C: usize, const R: usize>(Job<'a>, PhantomData<F>);

impl<'a, F, const C: usize, const R: usize> Run<'a, F, C, R> {
    /// A job to be done.
    ///
    /// # Safety
    /// All signals have `C` rows and lie within the memory, for the frames up to a multiple of a tile; the layers have `C`
    /// channels, and weights in strips of `R`.
    pub unsafe fn new(job: Job<'a>) -> Self {
        Self(job, PhantomData)
    }
}

impl<F: Kind, const C: usize, const R: usize> Op for Run<'_, F, C, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Job { layers, memory, frames, signals } = self.0;
        let count = layers.len();
        let mut before = signals.before;
        for index in 0..count {
            let input = &layers[index].input;
            input.complete_with(simd, memory, frames);
            let next = if index + 1 < count { Some(layers[index + 1].input.now()) } else { signals.next };
            let tile = Tile::<F, C, R> {
                layer: &layers[index],
                input: input.now(),
                memory: memory.as_mut_ptr(),
                signals: Signals { before, next, ..signals },
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
            before = Some(signals.after);
            layers[index].input.advance(frames);
        }
    }
}

/// What a layer's frames are made of and go to.
#[derive(Clone, Copy)]
struct Tile<'a, F, const C: usize, const R: usize> {
    layer: &'a Layer,
    input: Rows,
    memory: *mut f32,
    signals: Signals,
    function: F,
}

impl<F: Function, const C: usize, const R: usize> Tile<'_, F, C, R> {
    /// Computes one vector of frames.
    ///
    /// # Safety
    /// All signals lie within the memory and have `C` rows; the layer's weights are for `C` channels in strips of `R`.
    #[inline(always)]
    unsafe fn run<S: Simd>(self, simd: S, frame: usize) {
        let Self { layer, input, memory, signals: Signals { condition, before, after, next }, function } = self;
        let at = |rows: Rows, row: usize| memory.wrapping_add(rows.start(row) + frame);
        let mut activated = [MaybeUninit::<S::V>::uninit(); C];
        // SAFETY: as the caller promises; `C` being a multiple of `R`, all activations are written before they are read.
        unsafe {
            let mut weights = layer.conv.as_ptr();
            let x = simd.load(at(condition, 0));
            for strip in 0..C / R {
                let mut sums = [x; R];
                for r in 0..R {
                    sums[r] = simd.mul_add(simd.splat(*weights.add(R + r)), x, simd.splat(*weights.add(r)));
                }
                weights = weights.add(2 * R);
                for &delay in &layer.delays {
                    let mut from = at(layer.input.before(delay), 0).cast_const();
                    for _ in 0..C {
                        add_row::<S, R>(simd, &mut sums, weights, simd.load(from));
                        weights = weights.add(R);
                        from = from.wrapping_offset(input.pitch);
                    }
                }
                for r in 0..R {
                    let row = strip * R + r;
                    let made = function.of(simd, sums[r]);
                    activated[row].write(made);
                    let total = match before {
                        Some(before) => simd.add(simd.load(at(before, row)), made),
                        None => made,
                    };
                    simd.store(at(after, row), total);
                }
            }
            let Some(next) = next else { return };
            let mut weights = layer.mix.as_ptr();
            for strip in 0..C / R {
                let mut sums = [x; R];
                for r in 0..R {
                    sums[r] = simd.add(simd.load(at(input, strip * R + r)), simd.splat(*weights.add(r)));
                }
                weights = weights.add(R);
                for channel in 0..C {
                    add_row::<S, R>(simd, &mut sums, weights, activated[channel].assume_init());
                    weights = weights.add(R);
                }
                for r in 0..R {
                    simd.store(at(next, strip * R + r), sums[r]);
                }
            }
        }
    }
}

/// Adds one row of a signal to `R` sums, each with its weight.
///
/// # Safety
/// There are `R` weights.
#[inline(always)]
unsafe fn add_row<S: Simd, const R: usize>(simd: S, sums: &mut [S::V; R], weights: *const f32, x: S::V) {
    for r in 0..R {
        // SAFETY: as the caller promises.
        let weight = simd.splat(unsafe { *weights.add(r) });
        sums[r] = simd.mul_add(weight, x, sums[r]);
    }
}
