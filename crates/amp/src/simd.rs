//! Vectors of `f32`, with one module per instruction set, which is chosen when a model is built. All `unsafe` of this
//! crate is here.
//!
//! Vector code implements [`Op`]. [`InstructionSet::run`] calls its [`Op::run`] inside a function that the compiler
//! builds for the instruction set. Everything that it calls must be `#[inline(always)]`: other functions would be built
//! for the oldest supported processor. `make bench-amp` detects that.
#![allow(unsafe_code, reason = "vector instructions; each block has a SAFETY comment")]
#![allow(clippy::needless_range_loop, reason = "loops of constant length over several arrays, which become registers")]

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
pub use fourier::{BINS, Fourier, ROW, STEPS, Spectrum};
pub use functions::Identity;
pub use matrix::{Matrix, Sum, multiply};
pub use matrix_vector::{ColumnMajor, dot, padded};
pub use recurrent::{Cell, Frames, GateWeights, Gru, Head, Lstm, RecurrentCall};
pub use spectra::sum_of_products;
pub use stack::{LayerWeights, Signals, Stack};

/// Number of lanes of the longest vector, a multiple of those of all others.
pub const MAX_LANES: usize = 16;

const _: () = assert!(BLOCK.is_multiple_of(MAX_LANES), "vectors fill a block");

/// An instruction set of this processor. A value proves that the processor has it.
pub trait Simd: Copy {
    /// A vector.
    type V: Copy;
    /// Number of `f32` in a vector.
    const LANES: usize;
    /// Number of vectors of frames for which four rows are summed at once, so that the sums do not wait for each other.
    /// Limited by the number of registers.
    const CONCURRENT_VECTORS: usize;
    /// True if recurrent layers of common sizes have code of their own.
    const HAS_RECURRENT_SIZES: bool = true;
    /// True if gated activations are computed while both sums are in registers, which takes many registers.
    const FUSES_GATES: bool = false;

    /// Runs `op` in a function of its own, built for this instruction set.
    fn enter<O: Op>(self, op: O) -> O::Output;

    /// `x` in each lane.
    fn splat(self, x: f32) -> Self::V;

    /// Loads [`Simd::LANES`] values.
    ///
    /// # Safety
    /// `from` points to [`Simd::LANES`] values.
    unsafe fn load(self, from: *const f32) -> Self::V;

    /// Stores all lanes.
    ///
    /// # Safety
    /// `to` points to space for [`Simd::LANES`] values.
    unsafe fn store(self, to: *mut f32, x: Self::V);

    /// `a * b + c`, rounded once if the processor can.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a + b`.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`.
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller value; `b` if `a` is NaN. If `b` is NaN, the result depends on the processor.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger value; NaN is handled as in [`Simd::min`].
    fn max(self, a: Self::V, b: Self::V) -> Self::V;

    /// The lanes of `a` and `b` in turn: those of the first halves, then those of the second halves.
    fn interleave(self, a: Self::V, b: Self::V) -> [Self::V; 2];

    /// Returns `x`. The compiler does not reorder barriers, so the computations between them keep the order of the
    /// source. Without effect by default; only the instruction sets that it was measured to speed up implement it.
    #[inline(always)]
    fn barrier(self, x: Self::V) -> Self::V {
        x
    }

    /// The absolute value.
    #[inline(always)]
    fn abs(self, x: Self::V) -> Self::V {
        self.max(x, self.sub(self.splat(0.0), x))
    }

    /// The sum of all lanes, computed by halves, so that the additions do not wait for each other.
    #[inline(always)]
    fn reduce_sum(self, x: Self::V) -> f32 {
        const { assert!(MAX_LANES.is_multiple_of(Self::LANES)) };
        let mut lanes = [0.0; MAX_LANES];
        // SAFETY: no vector has more than MAX_LANES lanes.
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

/// The computation of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Instruction set.
    pub instructions: InstructionSet,
    /// Number of frames.
    pub frames: usize,
}

/// Vector code.
pub trait Op {
    /// Result.
    type Output;
    /// Runs the code. Must be `#[inline(always)]`, and so must everything that it calls.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The instruction sets that this crate supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// Only instructions that every processor of this architecture has.
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
    /// All instruction sets of this processor, the best first.
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

    /// The best instruction set of this processor.
    #[must_use]
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// This instruction set, or one with shorter vectors if `values` fit into one vector (two short vectors do not wait
    /// for each other) or if shorter vectors leave fewer lanes unused.
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

    /// Name of the instruction set.
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

    /// Runs `op` with this instruction set.
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

    /// Applies every operation to the same values.
    struct Every([f32; MAX_LANES]);

    impl Op for Every {
        type Output = [[f32; MAX_LANES]; 13];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut all = [[0.0; MAX_LANES]; 13];
            for at in (0..MAX_LANES).step_by(S::LANES) {
                // SAFETY: at least S::LANES values are left, since MAX_LANES is a multiple of them.
                let x = unsafe { simd.load(self.0[at..].as_ptr()) };
                let [two, three, nan] = [2.0, 3.0, f32::NAN].map(|value| simd.splat(value));
                let [first, second] = simd.interleave(x, two);
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
                    first,
                    second,
                ];
                for (out, result) in all.iter_mut().zip(results) {
                    // SAFETY: there is space for all lanes.
                    unsafe { simd.store(out[at..].as_mut_ptr(), result) };
                }
            }
            all
        }
    }

    #[test]
    fn shorter_vectors_are_chosen_for_few_values_or_unused_lanes() {
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
                let lane = i % lanes;
                let [first, second] = [0, lanes / 2].map(|half| [vector[half + lane / 2], 2.0][lane % 2]);
                [x * 2.0 + 3.0, x + 2.0, x - 3.0, x * x, 2.0 / x, min, max, x, x, x.abs(), sum, first, second]
            };
            let out = instructions.run(Every(values));
            for i in 0..MAX_LANES {
                assert_eq!(out.map(|operation| operation[i]), expected(i), "{}, value {i}", instructions.name());
            }
        }
    }
}
