//! Impulse responses from one sample rate to another, without delay.
//!
//! What rings before the first sample, where a response begins steeply, cannot be kept without delay. Cut off alone it would be
//! missing from the response to every frequency, by up to some dB; so the first samples make up for it, by least squares: their
//! spectrum is that of what was cut off, as nearly as it goes where both rates have frequencies, and small elsewhere.

use super::{Quality, RateError, greatest_common_divisor, resample, sinc};

/// Samples that make up for it.
const FIRST: usize = 64;
/// What an error weighs at frequencies that only one rate has, where it is 1 at those that both have: less, and the first samples
/// would grow large there.
const ELSEWHERE: f64 = 3e-4;
/// Frequencies that both have, of half the lower rate: as far as nothing is lost.
const BOTH: f64 = 0.92;

/// `samples` at another rate, with the same response to every frequency that both have. The first sample stays at its place; as
/// long as it rings.
///
/// # Errors
/// [`RateError`], where the rates have too little in common, or are more than 64 times apart.
pub fn response(samples: &[f32], from_hz: u32, to_hz: u32) -> Result<Vec<f32>, RateError> {
    if from_hz == to_hz || from_hz == 0 || to_hz == 0 {
        return resample(samples, from_hz, to_hz);
    }
    let common = greatest_common_divisor(from_hz, to_hz);
    let (up, down) = ((to_hz / common) as usize, (from_hz / common) as usize);
    let ratio = f64::from(from_hz) / f64::from(to_hz);
    // As far as the kernel reaches, and a whole number of samples at both rates.
    let reach = ((Quality::OFFLINE.half * ratio.max(1.0)).ceil() as usize + 1).next_multiple_of(down);
    let silence = vec![0.0; reach];
    let mut made = resample(&[&silence, samples, &silence].concat(), from_hz, to_hz)?;
    let before: Vec<f32> = made.drain(..reach / down * up).collect();
    let band = 0.5 * BOTH * ratio.min(1.0);
    for (sample, more) in made.iter_mut().zip(made_up(&before, band)) {
        *sample += more as f32;
    }
    Ok(made)
}

/// What the first samples are to have more in place of those `before` them; `band` is what counts, cycles a sample.
fn made_up(before: &[f32], band: f64) -> Vec<f64> {
    // What two samples so far apart have in common where it counts.
    let shared = |apart: usize| (1.0 - ELSEWHERE) * 2.0 * band * sinc(2.0 * band * apart as f64);
    let table: Vec<f64> = (0..FIRST + before.len()).map(shared).collect();
    let matrix = |row: usize, column: usize| table[row.abs_diff(column)] + if row == column { ELSEWHERE } else { 0.0 };
    let aim = |row: usize| before.iter().rev().zip(&table[row + 1..]).map(|(x, shared)| f64::from(*x) * shared).sum();
    solve(matrix, (0..FIRST).map(aim).collect())
}

/// Solves a system whose matrix is symmetric and positive, by Cholesky's factors.
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

    /// Gain at a frequency, of a response that stands for a sound of any rate.
    fn gain(response: &[f32], hz: f64, rate_hz: u32) -> f64 {
        let turn = |n: usize| 2.0 * PI * hz * n as f64 / f64::from(rate_hz);
        let part =
            |of: fn(f64) -> f64| response.iter().enumerate().map(|(n, x)| f64::from(*x) * of(turn(n))).sum::<f64>();
        part(f64::cos).hypot(part(f64::sin)) / f64::from(rate_hz)
    }

    #[test]
    fn a_response_that_begins_at_once_keeps_its_gain_at_every_frequency() {
        let falling: Vec<f32> = (0..600).map(|n| 0.8_f32.powi(n) * (1.0 + (n as f32).sin())).collect();
        for (from, to) in [(48_000, 96_000), (44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (48_000, 192_000)] {
            for samples in [&[1.0][..], &falling] {
                let made = response(samples, from, to).unwrap();
                let at = |part: i32| 0.9 * f64::from(from.min(to)) / 2.0 * f64::from(part) / 30.0;
                let largest = (0..=30).map(|part| gain(samples, at(part), from)).fold(0.0, f64::max);
                for hz in (0..=30).map(at) {
                    let error = (gain(&made, hz, to) - gain(samples, hz, from)).abs() / largest;
                    assert!(error < 0.02, "{from} to {to} at {hz:.0} Hz: {error}");
                }
            }
        }
    }

    #[test]
    fn one_that_begins_softly_is_as_any_signal() {
        let soft: Vec<f32> = (0..800).map(|n| (-((n as f32 - 400.0) / 40.0).powi(2)).exp()).collect();
        let (made, plain) = (response(&soft, 44_100, 48_000).unwrap(), resample(&soft, 44_100, 48_000).unwrap());
        assert!(plain.iter().zip(&made).all(|(plain, made)| (plain - made).abs() < 1e-6));
    }
}
