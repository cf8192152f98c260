//! Functions of each value.

use super::Simd;

/// A function of each value that is known when a loop is built.
pub trait Function: Copy {
    /// What becomes of a value.
    fn of<S: Simd>(self, simd: S, x: S::V) -> S::V;
}

/// [`tanh`].
#[derive(Debug, Clone, Copy)]
pub struct Tanh;

/// Negative values are scaled.
#[derive(Debug, Clone, Copy)]
pub struct Leaky(pub f32);

impl Function for Tanh {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::V) -> S::V {
        tanh(simd, x)
    }
}

impl Function for Leaky {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::V) -> S::V {
        let zero = simd.splat(0.0);
        simd.mul_add(simd.min(x, zero), simd.splat(self.0), simd.max(x, zero))
    }
}

/// The value, cut off at both ends.
#[inline(always)]
pub fn clamp<S: Simd>(simd: S, x: S::V, min: f32, max: f32) -> S::V {
    simd.min(simd.max(x, simd.splat(min)), simd.splat(max))
}

/// Beyond this the tangent differs from 1 by less than `f32` can tell.
const TANH_END: f32 = 9.0;

/// P of [`tanh`], the lowest power first.
const TANH_ABOVE: [f32; 5] = [1.0, 0.133_847_15, 3.499_967e-3, 2.068_113_5e-5, 1.345_476_3e-8];
/// Q of [`tanh`], the lowest power first.
const TANH_BELOW: [f32; 5] = [1.0, 0.467_180_3, 2.589_364_7e-2, 3.292_794_3e-4, 7.817_455e-7];

/// Hyperbolic tangent: x P(x^2) / Q(x^2), whose largest relative error, 2e-8 but for rounding, was made as small as it
/// goes with these powers (least squares, reweighted until the largest errors were level).
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let (above, below) = tanh_as_ratio(simd, x);
    simd.div(above, below)
}

/// What [`tanh`] divides, and by what: 1 to 420.
#[inline(always)]
pub fn tanh_as_ratio<S: Simd>(simd: S, x: S::V) -> (S::V, S::V) {
    let x = clamp(simd, x, -TANH_END, TANH_END);
    let square = simd.mul(x, x);
    let fourth = simd.mul(square, square);
    (simd.mul(x, polynomial(simd, square, fourth, &TANH_ABOVE)), polynomial(simd, square, fourth, &TANH_BELOW))
}

/// Logistic function: (1 + tanh(x / 2)) / 2.
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::V) -> S::V {
    let half = simd.splat(0.5);
    simd.mul_add(half, tanh(simd, simd.mul(x, half)), half)
}

/// Constants from Neural Amp Modeler's core (activations.h), which calls this function `fast_tanh`.
#[inline(always)]
pub fn fast_tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let [a, b, c, d, e] =
        [2.455_507_5, 0.893_229_84, 0.821_226_7, 2.445_066_5, 0.814_642_7].map(|constant| simd.splat(constant));
    let (size, square) = (simd.abs(x), simd.mul(x, x));
    let inner = simd.mul_add(c, size, b);
    let above = simd.mul(x, simd.mul_add(inner, square, simd.mul_add(a, size, a)));
    let bent = simd.abs(simd.mul_add(simd.mul(e, x), size, x));
    simd.div(above, simd.mul_add(simd.add(d, square), bent, d))
}

/// The lowest power first; powers are gathered in pairs, so that one need not wait for all others.
#[inline(always)]
fn polynomial<S: Simd>(simd: S, x: S::V, square: S::V, [a, b, c, d, e]: &[f32; 5]) -> S::V {
    let low = simd.mul_add(simd.splat(*b), x, simd.splat(*a));
    let middle = simd.mul_add(simd.splat(*d), x, simd.splat(*c));
    let high = simd.mul_add(simd.splat(*e), square, middle);
    simd.mul_add(high, square, low)
}
