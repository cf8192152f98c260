//! A signal that is sent out and looked for in what comes in: the true round trip, through converters and cable.
//!
//! The signal is a maximum length sequence, which resembles itself at no other shift: the shift at which what came back
//! resembles it most is the delay, even under much noise, and whatever the level. Each round has another one, so that what
//! comes back of the round before is not taken for its own.

use probes::audio::Player;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bits of the shift register; the sequence has 2^BITS - 1 samples.
const BITS: u32 = 11;
/// Its feedback: x^11 + x^9 + 1 is primitive (Xilinx application note 052, table 3).
const TAPS: [u32; 2] = [11, 9];
/// Every so many samples of the sequence make the others that are played in turn. No two of the four resemble each other: at no
/// shift is the sum of their products larger than 65. More than four sequences of this length are never so to each other
/// (Sarwate and Pursley, Proceedings of the IEEE 68, 1980, pages 593-619: preferred pairs, maximal connected sets).
const DECIMATIONS: [usize; 4] = [1, 5, 9, 315];
/// Samples of a sequence.
pub const LENGTH: usize = (1 << BITS) - 1;
/// Level that it is played at, of full scale: -12 dB.
pub const LEVEL: f32 = 0.25;
/// How many times larger than the rest the likeness must be. Of 50 000 values of noise the largest is some 4.4 times the root
/// of their mean square.
const CLEAR: f64 = 8.0;
/// How many times larger it must be than what noise as loud as the samples that it was found in has on average; all of
/// the sequence and nothing else has 45. Where it is silent but for a part of another sequence, the rest tells nothing, and this
/// is 4 at most.
const MATCHED: f64 = 6.0;
/// Samples around the largest likeness that belong to it, since converters smear.
const SMEARED: usize = 64;

/// The sequence of a round, counted from 0, of samples 1 and -1.
#[must_use]
pub fn sequence(round: usize) -> Vec<f32> {
    let first = first();
    let step = DECIMATIONS[round % DECIMATIONS.len()];
    (0..LENGTH).map(|at| first[at * step % LENGTH]).collect()
}

fn first() -> Vec<f32> {
    let mut register = 1_u32;
    let mut next = || {
        let bit = TAPS.iter().fold(0, |sum, tap| sum ^ register >> (tap - 1)) & 1;
        register = (register << 1 | bit) & ((1 << BITS) - 1);
        if bit == 1 { 1.0 } else { -1.0 }
    };
    (0..LENGTH).map(|_| next()).collect()
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Samples that it was on its way.
    pub delay: usize,
    /// What of it came back: 1 for the level that was played, negative where a wire is crossed.
    pub gain: f32,
    /// How many times larger its likeness is than all else.
    pub clarity: f64,
}

/// Looks for the sequence in what was heard since it began to be played; `None` where nothing resembles it clearly.
#[must_use]
pub fn find(sequence: &[f32], heard: &[f32]) -> Option<Found> {
    let likeness: Vec<f32> = heard.windows(sequence.len()).map(|heard| dot(sequence, heard)).collect();
    let delay = (0..likeness.len()).max_by(|&a, &b| likeness[a].abs().total_cmp(&likeness[b].abs()))?;
    let others = likeness.iter().enumerate().filter(|(lag, _)| lag.abs_diff(delay) > SMEARED);
    let (sum, count) =
        others.fold((0.0, 0_u32), |(sum, count), (_, value)| (sum + f64::from(*value).powi(2), count + 1));
    let rest = (sum / f64::from(count.max(1))).sqrt();
    let peak = f64::from(likeness[delay]);
    let clarity = peak.abs() / rest.max(f64::MIN_POSITIVE);
    let loudness = heard[delay..][..sequence.len()].iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>().sqrt();
    let gain = likeness[delay] / (sequence.len() as f32 * LEVEL);
    (peak != 0.0 && clarity >= CLEAR && peak.abs() >= MATCHED * loudness).then_some(Found { delay, gain, clarity })
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

/// Plays a sequence once a round, another each time, and hands on all that comes in.
#[derive(Debug)]
pub struct Sender {
    sequences: [Vec<f32>; DECIMATIONS.len()],
    /// Which of them is played.
    turn: usize,
    /// Frames of a round.
    round: usize,
    /// Frames of this round that were played.
    at: usize,
    heard: Producer<f32>,
}

/// What comes in, to be taken by another thread.
#[derive(Debug)]
pub struct Heard(Consumer<f32>);

impl Heard {
    /// Takes the next round; `None` while it is not whole.
    pub fn round(&mut self, frames: usize) -> Option<Vec<f32>> {
        let chunk = self.0.read_chunk(frames).ok()?;
        let round = chunk.into_iter().collect();
        Some(round)
    }
}

/// A sender whose rounds have so many frames, with room for so many rounds.
#[must_use]
pub fn cable(round_frames: usize, rounds: usize) -> (Sender, Heard) {
    let (heard, theirs) = RingBuffer::new(round_frames * rounds);
    let sequences = std::array::from_fn(sequence);
    (Sender { sequences, turn: 0, round: round_frames, at: 0, heard }, Heard(theirs))
}

impl Player for Sender {
    fn play(&mut self, input: &[f32], left: &mut [f32], right: &mut [f32]) {
        for ((sample, left), right) in input.iter().zip(left).zip(right) {
            // Once all rounds are full there is nobody who wants more.
            let _ = self.heard.push(*sample);
            *left = self.sequences[self.turn].get(self.at).map_or(0.0, |sample| sample * LEVEL);
            *right = *left;
            self.at += 1;
            if self.at == self.round {
                self.at = 0;
                self.turn = (self.turn + 1) % self.sequences.len();
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
    fn a_sequence_resembles_itself_at_no_other_shift_and_no_other_sequence_at_any() {
        for (a, b) in (0..DECIMATIONS.len()).flat_map(|a| (0..=a).map(move |b| (a, b))) {
            let (one, mut other) = (sequence(a), sequence(b));
            for shift in 0..LENGTH {
                let sum = dot(&one, &other);
                if a == b {
                    assert_eq!(sum, if shift == 0 { LENGTH as f32 } else { -1.0 }, "{a} at shift {shift}");
                } else {
                    assert!(sum.abs() <= 65.0, "{a} and {b} at shift {shift}: {sum}");
                }
                other.rotate_left(1);
            }
        }
        assert_eq!(sequence(0), sequence(DECIMATIONS.len()));
    }

    #[test]
    fn noise_and_silence_are_no_signal() {
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
        fn the_delay_is_found_under_noise_that_is_louder(round in 0..DECIMATIONS.len(), delay in 0_usize..1000, gain in prop_oneof![-1.0_f32..-0.2, 0.2_f32..1.0], seed: u32) {
            let mut heard = noise(LENGTH + 1000, seed);
            // Six decibels above the signal.
            heard.iter_mut().for_each(|sample| *sample *= 2.0 * LEVEL * gain.abs() * 3.0_f32.sqrt());
            for (at, sample) in sequence(round).iter().enumerate() {
                heard[delay + at] += sample * LEVEL * gain;
            }
            let found = find(&sequence(round), &heard).unwrap();
            prop_assert_eq!(found.delay, delay);
            prop_assert!((found.gain / gain - 1.0).abs() < 0.3, "{:?} of {}", found, gain);
        }
    }

    /// What each of these rounds finds through a cable that delays by so many samples.
    fn through(delay: usize, round: usize, rounds: usize) -> Vec<Option<usize>> {
        const PERIOD: usize = 64;
        let (mut sender, mut heard) = cable(round, rounds);
        let mut line = std::collections::VecDeque::from(vec![0.0; delay]);
        let (mut input, mut left, mut right) = ([0.0; PERIOD], [0.0; PERIOD], [0.0; PERIOD]);
        for _ in 0..(rounds * round).div_ceil(PERIOD) {
            // As if it were played at once: what is left is the cable.
            input.iter_mut().for_each(|sample| *sample = line.pop_front().unwrap());
            sender.play(&input, &mut left, &mut right);
            line.extend(left);
            assert_eq!(left, right);
        }
        let found = |n| find(&sequence(n), &heard.round(round).unwrap()).map(|found| found.delay);
        let found = (0..rounds).map(found).collect();
        assert!(heard.round(round).is_none());
        found
    }

    #[test]
    fn a_sender_with_a_cable_to_itself_finds_the_cable() {
        assert_eq!(through(777, LENGTH + 2000, 5), [Some(777); 5]);
    }

    #[test]
    fn what_comes_back_of_an_earlier_round_is_not_taken_for_this_one_s() {
        let round = LENGTH + 2000;
        // One, two and three rounds late; and what lies in two rounds, in parts of all sizes.
        let parts = (1..10).map(|part| round - LENGTH * part / 10);
        for delay in [round, round + 777, 2 * round + 777, 3 * round + 777].into_iter().chain(parts) {
            assert_eq!(through(delay, round, 5), [None; 5], "{delay} samples");
        }
    }
}
