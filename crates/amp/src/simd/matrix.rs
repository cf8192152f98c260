//! The computation that all networks share: weighted sums of the rows of a signal.

use super::{Op, Pass, Simd};
use crate::memory::Rows;

/// Weights and biases in the order in which they are read: strips of four rows, then of two and of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Matrix {
    /// A matrix of `rows` outputs and `columns` inputs.
    #[must_use]
    pub fn new(rows: usize, columns: usize, weight: impl Fn(usize, usize) -> f32, bias: impl Fn(usize) -> f32) -> Self {
        let mut weights = Vec::with_capacity(rows * columns);
        let mut first = 0;
        while first < rows {
            let strip = strip_of(rows - first);
            for column in 0..columns {
                weights.extend((first..first + strip).map(|row| weight(row, column)));
            }
            first += strip;
        }
        Self { rows, columns, weights, biases: (0..rows).map(bias).collect() }
    }

    /// Number of outputs.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// Number of rows that are computed together if `left` rows are left.
#[inline(always)]
pub(super) fn strip_of(left: usize) -> usize {
    match left {
        4.. => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// A weighted sum of rows: each row of `out` becomes its bias, plus a row of `plus` if given, plus the weighted
/// `sources`. `out` may overlap `plus`, but no source. Frames up to a multiple of the vector length are also written.
/// The order of operations for a frame does not depend on its place in the block.
#[derive(Debug, Clone, Copy)]
pub struct Sum<'a> {
    /// The weights.
    pub matrix: &'a Matrix,
    /// One row for each column of the matrix.
    pub sources: &'a [Rows],
    /// Rows to add.
    pub plus: Option<Rows>,
    /// Rows to write.
    pub out: Rows,
}

/// Computes a weighted sum.
///
/// # Panics
/// If rows are outside `memory`, or their numbers differ from those of the matrix.
pub fn multiply(pass: Pass, memory: &mut [f32], sum: Sum<'_>) {
    pass.instructions.run(Multiply { memory, sum, frames: pass.frames });
}

struct Multiply<'a> {
    memory: &'a mut [f32],
    sum: Sum<'a>,
    frames: usize,
}

impl Op for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { memory, sum, frames } = self;
        let frames = frames.next_multiple_of(S::LANES);
        let rows = sum.matrix.rows;
        let columns = sum.sources.iter().map(|rows| rows.count).sum::<usize>();
        let has_rows = |result: &Rows| result.count == rows && result.fit(frames, memory.len());
        assert!(columns == sum.matrix.columns, "sources do not match the columns of the matrix");
        assert!(
            sum.sources.iter().all(|rows| rows.fit(frames, memory.len())),
            "sources outside the memory of the model"
        );
        assert!(
            has_rows(&sum.out) && sum.plus.as_ref().is_none_or(has_rows),
            "results do not match the matrix or memory"
        );
        let job = Job { sum, memory: memory.as_mut_ptr(), frames };
        let mut first = 0;
        while first < rows {
            let strip = strip_of(rows - first);
            // SAFETY: checked above: all rows are inside the memory, the matrix has weights and biases for all of them,
            // and the sources have a row for each column.
            unsafe {
                match strip {
                    4 => job.strip::<S, 4>(simd, first),
                    2 => job.strip::<S, 2>(simd, first),
                    _ => job.strip::<S, 1>(simd, first),
                }
            }
            first += strip;
        }
    }
}

/// A weighted sum whose rows have been checked.
struct Job<'a> {
    sum: Sum<'a>,
    memory: *mut f32,
    frames: usize,
}

impl Job<'_> {
    /// Computes all frames of `R` rows, beginning with row `first`.
    ///
    /// # Safety
    /// As for [`Job::tile`], for the frames up to a multiple of the vector length.
    #[inline(always)]
    unsafe fn strip<S: Simd, const R: usize>(&self, simd: S, first: usize) {
        let mut frame = 0;
        // SAFETY: each call is inside the frames of the job.
        unsafe {
            // As many sums at once as keep the processor busy during the latency of the first one.
            while 8 * R <= 4 * S::CONCURRENT_VECTORS && frame + 8 * S::LANES <= self.frames {
                self.tile::<S, R, 8>(simd, first, frame);
                frame += 8 * S::LANES;
            }
            while 4 * R <= 4 * S::CONCURRENT_VECTORS && frame + 4 * S::LANES <= self.frames {
                self.tile::<S, R, 4>(simd, first, frame);
                frame += 4 * S::LANES;
            }
            while 2 * R <= 4 * S::CONCURRENT_VECTORS && frame + 2 * S::LANES <= self.frames {
                self.tile::<S, R, 2>(simd, first, frame);
                frame += 2 * S::LANES;
            }
            while frame < self.frames {
                self.tile::<S, R, 1>(simd, first, frame);
                frame += S::LANES;
            }
        }
    }

    /// Computes `R` rows from row `first`, for `V` vectors of frames from `frame`, all in registers.
    ///
    /// # Safety
    /// All rows of the sum are inside the memory for `V` vectors from `frame`. The matrix, `out` and `plus` have `R`
    /// rows from row `first`. The sources have as many rows as the matrix has columns.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&self, simd: S, first: usize, frame: usize) {
        let Sum { matrix, sources, plus, out } = self.sum;
        let at = |rows: Rows, r: usize| self.memory.wrapping_add(rows.start(first + r) + frame);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = [[simd.splat(0.0); V]; R];
            for r in 0..R {
                let bias = simd.splat(*matrix.biases.get_unchecked(first + r));
                for v in 0..V {
                    sums[r][v] = match plus {
                        Some(plus) => simd.add(bias, simd.load(at(plus, r).add(v * S::LANES))),
                        None => bias,
                    };
                }
            }
            let mut weights = matrix.weights.as_ptr().add(first * matrix.columns);
            for source in sources {
                let mut from = self.memory.add(source.at + frame).cast_const();
                for _ in 0..source.count {
                    let mut x = [simd.splat(0.0); V];
                    for v in 0..V {
                        x[v] = simd.load(from.add(v * S::LANES));
                    }
                    for r in 0..R {
                        let weight = simd.splat(*weights.add(r));
                        for v in 0..V {
                            sums[r][v] = simd.mul_add(weight, x[v], sums[r][v]);
                        }
                    }
                    weights = weights.add(R);
                    from = from.wrapping_add(source.stride);
                }
            }
            for r in 0..R {
                for v in 0..V {
                    simd.store(at(out, r).add(v * S::LANES), sums[r][v]);
                }
            }
        }
    }
}
