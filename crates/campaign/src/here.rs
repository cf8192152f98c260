//! What a campaign names and a machine may lack: CPUs, files that audio is played through, sound cards.

use machine::{CpuError, Root};

use crate::{
    expand::{Asked, Cpus, expand},
    file::{CampaignFile, CampaignProbe, FileMistakes, Mistake},
    probe::{Probe, audio::AudioError},
    scenario::Scenarios,
};

/// A machine, as far as campaigns need to know it.
#[derive(Debug)]
pub struct Here {
    cpus: Cpus,
    root: Root,
}

impl Here {
    /// The machine below `root`.
    ///
    /// # Errors
    /// When the kernel does not tell which CPUs are online.
    pub fn of(root: Root) -> Result<Self, CpuError> {
        Ok(Self { cpus: Cpus::of(&root)?, root })
    }

    /// The scenarios of a campaign, where this machine has all that they need. Files are read as they are for playing.
    ///
    /// # Errors
    /// What it does not have, all of it.
    pub fn validate(&self, file: &CampaignFile) -> Result<Scenarios, FileMistakes> {
        let expanded = expand(file, &self.cpus, &Asked::default());
        let mut list: Vec<Mistake> = file.probes.iter().flat_map(|probe| self.unplayable(probe)).collect();
        if list.is_empty() {
            return expanded;
        }
        list.extend(expanded.err().into_iter().flat_map(|mistakes| mistakes.list));
        list.sort();
        Err(FileMistakes { path: file.path.clone(), list })
    }

    /// What a probe cannot play, where it says it.
    fn unplayable(&self, probe: &CampaignProbe) -> Vec<Mistake> {
        let Probe::Audio(audio) = &probe.probe else { return Vec::new() };
        let mistake = |(key, fault): (&str, AudioError)| {
            let place = probe.keys.iter().find(|(of, _)| *of == key).map_or(probe.place, |(_, place)| *place);
            Mistake { place, text: format!("{key}: {fault}") }
        };
        audio.faults(&self.root).into_iter().map(mistake).collect()
    }
}
