//! Direct convolution: every output is a weighted sum of past inputs.

use super::{InstructionSet, MAX_LANES, Op, Simd};

/// The number of frames is a multiple of this.
pub const STEP: usize = MAX_LANES;

/// The number of weights is a multiple of this, the maximum number of partial sums.
pub const SUMS: usize = 4;

/// Sets `out[frame]` to the sum of `weights[i] * window[frame + i]`; the weight of the oldest frame comes first. The
/// operations for a frame do not depend on the number of frames.
///
/// # Panics
/// If the length of `out` is not a multiple of [`STEP`], the number of weights is not a multiple of [`SUMS`], or
/// `window` has fewer than `weights.len() + out.len() - 1` values.
pub fn fir(instructions: InstructionSet, window: &[f32], weights: &[f32], out: &mut [f32]) {
    instructions.run(Fir { window, weights, out });
}

struct Fir<'a> {
    window: &'a [f32],
    weights: &'a [f32],
    out: &'a mut [f32],
}

impl Op for Fir<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { window, weights, out } = self;
        assert!(
            out.len().is_multiple_of(STEP) && weights.len().is_multiple_of(SUMS),
            "lengths are not multiples of STEP and SUMS"
        );
        assert!(window.len() + 1 >= weights.len() + out.len(), "the window is too short");
        let mut frame = 0;
        while frame < out.len() {
            let left = (out.len() - frame) / S::LANES;
            let (window, out) = (&window[frame..], &mut out[frame..]);
            // SAFETY: checked above: this many vectors are left, and the window has values for the last of them and the
            // last weight. The number of weights is a multiple of [`SUMS`], and so of both numbers of partial sums.
            unsafe {
                frame += S::LANES
                    * match (left, S::CONCURRENT_VECTORS) {
                        (4.., 4) => tile::<S, 4, 4, 7>(simd, window, weights, out),
                        (2.., 4) => tile::<S, 2, 4, 5>(simd, window, weights, out),
                        (_, 4) => tile::<S, 1, 4, 4>(simd, window, weights, out),
                        (4.., _) => tile::<S, 4, 2, 5>(simd, window, weights, out),
                        (2.., _) => tile::<S, 2, 2, 3>(simd, window, weights, out),
                        _ => tile::<S, 1, 2, 2>(simd, window, weights, out),
                    };
            }
        }
    }
}

/// Computes `N` vectors of frames, each in `P` partial sums, so that the additions do not wait for each other; limited
/// by the number of registers. Weights whose distance is a vector multiply the same values of the window for different
/// vectors of frames, so `P` such weights at once need only `LOADS` = `N + P - 1` vectors of the window. `P` is the
/// same for every `N`, so that each frame sees the same operations. Returns `N`.
///
/// # Safety
/// `out` has space for `N` vectors, `window` has at least `weights.len() + N * S::LANES - 1` values, and the number of
/// weights is a multiple of `P`.
#[inline(always)]
unsafe fn tile<S: Simd, const N: usize, const P: usize, const LOADS: usize>(
    simd: S,
    window: &[f32],
    weights: &[f32],
    out: &mut [f32],
) -> usize {
    const { assert!(LOADS == N + P - 1) };
    let mut sums = [[simd.splat(0.0); N]; P];
    let mut from = window.as_ptr();
    let groups = weights.chunks_exact(P * S::LANES);
    let rest = groups.remainder();
    for group in groups {
        for lane in 0..S::LANES {
            // SAFETY: inside the window, as the caller guarantees: the last value is that of the group's last weight and
            // the last frame.
            let values: [S::V; LOADS] = std::array::from_fn(|i| unsafe { simd.load(from.add(i * S::LANES + lane)) });
            for p in 0..P {
                let weight = simd.splat(group[p * S::LANES + lane]);
                for n in 0..N {
                    sums[p][n] = simd.mul_add(values[n + p], weight, sums[p][n]);
                }
            }
        }
        // SAFETY: as above.
        from = unsafe { from.add(P * S::LANES) };
    }
    for group in rest.chunks_exact(P) {
        for p in 0..P {
            let weight = simd.splat(group[p]);
            for n in 0..N {
                // SAFETY: inside the window, as the caller guarantees.
                sums[p][n] = simd.mul_add(unsafe { simd.load(from.add(n * S::LANES + p)) }, weight, sums[p][n]);
            }
        }
        // SAFETY: as above.
        from = unsafe { from.add(P) };
    }
    for n in 0..N {
        let mut sum = sums[0][n];
        for p in 1..P {
            sum = simd.add(sum, sums[p][n]);
        }
        // SAFETY: inside `out`, as the caller guarantees.
        unsafe { simd.store(out.as_mut_ptr().add(n * S::LANES), sum) };
    }
    N
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_do_not_depend_on_the_vector_length_or_the_number_of_frames() {
        // Two groups of weights of the longest vectors, and a rest.
        let weights: Vec<f32> = (0..140).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        let window: Vec<f32> = (0..weights.len() + 95).map(|i| (i as f32 * 0.7).sin()).collect();
        for instructions in InstructionSet::all() {
            let mut whole = [0.0; 96];
            fir(instructions, &window, &weights, &mut whole);
            for (frame, value) in whole.iter().enumerate() {
                let products =
                    weights.iter().zip(&window[frame..]).map(|(&weight, &x)| f64::from(weight) * f64::from(x));
                let error = f64::from(*value) - products.sum::<f64>();
                assert!(error.abs() < 1e-6, "{} {frame}: {error:e}", instructions.name());
            }
            for step in [16, 32, 48] {
                let mut part = vec![0.0; step];
                fir(instructions, &window[16..], &weights, &mut part);
                assert_eq!(part, whole[16..16 + step], "{} {step}", instructions.name());
            }
        }
    }
}
