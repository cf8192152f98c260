//! A model in a chain: at the chain's sample rate, with matched levels.

use thiserror::Error;

use super::{
    delay::Delay,
    parameter::Parameter,
    settings::{OutputLevel, Settings},
    smooth::Smooth,
};
use crate::{
    Model, ModelFile,
    configure::{self, ConfigureError},
    convert::{db_to_gain, to_f32},
    file::Options,
    resample::{RateError, ResampledInsert},
    simd::flush_denormals,
};

/// Target loudness of models, dB of full scale (RMS, for the trainer's test signal); the same as in Neural Amp
/// Modeler's plug-in.
pub const LOUDNESS_DB: f32 = -18.0;

/// Levels in a model's file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Levels {
    /// Loudness of the output for the trainer's test signal, dB of full scale (RMS).
    pub loudness_db: Option<f32>,
    /// Level of a sine that reaches full scale at the input, dBu.
    pub input_dbu: Option<f32>,
    /// Level of a sine that reaches full scale at the output, dBu.
    pub output_dbu: Option<f32>,
}

/// Why a model cannot be played in a chain.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AmplifierError {
    /// The model cannot be built as requested.
    #[error(transparent)]
    Model(#[from] ConfigureError),
    /// The model's sample rate cannot be converted to that of the chain.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The model's sample rate is not a whole number, so it cannot be converted.
    #[error("cannot resample the model: its sample rate of {0} Hz is not a whole number; train it at 48000 Hz")]
    OddRate(String),
}

/// A model in a chain.
#[derive(Debug)]
pub struct Amplifier {
    model: Model,
    /// Converts the sample rate, if that of the model differs.
    insert: Option<ResampledInsert>,
    /// Delays the output to match the other model.
    alignment: Delay,
    levels: Levels,
    input_gain: Smooth,
    output_gain: Smooth,
}

impl Amplifier {
    /// The model of a file, prewarmed and with its knobs turned, for a chain of this sample rate. A model with another
    /// rate is resampled, which adds a delay: see [`Amplifier::delay`].
    ///
    /// # Errors
    /// [`AmplifierError`] if the model cannot be built as requested, or its rate cannot be converted.
    pub fn new(file: &ModelFile, options: Options, knobs: &[f32], rate_hz: u32) -> Result<Self, AmplifierError> {
        let mut model = configure::model(file, options, knobs)?;
        let own = file.sample_rate;
        let mut insert = match own == f64::from(rate_hz) {
            true => None,
            false => {
                let own_hz = file.whole_rate_hz().ok_or_else(|| AmplifierError::OddRate(own.to_string()))?;
                Some(ResampledInsert::new(rate_hz, own_hz)?)
            }
        };
        if let Some(insert) = &mut insert {
            let _flushed = flush_denormals();
            insert.prewarm(|input, output| model.process(input, output));
        }
        let levels = Levels {
            loudness_db: file.about.loudness.map(to_f32),
            input_dbu: file.about.input_level_dbu.map(to_f32),
            output_dbu: file.about.output_level_dbu.map(to_f32),
        };
        let gain = || Smooth::new(1.0, rate_hz as f32);
        let alignment = Delay::new(rate_hz as f32);
        Ok(Self { model, insert, alignment, levels, input_gain: gain(), output_gain: gain() })
    }

    /// Delay of the resampling, samples: 0 at the model's own rate.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.insert.as_ref().map_or(0, ResampledInsert::delay)
    }

    /// Delays the output so that the total delay is `late`, immediately or with a fade; a longer delay is left as it
    /// is.
    pub(super) fn align_latency(&mut self, late: usize, at_once: bool) {
        self.alignment.set(late.saturating_sub(self.delay()), at_once);
    }

    /// Levels in the model's file.
    #[must_use]
    pub fn levels(&self) -> Levels {
        self.levels
    }

    /// True if an output of the model was NaN or infinite.
    #[must_use]
    pub fn is_muted(&self) -> bool {
        self.model.is_muted()
    }

    /// Processes at most [`ResampledInsert::MAX_FRAMES`] samples.
    pub(super) fn process(&mut self, input: &[f32], output: &mut [f32]) {
        let mut scaled = [0.0; ResampledInsert::MAX_FRAMES];
        let scaled = &mut scaled[..input.len()];
        scaled.copy_from_slice(input);
        self.input_gain.apply([scaled]);
        match &mut self.insert {
            None => self.model.process(scaled, output),
            Some(insert) => insert.process(scaled, output, |input, output| self.model.process(input, output)),
        }
        self.alignment.process(output);
        self.output_gain.apply([output]);
    }

    /// Sets the gains before and after the model, dB, immediately or with ramps.
    pub(super) fn set_gains(&mut self, (before, after): (f32, f32), at_once: bool) {
        for (gain, db) in [(&mut self.input_gain, before), (&mut self.output_gain, after)] {
            gain.change_to(db_to_gain(db), at_once);
        }
    }
}

/// Total delay of both models, samples.
pub(super) fn delay_of([first, second]: [usize; 2], settings: &Settings) -> usize {
    match settings.is_parallel() {
        true => first.max(second),
        false => first + second,
    }
}

/// The position of a model in the signal path.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesPosition {
    /// Levels of the model that supplies the input, if any.
    pub preceded_by: Option<Levels>,
    /// True if the output is the input of another model.
    pub feeds_next: bool,
}

/// Gains before and after a model, dB. For a calibrated input, a gain of Z - X converts a full scale of Z dBu to one of
/// X dBu; likewise at the output.
pub(super) fn gains_db(levels: Levels, settings: &Settings, position: SeriesPosition) -> (f32, f32) {
    let from = match position.preceded_by {
        None => Some(settings.get(Parameter::InputFullScale)),
        Some(other) => other.output_dbu,
    };
    let calibrated = from.zip(levels.input_dbu).filter(|_| settings.is_on(Parameter::InputCalibrated));
    let before = calibrated.map_or(0.0, |(from, own)| from - own);
    let after = match settings.output_level() {
        _ if position.feeds_next => None,
        OutputLevel::Raw => None,
        OutputLevel::Loudness => levels.loudness_db.map(|loudness| LOUDNESS_DB - loudness),
        OutputLevel::Calibrated => levels.output_dbu.map(|own| own - settings.get(Parameter::OutputFullScale)),
    };
    (before, after.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_follow_from_the_levels() {
        let levels = Levels { loudness_db: Some(-25.0), input_dbu: Some(18.0), output_dbu: Some(15.0) };
        let mut settings = Settings::default();
        let alone = SeriesPosition { preceded_by: None, feeds_next: false };
        assert_eq!(gains_db(levels, &settings, alone), (0.0, 7.0));
        settings.set(Parameter::InputCalibrated, 1.0).unwrap();
        settings.set(Parameter::OutputLevel, 2.0).unwrap();
        assert_eq!(gains_db(levels, &settings, alone), (-6.0, 3.0));
        assert_eq!(gains_db(Levels::default(), &settings, alone), (0.0, 0.0));
        let pedal = SeriesPosition { preceded_by: None, feeds_next: true };
        assert_eq!(gains_db(levels, &settings, pedal), (-6.0, 0.0));
        let second = SeriesPosition { preceded_by: Some(levels), feeds_next: false };
        assert_eq!(gains_db(levels, &settings, second), (-3.0, 3.0));
    }
}
