//! How long the ledger of very many spikes takes to build.

use std::time::Instant;

use blame::{Entry, Ledger, RemedyFacts};
use record::{Cause, CauseKind, Culprit};

use crate::row::{Row, Unit};

const SPIKES: u64 = 100_000;
const LIMIT_NS: f64 = 2e9;
/// Causes that the spikes are spread over.
const CAUSES: u64 = 300;

/// Takes the row.
pub fn measure(rounds: usize) -> Row {
    let name = "ledger of 100 000 spikes";
    Row::alone(name, Unit::Time, (0..rounds).map(|_| build_ns()), LIMIT_NS)
}

fn build_ns() -> f64 {
    let begin = Instant::now();
    let mut ledger = Ledger::default();
    for spike in 0..SPIKES {
        // Irregular against CPUs and causes; a prime spreads them.
        let cause = Cause::new(CauseKind::Thread, format!("worker-{}", spike * 7_919 % CAUSES));
        let culprits = [
            Culprit { cause, ns: 90_000 + spike % 50_000 },
            Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns: 10_000 },
        ];
        let at_ns = spike * 1_000_000;
        let lateness_ns = 100_000 + (spike % 50_000) as i64;
        let cpu = (spike % 8) as u32;
        let culprits = &culprits;
        ledger.add(Entry { cpu, phase: "load", at_ns, deadline_ns: at_ns, lateness_ns, culprits, may_coincide: false });
    }
    let accounts = ledger.accounts(&RemedyFacts::default());
    assert!(!accounts.is_empty(), "spikes make accounts");
    begin.elapsed().as_nanos() as f64
}
