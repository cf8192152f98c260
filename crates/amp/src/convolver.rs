//! Convolution of a signal with impulse responses, without delay and with evenly spread work.
//!
//! Time is divided into periods of 256 samples. The first 512 samples of a response are convolved directly. The rest
//! is divided into partitions of one period each, whose spectra are multiplied with those of earlier periods (uniformly
//! partitioned convolution). A short response is convolved directly as a whole, which is quicker. The contribution of a period is due two periods later, so a whole period is left to
//! compute it: the transform of the input, the products, and the inverse transform. This work consists of pieces, which
//! are divided into 16 tasks of about the same time, one after every 16 samples. A call for any number of samples
//! therefore does only its share.
//!
//! Tasks depend on the number of samples, never on calls, so the output bits do not depend on how a signal is divided.

use crate::{
    simd::{BINS, Fourier, InstructionSet, ROW, STEP, STEPS, SUMS, Spectrum, fir, sum_of_products},
    work::Work,
};

/// Number of samples of a partition of a response, and of a period.
const PARTITION: usize = BINS;
/// Number of samples of a long response that are convolved directly.
const HEAD: usize = 2 * PARTITION;
/// Number of samples up to which a response is short: with AVX2 the direct convolution is quicker up to this length,
/// with AVX-512 up to about 640.
const SHORT: usize = 704;
/// Number of samples between two tasks.
const QUANTUM: usize = 16;
/// Number of tasks of a period.
const TASKS: usize = PARTITION / QUANTUM;
/// Number of pieces of a period's work: the steps of the transform, the rows of the products, the steps of the inverse
/// transform.
const PIECES: usize = STEPS + ROW + STEPS;
/// Time of a step of a transform in times of a row of one product, measured with AVX2 and AVX-512.
const STEP_COST: usize = 28;
/// Number of multiplications per sample of a transform: 4 each for the shift, the factors within and between the two
/// passes.
const FORWARD_WORK: usize = 16;
/// The same for the inverse transform, whose shift computes only real values.
const BACKWARD_WORK: usize = 14;
/// Number of values in a row of a spectrum.
const WIDTH: usize = 2 * ROW;

/// Impulse responses and the history of the signal that they are applied to.
#[derive(Debug)]
pub struct Convolver {
    instructions: InstructionSet,
    fourier: Box<Fourier>,
    /// The last [`SHORT`] samples before this period, those of this period, and space that vectors read beyond.
    window: Vec<f32>,
    /// Number of samples of this period so far.
    at: usize,
    /// Number of partitions of the responses after the head.
    partitions: usize,
    /// Number of pieces that are complete after each task.
    pieces_after: [usize; TASKS],
    /// Spectrum of the last period, while it is computed.
    newest: Box<Spectrum>,
    /// Spectra of the last periods, one per partition: first row 0 of all of them, then row 1. A ring, the newest
    /// first.
    past: Vec<f32>,
    youngest: usize,
    outputs: Vec<Output>,
}

/// One response and its output.
#[derive(Debug)]
struct Output {
    /// The first samples of the response, in reverse order.
    head: Vec<f32>,
    /// Spectra of the partitions, in the layout of [`Convolver::past`].
    spectra: Vec<f32>,
    sums: Spectrum,
    /// Contribution of the partitions to this period.
    tail: [f32; PARTITION],
}

impl Convolver {
    /// A convolver with one output for each response.
    pub fn new<R: AsRef<[f32]>>(responses: &[R], instructions: InstructionSet) -> Self {
        let fourier = Fourier::new(instructions);
        let longest = responses.iter().map(|response| response.as_ref().len()).max().unwrap_or_default();
        let partitions = if longest <= SHORT { 0 } else { (longest - HEAD).div_ceil(PARTITION) };
        Self {
            instructions,
            window: vec![0.0; SHORT + PARTITION + STEP],
            at: 0,
            partitions,
            pieces_after: pieces_after(partitions, responses.len()),
            newest: Box::new(Spectrum::ZERO),
            past: vec![0.0; partitions * 2 * BINS],
            youngest: 0,
            outputs: responses.iter().map(|response| Output::new(response.as_ref(), partitions, &fourier)).collect(),
            fourier,
        }
    }

    /// Number of samples after which an input no longer affects the output.
    pub fn frames(&self) -> usize {
        if self.partitions == 0 { SHORT } else { HEAD + self.partitions * PARTITION }
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The work per sample.
    pub fn work(&self) -> Work {
        let direct: usize = self.outputs.iter().map(|output| output.head.len()).sum();
        let (transforms, products) = match self.partitions {
            0 => (0, 0),
            // Each bin of a product has 4 multiplications.
            partitions => (FORWARD_WORK + self.outputs.len() * BACKWARD_WORK, self.outputs.len() * 4 * partitions),
        };
        Work::of_responses(direct, transforms, products)
    }

    /// Convolves `input` with each response. Further `outputs` are left alone.
    ///
    /// # Panics
    /// If an output is shorter than the input.
    pub fn process(&mut self, input: &[f32], outputs: &mut [&mut [f32]]) {
        let mut done = 0;
        while done < input.len() {
            let (begin, frames) = (self.at, (input.len() - done).min(PARTITION - self.at));
            let (now, end) = (done..done + frames, begin + frames);
            self.window[SHORT + begin..SHORT + end].copy_from_slice(&input[now.clone()]);
            for (output, samples) in self.outputs.iter().zip(&mut *outputs) {
                output.play(self.instructions, &self.window, begin, &mut samples[now.clone()]);
            }
            if self.partitions > 0 {
                (begin / QUANTUM..end / QUANTUM).for_each(|task| self.task(task));
            }
            self.at = end % PARTITION;
            if end == PARTITION {
                self.window.copy_within(PARTITION..PARTITION + SHORT, 0);
            }
            done += frames;
        }
    }

    /// Runs the task that is due when `task + 1` quanta of the period are complete.
    fn task(&mut self, task: usize) {
        let done = if task == 0 { 0 } else { self.pieces_after[task - 1] };
        for piece in done..self.pieces_after[task] {
            match piece {
                0..STEPS => self.transform_step(piece),
                piece if piece < STEPS + ROW => self.products(piece - STEPS),
                piece => {
                    for Output { sums, tail, .. } in &mut self.outputs {
                        self.fourier.second_half_step(piece - STEPS - ROW, sums, tail);
                    }
                }
            }
        }
    }

    /// A step of the transform of the last period.
    fn transform_step(&mut self, step: usize) {
        let Self { fourier, window, partitions, newest, past, youngest, .. } = self;
        fourier.forward_step(step, &window[SHORT - HEAD..SHORT], newest);
        if step == STEPS - 1 {
            *youngest = youngest.checked_sub(1).unwrap_or(*partitions - 1);
            store_spectrum(newest, past, *youngest, *partitions);
        }
    }

    /// A row of the sums of all products.
    fn products(&mut self, row: usize) {
        let row_of = row * self.partitions * WIDTH..(row + 1) * self.partitions * WIDTH;
        let (before, after) = self.past[row_of.clone()].split_at(self.youngest * WIDTH);
        for Output { spectra, sums, .. } in &mut self.outputs {
            let (young, old) = spectra[row_of.clone()].split_at(after.len());
            let (re, im) = sum_of_products(self.instructions, [(after, young), (before, old)]);
            sums.re[row * ROW..][..ROW].copy_from_slice(&re);
            sums.im[row * ROW..][..ROW].copy_from_slice(&im);
        }
    }

    /// Clears the state.
    pub fn reset(&mut self) {
        self.window.fill(0.0);
        self.past.fill(0.0);
        self.at = 0;
        for output in &mut self.outputs {
            output.tail.fill(0.0);
            output.sums = Spectrum::ZERO;
        }
    }
}

/// Time of a piece in times of a row of one product.
fn cost(piece: usize, partitions: usize, outputs: usize) -> usize {
    match piece {
        0..STEPS => STEP_COST,
        piece if piece < STEPS + ROW => partitions * outputs,
        _ => STEP_COST * outputs,
    }
}

/// Divides the pieces into tasks of about the same time: a piece belongs to the task that contains its middle. The last
/// piece belongs to the last task, because it overwrites the contribution to the present period.
fn pieces_after(partitions: usize, outputs: usize) -> [usize; TASKS] {
    let cost = |piece: usize| cost(piece, partitions, outputs);
    let all: usize = (0..PIECES).map(cost).sum();
    let mut after = [PIECES; TASKS];
    let (mut piece, mut before) = (0, 0);
    for (task, after) in after[..TASKS - 1].iter_mut().enumerate() {
        while piece < PIECES - 1 && (2 * before + cost(piece)) * TASKS <= 2 * (task + 1) * all {
            before += cost(piece);
            piece += 1;
        }
        *after = piece;
    }
    after
}

impl Output {
    fn new(response: &[f32], partitions: usize, fourier: &Fourier) -> Self {
        let (direct, rest) = response.split_at(response.len().min(if partitions == 0 { SHORT } else { HEAD }));
        let mut head = vec![0.0; direct.len().next_multiple_of(SUMS) - direct.len()];
        head.extend(direct.iter().rev());
        let mut spectra = vec![0.0; partitions * 2 * BINS];
        for (partition, response) in rest.chunks(PARTITION).enumerate() {
            let (mut samples, mut spectrum) = ([0.0; 2 * PARTITION], Spectrum::ZERO);
            // Compensates for the gain of the transform and its inverse.
            samples.iter_mut().zip(response).for_each(|(sample, x)| *sample = x / PARTITION as f32);
            fourier.forward(&samples, &mut spectrum);
            store_spectrum(&spectrum, &mut spectra, partition, partitions);
        }
        Self { head, spectra, sums: Spectrum::ZERO, tail: [0.0; PARTITION] }
    }

    /// Computes the samples of this period from `begin`; `window` contains their inputs.
    fn play(&self, instructions: InstructionSet, window: &[f32], begin: usize, samples: &mut [f32]) {
        let mut direct_sums = [0.0; PARTITION];
        let direct_sums = &mut direct_sums[..samples.len().next_multiple_of(STEP)];
        fir(instructions, &window[SHORT + begin + 1 - self.head.len()..], &self.head, direct_sums);
        for ((sample, head), tail) in samples.iter_mut().zip(direct_sums).zip(&self.tail[begin..]) {
            *sample = *head + tail;
        }
    }
}

/// Stores the rows of a spectrum as those of partition `partition`.
fn store_spectrum(spectrum: &Spectrum, spectra: &mut [f32], partition: usize, partitions: usize) {
    for row in 0..ROW {
        let (re, im) = spectra[(row * partitions + partition) * WIDTH..][..WIDTH].split_at_mut(ROW);
        re.copy_from_slice(&spectrum.re[row * ROW..][..ROW]);
        im.copy_from_slice(&spectrum.im[row * ROW..][..ROW]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_work_of_a_period_is_divided_evenly_into_its_tasks() {
        for (partitions, outputs) in [(1, 1), (1, 2), (6, 1), (6, 2), (30, 1), (186, 2), (4000, 2)] {
            let after = pieces_after(partitions, outputs);
            assert!(after.is_sorted() && after[TASKS - 1] == PIECES && after[TASKS - 2] < PIECES, "{after:?}");
            let cost = |pieces: std::ops::Range<usize>| -> usize {
                pieces.map(|piece| cost(piece, partitions, outputs)).sum()
            };
            let longest_piece = (0..PIECES).map(|piece| cost(piece..piece + 1)).max().unwrap();
            for task in 1..TASKS {
                let (own, share) = (cost(after[task - 1]..after[task]), cost(0..PIECES) / TASKS);
                assert!(own <= share + longest_piece, "task {task}: {own} of {share}: {after:?}");
            }
        }
    }
}
