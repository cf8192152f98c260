//! Arrays of four, which the compiler turns into whatever the processor has at least: longer ones would only be more to build.

use super::{Op, Simd};

/// No special instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portable;

const LANES: usize = 4;

impl Simd for Portable {
    type V = [f32; LANES];
    const LANES: usize = LANES;
    const ABREAST: usize = 1;
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
        // SAFETY: as the caller promises; the array asks for no alignment beyond that of f32.
        unsafe { from.cast::<Self::V>().read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        // SAFETY: as the caller promises; the array asks for no alignment beyond that of f32.
        unsafe { to.cast::<Self::V>().write(x) };
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // Without an instruction for it, rounding once would take a call for each lane.
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
}
