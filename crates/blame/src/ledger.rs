//! The ledger: the causes of all spikes, the heaviest first.
//!
//! | module | holds |
//! |---|---|
//! | `line` | what is kept of one cause |
//! | `mend` | the record's spikes, as the ledger counts them |
//! | `stalls` | spikes of all CPUs at once |
//! | `regular` | whether strikes come at a regular interval |

mod line;
mod mend;
mod regular;
mod stalls;

use std::{cmp::Reverse, collections::HashMap};

use record::{Account, Cause, CauseKind, Culprit, Why};

use crate::remedy::{RemedyFacts, remedy};
use line::Line;
use stalls::Stall;

/// How many causes are told apart; further ones of a kind are one.
const LINES: usize = 1024;
/// How many spikes are kept that may be part of a stall of all CPUs; at twice as many the shorter half is let go of.
const STALLS: usize = 4096;
/// A cause without a spike of its own stands in the ledger if it has one part in so many of all lateness.
const WORTH_TELLING: u64 = 50;

/// One spike, as the ledger takes it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The CPU that it was measured on.
    pub cpu: u32,
    /// The phase of the run.
    pub phase: &'a str,
    /// Which deadline was missed, ns after the first of its series.
    pub at_ns: u64,
    /// When the wake-up was to be, ns on CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// How late it was, ns.
    pub lateness_ns: i64,
    /// Its culprits, the main one first.
    pub culprits: &'a [Culprit],
    /// Whether the other CPUs may have the same at the same time of themselves, as they all tick together: a gap without
    /// a trace.
    pub may_coincide: bool,
}

/// All spikes of a run by cause, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    lines: Vec<Line>,
    of: HashMap<(CauseKind, Option<Why>, String), usize>,
    phases: Vec<String>,
    /// Spikes that are not in the lines yet: they may be part of a stall of all CPUs.
    stalls: Vec<Stall>,
}

impl Ledger {
    /// Takes one spike in.
    pub fn add(&mut self, entry: Entry<'_>) {
        let Some(main) = entry.culprits.first() else { return };
        let spike = Stall {
            cpu: entry.cpu,
            phase: self.phase(entry.phase),
            at_ns: entry.at_ns,
            deadline_ns: entry.deadline_ns,
            lateness_ns: entry.lateness_ns,
            shares: entry.culprits.iter().map(|culprit| (self.line(&culprit.cause), culprit.ns)).collect(),
            main: main.cause.clone(),
        };
        if entry.may_coincide || !spike.may_be_everywhere() {
            return post(&mut self.lines, &spike);
        }
        self.stalls.push(spike);
        if self.stalls.len() >= 2 * STALLS {
            self.stalls.sort_unstable_by_key(|stall| Reverse(stall.lateness_ns));
            for stall in self.stalls.drain(STALLS..) {
                post(&mut self.lines, &stall);
            }
        }
    }

    /// The accounts, the one with the largest total first. To be asked at any time, also while spikes come.
    #[must_use]
    pub fn accounts(&self, facts: &RemedyFacts) -> Vec<Account> {
        let mut lines = self.lines.clone();
        let everywhere = stalls::on_all_cpus(&self.stalls, &facts.measured);
        let mut all_cpus = Line::new(Cause::new(CauseKind::AllCpus, ""));
        for (stall, everywhere) in self.stalls.iter().zip(&everywhere) {
            if *everywhere {
                all_cpus.strike(stall, true);
                all_cpus.total_ns += stall.shares[0].1;
                for &(line, ns) in &stall.shares[1..] {
                    lines[line].total_ns += ns;
                }
            } else {
                post(&mut lines, stall);
            }
        }
        lines.push(all_cpus);
        let total_ns: u64 = lines.iter().map(|line| line.total_ns).sum();
        lines.retain(|line| line.count > 0 || line.total_ns > total_ns / WORTH_TELLING);
        lines.sort_by(|a, b| {
            (b.total_ns, b.count).cmp(&(a.total_ns, a.count)).then_with(|| a.cause.name.cmp(&b.cause.name))
        });
        lines.into_iter().map(|line| self.account(line, facts)).collect()
    }

    fn account(&self, line: Line, facts: &RemedyFacts) -> Account {
        Account {
            remedy: remedy(&line.cause, facts),
            count: line.count,
            worst_ns: line.worst_ns,
            total_ns: line.total_ns,
            cpus: line.cpus.iter().copied().collect::<machine::CpuList>().to_string(),
            phases: line.phases.iter().map(|&phase| self.phases[phase].clone()).collect(),
            every_ns: regular::every_ns(line.strikes, facts.period_ns),
            cause: line.cause,
            ..Account::default()
        }
    }

    fn phase(&mut self, name: &str) -> usize {
        self.phases.iter().position(|phase| phase == name).unwrap_or_else(|| {
            self.phases.push(name.to_owned());
            self.phases.len() - 1
        })
    }

    /// The line of a cause.
    fn line(&mut self, cause: &Cause) -> usize {
        let mut name = line::family(cause).to_owned();
        let mut key = (cause.kind, cause.why, name.clone());
        if !self.of.contains_key(&key) && self.lines.len() >= LINES {
            name = "others".to_owned();
            key.2.clone_from(&name);
        }
        *self.of.entry(key).or_insert_with(|| {
            self.lines.push(Line::new(Cause { name, ..cause.clone() }));
            self.lines.len() - 1
        })
    }
}

/// Enters a spike in the lines of its causes.
fn post(lines: &mut [Line], spike: &Stall) {
    let whole_ns: u64 = spike.shares.iter().map(|&(_, ns)| ns).sum();
    for (place, &(line, ns)) in spike.shares.iter().enumerate() {
        lines[line].total_ns += ns;
        if place == 0 {
            lines[line].strike(spike, true);
        } else if ns >= whole_ns / 5 {
            lines[line].strike(spike, false);
        }
    }
}

#[cfg(test)]
mod tests;
