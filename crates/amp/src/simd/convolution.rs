//! A convolution whose sums stay in registers, with little work before the first sum.

use super::{
    Simd,
    functions::Elementwise,
    matrix::strip_of,
    strip::{TILE, add_row, biases},
    wide::Wide,
};
use crate::memory::{BLOCK, DelayLine, Rows};

/// A weighted sum of the taps of a delay line, for each output.
#[derive(Debug)]
pub struct Convolution {
    input: DelayLine,
    /// Delay of each tap, frames; the oldest tap first.
    delays: Vec<usize>,
    outputs: usize,
    /// Distance between the taps, frames, if there is a single output with evenly spaced taps: [`PARTS`] are summed at
    /// once.
    step: Option<usize>,
    /// For each strip of rows: biases, then the weights of each tap's channels. With a step: the bias, then the weights
    /// of each channel's taps.
    weights: Vec<f32>,
}

/// Number of partial sums of a single output, so that the additions do not wait for each other.
const PARTS: usize = 4;

impl Convolution {
    /// The convolution of the taps `delays` of `input`, the oldest first, to `outputs` channels. Its weights are
    /// `weight(output, input, tap)` and `bias(output)`.
    ///
    /// # Panics
    /// If `input` has less history than `delays`.
    #[must_use]
    pub fn new(
        input: DelayLine,
        delays: Vec<usize>,
        outputs: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        bias: impl Fn(usize) -> f32,
    ) -> Self {
        assert!(delays.iter().all(|&delay| input.reaches(delay)), "a delay exceeds the history");
        let (inputs, taps) = (input.current().count, delays.len());
        let step =
            common_step(&delays).filter(|_| outputs == 1 && taps.is_multiple_of(PARTS) && delays[0] + TILE <= BLOCK);
        let mut weights = Vec::with_capacity(outputs * (taps * inputs + 1));
        if step.is_some() {
            weights.push(bias(0));
            for channel in 0..inputs {
                weights.extend((0..taps).map(|tap| weight(0, channel, tap)));
            }
            return Self { input, delays, outputs, step, weights };
        }
        let mut first = 0;
        while first < outputs {
            let rows = first..first + strip_of(outputs - first);
            weights.extend(rows.clone().map(&bias));
            for (tap, channel) in (0..taps).flat_map(|tap| (0..inputs).map(move |channel| (tap, channel))) {
                weights.extend(rows.clone().map(|row| weight(row, channel, tap)));
            }
            first = rows.end;
        }
        Self { input, delays, outputs, step, weights }
    }

    /// The rows that it takes its input from.
    #[must_use]
    #[inline]
    pub fn input(&self) -> Rows {
        self.input.current()
    }

    /// Number of output channels.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Resets the position; the caller clears the memory.
    pub fn reset(&mut self) {
        self.input.reset();
    }

    /// Computes a block of at most `BLOCK` frames into `out`, which has a row for each output, and applies `activation`
    /// to the sums. Also writes the frames after the block up to a multiple of [`TILE`].
    ///
    /// # Panics
    /// If signals are outside `memory`, or `out` has another number of channels.
    #[inline(always)]
    pub fn run<S: Simd>(
        &mut self,
        simd: S,
        memory: &mut [f32],
        frames: usize,
        out: Rows,
        activation: impl Elementwise,
    ) {
        let fits = out.count == self.outputs && out.fit(frames.next_multiple_of(TILE), memory.len());
        assert!(fits && frames <= BLOCK && self.input.end() <= memory.len(), "signals outside the memory of the model");
        self.input.mirror_wrap_with(simd, memory, frames, if self.step.is_some() { BLOCK } else { TILE });
        let mut frame = 0;
        while frame < frames {
            let (memory, out) = (memory.as_mut_ptr(), (out, frame));
            // SAFETY: checked above: the memory contains both signals; the weights are those of these channels.
            unsafe {
                match S::LANES {
                    4 => self.tile(Wide::<S, 4>(simd), memory, out, activation),
                    8 => self.tile(Wide::<S, 2>(simd), memory, out, activation),
                    _ => self.tile(simd, memory, out, activation),
                }
            }
            frame += TILE;
        }
        self.input.advance(frames);
    }

    /// Computes one vector of frames.
    ///
    /// # Safety
    /// For these frames, the input and `out` are inside the memory; `out` has a row for each output.
    #[inline(always)]
    unsafe fn tile<S: Simd>(&self, simd: S, memory: *mut f32, out: (Rows, usize), activation: impl Elementwise) {
        if let Some(step) = self.step {
            // SAFETY: guaranteed by the caller; with a step there is one output.
            return unsafe { self.single(simd, memory, step, out, activation) };
        }
        let (mut weights, mut first) = (self.weights.as_ptr(), 0);
        while first < self.outputs {
            let rows = strip_of(self.outputs - first);
            // SAFETY: guaranteed by the caller; the strips are those of the weights.
            unsafe {
                match rows {
                    4 => self.strip::<S, 4>(simd, memory, first, out, &mut weights, activation),
                    2 => self.strip::<S, 2>(simd, memory, first, out, &mut weights, activation),
                    _ => self.strip::<S, 1>(simd, memory, first, out, &mut weights, activation),
                }
            }
            first += rows;
        }
    }

    /// Computes `R` rows, beginning with row `first`, and advances `weights` past theirs.
    ///
    /// # Safety
    /// As for [`Convolution::tile`]; `weights` points to the weights of these rows.
    #[inline(always)]
    unsafe fn strip<S: Simd, const R: usize>(
        &self,
        simd: S,
        memory: *mut f32,
        first: usize,
        (out, frame): (Rows, usize),
        weights: &mut *const f32,
        activation: impl Elementwise,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = biases::<S, R>(simd, weights);
            for &delay in &self.delays {
                let rows = self.input.delayed_from(frame, delay);
                let mut from = memory.wrapping_add(rows.at).cast_const();
                for _ in 0..rows.count {
                    add_row::<S, R>(simd, &mut sums, weights, simd.load(from));
                    from = from.wrapping_add(rows.stride);
                }
            }
            for r in 0..R {
                simd.store(memory.wrapping_add(out.start(first + r) + frame), activation.apply(simd, sums[r]));
            }
        }
    }

    /// Computes a single output from taps that are `step` frames apart.
    ///
    /// # Safety
    /// As for [`Convolution::tile`]; the convolution was built with this step.
    #[inline(always)]
    unsafe fn single<S: Simd>(
        &self,
        simd: S,
        memory: *mut f32,
        step: usize,
        (out, frame): (Rows, usize),
        activation: impl Elementwise,
    ) {
        let oldest = self.input.delayed_from(frame, self.delays[0]);
        let mut weights = self.weights.as_ptr();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut parts = [simd.splat(0.0); PARTS];
            [parts[0]] = biases::<S, 1>(simd, &mut weights);
            for channel in 0..oldest.count {
                let mut from = memory.wrapping_add(oldest.start(channel)).cast_const();
                for _ in 0..self.delays.len() / PARTS {
                    for p in 0..PARTS {
                        let weight = simd.splat(*weights.add(p));
                        parts[p] = simd.mul_add(weight, simd.load(from.wrapping_add(p * step)), parts[p]);
                    }
                    weights = weights.add(PARTS);
                    from = from.wrapping_add(PARTS * step);
                }
            }
            let sum = simd.add(simd.add(parts[0], parts[1]), simd.add(parts[2], parts[3]));
            simd.store(memory.wrapping_add(out.at + frame), activation.apply(simd, sum));
        }
    }
}

/// The distance between consecutive delays, if it is the same for all.
fn common_step(delays: &[usize]) -> Option<usize> {
    let step = delays.first()?.checked_sub(*delays.get(1)?)?;
    delays.windows(2).all(|pair| pair[0] == pair[1] + step).then_some(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        memory::Layout,
        simd::{Identity, InstructionSet, Op},
    };

    struct Block<'a> {
        convolution: &'a mut Convolution,
        memory: &'a mut [f32],
        frames: usize,
        out: Rows,
    }

    impl Op for Block<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            self.convolution.run(simd, self.memory, self.frames, self.out, Identity);
        }
    }

    fn weight(output: usize, input: usize, tap: usize) -> f32 {
        ((output * 31 + input * 7 + tap * 3) as f32).sin()
    }

    fn signal(input: usize, frame: usize) -> f32 {
        ((frame * 3 + input * 5 + 1) as f32 * 0.37).sin()
    }

    proptest! {
        /// Blocks of any size, compared with the definition.
        #[test]
        fn outputs_are_weighted_sums_of_the_taps(
            (inputs, outputs) in (1..5usize, 1..8usize),
            taps in 1..18usize,
            step in prop::sample::select(vec![0, 1, 2, 3, 4, 16, 50]),
            uneven in prop::bool::weighted(0.2),
            blocks in prop::collection::vec(1..=BLOCK, 1..20),
        ) {
            let delays: Vec<usize> = (0..taps).rev().map(|tap| tap * step + usize::from(uneven && tap > 1)).collect();
            for instructions in InstructionSet::all() {
                let mut layout = Layout::default();
                let input = layout.delay_line(inputs, delays[0]);
                let out = layout.rows(outputs);
                let mut convolution = Convolution::new(input, delays.clone(), outputs, weight, |output| output as f32);
                let mut memory = layout.memory();
                let mut begin = 0;
                for &frames in &blocks {
                    let current = convolution.input();
                    for (row, frame) in (0..inputs).flat_map(|row| (0..frames).map(move |frame| (row, frame))) {
                        memory[current.start(row) + frame] = signal(row, begin + frame);
                    }
                    instructions.run(Block { convolution: &mut convolution, memory: &mut memory, frames, out });
                    for (output, frame) in (0..outputs).flat_map(|row| (0..frames).map(move |frame| (row, frame))) {
                        let sum = (0..inputs).flat_map(|input| (0..taps).map(move |tap| (input, tap))).map(|(input, tap)| {
                            let then = (begin + frame).checked_sub(delays[tap]);
                            f64::from(weight(output, input, tap)) * then.map_or(0.0, |then| f64::from(signal(input, then)))
                        });
                        let exact = output as f64 + sum.sum::<f64>();
                        let value = f64::from(memory[out.start(output) + frame]);
                        prop_assert!((value - exact).abs() < 1e-4, "{value} for {exact}: {}", instructions.name());
                    }
                    begin += frames;
                }
            }
        }
    }
}
