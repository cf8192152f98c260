//! The one computation that all networks share: rows of a signal, weighted and summed.

use super::{Op, Pass, Simd};

/// Rows of a signal within a model's memory: one a channel, its frames side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Where the first frame of the first row is.
    pub at: usize,
    /// From the first frame of one row to that of the next.
    pub pitch: isize,
    /// Number of rows.
    pub count: usize,
}

impl Rows {
    /// Where row `index` begins.
    #[must_use]
    #[inline(always)]
    pub fn start(&self, index: usize) -> usize {
        self.at.wrapping_add_signed(self.pitch * index as isize)
    }

    /// `count` of the rows, from row `first` on.
    #[must_use]
    #[inline(always)]
    pub fn part(&self, first: usize, count: usize) -> Self {
        Self { at: self.start(first), count, ..*self }
    }

    /// Whether `frames` of every row lie within `len` values.
    #[inline(always)]
    pub(super) fn fit(&self, frames: usize, len: usize) -> bool {
        let (first, last) = (self.at, self.start(self.count.saturating_sub(1)));
        self.count == 0 || (first.max(last) <= len && len - first.max(last) >= frames)
    }
}

/// Weights and biases, laid out as they are read: strips of four rows, then what is left as two and one.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Matrix {
    /// A matrix of `rows` results and `columns` sources.
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

    /// Number of results.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of sources.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// How many rows are computed together where `left` are left.
#[inline(always)]
fn strip_of(left: usize) -> usize {
    match left {
        4.. => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// The frames of each row of `out` become its bias, and the row of `plus` where there is one, and the `sources` with their weights.
/// Rows of `out` may be those of `plus`, and none of the sources. Frames beyond those of the pass up to a whole vector are written,
/// too. Each frame is computed in the same order of operations wherever it stands.
///
/// # Panics
/// When rows do not lie within `memory`, or their numbers are not those of the matrix.
pub fn multiply(pass: Pass, memory: &mut [f32], matrix: &Matrix, sources: &[Rows], plus: Option<Rows>, out: Rows) {
    let frames = pass.frames;
    pass.level.run(Multiply { memory, matrix, sources, plus, out, frames });
}

struct Multiply<'a> {
    memory: &'a mut [f32],
    matrix: &'a Matrix,
    sources: &'a [Rows],
    plus: Option<Rows>,
    out: Rows,
    frames: usize,
}

impl Op for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { memory, matrix, sources, plus, out, frames } = self;
        let frames = frames.next_multiple_of(S::LANES);
        let fit = |rows: &Rows| rows.fit(frames, memory.len());
        assert!(sources.iter().all(fit) && plus.iter().all(fit) && fit(&out), "rows outside a model's memory");
        assert!(sources.iter().map(|rows| rows.count).sum::<usize>() == matrix.columns, "sources without weights");
        let rows = matrix.rows;
        assert!(out.count == rows && plus.is_none_or(|plus| plus.count == rows), "results without weights");
        let memory = memory.as_mut_ptr();
        let mut first = 0;
        while first < rows {
            let strip = strip_of(rows - first);
            let job = Job { memory, matrix, sources, plus, out, first, frames };
            // SAFETY: all rows lie within the memory, and the matrix has weights and biases for all of them, as was
            // checked.
            unsafe {
                match strip {
                    4 => job.strip::<S, 4>(simd),
                    2 => job.strip::<S, 2>(simd),
                    _ => job.strip::<S, 1>(simd),
                }
            }
            first += strip;
        }
    }
}

/// What [`multiply`] was asked for, and which rows are next.
struct Job<'a> {
    memory: *mut f32,
    matrix: &'a Matrix,
    sources: &'a [Rows],
    plus: Option<Rows>,
    out: Rows,
    first: usize,
    frames: usize,
}

impl Job<'_> {
    /// Computes `R` rows.
    ///
    /// # Safety
    /// As for [`Job::tile`].
    #[inline(always)]
    unsafe fn strip<S: Simd, const R: usize>(&self, simd: S) {
        let mut frame = 0;
        // SAFETY: each call is within the frames that were asked for.
        unsafe {
            // As many sums as keep the processor busy while the first of them is not there yet.
            while 8 * R <= 4 * S::ABREAST && frame + 8 * S::LANES <= self.frames {
                self.tile::<S, R, 8>(simd, frame);
                frame += 8 * S::LANES;
            }
            while 4 * R <= 4 * S::ABREAST && frame + 4 * S::LANES <= self.frames {
                self.tile::<S, R, 4>(simd, frame);
                frame += 4 * S::LANES;
            }
            while 2 * R <= 4 * S::ABREAST && frame + 2 * S::LANES <= self.frames {
                self.tile::<S, R, 2>(simd, frame);
                frame += 2 * S::LANES;
            }
            while frame < self.frames {
                self.tile::<S, R, 1>(simd, frame);
                frame += S::LANES;
            }
        }
    }

    /// Computes `R` rows, `F` vectors of frames from `frame` on, all in registers.
    ///
    /// # Safety
    /// The rows lie within the memory for these frames; the matrix has `R` rows from `first` on.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const F: usize>(&self, simd: S, frame: usize) {
        let Self { memory, matrix, sources, plus, out, first, .. } = *self;
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = [[simd.splat(0.0); F]; R];
            for r in 0..R {
                let bias = simd.splat(*matrix.biases.get_unchecked(first + r));
                for f in 0..F {
                    sums[r][f] = match plus {
                        Some(plus) => {
                            simd.add(bias, simd.load(memory.add(plus.start(first + r) + frame + f * S::LANES)))
                        }
                        None => bias,
                    };
                }
            }
            let mut weights = matrix.weights.as_ptr().add(first * matrix.columns);
            for source in sources {
                let mut from = memory.add(source.at + frame).cast_const();
                for _ in 0..source.count {
                    let mut x = [simd.splat(0.0); F];
                    for f in 0..F {
                        x[f] = simd.load(from.add(f * S::LANES));
                    }
                    for r in 0..R {
                        let weight = simd.splat(*weights.add(r));
                        for f in 0..F {
                            sums[r][f] = simd.mul_add(weight, x[f], sums[r][f]);
                        }
                    }
                    weights = weights.add(R);
                    from = from.wrapping_offset(source.pitch);
                }
            }
            for r in 0..R {
                for f in 0..F {
                    simd.store(memory.add(out.start(first + r) + frame + f * S::LANES), sums[r][f]);
                }
            }
        }
    }
}
