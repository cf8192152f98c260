//! What the audio thread tells of itself, without waiting: plain atomic values.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// Time of the means, s to 1/e.
const MEAN_S: f32 = 0.3;

/// Level of a signal, of full scale.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SignalLevel {
    /// Largest sample since it was last read.
    pub peak: f32,
    /// Root of the mean square of the last 0.3 s or so.
    pub rms: f32,
}

/// How the chain does.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Meters {
    /// Of the input, before any gain.
    pub input: SignalLevel,
    /// Of the louder side of the output.
    pub output: SignalLevel,
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

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    Input,
    Output,
}

/// Samples since the beginning, as in [`Meters`].
#[derive(Debug, Default)]
pub struct Counts {
    pub input_clips: u64,
    pub output_clips: u64,
    pub bad_input: u64,
    pub overloads: u64,
}

/// What both sides share. Floating-point numbers are stored as their bits.
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

/// The other threads' side.
#[derive(Debug, Clone)]
pub struct Reading(Arc<Shared>);

/// The audio thread's side.
#[derive(Debug)]
pub struct Metering {
    shared: Arc<Shared>,
    keep: f32,
    /// Mean squares of the last 0.3 s or so.
    input_square: f32,
    output_square: f32,
    pub counts: Counts,
}

pub fn meters(rate_hz: f32) -> (Metering, Reading) {
    let shared = Arc::new(Shared::default());
    shared.limiter_gain.store(1.0_f32.to_bits(), Relaxed);
    let keep = (-1.0 / (rate_hz * MEAN_S)).exp();
    let metering =
        Metering { shared: shared.clone(), keep, input_square: 0.0, output_square: 0.0, counts: Counts::default() };
    (metering, Reading(shared))
}

impl Metering {
    /// Brings the level of a signal on by these samples, which are finite.
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
        // The bits of positive numbers are in the order of their values.
        shared.peak.fetch_max(peak.to_bits(), Relaxed);
        shared.rms.store(square.sqrt().to_bits(), Relaxed);
    }

    /// Tells the other threads all but the levels.
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

impl Reading {
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
    /// The peak begins anew.
    fn read(&self) -> SignalLevel {
        SignalLevel { peak: f32::from_bits(self.peak.swap(0, Relaxed)), rms: f32::from_bits(self.rms.load(Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_stay_until_they_are_read() {
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
