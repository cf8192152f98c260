//! Which changes make a machine more punctual: the plan of a search in rounds, and the conclusions from them.
//!
//! The unit of evidence is a block of four rounds A/B/B/A, so that a linear drift cancels out. Which side is A is random;
//! if a change has no effect, the difference of a block is therefore as often positive as negative, whatever the tails and
//! bursts of the machine. Estimates and intervals rest on that symmetry alone (Wilcoxon's signed ranks, `crate::ranks`).
//!
//! 1. *Screening*: in each block one half of the candidates is compared with the other half, in an orthogonal design
//!    (`design`), so that each round tells something about each candidate.
//! 2. *Confirmation*: what helps is tried together against the starting point, and, if there is time, without each of
//!    them in turn.
//!
//! All intervals of a stage hold together in 98 % of searches (Bonferroni's correction over candidates, figures and looks).

mod design;
#[cfg(test)]
mod simulation;

use std::collections::BTreeMap;

use record::{
    Histogram, Proof, Record, RoleResult, ScenarioResult, State,
    proof::{CONTROL, Compares, Conclusion, Effect, Figure, Interval, Judgement, Round, RoundFigures},
};

use self::design::Design;
use crate::ranks::{self, SignedRanks};

/// Probability that chance alone leads to a wrong judgement in a stage of a search, at most.
const ALPHA: f64 = 0.02;
/// The screening ends after two thirds of the blocks, or after all if nothing was found to help.
const LOOKS: u32 = 2;
/// The smallest relative difference that is worth a setting. Smaller ones are not judged.
const LEAST_RATIO: f64 = 0.05;
/// So many of the rounds with the largest times decide whether a change makes rare ones worse.
const RARE: usize = 5;
/// Times below this count as this, ns: no use needs less, and ratios of shorter times say nothing.
const LEAST_NS: f64 = 1_000.0;
/// Number of rounds of a block.
pub const ROUNDS: u32 = 4;

/// The next round to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRound {
    /// Number of its block.
    pub block: u32,
    /// The comparison that its block makes.
    pub compares: Compares,
    /// Indices of the candidates to apply.
    pub applied: Vec<usize>,
    /// True for the side whose effect is asked.
    pub is_with: bool,
}

impl NextRound {
    /// The round with its figures.
    #[must_use]
    pub fn measured(self, started_at: String, record: &Record) -> Round {
        let (samples, figures) = figures_of(record);
        let Self { block, compares, applied, is_with } = self;
        Round { block, compares, applied, is_with, started_at, samples, figures }
    }
}

/// The smallest number of blocks for a search among so many candidates, the control included.
#[must_use]
pub fn least_blocks(candidates: usize) -> u32 {
    let (screening, confirmation) = (ranks::least(screening_alpha(candidates)), ranks::least(beside_alpha(1)));
    (screening + screening.div_ceil(2)).max(3 * confirmation)
}

/// The next round; `None` if the search is over. Then the document has its conclusion.
///
/// Draws the conclusions of a stage when its last round is in the document.
pub fn advance(proof: &mut Proof) -> Option<NextRound> {
    let done = to_u32(proof.rounds.len());
    let block = done / ROUNDS;
    let at_end_of_block = done.is_multiple_of(ROUNDS);
    if proof.chosen.is_none() && at_end_of_block && looks(proof.blocks).contains(&block) {
        let helping = helping(proof, &screening(proof));
        let is_last = block == proof.blocks;
        if !helping.is_empty() || is_last {
            proof.chosen = Some(helping);
        }
    }
    let compares = match &proof.chosen {
        None => Compares::Halves,
        Some(chosen) if chosen.is_empty() => return end(proof),
        Some(_) if block >= proof.blocks => return end(proof),
        Some(chosen) => confirmation(proof, chosen, block),
    };
    let with = Design { candidates: proof.candidates.len(), seed: proof.seed }.half(block);
    let with_is_first = design::coin(proof.seed, block);
    // A/B/B/A or B/A/A/B.
    let is_with = with_is_first == matches!(done % ROUNDS, 0 | 3);
    let applied = match (compares, &proof.chosen) {
        (Compares::Halves, _) => (0..proof.candidates.len()).filter(|&index| with[index] == is_with).collect(),
        (Compares::Chosen, Some(chosen)) if is_with => chosen.clone(),
        (Compares::Without(_), Some(chosen)) if is_with => chosen.clone(),
        (Compares::Without(one), Some(chosen)) => chosen.iter().copied().filter(|&index| index != one).collect(),
        (Compares::Chosen | Compares::Without(_), _) => Vec::new(),
    };
    Some(NextRound { block, compares, applied, is_with })
}

/// Removes the rounds of a block that was interrupted: it is repeated as a whole, because a drift between its rounds would
/// count as an effect.
pub fn forget_partial_block(proof: &mut Proof) {
    let whole = proof.rounds.len() / ROUNDS as usize * ROUNDS as usize;
    proof.rounds.truncate(whole);
}

/// Number of blocks after which the screening may end.
fn looks(blocks: u32) -> [u32; LOOKS as usize] {
    [blocks - blocks / 3, blocks]
}

fn screening_alpha(candidates: usize) -> f64 {
    ALPHA / f64::from(LOOKS) / Figure::ALL.len() as f64 / candidates.max(1) as f64
}

fn beside_alpha(chosen: usize) -> f64 {
    ALPHA / Figure::ALL.len() as f64 / chosen.max(1) as f64
}

/// What a block of the confirmation compares: in turn the chosen ones with the starting point, and with themselves without
/// each of them, if there are enough blocks for that.
fn confirmation(proof: &Proof, chosen: &[usize], block: u32) -> Compares {
    let screened = to_u32(proof.rounds.iter().filter(|round| round.compares == Compares::Halves).count()) / ROUNDS;
    let turns = 1 + to_u32(chosen.len());
    let is_enough = (proof.blocks - screened) / turns >= ranks::least(beside_alpha(chosen.len()));
    let turn = (block - screened) % turns;
    match turn.checked_sub(1) {
        Some(index) if chosen.len() > 1 && is_enough => Compares::Without(chosen[index as usize]),
        Some(_) | None => Compares::Chosen,
    }
}

/// Draws the conclusions.
fn end(proof: &mut Proof) -> Option<NextRound> {
    proof.conclusion = Some(conclude(proof));
    proof.state = State::Complete;
    None
}

/// The conclusions from all rounds of the document.
#[must_use]
pub fn conclude(proof: &Proof) -> Conclusion {
    let mut effects = screening(proof);
    let chosen = proof.chosen.clone().unwrap_or_default();
    if chosen.is_empty() {
        return Conclusion { effects, ..Conclusion::default() };
    }
    let is_restless = proof.is_restless(&effects);
    let mut kept = Vec::new();
    for &index in chosen.iter().filter(|_| !is_restless) {
        let beside = compared(proof, Compares::Without(index), beside_alpha(chosen.len()));
        effects[index].beside = shown(&beside);
        if !matches!(judgement(&beside), Judgement::Harms | Judgement::Mixed) {
            kept.push(index);
        }
    }
    let mut together = effect(&compared(proof, Compares::Chosen, beside_alpha(1)));
    let confirming = || proof.rounds.iter().filter(|round| round.compares == Compares::Chosen);
    together.judgement = with_rare_harm(together.judgement, confirming(), |round| round.is_with);
    let why_not = match together.judgement {
        _ if is_restless => Some("the control, which changes nothing, made a difference, too"),
        _ if together.on.is_empty() => {
            Some("they were found with the last block, so there was no time to confirm them")
        }
        Judgement::Helps if kept.is_empty() => Some("each of them harms beside the others"),
        Judgement::Helps => None,
        Judgement::RareHarm => Some("the rounds with the largest times all had them"),
        Judgement::NoDifference => Some("together they made no measurable difference to the starting point"),
        Judgement::Harms => Some("together they made it worse than the starting point"),
        Judgement::Mixed => Some("together they made one figure better and another one worse"),
    };
    let kept = if why_not.is_none() { kept } else { Vec::new() };
    Conclusion { effects, together: Some(together), kept, why_not: why_not.map(str::to_owned) }
}

/// The candidates that help. The control does nothing, so it is never chosen.
fn helping(proof: &Proof, effects: &[Effect]) -> Vec<usize> {
    let helps = |&index: &usize| effects[index].judgement == Judgement::Helps && proof.candidates[index].id != CONTROL;
    (0..effects.len()).filter(helps).collect()
}

/// The estimates from the blocks with this comparison.
fn compared(proof: &Proof, compares: Compares, alpha: f64) -> Estimates {
    let difference = |block: &Block, figure| block.differences.get(&figure).copied();
    estimates(&blocks_of(proof, compares), difference, &mut SignedRanks::new(alpha))
}

/// The difference of a block: the mean of its two rounds with, minus that of its two rounds without. Times as logarithms.
struct Block {
    /// For each candidate: 1 if it was applied with, -1 if without.
    signs: Vec<f64>,
    differences: BTreeMap<Figure, f64>,
    /// The mean of all four rounds.
    levels: BTreeMap<Figure, f64>,
}

/// The whole blocks with this comparison.
fn blocks_of(proof: &Proof, compares: Compares) -> Vec<Block> {
    let rounds: Vec<&Round> = proof.rounds.iter().filter(|round| round.compares == compares).collect();
    let blocks = rounds.chunk_by(|a, b| a.block == b.block).filter(|block| block.len() == ROUNDS as usize);
    blocks.map(|block| difference(block, proof.candidates.len())).collect()
}

fn difference(block: &[&Round], candidates: usize) -> Block {
    let is_applied = |index| block.iter().any(|round| round.is_with && round.applied.contains(&index));
    let signs = (0..candidates).map(|index| if is_applied(index) { 1.0 } else { -1.0 }).collect();
    let mean = |figure: Figure, is_with: bool| {
        let rounds = block.iter().filter(|round| round.is_with == is_with);
        let values: Option<Vec<f64>> = rounds.map(|round| Some(scaled(figure, *round.figures.get(&figure)?))).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let means = Figure::ALL.into_iter().filter_map(|figure| Some((figure, mean(figure, true)?, mean(figure, false)?)));
    let means: Vec<(Figure, f64, f64)> = means.collect();
    Block {
        signs,
        differences: means.iter().map(|&(figure, with, without)| (figure, with - without)).collect(),
        levels: means.iter().map(|&(figure, with, without)| (figure, f64::midpoint(with, without))).collect(),
    }
}

/// The value on the scale on which effects add up: the logarithm of a time, a share as it is.
fn scaled(figure: Figure, value: f64) -> f64 {
    match figure {
        Figure::P99 | Figure::P9999 | Figure::Max => value.max(LEAST_NS).ln(),
        Figure::Missed => value,
    }
}

/// The effects of all candidates, from the rounds of the screening.
///
/// An effect that is certain is subtracted before the others are judged, the largest first, because it is noise to them.
fn screening(proof: &Proof) -> Vec<Effect> {
    let blocks = blocks_of(proof, Compares::Halves);
    let count = proof.candidates.len();
    let mut certain: BTreeMap<usize, Estimates> = BTreeMap::new();
    let mut ranks = SignedRanks::new(screening_alpha(count));
    loop {
        let of = |index| estimates(&blocks, |block, figure| difference_by(block, figure, index, &certain), &mut ranks);
        let found: Vec<Estimates> = (0..count).map(of).collect();
        let strength = |&index: &usize| found[index].values().map(Estimate::strength).fold(0.0, f64::max);
        let open = (0..count).filter(|index| !certain.contains_key(index) && strength(index) > 0.0);
        match open.max_by(|a, b| strength(a).total_cmp(&strength(b))) {
            Some(next) => _ = certain.insert(next, found[next].clone()),
            None => {
                let halves = || proof.rounds.iter().filter(|round| round.compares == Compares::Halves);
                let judged = |(index, estimates)| {
                    let effect = effect(estimates);
                    let judgement = with_rare_harm(effect.judgement, halves(), |round| round.applied.contains(&index));
                    Effect { judgement, ..effect }
                };
                return found.iter().enumerate().map(judged).collect();
            }
        }
    }
}

/// The judgement, if what helps may also be rarely much worse: ranks do not see the size of a few late rounds. It is not
/// kept if the [`RARE`] rounds with the largest times all had it; by chance, that happens in 1 of 32 cases.
fn with_rare_harm<'a>(
    judgement: Judgement,
    rounds: impl Iterator<Item = &'a Round>,
    is_with: impl Fn(&Round) -> bool,
) -> Judgement {
    let mut by_max: Vec<(f64, bool)> =
        rounds.filter_map(|round| Some((*round.figures.get(&Figure::Max)?, is_with(round)))).collect();
    by_max.sort_by(|a, b| b.0.total_cmp(&a.0));
    let is_rarely_worse = by_max.len() > RARE && by_max[..RARE].iter().all(|(_, is_with)| *is_with);
    if judgement == Judgement::Helps && is_rarely_worse { Judgement::RareHarm } else { judgement }
}

/// The difference that a candidate made in a block, without the certain effects of the others.
fn difference_by(block: &Block, figure: Figure, index: usize, certain: &BTreeMap<usize, Estimates>) -> Option<f64> {
    let others = certain.iter().filter(|(other, _)| **other != index);
    let of_others = others.filter_map(|(&other, on)| Some(block.signs[other] * on.get(&figure)?.estimate));
    Some(block.signs[index] * (block.differences.get(&figure)? - of_others.sum::<f64>()))
}

/// Estimates for each figure, as differences on the scale of [`scaled`].
type Estimates = BTreeMap<Figure, Estimate>;

/// A difference on the scale of [`scaled`], with its interval.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    estimate: f64,
    low: f64,
    high: f64,
    /// Mean of the figure over all rounds, on the same scale.
    level: f64,
    blocks: u32,
}

impl Estimate {
    /// Distance of zero from the interval, in half widths of the interval; 0 if zero may be the truth.
    fn strength(&self) -> f64 {
        let outside = self.low.max(-self.high).max(0.0);
        outside / ((self.high - self.low) / 2.0).max(f64::MIN_POSITIVE)
    }

    /// The judgement on one figure.
    fn judgement(&self, figure: Figure) -> Judgement {
        let is_worth = match figure {
            Figure::Missed => self.estimate.abs() >= LEAST_RATIO * self.level,
            Figure::P99 | Figure::P9999 | Figure::Max => self.estimate.exp_m1().abs() >= LEAST_RATIO,
        };
        match (self.high < 0.0, self.low > 0.0) {
            (true, _) if is_worth => Judgement::Helps,
            (_, true) if is_worth => Judgement::Harms,
            _ => Judgement::NoDifference,
        }
    }

    /// The interval that readers see: the ratio of a time, the difference of a share.
    fn shown(&self, figure: Figure) -> Interval {
        let of = |value: f64| if figure == Figure::Missed { value } else { value.exp() };
        let end = |value: f64| value.is_finite().then(|| of(value));
        Interval { estimate: of(self.estimate), low: end(self.low), high: end(self.high), blocks: self.blocks }
    }
}

/// Estimates from the differences of blocks, for each figure that has any.
fn estimates(
    blocks: &[Block],
    difference: impl Fn(&Block, Figure) -> Option<f64>,
    ranks: &mut SignedRanks,
) -> Estimates {
    let of = |figure: Figure| {
        let differences: Vec<f64> = blocks.iter().filter_map(|block| difference(block, figure)).collect();
        let (estimate, low, high) = ranks.shift(&differences)?;
        let levels = blocks.iter().filter_map(|block| block.levels.get(&figure));
        let level = levels.sum::<f64>() / differences.len() as f64;
        Some((figure, Estimate { estimate, low, high, level, blocks: to_u32(differences.len()) }))
    };
    Figure::ALL.into_iter().filter_map(of).collect()
}

/// The effect with its judgement.
fn effect(estimates: &Estimates) -> Effect {
    Effect { judgement: judgement(estimates), on: shown(estimates), ..Effect::default() }
}

fn shown(estimates: &Estimates) -> BTreeMap<Figure, Interval> {
    estimates.iter().map(|(&figure, estimate)| (figure, estimate.shown(figure))).collect()
}

/// The judgement on all figures.
fn judgement(estimates: &Estimates) -> Judgement {
    let any = |wanted| estimates.iter().any(|(&figure, estimate)| estimate.judgement(figure) == wanted);
    // A figure that gets worse counts here even if the difference is small.
    let is_worse = estimates.values().any(|estimate| estimate.low > 0.0);
    match (any(Judgement::Helps), any(Judgement::Harms)) {
        (true, _) if is_worse => Judgement::Mixed,
        (true, _) => Judgement::Helps,
        (false, true) => Judgement::Harms,
        (false, false) => Judgement::NoDifference,
    }
}

/// The number of samples and the figures of a round: all series together that mean the same.
///
/// A percentile is absent if there are too few samples to separate it from the maximum.
#[must_use]
pub fn figures_of(record: &Record) -> (u64, RoundFigures) {
    let result = ScenarioResult::of(record, 0, None);
    let of_first: Vec<_> = result.main_roles().collect();
    let sum = |count: fn(&RoleResult) -> u64| of_first.iter().map(|role| count(role)).sum::<u64>();
    let (samples, absent) = (sum(|role| role.samples), sum(RoleResult::absent));
    let late = sum(|role| role.late.unwrap_or(0));
    let mut times = Histogram::default();
    of_first.iter().for_each(|role| times.merge(&RoleResult::with_times(&role.role, record).1));
    let percentile = |percent: f64| times.percentile_below_max(percent).map(|ns| ns as f64);
    let max = of_first.iter().filter_map(|role| role.max_ns).max().map(|ns| ns as f64);
    let missed = (samples + absent > 0).then(|| (absent + late) as f64 / (samples + absent) as f64);
    let figures = [
        (Figure::P99, percentile(99.0)),
        (Figure::P9999, percentile(99.99)),
        (Figure::Max, max),
        (Figure::Missed, missed),
    ];
    (samples, figures.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect())
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use record::{Audio, CAPTURE, Capture, Interrupts, Listener, Series, SeriesKind, Stream, Talker, Times};

    use super::*;

    fn of(values: impl IntoIterator<Item = i64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    /// A series of 200 wake-ups, all 5 ns late, with figures of this kind.
    fn series(role: &str, kind: SeriesKind) -> Series {
        let wake_ups = of([5; 200]);
        Series {
            role: role.to_owned(),
            cpu: Some(0),
            period_ns: 1_000_000,
            kind,
            samples: 200,
            max_ns: Some(5),
            raw: wake_ups.clone(),
            corrected: wake_ups,
            ..Series::default()
        }
    }

    fn figures(series: Vec<Series>, capture: Option<Capture>) -> (u64, Vec<(Figure, f64)>) {
        let (samples, figures) = figures_of(&Record { series, capture, ..Record::default() });
        (samples, figures.into_iter().collect())
    }

    #[test]
    fn audio_is_judged_by_its_completion_times_and_xruns() {
        let completion = Times { max_ns: 90_000, histogram: of((1..=200).map(|_| 40_000)), ..Times::default() };
        let audio = Audio { played: 200, xruns: 3, lost: 7, completion: Some(completion), ..Audio::default() };
        let (samples, figures) = figures(vec![series(record::AUDIO, SeriesKind::Audio(Box::new(audio)))], None);
        assert_eq!(samples, 200);
        let [(Figure::P99, p99), (Figure::Max, max), (Figure::Missed, missed)] = figures[..] else {
            panic!("{figures:?}")
        };
        assert!((40_000.0..40_100.0).contains(&p99), "{p99}");
        assert_eq!((max, missed), (90_000.0, 3.0 / 200.0));
    }

    #[test]
    fn a_stream_is_judged_by_its_talker() {
        let talker = Talker {
            frames: 196,
            late: 2,
            missed_slots: 3,
            refused: 1,
            max_delta_ns: Some(70_000),
            send: of([20_000; 196]),
            ..Talker::default()
        };
        let listener = Listener { frames: 100, lost: 90, interval: of([900_000; 100]), ..Listener::default() };
        let talker = series("talker", SeriesKind::Stream(Stream::Talker(Box::new(talker))));
        let listener = series("listener", SeriesKind::Stream(Stream::Listener(Box::new(listener))));
        let capture = Capture { frames: 50, late: Some(40), spacing: of([800_000; 50]), ..Capture::default() };
        let observer = series(CAPTURE, SeriesKind::Capture);
        let (samples, figures) = figures(vec![listener, observer, talker], Some(capture));
        assert_eq!(samples, 196);
        let [(Figure::P99, p99), (Figure::Max, max), (Figure::Missed, missed)] = figures[..] else {
            panic!("{figures:?}")
        };
        assert!((20_000.0..20_050.0).contains(&p99), "{p99}");
        assert_eq!((max, missed), (70_000.0, 6.0 / 200.0));
    }

    #[test]
    fn a_lone_listener_is_judged_by_its_gaps_and_lost_frames() {
        let listener = Listener {
            frames: 190,
            lost: 10,
            max_gap_ns: Some(3_000_000),
            interval: of([1_000_000; 190]),
            ..Listener::default()
        };
        let listener = series("listener", SeriesKind::Stream(Stream::Listener(Box::new(listener))));
        let (samples, figures) = figures(vec![listener], None);
        let [(Figure::P99, p99), (Figure::Max, max), (Figure::Missed, missed)] = figures[..] else {
            panic!("{figures:?}")
        };
        assert!((1_000_000.0..1_002_000.0).contains(&p99), "{p99}");
        assert_eq!((samples, max, missed), (190, 3_000_000.0, 10.0 / 200.0));
    }

    #[test]
    fn lost_and_unanswered_interrupts_are_missed() {
        let interrupts = Interrupts { lost: 6, unanswered: 2, ..Interrupts::default() };
        let (samples, figures) =
            figures(vec![series(record::INTERRUPT, SeriesKind::Interrupts(Box::new(interrupts)))], None);
        assert_eq!(samples, 200);
        assert_eq!(figures, [(Figure::P99, 5.0), (Figure::Max, 5.0), (Figure::Missed, 8.0 / 208.0)]);
    }
}
