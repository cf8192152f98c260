//! The order of the rounds of two sides in time, and the part of their difference that a drift of the machine can be.
//!
//! Each machine has its own rounds, because machines do not drift together. The rounds of a side have a weight of 1 together, those
//! of A a negative one, so that the weighted sum of all levels is the difference of the sides. The sum of the weights until a
//! moment says how much a change of the level at this moment adds to the difference: 0 if both sides had the same share of their
//! rounds until then, 1 if all rounds of a side came before and those of the other after it.

use std::collections::BTreeSet;

use record::versus::RoundOrder;

use crate::ranks::RankSums;

/// Sides of which a walk of the level can become so many times more of a difference (as a variance) than in random order were
/// measured in blocks.
const BLOCKS: f64 = 1.5;
/// If the sides were measured in blocks, a difference counts if it is so many times larger than the drift between the halves of a
/// side makes likely.
const DRIFT: f64 = 3.0;
/// A walk can be so many times larger between the sides than between the halves of a side, for their exposures, if one side follows
/// the other. The walk between the halves is then a part of that between the sides.
const WALK: f64 = std::f64::consts::SQRT_2;
/// The same for sides in blocks, where both are independent.
const WALK_IN_BLOCKS: f64 = 2.0;
/// If the sides alternate, always with the same one first, a difference counts if it is so many times larger than the trend from
/// one run to the next.
const TREND: f64 = 2.0;

/// When and where a round was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The start as `in_order` of the sides writes it; empty if unknown.
    pub at: String,
    pub host: Option<String>,
    /// True for a file of another tool.
    pub is_imported: bool,
}

/// A round in time.
#[derive(Debug, Clone, Copy)]
struct Run {
    is_b: bool,
    /// Its place among the rounds of its side, as they were given.
    index: usize,
    /// Seconds, or a number of rounds without dates.
    at: f64,
}

/// The rounds of two sides in time.
#[derive(Debug, Clone)]
pub struct Timeline {
    pub order: RoundOrder,
    /// The runs of each machine that both sides have, in the order of time.
    machines: Vec<Vec<Run>>,
}

impl Timeline {
    /// The order of these rounds. `known` are all known runs of the machines, also of other sides.
    pub fn of(a: &[&Start], b: &[&Start], known: &[&Start]) -> Self {
        let shared = Shared::of(a, b);
        let is_shared = |start: &&&Start| shared.contains(start);
        let all: Vec<&Start> = a.iter().chain(b).filter(is_shared).copied().collect();
        if all.is_empty() {
            return Self { order: RoundOrder::Unknown, machines: Vec::new() };
        }
        let is_timed = is_comparable(&all);
        let between = known.len().saturating_sub(a.len() + b.len());
        let places = if is_timed { None } else { Some((places(a, 0), places(b, a.len() + between))) };
        let run = |is_b: bool, index: usize, start: &Start| {
            let at = match &places {
                Some((of_a, of_b)) => (if is_b { of_b } else { of_a })[index] as f64,
                None => seconds(&start.at),
            };
            Run { is_b, index, at }
        };
        let side = |of: &[&Start], is_b: bool, machine: Option<&str>| -> Vec<Run> {
            let of_machine = of.iter().enumerate().filter(|(_, start)| shared.is_of(start, machine));
            of_machine.map(|(index, start)| run(is_b, index, start)).collect()
        };
        let machines = shared.machines().into_iter().map(|machine| {
            let mut runs = [side(a, false, machine), side(b, true, machine)].concat();
            runs.sort_by(|a, b| a.at.total_cmp(&b.at));
            if is_timed {
                let others =
                    known.iter().filter(|start| shared.is_of(start, machine) && is_comparable(&[start, all[0]]));
                limit_pauses(&mut runs, others.map(|start| seconds(&start.at)).collect());
            }
            runs
        });
        let machines: Vec<Vec<Run>> = machines.collect();
        // Rounds on machines of one side only are in no pair.
        let is_whole = all.len() == a.len() + b.len();
        let order = if is_timed { order(&machines, is_whole) } else { RoundOrder::Untimed };
        Self { order, machines }
    }

    /// The rounds with these values; `value` gets true for side B, and the place of a round in its side. Of pairs, only whole ones
    /// are kept.
    pub fn with(&self, value: impl Fn(bool, usize) -> Option<f64>) -> Vec<Machine> {
        let valued = |run: &Run| Some(Valued { is_b: run.is_b, at: run.at, value: value(run.is_b, run.index)? });
        let of = |runs: &Vec<Run>| {
            let runs: Vec<Valued> = match self.is_paired() {
                true => {
                    let pairs = runs.chunks(2).filter_map(|pair| pair.iter().map(valued).collect::<Option<Vec<_>>>());
                    pairs.flatten().collect()
                }
                false => runs.iter().filter_map(valued).collect(),
            };
            Machine { runs }
        };
        // Without a value of the other side, a drift is no difference of the sides.
        let has = |machine: &Machine, is_b: bool| machine.runs.iter().any(|run| run.is_b == is_b);
        self.machines.iter().map(of).filter(|machine| has(machine, false) && has(machine, true)).collect()
    }

    pub fn is_paired(&self) -> bool {
        matches!(self.order, RoundOrder::Alternating | RoundOrder::AlternatingSameFirst)
    }
}

/// The machines that both sides have.
struct Shared<'a> {
    /// True if a file does not name its machine, so that all can be of one.
    is_one: bool,
    hosts: BTreeSet<&'a str>,
}

impl<'a> Shared<'a> {
    fn of(a: &[&'a Start], b: &[&'a Start]) -> Self {
        let all = || a.iter().chain(b);
        let is_one = all().any(|start| start.is_imported) && all().any(|start| start.host.is_none());
        let hosts = |side: &[&'a Start]| -> BTreeSet<&'a str> {
            side.iter().filter_map(|start| start.host.as_deref()).collect()
        };
        Self { is_one, hosts: &hosts(a) & &hosts(b) }
    }

    fn contains(&self, start: &Start) -> bool {
        self.is_one || start.host.as_deref().is_some_and(|host| self.hosts.contains(host))
    }

    /// The machines; `None` is the only one.
    fn machines(&self) -> Vec<Option<&'a str>> {
        if self.is_one { vec![None] } else { self.hosts.iter().copied().map(Some).collect() }
    }

    fn is_of(&self, start: &Start, machine: Option<&str>) -> bool {
        self.is_one || start.host.as_deref() == machine
    }
}

/// True if the order of these times as text is that of time: all in UTC, or all in a local time. A board without a clock that runs
/// while it is off starts in 1970, again and again.
fn is_comparable(starts: &[&Start]) -> bool {
    let is_time = |start: &&Start| {
        let at = &start.at;
        at.len() == starts[0].at.len() && at.contains('T') && at.as_str() >= "2000"
    };
    !starts.is_empty() && starts.iter().all(is_time)
}

/// The places of the rounds of a side from `first` on: in the order of their dates, or else as they were given.
fn places(side: &[&Start], first: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..side.len()).collect();
    if is_comparable(side) {
        order.sort_by(|&a, &b| side[a].at.cmp(&side[b].at));
    }
    let mut places = vec![first; side.len()];
    order.into_iter().enumerate().for_each(|(place, index)| places[index] += place);
    places
}

/// The seconds of a time of `in_order` of the sides; the zone of a local time does not matter for distances.
fn seconds(at: &str) -> f64 {
    let time: Option<jiff::civil::DateTime> = at.strip_suffix('Z').unwrap_or(at).parse().ok();
    let zoned = time.and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok());
    zoned.map_or(0.0, |zoned| zoned.timestamp().as_nanosecond() as f64 / 1e9)
}

/// Shortens pauses without a run: they count at most as long as all of `runs`. Machines drift between two days as well, but not
/// as much as they would in so many rounds. `known` are the times of all runs of this machine.
fn limit_pauses(runs: &mut [Run], mut known: Vec<f64>) {
    known.extend(runs.iter().map(|run| run.at));
    known.sort_by(f64::total_cmp);
    let steps: Vec<f64> = known.windows(2).map(|two| two[1] - two[0]).collect();
    let Some(usual) = super::median(steps.iter().copied().filter(|&step| step > 0.0).collect()) else { return };
    let most = usual * runs.len() as f64;
    for run in runs {
        let before = known.partition_point(|&at| at < run.at);
        run.at -= steps[..before].iter().map(|step| (step - most).max(0.0)).sum::<f64>();
    }
}

/// The order of the runs of all machines.
fn order(machines: &[Vec<Run>], is_whole: bool) -> RoundOrder {
    let changes = |runs: &Vec<Run>| runs.windows(2).filter(|two| two[0].is_b != two[1].is_b).count();
    let first_is_b = machines[0][0].is_b;
    let starts_alike = machines.iter().all(|runs| runs[0].is_b == first_is_b);
    let pairs = || machines.iter().flat_map(|runs| runs.chunks(2));
    let in_pairs = is_whole && pairs().all(|two| two.len() == 2 && two[0].is_b != two[1].is_b);
    match () {
        () if machines.iter().all(|runs| changes(runs) <= 1) && starts_alike => RoundOrder::OneAfterTheOther,
        () if in_pairs && pairs().all(|two| two[0].is_b == first_is_b) => RoundOrder::AlternatingSameFirst,
        () if in_pairs => RoundOrder::Alternating,
        () if machines.iter().any(|runs| is_in_blocks(runs)) => RoundOrder::InBlocks,
        () => RoundOrder::Mixed,
    }
}

/// True if a walk of the level becomes more of a difference of the sides than in random order.
fn is_in_blocks(runs: &[Run]) -> bool {
    let sides: Vec<(bool, f64)> = runs.iter().map(|run| (run.is_b, run.at)).collect();
    let count = |is_b: bool| sides.iter().filter(|side| side.0 == is_b).count() as f64;
    let (all, product) = (sides.len() as f64, count(false) * count(true));
    // The variance of a hypergeometric distribution: that of the number of rounds of A among the first ones.
    let expected = sides.windows(2).enumerate().map(|(index, two)| {
        let first = index as f64 + 1.0;
        first * (all - first) / ((all - 1.0) * product) * (two[1].1 - two[0].1)
    });
    Exposure::of(&sides).walk.powi(2) > BLOCKS * expected.sum::<f64>()
}

/// The effect of a drift on the difference of two sides.
#[derive(Debug, Clone, Copy)]
struct Exposure {
    /// Of a line that rises by 1 per unit of time: the distance of the middles of the sides.
    line: f64,
    /// Of a random walk whose steps have a variance of 1 per unit of time: the standard deviation.
    walk: f64,
}

impl Exposure {
    /// Of the rounds of two sides in the order of time: true for the second side.
    fn of(rounds: &[(bool, f64)]) -> Self {
        let count = |is_second: bool| rounds.iter().filter(|round| round.0 == is_second).count() as f64;
        let (first, second) = (count(false), count(true));
        let (mut weight, mut line, mut walk) = (0.0, 0.0, 0.0);
        for two in rounds.windows(2) {
            let step = two[1].1 - two[0].1;
            weight += if two[0].0 { 1.0 / second } else { -1.0 / first };
            line += weight * step;
            walk += weight * weight * step;
        }
        Self { line: line.abs(), walk: walk.sqrt() }
    }

    /// The factor from a difference of this exposure to the largest one that the same drift makes likely at another: if it is a
    /// line, or if it is a walk, whose differences vary by the factor `walk`.
    fn factor_to(self, other: Self, walk: f64) -> f64 {
        let part = |other: f64, own: f64| if own > 0.0 { other / own } else { 0.0 };
        DRIFT * part(other.line, self.line).max(walk * part(other.walk, self.walk))
    }
}

/// A round with its value.
#[derive(Debug, Clone, Copy)]
pub struct Valued {
    is_b: bool,
    at: f64,
    value: f64,
}

/// The values of the rounds of one machine, in the order of time.
#[derive(Debug, Clone)]
pub struct Machine {
    runs: Vec<Valued>,
}

/// The shift between the halves of a side, with its exposure to a drift.
struct Halves {
    shift: f64,
    exposure: Exposure,
}

impl Machine {
    /// The differences of neighbours.
    pub fn differences(&self) -> impl Iterator<Item = f64> {
        let of =
            |pair: &[Valued]| if pair[0].is_b { pair[0].value - pair[1].value } else { pair[1].value - pair[0].value };
        self.runs.chunks_exact(2).map(of)
    }

    fn exposure(&self) -> Exposure {
        Exposure::of(&self.runs.iter().map(|run| (run.is_b, run.at)).collect::<Vec<_>>())
    }

    /// The halves of a side; `None` of a single value.
    fn halves(&self, is_b: bool, sums: &mut RankSums) -> Option<Halves> {
        let runs: Vec<&Valued> = self.runs.iter().filter(|run| run.is_b == is_b).collect();
        let half = runs.len() / 2;
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let (shift, ..) = sums.shift(&values[..half], &values[half..])?;
        let rounds: Vec<(bool, f64)> = runs.iter().enumerate().map(|(index, run)| (index >= half, run.at)).collect();
        Some(Halves { shift, exposure: Exposure::of(&rounds) })
    }

    /// The largest difference of the sides that a drift makes likely: as that between the halves of each side.
    fn drift(&self, walk: f64, sums: &mut RankSums) -> f64 {
        let between = self.exposure();
        let sides = [false, true].map(|is_b| self.halves(is_b, sums));
        let of = |halves: &Halves| halves.shift.abs() * halves.exposure.factor_to(between, walk);
        sides.iter().flatten().map(of).fold(0.0, f64::max)
    }

    /// The difference of the sides that a common trend of both makes likely.
    fn trend(&self, sums: &mut RankSums) -> f64 {
        let sides = [false, true].map(|is_b| self.halves(is_b, sums));
        let per_unit = |halves: &Halves| halves.shift / halves.exposure.line;
        let trends: Vec<f64> = sides.iter().flatten().map(per_unit).filter(|trend| trend.is_finite()).collect();
        TREND * (trends.iter().sum::<f64>() / trends.len().max(1) as f64).abs() * self.exposure().line
    }
}

/// The part of a difference that a drift of these machines can be.
pub fn drift(order: RoundOrder, machines: &[Machine], sums: &mut RankSums) -> f64 {
    let of = |machine: &Machine, sums: &mut RankSums| match order {
        RoundOrder::OneAfterTheOther | RoundOrder::Untimed => machine.drift(WALK, sums),
        RoundOrder::InBlocks => machine.drift(WALK_IN_BLOCKS, sums),
        RoundOrder::AlternatingSameFirst => machine.trend(sums),
        RoundOrder::Unknown | RoundOrder::Mixed | RoundOrder::Alternating => 0.0,
    };
    let runs: usize = machines.iter().map(|machine| machine.runs.len()).sum();
    let each = machines.iter().map(|machine| machine.runs.len() as f64 * of(machine, sums));
    each.sum::<f64>() / runs.max(1) as f64
}
