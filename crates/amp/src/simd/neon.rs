//! NEON: 4 lanes.

use std::arch::aarch64::{
    float32x4_t, vaddq_f32, vdivq_f32, vdupq_n_f32, vfmaq_f32, vld1q_f32, vmaxnmq_f32, vminnmq_f32, vmulq_f32,
    vst1q_f32, vsubq_f32, vzip1q_f32, vzip2q_f32,
};

use super::{Op, Simd};

/// Proof that the processor has NEON; every processor of this architecture has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// The proof.
    pub fn new() -> Self {
        Self(())
    }
}

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;
    const CONCURRENT_VECTORS: usize = 4;

    #[inline(never)]
    fn enter<O: Op>(self, op: O) -> O::Output {
        op.run(self)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::V {
        // SAFETY: the caller guarantees the values.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        // SAFETY: the caller guarantees the space.
        unsafe { vst1q_f32(to, x) };
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vminnmq_f32(a, b) }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { vmaxnmq_f32(a, b) }
    }

    #[inline(always)]
    fn interleave(self, a: Self::V, b: Self::V) -> [Self::V; 2] {
        // SAFETY: every processor of this architecture has these instructions.
        unsafe { [vzip1q_f32(a, b), vzip2q_f32(a, b)] }
    }
}
