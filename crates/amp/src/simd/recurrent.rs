//! Recurrent units. The weights of all gates of a group of units are contiguous, so that one pass over the inputs
//! computes all sums of these units.

mod cell;

use std::slice;

pub use self::cell::{Cell, Gru, Lstm};
use super::{InstructionSet, Simd, dot, padded};
use crate::memory::Aligned;

/// Weights of units with four sums each, whose inputs are the layer's inputs and the hidden state of all units. For
/// each group of units: the biases of their sums, then their weights for each column.
#[derive(Debug, Clone)]
pub struct GateWeights {
    columns: usize,
    weights: Aligned,
}

/// Number of vectors of units that are computed together if `left` are left: as many sums at once as keep the processor
/// busy during the latency of the first one, limited by the number of registers.
#[inline(always)]
fn part_of(left: usize) -> usize {
    match left {
        3 | 5.. => 3,
        2 | 4 => 2,
        _ => 1,
    }
}

impl GateWeights {
    /// Weights from `weight(sum, unit, column)` and `bias(sum, unit)`; the columns are the inputs, then the units. The
    /// result is only valid for vectors of `instructions` and for this kind of cell.
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
            let mut append = |value: &dyn Fn(usize, usize) -> f32| {
                for (sum, unit) in (0..4).flat_map(|sum| part.clone().map(move |unit| (sum, unit))) {
                    weights.push(if unit < units { C::SCALES[sum] * value(sum, unit) } else { 0.0 });
                }
            };
            append(&bias);
            (0..columns).for_each(|column| append(&|sum, unit| weight(sum, unit, column)));
        }
        Self { columns, weights: Aligned::new(weights.len(), weights) }
    }

    /// Computes one step per frame: the next cell state and hidden state from the inputs of the frame and the hidden
    /// state. `inputs` and `outputs` have a row per frame; the outputs are the hidden states. `state` is the initial
    /// hidden state and the cell state.
    ///
    /// # Panics
    /// If there are more or fewer values than columns, or states or outputs do not match the units.
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
            // Constant sizes save a sixth of the instructions for the common layers. With more units the saving is too
            // small to justify the code.
            (count, units) if !S::HAS_RECURRENT_SIZES => {
                self.frames(simd, cell, [count, units], inputs, state, outputs, head);
            }
            (1, 12) => self.frames(simd, cell, [1, 12], inputs, state, outputs, head),
            (1, 16) => self.frames(simd, cell, [1, 16], inputs, state, outputs, head),
            (1, 20) => self.frames(simd, cell, [1, 20], inputs, state, outputs, head),
            (count, units) => self.frames(simd, cell, [count, units], inputs, state, outputs, head),
        }
    }

    /// [`GateWeights::run`] with the numbers of inputs and units as separate arguments.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "separate sizes, so that the compiler can make them constant")]
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
        assert!(hidden.len() >= units && cell_state.len() == stride, "the state does not match the units");
        assert!(self.weights.len() == 4 * vectors * S::LANES * (1 + count + units), "weights for other vectors");
        assert!(count <= inputs.stride && inputs.values.len() >= frames * inputs.stride, "inputs do not match");
        assert!(sums.is_empty() || row.len() == stride, "the head does not match the units");
        let all_weights = self.weights.as_ptr();
        let (mut hidden, mut input, cell_state) = (hidden.as_ptr(), inputs.values.as_ptr(), cell_state.as_mut_ptr());
        for (frame, output) in outputs.chunks_exact_mut(stride).enumerate() {
            let (mut weights, mut first) = (all_weights, 0);
            while first < vectors {
                // SAFETY: checked above: a frame and the cell state have space for the vectors of all units, there are
                // weights for them, each frame has its inputs, and the hidden state has a value for each unit.
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

/// A weighted sum of the hidden state, computed for each frame.
#[derive(Debug, Default)]
pub struct Head<'a> {
    /// A weight for each unit, padded.
    pub row: &'a [f32],
    /// Added to the sum.
    pub bias: f32,
    /// The sums, one per frame.
    pub sums: &'a mut [f32],
}

/// Values of several frames, one row each.
#[derive(Debug, Clone, Copy)]
pub struct Frames<'a> {
    /// The values of all frames.
    pub values: &'a [f32],
    /// Distance from one frame to the next, values.
    pub stride: usize,
    /// Number of values per frame.
    pub count: usize,
}

/// Computes `N` vectors of units, each sum in `P` partial sums, so that the additions do not wait for each other.
/// Advances `weights` past theirs.
///
/// # Safety
/// `weights` points to the weights of these units and columns; the states have space for their vectors.
#[inline(always)]
unsafe fn part<S: Simd, C: Cell, const N: usize, const P: usize>(
    simd: S,
    cell: C,
    weights: &mut *const f32,
    columns: [&[f32]; 2],
    cell_state: *mut f32,
    out: *mut f32,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sums = sums::<S, N, P>(simd, weights, columns);
        let mut next = [simd.splat(0.0); N];
        // All cell states before the first hidden state: the processor then has enough work during the divisions.
        // Without barriers, the compiler mixes all steps and runs out of registers.
        for n in 0..N {
            let unit_sums = [simd.barrier(sums[0][n]), simd.barrier(sums[1][n]), simd.barrier(sums[2][n]), sums[3][n]];
            let cell_state = cell_state.add(n * S::LANES);
            next[n] = simd.barrier(cell.next_cell(simd, unit_sums, simd.load(cell_state)));
            simd.store(cell_state, next[n]);
        }
        for n in 0..N {
            simd.store(out.add(n * S::LANES), cell.hidden(simd, simd.barrier(sums[3][n]), next[n]));
        }
    }
}

/// Partial sums of `N` vectors of units.
type Parts<V, const N: usize, const P: usize> = [[[V; P]; N]; 4];

/// Computes all sums.
///
/// # Safety
/// `weights` points to the weights of `N` vectors for these columns.
#[inline(always)]
unsafe fn sums<S: Simd, const N: usize, const P: usize>(
    simd: S,
    weights: &mut *const f32,
    [inputs, hidden]: [&[f32]; 2],
) -> [[S::V; N]; 4] {
    let mut parts: Parts<S::V, N, P> = [[[simd.splat(0.0); P]; N]; 4];
    // SAFETY: guaranteed by the caller.
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

/// Adds a column's weights, times its value, to partial sum `p` of all sums.
///
/// # Safety
/// `weights` points to the weights of `N` vectors.
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
            // SAFETY: guaranteed by the caller.
            unsafe {
                parts[k][n][p] = simd.mul_add(simd.load(*weights), x, parts[k][n][p]);
                *weights = weights.add(S::LANES);
            }
        }
    }
}
