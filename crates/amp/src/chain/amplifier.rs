//! A model as the chain plays it: at the chain's rate, with levels brought to one another.

use thiserror::Error;

use super::{
    delay::Delay,
    parameter::Parameter,
    settings::{OutputLevel, Settings},
    smooth::Smooth,
};
use crate::{
    Model, ModelFile,
    choice::{self, ChoiceError},
    decibels::db_to_gain,
    file::Options,
    resample::{RateError, ResampledInsert},
    simd::flush_denormals,
};

/// What models are brought to by their loudness, dB of full scale (RMS, on the trainer's own signal): what Neural Amp
/// Modeler's plug-in takes, too.
pub const LOUDNESS_DB: f32 = -18.0;

/// Levels that a model's file tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Levels {
    /// Loudness of its output on the trainer's own signal, dB of full scale (RMS).
    pub loudness_db: Option<f32>,
    /// Level of a sine that reaches full scale at its input, dBu.
    pub input_dbu: Option<f32>,
    /// Level of a sine that reaches full scale at its output, dBu.
    pub output_dbu: Option<f32>,
}

/// Why a model cannot be played in a chain.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AmplifierError {
    /// The model itself cannot, or not as it was chosen.
    #[error(transparent)]
    Model(#[from] ChoiceError),
    /// Its rate and the chain's cannot be brought together.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// Its rate is no whole number.
    #[error("the model's sample rate is {0} Hz, and only whole numbers can be resampled: train it at 48000 Hz")]
    OddRate(String),
}

/// A model in a chain.
#[derive(Debug)]
pub struct Amplifier {
    model: Model,
    /// Where its rate is another than the chain's.
    insert: Option<ResampledInsert>,
    /// Where it waits for another to keep step.
    alignment: Delay,
    levels: Levels,
    input_gain: Smooth,
    output_gain: Smooth,
}

impl Amplifier {
    /// The model of a file, settled and with its knobs turned, for a chain of this rate. Where the model was made for another, it
    /// is resampled there and back, which delays it: see [`Amplifier::delay`].
    ///
    /// # Errors
    /// [`AmplifierError`]: the model cannot be had as it was chosen, or its rate cannot be brought to the chain's.
    pub fn new(file: &ModelFile, options: Options, knobs: &[f32], rate_hz: u32) -> Result<Self, AmplifierError> {
        let mut model = choice::model(file, options, knobs)?;
        let own = file.sample_rate;
        let mut insert = match own == f64::from(rate_hz) {
            true => None,
            false if own.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&own) => {
                return Err(AmplifierError::OddRate(own.to_string()));
            }
            false => Some(ResampledInsert::new(rate_hz, own as u32)?),
        };
        if let Some(insert) = &mut insert {
            let _flushed = flush_denormals();
            insert.prewarm(|input, output| model.process(input, output));
        }
        let narrow = |level: Option<f64>| level.map(|level| level as f32);
        let levels = Levels {
            loudness_db: narrow(file.about.loudness),
            input_dbu: narrow(file.about.input_level_dbu),
            output_dbu: narrow(file.about.output_level_dbu),
        };
        let gain = || Smooth::new(1.0, rate_hz as f32);
        let alignment = Delay::new(rate_hz as f32);
        Ok(Self { model, insert, alignment, levels, input_gain: gain(), output_gain: gain() })
    }

    /// Samples by which it is late by itself: 0 at its own rate.
    #[must_use]
    pub fn delay(&self) -> usize {
        self.insert.as_ref().map_or(0, ResampledInsert::delay)
    }

    /// Makes it as late as that in all, or as late as it is: at once, or smoothly.
    pub(super) fn align_latency(&mut self, late: usize, at_once: bool) {
        self.alignment.set(late.saturating_sub(self.delay()), at_once);
    }

    /// What its file tells of levels.
    #[must_use]
    pub fn levels(&self) -> Levels {
        self.levels
    }

    /// Whether the model made what is no number.
    #[must_use]
    pub fn is_muted(&self) -> bool {
        self.model.is_muted()
    }

    /// At most [`ResampledInsert::MAX_FRAMES`] samples.
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

    /// Sets its gains by what is known of levels; at once, or smoothly.
    pub(super) fn set_gains(&mut self, (before, after): (f32, f32), at_once: bool) {
        for (gain, db) in [(&mut self.input_gain, before), (&mut self.output_gain, after)] {
            match at_once {
                true => gain.set_now(db_to_gain(db)),
                false => gain.set(db_to_gain(db)),
            }
        }
    }
}

/// Samples by which both models together are late, who are late by so much each.
pub(super) fn delay_of([first, second]: [usize; 2], settings: &Settings) -> usize {
    match settings.is_parallel() {
        true => first.max(second),
        false => first + second,
    }
}

/// Where a model stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Levels of the model whose output it gets.
    pub behind: Option<Levels>,
    /// Whether another one gets its output.
    pub feeds: bool,
}

/// Gains before and behind a model, dB. Calibrated input: what is Z dBu at full scale becomes what is X dBu at full scale by a gain of
/// Z - X; the same at the output.
pub(super) fn gains_db(levels: Levels, settings: &Settings, place: Place) -> (f32, f32) {
    let from = match place.behind {
        None => Some(settings.get(Parameter::InputFullScale)),
        Some(other) => other.output_dbu,
    };
    let calibrated = from.zip(levels.input_dbu).filter(|_| settings.is_on(Parameter::InputCalibrated));
    let before = calibrated.map_or(0.0, |(from, own)| from - own);
    let after = match settings.output_level() {
        _ if place.feeds => None,
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
    fn levels_become_gains() {
        let levels = Levels { loudness_db: Some(-25.0), input_dbu: Some(18.0), output_dbu: Some(15.0) };
        let mut settings = Settings::default();
        let alone = Place { behind: None, feeds: false };
        assert_eq!(gains_db(levels, &settings, alone), (0.0, 7.0));
        settings.set(Parameter::InputCalibrated, 1.0).unwrap();
        settings.set(Parameter::OutputLevel, 2.0).unwrap();
        assert_eq!(gains_db(levels, &settings, alone), (-6.0, 3.0));
        assert_eq!(gains_db(Levels::default(), &settings, alone), (0.0, 0.0));
        let pedal = Place { behind: None, feeds: true };
        assert_eq!(gains_db(levels, &settings, pedal), (-6.0, 0.0));
        let behind = Place { behind: Some(levels), feeds: false };
        assert_eq!(gains_db(levels, &settings, behind), (-3.0, 3.0));
    }
}
