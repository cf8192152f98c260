//! Checks a campaign against a machine: its CPUs, its sound cards, and the files that audio is played through.

use machine::{CpuError, Root};

use crate::{
    expand::{Cpus, ExpandOptions, expand},
    file::{CampaignFile, CampaignProbe, FileMistakes, Mistake},
    probe::{Probe, audio::AudioError},
    scenario::Scenarios,
};

/// The machine that a campaign is checked against.
#[derive(Debug)]
pub struct Validator {
    cpus: Cpus,
    root: Root,
}

impl Validator {
    /// The machine below `root`.
    ///
    /// # Errors
    /// The kernel does not report which CPUs are online.
    pub fn of(root: Root) -> Result<Self, CpuError> {
        Ok(Self { cpus: Cpus::of(&root)?, root })
    }

    /// Returns the scenarios of a campaign if this machine has everything that they need. Loads files as playing does.
    ///
    /// # Errors
    /// Everything that the machine does not have.
    pub fn validate(&self, file: &CampaignFile) -> Result<Scenarios, FileMistakes> {
        let expanded = expand(file, &self.cpus, &ExpandOptions::default());
        let mut list: Vec<Mistake> = file.probes.iter().flat_map(|probe| self.audio_mistakes(probe)).collect();
        if list.is_empty() {
            return expanded;
        }
        list.extend(expanded.err().into_iter().flat_map(|mistakes| mistakes.list));
        list.sort();
        Err(FileMistakes { path: file.path.clone(), list })
    }

    /// The files and sound cards that a probe cannot use, each at the position of its key.
    fn audio_mistakes(&self, probe: &CampaignProbe) -> Vec<Mistake> {
        let Probe::Audio(audio) = &probe.probe else { return Vec::new() };
        let mistake = |(key, error): (&str, AudioError)| {
            let position =
                probe.keys.iter().find(|(of, _)| *of == key).map_or(probe.position, |(_, position)| *position);
            Mistake { position, text: format!("{key}: {error}") }
        };
        audio.problems(&self.root).into_iter().map(mistake).collect()
    }
}
