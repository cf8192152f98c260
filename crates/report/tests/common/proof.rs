//! A search with one change that helps, one that harms, and one without effect.

use std::collections::BTreeMap;

use record::{
    Proof, Scenario,
    proof::{CONTROL, Candidate, Figure, PROOF_SCHEMA, Round},
};

/// The factors of the candidates on all times.
const FACTORS: [f64; 4] = [0.55, 1.0, 1.4, 1.0];

/// A complete search.
pub fn proof() -> Proof {
    let named = |(id, change): (&str, &str)| Candidate { id: id.to_owned(), change: change.to_owned() };
    let candidates = [
        ("cpu.governor", "governor of all CPUs: powersave -> performance"),
        ("memory.thp", "transparent huge pages: always -> never"),
        ("irq.affinity", "interrupts away from CPU 3: 0-3 -> 0-2"),
        (CONTROL, "changes nothing"),
    ];
    let mut proof = Proof {
        schema: PROOF_SCHEMA.to_owned(),
        started_at: "2026-11-02T10:00:00Z".to_owned(),
        command: ["punctual", "tune", "--prove", "--duration", "20m"].map(str::to_owned).to_vec(),
        hostname: Some("bench".to_owned()),
        kernel: Some("6.12.43-rt-amd64".to_owned()),
        scenario: Scenario { probe: "timer".to_owned(), ..Scenario::default() },
        seed: 11,
        round_ns: 5_000_000_000,
        blocks: 60,
        candidates: candidates.map(named).to_vec(),
        ..Proof::default()
    };
    let mut state = 1_u64;
    let mut noise = || {
        // Numerical Recipes, 7.1.4: a linear congruential generator.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 / f64::from(u32::MAX) - 0.25) * 0.4
    };
    while let Some(next) = analysis::prove::advance(&mut proof) {
        let factor: f64 = next.applied.iter().map(|&index| FACTORS[index]).product();
        let mut figure = |typical_ns: f64| (typical_ns * factor * noise().exp()).round();
        let figures =
            [(Figure::P99, figure(22_000.0)), (Figure::P9999, figure(81_000.0)), (Figure::Max, figure(140_000.0))];
        let figures: BTreeMap<_, _> = figures.into_iter().chain([(Figure::Missed, 0.0)]).collect();
        let (block, compares, applied, is_with) = (next.block, next.compares, next.applied, next.is_with);
        proof.rounds.push(Round { block, compares, applied, is_with, samples: 20_000, figures, ..Round::default() });
    }
    proof
}
