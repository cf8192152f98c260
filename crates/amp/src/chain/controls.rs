//! The other thread's side of a chain: turns knobs, brings models and cabinets, takes away what has retired, reads meters.

use rtrb::{Consumer, Producer, RingBuffer};
use thiserror::Error;

use super::{
    amplifier::{Amplifier, delay_of},
    crossfade::Part,
    exchange::{Change, Exchange},
    meters::{Meters, Reading},
    parameter::{Parameter, ParameterError},
    settings::Settings,
};
use crate::{
    cabinet::Cabinet,
    tuner::{Pitch, Tuner},
};

/// Changes that may wait for the audio thread.
const CHANGES: usize = 256;
/// Parts that may be on their way at a time: each comes back once, so the way back is never full.
const PARTS: usize = 16;
/// Seconds of input that may wait for the tuner.
const TAP_S: f32 = 0.25;

/// What the audio thread is told.
#[derive(Debug)]
pub(super) enum Command {
    Set(Parameter, f32),
    Amplifier(usize, Part<Amplifier>),
    Cabinet(Part<Cabinet>),
}

/// What it gives back, to be freed.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be freed elsewhere")]
pub(super) enum Retired {
    Amplifier(Part<Amplifier>),
    Cabinet(Part<Cabinet>),
}

/// The audio thread's ends.
#[derive(Debug)]
pub(super) struct AudioEnds {
    pub changes: Consumer<Command>,
    retired: Producer<Retired>,
    pub tap: Producer<f32>,
}

impl AudioEnds {
    /// There is always room: the other side counts what is on its way.
    pub fn give_back(&mut self, retired: Option<Retired>) {
        if let Some(retired) = retired {
            let _ = self.retired.push(retired);
        }
    }
}

/// Why something could not be told to the audio thread.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ControlError {
    /// A parameter cannot have this value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// It has not taken the last ones yet.
    #[error("the audio thread has not taken the last changes yet: is it running?")]
    Busy,
}

/// The other thread's side of a [`Chain`](super::Chain).
#[derive(Debug)]
pub struct Controls {
    changes: Producer<Command>,
    retired: Consumer<Retired>,
    tap: Consumer<f32>,
    meters: Reading,
    settings: Settings,
    rate_hz: u32,
    /// Samples by which the models are late that play in the end.
    delays: [usize; 2],
    in_flight: usize,
    tuner: Tuner,
}

impl Controls {
    pub(super) fn new(rate_hz: u32, settings: Settings, delays: [usize; 2], meters: Reading) -> (Self, AudioEnds) {
        let (changes, changes_end) = RingBuffer::new(CHANGES);
        let (retired_end, retired) = RingBuffer::new(PARTS);
        let (tap_end, tap) = RingBuffer::new((rate_hz as f32 * TAP_S) as usize);
        let tuner = Tuner::new(rate_hz);
        let controls = Self { changes, retired, tap, meters, settings, rate_hz, delays, in_flight: 0, tuner };
        (controls, AudioEnds { changes: changes_end, retired: retired_end, tap: tap_end })
    }

    /// The chain's rate, Hz: what is brought to it must be made for it.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Samples by which the chain's output is late, with all that it has been told: 0 unless a model is resampled.
    #[must_use]
    pub fn delay(&self) -> usize {
        delay_of(self.delays, &self.settings)
    }

    /// Sets a parameter; it gets there within 20 ms.
    ///
    /// # Errors
    /// [`ControlError`]; nothing has changed then.
    pub fn set(&mut self, parameter: Parameter, value: f32) -> Result<(), ControlError> {
        let value = parameter.check(value)?;
        self.changes.push(Command::Set(parameter, value)).map_err(|_| ControlError::Busy)?;
        Ok(self.settings.set(parameter, value)?)
    }

    /// Exchanges parts, and with `settings` sets every parameter that differs: all of it, or nothing.
    ///
    /// # Errors
    /// [`ControlError::Busy`], where there is no room for all of it: nothing has changed then, and the parts are dropped.
    pub fn exchange(&mut self, exchange: Exchange, settings: Option<&Settings>) -> Result<(), ControlError> {
        let differing: Vec<(Parameter, f32)> =
            settings.map(|settings| settings.differing(&self.settings).collect()).unwrap_or_default();
        let parts = exchange.parts();
        if self.collect() + parts > PARTS || self.changes.slots() < parts + differing.len() {
            return Err(ControlError::Busy);
        }
        let Exchange { models, cabinet } = exchange;
        for (place, model) in models.into_iter().enumerate() {
            if let Change::Replace(model) = model {
                self.swap_model(place, model)?;
            }
        }
        if let Change::Replace(cabinet) = cabinet {
            self.swap_cabinet(cabinet)?;
        }
        differing.into_iter().try_for_each(|(parameter, value)| self.set(parameter, value))
    }

    /// All parameters as they were last set.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Exchanges the first model (0) or the second (1), or takes it out. The newest wins.
    ///
    /// # Errors
    /// [`ControlError::Busy`], and the model is dropped.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn swap_model(&mut self, place: usize, model: Option<Amplifier>) -> Result<(), ControlError> {
        assert!(place < 2, "a chain has two models");
        let delay = model.as_ref().map_or(0, Amplifier::delay);
        self.send(Command::Amplifier(place, model.map(Box::new)))?;
        self.delays[place] = delay;
        Ok(())
    }

    /// Exchanges the cabinet, or takes it out. The newest wins.
    ///
    /// # Errors
    /// [`ControlError::Busy`], and the cabinet is dropped.
    pub fn swap_cabinet(&mut self, cabinet: Option<Cabinet>) -> Result<(), ControlError> {
        self.send(Command::Cabinet(cabinet.map(Box::new)))
    }

    fn send(&mut self, command: Command) -> Result<(), ControlError> {
        self.collect();
        if self.in_flight == PARTS {
            return Err(ControlError::Busy);
        }
        self.changes.push(command).map_err(|_| ControlError::Busy)?;
        self.in_flight += 1;
        Ok(())
    }

    /// Frees what the audio thread has given back, and tells how many exchanges are still under way. To be called now
    /// and then.
    pub fn collect(&mut self) -> usize {
        while self.retired.pop().is_ok() {
            self.in_flight -= 1;
        }
        self.in_flight
    }

    /// How the chain does; peaks begin anew.
    #[must_use]
    pub fn meters(&self) -> Meters {
        self.meters.read()
    }

    /// The note that is played, if it is one. To be called ten times a second or so; takes a millisecond or two.
    pub fn tune(&mut self) -> Option<Pitch> {
        if let Ok(waiting) = self.tap.read_chunk(self.tap.slots()) {
            let (first, second) = waiting.as_slices();
            self.tuner.listen(first);
            self.tuner.listen(second);
            waiting.commit_all();
        }
        self.tuner.pitch()
    }
}
