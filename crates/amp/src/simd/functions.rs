//! Element-wise functions.

use super::Simd;

/// An element-wise function that is known at compile time.
pub trait Elementwise: Copy {
    /// Computes the function.
    fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V;
}

/// [`tanh`] of arguments that are scaled by [`TANH_SCALE`].
#[derive(Debug, Clone, Copy)]
pub struct ScaledTanh;

/// Scales negative values.
#[derive(Debug, Clone, Copy)]
pub struct LeakyRelu(pub f32);

/// The value itself.
#[derive(Debug, Clone, Copy)]
pub struct Identity;

impl Elementwise for Identity {
    #[inline(always)]
    fn apply<S: Simd>(self, _: S, x: S::V) -> S::V {
        x
    }
}

impl Elementwise for ScaledTanh {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V {
        scaled_tanh(simd, x)
    }
}

impl Elementwise for LeakyRelu {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V {
        let zero = simd.splat(0.0);
        simd.mul_add(simd.min(x, zero), simd.splat(self.0), simd.max(x, zero))
    }
}

/// Clamps the value to `min` to `max`.
#[inline(always)]
pub fn clamp<S: Simd>(simd: S, x: S::V, min: f32, max: f32) -> S::V {
    simd.min(simd.max(x, simd.splat(min)), simd.splat(max))
}

/// Scale of the arguments of [`scaled_tanh`]. The weights that compute them include it: a power of two rounds nothing.
pub const TANH_SCALE: f32 = 1.0 / 64.0;

/// Above this argument, tanh differs from 1 by less than 7e-8.
const TANH_END: f32 = 8.6 * TANH_SCALE;

/// P of [`tanh_ratio`]: a and b of two factors s^2 + a s + b.
const TANH_NUMERATOR: [(f32, f32); 2] = [(0.396_826_65, 9.508_704e-4), (0.046_957_82, 3.739_005e-4)];
/// Q of [`tanh_ratio`], likewise.
const TANH_DENOMINATOR: [(f32, f32); 2] = [(6.066_390_3e-3, 3.291_510_7e-6), (0.110_054_314, 1.687_726_8e-3)];

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    scaled_tanh(simd, simd.mul(x, simd.splat(TANH_SCALE)))
}

/// Hyperbolic tangent of `x` / [`TANH_SCALE`].
#[inline(always)]
pub fn scaled_tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let (x, p, q) = tanh_ratio(simd, x);
    simd.div(simd.mul(x, p), q)
}

/// [`scaled_tanh`] as a ratio x P(x^2) / Q(x^2): the clamped argument, P (3e-7 to 7e-6) and Q (5e-9 to 2e-6). The
/// largest relative error is 8e-8 plus rounding. It was minimised over polynomials of the fourth degree whose highest
/// power has the factor 1 at this scale (least squares, reweighted until the largest errors were equal). All zeros are
/// negative, so that no cancellation occurs.
#[inline(always)]
pub fn tanh_ratio<S: Simd>(simd: S, x: S::V) -> (S::V, S::V, S::V) {
    // Both are clamped separately, which shortens the longer path, that of the square.
    let square = simd.min(simd.mul(x, x), simd.splat(TANH_END * TANH_END));
    let x = clamp(simd, x, -TANH_END, TANH_END);
    (x, product(simd, square, TANH_NUMERATOR), product(simd, square, TANH_DENOMINATOR))
}

/// Scale of the arguments of [`scaled_sigmoid`].
pub const SIGMOID_SCALE: f32 = TANH_SCALE / 2.0;

/// Logistic function.
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::V) -> S::V {
    scaled_sigmoid(simd, simd.mul(x, simd.splat(SIGMOID_SCALE)))
}

/// Logistic function of `x` / [`SIGMOID_SCALE`]: (1 + tanh(x / 2)) / 2.
#[inline(always)]
pub fn scaled_sigmoid<S: Simd>(simd: S, x: S::V) -> S::V {
    let half = simd.splat(0.5);
    simd.mul_add(half, scaled_tanh(simd, x), half)
}

/// `fast_tanh` of Neural Amp Modeler's core, with its constants (activations.h).
#[inline(always)]
pub fn fast_tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    let [a, b, c, d, e] =
        [2.455_507_5, 0.893_229_84, 0.821_226_7, 2.445_066_5, 0.814_642_7].map(|constant| simd.splat(constant));
    let (size, square) = (simd.abs(x), simd.mul(x, x));
    let inner = simd.mul_add(c, size, b);
    let numerator = simd.mul(x, simd.mul_add(inner, square, simd.mul_add(a, size, a)));
    let magnitude = simd.abs(simd.mul_add(simd.mul(e, x), size, x));
    simd.div(numerator, simd.mul_add(simd.add(d, square), magnitude, d))
}

/// The product of two factors s^2 + a s + b.
#[inline(always)]
fn product<S: Simd>(simd: S, s: S::V, [first, second]: [(f32, f32); 2]) -> S::V {
    let [a, b, c, d] = [first.0, first.1, second.0, second.1].map(|constant| simd.splat(constant));
    simd.mul(simd.mul_add(s, simd.add(s, a), b), simd.mul_add(s, simd.add(s, c), d))
}
