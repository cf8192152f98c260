//! Round trip through a sound card with a cable from output to input: a signal is played, and searched for in the
//! input.
//!
//! The signal is a maximum length sequence. Its correlation with itself has a single peak, so the largest correlation
//! with the recording gives the delay at any level, even in loud noise. Consecutive rounds play different sequences, so
//! that a late echo of one round is not mistaken for the next.

use probes::audio::Player;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bits of the shift register; a sequence has 2^BITS - 1 samples.
const BITS: u32 = 11;
/// Feedback taps: x^11 + x^9 + 1 is primitive (Xilinx application note 052, table 3).
const TAPS: [u32; 2] = [11, 9];
/// Decimations of the first sequence that give the sequences of consecutive rounds. The cross-correlation of any two is
/// at most 65 at every shift; there are no more than four sequences of this length with that property (Sarwate and
/// Pursley, Proceedings of the IEEE 68, 1980, pages 593-619: preferred pairs, maximal connected sets).
const DECIMATIONS: [usize; 4] = [1, 5, 9, 315];
/// Samples of a sequence.
pub const SEQUENCE_LEN: usize = (1 << BITS) - 1;
/// Peak level of the played sequence as a fraction of full scale: -12 dB.
pub const LEVEL: f32 = 0.25;
/// Minimum ratio of the peak to the RMS of the other correlations. In 50 000 values of noise the largest is about 4.4
/// times the RMS.
const MIN_CLARITY: f64 = 8.0;
/// Minimum ratio of the peak to the expected correlation with noise as loud as the matched samples. A pure sequence has
/// 45. This check is needed where the recording is silent except for a part of another sequence: the RMS of the other
/// correlations is meaningless then, but this ratio is 4 at most.
const MIN_MATCH: f64 = 6.0;
/// Samples on both sides of the peak that belong to it, because converters smear it.
const PEAK_WIDTH: usize = 64;

/// The sequence of a round (from 0); its samples are 1 and -1.
#[must_use]
pub fn sequence(round: usize) -> Vec<f32> {
    let first = first_sequence();
    let step = DECIMATIONS[round % DECIMATIONS.len()];
    (0..SEQUENCE_LEN).map(|n| first[n * step % SEQUENCE_LEN]).collect()
}

fn first_sequence() -> Vec<f32> {
    let mut register = 1_u32;
    let mut next = || {
        let bit = TAPS.iter().fold(0, |sum, tap| sum ^ register >> (tap - 1)) & 1;
        register = (register << 1 | bit) & ((1 << BITS) - 1);
        if bit == 1 { 1.0 } else { -1.0 }
    };
    (0..SEQUENCE_LEN).map(|_| next()).collect()
}

/// A sequence found in a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// Delay, samples.
    pub delay: usize,
    /// Gain: 1 for the level that was played, negative if the polarity is inverted.
    pub gain: f32,
    /// Ratio of the correlation peak to the RMS of the other correlations.
    pub clarity: f64,
}

/// Finds the sequence in a recording that began when the sequence did; `None` if there is no clear match.
#[must_use]
pub fn find(sequence: &[f32], recording: &[f32]) -> Option<RoundTrip> {
    let correlations: Vec<f32> = recording.windows(sequence.len()).map(|window| dot(sequence, window)).collect();
    let delay = (0..correlations.len()).max_by(|&a, &b| correlations[a].abs().total_cmp(&correlations[b].abs()))?;
    let others = correlations.iter().enumerate().filter(|(lag, _)| lag.abs_diff(delay) > PEAK_WIDTH);
    let (sum, count) =
        others.fold((0.0, 0_u32), |(sum, count), (_, value)| (sum + f64::from(*value).powi(2), count + 1));
    let rms = (sum / f64::from(count.max(1))).sqrt();
    let peak = f64::from(correlations[delay]);
    let clarity = peak.abs() / rms.max(f64::MIN_POSITIVE);
    let matched = &recording[delay..][..sequence.len()];
    let loudness = matched.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>().sqrt();
    let gain = correlations[delay] / (sequence.len() as f32 * LEVEL);
    let is_clear = peak != 0.0 && clarity >= MIN_CLARITY && peak.abs() >= MIN_MATCH * loudness;
    is_clear.then_some(RoundTrip { delay, gain, clarity })
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// Plays a sequence at the start of each round, and sends all input to a [`Recorder`].
#[derive(Debug)]
pub struct SequencePlayer {
    sequences: [Vec<f32>; DECIMATIONS.len()],
    /// Index of the current sequence.
    current: usize,
    round_frames: usize,
    /// Frames played in this round.
    position: usize,
    recording: Producer<f32>,
}

/// Receives the input that a [`SequencePlayer`] recorded.
#[derive(Debug)]
pub struct Recorder(Consumer<f32>);

impl Recorder {
    /// The recording of the next round, of `frames` frames; `None` until it is complete.
    pub fn round(&mut self, frames: usize) -> Option<Vec<f32>> {
        let chunk = self.0.read_chunk(frames).ok()?;
        let round = chunk.into_iter().collect();
        Some(round)
    }
}

/// Creates a player and its recorder, with a queue for `rounds` rounds of `round_frames` frames.
#[must_use]
pub fn loopback(round_frames: usize, rounds: usize) -> (SequencePlayer, Recorder) {
    let (recording, recorder) = RingBuffer::new(round_frames * rounds);
    let sequences = std::array::from_fn(sequence);
    (SequencePlayer { sequences, current: 0, round_frames, position: 0, recording }, Recorder(recorder))
}

impl Player for SequencePlayer {
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        for ((sample, left), right) in input.iter().zip(left).zip(right) {
            // The queue is full once all rounds are recorded; the rest is not needed.
            let _ = self.recording.push(*sample);
            *left = self.sequences[self.current].get(self.position).map_or(0.0, |sample| sample * LEVEL);
            *right = *left;
            self.position += 1;
            if self.position == self.round_frames {
                self.position = 0;
                self.current = (self.current + 1) % self.sequences.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Noise of full scale 1.
    fn noise(frames: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..frames).map(|_| next()).collect()
    }

    #[test]
    fn sequences_have_low_autocorrelation_and_cross_correlation() {
        for (a, b) in (0..DECIMATIONS.len()).flat_map(|a| (0..=a).map(move |b| (a, b))) {
            let (one, mut other) = (sequence(a), sequence(b));
            for shift in 0..SEQUENCE_LEN {
                let sum = dot(&one, &other);
                if a == b {
                    assert_eq!(sum, if shift == 0 { SEQUENCE_LEN as f32 } else { -1.0 }, "{a} at shift {shift}");
                } else {
                    assert!(sum.abs() <= 65.0, "{a} and {b} at shift {shift}: {sum}");
                }
                other.rotate_left(1);
            }
        }
        assert_eq!(sequence(0), sequence(DECIMATIONS.len()));
    }

    #[test]
    fn finds_nothing_in_noise_and_silence() {
        let sequence = sequence(0);
        assert_eq!(find(&sequence, &vec![0.0; 10_000]), None);
        for seed in 1..4 {
            assert_eq!(find(&sequence, &noise(6_000, seed)), None);
        }
        assert_eq!(find(&sequence, &[0.5; 100]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]
        #[test]
        fn finds_the_delay_in_louder_noise(round in 0..DECIMATIONS.len(), delay in 0_usize..1000, gain in prop_oneof![-1.0_f32..-0.2, 0.2_f32..1.0], seed: u32) {
            let mut recording = noise(SEQUENCE_LEN + 1000, seed);
            // Six decibels above the signal.
            recording.iter_mut().for_each(|sample| *sample *= 2.0 * LEVEL * gain.abs() * 3.0_f32.sqrt());
            for (n, sample) in sequence(round).iter().enumerate() {
                recording[delay + n] += sample * LEVEL * gain;
            }
            let found = find(&sequence(round), &recording).unwrap();
            prop_assert_eq!(found.delay, delay);
            prop_assert!((found.gain / gain - 1.0).abs() < 0.3, "{:?} of {}", found, gain);
        }
    }

    /// The delay found in each round through a line of `delay` samples.
    fn delays_through(delay: usize, round: usize, rounds: usize) -> Vec<Option<usize>> {
        const PERIOD: usize = 64;
        let (mut player, mut recorder) = loopback(round, rounds);
        let mut line = std::collections::VecDeque::from(vec![0.0; delay]);
        let (mut input, mut left, mut right) = ([0.0; PERIOD], [0.0; PERIOD], [0.0; PERIOD]);
        for _ in 0..(rounds * round).div_ceil(PERIOD) {
            // The output is fed back without the delay of a period, so only the line delays it.
            input.iter_mut().for_each(|sample| *sample = line.pop_front().unwrap());
            player.play(&input, &mut left, &mut right);
            line.extend(left);
            assert_eq!(left, right);
        }
        let delay = |n| find(&sequence(n), &recorder.round(round).unwrap()).map(|found| found.delay);
        let delays = (0..rounds).map(delay).collect();
        assert!(recorder.round(round).is_none());
        delays
    }

    #[test]
    fn finds_the_delay_of_a_loopback() {
        assert_eq!(delays_through(777, SEQUENCE_LEN + 2000, 5), [Some(777); 5]);
    }

    #[test]
    fn ignores_the_sequence_of_an_earlier_round() {
        let round = SEQUENCE_LEN + 2000;
        // One, two and three rounds late, and split between two rounds at several places.
        let parts = (1..10).map(|part| round - SEQUENCE_LEN * part / 10);
        for delay in [round, round + 777, 2 * round + 777, 3 * round + 777].into_iter().chain(parts) {
            assert_eq!(delays_through(delay, round, 5), [None; 5], "{delay} samples");
        }
    }
}
