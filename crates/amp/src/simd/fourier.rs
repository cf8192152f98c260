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
        assert!(samples.len() == 2 * BINS, "a spectrum needs {} samples", 2 * BINS);
        let (first, second) = samples.split_at(BINS);
        let turn = &self.half_bin;
        for n in 0..BINS {
            spectrum.re[n] = first[n] * turn.re[n] + second[n] * turn.im[n];
            spectrum.im[n] = first[n] * turn.im[n] - second[n] * turn.re[n];
        }
        self.instructions.run(Transform { twiddles: &self.twiddles, re: &mut spectrum.re, im: &mut spectrum.im });
    }

    /// Computes the second half of the signal of a spectrum, times [`BINS`]; samples that wrapped around are in the
    /// first half. Overwrites the spectrum.
    pub fn second_half(&self, spectrum: &mut Spectrum, samples: &mut [f32; BINS]) {
        // An inverse transform is a forward transform with real and imaginary parts swapped.
        self.instructions.run(Transform { twiddles: &self.twiddles, re: &mut spectrum.im, im: &mut spectrum.re });
        let turn = &self.half_bin;
        for n in 0..BINS {
            samples[n] = spectrum.re[n] * turn.im[n] - spectrum.im[n] * turn.re[n];
        }
    }
}

struct Transform<'a> {
    twiddles: &'a Spectrum,
    re: &'a mut [f32; BINS],
    im: &'a mut [f32; BINS],
}

impl Op for Transform<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { twiddles, re, im } = self;
        dft16_columns(simd, re, im);
        for at in (0..BINS).step_by(S::LANES) {
            // SAFETY: all four have the same length, a multiple of the lanes of any vector.
            unsafe {
                let value = (simd.load(re[at..].as_ptr()), simd.load(im[at..].as_ptr()));
                let factor = (simd.load(twiddles.re[at..].as_ptr()), simd.load(twiddles.im[at..].as_ptr()));
                let (real, imaginary) = times(simd, value, factor);
                simd.store(re[at..].as_mut_ptr(), real);
                simd.store(im[at..].as_mut_ptr(), imaginary);
            }
        }
        for row in 0..ROW {
            for column in 0..row {
                re.swap(row * ROW + column, column * ROW + row);
                im.swap(row * ROW + column, column * ROW + row);
            }
        }
        dft16_columns(simd, re, im);
    }
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
            fourier.second_half(&mut product, &mut output);
            for n in 0..BINS {
                let exact: f64 = (0..BINS).map(|k| f64::from(response[k]) * f64::from(samples[BINS + n - k])).sum();
                let error = (f64::from(output[n]) / BINS as f64 - exact).abs();
                assert!(error < 5e-6, "{} sample {n}: {error:e}", instructions.name());
            }
        }
    }
}
