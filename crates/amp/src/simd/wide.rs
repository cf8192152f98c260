//! Several vectors as one: their operations are interleaved, so that none waits for its predecessor.

use super::{Op, Simd};

/// `N` vectors of `S`.
#[derive(Debug, Clone, Copy)]
pub struct Wide<S, const N: usize>(pub S);

/// Applies an operation to each vector. This is a macro because a closure that is not inlined would be built for the
/// oldest supported processor.
macro_rules! each {
    ($simd:expr, $n:ident, $value:expr) => {{
        let mut all = [$simd.splat(0.0); N];
        for $n in 0..N {
            all[$n] = $value;
        }
        all
    }};
}

impl<S: Simd, const N: usize> Simd for Wide<S, N> {
    type V = [S::V; N];
    const LANES: usize = N * S::LANES;
    const CONCURRENT_VECTORS: usize = S::CONCURRENT_VECTORS / N;

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
        // SAFETY: guaranteed by the caller.
        each!(self.0, n, unsafe { self.0.load(from.add(n * S::LANES)) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        for n in 0..N {
            // SAFETY: guaranteed by the caller.
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
    fn interleave(self, a: Self::V, b: Self::V) -> [Self::V; 2] {
        let mut halves = [self.splat(0.0); 2];
        for n in 0..N {
            for (part, vector) in self.0.interleave(a[n], b[n]).into_iter().enumerate() {
                let at = 2 * n + part;
                halves[at / N][at % N] = vector;
            }
        }
        halves
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
