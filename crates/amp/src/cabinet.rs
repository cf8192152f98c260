//! A loudspeaker cabinet: a signal is convolved with an impulse response, without delay and with evenly spread work.
//!
//! Time is divided into periods of 256 samples. The first 512 samples of the response are convolved directly. The rest
//! is divided into partitions of one period each, whose spectra are multiplied with those of earlier periods (uniformly
//! partitioned convolution). The contribution of a period is due two periods later, so a whole period is left to
//! compute it. This work is divided into 16 tasks, one after every 16 samples: the transform of the input, the
//! products, and the inverse transform. A callback of any size therefore does only its share.
//!
//! Tasks depend on the number of samples, never on calls, so the output bits do not depend on how a signal is divided.

mod ir;

pub use ir::{Ir, IrError};

use crate::simd::{BINS, Fourier, InstructionSet, ROW, STEP, SUMS, Spectrum, fir, flush_denormals, sum_of_products};

/// Number of samples of a partition of the response, and of a period.
const PARTITION: usize = BINS;
/// Number of samples of the response that are convolved directly.
const HEAD: usize = 2 * PARTITION;
/// Number of samples between two tasks.
const QUANTUM: usize = 16;
/// The task of the inverse transform; task 0 transforms the input.
const LAST_TASK: usize = PARTITION / QUANTUM - 1;
/// Number of values in a row of a spectrum.
const WIDTH: usize = 2 * ROW;

/// A cabinet, ready to play.
#[derive(Debug)]
pub struct Cabinet {
    instructions: InstructionSet,
    fourier: Box<Fourier>,
    /// The last [`HEAD`] samples before this period, those of this period, and space that vectors read beyond.
    window: Vec<f32>,
    /// Number of samples of this period so far.
    at: usize,
    /// Number of partitions of the response after the head.
    partitions: usize,
    /// Spectra of the last periods, one per partition: first row 0 of all of them, then row 1. A ring, the newest
    /// first.
    past: Vec<f32>,
    youngest: usize,
    sides: Vec<Channel>,
}

/// The state of one output channel.
#[derive(Debug)]
struct Channel {
    /// The first samples of the response, in reverse order.
    head: Vec<f32>,
    /// Spectra of the partitions, in the layout of [`Cabinet::past`].
    spectra: Vec<f32>,
    sums: Spectrum,
    /// Contribution of the partitions to this period.
    tail: [f32; PARTITION],
}

impl Cabinet {
    /// A cabinet for the sample rate of the response.
    #[must_use]
    pub fn new(ir: &Ir) -> Self {
        Self::with_instructions(ir, InstructionSet::best())
    }

    /// A cabinet that uses the given instruction set.
    #[must_use]
    pub fn with_instructions(ir: &Ir, instructions: InstructionSet) -> Self {
        let fourier = Fourier::new(instructions);
        let partitions = ir.frames().saturating_sub(HEAD).div_ceil(PARTITION);
        let sides = ir.channels().iter().map(|response| Channel::new(response, partitions, &fourier)).collect();
        Self {
            instructions,
            fourier,
            window: vec![0.0; HEAD + PARTITION + STEP],
            at: 0,
            partitions,
            past: vec![0.0; partitions * 2 * BINS],
            youngest: 0,
            sides,
        }
    }

    /// Number of samples after which an input no longer affects the output.
    #[must_use]
    pub fn frames(&self) -> usize {
        HEAD + self.partitions * PARTITION
    }

    /// True if the two outputs differ.
    #[must_use]
    pub fn is_stereo(&self) -> bool {
        self.sides.len() > 1
    }

    /// Plays `input`. A mono cabinet fills both sides with the same samples. Denormal numbers count as zero, so that
    /// silence takes no longer than sound.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn process(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        assert!(input.len() == left.len() && input.len() == right.len(), "input and outputs have different lengths");
        let _flushed = flush_denormals();
        let mut done = 0;
        while done < input.len() {
            let frames = (input.len() - done).min(PARTITION - self.at);
            let now = done..done + frames;
            self.process_in_period(&input[now.clone()], [&mut left[now.clone()], &mut right[now]]);
            done += frames;
        }
        if self.sides.len() == 1 {
            right.copy_from_slice(left);
        }
    }

    fn process_in_period(&mut self, input: &[f32], outputs: [&mut [f32]; 2]) {
        let (begin, end) = (self.at, self.at + input.len());
        self.window[HEAD + begin..HEAD + end].copy_from_slice(input);
        for (side, output) in self.sides.iter_mut().zip(outputs) {
            let mut direct_sums = [0.0; PARTITION];
            let direct_sums = &mut direct_sums[..input.len().next_multiple_of(STEP)];
            fir(self.instructions, &self.window[HEAD + begin + 1 - side.head.len()..], &side.head, direct_sums);
            for ((output, head), tail) in output.iter_mut().zip(direct_sums).zip(&side.tail[begin..]) {
                *output = *head + tail;
            }
        }
        for quantum in begin / QUANTUM..end / QUANTUM {
            self.task(quantum);
        }
        self.at = end;
        if end == PARTITION {
            self.window.copy_within(PARTITION..PARTITION + HEAD, 0);
            self.at = 0;
        }
    }

    /// Runs the task that is due when `quantum + 1` quanta of the period are complete.
    fn task(&mut self, quantum: usize) {
        let Self { instructions, fourier, window, partitions, past, youngest, sides, .. } = self;
        let (instructions, partitions) = (*instructions, *partitions);
        if partitions == 0 {
            return;
        }
        match quantum {
            0 => {
                let mut spectrum = Spectrum::ZERO;
                fourier.forward(&window[..HEAD], &mut spectrum);
                *youngest = youngest.checked_sub(1).unwrap_or(partitions - 1);
                store_spectrum(&spectrum, past, *youngest, partitions);
            }
            LAST_TASK => {
                for side in sides {
                    fourier.second_half(&mut side.sums, &mut side.tail);
                }
            }
            _ => {
                let row_after = |tasks: usize| tasks * ROW / (LAST_TASK - 1);
                for row in row_after(quantum - 1)..row_after(quantum) {
                    let row_of = row * partitions * WIDTH..(row + 1) * partitions * WIDTH;
                    let (before, after) = past[row_of.clone()].split_at(*youngest * WIDTH);
                    for Channel { spectra, sums, .. } in sides.iter_mut() {
                        let (young, old) = spectra[row_of.clone()].split_at(after.len());
                        let (re, im) = sum_of_products(instructions, [(after, young), (before, old)]);
                        sums.re[row * ROW..][..ROW].copy_from_slice(&re);
                        sums.im[row * ROW..][..ROW].copy_from_slice(&im);
                    }
                }
            }
        }
    }

    /// Clears the state.
    pub fn reset(&mut self) {
        self.window.fill(0.0);
        self.past.fill(0.0);
        self.at = 0;
        for side in &mut self.sides {
            side.tail.fill(0.0);
            side.sums = Spectrum::ZERO;
        }
    }
}

impl Channel {
    fn new(response: &[f32], partitions: usize, fourier: &Fourier) -> Self {
        let (direct, rest) = response.split_at(response.len().min(HEAD));
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

    fn noise(seed: u32, len: usize) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    /// Decaying noise.
    fn response(seed: u32, len: usize) -> Vec<f32> {
        let decay = |n: usize| (-6.0 * n as f32 / len as f32).exp() * 0.3;
        noise(seed, len).into_iter().enumerate().map(|(n, x)| x * decay(n)).collect()
    }

    fn direct(input: &[f32], response: &[f32]) -> Vec<f64> {
        let at =
            |n: usize| (0..response.len().min(n + 1)).map(|k| f64::from(response[k]) * f64::from(input[n - k])).sum();
        (0..input.len()).map(at).collect()
    }

    fn play(cabinet: &mut Cabinet, input: &[f32], lengths: &[usize]) -> [Vec<f32>; 2] {
        let (mut left, mut right) = (vec![0.0; input.len()], vec![0.0; input.len()]);
        let (mut at, mut lengths) = (0, lengths.iter().cycle());
        while at < input.len() {
            let end = input.len().min(at + lengths.next().unwrap());
            cabinet.process(&input[at..end], &mut left[at..end], &mut right[at..end]);
            at = end;
        }
        [left, right]
    }

    #[test]
    fn output_is_the_convolution_for_every_response_length() {
        let input = noise(1, 5000);
        for len in [1, 2, 3, 100, 511, 512, 513, 700, 768, 769, 2048, 4999] {
            let channels = vec![response(2, len), response(3, len)];
            let ir = Ir::new(48_000, channels.clone()).unwrap();
            for instructions in InstructionSet::all() {
                let played = play(&mut Cabinet::with_instructions(&ir, instructions), &input, &[64]);
                for (played, response) in played.iter().zip(&channels) {
                    let errors =
                        direct(&input, response).into_iter().zip(played).map(|(a, &b)| (a - f64::from(b)).abs());
                    let worst = errors.fold(0.0, f64::max);
                    assert!(worst < 3e-6, "{len} samples with {}: {worst:e}", instructions.name());
                }
            }
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_same_bits() {
        let input = noise(4, 6000);
        let mut cabinet = Cabinet::new(&Ir::new(48_000, vec![response(5, 3000)]).unwrap());
        let whole = play(&mut cabinet, &input, &[input.len()]);
        assert_eq!(whole[0], whole[1]);
        for lengths in [&[1][..], &[16], &[64], &[63, 2, 255, 1], &[1024], &[257, 7]] {
            cabinet.reset();
            assert!(play(&mut cabinet, &input, lengths) == whole, "{lengths:?}");
        }
    }
}
