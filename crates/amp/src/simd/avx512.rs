//! AVX-512F: 16 lanes.

use std::arch::x86_64::{
    __m512, _mm512_add_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_max_ps, _mm512_min_ps,
    _mm512_mul_ps, _mm512_permutex2var_ps, _mm512_set1_ps, _mm512_setr_epi32, _mm512_storeu_ps, _mm512_sub_ps,
};

use super::{Op, Simd, avx2::Avx2};

/// Proof that the processor has AVX-512F.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(Avx2);

impl Avx512 {
    /// The proof, if the processor has it.
    pub fn new() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then(Avx2::new).flatten().map(Self)
    }

    /// Vectors of half the length, which such a processor also has.
    pub fn shorter(self) -> Avx2 {
        self.0
    }
}

impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    const CONCURRENT_VECTORS: usize = 4;
    // `InstructionSet::for_values` chooses shorter vectors for these sizes.
    const HAS_RECURRENT_SIZES: bool = false;
    const FUSES_GATES: bool = true;

    #[inline(always)]
    fn enter<O: Op>(self, op: O) -> O::Output {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx2,fma")]
        fn inner<O: Op>(simd: Avx512, op: O) -> O::Output {
            op.run(simd)
        }
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { inner(self, op) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::V {
        // SAFETY: the processor has the instruction, and the caller guarantees the values.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: Self::V) {
        // SAFETY: the processor has the instruction, and the caller guarantees the space.
        unsafe { _mm512_storeu_ps(to, x) };
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn interleave(self, a: Self::V, b: Self::V) -> [Self::V; 2] {
        // SAFETY: a value of this type exists only if the processor has these instructions.
        unsafe {
            let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            [_mm512_permutex2var_ps(a, first, b), _mm512_permutex2var_ps(a, second, b)]
        }
    }
}
