//! The ledger: the causes of all spikes, the heaviest first.

use std::collections::{BTreeSet, HashMap};

use record::{Account, Cause, CauseKind, Culprit, Why};

use crate::remedy::{RemedyFacts, remedy};

/// One spike, as the ledger takes it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The CPU that it was measured on.
    pub cpu: u32,
    /// The phase of the run.
    pub phase: &'a str,
    /// When the wake-up was to be, ns on CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// How late it was, ns.
    pub lateness_ns: i64,
    /// Its culprits, the main one first.
    pub culprits: &'a [Culprit],
}

/// All spikes of a run by cause, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    lines: HashMap<(CauseKind, String, Option<Why>), Line>,
}

#[derive(Debug, Clone, Default)]
struct Line {
    cause: Cause,
    count: u64,
    worst_ns: i64,
    total_ns: u64,
    cpus: BTreeSet<u32>,
    phases: Vec<String>,
}

impl Ledger {
    /// Takes one spike in.
    pub fn add(&mut self, entry: Entry<'_>) {
        for (place, culprit) in entry.culprits.iter().enumerate() {
            let key = (culprit.cause.kind, culprit.cause.name.clone(), culprit.cause.why);
            let line = self.lines.entry(key).or_default();
            line.total_ns += culprit.ns;
            if place == 0 {
                line.count += 1;
                line.cpus.insert(entry.cpu);
                if !line.phases.iter().any(|phase| phase == entry.phase) {
                    line.phases.push(entry.phase.to_owned());
                }
            }
            if line.cause == Cause::default() || place == 0 && entry.lateness_ns > line.worst_ns {
                line.cause = culprit.cause.clone();
            }
            if place == 0 {
                line.worst_ns = line.worst_ns.max(entry.lateness_ns);
            }
        }
    }

    /// The accounts, the largest total first.
    #[must_use]
    pub fn accounts(&self, facts: &RemedyFacts) -> Vec<Account> {
        let account = |line: &Line| Account {
            remedy: remedy(&line.cause, facts),
            cause: line.cause.clone(),
            count: line.count,
            worst_ns: line.worst_ns,
            total_ns: line.total_ns,
            cpus: line.cpus.iter().copied().collect::<machine::CpuList>().to_string(),
            phases: line.phases.clone(),
            ..Account::default()
        };
        let mut accounts: Vec<Account> = self.lines.values().map(account).collect();
        accounts.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.cause.name.cmp(&b.cause.name)));
        accounts
    }
}
