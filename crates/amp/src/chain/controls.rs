//! The control side of a chain: sets parameters, replaces models and cabinets, frees the old ones, reads meters.

use rtrb::{Consumer, Producer, RingBuffer};
use thiserror::Error;

use super::{
    amplifier::{Amplifier, delay_of},
    crossfade::Part,
    exchange::{Change, Exchange},
    meters::{MeterReader, Meters},
    parameter::{Parameter, ParameterError},
    settings::Settings,
};
use crate::{
    cabinet::Cabinet,
    convert::whole,
    tuner::{Pitch, Tuner},
};

/// Maximum number of changes in the queue to the audio thread.
const CHANGES: usize = 256;
/// Maximum number of models and cabinets in flight. Each is returned once, so the return queue is never full.
const PARTS: usize = 16;
/// Seconds of input in the queue to the tuner.
const TAP_S: f32 = 0.25;

/// A change for the audio thread.
#[derive(Debug)]
pub(super) enum Command {
    Set(Parameter, f32),
    Amplifier(usize, Part<Amplifier>),
    Cabinet(Part<Cabinet>),
    ReverbIr(Part<Cabinet>),
}

/// A model or cabinet that the audio thread returns to be freed.
#[derive(Debug)]
#[expect(dead_code, reason = "kept only to be freed outside the audio thread")]
pub(super) enum Retired {
    Amplifier(Part<Amplifier>),
    Cabinet(Part<Cabinet>),
}

/// The audio thread's ends of the queues.
#[derive(Debug)]
pub(super) struct AudioQueues {
    pub changes: Consumer<Command>,
    retired: Producer<Retired>,
    pub tap: Producer<f32>,
}

impl AudioQueues {
    /// Returns a model or cabinet. The queue has space, because the controls limit the number of parts in flight.
    pub fn give_back(&mut self, retired: Option<Retired>) {
        if let Some(retired) = retired {
            let _ = self.retired.push(retired);
        }
    }
}

/// Why a change could not be sent to the audio thread.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ControlError {
    /// The parameter does not allow the value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The queue is full.
    #[error("the audio thread has not applied the last changes yet; check that it is running")]
    Busy,
}

/// The control side of a [`Chain`](super::Chain).
#[derive(Debug)]
pub struct Controls {
    changes: Producer<Command>,
    retired: Consumer<Retired>,
    tap: Consumer<f32>,
    meters: MeterReader,
    settings: Settings,
    rate_hz: u32,
    /// Delays of the models after all exchanges, samples.
    delays: [usize; 2],
    in_flight: usize,
    tuner: Tuner,
}

impl Controls {
    pub(super) fn new(
        rate_hz: u32,
        settings: Settings,
        delays: [usize; 2],
        meters: MeterReader,
    ) -> (Self, AudioQueues) {
        let (changes, changes_consumer) = RingBuffer::new(CHANGES);
        let (retired_producer, retired) = RingBuffer::new(PARTS);
        let (tap_producer, tap) = RingBuffer::new(whole(f64::from(rate_hz as f32 * TAP_S)));
        let tuner = Tuner::new(rate_hz);
        let controls = Self { changes, retired, tap, meters, settings, rate_hz, delays, in_flight: 0, tuner };
        (controls, AudioQueues { changes: changes_consumer, retired: retired_producer, tap: tap_producer })
    }

    /// Sample rate of the chain, Hz. New models and cabinets must be made for it.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Delay of the chain's output after all changes, samples: 0 unless a model is resampled.
    #[must_use]
    pub fn delay(&self) -> usize {
        delay_of(self.delays, &self.settings)
    }

    /// Delay of the first model (0) or the second (1) after all exchanges, samples: 0 unless it is resampled.
    #[must_use]
    pub fn model_delay(&self, slot: usize) -> usize {
        self.delays.get(slot).copied().unwrap_or(0)
    }

    /// Sets a parameter; the chain reaches the value within 20 ms.
    ///
    /// # Errors
    /// [`ControlError`]; then nothing has changed.
    pub fn set(&mut self, parameter: Parameter, value: f32) -> Result<(), ControlError> {
        let value = parameter.check(value)?;
        self.changes.push(Command::Set(parameter, value)).map_err(|_| ControlError::Busy)?;
        Ok(self.settings.set(parameter, value)?)
    }

    /// Replaces models and responses and, if `settings` is given, sets every parameter that differs: all of it or
    /// nothing.
    ///
    /// # Errors
    /// [`ControlError::Busy`] if the queue has too little space. Then nothing has changed, and the new parts are
    /// dropped.
    pub fn exchange(&mut self, exchange: Exchange, settings: Option<&Settings>) -> Result<(), ControlError> {
        let differing: Vec<(Parameter, f32)> =
            settings.map(|settings| settings.differing(&self.settings).collect()).unwrap_or_default();
        let parts = exchange.parts();
        if self.collect() + parts > PARTS || self.changes.slots() < parts + differing.len() {
            return Err(ControlError::Busy);
        }
        let Exchange { models, cabinet, reverb_ir } = exchange;
        for (slot, model) in models.into_iter().enumerate() {
            if let Change::Replace(model) = model {
                self.swap_model(slot, model)?;
            }
        }
        if let Change::Replace(cabinet) = cabinet {
            self.swap_cabinet(cabinet)?;
        }
        if let Change::Replace(response) = reverb_ir {
            self.swap_reverb_ir(response)?;
        }
        differing.into_iter().try_for_each(|(parameter, value)| self.set(parameter, value))
    }

    /// The values of all parameters as last set.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Replaces or removes the first model (0) or the second (1). The newest of several exchanges wins.
    ///
    /// # Errors
    /// [`ControlError::Busy`]; then the model is dropped.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn swap_model(&mut self, slot: usize, model: Option<Amplifier>) -> Result<(), ControlError> {
        assert!(slot < 2, "a chain has two models");
        let delay = model.as_ref().map_or(0, Amplifier::delay);
        self.send(Command::Amplifier(slot, model.map(Box::new)))?;
        self.delays[slot] = delay;
        Ok(())
    }

    /// Replaces or removes the cabinet. The newest of several exchanges wins.
    ///
    /// # Errors
    /// [`ControlError::Busy`]; then the cabinet is dropped.
    pub fn swap_cabinet(&mut self, cabinet: Option<Cabinet>) -> Result<(), ControlError> {
        self.send(Command::Cabinet(cabinet.map(Box::new)))
    }

    /// Replaces or removes the response of the reverb. The newest of several exchanges wins.
    ///
    /// # Errors
    /// [`ControlError::Busy`]; then the response is dropped.
    pub fn swap_reverb_ir(&mut self, response: Option<Cabinet>) -> Result<(), ControlError> {
        self.send(Command::ReverbIr(response.map(Box::new)))
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

    /// Frees the parts that the audio thread has returned, and returns the number of exchanges that are not complete.
    /// Call it regularly.
    pub fn collect(&mut self) -> usize {
        while self.retired.pop().is_ok() {
            self.in_flight -= 1;
        }
        self.in_flight
    }

    /// Reads the meters and restarts their peaks.
    #[must_use]
    pub fn meters(&self) -> Meters {
        self.meters.read()
    }

    /// The note that is played, if any. Call it about ten times a second; takes a few milliseconds.
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
