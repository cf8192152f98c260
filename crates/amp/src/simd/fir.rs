//! Convolution as it is defined: every output a weighted sum of the inputs before it.

use super::{InstructionSet, MAX_LANES, Op, Simd};

/// Frames are computed in multiples of this.
pub const STEP: usize = MAX_LANES;

/// Weights come in multiples of this: as many sums of a frame as are ever computed side by side.
pub const SUMS: usize = 4;

/// `out[frame]` becomes the sum of `weights[i] * window[frame + i]`: the weights of the oldest frame first. Each frame sees
/// the same operations, whatever the number of frames.
///
/// # Panics
/// When the length of `out` is no multiple of [`STEP`], that of the weights none of [`SUMS`], or `window` has not the
/// `weights.len() + out.len() - 1` values that are seen.
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
            "lengths that vectors do not fill"
        );
        assert!(window.len() + 1 >= weights.len() + out.len(), "a window that is too short");
        let mut frame = 0;
        while frame < out.len() {
            let left = (out.len() - frame) / S::LANES;
            let (window, out) = (&window[frame..], &mut out[frame..]);
            // SAFETY: as many vectors are left, and for the last value of these and the last weight the window has one, as was
            // checked; the weights are a multiple of [`SUMS`] and so of either number of sums.
            unsafe {
                frame += S::LANES
                    * match (left, S::LANES) {
                        (4.., 16) => tile::<S, 4, 4>(simd, window, weights, out),
                        (2.., 16) => tile::<S, 2, 4>(simd, window, weights, out),
                        (_, 16) => tile::<S, 1, 4>(simd, window, weights, out),
                        (4.., _) => tile::<S, 4, 2>(simd, window, weights, out),
                        (2.., _) => tile::<S, 2, 2>(simd, window, weights, out),
                        _ => tile::<S, 1, 2>(simd, window, weights, out),
                    };
            }
        }
    }
}

/// `N` vectors of frames, in `P` sums each, so that one need not wait for the other: as many as there are registers for, and
/// the same number for every `N`, since each frame is to see the same operations. Returns how many vectors.
///
/// # Safety
/// There is room for `N` vectors in `out`; `window` has `weights.len() + N * S::LANES - 1` values at least; and the number of
/// weights is a multiple of `P`.
#[inline(always)]
unsafe fn tile<S: Simd, const N: usize, const P: usize>(
    simd: S,
    window: &[f32],
    weights: &[f32],
    out: &mut [f32],
) -> usize {
    let mut sums = [[simd.splat(0.0); N]; P];
    let mut from = window.as_ptr();
    for group in weights.chunks_exact(P) {
        for p in 0..P {
            let weight = simd.splat(group[p]);
            for n in 0..N {
                // SAFETY: within the window, as the caller promises.
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
        // SAFETY: within `out`, as the caller promises.
        unsafe { simd.store(out.as_mut_ptr().add(n * S::LANES), sum) };
    }
    N
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_its_sum_whatever_the_vectors() {
        let window: Vec<f32> = (0..120).map(|i| (i as f32 * 0.7).sin()).collect();
        let weights: Vec<f32> = (0..12).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        for instructions in InstructionSet::all() {
            let mut whole = [0.0; 96];
            fir(instructions, &window, &weights, &mut whole);
            for (frame, made) in whole.iter().enumerate() {
                let exact: f32 = weights.iter().zip(&window[frame..]).map(|(weight, x)| weight * x).sum();
                assert!((made - exact).abs() < 1e-6, "{} {frame}", instructions.name());
            }
            for step in [16, 32, 48] {
                let mut part = vec![0.0; step];
                fir(instructions, &window[16..], &weights, &mut part);
                assert_eq!(part, whole[16..16 + step], "{} {step}", instructions.name());
            }
        }
    }
}
