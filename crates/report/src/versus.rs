//! Comparisons of two sides, as text for terminal, page and exports.

mod notes;

use std::collections::{BTreeMap, BTreeSet};

use analysis::format_ns;
use record::{
    Figures, Histogram, Maxima, Versus, counted,
    versus::{Across, AcrossGroup, AcrossStep, Change, Differs, Measure, MeasureEffect, Side, VersusGroup, VersusPair},
};

pub(crate) use self::notes::{across_notes, notes};
use crate::{
    compare::{self, JitterTable},
    style::Ink,
};

/// Headings of [`Row`].
pub(crate) const HEADINGS: [&str; 6] = ["", "A", "B", "B / A", "interval", "result"];

/// One figure of a group.
pub(crate) struct Row {
    /// Name, A, B, effect, interval, result.
    pub cells: [String; 6],
    pub ink: Ink,
}

/// The answer in a word and a sentence.
pub(crate) struct Answer {
    pub word: &'static str,
    pub sentence: String,
    pub ink: Ink,
}

/// The answer of a comparison.
pub(crate) fn answer(versus: &Versus) -> Answer {
    let (word, ink) = match versus.change {
        Change::Better => ("BETTER", Ink::Good),
        Change::Worse => ("WORSE", Ink::Bad),
        Change::Mixed => ("MIXED", Ink::Alarm),
        Change::NoDifference => ("NO DIFFERENCE SHOWN", Ink::Plain),
        Change::TooFewRounds => ("NOT JUDGED", Ink::Alarm),
        Change::NotComparable => ("CANNOT BE COMPARED", Ink::Alarm),
    };
    let better = || list(versus, Change::Better);
    let worse = || list(versus, Change::Worse);
    let sentence = match versus.change {
        Change::Better => format!("B is more punctual than A: {}.", better()),
        Change::Worse => format!("B is less punctual than A: {}.", worse()),
        Change::Mixed => format!("B is better in {}, and worse in {}.", better(), worse()),
        Change::NoDifference => format!("{} show no difference.", rounds_of_both(versus)),
        Change::TooFewRounds if is_single_publication(&versus.a) || is_single_publication(&versus.b) => {
            format!(
                "Published figures, and one file of another tool, are a single round, which cannot show a difference: at least {} files \
                 of each are needed.",
                versus.least_rounds
            )
        }
        Change::TooFewRounds => format!(
            "{} cannot show a difference: two runs of one machine differ, too. At least {} of each are needed.",
            rounds_of_both(versus),
            versus.least_rounds
        ),
        Change::NotComparable => {
            match [("A", &versus.a), ("B", &versus.b)].into_iter().find(|(_, side)| is_empty(side)) {
                Some((name, side)) => {
                    format!(
                        "{name} has no round: all of its {} are left out.",
                        counted(side.left_out.len() as u64, "record")
                    )
                }
                None if versus.groups.is_empty() && !versus.ambiguous.is_empty() => {
                    "several groups of threads of one side are equally similar to one of the other.".to_owned()
                }
                None if versus.groups.iter().all(|group| group.effects.is_empty()) => {
                    "A and B have no figure in common.".to_owned()
                }
                None => "No figure that A and B have in common can be judged.".to_owned(),
            }
        }
    };
    Answer { word, sentence, ink }
}

fn is_empty(side: &Side) -> bool {
    side.records.is_empty()
}

fn is_single_publication(side: &Side) -> bool {
    side.is_published && side.records.len() == 1
}

/// The number of rounds, or of records if not all have the same groups.
pub(crate) fn rounds(side: &Side) -> String {
    let number = side.records.len() as u64;
    match side.uneven.is_empty() {
        true => counted(number, "round"),
        false => format!("{} with different groups", counted(number, "record")),
    }
}

/// The rounds of the group that the answer is about.
fn rounds_of_both(versus: &Versus) -> String {
    let group = versus.groups.get(decisive(versus));
    let [a, b] = group.map_or([0; 2], |group| [group.rounds_a, group.rounds_b]);
    format!("{} of A and {} of B", counted(a, "round"), counted(b, "round"))
}

/// The size of an effect. A difference of shares has no ratio, so it comes after the times.
fn size((measure, effect): &(Measure, MeasureEffect)) -> f64 {
    if *measure == Measure::Missed { 0.0 } else { effect.estimate.ln().abs() }
}

/// The effects of a group with this judgement, the largest one first.
fn effects(group: &VersusGroup, wanted: Change) -> Vec<(Measure, MeasureEffect)> {
    let mut found: Vec<(Measure, MeasureEffect)> = group.effects.clone().into_iter().collect();
    found.retain(|(_, effect)| effect.change == wanted && effect.why_not.is_empty());
    found.sort_by(|a, b| size(b).total_cmp(&size(a)));
    found
}

/// The group with the largest effect of this judgement, and its effects.
fn largest(versus: &Versus, wanted: Change) -> Option<(usize, Vec<(Measure, MeasureEffect)>)> {
    let groups = versus.groups.iter().map(|group| effects(group, wanted)).enumerate();
    let groups = groups.filter(|(_, found)| !found.is_empty());
    groups.max_by(|(_, a), (_, b)| size(&a[0]).total_cmp(&size(&b[0])))
}

/// The index of the group that the answer names.
pub(crate) fn decisive(versus: &Versus) -> usize {
    let wanted = if versus.change == Change::Mixed { Change::Worse } else { versus.change };
    let of_change = || versus.groups.iter().position(|group| group.change == versus.change);
    largest(versus, wanted).map(|(index, _)| index).or_else(of_change).unwrap_or(0)
}

/// The figures with this judgement, the largest effect first; at most two, of the group with the largest one.
fn list(versus: &Versus, wanted: Change) -> String {
    /// Figures in the sentence.
    const FIGURES: usize = 2;
    let Some((index, found)) = largest(versus, wanted) else { return String::new() };
    let place = if versus.groups.len() > 1 { format!(" ({})", names(versus)[index]) } else { String::new() };
    let one = |(measure, effect): &(Measure, MeasureEffect)| {
        format!("{} {} ({})", measure.name(), estimate(*measure, effect), interval(*measure, effect))
    };
    found.iter().take(FIGURES).map(one).collect::<Vec<_>>().join(", ") + &place
}

/// True for records that are shown together without a comparison.
pub(crate) fn is_overlay(across: &Across) -> bool {
    across.steps.iter().all(|step| step.versus.is_none())
}

/// How to read the tables across the values of a condition.
pub(crate) fn across_lead(across: &Across) -> &'static str {
    if is_overlay(across) {
        return "The figures of each record. Differences are not judged: compare does so with several records of each side.";
    }
    "Medians of the rounds. Each value is compared with the one above, and the last one with the first; the intervals of all \
     comparisons together are right in 95 % of cases. Other conditions may differ, too: compare two of them with --full."
}

/// The compared values: each with the one before it, and the last one with the first.
fn compared(across: &Across) -> impl Iterator<Item = (&AcrossStep, &AcrossStep, &Versus)> {
    let pairs = across.steps.windows(2).filter_map(|pair| Some((&pair[0], &pair[1], pair[1].versus.as_deref()?)));
    let ends = across.steps.first().zip(across.steps.last()).zip(across.overall.as_deref());
    pairs.chain(ends.map(|((first, last), versus)| (first, last, versus)))
}

/// The samples of a curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Samples<'a> {
    /// The samples with known values.
    pub histogram: &'a Histogram,
    /// Number of samples above them.
    pub beyond: u64,
}

impl<'a> Samples<'a> {
    /// The samples of a histogram that has all of them.
    pub fn whole(histogram: &'a Histogram) -> Self {
        Self { histogram, beyond: 0 }
    }

    /// The samples of a group; `None` if no value is known.
    pub fn of(histogram: &'a Histogram, beyond: u64) -> Option<Self> {
        (!histogram.is_empty()).then_some(Self { histogram, beyond })
    }

    /// Number of all of them.
    pub fn total(self) -> u64 {
        self.histogram.total().saturating_add(self.beyond)
    }
}

/// The table of a group across the values of a condition.
pub(crate) struct AcrossTable<'a> {
    /// Name of the group.
    pub name: String,
    /// The samples of each value that has some.
    pub curves: Vec<(String, Samples<'a>)>,
    /// The largest values over time, of each value that has some.
    pub maxima: Vec<(String, &'a Maxima)>,
    pub headings: Vec<String>,
    /// The value, the number of rounds, medians, and the judgement.
    pub rows: Vec<(Vec<String>, Ink)>,
}

/// The tables of all groups across the values of a condition.
pub(crate) fn across(across: &Across) -> Vec<AcrossTable<'_>> {
    if is_overlay(across) {
        return vec![overlay_table(across)];
    }
    let mut names: Vec<String> = Vec::new();
    for group in across.steps.iter().flat_map(|step| &step.groups) {
        let name = name_across(across, &group.conditions);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|name| across_table(across, name)).collect()
}

/// The name of a group, with policy and period if a value has several groups of one name.
pub(crate) fn name_across(across: &Across, conditions: &Figures) -> String {
    let name = compare::name(conditions);
    let of_step =
        |step: &AcrossStep| step.groups.iter().filter(|group| compare::name(&group.conditions) == name).count();
    if across.steps.iter().any(|step| of_step(step) > 1) { full_name(conditions) } else { name }
}

fn across_table(across: &Across, name: String) -> AcrossTable<'_> {
    let is_group = |group: &&AcrossGroup| name_across(across, &group.conditions) == name;
    let group = |step: &AcrossStep| step.groups.iter().find(is_group).cloned();
    let curves = across.steps.iter().filter_map(|step| {
        let group = step.groups.iter().find(is_group)?;
        Some((step.value.clone(), Samples::of(&group.histogram, group.beyond)?))
    });
    let curves = curves.collect();
    let maxima = across.steps.iter().filter_map(|step| {
        let group = step.groups.iter().find(is_group)?;
        (!group.maxima.is_empty()).then(|| (step.value.clone(), &group.maxima))
    });
    let maxima = maxima.collect();
    let has = |measure: &Measure| {
        across.steps.iter().any(|step| group(step).is_some_and(|group| group.medians.contains_key(measure)))
    };
    let measures: Vec<Measure> = Measure::ALL.into_iter().filter(has).collect();
    let row = |step: &AcrossStep| {
        let medians = group(step).map(|group| group.medians).unwrap_or_default();
        let cells = measures.iter().map(|measure| median_cell(&medians, *measure));
        let compared = step.versus.iter().flat_map(|versus| &versus.groups);
        let is_group = |compared: &&VersusGroup| name_across(across, &compared.b) == name;
        let change = compared.into_iter().find(is_group).map(|group| group.change);
        let (result, ink) = match change {
            None => ("", Ink::Plain),
            Some(Change::Better) => ("better", Ink::Good),
            Some(Change::Worse) => ("worse", Ink::Bad),
            Some(Change::Mixed) => ("mixed", Ink::Alarm),
            Some(Change::NoDifference) => ("no difference", Ink::Plain),
            Some(Change::TooFewRounds) => ("too few rounds", Ink::Quiet),
            Some(Change::NotComparable) => ("not comparable", Ink::Quiet),
        };
        let rounds = group(step).map_or(0, |group| group.rounds);
        let first = [step.value.clone(), rounds.to_string()];
        (first.into_iter().chain(cells).chain([result.to_owned()]).collect(), ink)
    };
    let names = measures.iter().map(|measure| measure.name().to_owned());
    let first = [across.what.clone(), "rounds".to_owned()];
    AcrossTable {
        headings: first.into_iter().chain(names).chain(["against the one above".to_owned()]).collect(),
        rows: across.steps.iter().map(row).collect(),
        curves,
        maxima,
        name,
    }
}

/// The median of a figure in a table; a dash if it is not known.
fn median_cell(medians: &BTreeMap<Measure, f64>, measure: Measure) -> String {
    match medians.get(&measure) {
        None => "-".to_owned(),
        Some(&median) if measure == Measure::Missed => share(median),
        Some(&median) => format_ns(analysis::rounded_ns(median)),
    }
}

/// One table of all groups of records that are shown together, a row each.
fn overlay_table(across: &Across) -> AcrossTable<'_> {
    fn file(step: &AcrossStep) -> &str {
        step.value.rsplit('/').next().unwrap_or_default()
    }
    let mut groups: Vec<(String, &AcrossGroup)> = Vec::new();
    for step in &across.steps {
        // Files of two folders can have one name.
        let is_unique = across.steps.iter().filter(|other| file(other) == file(step)).count() == 1;
        let path = if is_unique { file(step) } else { &step.value };
        let record = path.strip_suffix(".punctual.json").unwrap_or(path);
        for group in &step.groups {
            let name = compare::name(&group.conditions);
            let is_only = step.groups.len() == 1;
            groups.push((if is_only { record.to_owned() } else { format!("{record}, {name}") }, group));
        }
    }
    let has = |measure: &Measure| groups.iter().any(|(_, group)| group.medians.contains_key(measure));
    let measures: Vec<Measure> = Measure::ALL.into_iter().filter(has).collect();
    let row = |(name, group): &(String, &AcrossGroup)| {
        let conditions = compare::name(&group.conditions);
        let cells = measures.iter().map(|measure| median_cell(&group.medians, *measure));
        ([name.clone()].into_iter().chain(cells).chain([conditions]).collect(), Ink::Plain)
    };
    let names = measures.iter().map(|measure| measure.name().to_owned());
    AcrossTable {
        name: if across.steps.len() == 1 { "Figures" } else { "All records" }.to_owned(),
        headings: [across.what.clone()].into_iter().chain(names).chain(["threads".to_owned()]).collect(),
        rows: groups.iter().map(row).collect(),
        curves: groups
            .iter()
            .filter_map(|(name, group)| Some((name.clone(), Samples::of(&group.histogram, group.beyond)?)))
            .collect(),
        maxima: groups
            .iter()
            .filter(|(_, group)| !group.maxima.is_empty())
            .map(|(name, group)| (name.clone(), &group.maxima))
            .collect(),
    }
}

/// The changes in one sentence each, or the sentence without any.
pub(crate) fn answers(across: &Across) -> Vec<String> {
    let changes = changes(across);
    match changes.is_empty() {
        true if is_overlay(across) && across.steps.len() == 1 => vec!["One record.".to_owned()],
        true if is_overlay(across) => vec![format!("{} records together.", across.steps.len())],
        true if !is_any_judged(across) => {
            let least =
                across.steps.iter().filter_map(|step| step.versus.as_ref()).map(|versus| versus.least_rounds).max();
            vec![format!(
                "Nothing is judged across {} values of {}: at least {} rounds of each are needed.",
                across.steps.len(),
                across.what,
                least.unwrap_or_default()
            )]
        }
        true => vec![format!("No change is shown across {} values of {}.", across.steps.len(), across.what)],
        false => changes.into_iter().map(|(sentence, _)| sentence).collect(),
    }
}

/// True if the rounds of any two values could show a change.
pub(crate) fn is_any_judged(across: &Across) -> bool {
    compared(across).any(|(.., versus)| !matches!(versus.change, Change::TooFewRounds | Change::NotComparable))
}

/// The changes in one sentence each.
pub(crate) fn changes(across: &Across) -> Vec<(String, Ink)> {
    compared(across)
        .filter(|(.., versus)| matches!(versus.change, Change::Better | Change::Worse | Change::Mixed))
        .map(|(before, after, versus)| {
            let answer = answer(versus);
            let sentence = answer.sentence.replacen("B is", &format!("{} is", after.value), 1);
            (sentence.replacen("than A:", &format!("than {}:", before.value), 1), answer.ink)
        })
        .collect()
}

/// The jitter of each pair of CPUs of two matrices: one table for each load.
pub(crate) fn pair_tables(versus: &Versus) -> Vec<JitterTable> {
    let mut loads: Vec<[&str; 2]> = Vec::new();
    for pair in &versus.pairs {
        let load = [pair.load_a.as_str(), pair.load_b.as_str()];
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads.into_iter().filter_map(|load| pair_table(&versus.pairs, load)).collect()
}

fn pair_table(pairs: &[VersusPair], [load_a, load_b]: [&str; 2]) -> Option<JitterTable> {
    let of_load: Vec<&VersusPair> =
        pairs.iter().filter(|pair| pair.load_a == load_a && pair.load_b == load_b).collect();
    let [row, column] = &*of_load.first()?.places else { return None };
    let cpus = |thread: usize| -> BTreeSet<u32> {
        of_load.iter().filter_map(|pair| Some(pair.places.get(thread)?.cpu)).collect()
    };
    let columns = cpus(1);
    let text = |pair: &VersusPair| {
        let of = |thread: usize| match (pair.jitter_a_ns.get(thread), pair.jitter_b_ns.get(thread)) {
            (Some(&a), Some(&b)) if a > 0.0 => compare::times(b / a),
            _ => "-".to_owned(),
        };
        format!("{} / {}", of(1), of(0))
    };
    let at = |cpus: [u32; 2]| of_load.iter().find(|pair| pair.places.iter().map(|place| place.cpu).eq(cpus));
    let cell = |cpus: [u32; 2]| at(cpus).map_or_else(|| "-".to_owned(), |pair| text(pair));
    let cells = |cpu: u32| columns.iter().map(move |&other| [cpu, other]).map(cell);
    let load = if load_a == load_b { load_a.to_owned() } else { format!("{load_a} and {load_b}") };
    Some(JitterTable {
        caption: format!("B / A of the jitter of {} / {}, {load}", column.role, row.role),
        head: [String::new()].into_iter().chain(columns.iter().map(|cpu| format!("{} {cpu}", column.role))).collect(),
        rows: cpus(0)
            .into_iter()
            .map(|cpu| [format!("{} {cpu}", row.role)].into_iter().chain(cells(cpu)).collect())
            .collect(),
    })
}

/// The figures of a group.
pub(crate) fn rows(group: &VersusGroup) -> Vec<Row> {
    let row = |(&measure, effect): (&Measure, &MeasureEffect)| {
        let value =
            |value: f64| if measure == Measure::Missed { share(value) } else { format_ns(analysis::rounded_ns(value)) };
        let (result, ink) = match effect.change {
            _ if !effect.why_not.is_empty() => ("not judged", Ink::Quiet),
            Change::Better => ("better", Ink::Good),
            Change::Worse => ("worse", Ink::Bad),
            Change::NoDifference => ("no difference", Ink::Plain),
            Change::Mixed | Change::TooFewRounds | Change::NotComparable => ("too few rounds", Ink::Quiet),
        };
        let cells = [
            measure.name().to_owned(),
            value(effect.a),
            value(effect.b),
            if measure == Measure::Missed && is_mostly_none(effect) || is_early(effect) {
                "-".to_owned()
            } else {
                estimate(measure, effect)
            },
            if is_early(effect) { "-".to_owned() } else { interval(measure, effect) },
            result.to_owned(),
        ];
        Row { cells, ink }
    };
    group.effects.iter().map(row).collect()
}

/// Remarks on the figures of a group: which are not judged and why, and which have times that count as longer ones.
pub(crate) fn remarks(group: &VersusGroup) -> Vec<String> {
    let is_raised = |(measure, effect): &(&Measure, &MeasureEffect)| {
        **measure != Measure::Missed && !is_early(effect) && effect.a.min(effect.b) < analysis::versus::LEAST_NS
    };
    let raised: Vec<&str> = group.effects.iter().filter(is_raised).map(|(measure, _)| measure.name()).collect();
    let raised =
        (!raised.is_empty()).then(|| format!("Times below 1 us count as 1 us in B / A: {}.", raised.join(", ")));
    let none_in_most = group.effects.get(&Measure::Missed).filter(|effect| is_mostly_none(effect)).map(|_| {
        "missed: 0 in most rounds of both sides, so B / A is left out; the interval contains the other rounds."
            .to_owned()
    });
    let not_judged = group.effects.iter().filter(|(_, effect)| !effect.why_not.is_empty());
    let not_judged = by_reason("Not judged", not_judged.map(|(measure, effect)| (*measure, effect.why_not.as_str())));
    let some = group.effects.iter().filter(|(_, effect)| effect.why_not.is_empty());
    let some = some.filter_map(|(measure, effect)| {
        let [a, b] = effect.rounds?;
        let [all_a, all_b] = [group.rounds_a, group.rounds_b];
        Some(format!(
            "{} is that of {a} of {all_a} rounds of A and {b} of {all_b} of B; the others lack it.",
            measure.name()
        ))
    });
    let absent = by_reason("Absent", group.absent.iter().map(|(measure, why)| (*measure, why.as_str())));
    not_judged.into_iter().chain(some).chain(absent).chain(raised).chain(none_in_most).collect()
}

/// True for a time before the deadline, which has no ratio.
fn is_early(effect: &MeasureEffect) -> bool {
    effect.a.min(effect.b) < -analysis::versus::LEAST_NS
}

/// True if the median rounds of both sides missed nothing, and no difference is shown, although some rounds missed something.
fn is_mostly_none(missed: &MeasureEffect) -> bool {
    let is_shown = matches!(missed.change, Change::Better | Change::Worse);
    let ends = [Some(missed.estimate), missed.low, missed.high];
    !is_shown && missed.a == 0.0 && missed.b == 0.0 && ends.into_iter().flatten().any(|end| end != 0.0)
}

/// Names as `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Figures by their reason, a sentence for each reason: `Absent: p99.9 and p99.99, because ...`.
fn by_reason<'a>(what: &str, figures: impl Iterator<Item = (Measure, &'a str)>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (measure, reason) in figures {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(measure.name()),
            None => reasons.push((reason, vec![measure.name()])),
        }
    }
    reasons.into_iter().map(|(reason, names)| format!("{what}: {}, because {reason}.", listed(&names))).collect()
}

/// The names of the groups: those of both sides if they differ, and policy and period if several have one name.
pub(crate) fn names(versus: &Versus) -> Vec<String> {
    let of_both = |group: &VersusGroup, name: &dyn Fn(&Figures) -> String| {
        let (a, b) = (name(&group.a), name(&group.b));
        if a == b { a } else { format!("{a} / {b}") }
    };
    let short: Vec<String> = versus.groups.iter().map(|group| of_both(group, &compare::name)).collect();
    let is_unique = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    let each = versus.groups.iter().zip(&short);
    each.map(|(group, name)| if is_unique(name) { name.clone() } else { of_both(group, &full_name) }).collect()
}

/// The name of a group with its policy and period.
fn full_name(conditions: &Figures) -> String {
    analysis::versus::with_policy_and_period(compare::name(conditions), conditions)
}

/// The records of a side in a few words, and its verdicts.
pub(crate) fn side(side: &Side) -> String {
    let files = match side.records.as_slice() {
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}"),
        [] => "none".to_owned(),
    };
    let verdicts = match side.judged {
        0 => String::new(),
        judged => format!("; {} of {judged} PASS", side.passed),
    };
    format!("{}: {files}{verdicts}", rounds(side))
}

/// The values of a condition.
pub(crate) fn values(values: &[String]) -> String {
    /// More are counted.
    const MOST: usize = 3;
    match values {
        [] => "-".to_owned(),
        _ if values.len() <= MOST => values.join("; "),
        _ => format!("{} different ones", values.len()),
    }
}

/// Conditions as rows.
pub(crate) fn differs(all: &[Differs]) -> Vec<[String; 3]> {
    all.iter().map(|one| [one.what.clone(), values(&one.a), values(&one.b)]).collect()
}

fn estimate(measure: Measure, effect: &MeasureEffect) -> String {
    ratio(measure, effect.estimate, effect.change)
}

fn interval(measure: Measure, effect: &MeasureEffect) -> String {
    match (effect.low, effect.high) {
        (Some(low), Some(high)) => {
            format!("{} to {}", ratio(measure, low, effect.change), ratio(measure, high, effect.change))
        }
        _ => "-".to_owned(),
    }
}

/// A ratio, or a difference of shares. Its digits show the direction of a change, which would contradict `1.00x`.
fn ratio(measure: Measure, value: f64, change: Change) -> String {
    let is_change = matches!(change, Change::Better | Change::Worse);
    match measure {
        Measure::Missed => difference(value, is_change),
        _ if is_change => compare::times_apart(value),
        _ => compare::times(value),
    }
}

/// A share in percent.
fn share(share: f64) -> String {
    if share == 0.0 { "0".to_owned() } else { format!("{:.3} %", share * 100.0) }
}

/// A difference of shares in percent. One that counts is not rounded to 0.
fn difference(share: f64, is_change: bool) -> String {
    /// Decimals.
    const USUAL: usize = 3;
    let percent = share * 100.0;
    let decimals = if is_change { compare::decimals_apart(percent, 0.0, USUAL) } else { USUAL };
    if share == 0.0 { "0".to_owned() } else { format!("{percent:+.decimals$} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn effect(estimate: f64, change: Change) -> MeasureEffect {
        let (low, high) = (Some(estimate * 0.9), Some(estimate * 1.1));
        MeasureEffect { a: 1e4, b: 1e4 * estimate, estimate, low, high, change, ..MeasureEffect::default() }
    }

    pub(super) fn versus(effects: &[(Measure, MeasureEffect)]) -> Versus {
        let effects: BTreeMap<_, _> = effects.iter().cloned().collect();
        let change = Change::of_all(&effects.values().map(|effect| effect.change).collect::<Vec<_>>());
        let group = VersusGroup { effects, change, rounds_a: 6, rounds_b: 6, ..VersusGroup::default() };
        let records = vec!["a".to_owned(); 6];
        let side = Side { records, ..Side::default() };
        Versus { change, groups: vec![group], a: side.clone(), b: side, least_ratio: 0.2, ..Versus::default() }
    }

    #[test]
    fn the_sentence_names_the_largest_effects() {
        let worse = versus(&[
            (Measure::P99, effect(1.3, Change::Worse)),
            (Measure::P999, effect(1.1, Change::Worse)),
            (Measure::Max, effect(2.0, Change::Worse)),
        ]);
        let Answer { word, sentence, .. } = answer(&worse);
        assert_eq!(word, "WORSE");
        assert_eq!(sentence, "B is less punctual than A: max 2.00x (1.80x to 2.20x), p99 1.30x (1.17x to 1.43x).");
        let with_missed = versus(&[
            (Measure::P99, effect(1.3, Change::Worse)),
            (Measure::Missed, MeasureEffect { low: Some(0.001), ..effect(0.004, Change::Worse) }),
        ]);
        let sentence = answer(&with_missed).sentence;
        assert!(sentence.starts_with("B is less punctual than A: p99 1.30x"), "a share is no ratio: {sentence}");
        let mixed = versus(&[(Measure::P99, effect(0.5, Change::Better)), (Measure::Max, effect(2.0, Change::Worse))]);
        assert!(answer(&mixed).sentence.starts_with("B is better in p99 0.50x"), "{}", answer(&mixed).sentence);
    }

    #[test]
    fn the_interval_shows_the_direction_of_the_change() {
        let worse = |low, high| MeasureEffect { low: Some(low), high: Some(high), ..effect(1.2, Change::Worse) };
        let of = versus(&[(Measure::P99, worse(1.004, 1.47)), (Measure::Missed, worse(0.000_002, 0.01))]);
        let interval = |of: &Versus, row: usize| rows(&of.groups[0])[row].cells[4].clone();
        assert_eq!([interval(&of, 0), interval(&of, 1)], ["1.004x to 1.47x", "+0.0002 % to +1.000 %"]);
        let none = MeasureEffect { change: Change::NoDifference, ..worse(0.8, 1.004) };
        assert_eq!(interval(&versus(&[(Measure::P99, none)]), 0), "0.80x to 1.00x");
    }

    #[test]
    fn records_of_one_name_in_two_folders_have_their_paths() {
        let names = |values: &[&str]| {
            let step = |value: &&str| AcrossStep {
                value: (*value).to_owned(),
                groups: vec![AcrossGroup::default()],
                ..AcrossStep::default()
            };
            let across = Across { steps: values.iter().map(step).collect(), ..Across::default() };
            overlay_table(&across).rows.into_iter().map(|(cells, _)| cells[0].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&["old/a.punctual.json", "new/b.punctual.json"]), ["a", "b"]);
        assert_eq!(names(&["old/a.punctual.json", "new/a.punctual.json"]), ["old/a", "new/a"]);
    }

    #[test]
    fn the_group_of_the_answer_is_the_one_with_the_largest_effect() {
        let mut both = versus(&[(Measure::P99, effect(1.3, Change::Worse))]);
        let larger = versus(&[(Measure::P99, effect(4.0, Change::Worse))]).groups.remove(0);
        both.groups.push(larger);
        assert_eq!(decisive(&both), 1);
        assert!(answer(&both).sentence.contains("p99 4.00x"), "{}", answer(&both).sentence);
        both.groups.remove(1);
        assert_eq!(decisive(&both), 0);
    }

    #[test]
    fn a_publication_cannot_be_repeated_but_files_of_tools_can_be_more() {
        let side =
            |records: usize| Side { records: vec!["a".to_owned(); records], is_published: true, ..Side::default() };
        let of = |records| Versus {
            change: Change::TooFewRounds,
            a: side(records),
            b: side(6),
            groups: vec![VersusGroup { rounds_a: records as u64, rounds_b: 6, ..VersusGroup::default() }],
            least_rounds: 5,
            ..Versus::default()
        };
        assert!(answer(&of(1)).sentence.contains("are a single round"), "{}", answer(&of(1)).sentence);
        assert!(
            answer(&of(3)).sentence.starts_with("3 rounds of A and 6 rounds of B cannot"),
            "{}",
            answer(&of(3)).sentence
        );
    }

    #[test]
    fn a_share_is_not_named_beside_two_zeros() {
        let none =
            MeasureEffect { a: 0.0, b: 0.0, low: Some(0.0), high: Some(0.001), ..effect(0.0005, Change::NoDifference) };
        let of = versus(&[(Measure::Missed, none.clone())]);
        assert_eq!(rows(&of.groups[0])[0].cells[1..5], ["0", "0", "-", "0 to +0.100 %"]);
        assert!(remarks(&of.groups[0])[0].starts_with("missed: 0 in most rounds of both sides"));
        let shown = versus(&[(Measure::Missed, MeasureEffect { b: 0.0005, ..none })]);
        assert_eq!(rows(&shown.groups[0])[0].cells[3], "+0.050 %");
        assert_eq!(remarks(&shown.groups[0]), [""; 0]);
    }

    #[test]
    fn figures_that_are_not_judged_are_named() {
        let why_not = "they differ".to_owned();
        let one = MeasureEffect { why_not, ..effect(1.0, Change::NoDifference) };
        let mut of = versus(&[(Measure::Median, one.clone()), (Measure::P99, one.clone()), (Measure::Max, one)]);
        assert_eq!(remarks(&of.groups[0]), ["Not judged: median, p99 and max, because they differ."]);
        of.change = Change::NotComparable;
        assert_eq!(answer(&of).sentence, "No figure that A and B have in common can be judged.");
        of.groups[0].effects.clear();
        assert_eq!(answer(&of).sentence, "A and B have no figure in common.");
    }

    #[test]
    fn groups_of_one_name_have_their_policy() {
        let mut of = versus(&[]);
        of.groups.push(of.groups[0].clone());
        for (group, policy) in of.groups.iter_mut().zip(["fifo:90", "other"]) {
            for conditions in [&mut group.a, &mut group.b] {
                (conditions.phase, conditions.policy) = ("x".to_owned(), policy.to_owned());
            }
        }
        assert_eq!(names(&of), ["x, fifo:90", "x, other"]);
        let group = |of: &VersusGroup| AcrossGroup { conditions: of.a.clone(), rounds: 3, ..AcrossGroup::default() };
        let step = AcrossStep {
            groups: of.groups.iter().map(group).collect(),
            versus: Some(Box::default()),
            ..AcrossStep::default()
        };
        let of_steps = Across { steps: vec![step], ..Across::default() };
        let tables: Vec<(String, String)> =
            across(&of_steps).into_iter().map(|table| (table.name, table.rows[0].0[1].clone())).collect();
        let expected = ["x, fifo:90", "x, other"].map(|name| (name.to_owned(), "3".to_owned()));
        assert_eq!(tables, expected);
    }

    #[test]
    fn a_figure_that_some_rounds_lack_has_a_remark() {
        let some = MeasureEffect { rounds: Some([6, 5]), ..effect(1.0, Change::NoDifference) };
        let of = versus(&[(Measure::P9999, some)]);
        assert_eq!(
            remarks(&of.groups[0]),
            ["p99.99 is that of 6 of 6 rounds of A and 5 of 6 of B; the others lack it."]
        );
    }

    #[test]
    fn absent_figures_and_times_before_the_deadline_have_a_reason() {
        let early =
            MeasureEffect { a: -4e5, b: -5e3, why_not: "early".to_owned(), ..effect(1.0, Change::NotComparable) };
        let mut of = versus(&[(Measure::Max, early)]);
        of.groups[0].absent =
            [(Measure::P99, "A lacks it".to_owned()), (Measure::P999, "A lacks it".to_owned())].into();
        assert_eq!(
            remarks(&of.groups[0]),
            ["Not judged: max, because early.", "Absent: p99 and p99.9, because A lacks it."]
        );
        assert_eq!(rows(&of.groups[0])[0].cells[3..5], ["-", "-"]);
    }
}
