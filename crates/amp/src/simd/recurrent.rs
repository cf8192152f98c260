//! Recurrent units: the weights of all gates of some units lie side by side, so that one pass over the inputs gives all that
//! these units need.

mod cell;

use std::slice;

pub use self::cell::{Cell, Gru, Lstm};
use super::{InstructionSet, Simd, dot, padded};
use crate::memory::Aligned;

/// Weights of units with four sums each, which see their inputs and the hidden state of all of them. For some units side by
/// side: biases of their sums, then for each column their weights.
#[derive(Debug, Clone)]
pub struct GateWeights {
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

impl GateWeights {
    /// `weight(sum, unit, column)` and `bias(sum, unit)` of `units`, whose columns are the inputs and then the units. It serves
    /// vectors of `instructions` alone, and this kind of cell.
    #[must_use]
    pub fn new<C: Cell>(
        instructions: InstructionSet,
        _cell: C,
        units: usize,
        columns: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let lanes = instructions.lanes();
        let vectors = units.div_ceil(lanes);
        let mut weights = Vec::with_capacity(4 * vectors * lanes * (columns + 1));
        let mut first = 0;
        while first < vectors {
            let part = first * lanes..(first + part_of(vectors - first)) * lanes;
            first += part.len() / lanes;
            let mut lay = |value: &dyn Fn(usize, usize) -> f32| {
                for (sum, unit) in (0..4).flat_map(|sum| part.clone().map(move |unit| (sum, unit))) {
                    weights.push(if unit < units { C::SCALES[sum] * value(sum, unit) } else { 0.0 });
                }
            };
            lay(&bias);
            (0..columns).for_each(|column| lay(&|sum, unit| weight(sum, unit, column)));
        }
        Self { columns, weights: Aligned::new(weights.len(), weights) }
    }

    /// Steps of all units, one a frame: of each frame's values and the hidden state they make the next cell state and the next
    /// hidden state. `inputs` and `outputs`, which become the hidden states, have a row a frame; `state` is the hidden state
    /// before the first, and the cell state.
    ///
    /// # Panics
    /// When there are not as many values as columns, or states or outputs do not fit so many units.
    #[inline(always)]
    pub fn run<S: Simd, C: Cell>(
        &self,
        simd: S,
        cell: C,
        inputs: Frames<'_>,
        state: (&[f32], &mut [f32]),
        outputs: &mut [f32],
        head: Option<Head<'_>>,
    ) {
        match (inputs.count, self.columns - inputs.count) {
            // With numbers that the compiler knows, a sixth of the instructions is not there: those that count. Of larger units
            // it is too small a share to be worth its room.
            (count, units) if !S::HAS_RECURRENT_SIZES => {
                self.frames(simd, cell, [count, units], inputs, state, outputs, head);
            }
            (1, 12) => self.frames(simd, cell, [1, 12], inputs, state, outputs, head),
            (1, 16) => self.frames(simd, cell, [1, 16], inputs, state, outputs, head),
            (1, 20) => self.frames(simd, cell, [1, 20], inputs, state, outputs, head),
            (count, units) => self.frames(simd, cell, [count, units], inputs, state, outputs, head),
        }
    }

    /// [`GateWeights::run`] of so many inputs and units.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the numbers apart, for the compiler")]
    fn frames<S: Simd, C: Cell>(
        &self,
        simd: S,
        cell: C,
        [count, units]: [usize; 2],
        inputs: Frames<'_>,
        (hidden, cell_state): (&[f32], &mut [f32]),
        outputs: &mut [f32],
        head: Option<Head<'_>>,
    ) {
        let (stride, vectors) = (padded(units), units.div_ceil(S::LANES));
        let frames = outputs.len() / stride;
        let Head { row, bias, sums } = head.unwrap_or_default();
        assert!(hidden.len() >= units && cell_state.len() == stride, "a state of other units");
        assert!(self.weights.len() == 4 * vectors * S::LANES * (1 + count + units), "weights for other vectors");
        assert!(count <= inputs.stride && inputs.values.len() >= frames * inputs.stride, "inputs that do not fit");
        assert!(sums.is_empty() || row.len() == stride, "a head of other units");
        let all_weights = self.weights.as_ptr();
        let (mut hidden, mut input, cell_state) = (hidden.as_ptr(), inputs.values.as_ptr(), cell_state.as_mut_ptr());
        for (frame, output) in outputs.chunks_exact_mut(stride).enumerate() {
            let (mut weights, mut first) = (all_weights, 0);
            while first < vectors {
                // SAFETY: a frame has room for all units' vectors, and so has the cell state; there are weights for them, each
                // frame has its inputs, and the hidden state a value for each unit, as was checked.
                unsafe {
                    let columns = [(input, count), (hidden, units)].map(|(at, len)| slice::from_raw_parts(at, len));
                    let (state, out) = (cell_state.add(first * S::LANES), output.as_mut_ptr().add(first * S::LANES));
                    match part_of(vectors - first) {
                        3 => part::<S, C, 3, 1>(simd, cell, &mut weights, columns, state, out),
                        2 => part::<S, C, 2, 1>(simd, cell, &mut weights, columns, state, out),
                        _ => part::<S, C, 1, 2>(simd, cell, &mut weights, columns, state, out),
                    }
                }
                first += part_of(vectors - first);
            }
            if let Some(sum) = sums.get_mut(frame) {
                *sum = bias + dot(simd, &row[..stride], output);
            }
            hidden = output.as_ptr();
            input = input.wrapping_add(inputs.stride);
        }
    }
}

/// One weighted sum of the hidden state of each frame.
#[derive(Debug, Default)]
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
    pub stride: usize,
    /// Number of values in a frame.
    pub count: usize,
}

/// Computes `N` vectors of units, each sum in `P` parts, so that they need not wait for each other; `weights` becomes where
/// the next ones are.
///
/// # Safety
/// There are weights for as many units and columns, and room for their vectors.
#[inline(always)]
unsafe fn part<S: Simd, C: Cell, const N: usize, const P: usize>(
    simd: S,
    cell: C,
    weights: &mut *const f32,
    columns: [&[f32]; 2],
    cell_state: *mut f32,
    out: *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let sums = sums::<S, N, P>(simd, weights, columns);
        let mut next = [simd.splat(0.0); N];
        // All cell states before the first hidden one. The processor then has enough to do while it waits for divisions; the
        // compiler, left to itself, mixes everything and has not registers enough for it.
        for n in 0..N {
            let of_n = [simd.barrier(sums[0][n]), simd.barrier(sums[1][n]), simd.barrier(sums[2][n]), sums[3][n]];
            let cell_state = cell_state.add(n * S::LANES);
            next[n] = simd.barrier(cell.next_cell(simd, of_n, simd.load(cell_state)));
            simd.store(cell_state, next[n]);
        }
        for n in 0..N {
            simd.store(out.add(n * S::LANES), cell.hidden(simd, simd.barrier(sums[3][n]), next[n]));
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
    [inputs, hidden]: [&[f32]; 2],
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
        let mut groups = hidden.chunks_exact(4);
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
