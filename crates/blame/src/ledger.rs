//! The ledger: the causes of all spikes, the largest total first.
//!
//! | module | contents |
//! |---|---|
//! | `cause_total` | the totals of one cause |
//! | `relabel` | changes the cause of the record's spikes that are stalls of all CPUs |
//! | `stalls` | finds spikes of all CPUs at the same time |
//! | `regular` | finds the interval of periodic causes |

mod cause_total;
mod regular;
mod relabel;
mod stalls;

use std::{cmp::Reverse, collections::HashMap};

use record::{Account, Cause, CauseKind, Culprit, Why};

use crate::remedy::{RemedyFacts, remedy};
use cause_total::CauseTotal;
use stalls::LedgerSpike;

/// Maximum number of distinct causes; further causes of a kind are counted as one.
const MAX_CAUSES: usize = 1024;
/// Number of spikes kept because they may be part of a stall of all CPUs. At twice this number, the shorter half is
/// counted as normal spikes.
const MAX_PENDING: usize = 4096;
/// A cause that is never the main one gets an account if it has at least 1/`ACCOUNT_DIVISOR` of the total lateness.
const ACCOUNT_DIVISOR: u64 = 50;

/// One spike for the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// CPU of the measuring thread.
    pub cpu: u32,
    /// Phase of the run.
    pub phase: &'a str,
    /// The deadline, ns after the first deadline of its series.
    pub at_ns: u64,
    /// Thread id, and priority as the kernel counts.
    pub thread: (u32, i32),
    /// The deadline, ns on CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// Lateness, ns.
    pub lateness_ns: i64,
    /// Culprits, the main one first.
    pub culprits: &'a [Culprit],
    /// True if other CPUs may have a similar spike at the same time without a common cause: a gap without a trace,
    /// because the ticks of all CPUs coincide.
    pub may_coincide: bool,
}

/// The spikes of a run by cause, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    totals: Vec<CauseTotal>,
    /// By kind, reason, `own` and name.
    index: HashMap<(CauseKind, Option<Why>, bool, String), usize>,
    phases: Vec<String>,
    /// Spikes that may be part of a stall of all CPUs and are not in `totals` yet.
    pending: Vec<LedgerSpike>,
}

impl Ledger {
    /// Adds one spike.
    pub fn add(&mut self, entry: Entry<'_>) {
        let Some(main) = entry.culprits.first() else { return };
        let spike = LedgerSpike {
            cpu: entry.cpu,
            thread: entry.thread,
            phase: self.phase_index(entry.phase),
            at_ns: entry.at_ns,
            deadline_ns: entry.deadline_ns,
            lateness_ns: entry.lateness_ns,
            shares: entry.culprits.iter().map(|culprit| (self.total_index(&culprit.cause), culprit.ns)).collect(),
            main: main.cause.clone(),
        };
        if entry.may_coincide || !spike.may_be_stall() {
            return add_shares(&mut self.totals, &spike);
        }
        self.pending.push(spike);
        if self.pending.len() >= 2 * MAX_PENDING {
            self.pending.sort_unstable_by_key(|stall| Reverse(stall.lateness_ns));
            for stall in self.pending.drain(MAX_PENDING..) {
                add_shares(&mut self.totals, &stall);
            }
        }
    }

    /// The threads that remedies may name: those that were late, and those that had the CPU.
    pub fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        let of_totals = self.totals.iter().flat_map(|total| [Some(total.thread.0), total.cause.number]);
        of_totals.chain(self.pending.iter().map(|stall| Some(stall.thread.0))).flatten()
    }

    /// The accounts, the largest total first. Can be called at any time.
    #[must_use]
    pub fn accounts(&self, facts: &RemedyFacts) -> Vec<Account> {
        let mut totals = self.totals.clone();
        let in_stall = stalls::in_stall_of_all_cpus(&self.pending, &facts.measured);
        let mut all_cpus = CauseTotal::new(Cause::new(CauseKind::AllCpus, ""));
        for (stall, in_stall) in self.pending.iter().zip(&in_stall) {
            if *in_stall {
                all_cpus.add_spike(stall, true);
                all_cpus.total_ns += stall.shares[0].1;
                for &(index, ns) in &stall.shares[1..] {
                    totals[index].total_ns += ns;
                }
            } else {
                add_shares(&mut totals, stall);
            }
        }
        totals.push(all_cpus);
        let total_ns: u64 = totals.iter().map(|total| total.total_ns).sum();
        totals.retain(|total| total.count > 0 || total.total_ns > total_ns / ACCOUNT_DIVISOR);
        totals.sort_by(|a, b| {
            (b.total_ns, b.count).cmp(&(a.total_ns, a.count)).then_with(|| a.cause.name.cmp(&b.cause.name))
        });
        totals.into_iter().map(|total| self.account(total, facts)).collect()
    }

    fn account(&self, total: CauseTotal, facts: &RemedyFacts) -> Account {
        let (thread_id, priority) = total.thread;
        let facts = match facts.thread_id {
            Some(_) if total.count > 0 => &facts.of_thread(thread_id, priority, total.cpus.iter().copied()),
            _ => facts,
        };
        Account {
            remedy: remedy(&total.cause, facts),
            count: total.count,
            worst_ns: total.worst_ns,
            total_ns: total.total_ns,
            cpus: total.cpus.iter().copied().collect::<machine::CpuList>().to_string(),
            phases: total.phases.iter().map(|&phase| self.phases[phase].clone()).collect(),
            every_ns: regular::every_ns(total.strikes, facts.period_ns),
            cause: total.cause,
            ..Account::default()
        }
    }

    fn phase_index(&mut self, name: &str) -> usize {
        self.phases.iter().position(|phase| phase == name).unwrap_or_else(|| {
            self.phases.push(name.to_owned());
            self.phases.len() - 1
        })
    }

    /// Index of a cause's totals.
    fn total_index(&mut self, cause: &Cause) -> usize {
        let mut name = cause_total::family(cause).to_owned();
        let mut key = (cause.kind, cause.why, cause.own, name.clone());
        if !self.index.contains_key(&key) && self.totals.len() >= MAX_CAUSES {
            name = "others".to_owned();
            key.3.clone_from(&name);
        }
        *self.index.entry(key).or_insert_with(|| {
            self.totals.push(CauseTotal::new(Cause { name, ..cause.clone() }));
            self.totals.len() - 1
        })
    }
}

/// Adds the shares of a spike to the totals of its causes.
fn add_shares(totals: &mut [CauseTotal], spike: &LedgerSpike) {
    let lateness_ns: u64 = spike.shares.iter().map(|&(_, ns)| ns).sum();
    for (position, &(index, ns)) in spike.shares.iter().enumerate() {
        totals[index].total_ns += ns;
        if position == 0 {
            totals[index].add_spike(spike, true);
        } else if ns >= lateness_ns / 5 {
            totals[index].add_spike(spike, false);
        }
    }
}

#[cfg(test)]
mod tests;
