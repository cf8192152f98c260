//! Which note is played, and by how much it is out of tune.
//!
//! The period is where the signal is most like itself: P. McLeod and G. Wyvill, "A smarter way to find pitch" (ICMC 2005).
//! Found once, it is measured over as many periods as there are, which divides the error by their number, and without the high
//! partials: those of a stiff string are sharp (H. Fletcher, "Normal vibration frequencies of a stiff piano string", JASA 36,
//! 1964), and make the whole signal less like itself a period later.

use std::fmt;

/// Lowest note, Hz: the low B of a bass with five strings is 30.9.
const LOWEST_HZ: f32 = 29.0;
/// Highest note, Hz: the 24th fret of the highest string is 1319.
const HIGHEST_HZ: f32 = 1500.0;
/// What is compared, s.
const WINDOW_S: f32 = 0.06;
/// Below this level (RMS, -66 dB) nothing is played.
const SILENCE: f32 = 5e-4;
/// How alike a signal must be to itself a period later, 0 to 1, to be a note.
const CLEAR: f32 = 0.85;
/// The first likeness of this share of the greatest is the period; greater ones behind it are several periods.
const FIRST: f32 = 0.93;
/// Rates above are brought below it: more takes time, and tells nothing.
const MAX_RATE_HZ: u32 = 50_000;
/// Below this a string that is not clear is looked for once more without its high partials, Hz.
const LOW_HZ: f32 = 150.0;
/// Share of the power that is then left at least: less is hum beside a higher note.
const LOW_SHARE: f32 = 0.1;

/// A note. It is shown in scientific pitch notation: `E2` is the lowest string of a guitar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pitch {
    /// Frequency, Hz.
    pub hz: f32,
    /// Its name without the octave, as `"E"` or `"F#"`.
    pub note: &'static str,
    /// Octave in scientific pitch notation: A4 has 440 Hz, and an octave begins at its C.
    pub octave: i32,
    /// Hundredths of a semitone above the note, -50 to 50, for A4 of 440 Hz.
    pub cents: f32,
    /// How alike the signal is to itself a period later, 0 to 1.
    pub clarity: f32,
}

const NOTES: [&str; 12] = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];

impl Pitch {
    fn new(hz: f32, clarity: f32) -> Self {
        let semitones = 69.0 + 12.0 * (f64::from(hz) / 440.0).log2();
        let nearest = semitones.round();
        Self {
            hz,
            note: NOTES[(nearest as i32).rem_euclid(12) as usize],
            octave: (nearest as i32).div_euclid(12) - 1,
            cents: ((semitones - nearest) * 100.0) as f32,
            clarity,
        }
    }
}

impl fmt::Display for Pitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.note, self.octave)
    }
}

/// Listens to a signal.
#[derive(Debug)]
pub struct Tuner {
    rate_hz: f32,
    /// So many samples become one.
    together: usize,
    sum: (f32, usize),
    /// The last of the signal.
    heard: Vec<f32>,
    window: usize,
    lags: usize,
    /// Of each sample of the window: a raised cosine.
    weights: Vec<f32>,
}

impl Tuner {
    /// For a signal of this sample rate.
    #[must_use]
    pub fn new(rate_hz: u32) -> Self {
        let together = rate_hz.div_ceil(MAX_RATE_HZ).max(1) as usize;
        let rate_hz = rate_hz as f32 / together as f32;
        let (window, lags) = ((rate_hz * WINDOW_S) as usize, (rate_hz / LOWEST_HZ) as usize + 2);
        let weight = |at: usize| 0.5 - 0.5 * (std::f32::consts::TAU * (at as f32 + 0.5) / window as f32).cos();
        let weights = (0..window).map(weight).collect();
        Self { rate_hz, together, sum: (0.0, 0), heard: vec![0.0; window + lags], window, lags, weights }
    }

    /// Hears what comes next.
    pub fn listen(&mut self, samples: &[f32]) {
        let before = self.heard.len();
        for sample in samples {
            self.sum = (self.sum.0 + sample, self.sum.1 + 1);
            if self.sum.1 == self.together {
                self.heard.push(self.sum.0 / self.together as f32);
                self.sum = (0.0, 0);
            }
        }
        self.heard.drain(..self.heard.len() - before);
    }

    /// The note that is played, if it is one. Takes a few milliseconds.
    #[must_use]
    pub fn pitch(&self) -> Option<Pitch> {
        if self.window == 0 {
            return None;
        }
        let power = dot(&self.heard, &self.heard) / self.heard.len() as f32;
        if power.sqrt() < SILENCE {
            return None;
        }
        let (rough, clarity) = self.found(&self.heard).or_else(|| self.found_low(power))?;
        let hz = self.rate_hz / rough;
        let note = self.between(if hz > LOW_HZ { 0.5 * hz } else { 0.0 }, 2.0 * hz);
        Some(Pitch::new(self.rate_hz / self.measured(&note, rough), clarity))
    }

    /// The period of a signal in samples, roughly, and how clear it is.
    fn found(&self, signal: &[f32]) -> Option<(f32, f32)> {
        let likeness = self.likeness(signal);
        let peaks = peaks(&likeness, (self.rate_hz / HIGHEST_HZ) as usize);
        let greatest = peaks.iter().map(|&at| likeness[at]).fold(0.0, f32::max);
        let first = peaks.into_iter().find(|&at| likeness[at] >= FIRST * greatest && likeness[at] >= CLEAR)?;
        Some((top(&likeness, first), likeness[first].min(1.0)))
    }

    /// The same of a low string among loud partials, in a signal of this power.
    fn found_low(&self, power: f32) -> Option<(f32, f32)> {
        let low = self.between(0.0, 2.0 * LOW_HZ);
        let found = self.found(&low).filter(|(period, _)| self.rate_hz / period < LOW_HZ);
        found.filter(|_| dot(&low, &low) / low.len() as f32 > LOW_SHARE * power)
    }

    /// What was heard, less of what is above a frequency (two poles) and below another one (one pole).
    fn between(&self, low_hz: f32, high_hz: f32) -> Vec<f32> {
        let [low, high] = [low_hz, high_hz].map(|hz| 1.0 - (-std::f32::consts::TAU * hz / self.rate_hz).exp());
        let mut poles = [self.heard[0], self.heard[0], 0.0];
        let sample = |&sample: &f32| {
            poles[0] += high * (sample - poles[0]);
            poles[1] += high * (poles[0] - poles[1]);
            poles[2] += low * (poles[1] - poles[2]);
            poles[1] - poles[2]
        };
        self.heard.iter().map(sample).collect()
    }

    /// The period that is known roughly, measured over as many as are alike.
    fn measured(&self, heard: &[f32], rough: f32) -> f32 {
        let (mut period, mut clarity) = (rough, 0.0);
        for count in 1.. {
            let about = period * count as f32;
            // So far the place is known; a peak further away is another's.
            let near = (0.2 * period).min(about * 0.01 + 2.0) as usize;
            let first = about.round() as usize - near;
            if first + 2 * near + 1 >= self.lags {
                break;
            }
            let around: Vec<f32> =
                (first - 1..=first + 2 * near + 1).map(|lag| self.weighted_likeness(heard, lag)).collect();
            let best = (1..around.len() - 1).max_by(|&a, &b| around[a].total_cmp(&around[b])).unwrap_or(1);
            if around[best] < FIRST * clarity {
                break;
            }
            clarity = f32::max(clarity, around[best]);
            period = (first as f32 - 1.0 + top(&around, best)) / count as f32;
        }
        period
    }

    /// The likeness at one lag, with less weight at both ends, so that it does not matter where in a period they are.
    fn weighted_likeness(&self, heard: &[f32], lag: usize) -> f32 {
        let (mut products, mut squares) = (0.0, 0.0);
        for ((weight, now), later) in self.weights.iter().zip(heard).zip(&heard[lag..]) {
            products += weight * now * later;
            squares += weight * (now * now + later * later);
        }
        2.0 * products / squares.max(f32::MIN_POSITIVE)
    }

    /// For each lag, twice the sum of products by the sum of squares: 1 where the signal is the same again.
    fn likeness(&self, heard: &[f32]) -> Vec<f32> {
        let window = self.window;
        let mut squares = 2.0 * dot(&heard[..window], &heard[..window]);
        let mut likeness = Vec::with_capacity(self.lags);
        for lag in 0..self.lags {
            let later = &heard[lag..lag + window];
            likeness.push(2.0 * dot(&heard[..window], later) / squares.max(f32::MIN_POSITIVE));
            squares += heard[lag + window] * heard[lag + window] - heard[lag] * heard[lag];
        }
        likeness
    }
}

/// The largest value between each rise above 0 and the next fall below it; the first hill, at lag 0, is none.
fn peaks(likeness: &[f32], shortest: usize) -> Vec<usize> {
    let mut peaks = Vec::new();
    let begin = likeness.iter().position(|&value| value <= 0.0).unwrap_or(likeness.len());
    let mut best: Option<usize> = None;
    for at in begin..likeness.len().saturating_sub(1) {
        if likeness[at] <= 0.0 {
            peaks.extend(best.take());
        } else if at >= shortest && best.is_none_or(|best| likeness[at] > likeness[best]) {
            best = Some(at);
        }
    }
    // A hill that goes on beyond the end has its top there or behind.
    peaks.extend(best.filter(|&at| likeness[at] > likeness[at + 1]));
    peaks
}

/// Where a parabola through the three values has its top.
fn top(values: &[f32], at: usize) -> f32 {
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

    /// A string: overtones that are weaker the higher they are, and die away the sooner.
    fn plucked(hz: f64, rate_hz: u32, seconds: f64) -> Vec<f32> {
        let sample = |n: usize| {
            let t = n as f64 / f64::from(rate_hz);
            let overtone = |k: i32| {
                let phase = std::f64::consts::TAU * hz * f64::from(k) * t;
                let strength =
                    (0.7 * f64::from(k)).sin().abs() / f64::from(k) * (-t * (1.0 + 0.5 * f64::from(k))).exp();
                if hz * f64::from(k) < 0.4 * f64::from(rate_hz) { strength * (phase + f64::from(k)).sin() } else { 0.0 }
            };
            (0.3 * (1..12).map(overtone).sum::<f64>()) as f32
        };
        (0..(seconds * f64::from(rate_hz)) as usize).map(sample).collect()
    }

    #[test]
    fn every_note_of_a_guitar_is_found_within_a_cent() {
        for rate_hz in [44_100, 48_000, 96_000] {
            let mut tuner = Tuner::new(rate_hz);
            // E2 to E6, each out of tune by another amount.
            for midi in 40..=88 {
                let cents = f64::from(midi * 37 % 80 - 40);
                let hz = 440.0 * 2.0_f64.powf((f64::from(midi) - 69.0 + cents / 100.0) / 12.0);
                tuner.listen(&plucked(hz, rate_hz, 0.3));
                let pitch = tuner.pitch().unwrap_or_else(|| panic!("{hz} Hz is not heard"));
                let name = (pitch.note, pitch.octave);
                assert_eq!(name, (NOTES[midi as usize % 12], midi / 12 - 1), "{hz} Hz at {rate_hz} Hz: {pitch:?}");
                assert!((f64::from(pitch.cents) - cents).abs() < 1.0, "{hz} Hz at {rate_hz} Hz, {cents}: {pitch:?}");
            }
        }
    }

    /// A new string near the bridge: its partials are louder than its fundamental, and sharp.
    #[test]
    fn stiff_strings_are_heard_at_once_and_not_sharp() {
        for (hz, name, most_cents) in [(82.407, ("E", 2), 4.0), (41.203, ("E", 1), 8.0)] {
            let sample = |n: usize| {
                let t = n as f64 / 48_000.0;
                let partial = |k: i32| {
                    let k = f64::from(k);
                    let sharp = ((1.0 + 1.2e-4 * k * k) / (1.0 + 1.2e-4)).sqrt();
                    let strength = (0.06 * std::f64::consts::PI * k).sin().abs() * (-0.1 * k).exp();
                    strength * (std::f64::consts::TAU * hz * k * sharp * t).sin()
                };
                (0.03 * (1..40).map(partial).sum::<f64>()) as f32
            };
            let mut tuner = Tuner::new(48_000);
            tuner.listen(&(0..9600).map(sample).collect::<Vec<_>>());
            let pitch = tuner.pitch().unwrap();
            assert_eq!((pitch.note, pitch.octave), name);
            assert!(pitch.cents.abs() < most_cents, "{pitch:?}");
        }
    }

    #[test]
    fn the_low_string_of_a_bass_is_heard_too() {
        let mut tuner = Tuner::new(48_000);
        tuner.listen(&plucked(30.868, 48_000, 0.3));
        let pitch = tuner.pitch().unwrap();
        assert_eq!((pitch.note, pitch.octave, pitch.to_string().as_str()), ("B", 0, "B0"));
        assert!(pitch.cents.abs() < 3.0, "{pitch:?}");
    }

    #[test]
    fn silence_and_noise_are_no_note() {
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
