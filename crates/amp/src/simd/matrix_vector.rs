//! One frame at a time: matrices times vectors.

use super::{MAX_LANES, Simd};

/// So many values as they lie in a frame: padded, so that they fill vectors of any length.
#[must_use]
pub fn padded(values: usize) -> usize {
    values.next_multiple_of(MAX_LANES)
}

/// A matrix that is multiplied with a vector, its weights column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMajor {
    /// With their padding.
    rows: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl ColumnMajor {
    /// A matrix of `rows`, which are padded, and `columns`.
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

    /// `out` becomes the biases and the columns, each times its value of `x`.
    ///
    /// # Panics
    /// When `x` or `out` is of another length.
    #[inline(always)]
    pub fn multiply<S: Simd>(&self, simd: S, x: &[f32], out: &mut [f32]) {
        assert!(x.len() * self.rows == self.weights.len() && out.len() == self.rows, "vectors that do not fit");
        let mut row = 0;
        // SAFETY: weights, biases and results have as many rows as were checked, a multiple of the lanes of any vector.
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

    /// Computes `N` vectors of rows from `row` on.
    ///
    /// # Safety
    /// There are so many rows; `x` has a value for each column, `out` room for each row.
    #[inline(always)]
    unsafe fn part<S: Simd, const N: usize>(&self, simd: S, x: &[f32], out: &mut [f32], row: usize) {
        // SAFETY: as the caller promises.
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

/// The sum of products of a row and a vector.
///
/// # Panics
/// When the row is not padded, or the vector is shorter.
#[inline(always)]
pub fn dot<S: Simd>(simd: S, row: &[f32], x: &[f32]) -> f32 {
    assert!(row.len().is_multiple_of(MAX_LANES) && x.len() >= row.len(), "vectors that do not fit");
    let mut sums = simd.splat(0.0);
    for at in (0..row.len()).step_by(S::LANES) {
        // SAFETY: both have as many values, as was checked.
        unsafe { sums = simd.mul_add(simd.load(row.as_ptr().add(at)), simd.load(x.as_ptr().add(at)), sums) };
    }
    simd.reduce_sum(sums)
}
