//! Sums of a strip of rows, which stay in registers.

use super::{MAX_LANES, Simd};

/// Frames that go through a whole layer together: one vector of the longest, several of others side by side.
pub const TILE: usize = MAX_LANES;

/// `R` biases; `weights` becomes where the next ones are.
///
/// # Safety
/// There are `R` biases.
#[inline(always)]
pub unsafe fn biases<S: Simd, const R: usize>(simd: S, weights: &mut *const f32) -> [S::V; R] {
    let mut sums = [simd.splat(0.0); R];
    for r in 0..R {
        // SAFETY: as the caller promises.
        sums[r] = simd.splat(unsafe { *weights.add(r) });
    }
    // SAFETY: as the caller promises.
    *weights = unsafe { weights.add(R) };
    sums
}

/// Adds one row of a signal to `R` sums, each with its weight; `weights` becomes where the next ones are.
///
/// # Safety
/// There are `R` weights.
#[inline(always)]
pub unsafe fn add_row<S: Simd, const R: usize>(simd: S, sums: &mut [S::V; R], weights: &mut *const f32, x: S::V) {
    for r in 0..R {
        // SAFETY: as the caller promises.
        let weight = simd.splat(unsafe { *weights.add(r) });
        sums[r] = simd.mul_add(weight, x, sums[r]);
    }
    // SAFETY: as the caller promises.
    *weights = unsafe { weights.add(R) };
}
