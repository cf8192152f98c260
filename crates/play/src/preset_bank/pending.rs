//! Changes by MIDI that the audio thread has not received yet. Only the last of each kind is kept.

use amp::{Controls, Parameter, chain::ControlError};

type Values = Vec<(Parameter, f32)>;

#[derive(Debug, Default)]
pub struct PendingChanges {
    program: Option<usize>,
    /// Values that were set before the program was chosen; they apply only if the program cannot be played.
    values_before: Values,
    values: Values,
    /// True after the full queue of the audio thread was reported to the user.
    pub busy_reported: bool,
}

impl PendingChanges {
    /// The preset to play.
    pub fn program(&self) -> Option<usize> {
        self.program
    }

    /// Chooses a preset, which replaces all earlier values.
    pub fn choose(&mut self, program: usize) {
        let values = std::mem::take(&mut self.values);
        if self.program.replace(program).is_none() {
            self.values_before = values;
        }
    }

    /// Ends the choice of a preset. If it failed, restores the values that were set before it and drops those set after
    /// it.
    pub fn finish_choice(&mut self, succeeded: bool) {
        self.program = None;
        let values_before = std::mem::take(&mut self.values_before);
        if !succeeded {
            self.values = values_before;
        }
    }

    /// Sets a parameter.
    pub fn set(&mut self, parameter: Parameter, value: f32) {
        self.values.retain(|(other, _)| *other != parameter);
        self.values.push((parameter, value));
    }

    /// Sends the values to the audio thread. Keeps values that do not fit into its queue.
    pub fn send_values(&mut self, controls: &mut Controls) -> Result<(), ControlError> {
        while let Some(&(parameter, value)) = self.values.first() {
            match controls.set(parameter, value) {
                Err(ControlError::Busy) => return Err(ControlError::Busy),
                result => {
                    self.values.remove(0);
                    result?;
                }
            }
        }
        Ok(())
    }
}
