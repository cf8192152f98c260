//! Sums of a strip of rows, which stay in registers.

use super::{MAX_LANES, Simd};

/// Number of frames that pass through a layer together: one vector of 16 lanes, or several shorter ones at once.
pub const TILE: usize = MAX_LANES;

/// Loads `R` biases and advances `weights` past them.
///
/// # Safety
/// `weights` points to `R` biases.
#[inline(always)]
pub unsafe fn biases<S: Simd, const R: usize>(simd: S, weights: &mut *const f32) -> [S::V; R] {
    let mut sums = [simd.splat(0.0); R];
    for r in 0..R {
        // SAFETY: guaranteed by the caller.
        sums[r] = simd.splat(unsafe { *weights.add(r) });
    }
    // SAFETY: guaranteed by the caller.
    *weights = unsafe { weights.add(R) };
    sums
}

/// Adds the biases of `R` sums and advances `weights` past them.
///
/// # Safety
/// `weights` points to `R` biases.
#[inline(always)]
pub unsafe fn add_biases<S: Simd, const R: usize>(simd: S, sums: &mut [S::V; R], weights: &mut *const f32) {
    // SAFETY: guaranteed by the caller.
    let biases = unsafe { biases::<S, R>(simd, weights) };
    for r in 0..R {
        sums[r] = simd.add(sums[r], biases[r]);
    }
}

/// Adds a row of a signal to `R` sums, each with its weight, and advances `weights` past theirs.
///
/// # Safety
/// `weights` points to `R` weights.
#[inline(always)]
pub unsafe fn add_row<S: Simd, const R: usize>(simd: S, sums: &mut [S::V; R], weights: &mut *const f32, x: S::V) {
    for r in 0..R {
        // SAFETY: guaranteed by the caller.
        let weight = simd.splat(unsafe { *weights.add(r) });
        sums[r] = simd.mul_add(weight, x, sums[r]);
    }
    // SAFETY: guaranteed by the caller.
    *weights = unsafe { weights.add(R) };
}
