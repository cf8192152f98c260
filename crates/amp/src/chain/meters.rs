//! Meters: atomic values that the audio thread writes without waiting and other threads read.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// Time constant of the means, s to 1/e.
const MEAN_S: f32 = 0.3;

/// Level of a signal; full scale is 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SignalLevel {
    /// Largest absolute sample since the last reading.
    pub peak: f32,
    /// Root mean square over about the last 0.3 s.
    pub rms: f32,
}

/// The meters of a chain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Meters {
    /// Level of the input, before any gain.
    pub input: SignalLevel,
    /// Level of the louder side of the output.
    pub output: SignalLevel,
    /// True if the gate passes the signal or is off.
    pub gate_is_open: bool,
    /// Minimum gain of the limiter since the last reading, 0 to 1: 1 if it did not limit or is off.
    pub limiter_gain: f32,
    /// Number of input samples at or above full scale, since the start.
    pub input_clips: u64,
    /// Number of output samples above full scale on either side, since the start; 0 while the limiter is on.
    pub output_clips: u64,
    /// Number of input samples that were NaN or more than 60 dB above full scale, and were played as silence.
    pub bad_input: u64,
    /// Number of samples that exceeded 60 dB above full scale after models, tone or gains, and were clipped there.
    pub overloads: u64,
    /// Models that are muted because an output was NaN or infinite.
    pub muted: [bool; 2],
}

/// A measured signal.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    Input,
    Output,
}

/// Counts of samples since the start, as in [`Meters`].
#[derive(Debug, Default)]
pub struct Counts {
    pub input_clips: u64,
    pub output_clips: u64,
    pub bad_input: u64,
    pub overloads: u64,
}

/// The values that both sides share. Floating-point numbers are stored as their bits.
#[derive(Debug, Default)]
struct Shared {
    input: SharedLevel,
    output: SharedLevel,
    gate_is_open: AtomicBool,
    limiter_gain: AtomicU32,
    input_clips: AtomicU64,
    output_clips: AtomicU64,
    bad_input: AtomicU64,
    overloads: AtomicU64,
    muted: [AtomicBool; 2],
}

#[derive(Debug, Default)]
struct SharedLevel {
    peak: AtomicU32,
    rms: AtomicU32,
}

/// The reading side.
#[derive(Debug, Clone)]
pub struct MeterReader(Arc<Shared>);

/// The writing side, which belongs to the audio thread.
#[derive(Debug)]
pub struct MeterWriter {
    shared: Arc<Shared>,
    keep: f32,
    /// Mean squares over about the last 0.3 s.
    input_square: f32,
    output_square: f32,
    pub counts: Counts,
}

pub fn meters(rate_hz: f32) -> (MeterWriter, MeterReader) {
    let shared = Arc::new(Shared::default());
    shared.limiter_gain.store(1.0_f32.to_bits(), Relaxed);
    let keep = (-1.0 / (rate_hz * MEAN_S)).exp();
    let metering =
        MeterWriter { shared: shared.clone(), keep, input_square: 0.0, output_square: 0.0, counts: Counts::default() };
    (metering, MeterReader(shared))
}

impl MeterWriter {
    /// Updates the level of a signal with these samples, which must be finite.
    pub fn measure(&mut self, signal: Signal, samples: &[f32]) {
        let (mean_square, shared) = match signal {
            Signal::Input => (&mut self.input_square, &self.shared.input),
            Signal::Output => (&mut self.output_square, &self.shared.output),
        };
        let mut peak = 0.0_f32;
        let mut square = *mean_square;
        for sample in samples {
            peak = peak.max(sample.abs());
            square = sample * sample + self.keep * (square - sample * sample);
        }
        *mean_square = square;
        // The bits of positive numbers are ordered like their values.
        shared.peak.fetch_max(peak.to_bits(), Relaxed);
        shared.rms.store(square.sqrt().to_bits(), Relaxed);
    }

    /// Publishes everything but the levels.
    pub fn publish(&self, gate_is_open: bool, limiter_gain: f32, muted: [bool; 2]) {
        let (shared, counts) = (&self.shared, &self.counts);
        shared.gate_is_open.store(gate_is_open, Relaxed);
        shared.limiter_gain.fetch_min(limiter_gain.to_bits(), Relaxed);
        shared.input_clips.store(counts.input_clips, Relaxed);
        shared.output_clips.store(counts.output_clips, Relaxed);
        shared.bad_input.store(counts.bad_input, Relaxed);
        shared.overloads.store(counts.overloads, Relaxed);
        shared.muted.iter().zip(muted).for_each(|(shared, is_muted)| shared.store(is_muted, Relaxed));
    }
}

impl MeterReader {
    pub fn read(&self) -> Meters {
        let shared = &self.0;
        Meters {
            input: shared.input.read(),
            output: shared.output.read(),
            gate_is_open: shared.gate_is_open.load(Relaxed),
            limiter_gain: f32::from_bits(shared.limiter_gain.swap(1.0_f32.to_bits(), Relaxed)),
            input_clips: shared.input_clips.load(Relaxed),
            output_clips: shared.output_clips.load(Relaxed),
            bad_input: shared.bad_input.load(Relaxed),
            overloads: shared.overloads.load(Relaxed),
            muted: shared.muted.each_ref().map(|is_muted| is_muted.load(Relaxed)),
        }
    }
}

impl SharedLevel {
    /// Reads the level and restarts its peak.
    fn read(&self) -> SignalLevel {
        SignalLevel { peak: f32::from_bits(self.peak.swap(0, Relaxed)), rms: f32::from_bits(self.rms.load(Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_kept_until_they_are_read() {
        let (mut metering, reading) = meters(48_000.0);
        metering.measure(Signal::Input, &[0.5, -0.75, 0.1]);
        metering.measure(Signal::Input, &[0.1; 48_000]);
        metering.publish(true, 0.5, [false, true]);
        let meters = reading.read();
        assert_eq!((meters.input.peak, meters.limiter_gain, meters.muted), (0.75, 0.5, [false, true]));
        assert!((meters.input.rms - 0.1).abs() < 0.01);
        assert_eq!((reading.read().input.peak, reading.read().limiter_gain), (0.0, 1.0));
    }
}
