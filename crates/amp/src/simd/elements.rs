//! Element-wise operations on signals.

use super::{Op, Pass, Simd};
use crate::memory::Rows;

/// Sets each value of `$out` to `$value`, which is computed from the values of the sources at the same place. This is a
/// macro because a closure that is not inlined would be built for the oldest supported processor.
macro_rules! each {
    ($simd:ident, $memory:expr, $row:pat, [$($x:ident in $source:expr),+] => $out:expr, $frames:expr, $value:expr) => {{
        let (memory, out, frames) = (&mut *$memory, $out, $frames.next_multiple_of(S::LANES));
        let fit = |rows: &$crate::memory::Rows| rows.count >= out.count && rows.fit(frames, memory.len());
        assert!($(fit(&$source) &&)+ fit(&out), "rows outside the memory of the model");
        let memory = memory.as_mut_ptr();
        for row in 0..out.count {
            let $row = row;
            let mut frame = 0;
            while frame < frames {
                // SAFETY: checked above: all rows are inside the memory.
                unsafe {
                    $(let $x = $simd.load(memory.add($source.start(row) + frame));)+
                    $simd.store(memory.add(out.start(row) + frame), $value);
                }
                frame += S::LANES;
            }
        }
    }};
}

pub(super) use each;

/// Sets the frames of all rows to 0.
///
/// # Panics
/// If rows are outside `memory`.
#[inline(always)]
pub fn silence<S: Simd>(simd: S, memory: &mut [f32], rows: Rows, frames: usize) {
    each!(simd, memory, _, [_x in rows] => rows, frames, simd.splat(0.0));
}

/// An element-wise operation.
#[derive(Debug, Clone, Copy)]
pub enum Combine {
    /// A copy.
    Copy(Rows),
    /// The sum.
    Add(Rows, Rows),
    /// The product.
    Multiply(Rows, Rows),
    /// The product of the first two, plus the third.
    MultiplyAdd(Rows, Rows, Rows),
    /// Linear interpolation: `weight` times `a` plus (1 - `weight`) times `b`.
    Lerp {
        /// Weight of `a`, 0 to 1.
        weight: Rows,
        /// Value for weight 1.
        a: Rows,
        /// Value for weight 0.
        b: Rows,
    },
}

/// Computes the frames of `out`, which may be one of the sources.
///
/// # Panics
/// If rows are outside `memory`.
pub fn combine(pass: Pass, memory: &mut [f32], operation: Combine, out: Rows) {
    pass.instructions.run(Combination { operation, memory, out, frames: pass.frames });
}

struct Combination<'a> {
    operation: Combine,
    memory: &'a mut [f32],
    out: Rows,
    frames: usize,
}

impl Op for Combination<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { operation, memory, out, frames } = self;
        match operation {
            Combine::Copy(x) => each!(simd, memory, _, [a in x] => out, frames, a),
            Combine::Add(x, y) => each!(simd, memory, _, [a in x, b in y] => out, frames, simd.add(a, b)),
            Combine::Multiply(x, y) => each!(simd, memory, _, [a in x, b in y] => out, frames, simd.mul(a, b)),
            Combine::MultiplyAdd(x, y, z) => {
                each!(simd, memory, _, [a in x, b in y, c in z] => out, frames, simd.mul_add(a, b, c));
            }
            Combine::Lerp { weight, a, b } => {
                each!(simd, memory, _, [w in weight, x in a, y in b] => out, frames, {
                    let left = simd.sub(simd.splat(1.0), w);
                    simd.mul_add(w, x, simd.mul(left, y))
                });
            }
        }
    }
}
