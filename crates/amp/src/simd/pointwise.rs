//! Pointwise (1x1) convolutions: weighted sums of the rows of one signal, for where little is to be done besides.

use super::{
    Matrix, Rows, Simd, Sum,
    matrix::{Job, strip_of},
};

/// The frames of each row of `out` become its bias and the rows of `from` with their weights, as by
/// [`multiply`](super::multiply), where vectors are at work already. Its large tiles are faster for many rows; this costs less
/// to begin.
///
/// # Panics
/// When rows do not lie within `memory`, or their numbers are not those of the matrix.
#[inline(always)]
pub fn pointwise<S: Simd>(simd: S, memory: &mut [f32], matrix: &Matrix, from: Rows, out: Rows, frames: usize) {
    let frames = frames.next_multiple_of(S::LANES);
    assert!(from.count == matrix.columns() && out.count == matrix.rows(), "rows without weights");
    assert!(from.fit(frames, memory.len()) && out.fit(frames, memory.len()), "rows outside a model's memory");
    let job = Job { sum: Sum { matrix, sources: &[from], plus: None, out }, memory: memory.as_mut_ptr(), frames };
    let mut first = 0;
    while first < out.count {
        let strip = strip_of(out.count - first);
        let mut frame = 0;
        while frame < frames {
            // SAFETY: the rows lie within the memory, the matrix has weights and biases for them, and the source has a row for
            // each column, as was checked.
            unsafe {
                match strip {
                    4 => job.tile::<S, 4, 1>(simd, first, frame),
                    2 => job.tile::<S, 2, 1>(simd, first, frame),
                    _ => job.tile::<S, 1, 1>(simd, first, frame),
                }
            }
            frame += S::LANES;
        }
        first += strip;
    }
}
