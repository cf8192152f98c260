//! One frame at a time: matrices times vectors, and the steps of recurrent units.

use super::{Simd, sigmoid, tanh};

/// Units are padded to a multiple of this, which every number of lanes divides.
const PADDING: usize = 16;

/// `units` as they lie in a vector.
#[must_use]
pub fn padded(units: usize) -> usize {
    units.next_multiple_of(PADDING)
}

/// A matrix that is multiplied with a vector, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    rows: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Columns {
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

    /// Number of rows, with their padding.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of weights, with their padding.
    #[must_use]
    pub fn weights(&self) -> usize {
        self.weights.len()
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

/// One step of long short-term memory: `gates` are those of input, forgetting, candidate and output, one after the other.
///
/// # Panics
/// When the vectors do not fit together, or are not padded.
#[inline(always)]
pub fn lstm_step<S: Simd>(simd: S, gates: &[f32], cell: &mut [f32], hidden: &mut [f32]) {
    let units = cell.len();
    assert!(
        units.is_multiple_of(PADDING) && gates.len() == 4 * units && hidden.len() == units,
        "units that do not fit"
    );
    for unit in (0..units).step_by(S::LANES) {
        // SAFETY: all vectors have whole vectors of units, as was checked.
        unsafe {
            let gate = |index: usize| simd.load(gates.as_ptr().add(index * units + unit));
            let kept = simd.mul(sigmoid(simd, gate(1)), simd.load(cell.as_ptr().add(unit)));
            let now = simd.mul_add(sigmoid(simd, gate(0)), tanh(simd, gate(2)), kept);
            simd.store(cell.as_mut_ptr().add(unit), now);
            simd.store(hidden.as_mut_ptr().add(unit), simd.mul(sigmoid(simd, gate(3)), tanh(simd, now)));
        }
    }
}

/// One step of a gated recurrent unit as Keras has it: gates of update, reset and candidate, `of_input` and `of_hidden`
/// apart, the reset acting after the latter were multiplied.
///
/// # Panics
/// When the vectors do not fit together, or are not padded.
#[inline(always)]
pub fn gru_step<S: Simd>(simd: S, of_input: &[f32], of_hidden: &[f32], hidden: &mut [f32]) {
    let units = hidden.len();
    let whole = units.is_multiple_of(PADDING);
    assert!(whole && of_input.len() == 3 * units && of_hidden.len() == 3 * units, "units that do not fit");
    for unit in (0..units).step_by(S::LANES) {
        // SAFETY: all vectors have whole vectors of units, as was checked.
        unsafe {
            let input = |index: usize| simd.load(of_input.as_ptr().add(index * units + unit));
            let before = |index: usize| simd.load(of_hidden.as_ptr().add(index * units + unit));
            let update = sigmoid(simd, simd.add(input(0), before(0)));
            let reset = sigmoid(simd, simd.add(input(1), before(1)));
            let candidate = tanh(simd, simd.mul_add(reset, before(2), input(2)));
            let kept = simd.mul(update, simd.load(hidden.as_ptr().add(unit)));
            let taken = simd.mul_add(simd.sub(simd.splat(1.0), update), candidate, kept);
            simd.store(hidden.as_mut_ptr().add(unit), taken);
        }
    }
}
