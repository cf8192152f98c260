//! Arrays of four values, which the compiler turns into the basic vectors of the processor. Longer arrays would only
//! increase the code.

use super::{Op, Simd};

/// The portable instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portable;

const LANES: usize = 4;

impl Simd for Portable {
    type V = [f32; LANES];
    const LANES: usize = LANES;
    const CONCURRENT_VECTORS: usize = 1;
    const HAS_RECURRENT_SIZES: bool = false;

    #[inline(never)]
    fn enter<O: Op>(self, op: O) -> O::Output {
        op.run(self)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::V {
        // SAFETY: guaranteed by the caller; the array needs no more alignment than f32.
        unsafe { from.cast::<Self::V>().read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        // SAFETY: guaranteed by the caller; the array needs no more alignment than f32.
        unsafe { to.cast::<Self::V>().write(x) };
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // Without a fused instruction, rounding once would need a function call per lane.
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn interleave(self, a: Self::V, b: Self::V) -> [Self::V; 2] {
        [0, LANES / 2].map(|from| std::array::from_fn(|i| [a, b][i % 2][from + i / 2]))
    }
}
