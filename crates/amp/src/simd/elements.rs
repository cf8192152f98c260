//! What is done to each value by itself: activation functions, products, sums.

use super::{Op, Pass, Rows, Simd};

/// Each value of `$out` becomes `$made`, of the values of the sources named. No closure: one that the compiler does not
/// put in place would be built for the oldest processor.
macro_rules! each {
    ($simd:ident, $memory:expr, $row:pat, [$($x:ident in $source:expr),+] => $out:expr, $frames:expr, $made:expr) => {{
        let (memory, out, frames) = ($memory, $out, $frames.next_multiple_of(S::LANES));
        let fit = |rows: &Rows| rows.count >= out.count && rows.fit(frames, memory.len());
        assert!($(fit(&$source) &&)+ fit(&out), "rows outside a model's memory");
        let memory = memory.as_mut_ptr();
        for row in 0..out.count {
            let $row = row;
            for frame in (0..frames).step_by(S::LANES) {
                // SAFETY: all rows lie within the memory, as was checked.
                unsafe {
                    $(let $x = $simd.load(memory.add($source.start(row) + frame));)+
                    $simd.store(memory.add(out.start(row) + frame), $made);
                }
            }
        }
    }};
}

/// An activation function.
#[derive(Debug, Clone, PartialEq)]
pub enum Activation {
    /// The value itself.
    Identity,
    /// Hyperbolic tangent.
    Tanh,
    /// The approximation of it that Neural Amp Modeler's core has under this name.
    FastTanh,
    /// Cut off at -1 and 1.
    HardTanh,
    /// Slopes outside, the value itself between.
    LeakyHardTanh {
        /// Where the lower slope begins.
        min: f32,
        /// Where the upper slope begins.
        max: f32,
        /// The lower slope.
        min_slope: f32,
        /// The upper slope.
        max_slope: f32,
    },
    /// Negative values are 0.
    Relu,
    /// Negative values are scaled, by one factor a row or by the same for all.
    LeakyRelu(Vec<f32>),
    /// Logistic function.
    Sigmoid,
    /// x times its logistic function.
    Silu,
    /// x times (x + 3) / 6, that cut off at 0 and 1.
    HardSwish,
    /// x / (1 + |x|).
    SoftSign,
}

impl Activation {
    /// Replaces the frames of each row by their activation.
    ///
    /// # Panics
    /// When the rows do not lie within `memory`.
    pub fn apply(&self, pass: Pass, memory: &mut [f32], rows: Rows) {
        pass.level.run(Activate { activation: self, memory, rows, frames: pass.frames });
    }

    /// The same where vectors are at work already.
    #[inline(always)]
    pub fn apply_with<S: Simd>(&self, simd: S, memory: &mut [f32], rows: Rows, frames: usize) {
        macro_rules! map {
            ($x:ident, $made:expr) => {
                each!(simd, memory, _, [$x in rows] => rows, frames, $made)
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
                each!(simd, memory, row, [x in rows] => rows, frames, {
                    let zero = simd.splat(0.0);
                    simd.mul_add(simd.min(x, zero), simd.splat(slope(row)), simd.max(x, zero))
                });
            }
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
        self.activation.apply_with(simd, self.memory, self.rows, self.frames);
    }
}

/// What becomes of values that stand at the same place of several signals.
#[derive(Debug, Clone, Copy)]
pub enum Combine {
    /// The value.
    Copy(Rows),
    /// The value times a constant.
    Scale(Rows, f32),
    /// Their sum.
    Add(Rows, Rows),
    /// Their product.
    Multiply(Rows, Rows),
    /// The product of the first two, and the third.
    MultiplyAdd(Rows, Rows, Rows),
    /// `part` of `of` and what is left of 1 of `rest`.
    Blend {
        /// How much of the one, 0 to 1.
        part: Rows,
        /// The one.
        of: Rows,
        /// The other.
        rest: Rows,
    },
}

/// Fills the frames of `out`, which may be one of the sources.
///
/// # Panics
/// When rows do not lie within `memory`.
pub fn combine(pass: Pass, memory: &mut [f32], how: Combine, out: Rows) {
    pass.level.run(Combination { how, memory, out, frames: pass.frames });
}

struct Combination<'a> {
    how: Combine,
    memory: &'a mut [f32],
    out: Rows,
    frames: usize,
}

impl Op for Combination<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { how, memory, out, frames } = self;
        match how {
            Combine::Copy(x) => each!(simd, memory, _, [a in x] => out, frames, a),
            Combine::Scale(x, factor) => {
                each!(simd, memory, _, [a in x] => out, frames, simd.mul(a, simd.splat(factor)));
            }
            Combine::Add(x, y) => each!(simd, memory, _, [a in x, b in y] => out, frames, simd.add(a, b)),
            Combine::Multiply(x, y) => each!(simd, memory, _, [a in x, b in y] => out, frames, simd.mul(a, b)),
            Combine::MultiplyAdd(x, y, z) => {
                each!(simd, memory, _, [a in x, b in y, c in z] => out, frames, simd.mul_add(a, b, c));
            }
            Combine::Blend { part, of, rest } => {
                each!(simd, memory, _, [weight in part, a in of, b in rest] => out, frames, {
                    let left = simd.sub(simd.splat(1.0), weight);
                    simd.mul_add(weight, a, simd.mul(left, b))
                });
            }
        }
    }
}

#[inline(always)]
fn clamp<S: Simd>(simd: S, x: S::V, min: f32, max: f32) -> S::V {
    simd.min(simd.max(x, simd.splat(min)), simd.splat(max))
}

/// Beyond this the tangent differs from 1 by less than `f32` can tell.
const TANH_END: f32 = 9.0;

/// P of [`tanh`], the highest power first.
const TANH_ABOVE: [f32; 5] = [1.345_476_3e-8, 2.068_113_5e-5, 3.499_967e-3, 0.133_847_15, 1.0];
/// Q of [`tanh`], the highest power first.
const TANH_BELOW: [f32; 5] = [7.817_455e-7, 3.292_794_3e-4, 2.589_364_7e-2, 0.467_180_3, 1.0];

/// Hyperbolic tangent: x P(x^2) / Q(x^2), whose largest relative error, 2e-8 but for rounding, was made as small as it
/// goes with these powers (least squares, reweighted until the largest errors were level).
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let x = clamp(simd, x, -TANH_END, TANH_END);
    let square = simd.mul(x, x);
    let above = polynomial(simd, square, &TANH_ABOVE);
    let below = polynomial(simd, square, &TANH_BELOW);
    simd.div(simd.mul(x, above), below)
}

/// Logistic function: (1 + tanh(x / 2)) / 2.
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::V) -> S::V {
    let half = simd.splat(0.5);
    simd.mul_add(half, tanh(simd, simd.mul(x, half)), half)
}

/// Constants from Neural Amp Modeler's core (activations.h), which calls this function `fast_tanh`.
#[inline(always)]
fn fast_tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let [a, b, c, d, e] =
        [2.455_507_5, 0.893_229_84, 0.821_226_7, 2.445_066_5, 0.814_642_7].map(|constant| simd.splat(constant));
    let (size, square) = (simd.abs(x), simd.mul(x, x));
    let inner = simd.mul_add(c, size, b);
    let above = simd.mul(x, simd.mul_add(inner, square, simd.mul_add(a, size, a)));
    let bent = simd.abs(simd.mul_add(simd.mul(e, x), size, x));
    simd.div(above, simd.mul_add(simd.add(d, square), bent, d))
}

/// The highest power first.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::V, coefficients: &[f32; N]) -> S::V {
    let mut sum = simd.splat(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        sum = simd.mul_add(sum, x, simd.splat(coefficient));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    /// The largest difference from `exact` between -12 and 12, absolute.
    fn largest_error(level: Level, activation: &Activation, exact: impl Fn(f64) -> f64) -> f64 {
        let inputs: Vec<f32> = (0..96_000).map(|i| (i as f32 - 48_000.0) / 4000.0).collect();
        let mut outputs = inputs.clone();
        let rows = Rows { at: 0, pitch: 0, count: 1 };
        activation.apply(Pass { level, frames: inputs.len() }, &mut outputs, rows);
        let error = |(x, y): (&f32, &f32)| (f64::from(*y) - exact(f64::from(*x))).abs();
        inputs.iter().zip(&outputs).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn each_function_is_what_it_is_called() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let leaky = |x: f64| if x < -1.0 { -1.0 + 0.1 * (x + 1.0) } else { x.min(2.0) + 0.2 * (x - 2.0).max(0.0) };
        let leaky_hard_tanh = Activation::LeakyHardTanh { min: -1.0, max: 2.0, min_slope: 0.1, max_slope: 0.2 };
        type Exact<'a> = &'a dyn Fn(f64) -> f64;
        let all: [(Activation, Exact<'_>, f64); 11] = [
            (Activation::Identity, &|x| x, 0.0),
            (Activation::Tanh, &f64::tanh, 4e-7),
            (Activation::FastTanh, &f64::tanh, 9e-4),
            (Activation::HardTanh, &|x| x.clamp(-1.0, 1.0), 0.0),
            (leaky_hard_tanh, &leaky, 2e-6),
            (Activation::Relu, &|x| x.max(0.0), 0.0),
            (Activation::LeakyRelu(vec![0.25]), &|x| if x < 0.0 { 0.25 * x } else { x }, 0.0),
            (Activation::Sigmoid, &sigmoid, 2e-7),
            (Activation::Silu, &|x| x * sigmoid(x), 3e-6),
            (Activation::HardSwish, &|x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0, 3e-6),
            (Activation::SoftSign, &|x| x / (1.0 + x.abs()), 1e-7),
        ];
        for level in Level::all() {
            for (activation, exact, most) in &all {
                let error = largest_error(level, activation, exact);
                assert!(error <= *most, "{} {activation:?}: {error:e}", level.name());
            }
        }
    }

    #[test]
    fn a_row_may_have_a_slope_of_its_own() {
        let mut memory = vec![-1.0; 32];
        let rows = Rows { at: 0, pitch: 16, count: 2 };
        Activation::LeakyRelu(vec![0.5, 0.25]).apply(Pass { level: Level::best(), frames: 16 }, &mut memory, rows);
        assert_eq!((memory[0], memory[16]), (-0.5, -0.25));
    }
}
