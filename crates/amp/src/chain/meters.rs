//! What the audio thread tells of itself, without waiting: plain atomic values.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// Time of the means, s to 1/e.
const MEAN_S: f32 = 0.3;

/// Level of a signal, of full scale.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Level {
    /// Largest sample since it was last read.
    pub peak: f32,
    /// Root of the mean square of the last 0.3 s or so.
    pub rms: f32,
}

/// How the chain does.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Meters {
    /// Of the input, before any gain.
    pub input: Level,
    /// Of the louder side of the output.
    pub output: Level,
    /// Whether the gate lets the signal through; always, if it is off.
    pub gate_is_open: bool,
    /// Least gain of the limiter since it was last read, 0 to 1: 1 where it did nothing or is off.
    pub limiter_gain: f32,
    /// Samples of the input at full scale or above, since the beginning.
    pub input_clips: u64,
    /// Samples of the output of which a side is above full scale, since the beginning: none while the limiter is on.
    pub output_clips: u64,
    /// Samples of the input that were no finite number, or beyond all measure, and were played as silence.
    pub bad_input: u64,
    /// Samples that models, tone or gains made larger than 60 dB above full scale, and that were cut off there.
    pub overloads: u64,
    /// Which model made what is no number and is silent since.
    pub muted: [bool; 2],
}

#[derive(Debug, Default)]
struct Shared {
    peaks: [AtomicU32; 2],
    rms: [AtomicU32; 2],
    limiter: AtomicU32,
    counts: [AtomicU64; 4],
    flags: [AtomicBool; 3],
}

/// The other threads' side.
#[derive(Debug, Clone)]
pub struct Reading(Arc<Shared>);

/// The audio thread's side.
#[derive(Debug)]
pub struct Metering {
    shared: Arc<Shared>,
    keep: f32,
    squares: [f32; 2],
    /// In the order of [`Meters`].
    pub counts: [u64; 4],
}

pub fn meters(rate_hz: f32) -> (Metering, Reading) {
    let shared = Arc::new(Shared::default());
    shared.limiter.store(1.0_f32.to_bits(), Relaxed);
    let keep = (-1.0 / (rate_hz * MEAN_S)).exp();
    (Metering { shared: shared.clone(), keep, squares: [0.0; 2], counts: [0; 4] }, Reading(shared))
}

impl Metering {
    /// Signal 0 is the input, 1 the output. Samples are finite.
    pub fn level(&mut self, signal: usize, samples: &[f32]) {
        let mut peak = 0.0_f32;
        let mut square = self.squares[signal];
        for sample in samples {
            peak = peak.max(sample.abs());
            square = sample * sample + self.keep * (square - sample * sample);
        }
        self.squares[signal] = square;
        // The bits of positive numbers are in the order of their values.
        self.shared.peaks[signal].fetch_max(peak.to_bits(), Relaxed);
        self.shared.rms[signal].store(square.sqrt().to_bits(), Relaxed);
    }

    pub fn rest(&self, gate_is_open: bool, limiter_gain: f32, muted: [bool; 2]) {
        self.shared.limiter.fetch_min(limiter_gain.to_bits(), Relaxed);
        let flags = [gate_is_open, muted[0], muted[1]];
        self.shared.flags.iter().zip(flags).for_each(|(shared, flag)| shared.store(flag, Relaxed));
        self.shared.counts.iter().zip(self.counts).for_each(|(shared, count)| shared.store(count, Relaxed));
    }
}

impl Reading {
    pub fn read(&self) -> Meters {
        let Shared { peaks, rms, limiter, counts, flags } = &*self.0;
        let level = |signal: usize| Level {
            peak: f32::from_bits(peaks[signal].swap(0, Relaxed)),
            rms: f32::from_bits(rms[signal].load(Relaxed)),
        };
        let [input_clips, output_clips, bad_input, overloads] = counts.each_ref().map(|count| count.load(Relaxed));
        let [gate_is_open, first, second] = flags.each_ref().map(|flag| flag.load(Relaxed));
        Meters {
            input: level(0),
            output: level(1),
            gate_is_open,
            limiter_gain: f32::from_bits(limiter.swap(1.0_f32.to_bits(), Relaxed)),
            input_clips,
            output_clips,
            bad_input,
            overloads,
            muted: [first, second],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_stay_until_they_are_read() {
        let (mut metering, reading) = meters(48_000.0);
        metering.level(0, &[0.5, -0.75, 0.1]);
        metering.level(0, &[0.1; 48_000]);
        metering.rest(true, 0.5, [false, true]);
        let meters = reading.read();
        assert_eq!((meters.input.peak, meters.limiter_gain, meters.muted), (0.75, 0.5, [false, true]));
        assert!((meters.input.rms - 0.1).abs() < 0.01);
        assert_eq!((reading.read().input.peak, reading.read().limiter_gain), (0.0, 1.0));
    }
}
