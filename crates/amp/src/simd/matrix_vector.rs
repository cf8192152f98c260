//! Products of matrices and vectors, for one frame at a time.

use super::{MAX_LANES, Simd};

/// The number of values in a frame with padding, so that they fill vectors of any length.
#[must_use]
pub fn padded(values: usize) -> usize {
    values.next_multiple_of(MAX_LANES)
}

/// A matrix whose weights are stored column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMajor {
    /// Including padding.
    rows: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl ColumnMajor {
    /// A matrix of `rows` rows, which are padded, and `columns` columns.
    #[must_use]
    pub fn new(rows: usize, columns: usize, weight: impl Fn(usize, usize) -> f32, bias: impl Fn(usize) -> f32) -> Self {
        let total = padded(rows);
        let or_zero = |row: usize, value: &dyn Fn() -> f32| if row < rows { value() } else { 0.0 };
        let weights = (0..columns).flat_map(|column| (0..total).map(move |row| (row, column)));
        Self {
            rows: total,
            weights: weights.map(|(row, column)| or_zero(row, &|| weight(row, column))).collect(),
            biases: (0..total).map(|row| or_zero(row, &|| bias(row))).collect(),
        }
    }

    /// Sets `out` to the biases plus the product of the matrix and `x`.
    ///
    /// # Panics
    /// If `x` or `out` has another length.
    #[inline(always)]
    pub fn multiply<S: Simd>(&self, simd: S, x: &[f32], out: &mut [f32]) {
        assert!(x.len() * self.rows == self.weights.len() && out.len() == self.rows, "lengths do not match the matrix");
        let mut row = 0;
        // SAFETY: checked above: weights, biases and results have `rows` rows, a multiple of the lanes of any vector.
        unsafe {
            while row + 4 * S::LANES <= self.rows {
                self.part::<S, 4>(simd, x, out, row);
                row += 4 * S::LANES;
            }
            while row < self.rows {
                self.part::<S, 1>(simd, x, out, row);
                row += S::LANES;
            }
        }
    }

    /// Computes `N` vectors of rows, beginning with row `row`.
    ///
    /// # Safety
    /// There are this many rows; `x` has a value for each column, and `out` has space for each row.
    #[inline(always)]
    unsafe fn part<S: Simd, const N: usize>(&self, simd: S, x: &[f32], out: &mut [f32], row: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = [simd.splat(0.0); N];
            for n in 0..N {
                sums[n] = simd.load(self.biases.as_ptr().add(row + n * S::LANES));
            }
            let mut weights = self.weights.as_ptr().add(row);
            for &x in x {
                let x = simd.splat(x);
                for n in 0..N {
                    sums[n] = simd.mul_add(simd.load(weights.add(n * S::LANES)), x, sums[n]);
                }
                weights = weights.wrapping_add(self.rows);
            }
            for n in 0..N {
                simd.store(out.as_mut_ptr().add(row + n * S::LANES), sums[n]);
            }
        }
    }
}

/// The dot product of a row and a vector.
///
/// # Panics
/// If the row is not padded, or the vector is shorter.
#[inline(always)]
pub fn dot<S: Simd>(simd: S, row: &[f32], x: &[f32]) -> f32 {
    assert!(row.len().is_multiple_of(MAX_LANES) && x.len() >= row.len(), "lengths do not match");
    let mut sums = simd.splat(0.0);
    for at in (0..row.len()).step_by(S::LANES) {
        // SAFETY: checked above: both have this many values.
        unsafe { sums = simd.mul_add(simd.load(row.as_ptr().add(at)), simd.load(x.as_ptr().add(at)), sums) };
    }
    simd.reduce_sum(sums)
}
