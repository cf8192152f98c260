//! Everything of an audio probe that cannot be played on this machine.

use machine::{Root, sound};

use super::{AudioError, AudioProbe, Through};

impl AudioProbe {
    /// What is wrong with its files, read as for playing, and with its card on the machine below `root`; each with the key
    /// that says it in a campaign.
    pub(crate) fn faults(&self, root: &Root) -> Vec<(&'static str, AudioError)> {
        let through = match &self.through {
            Through::Parts { model, cab } => {
                vec![("model", model.load(self.rate_hz).err()), ("cab", cab.load(self.rate_hz).err())]
            }
            Through::Preset(_) => vec![("preset", self.load().err())],
        };
        let all = through.into_iter().chain([("device", self.no_card(root))]);
        all.filter_map(|(key, fault)| Some((key, fault?))).collect()
    }

    /// Why its card is not there. It is not opened: another may be playing on it now.
    fn no_card(&self, root: &Root) -> Option<AudioError> {
        let device = self.device.as_ref()?;
        // What was not recorded of a machine is not known.
        let is_known = root.is_system() || root.exists("proc/asound/cards");
        let names = [&device.capture, &device.playback].into_iter().filter(|_| is_known);
        let fault = names.map(|name| sound::find(root, name)).find_map(Result::err)?;
        Some(AudioError::Device(fault.into()))
    }
}
