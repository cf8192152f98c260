//! A campaign that is ready to run: its scenarios in their order, each with the plan of its run.

use crate::plan::Plan;

/// What a scenario takes besides measuring, ns, as found on a PC: the trace is made and removed, loads start, records and
/// reports are written.
pub const AROUND_NS: u64 = 220_000_000;

/// A campaign, expanded for the CPUs of a machine.
#[derive(Debug, Clone, Default)]
pub struct Scenarios {
    /// Its name, which names the folder of its records.
    pub name: String,
    /// What it is, in words.
    pub title: String,
    /// Where the table comes from; empty where the file does not say.
    pub source: String,
    /// Names of the profiles that judge each record.
    pub profiles: Vec<String>,
    /// Published references to be laid beside.
    pub against: Vec<String>,
    /// Rest between two scenarios, ns.
    pub rest_ns: u64,
    /// FNV-1a digest of everything that decides what runs, 16 hexadecimal digits: only the same can be resumed.
    pub digest: String,
    /// What stands in for words that fit no CPU of this machine, and other things to know before it runs; one line each.
    pub notes: Vec<String>,
    /// The scenarios in the order in which they run, repeats and all.
    pub list: Vec<Scenario>,
}

/// One scenario: probe x load x placement x settings, once.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name: that of the parts that vary.
    pub name: String,
    /// Name of the probe.
    pub probe: String,
    /// Name of the load.
    pub load: String,
    /// Name of the placement.
    pub placement: String,
    /// Name of the settings.
    pub settings: String,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// What runs. Where its record goes is not yet said.
    pub plan: Plan,
    /// How long it takes by the plan, ns.
    pub planned_ns: u64,
}

impl Scenarios {
    /// How long all scenarios take by the plan, with the rests between and what each takes besides measuring, ns.
    #[must_use]
    pub fn planned_ns(&self) -> u64 {
        self.planned_of(&(0..self.list.len()).collect::<Vec<_>>())
    }

    /// The same for some of them, by their indices.
    pub(crate) fn planned_of(&self, indices: &[usize]) -> u64 {
        let rests_ns = indices.len().saturating_sub(1) as u64 * self.rest_ns;
        indices.iter().map(|&index| self.list[index].planned_ns + AROUND_NS).sum::<u64>() + rests_ns
    }
}
