//! What MIDI has asked for and the audio thread has not been told yet: of each thing the last.

use amp::{Controls, Parameter, chain::ControlError};

type Turned = Vec<(Parameter, f32)>;

#[derive(Debug, Default)]
pub struct Waiting {
    program: Option<usize>,
    /// What was turned before the program was chosen: it counts if that cannot be played.
    before: Turned,
    turned: Turned,
    /// Whether it was told that all this waits.
    pub is_told: bool,
}

impl Waiting {
    /// The preset that is to be played.
    pub fn program(&self) -> Option<usize> {
        self.program
    }

    /// This preset is to be played; it sets every parameter.
    pub fn choose(&mut self, program: usize) {
        let turned = std::mem::take(&mut self.turned);
        if self.program.replace(program).is_none() {
            self.before = turned;
        }
    }

    /// The preset plays, or cannot be played: then what was turned in its place goes with it.
    pub fn is_chosen(&mut self, plays: bool) {
        self.program = None;
        let before = std::mem::take(&mut self.before);
        if !plays {
            self.turned = before;
        }
    }

    /// The parameter is to have this value.
    pub fn turn(&mut self, parameter: Parameter, value: f32) {
        self.turned.retain(|(turned, _)| *turned != parameter);
        self.turned.push((parameter, value));
    }

    /// Tells the audio thread what was turned; what it has no room for waits on.
    pub fn tell_turned(&mut self, controls: &mut Controls) -> Result<(), ControlError> {
        while let Some(&(parameter, value)) = self.turned.first() {
            match controls.set(parameter, value) {
                Err(ControlError::Busy) => return Err(ControlError::Busy),
                set => {
                    self.turned.remove(0);
                    set?;
                }
            }
        }
        Ok(())
    }
}
