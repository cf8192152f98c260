//! Sums of products of spectra.

use super::{InstructionSet, Op, ROW, Simd};

/// The sum of products of spectra, over the rows of both lists: real and imaginary parts. Each row consists of [`ROW`]
/// real and [`ROW`] imaginary parts.
///
/// # Panics
/// If two slices that are multiplied have different lengths, or incomplete rows.
pub fn sum_of_products(instructions: InstructionSet, lists: [(&[f32], &[f32]); 2]) -> ([f32; ROW], [f32; ROW]) {
    instructions.run(Sum { lists })
}

struct Sum<'a> {
    lists: [(&'a [f32], &'a [f32]); 2],
}

impl Op for Sum<'_> {
    type Output = ([f32; ROW], [f32; ROW]);

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        for (a, b) in self.lists {
            assert!(a.len() == b.len() && a.len().is_multiple_of(2 * ROW), "spectra of different lengths");
        }
        let mut sum = ([0.0; ROW], [0.0; ROW]);
        for column in (0..ROW).step_by(S::LANES) {
            let zero = simd.splat(0.0);
            // Four sums, so that the additions do not wait for each other.
            let (mut re_re, mut im_im, mut re_im, mut im_re) = (zero, zero, zero, zero);
            for (a, b) in self.lists {
                for at in (column..a.len()).step_by(2 * ROW) {
                    // SAFETY: both slices consist of whole rows.
                    unsafe {
                        let (x, y) = (a.as_ptr().add(at), b.as_ptr().add(at));
                        let (x, x_im) = (simd.load(x), simd.load(x.add(ROW)));
                        let (y, y_im) = (simd.load(y), simd.load(y.add(ROW)));
                        re_re = simd.mul_add(x, y, re_re);
                        im_im = simd.mul_add(x_im, y_im, im_im);
                        re_im = simd.mul_add(x, y_im, re_im);
                        im_re = simd.mul_add(x_im, y, im_re);
                    }
                }
            }
            // SAFETY: the length of a row is a multiple of the lanes of any vector.
            unsafe {
                simd.store(sum.0[column..].as_mut_ptr(), simd.sub(re_re, im_im));
                simd.store(sum.1[column..].as_mut_ptr(), simd.add(re_im, im_re));
            }
        }
        sum
    }
}
