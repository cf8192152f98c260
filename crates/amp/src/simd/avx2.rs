//! AVX2 with FMA: 8 lanes.

use std::arch::asm;
use std::arch::x86_64::{
    __m256, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_ps,
    _mm256_castps256_ps128, _mm256_div_ps, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_max_ps,
    _mm256_min_ps, _mm256_mul_ps, _mm256_permute2f128_ps, _mm256_set1_ps, _mm256_storeu_ps, _mm256_sub_ps,
    _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

use super::{Op, Simd};

/// Proof that the processor has AVX2 and FMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// The proof, if the processor has them.
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Self(()))
    }
}

impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    const CONCURRENT_VECTORS: usize = 2;

    #[inline(always)]
    fn enter<O: Op>(self, op: O) -> O::Output {
        #[inline(never)]
        #[target_feature(enable = "avx2,fma")]
        fn inner<O: Op>(simd: Avx2, op: O) -> O::Output {
            op.run(simd)
        }
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { inner(self, op) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::V {
        // SAFETY: the processor has the instruction, and the caller guarantees the values.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        // SAFETY: the processor has the instruction, and the caller guarantees the space.
        unsafe { _mm256_storeu_ps(to, x) };
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn interleave(self, a: Self::V, b: Self::V) -> [Self::V; 2] {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe {
            let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            [_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high)]
        }
    }

    #[inline(always)]
    fn barrier(self, x: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these registers.
        unsafe { barrier(x) }
    }

    #[inline(always)]
    fn reduce_sum(self, x: Self::V) -> f32 {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

/// No instruction, but the compiler assumes that it changes `x`.
#[inline]
#[target_feature(enable = "avx")]
fn barrier(mut x: __m256) -> __m256 {
    // SAFETY: the assembly contains no instruction, only a comment that names the operand; it reads and writes nothing
    // but `x`.
    unsafe { asm!("/* {} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags)) };
    x
}
