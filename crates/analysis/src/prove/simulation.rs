//! Searches on simulated machines: heavy tails, drift, and bursts of some rounds, as real machines have them.

use std::ops::Range;

use record::proof::{CONTROL, Candidate, Compares, Figure, Judgement, Proof, Round, RoundFigures};

use super::{ROUNDS, advance, forget_partial_block, least_blocks};
use crate::simulated::{Machine, SAMPLES};

/// The limit above which a sample counts as missed, ns.
const LIMIT_NS: f64 = 1_000_000.0;

/// The figures of a round.
fn measure(machine: &mut Machine, applied: &[usize]) -> RoundFigures {
    let largest = machine.measure(applied);
    let missed = largest.iter().filter(|&&ns| ns > LIMIT_NS).count() as f64 / SAMPLES as f64;
    let [max, p99_99, p99] = [largest[0], largest[2], largest[200]];
    [(Figure::Max, max), (Figure::P9999, p99_99), (Figure::P99, p99), (Figure::Missed, missed)].into()
}

/// A search of so many blocks among candidates with these factors, and the control as the last one.
fn search(seed: u64, factors: &[f64], blocks: u32) -> Proof {
    search_on(Machine::new(seed, &[factors, &[1.0]].concat()), seed, factors, blocks)
}

fn search_on(mut machine: Machine, seed: u64, factors: &[f64], blocks: u32) -> Proof {
    let mut proof = begun(seed, factors.len(), blocks);
    while let Some(next) = advance(&mut proof) {
        let figures = measure(&mut machine, &next.applied);
        let (block, compares, applied, is_with) = (next.block, next.compares, next.applied, next.is_with);
        proof.rounds.push(Round { block, compares, applied, is_with, figures, ..Round::default() });
    }
    proof
}

fn begun(seed: u64, candidates: usize, blocks: u32) -> Proof {
    let named = |id: String| Candidate { id, ..Candidate::default() };
    let candidates = (0..candidates).map(|index| named(format!("c{index}"))).chain([named(CONTROL.to_owned())]);
    Proof { seed, blocks, candidates: candidates.collect(), ..Proof::default() }
}

fn judgements(proof: &Proof) -> Vec<Judgement> {
    proof.conclusion.as_ref().unwrap().effects.iter().map(|effect| effect.judgement).collect()
}

fn kept(proof: &Proof) -> &[usize] {
    &proof.conclusion.as_ref().unwrap().kept
}

/// The number of searches without an effect in which nothing was judged.
fn clean(candidates: usize, blocks: u32, searches: Range<u64>) -> usize {
    let is_clean = |&seed: &u64| {
        let proof = search(seed, &vec![1.0; candidates], blocks);
        kept(&proof).is_empty() && judgements(&proof).iter().all(|&judgement| judgement == Judgement::NoDifference)
    };
    searches.filter(is_clean).count()
}

/// The searches that did not find that the last candidate harms.
fn missed(factors: &[f64], blocks: u32, searches: Range<u64>) -> Vec<u64> {
    let harmful = factors.len() - 1;
    searches.filter(|&seed| judgements(&search(seed, factors, blocks))[harmful] != Judgement::Harms).collect()
}

/// The number of searches that kept the three of twelve candidates that help, and no other.
fn exact(searches: Range<u64>) -> usize {
    let factors = [1.0, 0.7, 1.0, 1.0, 0.8, 1.0, 1.0, 1.0, 0.6, 1.0, 1.0, 1.0];
    searches.filter(|&seed| kept(&search(seed, &factors, 80)) == [1, 4, 8]).count()
}

const LAST_OF_TWELVE: [f64; 12] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5];

#[test]
fn without_any_effect_nothing_is_judged() {
    assert!(clean(1, 40, 0..100) >= 95);
    assert!(clean(12, 80, 0..20) >= 19);
}

#[test]
fn a_harmful_candidate_is_found_in_each_search() {
    assert_eq!(missed(&[1.5], 50, 0..100), [0; 0]);
    assert_eq!(missed(&LAST_OF_TWELVE, 80, 0..20), [0; 0]);
}

#[test]
fn three_of_twelve_are_found_and_no_other_is_kept() {
    assert!(exact(0..20) >= 18);
}

#[test]
#[ignore = "simulates 240 searches with twelve candidates, which takes a minute: make test-all runs it"]
fn twelve_candidates_are_judged_rightly_in_100_searches() {
    let clean = clean(12, 80, 0..100);
    assert!(clean >= 95, "{clean} of 100");
    assert_eq!(missed(&LAST_OF_TWELVE, 80, 20..100), [0; 0]);
    let exact = exact(0..100);
    assert!(exact >= 90, "{exact} of 100");
}

#[test]
fn a_candidate_that_is_needless_beside_another_is_seen_in_the_comparison_without_it() {
    let proof = search(1, &[0.5, 0.5, 1.0], 120);
    let conclusion = proof.conclusion.unwrap();
    assert_eq!(conclusion.kept, [0, 1]);
    for index in [0, 1] {
        let beside = conclusion.effects[index].beside[&Figure::P99];
        assert!(beside.low.unwrap() < 0.5 && beside.high.unwrap() > 0.5, "{beside:?}");
    }
    let together = conclusion.together.unwrap().on[&Figure::P99];
    assert!(together.low.unwrap() < 0.25 && together.high.unwrap() > 0.25, "{together:?}");
}

#[test]
fn the_interval_contains_the_true_effect() {
    let inside = (0..100).filter(|&seed| {
        let proof = search(seed, &[0.7, 1.0, 1.3], 60);
        let effects = proof.conclusion.unwrap().effects;
        [0.7, 1.0, 1.3, 1.0].iter().zip(effects).all(|(truth, effect)| {
            let p99 = effect.on[&Figure::P99];
            p99.low.is_some_and(|low| low <= *truth) && p99.high.is_some_and(|high| high >= *truth)
        })
    });
    let inside = inside.count();
    assert!(inside >= 95, "{inside} of 100");
}

#[test]
fn an_interrupted_block_is_repeated() {
    let mut whole = search(5, &[0.5], 40);
    let conclusion = whole.conclusion.take();
    let mut cut = whole.clone();
    cut.rounds.truncate(13);
    cut.chosen = None;
    forget_partial_block(&mut cut);
    assert_eq!(cut.rounds.len(), 12);
    let next = advance(&mut cut).unwrap();
    let again = &whole.rounds[12];
    assert_eq!((next.block, &next.applied, next.is_with), (3, &again.applied, again.is_with));
    assert!(conclusion.is_some());
}

#[test]
fn each_block_is_balanced() {
    let proof = search(9, &[0.5, 0.5, 1.0], 60);
    for block in proof.rounds.chunks(ROUNDS as usize) {
        let with: Vec<bool> = block.iter().map(|round| round.is_with).collect();
        assert!(with == [true, false, false, true] || with == [false, true, true, false], "{with:?}");
        let applied = |is_with: bool| {
            let mut rounds = block.iter().filter(move |round| round.is_with == is_with);
            let first = &rounds.next().unwrap().applied;
            assert!(rounds.all(|round| &round.applied == first));
            first.clone()
        };
        match block[0].compares {
            Compares::Halves => {
                let mut all = [applied(true), applied(false)].concat();
                all.sort_unstable();
                assert_eq!(all, [0, 1, 2, 3], "each candidate in one half");
            }
            Compares::Chosen => assert_eq!((applied(true), applied(false)), (vec![0, 1], vec![])),
            Compares::Without(one) => assert_eq!((applied(true), applied(false)), (vec![0, 1], vec![1 - one])),
        }
    }
    assert!(least_blocks(13) <= 52 && least_blocks(2) <= 40, "{} and {}", least_blocks(13), least_blocks(2));
}

#[test]
fn a_change_that_is_rarely_much_worse_is_not_kept() {
    let kept = (0..100).filter(|&seed| {
        let factors = [0.6, 0.7];
        let mut machine = Machine::new(seed, &[0.6, 0.7, 1.0]);
        machine.rarely_worse = Some(0);
        kept(&search_on(machine, seed, &factors, 80)).contains(&0)
    });
    let kept = kept.count();
    assert!(kept <= 5, "{kept} of 100");
}

/// A search whose rounds have these figures, as factors of one change.
fn of_figures(figures: [(Figure, f64); 3]) -> Proof {
    let mut machine = Machine::new(3, &[1.0, 1.0]);
    let mut proof = begun(3, 1, 60);
    while let Some(next) = advance(&mut proof) {
        let noise = 1.0 + 0.02 * machine.random.uniform();
        let factor = |factor: f64| if next.applied.contains(&0) { factor } else { 1.0 };
        let figures = figures.map(|(figure, with)| (figure, 100_000.0 * noise * factor(with))).into();
        let (block, compares, applied, is_with) = (next.block, next.compares, next.applied, next.is_with);
        proof.rounds.push(Round { block, compares, applied, is_with, figures, ..Round::default() });
    }
    proof
}

#[test]
fn a_better_figure_at_the_cost_of_another_is_not_kept() {
    let proof = of_figures([(Figure::P99, 0.9), (Figure::P9999, 1.0), (Figure::Max, 1.04)]);
    assert_eq!((judgements(&proof)[0], kept(&proof)), (Judgement::Mixed, &[][..]));
    let proof = of_figures([(Figure::P99, 0.9), (Figure::P9999, 1.0), (Figure::Max, 0.99)]);
    assert_eq!((judgements(&proof)[0], kept(&proof)), (Judgement::Helps, &[0][..]));
    let proof = of_figures([(Figure::P99, 0.98), (Figure::P9999, 0.98), (Figure::Max, 0.98)]);
    assert_eq!(judgements(&proof)[0], Judgement::NoDifference, "too small to be worth a setting");
}

#[test]
fn nothing_is_kept_if_the_control_differs() {
    let mut proof = of_figures([(Figure::P99, 0.5), (Figure::P9999, 0.5), (Figure::Max, 0.5)]);
    assert_eq!(kept(&proof), [0]);
    // The rounds with the control and those without it were not alike.
    for round in proof.rounds.iter_mut().filter(|round| round.applied.contains(&1)) {
        round.figures.values_mut().for_each(|value| *value *= 4.0);
    }
    let conclusion = super::conclude(&proof);
    assert!(conclusion.kept.is_empty() && conclusion.why_not.unwrap().contains("control"));
}
