//! Recurrent units: the weights of all gates of some units lie side by side, so that one pass over the inputs gives all that
//! these units need.

mod unit;

use self::unit::Last;
pub use self::unit::{Gru, Lstm, Unit};
use super::{Aligned, Level, Simd, wide::Wide};

/// Units with four sums each, which see their inputs and what all of them told last. For some units side by side: biases of
/// three sums, then for each column their weights; then the same of the fourth.
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
            // The last sum is needed last.
            for sums in [0..3, 3..4] {
                let mut lay = |value: &dyn Fn(usize, usize) -> f32| {
                    for (sum, unit) in sums.clone().flat_map(|sum| part.clone().map(move |unit| (sum, unit))) {
                        weights.push(if unit < units { U::SCALES[sum] * value(sum, unit) } else { 0.0 });
                    }
                };
                lay(&bias);
                (0..columns).for_each(|column| lay(&|sum, unit| weight(sum, unit, column)));
            }
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
    ) {
        let pitch = kept.len();
        let (all, units) = (self.vectors * S::LANES, self.columns.checked_sub(inputs.count).unwrap_or(usize::MAX));
        assert!(pitch >= all && last.len() >= units && all >= units, "units that do not fit");
        assert!(self.weights.len() == 4 * all * (self.columns + 1), "weights for other vectors");
        let frames = told.len() / pitch;
        assert!(inputs.count <= inputs.pitch && inputs.values.len() >= frames * inputs.pitch, "inputs that do not fit");
        let mut last = last.as_ptr();
        for frame in 0..frames {
            let input = &inputs.values[frame * inputs.pitch..][..inputs.count];
            let told = told[frame * pitch..].as_mut_ptr();
            let (mut weights, mut first) = (self.weights.as_ptr(), 0);
            while first < self.vectors {
                let at = first * S::LANES;
                // SAFETY: there is room for so many vectors of units in what is kept and told, there are weights for them,
                // and the units told as many values before, as was checked.
                unsafe {
                    let columns = [input, std::slice::from_raw_parts(last, units)];
                    let (kept, told) = (kept.as_mut_ptr().add(at), told.add(at));
                    match part_of(self.vectors - first) {
                        3 => part::<_, U, 1>(Wide::<S, 3>(simd), unit, &mut weights, columns, kept, told),
                        2 => part::<_, U, 2>(Wide::<S, 2>(simd), unit, &mut weights, columns, kept, told),
                        _ => part::<_, U, 2>(simd, unit, &mut weights, columns, kept, told),
                    }
                }
                first += part_of(self.vectors - first);
            }
            last = told;
        }
    }
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

/// Computes one vector of units, each sum in `P` parts, so that they need not wait for each other; `weights` becomes where
/// the next ones are.
///
/// # Safety
/// There are weights for as many units and columns, and room for a vector.
#[inline(always)]
unsafe fn part<S: Simd, U: Unit, const P: usize>(
    simd: S,
    unit: U,
    weights: &mut *const f32,
    columns: [&[f32]; 2],
    kept: *mut f32,
    told: *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let [first, second, third] = sums::<S, 3, P>(simd, weights, columns);
        let last = LastSum::<P> { weights, columns };
        let (now, tells) = unit.step(simd, [first, second, third], (simd, last), simd.load(kept));
        simd.store(kept, now);
        simd.store(told, tells);
    }
}

/// The last sum: there are weights for a vector and the columns.
struct LastSum<'a, const P: usize> {
    weights: &'a mut *const f32,
    columns: [&'a [f32]; 2],
}

impl<S: Simd, const P: usize> Last<S> for (S, LastSum<'_, P>) {
    #[inline(always)]
    fn sum(self) -> S::V {
        let (simd, LastSum { weights, columns }) = self;
        // SAFETY: as whoever made it promises.
        let [sum] = unsafe { sums::<S, 1, P>(simd, weights, columns) };
        sum
    }
}

/// Computes `K` of the sums.
///
/// # Safety
/// There are weights for a vector and the columns.
#[inline(always)]
unsafe fn sums<S: Simd, const K: usize, const P: usize>(
    simd: S,
    weights: &mut *const f32,
    [inputs, last]: [&[f32]; 2],
) -> [S::V; K] {
    let mut at = *weights;
    let mut sums = [[simd.splat(0.0); P]; K];
    // SAFETY: as the caller promises.
    unsafe {
        for k in 0..K {
            sums[k][0] = simd.load(at.add(k * S::LANES));
        }
        at = at.add(K * S::LANES);
        for &value in inputs {
            let x = simd.splat(value);
            for k in 0..K {
                sums[k][0] = simd.mul_add(simd.load(at.add(k * S::LANES)), x, sums[k][0]);
            }
            at = at.add(K * S::LANES);
        }
        let mut groups = last.chunks_exact(P);
        for group in &mut groups {
            for p in 0..P {
                let x = simd.splat(group[p]);
                for k in 0..K {
                    sums[k][p] = simd.mul_add(simd.load(at.add(k * S::LANES)), x, sums[k][p]);
                }
                at = at.add(K * S::LANES);
            }
        }
        for &value in groups.remainder() {
            let x = simd.splat(value);
            for k in 0..K {
                sums[k][0] = simd.mul_add(simd.load(at.add(k * S::LANES)), x, sums[k][0]);
            }
            at = at.add(K * S::LANES);
        }
    }
    *weights = at;
    let mut all = [simd.splat(0.0); K];
    for k in 0..K {
        all[k] = sums[k][0];
        for p in 1..P {
            all[k] = simd.add(all[k], sums[k][p]);
        }
    }
    all
}
