//! The signal that is played: a synthetic guitar.

/// Length of the signal before it repeats, s.
const SECONDS: u32 = 2;
/// Open strings of a guitar, Hz: E2 A2 D3 G3 B3 E4.
const STRINGS_HZ: [f32; 6] = [82.41, 110.0, 146.83, 196.0, 246.94, 329.63];
/// The largest sample, as of a hot pickup on an instrument input.
const PEAK: f32 = 0.5;
/// Part of a string's level that remains after one round of its delay line.
const DECAY: f32 = 0.996;

/// Returns plucked strings, one after the other, at `rate_hz`: a whole number of periods of `frames`, so that it
/// repeats without a seam within a period. The result is the same at each call. Strings keep sounding while others are
/// plucked, so that no gate closes and no value becomes denormal.
///
/// Each string is a delay line with a low pass in its loop: Karplus and Strong, "Digital Synthesis of Plucked-String
/// and Drum Timbres", Computer Music Journal 7/2 (1983).
#[must_use]
pub fn guitar(rate_hz: u32, frames: u32) -> Box<[f32]> {
    let samples = (rate_hz * SECONDS).next_multiple_of(frames.max(1)) as usize;
    let mut random = 0x9E37_79B9_u32;
    let mut mix = vec![0.0; samples];
    for (string, hz) in STRINGS_HZ.into_iter().enumerate() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the sample rate")]
        let length = (rate_hz as f32 / hz).max(2.0) as usize;
        let noise = |_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random as f32 / u32::MAX as f32 - 0.5
        };
        let mut line: Vec<f32> = (0..length).map(noise).collect();
        let plucked = samples * string / STRINGS_HZ.len();
        for n in 0..samples {
            let (at, next) = (n % length, (n + 1) % length);
            // Wraps around: a string keeps sounding in the next repetition.
            mix[(plucked + n) % samples] += line[at];
            line[at] = DECAY * f32::midpoint(line[at], line[next]);
        }
    }
    let peak = mix.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    mix.iter().map(|sample| sample / peak * PEAK).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_whole_periods_without_quiet_parts() {
        for (rate_hz, frames) in [(48_000, 64), (44_100, 48), (96_000, 1024), (192_000, 16)] {
            let signal = guitar(rate_hz, frames);
            assert!(signal.len().is_multiple_of(frames as usize) && signal.len() >= 2 * rate_hz as usize);
            assert!(signal.iter().all(|sample| sample.is_finite() && sample.abs() <= PEAK));
            // Gates close at -70 dB.
            let loudest = |window: &[f32]| window.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
            let quietest = signal.chunks(rate_hz as usize / 50).map(loudest).fold(1.0, f32::min);
            assert!(quietest > 3e-3, "{quietest} at {rate_hz} Hz");
        }
        assert_eq!(guitar(48_000, 64), guitar(48_000, 64));
    }
}
