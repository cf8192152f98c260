//! Convolution of long signals: a Fourier transform for this purpose only.
//!
//! Two real signals of `2 * BINS` samples are convolved cyclically, but samples that wrap around the end change their
//! sign (negacyclic or "right-angle" convolution). This is a product of polynomials modulo z^N + 1. A real polynomial
//! is determined by its values at half of the roots, and these are a complex transform of half the length, shifted by
//! half a bin: no bin is a special case. (H. Nussbaumer, Fast Fourier Transform and Convolution Algorithms, 1982,
//! chapter 8.)
//!
//! The transform itself is 16 x 16: transforms of length 16 along the columns, twiddle factors, a transposition, and
//! again transforms of length 16. All vectors run along rows, and the bins are in order.

use std::f64::consts::PI;

use super::{InstructionSet, MAX_LANES, Op, Simd};
use crate::convert::to_f32;

/// Number of values of a spectrum; the signal has twice as many samples.
pub const BINS: usize = ROW * ROW;
/// Number of contiguous values of a spectrum: [`sum_of_products`](super::sum_of_products) takes 16 real parts, then 16
/// imaginary parts.
pub const ROW: usize = 16;

/// Number of steps of a transform with its shift by half a bin.
pub const STEPS: usize = TRANSFORM_STEPS + 1;

/// Number of steps of the transform itself: columns, twiddle factors and transposition in two steps, columns.
const TRANSFORM_STEPS: usize = 4;

const _: () = assert!(ROW.is_multiple_of(MAX_LANES), "vectors fill rows");

/// Real and imaginary parts of a spectrum.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Real parts.
    pub re: [f32; BINS],
    /// Imaginary parts.
    pub im: [f32; BINS],
}

impl Spectrum {
    /// All zeros.
    pub const ZERO: Self = Self { re: [0.0; BINS], im: [0.0; BINS] };
}

/// Factors of the transform.
#[derive(Debug)]
pub struct Fourier {
    instructions: InstructionSet,
    /// exp(-i pi n / (2 BINS)): the shift by half a bin.
    half_bin: Spectrum,
    /// exp(-2 pi i row column / BINS): twiddle factors.
    twiddles: Spectrum,
}

impl Fourier {
    /// Computes the factors.
    #[must_use]
    pub fn new(instructions: InstructionSet) -> Box<Self> {
        let factors = |turns: &dyn Fn(usize) -> f64| Spectrum {
            re: std::array::from_fn(|n| to_f32((2.0 * PI * turns(n)).cos())),
            im: std::array::from_fn(|n| to_f32((-2.0 * PI * turns(n)).sin())),
        };
        let bins = BINS as f64;
        let half_bin = factors(&|n| n as f64 / (4.0 * bins));
        Box::new(Self { instructions, half_bin, twiddles: factors(&|n| (n / ROW * (n % ROW)) as f64 / bins) })
    }

    /// Computes the spectrum of `2 * BINS` samples.
    ///
    /// # Panics
    /// If `samples` has another length.
    pub fn forward(&self, samples: &[f32], spectrum: &mut Spectrum) {
        (0..STEPS).for_each(|step| self.forward_step(step, samples, spectrum));
    }

    /// One of the [`STEPS`] of [`Fourier::forward`], which must be computed in order. Only the first one reads
    /// `samples`.
    ///
    /// # Panics
    /// If `samples` has another length.
    pub fn forward_step(&self, step: usize, samples: &[f32], spectrum: &mut Spectrum) {
        assert!(samples.len() == 2 * BINS, "a spectrum needs {} samples", 2 * BINS);
        match step.checked_sub(1) {
            None => self.instructions.run(Fold { half_bin: &self.half_bin, samples, spectrum }),
            Some(step) => self.transform_step(step, &mut spectrum.re, &mut spectrum.im),
        }
    }

    /// One of the [`STEPS`] that compute the second half of the signal of a spectrum, times [`BINS`]; samples that
    /// wrapped around are in the first half. They must be computed in order. The last one writes `samples`; all
    /// overwrite the spectrum.
    pub fn second_half_step(&self, step: usize, spectrum: &mut Spectrum, samples: &mut [f32; BINS]) {
        match step {
            // An inverse transform is a forward transform with real and imaginary parts swapped.
            0..TRANSFORM_STEPS => self.transform_step(step, &mut spectrum.im, &mut spectrum.re),
            _ => self.instructions.run(Unfold { half_bin: &self.half_bin, spectrum, samples }),
        }
    }

    fn transform_step(&self, step: usize, re: &mut [f32; BINS], im: &mut [f32; BINS]) {
        self.instructions.run(Transform { step, twiddles: &self.twiddles, re, im });
    }
}

/// Makes complex values of the samples and shifts them by half a bin.
struct Fold<'a> {
    half_bin: &'a Spectrum,
    samples: &'a [f32],
    spectrum: &'a mut Spectrum,
}

impl Op for Fold<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { half_bin, samples, spectrum } = self;
        let (first, second) = samples.split_at(BINS);
        for at in (0..BINS).step_by(S::LANES) {
            // SAFETY: all have this length, a multiple of the lanes of any vector.
            unsafe {
                let value =
                    (simd.load(first[at..].as_ptr()), simd.sub(simd.splat(0.0), simd.load(second[at..].as_ptr())));
                let (re, im) = times(simd, value, load(simd, half_bin, at));
                simd.store(spectrum.re[at..].as_mut_ptr(), re);
                simd.store(spectrum.im[at..].as_mut_ptr(), im);
            }
        }
    }
}

/// The reverse of [`Fold`] for the second half of the samples, with real and imaginary parts swapped.
struct Unfold<'a> {
    half_bin: &'a Spectrum,
    spectrum: &'a Spectrum,
    samples: &'a mut [f32; BINS],
}

impl Op for Unfold<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { half_bin, spectrum, samples } = self;
        for at in (0..BINS).step_by(S::LANES) {
            // SAFETY: all have this length, a multiple of the lanes of any vector.
            unsafe {
                let ((re, im), turn) = (load(simd, spectrum, at), load(simd, half_bin, at));
                let sample = simd.sub(simd.mul(re, turn.1), simd.mul(im, turn.0));
                simd.store(samples[at..].as_mut_ptr(), sample);
            }
        }
    }
}

/// A vector of a spectrum.
///
/// # Safety
/// The spectrum has values for all lanes from `at`.
#[inline(always)]
unsafe fn load<S: Simd>(simd: S, spectrum: &Spectrum, at: usize) -> Complex<S> {
    // SAFETY: guaranteed by the caller.
    unsafe { (simd.load(spectrum.re[at..].as_ptr()), simd.load(spectrum.im[at..].as_ptr())) }
}

struct Transform<'a> {
    step: usize,
    twiddles: &'a Spectrum,
    re: &'a mut [f32; BINS],
    im: &'a mut [f32; BINS],
}

impl Op for Transform<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { step, twiddles, re, im } = self;
        match step {
            1 => turn(simd, twiddles, re, im),
            2 => transpose(simd, im),
            _ => dft16_columns(simd, re, im),
        }
    }
}

/// Multiplies the values with the twiddle factors and transposes the real parts.
#[inline(always)]
fn turn<S: Simd>(simd: S, twiddles: &Spectrum, re: &mut [f32; BINS], im: &mut [f32; BINS]) {
    for at in (0..BINS).step_by(S::LANES) {
        // SAFETY: all have the same length, a multiple of the lanes of any vector.
        unsafe {
            let value = (simd.load(re[at..].as_ptr()), simd.load(im[at..].as_ptr()));
            let (real, imaginary) = times(simd, value, load(simd, twiddles, at));
            simd.store(re[at..].as_mut_ptr(), real);
            simd.store(im[at..].as_mut_ptr(), imaginary);
        }
    }
    transpose(simd, re);
}

/// Exchanges rows and columns, by blocks of as many rows as a vector has lanes.
#[inline(always)]
fn transpose<S: Simd>(simd: S, values: &mut [f32; BINS]) {
    for row in (0..ROW).step_by(S::LANES) {
        for column in (0..=row).step_by(S::LANES) {
            let (below, above) = (transposed(simd, values, row, column), transposed(simd, values, column, row));
            for i in 0..S::LANES {
                // SAFETY: rows of both blocks, inside the values.
                unsafe {
                    simd.store(values[(column + i) * ROW + row..].as_mut_ptr(), below[i]);
                    simd.store(values[(row + i) * ROW + column..].as_mut_ptr(), above[i]);
                }
            }
        }
    }
}

/// A block of values with its rows and columns exchanged. Interleaving the first half of the rows with the second half
/// moves one bit of each value's row number to its column number.
#[inline(always)]
fn transposed<S: Simd>(simd: S, values: &[f32; BINS], row: usize, column: usize) -> [S::V; MAX_LANES] {
    let mut rows = [simd.splat(0.0); MAX_LANES];
    for i in 0..S::LANES {
        // SAFETY: a row of the block, inside the values.
        rows[i] = unsafe { simd.load(values[(row + i) * ROW + column..].as_ptr()) };
    }
    for _ in 0..S::LANES.ilog2() {
        let before = rows;
        for i in 0..S::LANES / 2 {
            [rows[2 * i], rows[2 * i + 1]] = simd.interleave(before[i], before[i + S::LANES / 2]);
        }
    }
    rows
}

/// A vector of complex numbers.
type Complex<S> = (<S as Simd>::V, <S as Simd>::V);

/// Transforms each column of 16, as 4 x 4.
#[inline(always)]
fn dft16_columns<S: Simd>(simd: S, re: &mut [f32; BINS], im: &mut [f32; BINS]) {
    for column in (0..ROW).step_by(S::LANES) {
        let mut rows = [(simd.splat(0.0), simd.splat(0.0)); ROW];
        for row in 0..ROW {
            let at = row * ROW + column;
            // SAFETY: inside both arrays, whose rows are multiples of the lanes of any vector.
            rows[row] = unsafe { (simd.load(re[at..].as_ptr()), simd.load(im[at..].as_ptr())) };
        }
        for first in 0..4 {
            let bins = radix4(simd, [rows[first], rows[first + 4], rows[first + 8], rows[first + 12]]);
            for bin in 0..4 {
                let (cos, sin) = TWIDDLES_16[first * bin];
                rows[first + 4 * bin] = times(simd, bins[bin], (simd.splat(cos), simd.splat(-sin)));
            }
        }
        for bin in 0..4 {
            let bins = radix4(simd, [rows[4 * bin], rows[4 * bin + 1], rows[4 * bin + 2], rows[4 * bin + 3]]);
            for (quarter, (real, imaginary)) in bins.into_iter().enumerate() {
                let at = (bin + 4 * quarter) * ROW + column;
                // SAFETY: as above.
                unsafe {
                    simd.store(re[at..].as_mut_ptr(), real);
                    simd.store(im[at..].as_mut_ptr(), imaginary);
                }
            }
        }
    }
}

/// Twiddle factors of a transform of 4 x 4: cosine and sine of multiples of a sixteenth of a turn.
const TWIDDLES_16: [(f32, f32); 10] = {
    use std::f32::consts::FRAC_1_SQRT_2 as DIAGONAL;
    const COS: f32 = 0.923_879_5;
    const SIN: f32 = 0.382_683_43;
    [
        (1.0, 0.0),
        (COS, SIN),
        (DIAGONAL, DIAGONAL),
        (SIN, COS),
        (0.0, 1.0),
        (-SIN, COS),
        (-DIAGONAL, DIAGONAL),
        (-COS, SIN),
        (-1.0, 0.0),
        (-COS, -SIN),
    ]
};

/// A transform of length 4 (radix 4).
#[inline(always)]
fn radix4<S: Simd>(simd: S, [a, b, c, d]: [Complex<S>; 4]) -> [Complex<S>; 4] {
    let (even, difference) = (plus(simd, a, c), minus(simd, a, c));
    let (odd, turned) = (plus(simd, b, d), minus(simd, b, d));
    [
        plus(simd, even, odd),
        (simd.add(difference.0, turned.1), simd.sub(difference.1, turned.0)),
        minus(simd, even, odd),
        (simd.sub(difference.0, turned.1), simd.add(difference.1, turned.0)),
    ]
}

#[inline(always)]
fn plus<S: Simd>(simd: S, x: Complex<S>, y: Complex<S>) -> Complex<S> {
    (simd.add(x.0, y.0), simd.add(x.1, y.1))
}

#[inline(always)]
fn minus<S: Simd>(simd: S, x: Complex<S>, y: Complex<S>) -> Complex<S> {
    (simd.sub(x.0, y.0), simd.sub(x.1, y.1))
}

#[inline(always)]
fn times<S: Simd>(simd: S, x: Complex<S>, y: Complex<S>) -> Complex<S> {
    let cross = simd.sub(simd.splat(0.0), simd.mul(x.1, y.1));
    (simd.mul_add(x.0, y.0, cross), simd.mul_add(x.0, y.1, simd.mul(x.1, y.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::sum_of_products;

    fn noise(seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state as f32 / u32::MAX as f32 - 0.5
        };
        (0..2 * BINS).map(|_| next()).collect()
    }

    /// Compared with the definition: the values of the polynomial at the roots.
    #[test]
    fn a_spectrum_has_the_values_at_the_roots() {
        let samples = noise(1);
        for instructions in InstructionSet::all() {
            let mut spectrum = Spectrum::ZERO;
            Fourier::new(instructions).forward(&samples, &mut spectrum);
            for bin in 0..BINS {
                let turn = -PI * (4.0 * bin as f64 + 1.0) / (2.0 * BINS as f64);
                let value = |part: fn(f64) -> f64| -> f64 {
                    samples.iter().enumerate().map(|(n, &x)| f64::from(x) * part(turn * n as f64)).sum()
                };
                let (re, im) = (value(f64::cos), value(f64::sin));
                let error = (re - f64::from(spectrum.re[bin])).hypot(im - f64::from(spectrum.im[bin]));
                assert!(error < 2e-5, "{} bin {bin}: {error:e}", instructions.name());
            }
        }
    }

    #[test]
    fn products_of_spectra_are_convolutions() {
        let (samples, mut response) = (noise(2), noise(3));
        response[BINS..].fill(0.0);
        for instructions in InstructionSet::all() {
            let fourier = Fourier::new(instructions);
            let (mut a, mut b) = (Spectrum::ZERO, Spectrum::ZERO);
            fourier.forward(&samples, &mut a);
            fourier.forward(&response, &mut b);
            let mut product = Spectrum::ZERO;
            for row in (0..BINS).step_by(ROW) {
                let side_by_side = |x: &Spectrum| [&x.re[row..row + ROW], &x.im[row..row + ROW]].concat();
                let (x, y) = (side_by_side(&a), side_by_side(&b));
                let (re, im) = sum_of_products(instructions, [(&x, &y), (&[], &[])]);
                product.re[row..row + ROW].copy_from_slice(&re);
                product.im[row..row + ROW].copy_from_slice(&im);
            }
            let mut output = [0.0; BINS];
            (0..STEPS).for_each(|step| fourier.second_half_step(step, &mut product, &mut output));
            for n in 0..BINS {
                let exact: f64 = (0..BINS).map(|k| f64::from(response[k]) * f64::from(samples[BINS + n - k])).sum();
                let error = (f64::from(output[n]) / BINS as f64 - exact).abs();
                assert!(error < 5e-6, "{} sample {n}: {error:e}", instructions.name());
            }
        }
    }
}
