//! Checks the files and the sound card of an audio probe on a machine.

use machine::{Root, sound};

use super::{AudioError, AudioProbe, Through};

impl AudioProbe {
    /// Errors of its files, which are loaded, and of its card on the machine below `root`; each with its key in a
    /// campaign file.
    pub(crate) fn problems(&self, root: &Root) -> Vec<(&'static str, AudioError)> {
        let files = match &self.through {
            Through::Parts { model, cab } => {
                vec![("model", model.load(self.rate_hz).err()), ("cab", cab.load(self.rate_hz).err())]
            }
            Through::Preset(_) => vec![("preset", self.load().err())],
        };
        let all = files.into_iter().chain([("device", self.card_problem(root))]);
        all.filter_map(|(key, error)| Some((key, error?))).collect()
    }

    /// The error if its card does not exist. The card is not opened, because another program may be using it.
    fn card_problem(&self, root: &Root) -> Option<AudioError> {
        let device = self.device.as_ref()?;
        // The cards of a recorded machine may not have been recorded.
        let is_known = root.is_system() || root.exists("proc/asound/cards");
        let names = [&device.capture, &device.playback].into_iter().filter(|_| is_known);
        let error = names.map(|name| sound::find(root, name)).find_map(Result::err)?;
        Some(AudioError::Device(error.into()))
    }
}
