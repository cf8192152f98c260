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
        sizes: [usize; 2],
        inputs: Frames<'_>,
        state: (&[f32], &mut [f32]),
        outputs: &mut [f32],
        head: Option<Head<'_>>,
    ) {
        let mut steps = Steps::new::<S>(self, sizes, inputs.stride, state, outputs, head);
        assert!(inputs.values.len() >= steps.left * inputs.stride, "inputs do not match");
        steps.input = inputs.values.as_ptr();
        while steps.left > 0 {
            // SAFETY: a frame is left, and each has its inputs.
            unsafe { steps.next(simd, cell) };
        }
    }

    /// True if the units fit one vector: a step then waits for the one before for longer than it computes.
    #[must_use]
    #[inline(always)]
    pub fn is_one_vector<S: Simd>(&self) -> bool {
        self.weights.len() == 4 * S::LANES * (self.columns + 1)
    }

    /// Computes two layers as [`GateWeights::run`] does, the second one from the outputs of the first, a frame behind it: the
    /// processor computes each while the other waits for its state.
    ///
    /// # Panics
    /// As for [`GateWeights::run`], and if the units of a layer do not fit one vector.
    #[inline(always)]
    pub fn run_both<S: Simd, C: Cell>(simd: S, cell: C, inputs: Frames<'_>, layers: [RecurrentCall<'_>; 2]) {
        let [first, second] = &layers;
        assert!(first.gates.is_one_vector::<S>() && second.gates.is_one_vector::<S>(), "layers of several vectors");
        let units = first.gates.columns - inputs.count;
        match [inputs.count, units, second.gates.columns - units] {
            // Constant sizes save a sixth of the instructions.
            [1, 8, 8] if S::HAS_RECURRENT_SIZES => Self::both(simd, cell, [1, 8, 8], inputs, layers),
            sizes => Self::both(simd, cell, sizes, inputs, layers),
        }
    }

    /// [`GateWeights::run_both`] with the numbers of inputs and of units of both layers as a separate argument.
    #[inline(always)]
    fn both<S: Simd, C: Cell>(
        simd: S,
        cell: C,
        [count, units, next_units]: [usize; 3],
        inputs: Frames<'_>,
        [first, second]: [RecurrentCall<'_>; 2],
    ) {
        let mut first =
            Steps::new::<S>(first.gates, [count, units], inputs.stride, first.state, first.outputs, first.head);
        assert!(inputs.values.len() >= first.left * inputs.stride, "inputs do not match");
        first.input = inputs.values.as_ptr();
        let sizes = [units, next_units];
        let mut second = Steps::new::<S>(second.gates, sizes, first.stride, second.state, second.outputs, second.head);
        assert!(second.left == first.left, "layers of different lengths");
        second.input = first.output;
        // SAFETY: as many frames are left as are computed, and the second layer takes those that the first one has computed.
        unsafe {
            if first.left > 0 {
                first.next(simd, cell);
            }
            while first.left > 0 {
                Steps::next_of_both(simd, cell, [&mut first, &mut second]);
            }
            if second.left > 0 {
                second.next(simd, cell);
            }
        }
    }
}

/// A layer of units in a call of [`GateWeights::run_both`]: its arguments of [`GateWeights::run`].
#[derive(Debug)]
pub struct RecurrentCall<'a> {
    /// The weights.
    pub gates: &'a GateWeights,
    /// The initial hidden state, and the cell state.
    pub state: (&'a [f32], &'a mut [f32]),
    /// A row for each frame.
    pub outputs: &'a mut [f32],
    /// The weighted sum of each frame.
    pub head: Option<Head<'a>>,
}

/// The next step of a layer.
struct Steps<'a> {
    /// Number of frames that are left.
    left: usize,
    sizes: [usize; 2],
    stride: usize,
    weights: *const f32,
    /// The inputs of the next frame.
    input: *const f32,
    input_stride: usize,
    hidden: *const f32,
    cell_state: *mut f32,
    /// The row of the next frame.
    output: *mut f32,
    head: Head<'a>,
    frame: usize,
}

impl<'a> Steps<'a> {
    /// The first step of a layer whose inputs are still missing.
    #[inline(always)]
    fn new<S: Simd>(
        gates: &GateWeights,
        [count, units]: [usize; 2],
        input_stride: usize,
        (hidden, cell_state): (&'a [f32], &'a mut [f32]),
        outputs: &'a mut [f32],
        head: Option<Head<'a>>,
    ) -> Self {
        let (stride, head) = (padded(units), head.unwrap_or_default());
        assert!(hidden.len() >= units && cell_state.len() == stride, "the state does not match the units");
        let vectors = units.div_ceil(S::LANES);
        assert!(gates.weights.len() == 4 * vectors * S::LANES * (1 + count + units), "weights for other vectors");
        assert!(count <= input_stride, "inputs do not match");
        assert!(head.sums.is_empty() || head.row.len() == stride, "the head does not match the units");
        Self {
            left: outputs.len() / stride,
            sizes: [count, units],
            stride,
            weights: gates.weights.as_ptr(),
            input: std::ptr::null(),
            input_stride,
            hidden: hidden.as_ptr(),
            cell_state: cell_state.as_mut_ptr(),
            output: outputs.as_mut_ptr(),
            head,
            frame: 0,
        }
    }

    /// Computes a frame.
    ///
    /// # Safety
    /// A frame is left, and its inputs are there.
    #[inline(always)]
    unsafe fn next<S: Simd, C: Cell>(&mut self, simd: S, cell: C) {
        let [_, units] = self.sizes;
        let (vectors, mut weights, mut first) = (units.div_ceil(S::LANES), self.weights, 0);
        while first < vectors {
            // SAFETY: checked in `new`: a frame and the cell state have space for the vectors of all units, there are
            // weights for them, and the hidden state has a value for each unit. The caller guarantees the inputs.
            unsafe {
                let columns = self.columns();
                let (state, out) = (self.cell_state.add(first * S::LANES), self.output.add(first * S::LANES));
                match part_of(vectors - first) {
                    3 => part::<S, C, 3, 1>(simd, cell, &mut weights, columns, state, out),
                    2 => part::<S, C, 2, 1>(simd, cell, &mut weights, columns, state, out),
                    _ => part::<S, C, 1, 2>(simd, cell, &mut weights, columns, state, out),
                }
            }
            first += part_of(vectors - first);
        }
        // SAFETY: the frame was computed.
        unsafe { self.advance(simd) };
    }

    /// Computes a frame of two layers of one vector.
    ///
    /// # Safety
    /// As for [`Steps::next`] of both.
    #[inline(always)]
    unsafe fn next_of_both<S: Simd, C: Cell>(simd: S, cell: C, [first, second]: [&mut Self; 2]) {
        // SAFETY: as in `next`; each layer has one vector.
        unsafe {
            // No closures: they would not have the instruction set.
            let a = sums::<S, 1, 2>(simd, &mut first.weights.clone(), first.columns());
            let b = sums::<S, 1, 2>(simd, &mut second.weights.clone(), second.columns());
            let mut sums = [[a[0][0], b[0][0]]; 4];
            for k in 1..4 {
                sums[k] = [a[k][0], b[k][0]];
            }
            cells(simd, cell, sums, [first.cell_state, second.cell_state], [first.output, second.output]);
            first.advance(simd);
            second.advance(simd);
        }
    }

    /// The inputs of the frame, and the hidden state before it.
    ///
    /// # Safety
    /// The frame has its inputs.
    #[inline(always)]
    unsafe fn columns(&self) -> [&'a [f32]; 2] {
        let [count, units] = self.sizes;
        // SAFETY: checked in `new`: the hidden state has a value for each unit. The caller guarantees the inputs.
        unsafe { [slice::from_raw_parts(self.input, count), slice::from_raw_parts(self.hidden, units)] }
    }

    /// Computes the weighted sum of the frame, and goes on to the next one.
    ///
    /// # Safety
    /// The frame was computed.
    #[inline(always)]
    unsafe fn advance<S: Simd>(&mut self, simd: S) {
        if let Some(sum) = self.head.sums.get_mut(self.frame) {
            // SAFETY: the row of the frame was written.
            let output = unsafe { slice::from_raw_parts(self.output, self.stride) };
            *sum = self.head.bias + dot(simd, &self.head.row[..self.stride], output);
        }
        self.hidden = self.output;
        self.output = self.output.wrapping_add(self.stride);
        self.input = self.input.wrapping_add(self.input_stride);
        self.frame += 1;
        self.left -= 1;
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
        let vectors = |first: *mut f32| std::array::from_fn(|n| first.add(n * S::LANES));
        cells(simd, cell, sums, vectors(cell_state), vectors(out));
    }
}

/// Computes the states of `N` vectors from their sums: the cell states, and the hidden states to `out`.
///
/// # Safety
/// The states have space for a vector each.
#[inline(always)]
unsafe fn cells<S: Simd, C: Cell, const N: usize>(
    simd: S,
    cell: C,
    sums: [[S::V; N]; 4],
    cell_state: [*mut f32; N],
    out: [*mut f32; N],
) {
    let mut next = [simd.splat(0.0); N];
    // SAFETY: guaranteed by the caller.
    unsafe {
        // All cell states before the first hidden state: the processor then has enough work during the divisions.
        // Without barriers, the compiler mixes all steps and runs out of registers.
        for n in 0..N {
            let unit_sums = [simd.barrier(sums[0][n]), simd.barrier(sums[1][n]), simd.barrier(sums[2][n]), sums[3][n]];
            next[n] = simd.barrier(cell.next_cell(simd, unit_sums, simd.load(cell_state[n])));
            simd.store(cell_state[n], next[n]);
        }
        for n in 0..N {
            simd.store(out[n], cell.hidden(simd, simd.barrier(sums[3][n]), next[n]));
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
