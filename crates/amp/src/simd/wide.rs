//! Several vectors as one: their computations stand between each other, so that none waits for its own.

use super::{Op, Simd};

/// `N` vectors of `S`.
#[derive(Debug, Clone, Copy)]
pub struct Wide<S, const N: usize>(pub S);

/// One operation on each of the vectors. No closure: one that is not put in place would be built for the oldest processor.
macro_rules! each {
    ($simd:expr, $n:ident, $made:expr) => {{
        let mut all = [$simd.splat(0.0); N];
        for $n in 0..N {
            all[$n] = $made;
        }
        all
    }};
}

impl<S: Simd, const N: usize> Simd for Wide<S, N> {
    type V = [S::V; N];
    const LANES: usize = N * S::LANES;
    const ABREAST: usize = S::ABREAST / N;

    #[inline(always)]
    fn enter<O: Op>(self, op: O) -> O::Output {
        self.0.enter(op)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [self.0.splat(x); N]
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::V {
        // SAFETY: as the caller promises.
        each!(self.0, n, unsafe { self.0.load(from.add(n * S::LANES)) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        for n in 0..N {
            // SAFETY: as the caller promises.
            unsafe { self.0.store(to.add(n * S::LANES), x[n]) };
        }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each!(self.0, n, self.0.mul_add(a[n], b[n], c[n]))
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        each!(self.0, n, self.0.add(a[n], b[n]))
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        each!(self.0, n, self.0.sub(a[n], b[n]))
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        each!(self.0, n, self.0.mul(a[n], b[n]))
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        each!(self.0, n, self.0.div(a[n], b[n]))
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        each!(self.0, n, self.0.min(a[n], b[n]))
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        each!(self.0, n, self.0.max(a[n], b[n]))
    }

    #[inline(always)]
    fn reduce_sum(self, x: Self::V) -> f32 {
        let mut sum = x[0];
        for n in 1..N {
            sum = self.0.add(sum, x[n]);
        }
        self.0.reduce_sum(sum)
    }
}
