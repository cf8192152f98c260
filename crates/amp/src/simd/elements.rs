//! What is made of values that stand at the same place of several signals.

use super::{Op, Pass, Simd};
use crate::memory::Rows;

/// Each value of `$out` becomes `$made`, of the values of the sources named. No closure: one that the compiler does not
/// put in place would be built for the oldest processor.
macro_rules! each {
    ($simd:ident, $memory:expr, $row:pat, [$($x:ident in $source:expr),+] => $out:expr, $frames:expr, $made:expr) => {{
        let (memory, out, frames) = (&mut *$memory, $out, $frames.next_multiple_of(S::LANES));
        let fit = |rows: &$crate::memory::Rows| rows.count >= out.count && rows.fit(frames, memory.len());
        assert!($(fit(&$source) &&)+ fit(&out), "rows outside a model's memory");
        let memory = memory.as_mut_ptr();
        for row in 0..out.count {
            let $row = row;
            let mut frame = 0;
            while frame < frames {
                // SAFETY: all rows lie within the memory, as was checked.
                unsafe {
                    $(let $x = $simd.load(memory.add($source.start(row) + frame));)+
                    $simd.store(memory.add(out.start(row) + frame), $made);
                }
                frame += S::LANES;
            }
        }
    }};
}

pub(super) use each;

/// Makes the frames of all rows silent.
///
/// # Panics
/// When they do not lie within `memory`.
#[inline(always)]
pub fn silence<S: Simd>(simd: S, memory: &mut [f32], rows: Rows, frames: usize) {
    each!(simd, memory, _, [_x in rows] => rows, frames, simd.splat(0.0));
}

/// What becomes of values that stand at the same place of several signals.
#[derive(Debug, Clone, Copy)]
pub enum Combine {
    /// The value.
    Copy(Rows),
    /// Their sum.
    Add(Rows, Rows),
    /// Their product.
    Multiply(Rows, Rows),
    /// The product of the first two, and the third.
    MultiplyAdd(Rows, Rows, Rows),
    /// Linear interpolation: `weight` of `a`, and what is left of 1 of `b`.
    Lerp {
        /// How much of the one, 0 to 1.
        weight: Rows,
        /// The one.
        a: Rows,
        /// The other.
        b: Rows,
    },
}

/// Fills the frames of `out`, which may be one of the sources.
///
/// # Panics
/// When rows do not lie within `memory`.
pub fn combine(pass: Pass, memory: &mut [f32], how: Combine, out: Rows) {
    pass.instructions.run(Combination { how, memory, out, frames: pass.frames });
}

struct Combination<'a> {
    how: Combine,
    memory: &'a mut [f32],
    out: Rows,
    frames: usize,
}

impl Op for Combination<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { how, memory, out, frames } = self;
        match how {
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
