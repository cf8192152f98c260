//! Compares two sides of one or more records: differences in their conditions, and the effect on each figure.
//!
//! The unit of evidence is a round, that is a record: two runs of one machine differ by more than their samples say, so an
//! interval from the samples of one run would be too narrow. Times are compared as logarithms, by ranks, which need no
//! assumption about the tails. All intervals of a comparison hold together in 95 % of cases (Bonferroni's correction over
//! groups and figures).
//!
//! | module | contents |
//! |---|---|
//! | `side` | a side: the conditions and the figures of its rounds |
//! | `timeline` | the order of the rounds in time, and what a drift can be of a difference |
//! | `matched` | the groups of both sides that belong together |
//! | `pairs` | the pairs of CPUs of two matrices |
//! | `shift` | the shift between two sets of rounds, and the number of rounds that would show one |

mod matched;
mod pairs;
mod shift;
mod side;
#[cfg(test)]
mod simulation;
mod timeline;

use std::collections::BTreeMap;

use record::{
    Figures, Versus,
    versus::{
        Across, AcrossGroup, AcrossStep, Change, Differs, Measure, MeasureEffect, PassDifference, PercentileRatio,
        Side, VersusGroup,
    },
};

use self::{
    matched::{Matched, matched},
    shift::{Shift, Shifted},
    side::{Group, PERCENTILES, Round},
    timeline::{Start, Timeline},
};

pub use self::{
    shift::LEAST_NS,
    side::{Records, UNKNOWN, condition, condition_names, with_policy_and_period},
};

/// Probability that chance alone leads to a judgement, at most.
const ALPHA: f64 = 0.05;
/// The smallest relative difference that counts. Smaller ones are not judged.
const WORTH: f64 = 0.05;
/// From this ratio of the samples of a round on, their largest values cannot be compared.
const SAMPLES_RATIO: f64 = 1.25;
/// From this ratio on, the values of a percentile are of different shares of the samples.
const SHARES_RATIO: f64 = 1.1;
/// If a smaller share of the rounds of a side has a figure, the others can be worse.
const LEAST_WITH: f64 = 0.8;
/// The relative difference that the rounds should be able to show, unless the user names another.
pub const LEAST_RATIO: f64 = 0.2;

/// Compares side `b` with side `a`. `least_ratio` is the relative difference that the rounds should be able to show.
#[must_use]
pub fn versus(a: &Records, b: &Records, least_ratio: f64) -> Versus {
    one_of(1, &[a, b], least_ratio)
}

/// Compares each value of a condition with the one before it, and the last one with the first; the records of each are in
/// their order.
#[must_use]
pub fn across(what: &str, sides: &[(String, Records)], least_ratio: f64) -> Across {
    let steps = sides.len().saturating_sub(1);
    let ends = sides.first().zip(sides.last()).filter(|_| steps > 1);
    let comparisons = steps + usize::from(ends.is_some());
    let all: Vec<&Records> = sides.iter().map(|(_, records)| records).collect();
    let step = |(index, (value, records)): (usize, &(String, Records))| AcrossStep {
        value: value.clone(),
        rounds: records.len() as u64,
        uneven: records.uneven(),
        left_out: records.side.left_out.clone(),
        caveats: records.side.caveats.clone(),
        groups: records.groups.iter().map(medians).collect(),
        versus: index.checked_sub(1).map(|before| Box::new(one_of(comparisons, &all[before..=index], least_ratio))),
    };
    Across {
        schema: record::versus::ACROSS_SCHEMA.to_owned(),
        what: what.to_owned(),
        steps: sides.iter().enumerate().map(step).collect(),
        overall: ends.map(|_| Box::new(one_of(comparisons, &all, least_ratio))),
        ..Across::default()
    }
}

/// Shows records together, one a side, without comparing them.
#[must_use]
pub fn overlay(sides: &[(String, Records)]) -> Across {
    let step = |(value, records): &(String, Records)| AcrossStep {
        value: value.clone(),
        rounds: records.len() as u64,
        uneven: records.uneven(),
        left_out: records.side.left_out.clone(),
        caveats: records.side.caveats.clone(),
        groups: records.groups.iter().map(medians).collect(),
        versus: None,
    };
    Across {
        schema: record::versus::ACROSS_SCHEMA.to_owned(),
        what: "record".to_owned(),
        steps: sides.iter().map(step).collect(),
        ..Across::default()
    }
}

/// The medians of the rounds of a group.
fn medians(group: &Group) -> AcrossGroup {
    let of = |measure: Measure| Some((measure, level(group, measure).filter(|_| lacking(group, measure).is_none())?));
    AcrossGroup {
        conditions: group.conditions.clone(),
        rounds: group.rounds.len() as u64,
        medians: Measure::ALL.into_iter().filter_map(of).collect(),
        histogram: group.histogram.clone(),
        beyond: group.beyond,
        maxima: group.maxima.clone(),
    }
}

/// The median of the rounds; `None` if it is unknown, such as above the last cell of imported histograms.
fn level(group: &Group, measure: Measure) -> Option<f64> {
    median(group.rounds.iter().filter_map(|round| round.value(measure)).collect()).filter(|median| median.is_finite())
}

/// Compares the last side with the first as one of so many comparisons, whose intervals are right together. The sides in between
/// were measured between both.
fn one_of(comparisons: usize, sides: &[&Records], least_ratio: f64) -> Versus {
    let (a, b) = (sides[0], sides[sides.len() - 1]);
    let known: Vec<&Start> = sides.iter().flat_map(|side| &side.starts).collect();
    let order = Timeline::of(&a.starts.iter().collect::<Vec<_>>(), &b.starts.iter().collect::<Vec<_>>(), &known).order;
    let Matched { pairs, alone, ambiguous } = matched(&a.groups, &b.groups);
    let same_tools = a.tools() == b.tools();
    let tests: usize =
        pairs.iter().map(|(a, b)| Measure::ALL.into_iter().filter(|&m| is_judged(a, b, m, same_tools)).count()).sum();
    let mut shift = Shift::new(ALPHA / (tests * comparisons).max(1) as f64, least_ratio);
    let groups: Vec<VersusGroup> = pairs.iter().map(|(a, b)| compared(a, b, &known, same_tools, &mut shift)).collect();
    let loads: Vec<[Option<Vec<String>>; 2]> =
        pairs.iter().map(|(a, b)| [a, b].map(|group| group.conditions.loads.clone())).collect();
    Versus {
        schema: record::versus::VERSUS_SCHEMA.to_owned(),
        a: a.to_side(),
        b: b.to_side(),
        order,
        passes: passes(&a.side, &b.side),
        differs: if a.is_empty() || b.is_empty() { Vec::new() } else { side::differs(a, b) },
        change: Change::of_all(&groups.iter().map(|group| group.change).collect::<Vec<_>>()),
        groups,
        pairs: pairs::compared(&a.pairs, &b.pairs, &loads),
        alone,
        ambiguous,
        least_ratio,
        least_rounds: shift.least(),
        ..Versus::default()
    }
}

/// The difference of the shares of records that pass; `None` if a side has no verdict.
///
/// The interval is Newcombe's from those of Wilson (Statistics in Medicine 17, 1998, method 10).
fn passes(a: &Side, b: &Side) -> Option<PassDifference> {
    let (ours, low_a, high_a) = share(a.passed, a.judged)?;
    let (theirs, low_b, high_b) = share(b.passed, b.judged)?;
    let estimate = theirs - ours;
    Some(PassDifference {
        estimate,
        low: estimate - (theirs - low_b).hypot(high_a - ours),
        high: estimate + (high_b - theirs).hypot(ours - low_a),
    })
}

/// A share with the ends of Wilson's interval, at 95 %; `None` of nothing.
fn share(part: u64, whole: u64) -> Option<(f64, f64, f64)> {
    /// The 97.5th percentile of the normal distribution.
    const Z: f64 = 1.959_964;
    if whole == 0 {
        return None;
    }
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some((share, middle - half, middle + half))
}

/// True if the figure of these groups is judged.
fn is_judged(a: &Group, b: &Group, measure: Measure, same_tools: bool) -> bool {
    let has = |group: &Group| group.rounds.iter().any(|round| round.values.contains_key(&measure));
    has(a) && has(b) && why_not(a, b, measure, same_tools).is_empty()
}

/// True if a round has this percentile above its known values. Without these rounds, the others would look better than all.
fn is_beyond(group: &Group, measure: Measure) -> bool {
    group.rounds.iter().any(|round| round.value(measure) == Some(f64::INFINITY))
}

/// True if rounds lack an unknown number of large samples, and their numbers of samples differ so much that this percentile can be
/// among these: by a quarter of the samples above it.
fn may_lack_samples(a: &Group, b: &Group, percent: f64) -> bool {
    const PART: f64 = 0.25;
    let rounds = || a.rounds.iter().chain(&b.rounds);
    let samples = || rounds().map(|round| round.samples.unwrap_or_default());
    let (least, most) = (samples().min().unwrap_or(0), samples().max().unwrap_or(0));
    let lacking = (most - least) as f64 / most.max(1) as f64;
    rounds().any(|round| round.beyond_unknown) && lacking > PART * (1.0 - percent / 100.0)
}

/// Number of rounds that have a figure, if most others lack it: rounds that lost samples can be the worst ones. `None` if nearly all
/// have it.
fn lacking(group: &Group, measure: Measure) -> Option<u64> {
    let with = rounds_with(group, measure);
    ((with as f64) < LEAST_WITH * group.rounds.len() as f64).then_some(with)
}

/// Number of rounds that have a figure.
fn rounds_with(group: &Group, measure: Measure) -> u64 {
    group.rounds.iter().filter(|round| round.value(measure).is_some()).count() as u64
}

/// True if the values of this percentile are of different shares of the samples: the second largest of 20 000 is a higher percentile
/// than the second largest of 10 000.
fn is_of_other_share(a: &Group, b: &Group, percent: f64) -> bool {
    let share = |group: &Group| median(group.rounds.iter().filter_map(|round| round.share_from(percent)).collect());
    share(a).zip(share(b)).is_some_and(|(a, b)| a.max(b) > SHARES_RATIO * a.min(b))
}

/// True if a round has a time before the deadline, which has no ratio. Shares are never negative.
fn is_early(group: &Group, measure: Measure) -> bool {
    group.rounds.iter().filter_map(|round| round.value(measure)).any(|value| value < -LEAST_NS)
}

/// True if threads of these roles measure the same time. That of an interrupt or of a thread of the kernel is a part of the
/// time until a program runs. In files of several phases, the phase precedes the role.
fn is_same_time(a: &str, b: &str) -> bool {
    const PARTS: [&str; 6] = ["timerlat/irq", "timerlat/thread", "timerlat/all", "irq", "sirq", "kernel"];
    let is_program = |role: &str| {
        !PARTS.iter().any(|part| role.strip_suffix(part).is_some_and(|phase| phase.is_empty() || phase.ends_with('-')))
    };
    match (a, b) {
        ("", role) | (role, "") => is_program(role),
        _ => a == b,
    }
}

/// Why a figure that both groups have is not judged; empty if it is.
fn why_not(a: &Group, b: &Group, measure: Measure, same_tools: bool) -> String {
    let samples = |group: &Group| median(group.rounds.iter().filter_map(|round| Some(round.samples? as f64)).collect());
    let depends_on_samples = matches!(measure, Measure::Max | Measure::Jitter);
    if !is_same_time(&a.conditions.role, &b.conditions.role) {
        let name = |group: &Group| {
            if group.conditions.role.is_empty() { "a wake-up".to_owned() } else { group.conditions.role.clone() }
        };
        return format!("{} and {} are different times", name(a), name(b));
    }
    if is_beyond(a, measure) || is_beyond(b, measure) {
        return "some rounds have it beyond the last cell of their histogram".to_owned();
    }
    if side::percent(measure).is_some_and(|percent| may_lack_samples(a, b, percent)) {
        return "the files lack the samples beyond their last cells, of which there can be more on one side: their numbers of samples differ"
            .to_owned();
    }
    if let Some((side, with, all)) = [("A", a), ("B", b)]
        .into_iter()
        .find_map(|(side, group)| Some((side, lacking(group, measure)?, group.rounds.len())))
    {
        return format!("only {with} of {all} rounds of {side} have it, and the others may be worse");
    }
    if side::percent(measure).is_some_and(|percent| is_of_other_share(a, b, percent)) {
        return "the rounds of one side are longer, so that it is a smaller share of their samples".to_owned();
    }
    if is_early(a, measure) || is_early(b, measure) {
        return "times before the deadline have no ratio".to_owned();
    }
    let is_percentile = !matches!(measure, Measure::Max | Measure::Jitter | Measure::Missed);
    if is_percentile && !same_tools && a.conditions.probe == "noise" {
        return "the tools count gaps from different lengths on".to_owned();
    }
    match (samples(a), samples(b)) {
        (Some(a), Some(b)) if depends_on_samples && a.max(b) > SAMPLES_RATIO * a.min(b) => {
            "the rounds of one side are longer, which finds larger ones".to_owned()
        }
        _ => String::new(),
    }
}

/// Why the resolution of a side hides whether there is a difference of `least_ratio`; `None` if it does not.
fn hidden(a: &Group, b: &Group, measure: Measure, least_ratio: f64) -> Option<String> {
    let resolution_ns = a.resolution_ns(measure).max(b.resolution_ns(measure));
    let (a_ns, b_ns) = level(a, measure).zip(level(b, measure)).filter(|_| measure != Measure::Missed)?;
    let difference_ns = (a_ns - b_ns).abs();
    // A narrower cell hides no difference that counts.
    let is_coarse = resolution_ns > WORTH * a_ns.min(b_ns).max(LEAST_NS);
    let resolution = crate::format_ns(crate::rounded_ns(two_digits(resolution_ns)));
    match () {
        // Values of a histogram are above the ends of cells by at most 0.1 %.
        () if difference_ns > resolution_ns * 1.02 => None,
        () if difference_ns > 0.0 && is_coarse => {
            Some(format!("the difference is within the resolution of a side, {resolution}"))
        }
        () if resolution_ns > least_ratio * a_ns.max(LEAST_NS) => Some(format!(
            "both are in one cell of {resolution}, which is wider than the difference to find: measure with a finer resolution"
        )),
        () => None,
    }
}

/// The value with two significant digits, as the width of a cell in a histogram is known.
fn two_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 1.0);
    (value / unit).round() * unit
}

fn compared(a: &Group, b: &Group, known: &[&Start], same_tools: bool, shift: &mut Shift) -> VersusGroup {
    let timeline = Timeline::of(&a.starts(), &b.starts(), known);
    let of = |measure: Measure| {
        let why_not = why_not(a, b, measure, same_tools);
        let hidden = hidden(a, b, measure, shift.least_ratio()).filter(|_| why_not.is_empty());
        let is_hidden = hidden.is_some();
        let mut effect = effect(a, b, measure, &timeline, hidden.unwrap_or(why_not), shift)?;
        if is_hidden && effect.change == Change::NotComparable {
            effect.change = Change::NoDifference;
        }
        let change = (effect.why_not.is_empty() || is_hidden).then_some(effect.change);
        Some((measure, effect, change))
    };
    let found: Vec<_> = Measure::ALL.into_iter().filter_map(of).collect();
    // A difference that the resolution hides is not shown.
    let changes: Vec<Change> = found.iter().filter_map(|(.., change)| *change).collect();
    let effects: BTreeMap<Measure, MeasureEffect> =
        found.into_iter().map(|(measure, effect, _)| (measure, effect)).collect();
    VersusGroup {
        a: a.conditions.clone(),
        b: b.conditions.clone(),
        rounds_a: a.rounds.len() as u64,
        rounds_b: b.rounds.len() as u64,
        differs: differs(a, b),
        percentiles: percentiles(a, b, &timeline),
        histogram_a: a.histogram.clone(),
        histogram_b: b.histogram.clone(),
        beyond_a: a.beyond,
        beyond_b: b.beyond,
        maxima_a: a.maxima.clone(),
        maxima_b: b.maxima.clone(),
        change: Change::of_all(&changes),
        absent: Measure::ALL.into_iter().filter_map(|measure| Some((measure, why_absent(a, b, measure)?))).collect(),
        effects,
    }
}

/// Why a figure that a side has is not in the comparison.
fn why_absent(a: &Group, b: &Group, measure: Measure) -> Option<String> {
    let has = |group: &Group| group.rounds.iter().any(|round| round.value(measure).is_some());
    if !has(a) && !has(b) {
        return None;
    }
    let (name, group) = [("A", a), ("B", b)].into_iter().find(|(_, group)| level(group, measure).is_none())?;
    Some(if has(group) {
        format!("most rounds of {name} have it beyond the last cell of their histogram")
    } else if side::percent(measure).is_some() && !group.histogram.is_empty() {
        format!("{name} has too few samples for it")
    } else {
        format!("{name} does not contain it")
    })
}

/// The effect on one figure; `None` if a side does not have it.
fn effect(
    a: &Group,
    b: &Group,
    measure: Measure,
    timeline: &Timeline,
    why_not: String,
    shift: &mut Shift,
) -> Option<MeasureEffect> {
    let (a_level, b_level) = (level(a, measure)?, level(b, measure)?);
    if [a, b].into_iter().any(|group| is_beyond(group, measure) || is_early(group, measure)) {
        let change = Change::NotComparable;
        return Some(MeasureEffect {
            a: a_level,
            b: b_level,
            estimate: (scaled(measure, b_level) - scaled(measure, a_level)).exp(),
            change,
            rounds: rounds_if_some_lack(a, b, measure),
            why_not,
            ..MeasureEffect::default()
        });
    }
    let value = |round: &Round| round.values.get(&measure).map(|&value| scaled(measure, value));
    let (ours, theirs) = (values(a, value), values(b, value));
    let found = between(a, b, timeline, value, shift)?;
    let unscaled = |value: f64| if measure == Measure::Missed { value } else { value.exp() };
    let end = |value: f64| value.is_finite().then(|| unscaled(value));
    let is_worth = match measure {
        Measure::Missed => found.estimate.abs() >= WORTH * f64::midpoint(a_level, b_level),
        _ => found.estimate.exp_m1().abs() >= WORTH,
    };
    let change = match () {
        () if !found.low.is_finite() => Change::TooFewRounds,
        () if (found.low > 0.0 || found.high < 0.0) && is_worth && !why_not.is_empty() => Change::NotComparable,
        () if found.low > 0.0 && is_worth => Change::Worse,
        () if found.high < 0.0 && is_worth => Change::Better,
        () => Change::NoDifference,
    };
    let rounds_needed =
        if why_not.is_empty() && measure != Measure::Missed { shift.needed(&ours, &theirs, found) } else { None };
    Some(MeasureEffect {
        a: a_level,
        b: b_level,
        estimate: unscaled(found.estimate),
        low: end(found.low),
        high: end(found.high),
        change,
        rounds_needed,
        rounds: rounds_if_some_lack(a, b, measure),
        why_not,
    })
}

/// Number of rounds of each side that have a figure; `None` if all have it.
fn rounds_if_some_lack(a: &Group, b: &Group, measure: Measure) -> Option<[u64; 2]> {
    let with = [a, b].map(|group| rounds_with(group, measure));
    (with != [a, b].map(|group| group.rounds.len() as u64)).then_some(with)
}

/// The values of the rounds that have one.
fn values(group: &Group, value: impl Fn(&Round) -> Option<f64>) -> Vec<f64> {
    group.rounds.iter().filter_map(value).collect()
}

/// The shift of a value of the rounds; `None` if a side does not have it.
fn between(
    a: &Group,
    b: &Group,
    timeline: &Timeline,
    value: impl Fn(&Round) -> Option<f64>,
    shift: &mut Shift,
) -> Option<Shifted> {
    let machines = timeline.with(|is_b, index| value(&if is_b { b } else { a }.rounds[index]));
    shift.between(&values(a, &value), &values(b, &value), timeline.order, &machines)
}

/// The ratio of each percentile, with an interval of its own.
fn percentiles(a: &Group, b: &Group, timeline: &Timeline) -> Vec<PercentileRatio> {
    let mut shift = Shift::new(ALPHA, LEAST_RATIO);
    let is_known = |index: usize, percent: f64| {
        let has_all = |group: &&Group| {
            let with = group.rounds.iter().filter(|round| round.percentiles[index].is_some()).count();
            with as f64 >= LEAST_WITH * group.rounds.len() as f64
                && group.rounds.iter().all(|round| !round.is_beyond(percent))
        };
        [a, b].iter().all(has_all) && !is_of_other_share(a, b, percent)
    };
    let ratio = |(index, &percent): (usize, &f64)| {
        if !is_known(index, percent) {
            return None;
        }
        let found = between(a, b, timeline, |round| Some(shift::logarithm(round.percentiles[index]?)), &mut shift)?;
        let end = |value: f64| value.is_finite().then(|| value.exp());
        Some(PercentileRatio { percent, estimate: found.estimate.exp(), low: end(found.low), high: end(found.high) })
    };
    PERCENTILES.iter().enumerate().filter_map(ratio).collect()
}

/// The value on the scale on which effects add up: the logarithm of a time, a share as it is.
fn scaled(measure: Measure, value: f64) -> f64 {
    if measure == Measure::Missed { value } else { shift::logarithm(value) }
}

/// The middle value; `None` without values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}

/// Different conditions of two groups.
fn differs(a: &Group, b: &Group) -> Vec<Differs> {
    let time = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), crate::format_unsigned_ns);
    let loads = |figures: &Figures| match figures.loads.as_deref() {
        None => "unknown".to_owned(),
        Some([]) => "none".to_owned(),
        Some(loads) => loads.join(", "),
    };
    let text = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
    let flag = |flag: Option<bool>, [yes, no]: [&str; 2]| match flag {
        None => "unknown".to_owned(),
        Some(true) => yes.to_owned(),
        Some(false) => no.to_owned(),
    };
    let of = |figures: &Figures| {
        [
            ("period", time(figures.period_ns)),
            ("loads", loads(figures)),
            ("role", if figures.role.is_empty() { "the only one".to_owned() } else { figures.role.clone() }),
            ("policy", text(&figures.policy)),
            ("CPU", flag(figures.isolated, ["isolated", "not isolated"])),
            ("threads", flag(figures.together, ["on one CPU", "on separate CPUs"])),
        ]
    };
    let pairs = of(&a.conditions).into_iter().zip(of(&b.conditions)).filter(|((_, a), (_, b))| a != b);
    pairs.map(|((what, a), (_, b))| Differs { what: what.to_owned(), a: vec![a], b: vec![b] }).collect()
}

#[cfg(test)]
mod tests {
    use record::versus::RoundOrder;

    use super::*;

    #[test]
    fn the_difference_of_shares_has_the_interval_of_the_publication() {
        // Newcombe 1998, table II, case (a) 56/70 - 48/80: method 10 gives 0.0524 to 0.3339.
        let side = |passed, judged| Side { passed, judged, ..Side::default() };
        let found = passes(&side(48, 80), &side(56, 70)).unwrap();
        assert!((found.estimate - 0.2).abs() < 1e-9);
        assert!((found.low - 0.0524).abs() < 1e-4 && (found.high - 0.3339).abs() < 1e-4, "{found:?}");
        assert_eq!(passes(&side(0, 0), &side(1, 1)), None);
    }

    /// Rounds of another tool: 10 000 samples each. `beyond` of them are above the last cell, the others are 5 us.
    fn rounds(role: &str, beyond: &[u64]) -> Records {
        let mut side = Records::default();
        for (round, beyond) in beyond.iter().enumerate() {
            let mut histogram = record::Histogram::default();
            histogram.add(5_000, 10_000 - beyond);
            let figures = Figures {
                probe: record::TIMER.to_owned(),
                role: role.to_owned(),
                samples: Some(10_000),
                max_ns: Some(4_900),
                histogram: Some(histogram),
                ..Figures::default()
            };
            side.add(format!("{round}"), &of_other_tool(figures));
        }
        side
    }

    /// The record of a run of another tool with these figures.
    fn of_other_tool(figures: Figures) -> record::Record {
        let published = record::Published { figures: vec![figures], ..record::Published::default() };
        record::Record { published: Some(published), ..record::Record::default() }
    }

    #[test]
    fn percentiles_below_the_last_cell_are_compared_and_those_beyond_it_are_not_judged() {
        let found = versus(&rounds("", &[0; 8]), &rounds("", &[0, 0, 0, 0, 0, 50, 50, 50]), 0.2);
        let effects = &found.groups[0].effects;
        assert_eq!((effects[&Measure::P99].b, effects[&Measure::P99].why_not.as_str()), (4_900.0, ""));
        assert!(effects[&Measure::P999].why_not.contains("beyond the last cell"), "{:?}", effects[&Measure::P999]);
        assert_eq!((found.groups[0].beyond_a, found.groups[0].beyond_b), (0, 150));
        assert!(found.groups[0].percentiles.iter().all(|ratio| ratio.percent <= 99.0));
        let mostly = versus(&rounds("", &[0; 8]), &rounds("", &[50; 8]), 0.2);
        assert!(!mostly.groups[0].effects.contains_key(&Measure::P999), "most of the rounds do not know it");
        let together = overlay(&[("a".to_owned(), rounds("", &[50]))]);
        let group = &together.steps[0].groups[0];
        assert_eq!(
            (group.medians.contains_key(&Measure::P99), group.medians.contains_key(&Measure::P999)),
            (true, false)
        );
    }

    /// Files such as rows of a histogram lack the samples beyond their last cell, and the maximum.
    #[test]
    fn percentiles_are_not_judged_if_files_lack_different_numbers_of_samples() {
        let lacking = |ns: i64, samples: u64| {
            let mut side = Records::default();
            for round in 0..8 {
                let mut histogram = record::Histogram::default();
                histogram.add(ns + round * 10, samples);
                let figures = Figures {
                    probe: record::TIMER.to_owned(),
                    samples: Some(samples),
                    max_above_ns: Some(ns),
                    histogram: Some(histogram),
                    ..Figures::default()
                };
                side.add(format!("{round}"), &of_other_tool(figures));
            }
            side
        };
        let p99 = |a: u64, b: u64| {
            let found = versus(&lacking(300_000, a), &lacking(100_000, b), 0.2);
            let effect = &found.groups[0].effects[&Measure::P99];
            (effect.change, effect.why_not.contains("numbers of samples differ"))
        };
        assert_eq!(p99(10_000, 9_800), (Change::NotComparable, true));
        assert_eq!(p99(10_000, 10_000), (Change::Better, false));
    }

    #[test]
    fn an_absent_figure_has_a_reason() {
        let absent = |a: &Records, b: &Records| versus(a, b, 0.2).groups[0].absent.clone();
        let known = rounds("", &[0; 8]);
        assert_eq!(absent(&known, &known), BTreeMap::new());
        let mostly = absent(&known, &rounds("", &[50; 8]));
        let beyond = "most rounds of B have it beyond the last cell of their histogram";
        assert_eq!(mostly.get(&Measure::P999).map(String::as_str), Some(beyond));
        let mut few = known.clone();
        few.groups[0].rounds.iter_mut().for_each(|round| _ = round.values.remove(&Measure::P999));
        assert_eq!(absent(&few, &known)[&Measure::P999], "A has too few samples for it");
        few.groups[0].histogram = record::Histogram::default();
        assert_eq!(absent(&few, &known)[&Measure::P999], "A does not contain it");
    }

    #[test]
    fn times_before_the_deadline_have_no_ratio() {
        let of = |max_ns: f64| {
            let mut side = rounds("", &[0; 8]);
            let rounds = side.groups[0].rounds.iter_mut();
            rounds.for_each(|round| _ = round.values.insert(Measure::Max, max_ns));
            side
        };
        let effect = |a: f64, b: f64| versus(&of(a), &of(b), 0.2).groups[0].effects[&Measure::Max].clone();
        let reserves = effect(-380_000.5, -5_000.5);
        assert_eq!(
            (reserves.why_not.as_str(), reserves.change),
            ("times before the deadline have no ratio", Change::NotComparable)
        );
        assert_eq!(effect(-900.5, 5_000.5).change, Change::Worse, "times within 1 us count as 1 us");
    }

    /// Files of several measurements in one side are compared by group, and the side says which record has which group.
    #[test]
    fn records_of_a_side_can_have_different_groups() {
        let record = |probe: &str, phase: &str| {
            of_other_tool(Figures {
                probe: probe.to_owned(),
                phase: phase.to_owned(),
                max_ns: Some(5_000),
                ..Figures::default()
            })
        };
        let (timer, network) = (record("timer", "timer"), record("udp", "ping"));
        let side = |records: [(&str, &record::Record); 2]| {
            let mut side = Records::default();
            records.into_iter().for_each(|(name, record)| side.add(name.to_owned(), record));
            side
        };
        let a = side([("t1", &timer), ("n1", &network)]);
        let b = side([("n2", &network), ("t2", &timer)]);
        let found = versus(&a, &b, 0.2);
        let groups: Vec<_> =
            found.groups.iter().map(|of| (of.a.phase.as_str(), of.b.phase.as_str(), of.rounds_a)).collect();
        assert_eq!(groups, [("timer", "timer", 1), ("ping", "ping", 1)]);
        let uneven: Vec<_> = found.a.uneven.iter().map(|of| (of.group.as_str(), of.records.join(" "))).collect();
        assert_eq!(uneven, [("timer", "t1".to_owned()), ("ping", "n1".to_owned())]);
        let steps = across("kernel", &[("1".to_owned(), a), ("2".to_owned(), b)], 0.2).steps;
        assert_eq!((steps[1].uneven.len(), steps[1].groups[0].rounds, steps[1].rounds), (2, 1, 2));
        let even = side([("t1", &timer), ("t2", &timer)]);
        assert!(versus(&even, &even, 0.2).a.uneven.is_empty());
    }

    #[test]
    fn a_cell_hides_only_differences_that_count() {
        let of = |value_ns: i64, width_ns: i64| {
            let mut side = rounds("", &[0; 8]);
            let group = &mut side.groups[0];
            [2, 1, 0].iter().for_each(|cell| group.histogram.add(value_ns - cell * width_ns, 1));
            group.rounds.iter_mut().for_each(|round| _ = round.values.insert(Measure::P99, value_ns as f64));
            side
        };
        let why_not = |a_ns: i64, b_ns: i64, width_ns: i64| {
            let versus = versus(&of(a_ns, width_ns), &of(b_ns, width_ns), 0.2);
            versus.groups[0].effects[&Measure::P99].why_not.clone()
        };
        assert_eq!(why_not(8_060, 8_070, 20), "", "less than 1 %");
        assert_eq!(why_not(1_900, 2_040, 200), "the difference is within the resolution of a side, 200 ns");
    }

    #[test]
    fn a_resolution_is_rounded_to_two_digits() {
        assert_eq!(
            [1.0, 22.4, 101.0, 1_010.0, 1_180.0, 10_123.0].map(two_digits),
            [1.0, 22.0, 100.0, 1_000.0, 1_200.0, 10_000.0]
        );
    }

    /// Values of 1 us, 2 us and so on are counted as the ends of their cells.
    #[test]
    fn a_difference_of_one_cell_is_not_judged() {
        let of = |value_ns: i64| {
            let mut side = rounds("", &[0; 8]);
            let group = &mut side.groups[0];
            group.histogram.add(value_ns - 1_000, 1);
            group.histogram.add(value_ns, 1);
            group.rounds.iter_mut().for_each(|round| _ = round.values.insert(Measure::P99, value_ns as f64));
            side
        };
        let change = |a: i64, b: i64| versus(&of(a), &of(b), 0.2).groups[0].effects[&Measure::P99].clone();
        assert!(
            change(7_999, 6_999).why_not.contains("within the resolution of a side, "),
            "{:?}",
            change(7_999, 6_999)
        );
        assert_eq!(change(7_999, 5_999).change, Change::Better);
        let of_all = |a: i64, b: i64| versus(&of(a), &of(b), 0.2).groups[0].change;
        assert_eq!((of_all(7_999, 6_999), of_all(7_999, 5_999)), (Change::NoDifference, Change::Better));
        // 20 % of 3 us are less than a cell.
        let within = change(2_999, 2_999);
        assert!(within.why_not.starts_with("both are in one cell of 1 us, "), "{}", within.why_not);
        assert!(within.why_not.ends_with(": measure with a finer resolution"), "{}", within.why_not);
        assert_eq!(within.rounds_needed, None);
        assert_eq!((change(7_999, 7_999).change, change(7_999, 7_999).why_not.as_str()), (Change::NoDifference, ""));
    }

    #[test]
    fn gaps_of_two_tools_are_compared_by_the_longest() {
        let of = |tool: &str| {
            let mut side = rounds("", &[0; 8]);
            side.groups[0].conditions.probe = "noise".to_owned();
            side.conditions.insert("tool", [tool.to_owned()].into());
            side
        };
        let why_not = |a: &str, b: &str, measure: Measure| {
            versus(&of(a), &of(b), 0.2).groups[0].effects[&measure].why_not.clone()
        };
        assert!(why_not("oslat 2.4", "hwlatdetect", Measure::P99).contains("from different lengths"));
        assert_eq!(why_not("oslat 2.4", "hwlatdetect", Measure::Max), "");
        assert_eq!(why_not("oslat 2.4", "oslat 2.10", Measure::P99), "");
    }

    #[test]
    fn different_times_are_not_judged() {
        for (a, b, is_judged) in
            [("", "timerlat/user", true), ("", "timerlat/thread", false), ("irq", "", false), ("base", "servo", false)]
        {
            let found = versus(&rounds(a, &[0; 8]), &rounds(b, &[0; 8]), 0.2);
            let expected = if is_judged { Change::NoDifference } else { Change::NotComparable };
            assert_eq!(found.change, expected, "{a:?} {b:?}");
        }
    }

    /// The order of rounds with these starts, of other tools if so, each side on one machine.
    fn order_of(a: [&[&str]; 2], b: [&[&str]; 2], is_imported: bool) -> RoundOrder {
        let side = |[starts, hosts]: [&[&str]; 2]| {
            let mut side = Records::default();
            for (at, host) in starts.iter().zip(hosts.iter().cycle()) {
                let mut record = record::Record {
                    started_at: (*at).to_owned(),
                    state: record::State::Complete,
                    validity: record::Validity { valid: true, ..record::Validity::default() },
                    ..record::Record::default()
                };
                record.machine.hostname = (!host.is_empty()).then(|| (*host).to_owned());
                let figures = vec![Figures { max_ns: Some(5_000), ..Figures::default() }];
                record.published = is_imported.then(|| record::Published { figures, ..record::Published::default() });
                side.add((*at).to_owned(), &record);
            }
            side
        };
        versus(&side(a), &side(b), 0.2).order
    }

    #[test]
    fn files_without_times_are_judged_as_one_side_after_the_other() {
        let (utc, later) =
            (["2026-11-21T03:00:01Z", "2026-11-21T03:02:01Z"], ["2026-11-21T03:04:01Z", "2026-11-21T03:06:01Z"]);
        let (local, later_local) =
            (["2021-12-22T10:55:45", "2021-12-22T10:56:45"], ["2021-12-22T10:57:45", "2021-12-22T10:58:45"]);
        let not_ordered = ["Sat, 21 Nov 2026 03:00:01 +0000", ""];
        let (not_set, later_not_set) =
            (["1970-01-01T00:01:12Z", "1970-01-01T00:01:14Z"], ["1970-01-01T00:01:13Z", "1970-01-01T00:01:15Z"]);
        use RoundOrder::{OneAfterTheOther, Unknown, Untimed};
        for (a, b, hosts, is_imported, expected) in [
            (utc, later, ["x", "x"], false, OneAfterTheOther),
            (utc, later, ["x", "x"], true, OneAfterTheOther),
            (local, later_local, ["x", "x"], true, OneAfterTheOther),
            (utc, later_local, ["x", "x"], true, Untimed),
            (not_ordered, not_ordered, ["x", "x"], true, Untimed),
            (utc, not_ordered, ["x", "x"], true, Untimed),
            (not_set, later_not_set, ["x", "x"], true, Untimed),
            // Nobody knows the machines of latmus.
            (local, later_local, ["", ""], true, OneAfterTheOther),
            (not_ordered, not_ordered, ["", "x"], true, Untimed),
            // Two machines do not drift together.
            (utc, later, ["x", "y"], true, Unknown),
            (not_ordered, not_ordered, ["x", "y"], true, Unknown),
            (utc, later, ["x", "y"], false, Unknown),
            (utc, later, ["", ""], false, Unknown),
            // A board without a clock measures in 1970.
            (not_set, later_not_set, ["x", "x"], false, Untimed),
            (utc, not_set, ["x", "x"], false, Untimed),
            (not_set, later_not_set, ["x", "y"], false, Unknown),
        ] {
            let found = order_of([&a, &hosts[..1]], [&b, &hosts[1..]], is_imported);
            assert_eq!(found, expected, "{a:?} {b:?} {hosts:?} {is_imported}");
        }
    }

    #[test]
    fn a_drift_of_rounds_without_times_is_no_difference() {
        let side = |from: i64, host: &str| {
            let mut side = rounds("", &[0; 10]);
            for (round, at) in side.groups[0].rounds.iter_mut().zip(from..) {
                round.values.insert(Measure::Max, 5_000.5 + 200.0 * at as f64);
                // The clock of the board begins again with each boot, so these dates say nothing about the order.
                round.start.host = Some(host.to_owned());
                round.start.at = format!("1970-01-01T00:00:1{}.000000000Z", 7 * at % 10);
            }
            side
        };
        let change = |host: &str| versus(&side(0, "x"), &side(10, host), 0.2).groups[0].effects[&Measure::Max].change;
        assert_eq!((change("x"), change("y")), (Change::NoDifference, Change::Worse));
    }

    /// Rounds of the same machine on two boards, or with the figure missing in one of them, drift as well.
    #[test]
    fn a_drift_is_no_difference_on_two_boards_and_without_some_values() {
        let side = |from: usize| {
            let mut side = rounds("", &[0; 10]);
            side.starts.clear();
            for (index, round) in side.groups[0].rounds.iter_mut().enumerate() {
                let run = from + index;
                round.values.insert(Measure::Max, 5_000.5 * (0.03 * run as f64).exp());
                let at = format!("2026-01-01T00:{run:02}:00.000000000Z");
                round.start = Start { at, host: Some(format!("board-{}", run % 2)), is_imported: true };
                side.starts.push(round.start.clone());
            }
            side
        };
        let found = versus(&side(0), &side(10), 0.2);
        assert_eq!(
            (found.order, found.groups[0].effects[&Measure::Max].change),
            (RoundOrder::OneAfterTheOther, Change::NoDifference)
        );
        let mut lacking = side(0);
        lacking.groups[0].rounds[3].values.remove(&Measure::Max);
        let found = versus(&lacking, &side(10), 0.2);
        assert_eq!(found.groups[0].effects[&Measure::Max].change, Change::NoDifference);
    }

    /// Many small changes in one direction can be a drift, which grows with the distance of the values.
    #[test]
    fn the_last_value_is_far_from_the_first() {
        let side = |step: usize, more: f64| {
            let mut side = rounds("", &[0; 10]);
            side.starts.clear();
            for (index, round) in side.groups[0].rounds.iter_mut().enumerate() {
                let run = 10 * step + index;
                let level = 0.01 * run as f64 + more * step as f64 + 0.04 * (run * 7 % 5) as f64;
                round.values.insert(Measure::Max, 5_000.5 * level.exp());
                let at = format!("2026-01-01T{:02}:{:02}:00.000000000Z", run / 60, run % 60);
                round.start = Start { at, host: Some("x".to_owned()), is_imported: true };
                side.starts.push(round.start.clone());
            }
            (step.to_string(), side)
        };
        let overall = |more: f64| {
            let sides: Vec<_> = (0..6).map(|step| side(step, more)).collect();
            across("kernel", &sides, 0.2).overall.unwrap().groups[0].effects[&Measure::Max].change
        };
        assert_eq!((overall(0.0), overall(0.5)), (Change::NoDifference, Change::Worse));
    }

    /// Rounds of so many samples each, with a few larger ones.
    fn lengths(samples: &[u64]) -> Records {
        let mut side = Records::default();
        for (round, samples) in (0..).zip(samples) {
            let mut histogram = record::Histogram::default();
            histogram.add(5_000, samples - 40);
            (0..40).for_each(|rank| histogram.add(6_000 + 100 * rank + round, 1));
            let figures = Figures {
                probe: record::TIMER.to_owned(),
                samples: Some(*samples),
                max_ns: Some(11_000),
                histogram: Some(histogram),
                ..Figures::default()
            };
            side.add(format!("{round}"), &of_other_tool(figures));
        }
        side
    }

    #[test]
    fn percentiles_near_the_maximum_need_rounds_of_equal_length() {
        let why_not = |a: u64, b: u64, measure: Measure| {
            versus(&lengths(&[a; 8]), &lengths(&[b; 8]), 0.2).groups[0].effects[&measure].why_not.clone()
        };
        assert!(why_not(10_000, 19_900, Measure::P9999).contains("smaller share of their samples"));
        assert_eq!(why_not(10_000, 19_900, Measure::P999), "", "10 and 19 samples are above it");
        // A few lost samples do not make it another rank.
        assert_eq!(why_not(20_000, 19_990, Measure::P9999), "");
        let equal = versus(&lengths(&[20_000; 8]), &lengths(&[19_990; 8]), 0.2);
        assert_eq!(equal.groups[0].effects[&Measure::P9999].estimate, 1.0);
    }

    #[test]
    fn a_figure_that_many_rounds_lack_is_not_judged() {
        let some = lengths(&[20_000, 20_000, 20_000, 5_000, 5_000, 5_000, 20_000, 20_000]);
        let found = versus(&lengths(&[20_000; 8]), &some, 0.2);
        let effect = &found.groups[0].effects[&Measure::P9999];
        assert_eq!(effect.why_not, "only 5 of 8 rounds of B have it, and the others may be worse");
        assert_eq!(effect.rounds, Some([8, 5]));
        assert!(!medians(&some.groups[0]).medians.contains_key(&Measure::P9999));
        // One of eight makes no difference.
        let most = lengths(&[20_000, 5_000, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000]);
        let effect = versus(&most, &lengths(&[20_000; 8]), 0.2).groups[0].effects[&Measure::P9999].clone();
        assert_eq!((effect.change, effect.rounds), (Change::NoDifference, Some([7, 8])));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0]), median(vec![])), (Some(2.0), Some(2.5), None));
    }
}
