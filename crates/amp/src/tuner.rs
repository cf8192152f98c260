//! The tuner: finds the note that is played and its deviation.
//!
//! The period is the lag at which the signal is most similar to itself: P. McLeod and G. Wyvill, "A smarter way to find
//! pitch" (ICMC 2005). It is then refined over as many periods as the window has, which divides the error by their
//! number. The high partials are filtered out first: those of a stiff string are sharp (H. Fletcher, "Normal vibration
//! frequencies of a stiff piano string", JASA 36, 1964) and reduce the similarity.

use std::fmt;

use crate::convert::{to_f32, whole};

/// Lowest note, Hz: the low B of a bass with five strings has 30.9 Hz.
const LOWEST_HZ: f32 = 29.0;
/// Highest note, Hz: the 24th fret of the highest guitar string has 1319 Hz.
const HIGHEST_HZ: f32 = 1500.0;
/// Length of the window that is compared, s.
const WINDOW_S: f32 = 0.06;
/// Level below which there is no note (RMS, -66 dB).
const SILENCE: f32 = 5e-4;
/// Minimum similarity of a note, 0 to 1.
const CLEAR: f32 = 0.85;
/// The period is the first peak of at least this share of the highest; higher peaks after it are multiples of the
/// period.
const FIRST: f32 = 0.93;
/// Higher sample rates are reduced to at most this one: they would take more time without improving the result.
const MAX_RATE_HZ: u32 = 50_000;
/// If no note is found, notes below this frequency are searched for again without high partials, Hz.
const LOW_HZ: f32 = 150.0;
/// Minimum share of the power that remains then; less is hum under a higher note.
const LOW_SHARE: f32 = 0.1;

/// A note. Displayed in scientific pitch notation: `E2` is the lowest string of a guitar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pitch {
    /// Frequency, Hz.
    pub hz: f32,
    /// Name without the octave, such as `"E"` or `"F#"`.
    pub note: &'static str,
    /// Octave in scientific pitch notation: A4 has 440 Hz, and an octave begins at C.
    pub octave: i32,
    /// Deviation from the note, -50 to 50 hundredths of a semitone, for A4 at 440 Hz.
    pub cents: f32,
    /// Similarity of the signal to itself one period later, 0 to 1.
    pub clarity: f32,
}

const NOTES: [&str; 12] = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];

impl Pitch {
    fn new(hz: f32, clarity: f32) -> Self {
        let semitones = 69.0 + 12.0 * (f64::from(hz) / 440.0).log2();
        let nearest = semitones.round();
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm of an `f32` is small")]
        let octave = nearest.div_euclid(12.0) as i32 - 1;
        Self {
            hz,
            note: NOTES[whole(nearest.rem_euclid(12.0)) % 12],
            octave,
            cents: to_f32((semitones - nearest) * 100.0),
            clarity,
        }
    }
}

impl fmt::Display for Pitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.note, self.octave)
    }
}

/// Finds the pitch of a signal.
#[derive(Debug)]
pub struct Tuner {
    rate_hz: f32,
    /// Number of input samples that are averaged to one.
    decimation: usize,
    sum: (f32, usize),
    /// The end of the signal.
    history: Vec<f32>,
    window: usize,
    lags: usize,
    /// Weight of each sample of the window: a raised cosine.
    weights: Vec<f32>,
}

impl Tuner {
    /// A tuner for a signal of this sample rate, Hz.
    #[must_use]
    pub fn new(rate_hz: u32) -> Self {
        let decimation = rate_hz.div_ceil(MAX_RATE_HZ).max(1) as usize;
        let rate_hz = rate_hz as f32 / decimation as f32;
        let (window, lags) = (whole(f64::from(rate_hz * WINDOW_S)), whole(f64::from(rate_hz / LOWEST_HZ)) + 2);
        let weight = |at: usize| 0.5 - 0.5 * (std::f32::consts::TAU * (at as f32 + 0.5) / window as f32).cos();
        let weights = (0..window).map(weight).collect();
        Self { rate_hz, decimation, sum: (0.0, 0), history: vec![0.0; window + lags], window, lags, weights }
    }

    /// Adds the next samples of the signal.
    pub fn listen(&mut self, samples: &[f32]) {
        let before = self.history.len();
        for sample in samples {
            self.sum = (self.sum.0 + sample, self.sum.1 + 1);
            if self.sum.1 == self.decimation {
                self.history.push(self.sum.0 / self.decimation as f32);
                self.sum = (0.0, 0);
            }
        }
        self.history.drain(..self.history.len() - before);
    }

    /// The note that is played, if any. Takes a few milliseconds.
    #[must_use]
    pub fn pitch(&self) -> Option<Pitch> {
        if self.window == 0 {
            return None;
        }
        let power = dot(&self.history, &self.history) / self.history.len() as f32;
        if power.sqrt() < SILENCE {
            return None;
        }
        let (approximate, clarity) = self.find_period(&self.history).or_else(|| self.find_low_period(power))?;
        let hz = self.rate_hz / approximate;
        let note = self.band_pass(if hz > LOW_HZ { 0.5 * hz } else { 0.0 }, 2.0 * hz);
        Some(Pitch::new(self.rate_hz / self.refine_period(&note, approximate), clarity))
    }

    /// The approximate period of a signal, samples, and its similarity.
    fn find_period(&self, signal: &[f32]) -> Option<(f32, f32)> {
        let similarity = self.similarity(signal);
        let peaks = peaks(&similarity, whole(f64::from(self.rate_hz / HIGHEST_HZ)));
        let greatest = peaks.iter().map(|&at| similarity[at]).fold(0.0, f32::max);
        let first = peaks.into_iter().find(|&at| similarity[at] >= FIRST * greatest && similarity[at] >= CLEAR)?;
        Some((peak_position(&similarity, first), similarity[first].min(1.0)))
    }

    /// The period of a low string whose partials are loud, in a signal of this power.
    fn find_low_period(&self, power: f32) -> Option<(f32, f32)> {
        let low = self.band_pass(0.0, 2.0 * LOW_HZ);
        let found = self.find_period(&low).filter(|(period, _)| self.rate_hz / period < LOW_HZ);
        found.filter(|_| dot(&low, &low) / low.len() as f32 > LOW_SHARE * power)
    }

    /// The signal, low-pass filtered at `high_hz` (two poles) and high-pass filtered at `low_hz` (one pole).
    fn band_pass(&self, low_hz: f32, high_hz: f32) -> Vec<f32> {
        let [low, high] = [low_hz, high_hz].map(|hz| 1.0 - (-std::f32::consts::TAU * hz / self.rate_hz).exp());
        let mut poles = [self.history[0], self.history[0], 0.0];
        let sample = |&sample: &f32| {
            poles[0] += high * (sample - poles[0]);
            poles[1] += high * (poles[0] - poles[1]);
            poles[2] += low * (poles[1] - poles[2]);
            poles[1] - poles[2]
        };
        self.history.iter().map(sample).collect()
    }

    /// Refines an approximate period over as many periods as are similar.
    fn refine_period(&self, history: &[f32], approximate: f32) -> f32 {
        let (mut period, mut clarity) = (approximate, 0.0);
        for count in 1.. {
            let about = period * count as f32;
            // A peak further away belongs to another period.
            let near = whole(f64::from((0.2 * period).min(about * 0.01 + 2.0)));
            let first = whole(f64::from(about.round())) - near;
            if first + 2 * near + 1 >= self.lags {
                break;
            }
            let around: Vec<f32> =
                (first - 1..=first + 2 * near + 1).map(|lag| self.weighted_similarity(history, lag)).collect();
            let best = (1..around.len() - 1).max_by(|&a, &b| around[a].total_cmp(&around[b])).unwrap_or(1);
            if around[best] < FIRST * clarity {
                break;
            }
            clarity = f32::max(clarity, around[best]);
            period = (first as f32 - 1.0 + peak_position(&around, best)) / count as f32;
        }
        period
    }

    /// The similarity at one lag. The window fades out at both ends, so that their phase in the period has no effect.
    fn weighted_similarity(&self, history: &[f32], lag: usize) -> f32 {
        let (mut products, mut squares) = (0.0, 0.0);
        for ((weight, now), later) in self.weights.iter().zip(history).zip(&history[lag..]) {
            products += weight * now * later;
            squares += weight * (now * now + later * later);
        }
        2.0 * products / squares.max(f32::MIN_POSITIVE)
    }

    /// For each lag, twice the sum of products divided by the sum of squares: 1 if the signal repeats exactly.
    fn similarity(&self, history: &[f32]) -> Vec<f32> {
        let window = self.window;
        let mut squares = 2.0 * dot(&history[..window], &history[..window]);
        let mut similarity = Vec::with_capacity(self.lags);
        for lag in 0..self.lags {
            let later = &history[lag..lag + window];
            similarity.push(2.0 * dot(&history[..window], later) / squares.max(f32::MIN_POSITIVE));
            squares += history[lag + window] * history[lag + window] - history[lag] * history[lag];
        }
        similarity
    }
}

/// The highest value between each rise above 0 and the next fall below it, without the peak at lag 0.
fn peaks(similarity: &[f32], shortest: usize) -> Vec<usize> {
    let mut peaks = Vec::new();
    let begin = similarity.iter().position(|&value| value <= 0.0).unwrap_or(similarity.len());
    let mut best: Option<usize> = None;
    for at in begin..similarity.len().saturating_sub(1) {
        if similarity[at] <= 0.0 {
            peaks.extend(best.take());
        } else if at >= shortest && best.is_none_or(|best| similarity[at] > similarity[best]) {
            best = Some(at);
        }
    }
    // The last value may be on a rising slope, whose peak is outside.
    peaks.extend(best.filter(|&at| similarity[at] > similarity[at + 1]));
    peaks
}

/// The position of the maximum of a parabola through three values.
fn peak_position(values: &[f32], at: usize) -> f32 {
    let (before, here, after) = (values[at - 1], values[at], values[at + 1]);
    let bend = before - 2.0 * here + after;
    let aside = if bend < 0.0 { 0.5 * (before - after) / bend } else { 0.0 };
    at as f32 + aside.clamp(-1.0, 1.0)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plucked string: higher overtones are weaker and decay faster.
    fn plucked(hz: f64, rate_hz: u32, seconds: f64) -> Vec<f32> {
        let sample = |n: usize| {
            let t = n as f64 / f64::from(rate_hz);
            let overtone = |k: i32| {
                let phase = std::f64::consts::TAU * hz * f64::from(k) * t;
                let strength =
                    (0.7 * f64::from(k)).sin().abs() / f64::from(k) * (-t * (1.0 + 0.5 * f64::from(k))).exp();
                if hz * f64::from(k) < 0.4 * f64::from(rate_hz) { strength * (phase + f64::from(k)).sin() } else { 0.0 }
            };
            to_f32(0.3 * (1..12).map(overtone).sum::<f64>())
        };
        (0..whole(seconds * f64::from(rate_hz))).map(sample).collect()
    }

    #[test]
    fn finds_every_note_of_a_guitar_within_a_cent() {
        for rate_hz in [44_100, 48_000, 96_000] {
            let mut tuner = Tuner::new(rate_hz);
            // E2 to E6, each with a different deviation.
            for midi in 40..=88_u8 {
                let cents = f64::from(i32::from(midi) * 37 % 80 - 40);
                let hz = 440.0 * 2.0_f64.powf((f64::from(midi) - 69.0 + cents / 100.0) / 12.0);
                tuner.listen(&plucked(hz, rate_hz, 0.3));
                let pitch = tuner.pitch().unwrap_or_else(|| panic!("no note found for {hz} Hz"));
                let name = (pitch.note, pitch.octave);
                assert_eq!(
                    name,
                    (NOTES[usize::from(midi % 12)], i32::from(midi / 12) - 1),
                    "{hz} Hz at {rate_hz} Hz: {pitch:?}"
                );
                assert!((f64::from(pitch.cents) - cents).abs() < 1.0, "{hz} Hz at {rate_hz} Hz, {cents}: {pitch:?}");
            }
        }
    }

    /// A new string plucked near the bridge: its partials are louder than the fundamental, and sharp.
    #[test]
    fn finds_stiff_strings_without_a_sharp_error() {
        for (hz, name, most_cents) in [(82.407, ("E", 2), 4.0), (41.203, ("E", 1), 8.0)] {
            let sample = |n: usize| {
                let t = n as f64 / 48_000.0;
                let partial = |k: i32| {
                    let k = f64::from(k);
                    let sharp = ((1.0 + 1.2e-4 * k * k) / (1.0 + 1.2e-4)).sqrt();
                    let strength = (0.06 * std::f64::consts::PI * k).sin().abs() * (-0.1 * k).exp();
                    strength * (std::f64::consts::TAU * hz * k * sharp * t).sin()
                };
                to_f32(0.03 * (1..40).map(partial).sum::<f64>())
            };
            let mut tuner = Tuner::new(48_000);
            tuner.listen(&(0..9600).map(sample).collect::<Vec<_>>());
            let pitch = tuner.pitch().unwrap();
            assert_eq!((pitch.note, pitch.octave), name);
            assert!(pitch.cents.abs() < most_cents, "{pitch:?}");
        }
    }

    #[test]
    fn finds_the_lowest_string_of_a_bass() {
        let mut tuner = Tuner::new(48_000);
        tuner.listen(&plucked(30.868, 48_000, 0.3));
        let pitch = tuner.pitch().unwrap();
        assert_eq!((pitch.note, pitch.octave, pitch.to_string().as_str()), ("B", 0, "B0"));
        assert!(pitch.cents.abs() < 3.0, "{pitch:?}");
    }

    #[test]
    fn finds_no_note_in_silence_or_noise() {
        let mut tuner = Tuner::new(48_000);
        assert_eq!(tuner.pitch(), None);
        let mut state = 1_u32;
        let noise: Vec<f32> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .take(20_000)
        .collect();
        tuner.listen(&noise);
        assert_eq!(tuner.pitch(), None);
    }
}
