//! Vectors of `f32`, one instruction set a file, chosen when a model is made. All `unsafe` of this crate is here.
//!
//! Work that is to run on vectors is an [`Op`]. [`InstructionSet::run`] calls its [`Op::run`] inside a function that the compiler
//! builds for the instruction set, so everything below it must be `#[inline(always)]`: what is not would be built for the
//! oldest processor. `make bench-amp` notices that.
#![allow(unsafe_code, reason = "vector instructions; each block with its reason")]
#![allow(clippy::needless_range_loop, reason = "loops of known length over several arrays, which become registers")]

mod activation;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod conv_stack;
mod convolution;
mod denormals;
mod elements;
mod fir;
mod fourier;
mod functions;
mod matrix;
mod matrix_vector;
mod mirror;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod recurrent;
mod spectra;
mod stack;
mod strip;
mod wide;

use crate::memory::BLOCK;

pub use activation::Activation;
pub use conv_stack::ConvStack;
pub use convolution::Convolution;
pub use denormals::flush_denormals;
pub use elements::{Combine, combine, silence};
pub use fir::{STEP, SUMS, fir};
pub use fourier::{BINS, Fourier, ROW, Spectrum};
pub use functions::Identity;
pub use matrix::{Matrix, Sum, multiply};
pub use matrix_vector::{ColumnMajor, dot, padded};
pub use recurrent::{Cell, Frames, GateWeights, Gru, Head, Lstm};
pub use spectra::sum_of_products;
pub use stack::{LayerWeights, Signals, Stack};

/// The lanes of the longest vector, a multiple of those of every other.
pub const MAX_LANES: usize = 16;

const _: () = assert!(BLOCK.is_multiple_of(MAX_LANES), "vectors fill a block");

/// An instruction set that this processor has. A value of one is the proof of it.
pub trait Simd: Copy {
    /// A vector.
    type V: Copy;
    /// Number of `f32` in a vector.
    const LANES: usize;
    /// Number of vectors of frames that four rows are summed in side by side, so that one sum need not wait for another:
    /// as many as there are registers for.
    const ABREAST: usize;
    /// Whether recurrent layers of the usual sizes are built for their sizes: portable code is longer than what that saves.
    const HAS_RECURRENT_SIZES: bool = true;
    /// Whether gated activations are made while the sums of both halves are in registers: there must be enough of those.
    const FUSES_GATES: bool = false;

    /// Does the work in a function of its own, built for these instructions.
    fn enter<O: Op>(self, op: O) -> O::Output;

    /// `x` in each lane.
    fn splat(self, x: f32) -> Self::V;

    /// The first [`Simd::LANES`] values.
    ///
    /// # Safety
    /// There are as many values at `from`.
    unsafe fn load(self, from: *const f32) -> Self::V;

    /// Writes all lanes.
    ///
    /// # Safety
    /// There is room for [`Simd::LANES`] values at `to`.
    unsafe fn store(self, to: *mut f32, x: Self::V);

    /// `a * b + c`, rounded once where the processor can.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a + b`.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`.
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller; `b` where `a` is no number. Where `b` is none, it depends on the processor which of the two it is.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger; where one is no number, as [`Simd::min`].
    fn max(self, a: Self::V, b: Self::V) -> Self::V;

    /// `x`, made and used where it stands: the compiler moves none of these past another, so that work stays in the
    /// order that it is written in. Where it was never measured what that brings, it does nothing.
    #[inline(always)]
    fn barrier(self, x: Self::V) -> Self::V {
        x
    }

    /// The value without its sign.
    #[inline(always)]
    fn abs(self, x: Self::V) -> Self::V {
        self.max(x, self.sub(self.splat(0.0), x))
    }

    /// The sum of all lanes: of halves, so that one need not wait for all others.
    #[inline(always)]
    fn reduce_sum(self, x: Self::V) -> f32 {
        const { assert!(MAX_LANES.is_multiple_of(Self::LANES)) };
        let mut lanes = [0.0; MAX_LANES];
        // SAFETY: no vector is longer.
        unsafe { self.store(lanes.as_mut_ptr(), x) };
        for half in [8, 4, 2, 1] {
            if half < Self::LANES {
                for i in 0..half {
                    lanes[i] += lanes[i + half];
                }
            }
        }
        lanes[0]
    }
}

/// How a block is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// With which instructions.
    pub instructions: InstructionSet,
    /// How many frames.
    pub frames: usize,
}

/// Work to be done with vectors.
pub trait Op {
    /// What comes of it.
    type Output;
    /// Does it. Must be `#[inline(always)]`, like all that it calls.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The instruction sets that this crate is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// What every processor has.
    Portable(portable::Portable),
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl InstructionSet {
    /// All that this processor has, the best first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            sets.extend(avx512::Avx512::new().map(Self::Avx512));
            sets.extend(avx2::Avx2::new().map(Self::Avx2));
        }
        #[cfg(target_arch = "aarch64")]
        sets.push(Self::Neon(neon::Neon::new()));
        sets.push(Self::Portable(portable::Portable));
        sets
    }

    /// The best that this processor has.
    #[must_use]
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// The same, or shorter vectors where a single one would hold so many values, two that need not wait for each other taking
    /// less time, and where fewer of their lanes would be empty.
    #[must_use]
    pub(crate) fn for_values(self, values: usize) -> Self {
        let shorter = match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => Self::Avx2(simd.shorter()),
            instructions => instructions,
        };
        let empty = |instructions: Self| values.next_multiple_of(instructions.lanes()) - values;
        if values <= self.lanes() || empty(shorter) < empty(self) { shorter } else { self }
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable(_) => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "AVX-512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "NEON",
        }
    }

    /// Number of `f32` in a vector.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Self::Portable(_) => portable::Portable::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => avx2::Avx2::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => avx512::Avx512::LANES,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => neon::Neon::LANES,
        }
    }

    /// Does the work with these instructions.
    #[inline]
    pub(crate) fn run<O: Op>(self, op: O) -> O::Output {
        match self {
            Self::Portable(simd) => simd.enter(op),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.enter(op),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.enter(op),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => simd.enter(op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation on the same values: what each makes of all of them.
    struct Every([f32; MAX_LANES]);

    impl Op for Every {
        type Output = [[f32; MAX_LANES]; 11];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut all = [[0.0; MAX_LANES]; 11];
            for at in (0..MAX_LANES).step_by(S::LANES) {
                // SAFETY: as many values are left, a multiple of the lanes of any vector.
                let x = unsafe { simd.load(self.0[at..].as_ptr()) };
                let [two, three, nan] = [2.0, 3.0, f32::NAN].map(|value| simd.splat(value));
                let results = [
                    simd.mul_add(x, two, three),
                    simd.add(x, two),
                    simd.sub(x, three),
                    simd.mul(x, x),
                    simd.div(two, x),
                    simd.min(x, two),
                    simd.max(x, three),
                    simd.min(nan, x),
                    simd.max(nan, x),
                    simd.abs(x),
                    simd.splat(simd.reduce_sum(x)),
                ];
                for (made, result) in all.iter_mut().zip(results) {
                    // SAFETY: there is room for all lanes.
                    unsafe { simd.store(made[at..].as_mut_ptr(), result) };
                }
            }
            all
        }
    }

    #[test]
    fn vectors_are_shorter_where_a_single_one_would_do_or_lanes_be_empty() {
        for instructions in InstructionSet::all() {
            for values in [16, 20, 40] {
                assert_eq!(
                    instructions.for_values(values).lanes(),
                    instructions.lanes().min(8),
                    "{}, {values}",
                    instructions.name()
                );
            }
            assert_eq!((instructions.for_values(25), instructions.for_values(32)), (instructions, instructions));
        }
    }

    #[test]
    fn all_instruction_sets_compute_the_same() {
        let values: [f32; MAX_LANES] = std::array::from_fn(|i| [-1.5, 4.0, 0.25, -8.0][i % 4] * (1 + i / 4) as f32);
        for instructions in InstructionSet::all() {
            let lanes = instructions.lanes();
            let expected = |i: usize| {
                let (x, vector) = (values[i], &values[i / lanes * lanes..][..lanes]);
                let (min, max, sum) = (x.min(2.0), x.max(3.0), vector.iter().sum());
                [x * 2.0 + 3.0, x + 2.0, x - 3.0, x * x, 2.0 / x, min, max, x, x, x.abs(), sum]
            };
            let made = instructions.run(Every(values));
            for i in 0..MAX_LANES {
                assert_eq!(made.map(|operation| operation[i]), expected(i), "{}, value {i}", instructions.name());
            }
        }
    }
}
