//! A layer of a WaveNet of the common kind in one piece, built for each common number of channels, so that its values stay
//! in registers or near them.

use std::mem::MaybeUninit;

use super::{
    Activation, Level, Rows, Simd,
    functions::{Function, Leaky, ScaledTanh, TANH_SCALE},
    wide::Wide,
};
use crate::memory::Past;

/// Frames that go through a whole layer together. A multiple of the lanes of every vector.
const TILE: usize = 16;

/// A layer: a convolution of as many channels as it has inputs, what one signal adds to it, the activation of both, which is
/// summed up, and mixed and added to the input for the next layer.
#[derive(Debug, Clone)]
pub struct Layer {
    channels: usize,
    /// How long ago each tap is, frames; the oldest first.
    delays: Vec<usize>,
    bend: Bend,
    /// For each strip of rows: biases, weights of the condition, then those of each tap's channels.
    conv: Vec<f32>,
    /// For each strip of rows: biases, then weights of each channel.
    mix: Vec<f32>,
}

/// Activations of the common kind.
#[derive(Debug, Clone, Copy)]
enum Bend {
    Tanh,
    Leaky(f32),
}

/// Weights of a layer, each by the row that it is for and what it is of.
pub struct Weights<'a> {
    /// Of the convolution: row, channel, tap; the oldest first.
    pub conv: &'a dyn Fn(usize, usize, usize) -> f32,
    /// Its biases.
    pub conv_bias: &'a dyn Fn(usize) -> f32,
    /// Of the condition.
    pub condition: &'a dyn Fn(usize) -> f32,
    /// Of the way to the next layer: row, channel.
    pub mix: &'a dyn Fn(usize, usize) -> f32,
    /// Its biases.
    pub mix_bias: &'a dyn Fn(usize) -> f32,
}

/// Signals of a layer within a model's memory.
#[derive(Debug, Clone, Copy)]
pub struct Signals<'a> {
    /// What it sees.
    pub input: &'a Past,
    /// One row.
    pub condition: Rows,
    /// What its activations are added to; nothing where the sum begins.
    pub before: Option<Rows>,
    /// Where the sum goes.
    pub after: Rows,
    /// What the next layer sees; nothing where there is none.
    pub next: Option<Rows>,
}

/// How many rows are summed side by side: as many as there are registers for.
fn strip(channels: usize, lanes: usize) -> usize {
    match channels {
        6 | 12 => 6,
        8 | 16 if lanes == 16 => 8,
        4 | 8 | 16 => 4,
        few => few,
    }
}

impl Layer {
    /// The layer, where it is of the common kind: 2, 3, 4, 6, 8, 12 or 16 channels, [`Activation::Tanh`] or
    /// [`Activation::LeakyRelu`] with one slope. It plays with vectors of `level` alone.
    #[must_use]
    pub fn new(
        level: Level,
        channels: usize,
        delays: Vec<usize>,
        activation: &Activation,
        weights: &Weights<'_>,
    ) -> Option<Self> {
        let bend = match activation {
            Activation::Tanh => Bend::Tanh,
            Activation::LeakyRelu(slopes) if slopes.len() == 1 => Bend::Leaky(slopes[0]),
            _ => return None,
        };
        if !matches!(channels, 2 | 3 | 4 | 6 | 8 | 12 | 16) {
            return None;
        }
        let strip = strip(channels, level.lanes());
        let scale = match bend {
            Bend::Tanh => TANH_SCALE,
            Bend::Leaky(_) => 1.0,
        };
        let (mut conv, mut mix) = (Vec::new(), Vec::new());
        for first in (0..channels).step_by(strip) {
            let rows = first..first + strip;
            conv.extend(rows.clone().map(|row| scale * (weights.conv_bias)(row)));
            conv.extend(rows.clone().map(|row| scale * (weights.condition)(row)));
            for (tap, channel) in (0..delays.len()).flat_map(|tap| (0..channels).map(move |channel| (tap, channel))) {
                conv.extend(rows.clone().map(|row| scale * (weights.conv)(row, channel, tap)));
            }
            mix.extend(rows.clone().map(weights.mix_bias));
            for channel in 0..channels {
                mix.extend(rows.clone().map(|row| (weights.mix)(row, channel)));
            }
        }
        Some(Self { channels, delays, bend, conv, mix })
    }

    /// Computes a block. Frames beyond it up to a multiple of 16 are written, too.
    ///
    /// # Panics
    /// When signals do not lie within `memory`, or have another number of channels.
    #[inline(always)]
    pub fn run<S: Simd>(&self, simd: S, memory: &mut [f32], frames: usize, signals: Signals<'_>) {
        match self.bend {
            Bend::Tanh => self.run_with(simd, memory, frames, signals, ScaledTanh),
            Bend::Leaky(slope) => self.run_with(simd, memory, frames, signals, Leaky(slope)),
        }
    }

    #[inline(always)]
    fn run_with<S: Simd, F: Function>(
        &self,
        simd: S,
        memory: &mut [f32],
        frames: usize,
        signals: Signals<'_>,
        function: F,
    ) {
        let Signals { input, condition, before, after, next } = signals;
        for mirror in input.copies(frames) {
            mirror.copy(simd, memory);
        }
        let frames = frames.next_multiple_of(TILE);
        let fits = |rows: &Rows| rows.count == self.channels && rows.fit(frames, memory.len());
        let all = input.lies_within(memory.len(), frames) && condition.fit(frames, memory.len());
        assert!(all && fits(&input.now()) && fits(&after), "signals outside a model's memory");
        assert!(before.as_ref().is_none_or(fits) && next.as_ref().is_none_or(fits), "signals outside a model's memory");
        let oldest = self.delays.iter().max().copied().unwrap_or_default();
        assert!(input.reaches(oldest), "more past than is kept");
        let job = Job { layer: self, memory: memory.as_mut_ptr(), signals, function, frames };
        // SAFETY: all signals lie within the memory, as was checked, and `new` has laid out weights for these channels in
        // strips of this many rows.
        unsafe {
            match S::LANES {
                4 => job.all(Wide::<S, 4>(simd), 4),
                8 => job.all(Wide::<S, 2>(simd), 8),
                lanes => job.all(simd, lanes),
            }
        }
    }
}

/// A block whose signals were checked.
struct Job<'a, F> {
    layer: &'a Layer,
    memory: *mut f32,
    signals: Signals<'a>,
    function: F,
    frames: usize,
}

impl<F: Function> Job<'_, F> {
    /// Computes all tiles; `lanes` are those of the vectors that weights were laid out for.
    ///
    /// # Safety
    /// As for [`Job::tile`].
    #[inline(always)]
    unsafe fn all<S: Simd>(&self, simd: S, lanes: usize) {
        for frame in (0..self.frames).step_by(TILE) {
            // SAFETY: as the caller promises.
            unsafe {
                match (self.layer.channels, lanes) {
                    (2, _) => self.tile::<S, 2, 2>(simd, frame),
                    (3, _) => self.tile::<S, 3, 3>(simd, frame),
                    (4, _) => self.tile::<S, 4, 4>(simd, frame),
                    (6, _) => self.tile::<S, 6, 6>(simd, frame),
                    (8, 16) => self.tile::<S, 8, 8>(simd, frame),
                    (8, _) => self.tile::<S, 8, 4>(simd, frame),
                    (12, _) => self.tile::<S, 12, 6>(simd, frame),
                    (16, 16) => self.tile::<S, 16, 8>(simd, frame),
                    (16, _) => self.tile::<S, 16, 4>(simd, frame),
                    _ => {}
                }
            }
        }
    }

    /// Computes `C` channels, in strips of `R`, for one vector of frames, which is a tile.
    ///
    /// # Safety
    /// All signals lie within the memory and have `C` rows; the layer's weights are for `C` channels in strips of `R`.
    #[inline(always)]
    unsafe fn tile<S: Simd, const C: usize, const R: usize>(&self, simd: S, frame: usize) {
        let Signals { input, condition, before, after, next } = self.signals;
        let at = |rows: Rows, row: usize| self.memory.wrapping_add(rows.start(row) + frame);
        let mut activated = [MaybeUninit::<S::V>::uninit(); C];
        // SAFETY: as the caller promises; `C` being a multiple of `R`, all activations are written before they are read.
        unsafe {
            let mut weights = self.layer.conv.as_ptr();
            let x = simd.load(at(condition, 0));
            for strip in 0..C / R {
                let mut sums = [x; R];
                for r in 0..R {
                    sums[r] = simd.mul_add(simd.splat(*weights.add(R + r)), x, simd.splat(*weights.add(r)));
                }
                weights = weights.add(2 * R);
                for &delay in &self.layer.delays {
                    let rows = input.before(delay);
                    let mut from = at(rows, 0).cast_const();
                    for _ in 0..C {
                        add_row::<S, R>(simd, &mut sums, weights, simd.load(from));
                        weights = weights.add(R);
                        from = from.wrapping_offset(rows.pitch);
                    }
                }
                for r in 0..R {
                    let row = strip * R + r;
                    let made = self.function.of(simd, sums[r]);
                    activated[row].write(made);
                    let total = match before {
                        Some(before) => simd.add(simd.load(at(before, row)), made),
                        None => made,
                    };
                    simd.store(at(after, row), total);
                }
            }
            let Some(next) = next else { return };
            let mut weights = self.layer.mix.as_ptr();
            for strip in 0..C / R {
                let mut sums = [x; R];
                for r in 0..R {
                    sums[r] = simd.add(simd.load(at(input.now(), strip * R + r)), simd.splat(*weights.add(r)));
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
