//! Sample rate conversion of impulse responses without delay.
//!
//! A response that starts steeply rings before its first sample at another rate. This ringing cannot be kept without
//! delay. Cutting it off would change the gain at every frequency by up to several dB. The first samples therefore
//! compensate for it by least squares: in the band of both rates their spectrum approximates that of the ringing, and
//! is small elsewhere.

use crate::convert::{to_f32, whole};

use super::{Quality, RateError, greatest_common_divisor, resample, sinc};

/// Number of samples that compensate.
const CORRECTED: usize = 64;
/// Weight of an error at frequencies that only one rate has, relative to that in the common band. With a smaller
/// weight, the first samples would become large at those frequencies.
const OUT_OF_BAND_WEIGHT: f64 = 3e-4;
/// Upper end of the common band, relative to half the lower rate: the passband of the conversion.
const COMMON_BAND: f64 = 0.92;

/// Converts `samples` to another rate, with the same gain at every frequency that both rates have. The first sample
/// keeps its position. The output is longer by the ringing at the end.
///
/// # Errors
/// [`RateError`] if the ratio of the rates is not supported.
pub fn response(samples: &[f32], from_hz: u32, to_hz: u32) -> Result<Vec<f32>, RateError> {
    if from_hz == to_hz || from_hz == 0 || to_hz == 0 {
        return resample(samples, from_hz, to_hz);
    }
    let common = greatest_common_divisor(from_hz, to_hz);
    let (up, down) = ((to_hz / common) as usize, (from_hz / common) as usize);
    let ratio = f64::from(from_hz) / f64::from(to_hz);
    // The length of the kernel, rounded up to a whole number of samples at both rates.
    let reach = (whole((Quality::OFFLINE.half * ratio.max(1.0)).ceil()) + 1).next_multiple_of(down);
    let silence = vec![0.0; reach];
    let mut output = resample(&[&silence, samples, &silence].concat(), from_hz, to_hz)?;
    let before: Vec<f32> = output.drain(..reach / down * up).collect();
    let band = 0.5 * COMMON_BAND * ratio.min(1.0);
    for (sample, more) in output.iter_mut().zip(corrections(&before, band)) {
        *sample += to_f32(more);
    }
    Ok(output)
}

/// The corrections of the first samples that replace the samples `before` them; `band` is the common band, cycles per
/// sample.
fn corrections(before: &[f32], band: f64) -> Vec<f64> {
    // The correlation of two samples at this distance in the common band.
    let correlation = |apart: usize| (1.0 - OUT_OF_BAND_WEIGHT) * 2.0 * band * sinc(2.0 * band * apart as f64);
    let table: Vec<f64> = (0..CORRECTED + before.len()).map(correlation).collect();
    let matrix =
        |row: usize, column: usize| table[row.abs_diff(column)] + if row == column { OUT_OF_BAND_WEIGHT } else { 0.0 };
    let target = |row: usize| {
        before.iter().rev().zip(&table[row + 1..]).map(|(x, correlation)| f64::from(*x) * correlation).sum()
    };
    solve(matrix, (0..CORRECTED).map(target).collect())
}

/// Solves a system with a symmetric positive definite matrix, by Cholesky factorisation.
fn solve(matrix: impl Fn(usize, usize) -> f64, mut x: Vec<f64>) -> Vec<f64> {
    let n = x.len();
    let mut lower = vec![vec![0.0; n]; n];
    for row in 0..n {
        for column in 0..=row {
            let known: f64 = (0..column).map(|i| lower[row][i] * lower[column][i]).sum();
            let rest = matrix(row, column) - known;
            lower[row][column] = if row == column { rest.sqrt() } else { rest / lower[column][column] };
        }
    }
    for row in 0..n {
        let known: f64 = (0..row).map(|i| lower[row][i] * x[i]).sum();
        x[row] = (x[row] - known) / lower[row][row];
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|i| lower[i][row] * x[i]).sum();
        x[row] = (x[row] - known) / lower[row][row];
    }
    x
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    /// The gain at a frequency, for responses of different rates.
    fn gain(response: &[f32], hz: f64, rate_hz: u32) -> f64 {
        let turn = |n: usize| 2.0 * PI * hz * n as f64 / f64::from(rate_hz);
        let part =
            |of: fn(f64) -> f64| response.iter().enumerate().map(|(n, x)| f64::from(*x) * of(turn(n))).sum::<f64>();
        part(f64::cos).hypot(part(f64::sin)) / f64::from(rate_hz)
    }

    #[test]
    fn a_steep_response_keeps_its_gain_at_every_frequency() {
        let falling: Vec<f32> = (0..600).map(|n| 0.8_f32.powi(n) * (1.0 + (n as f32).sin())).collect();
        for (from, to) in [(48_000, 96_000), (44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (48_000, 192_000)] {
            for samples in [&[1.0][..], &falling] {
                let output = response(samples, from, to).unwrap();
                let at = |part: i32| 0.9 * f64::from(from.min(to)) / 2.0 * f64::from(part) / 30.0;
                let largest = (0..=30).map(|part| gain(samples, at(part), from)).fold(0.0, f64::max);
                for hz in (0..=30).map(at) {
                    let error = (gain(&output, hz, to) - gain(samples, hz, from)).abs() / largest;
                    assert!(error < 0.02, "{from} to {to} at {hz:.0} Hz: {error}");
                }
            }
        }
    }

    #[test]
    fn a_response_with_a_soft_start_is_converted_like_any_signal() {
        let soft: Vec<f32> = (0..800).map(|n| (-((n as f32 - 400.0) / 40.0).powi(2)).exp()).collect();
        let (output, plain) = (response(&soft, 44_100, 48_000).unwrap(), resample(&soft, 44_100, 48_000).unwrap());
        assert!(plain.iter().zip(&output).all(|(plain, output)| (plain - output).abs() < 1e-6));
    }
}
