//! Comparisons of simulated machines.

use record::versus::{Change, Measure, RoundOrder};

use super::{
    LEAST_RATIO, Records,
    side::{Group, Round},
    timeline::Start,
    versus,
};
use crate::simulated::{Machine, SAMPLES};

/// The order of the rounds.
#[derive(Debug, Clone, Copy)]
enum Runs {
    /// A B B A A B B A.
    Abba,
    /// A B A B A B A B.
    Abab,
    /// A A A A B B B B.
    OneAfterTheOther,
    /// The same, in files of another tool that do not say when.
    Untimed,
    /// A A A B B B B A: one round of the first side comes last.
    StrayRound,
    /// A A B B B B A A.
    BaselineAgain,
}

/// Measures so many rounds of each side. B has the machine's first change.
fn measured(machine: &mut Machine, rounds: u32, runs: Runs) -> (Records, Records) {
    let (mut a, mut b) = (side(), side());
    for run in 0..2 * rounds {
        let is_b = match runs {
            Runs::Abba => matches!(run % 4, 1 | 2),
            Runs::Abab => run % 2 == 1,
            Runs::OneAfterTheOther | Runs::Untimed => run >= rounds,
            Runs::StrayRound => (rounds - 1..2 * rounds - 1).contains(&run),
            Runs::BaselineAgain => (rounds / 2..rounds / 2 + rounds).contains(&run),
        };
        let largest = machine.measure(if is_b { &[0] } else { &[] });
        let values = [(Measure::P99, 200), (Measure::P999, 20), (Measure::P9999, 2), (Measure::Max, 0)];
        let at = format!("2026-01-01T00:{:02}:{:02}.000000000Z", run / 60, run % 60);
        let side = if is_b { &mut b } else { &mut a };
        let is_imported = matches!(runs, Runs::Untimed);
        let at = if is_imported { String::new() } else { at };
        let start = Start { at, host: Some("board".to_owned()), is_imported };
        side.starts.push(start.clone());
        let values = values.into_iter().map(|(measure, rank)| (measure, largest[rank])).collect();
        side.groups[0].rounds.push(Round { start, samples: Some(SAMPLES), values, ..Round::default() });
    }
    (a, b)
}

fn side() -> Records {
    let mut group = Group::default();
    group.conditions.probe = record::TIMER.to_owned();
    Records { groups: vec![group], ..Records::default() }
}

fn judged(seed: u64, factor: f64, rounds: u32, runs: Runs) -> Change {
    let (a, b) = measured(&mut Machine::new(seed, &[factor]), rounds, runs);
    let versus = versus(&a, &b, 0.0);
    let expected = match runs {
        Runs::Abba => RoundOrder::Alternating,
        Runs::Abab => RoundOrder::AlternatingSameFirst,
        Runs::OneAfterTheOther => RoundOrder::OneAfterTheOther,
        Runs::Untimed => RoundOrder::Untimed,
        Runs::StrayRound | Runs::BaselineAgain => RoundOrder::InBlocks,
    };
    assert_eq!(versus.order, expected);
    versus.change
}

#[test]
fn the_same_machine_twice_differs_in_at_most_5_of_100_comparisons() {
    for (runs, rounds) in [
        (Runs::Abba, 8),
        (Runs::Abba, 20),
        (Runs::Abab, 8),
        (Runs::Abab, 20),
        (Runs::OneAfterTheOther, 8),
        (Runs::OneAfterTheOther, 20),
        (Runs::Untimed, 8),
        (Runs::StrayRound, 10),
        (Runs::BaselineAgain, 8),
        (Runs::BaselineAgain, 20),
    ] {
        let differ = (0..400).filter(|&seed| judged(seed, 1.0, rounds, runs) != Change::NoDifference).count();
        assert!(differ <= 20, "{differ} of 400 with {rounds} rounds, {runs:?}");
    }
}

#[test]
fn the_rounds_that_a_comparison_asks_for_show_the_difference() {
    let (mut asked, mut found) = (0, 0);
    for seed in 0..100 {
        let (a, b) = measured(&mut Machine::new(seed, &[1.2]), 12, Runs::Abba);
        let Some(rounds) = versus(&a, &b, LEAST_RATIO).groups[0].effects[&Measure::P999].rounds_needed else {
            continue;
        };
        let (a, b) = measured(&mut Machine::new(1_000 + seed, &[1.2]), rounds, Runs::Abba);
        asked += 1;
        found += u32::from(versus(&a, &b, 0.0).groups[0].effects[&Measure::P999].change == Change::Worse);
    }
    assert!(asked >= 90, "{asked} of 100 comparisons know a number of rounds");
    assert!(found * 100 >= asked * 95, "found {found} of {asked}");
}
