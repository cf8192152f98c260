//! Time to build the ledger of many spikes.

use std::time::Instant;

use blame::{Entry, Ledger, RemedyFacts};
use record::{Cause, CauseKind, Culprit};

use crate::row::{Row, Unit};

const SPIKES: u64 = 100_000;
const LIMIT_NS: f64 = 2e9;
/// Number of distinct causes.
const CAUSES: u64 = 300;

/// Measures the row.
pub fn measure(rounds: usize) -> Row {
    let name = "ledger of 100 000 spikes";
    Row::alone(name, Unit::Time, (0..rounds).map(|_| build_ns()), LIMIT_NS)
}

fn build_ns() -> f64 {
    let begin = Instant::now();
    let mut ledger = Ledger::default();
    for spike in 0..SPIKES {
        // A prime, so that causes and CPUs combine irregularly.
        let cause = Cause::new(CauseKind::Thread, format!("worker-{}", spike * 7_919 % CAUSES));
        let culprits = [
            Culprit { cause, ns: 90_000 + spike % 50_000 },
            Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns: 10_000 },
        ];
        let at_ns = spike * 1_000_000;
        let lateness_ns = 100_000 + (spike % 50_000).cast_signed();
        let cpu = (spike % 8) as u32;
        let culprits = &culprits;
        ledger.add(Entry {
            cpu,
            thread: (1, 9),
            phase: "load",
            at_ns,
            deadline_ns: at_ns,
            lateness_ns,
            culprits,
            may_coincide: false,
        });
    }
    let accounts = ledger.accounts(&RemedyFacts::default());
    assert!(!accounts.is_empty(), "the ledger has accounts");
    begin.elapsed().as_nanos() as f64
}
