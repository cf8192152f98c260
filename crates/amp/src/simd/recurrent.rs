//! Recurrent units: the weights of all gates of some units lie side by side, so that one pass over the inputs gives all that
//! these units need.

use super::{
    Aligned, Level, Simd,
    functions::{tanh, tanh_as_ratio},
    wide::Wide,
};

/// Units with four sums each, which see their inputs and what all of them told last. For some units side by side: biases of
/// three sums, then for each column their weights; then the same of the fourth.
#[derive(Debug, Clone)]
pub struct Gates {
    /// Vectors of units.
    vectors: usize,
    columns: usize,
    weights: Aligned,
}

/// What a unit makes of its four sums.
pub trait Unit: Copy {
    /// Whether the sums are those of logistic functions: these take half of them, see [`logistic`].
    const LOGISTIC: [bool; 4];
    /// What it keeps and what it tells.
    fn step<S: Simd>(self, simd: S, sums: [S::V; 4], kept: S::V) -> (S::V, S::V);
}

/// Long short-term memory: gates of input, forgetting, candidate and output.
#[derive(Debug, Clone, Copy)]
pub struct Lstm;

/// A gated recurrent unit as Keras has it: gates of update and reset, then the candidate of the input and that of the units
/// apart, since the reset acts on the latter's sum.
#[derive(Debug, Clone, Copy)]
pub struct Gru;

impl Unit for Lstm {
    const LOGISTIC: [bool; 4] = [true, true, false, true];

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, [input, forget, candidate, output]: [S::V; 4], kept: S::V) -> (S::V, S::V) {
        // Everything on one line of a fraction, since a processor divides slowly, and one vector after the other.
        let (input, below_input) = logistic_as_ratio(simd, input);
        let (forget, below_forget) = logistic_as_ratio(simd, forget);
        let (candidate, below_candidate) = tanh_as_ratio(simd, candidate);
        let below_taken = simd.mul(below_input, below_candidate);
        let taken = simd.mul(simd.mul(input, candidate), below_forget);
        let above = simd.mul_add(simd.mul(forget, kept), below_taken, taken);
        let now = simd.div(above, simd.mul(below_taken, below_forget));
        let (output, below_output) = logistic_as_ratio(simd, output);
        let (told, below_told) = tanh_as_ratio(simd, now);
        (now, simd.div(simd.mul(output, told), simd.mul(below_output, below_told)))
    }
}

impl Unit for Gru {
    const LOGISTIC: [bool; 4] = [true, true, false, false];

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, [update, reset, input, units]: [S::V; 4], kept: S::V) -> (S::V, S::V) {
        let update = logistic(simd, update);
        let candidate = tanh(simd, simd.mul_add(logistic(simd, reset), units, input));
        let taken = simd.sub(simd.splat(1.0), update);
        let now = simd.mul_add(taken, candidate, simd.mul(update, kept));
        (now, now)
    }
}

/// Logistic function of twice the value: (1 + tanh x) / 2. That half of each sum is taken costs nothing, since the halves of
/// weights are exact.
#[inline(always)]
fn logistic<S: Simd>(simd: S, half: S::V) -> S::V {
    let middle = simd.splat(0.5);
    simd.mul_add(middle, tanh(simd, half), middle)
}

/// The same as what is divided, and by what: 2 to 840.
#[inline(always)]
fn logistic_as_ratio<S: Simd>(simd: S, half: S::V) -> (S::V, S::V) {
    let (above, below) = tanh_as_ratio(simd, half);
    (simd.add(below, above), simd.add(below, below))
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
        let half = |sum: usize| if U::LOGISTIC[sum] { 0.5 } else { 1.0 };
        let mut weights = Vec::with_capacity(4 * vectors * lanes * (columns + 1));
        let mut first = 0;
        while first < vectors {
            let part = first * lanes..(first + part_of(vectors - first)) * lanes;
            first += part.len() / lanes;
            // The last sum is needed last.
            for sums in [0..3, 3..4] {
                let mut lay = |value: &dyn Fn(usize, usize) -> f32| {
                    for (sum, unit) in sums.clone().flat_map(|sum| part.clone().map(move |unit| (sum, unit))) {
                        weights.push(if unit < units { half(sum) * value(sum, unit) } else { 0.0 });
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
        let [last] = sums::<S, 1, P>(simd, weights, columns);
        let (now, tells) = unit.step(simd, [first, second, third, last], simd.load(kept));
        simd.store(kept, now);
        simd.store(told, tells);
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
