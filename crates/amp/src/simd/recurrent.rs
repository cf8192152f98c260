//! Recurrent units: the weights of all gates of some units lie side by side, so that one pass over the inputs gives all that
//! these units need.

mod unit;

use std::slice;

pub use self::unit::{Gru, Lstm, Unit};
use super::{Aligned, Level, Simd, dot};

/// Units with four sums each, which see their inputs and what all of them told last. For some units side by side: biases of
/// their sums, then for each column their weights.
#[derive(Debug, Clone)]
pub struct Gates {
    /// Vectors of units.
    vectors: usize,
    columns: usize,
    weights: Aligned,
}

/// Vectors of units that are computed together, where `left` are left: as many sums as keep the processor busy while the
/// first of them is not there yet, and no more than there are registers for.
#[inline(always)]
fn part_of(left: usize) -> usize {
    match left {
        3 | 5.. => 3,
        2 | 4 => 2,
        _ => 1,
    }
}

impl Gates {
    /// `weight(sum, unit, column)` and `bias(sum, unit)` of `units`, whose columns are the inputs and then the units. It serves
    /// vectors of `level` alone, and this kind of unit.
    #[must_use]
    pub fn new<U: Unit>(
        level: Level,
        _unit: U,
        units: usize,
        columns: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let lanes = level.lanes();
        let vectors = units.div_ceil(lanes);
        let mut weights = Vec::with_capacity(4 * vectors * lanes * (columns + 1));
        let mut first = 0;
        while first < vectors {
            let part = first * lanes..(first + part_of(vectors - first)) * lanes;
            first += part.len() / lanes;
            let mut lay = |value: &dyn Fn(usize, usize) -> f32| {
                for (sum, unit) in (0..4).flat_map(|sum| part.clone().map(move |unit| (sum, unit))) {
                    weights.push(if unit < units { U::SCALES[sum] * value(sum, unit) } else { 0.0 });
                }
            };
            lay(&bias);
            (0..columns).for_each(|column| lay(&|sum, unit| weight(sum, unit, column)));
        }
        Self { vectors, columns, weights: Aligned::new(weights.len(), weights) }
    }

    /// Steps of all units, one a frame: of each frame's values and what the units told before they make what they keep and
    /// what they tell. `inputs` and `told` have a row a frame; `last` is what was told before the first.
    ///
    /// # Panics
    /// When there are not as many values as columns, or no room for all units' vectors.
    #[inline(always)]
    pub fn run<S: Simd, U: Unit>(
        &self,
        simd: S,
        unit: U,
        inputs: Frames<'_>,
        (last, kept): (&[f32], &mut [f32]),
        told: &mut [f32],
        mut head: Option<Head<'_>>,
    ) {
        let pitch = kept.len();
        let (all, units) = (self.vectors * S::LANES, self.columns.checked_sub(inputs.count).unwrap_or(usize::MAX));
        assert!(pitch >= all && last.len() >= units && all >= units, "units that do not fit");
        assert!(self.weights.len() == 4 * all * (self.columns + 1), "weights for other vectors");
        let frames = told.len() / pitch;
        assert!(inputs.count <= inputs.pitch && inputs.values.len() >= frames * inputs.pitch, "inputs that do not fit");
        assert!(
            head.as_ref().is_none_or(|head| head.row.len() <= pitch && head.sums.len() >= frames),
            "a head elsewhere"
        );
        let (mut last, mut input, mut told) = (last.as_ptr(), inputs.values.as_ptr(), told.as_mut_ptr());
        let kept = kept.as_mut_ptr();
        let all_weights = self.weights.as_ptr();
        for frame in 0..frames {
            let (mut weights, mut first) = (all_weights, 0);
            while first < self.vectors {
                let at = first * S::LANES;
                // SAFETY: there is room for so many vectors of units in what is kept and told, there are weights for them,
                // each frame has its inputs, and the units told as many values before, as was checked.
                unsafe {
                    let columns =
                        [(input, inputs.count), (last, units)].map(|(at, len)| slice::from_raw_parts(at, len));
                    let (kept, told) = (kept.add(at), told.add(at));
                    match part_of(self.vectors - first) {
                        3 => part::<S, U, 3, 1>(simd, unit, &mut weights, columns, kept, told),
                        2 => part::<S, U, 2, 1>(simd, unit, &mut weights, columns, kept, told),
                        _ => part::<S, U, 1, 2>(simd, unit, &mut weights, columns, kept, told),
                    }
                }
                first += part_of(self.vectors - first);
            }
            if let Some(Head { row, bias, sums }) = &mut head {
                // SAFETY: the frame has as many values.
                sums[frame] = *bias + dot(simd, row, unsafe { slice::from_raw_parts(told, row.len()) });
            }
            last = told;
            (input, told) = (input.wrapping_add(inputs.pitch), told.wrapping_add(pitch));
        }
    }
}

/// One weighted sum of what all units tell in a frame.
#[derive(Debug)]
pub struct Head<'a> {
    /// A weight for each unit, padded.
    pub row: &'a [f32],
    /// What the sum begins with.
    pub bias: f32,
    /// Where the sums go, one a frame.
    pub sums: &'a mut [f32],
}

/// Values of some frames, a row each.
#[derive(Debug, Clone, Copy)]
pub struct Frames<'a> {
    /// All of them.
    pub values: &'a [f32],
    /// From one frame to the next.
    pub pitch: usize,
    /// Number of values in a frame.
    pub count: usize,
}

/// Computes `N` vectors of units, each sum in `P` parts, so that they need not wait for each other; `weights` becomes where
/// the next ones are.
///
/// # Safety
/// There are weights for as many units and columns, and room for their vectors.
#[inline(always)]
unsafe fn part<S: Simd, U: Unit, const N: usize, const P: usize>(
    simd: S,
    unit: U,
    weights: &mut *const f32,
    columns: [&[f32]; 2],
    kept: *mut f32,
    told: *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let sums = sums::<S, N, P>(simd, weights, columns);
        let mut now = [simd.splat(0.0); N];
        // All vectors keep before one tells. The processor then has enough to do while it waits for divisions; the compiler,
        // left to itself, mixes everything and has not registers enough for it.
        for n in 0..N {
            let of_n = [simd.pinned(sums[0][n]), simd.pinned(sums[1][n]), simd.pinned(sums[2][n]), sums[3][n]];
            let kept = kept.add(n * S::LANES);
            now[n] = simd.pinned(unit.keep(simd, of_n, simd.load(kept)));
            simd.store(kept, now[n]);
        }
        for n in 0..N {
            simd.store(told.add(n * S::LANES), unit.tell(simd, simd.pinned(sums[3][n]), now[n]));
        }
    }
}

/// Sums of `N` vectors of units, in `P` parts.
type Parts<V, const N: usize, const P: usize> = [[[V; P]; N]; 4];

/// Computes all sums.
///
/// # Safety
/// There are weights for `N` vectors and the columns.
#[inline(always)]
unsafe fn sums<S: Simd, const N: usize, const P: usize>(
    simd: S,
    weights: &mut *const f32,
    [inputs, last]: [&[f32]; 2],
) -> [[S::V; N]; 4] {
    let mut parts: Parts<S::V, N, P> = [[[simd.splat(0.0); P]; N]; 4];
    // SAFETY: as the caller promises.
    unsafe {
        for k in 0..4 {
            for n in 0..N {
                parts[k][n][0] = simd.load(*weights);
                *weights = weights.add(S::LANES);
            }
        }
        for &value in inputs {
            add_column::<S, N, P>(simd, weights, value, &mut parts, 0);
        }
        let mut groups = last.chunks_exact(4);
        for group in &mut groups {
            for i in 0..4 {
                add_column::<S, N, P>(simd, weights, group[i], &mut parts, i % P);
            }
        }
        for &value in groups.remainder() {
            add_column::<S, N, P>(simd, weights, value, &mut parts, 0);
        }
    }
    let mut sums = [[simd.splat(0.0); N]; 4];
    for k in 0..4 {
        for n in 0..N {
            sums[k][n] = parts[k][n][0];
            for p in 1..P {
                sums[k][n] = simd.add(sums[k][n], parts[k][n][p]);
            }
        }
    }
    sums
}

/// Adds one column's weights, each times its value, to part `p` of all sums.
///
/// # Safety
/// There are weights for `N` vectors.
#[inline(always)]
unsafe fn add_column<S: Simd, const N: usize, const P: usize>(
    simd: S,
    weights: &mut *const f32,
    value: f32,
    parts: &mut Parts<S::V, N, P>,
    p: usize,
) {
    let x = simd.splat(value);
    for k in 0..4 {
        for n in 0..N {
            // SAFETY: as the caller promises.
            unsafe {
                parts[k][n][p] = simd.mul_add(simd.load(*weights), x, parts[k][n][p]);
                *weights = weights.add(S::LANES);
            }
        }
    }
}
