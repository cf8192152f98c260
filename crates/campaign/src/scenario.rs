//! A campaign that is ready to run: its scenarios in order, each with the plan of its run.

use crate::plan::Plan;

/// Overhead of a scenario, ns, measured on a PC: setting up and removing the trace, starting loads, and writing records
/// and reports.
pub const AROUND_NS: u64 = 220_000_000;

/// A campaign, expanded for the CPUs of a machine.
#[derive(Debug, Clone, Default)]
pub struct Scenarios {
    /// Its name; also the name of the folder of its records.
    pub name: String,
    /// Title in words.
    pub title: String,
    /// Source of the table; empty if the file names none.
    pub source: String,
    /// Names of the profiles that judge each record.
    pub profiles: Vec<String>,
    /// Published references to compare with.
    pub against: Vec<String>,
    /// Rest between two scenarios, ns.
    pub rest_ns: u64,
    /// FNV-1a digest of everything that affects the runs, 16 hexadecimal digits. A campaign is only resumed if it is
    /// equal.
    pub digest: String,
    /// Fallbacks for words that fit no CPU of this machine, and other notes; one line each.
    pub notes: Vec<String>,
    /// The scenarios in the order in which they run, including repeats.
    pub list: Vec<Scenario>,
}

/// One run of a combination of probe, load, placement and settings.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name, made from the names of the parts that vary.
    pub name: String,
    /// Name of the probe.
    pub probe: String,
    /// Name of the load.
    pub load: String,
    /// Name of the placement.
    pub placement: String,
    /// Name of the settings.
    pub settings: String,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// The plan of the run, still without the path of its record.
    pub plan: Plan,
    /// Planned duration, ns.
    pub planned_ns: u64,
}

impl Scenarios {
    /// Planned duration of all scenarios with their overhead and the rests between them, ns.
    #[must_use]
    pub fn planned_ns(&self) -> u64 {
        self.planned_of(&(0..self.list.len()).collect::<Vec<_>>())
    }

    /// Planned duration of the scenarios with these indices, ns.
    pub(crate) fn planned_of(&self, indices: &[usize]) -> u64 {
        let rests_ns = indices.len().saturating_sub(1) as u64 * self.rest_ns;
        indices.iter().map(|&index| self.list[index].planned_ns + AROUND_NS).sum::<u64>() + rests_ns
    }
}
