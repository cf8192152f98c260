//! Checks a campaign against a machine: its CPUs, the devices of its interrupts, its sound cards, and the files that audio is
//! played through.

use std::fmt::Display;

use machine::{CpuError, Root};

use crate::{
    expand::{Cpus, ExpandOptions, expand},
    file::{CampaignFile, CampaignProbe, FileMistakes, Mistake},
    probe::Probe,
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
        let mistakes = file.probes.iter().flat_map(|probe| match &probe.probe {
            Probe::Audio(audio) => mistakes(probe, audio.problems(&self.root)),
            _ => Vec::new(),
        });
        with(self.expand(file, &ExpandOptions::default()), file, mistakes.collect())
    }

    /// Returns the scenarios of a campaign if this machine has their CPUs and sources of interrupts. Loads no files.
    ///
    /// # Errors
    /// CPUs and sources of interrupts that the machine does not have.
    pub fn expand(&self, file: &CampaignFile, options: &ExpandOptions) -> Result<Scenarios, FileMistakes> {
        let mistakes = file.probes.iter().flat_map(|probe| match &probe.probe {
            Probe::Interrupt(interrupt) => mistakes(probe, interrupt.problems(&self.root)),
            _ => Vec::new(),
        });
        with(expand(file, &self.cpus, options), file, mistakes.collect())
    }
}

/// Problems of a probe, each at the position of its key.
fn mistakes<E: Display>(probe: &CampaignProbe, problems: Vec<(&str, E)>) -> Vec<Mistake> {
    let mistake = |(key, error): (&str, E)| {
        let position = probe.keys.iter().find(|(of, _)| *of == key).map_or(probe.position, |(_, position)| *position);
        Mistake { position, text: format!("{key}: {error}") }
    };
    problems.into_iter().map(mistake).collect()
}

/// The scenarios if there is no mistake, else all mistakes.
fn with(
    expanded: Result<Scenarios, FileMistakes>,
    file: &CampaignFile,
    mut list: Vec<Mistake>,
) -> Result<Scenarios, FileMistakes> {
    if list.is_empty() {
        return expanded;
    }
    list.extend(expanded.err().into_iter().flat_map(|mistakes| mistakes.list));
    list.sort();
    Err(FileMistakes { path: file.path.clone(), list })
}
