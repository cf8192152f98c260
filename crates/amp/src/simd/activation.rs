//! Activation functions, applied to signals.

use std::sync::Arc;

use super::{
    Op, Pass, Simd,
    elements::each,
    functions::{Elementwise, LeakyRelu, TANH_SCALE, clamp, fast_tanh, sigmoid, tanh, tanh_ratio},
};
use crate::memory::Rows;

/// An activation function.
#[derive(Debug, Clone, PartialEq)]
pub enum Activation {
    /// The value itself.
    Identity,
    /// Hyperbolic tangent.
    Tanh,
    /// Approximation of the hyperbolic tangent that Neural Amp Modeler's core calls `fast_tanh`.
    FastTanh,
    /// The value clamped to -1 to 1.
    HardTanh,
    /// The value itself between two limits, lines of other slopes outside.
    LeakyHardTanh {
        /// Lower limit.
        min: f32,
        /// Upper limit.
        max: f32,
        /// Slope below the lower limit.
        min_slope: f32,
        /// Slope above the upper limit.
        max_slope: f32,
    },
    /// The value, or 0 if negative.
    Relu,
    /// Negative values are scaled, by one factor per row or one for all.
    LeakyRelu(Arc<[f32]>),
    /// The value, or e^x - 1 if negative.
    Elu,
    /// Logistic function.
    Sigmoid,
    /// x times its logistic function.
    Silu,
    /// x times (x + 3) / 6, the latter clamped to 0 to 1.
    HardSwish,
    /// x / (1 + |x|).
    SoftSign,
}

impl Activation {
    /// True if the function contains a division, which takes several times the instructions of any other function.
    #[must_use]
    pub fn has_division(&self) -> bool {
        match self {
            Self::Tanh | Self::FastTanh | Self::Elu | Self::Sigmoid | Self::Silu | Self::SoftSign => true,
            Self::Identity
            | Self::HardTanh
            | Self::LeakyHardTanh { .. }
            | Self::Relu
            | Self::LeakyRelu(_)
            | Self::HardSwish => false,
        }
    }

    /// Replaces the frames of each row by their activation.
    ///
    /// # Panics
    /// If rows are outside `memory`.
    pub fn apply(&self, pass: Pass, memory: &mut [f32], rows: Rows) {
        pass.instructions.run(Activate { activation: self, memory, rows, frames: pass.frames });
    }

    /// [`Activation::apply`] inside vector code. It calls the same function, which is too long to be duplicated.
    #[inline(always)]
    pub fn apply_with<S: Simd>(&self, simd: S, memory: &mut [f32], rows: Rows, frames: usize) {
        simd.enter(Activate { activation: self, memory, rows, frames });
    }

    #[inline(always)]
    fn replace<S: Simd>(&self, simd: S, memory: &mut [f32], rows: Rows, frames: usize) {
        macro_rules! map {
            ($x:ident, $value:expr) => {
                each!(simd, memory, _, [$x in rows] => rows, frames, $value)
            };
        }
        match self {
            Self::Identity => {}
            Self::Tanh => map!(x, tanh(simd, x)),
            Self::FastTanh => map!(x, fast_tanh(simd, x)),
            Self::HardTanh => map!(x, clamp(simd, x, -1.0, 1.0)),
            &Self::LeakyHardTanh { min, max, min_slope, max_slope } => map!(x, {
                let within = clamp(simd, x, min, max);
                let below = simd.min(simd.sub(x, simd.splat(min)), simd.splat(0.0));
                let above = simd.max(simd.sub(x, simd.splat(max)), simd.splat(0.0));
                let lower = simd.mul_add(below, simd.splat(min_slope), within);
                simd.mul_add(above, simd.splat(max_slope), lower)
            }),
            Self::Relu => map!(x, simd.max(x, simd.splat(0.0))),
            Self::LeakyRelu(slopes) => {
                let slope = |row: usize| *slopes.get(row).or(slopes.first()).unwrap_or(&0.0);
                each!(simd, memory, row, [x in rows] => rows, frames, LeakyRelu(slope(row)).apply(simd, x));
            }
            // With t = tanh(x / 2): e^x - 1 = 2 t / (1 - t).
            Self::Elu => map!(x, {
                let zero = simd.splat(0.0);
                let half = simd.mul(simd.min(x, zero), simd.splat(TANH_SCALE / 2.0));
                let (half, p, q) = tanh_ratio(simd, half);
                let tangent = simd.mul(half, p);
                let negative = simd.div(simd.add(tangent, tangent), simd.sub(q, tangent));
                simd.add(simd.max(x, zero), negative)
            }),
            Self::Sigmoid => map!(x, sigmoid(simd, x)),
            Self::Silu => map!(x, simd.mul(x, sigmoid(simd, x))),
            Self::HardSwish => map!(x, {
                let factor = clamp(simd, simd.add(x, simd.splat(3.0)), 0.0, 6.0);
                simd.mul(simd.mul(x, factor), simd.splat(1.0 / 6.0))
            }),
            Self::SoftSign => map!(x, simd.div(x, simd.add(simd.splat(1.0), simd.abs(x)))),
        }
    }
}

struct Activate<'a> {
    activation: &'a Activation,
    memory: &'a mut [f32],
    rows: Rows,
    frames: usize,
}

impl Op for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.activation.replace(simd, self.memory, self.rows, self.frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::InstructionSet;

    /// The largest absolute error between -12 and 12.
    fn largest_error(instructions: InstructionSet, activation: &Activation, exact: impl Fn(f64) -> f64) -> f64 {
        let inputs: Vec<f32> = (0..96_000).map(|i| (i as f32 - 48_000.0) / 4000.0).collect();
        let mut outputs = inputs.clone();
        let rows = Rows { at: 0, stride: 0, count: 1 };
        activation.apply(Pass { instructions, frames: inputs.len() }, &mut outputs, rows);
        let error = |(x, y): (&f32, &f32)| (f64::from(*y) - exact(f64::from(*x))).abs();
        inputs.iter().zip(&outputs).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn functions_match_their_definitions() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        // The formula of Neural Amp Modeler's core (activations.h).
        let fast_tanh = |x: f64| {
            let (size, square) = (x.abs(), x * x);
            let inner = (0.893_229_853_513_558 + 0.821_226_666_969_744 * size) * square;
            x * (2.455_507_507_029_56 + 2.455_507_507_029_56 * size + inner)
                / (2.445_066_346_522_99
                    + (2.445_066_346_522_99 + square) * (x + 0.814_642_734_961_073 * x * size).abs())
        };
        let leaky = |x: f64| if x < -1.0 { -1.0 + 0.1 * (x + 1.0) } else { x.min(2.0) + 0.2 * (x - 2.0).max(0.0) };
        let leaky_hard_tanh = Activation::LeakyHardTanh { min: -1.0, max: 2.0, min_slope: 0.1, max_slope: 0.2 };
        type Exact<'a> = &'a dyn Fn(f64) -> f64;
        let all: [(Activation, Exact<'_>, f64); 13] = [
            (Activation::Identity, &|x| x, 0.0),
            (Activation::Tanh, &f64::tanh, 5e-7),
            (Activation::FastTanh, &f64::tanh, 9e-4),
            (Activation::FastTanh, &fast_tanh, 1e-6),
            (Activation::HardTanh, &|x| x.clamp(-1.0, 1.0), 0.0),
            (leaky_hard_tanh, &leaky, 2e-6),
            (Activation::Relu, &|x| x.max(0.0), 0.0),
            (Activation::LeakyRelu([0.25].into()), &|x| if x < 0.0 { 0.25 * x } else { x }, 0.0),
            (Activation::Elu, &|x| if x < 0.0 { x.exp_m1() } else { x }, 3e-7),
            (Activation::Sigmoid, &sigmoid, 3e-7),
            (Activation::Silu, &|x| x * sigmoid(x), 3e-6),
            (Activation::HardSwish, &|x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0, 3e-6),
            (Activation::SoftSign, &|x| x / (1.0 + x.abs()), 1e-7),
        ];
        for instructions in InstructionSet::all() {
            for (activation, exact, most) in &all {
                let error = largest_error(instructions, activation, exact);
                assert!(error <= *most, "{} {activation:?}: {error:e}", instructions.name());
            }
        }
    }

    #[test]
    fn each_row_can_have_its_own_slope() {
        let mut memory = vec![-1.0; 32];
        let rows = Rows { at: 0, stride: 16, count: 2 };
        Activation::LeakyRelu([0.5, 0.25].into()).apply(
            Pass { instructions: InstructionSet::best(), frames: 16 },
            &mut memory,
            rows,
        );
        assert_eq!((memory[0], memory[16]), (-0.5, -0.25));
    }
}
