//! Remarks on the judgements of a comparison.

use record::{
    Caveat, Versus, counted,
    versus::{Across, AcrossStep, AmbiguousGroup, Change, LeftOut, Measure, RoundOrder, UnevenGroup},
};

use super::{compared, is_any_judged, listed};
use crate::compare;

/// Remarks on the judgement; one sentence each.
pub(crate) fn notes(versus: &Versus) -> Vec<String> {
    let passes = versus.passes.map(|passes| {
        let [estimate, low, high] =
            [passes.estimate, passes.low, passes.high].map(|share| format!("{:+.0} %", share * 100.0));
        format!("Share of PASS, B minus A: {estimate} ({low} to {high}).")
    });
    let sides = [("A", &versus.a), ("B", &versus.b)];
    let ambiguous = versus.ambiguous.iter().map(|group| ambiguous(group, ["A", "B"]));
    let uneven = sides.iter().filter_map(|(name, side)| uneven(name, &side.uneven));
    [order(versus, "side"), alternating(versus), needed(versus, "side"), passes]
        .into_iter()
        .flatten()
        .chain(ambiguous)
        .chain(uneven)
        .chain(shared(&sides.map(|(name, side)| (name, doubts(&side.left_out, &side.caveats)))))
        .collect()
}

/// The effect of the order of the rounds on the judgement. `side` is the word for a side.
fn order(versus: &Versus, side: &str) -> Option<String> {
    let is_judged = !matches!(versus.change, Change::TooFewRounds | Change::NotComparable);
    match versus.order {
        RoundOrder::OneAfterTheOther if is_judged => Some(format!(
            "All rounds of one {side} came before those of the other, so a drift of the machine may look like a difference. Only \
             differences well beyond the drift within a {side}, for the distance of the {side}s in time, are judged; alternate the \
             {side}s to see smaller ones."
        )),
        RoundOrder::InBlocks if is_judged => Some(format!(
            "The {side}s were measured in a few long blocks, so a drift of the machine may look like a difference. Only differences well \
             beyond the drift within a {side} are judged; alternate the {side}s to see smaller ones."
        )),
        RoundOrder::AlternatingSameFirst if is_judged => Some(format!(
            "The same {side} was always measured first, so a drift of the machine may look like a difference. Only differences well \
             beyond the trend from one run to the next are judged; measure in the order A B B A to see smaller ones."
        )),
        RoundOrder::Untimed if is_judged => {
            let is_published = versus.a.is_published || versus.b.is_published;
            let (why, remedy) = match is_published {
                true => (
                    "Some files have no date of their run, or that of a clock that was not set",
                    "use files with dates, such as those of cyclictest --json,",
                ),
                false => {
                    ("The clock of the machine was not set, so the dates of some records are wrong", "set its clock")
                }
            };
            Some(format!(
                "{why}. A drift of the machine may look like a difference. Only differences well beyond the drift within a {side}, \
                 in the order of its dates or else of its files, are judged; alternate the {side}s and {remedy} to see smaller ones."
            ))
        }
        RoundOrder::OneAfterTheOther
        | RoundOrder::InBlocks
        | RoundOrder::Untimed
        | RoundOrder::AlternatingSameFirst
        | RoundOrder::Alternating
        | RoundOrder::Mixed
        | RoundOrder::Unknown => None,
    }
}

/// The meaning of the ratio of sides that alternate.
fn alternating(versus: &Versus) -> Option<String> {
    let is_judged = !matches!(versus.change, Change::TooFewRounds | Change::NotComparable);
    let alternate = matches!(versus.order, RoundOrder::Alternating | RoundOrder::AlternatingSameFirst);
    (alternate && is_judged).then(|| {
        "The sides alternate, so each round of B is compared with its neighbour of A: B / A is the median of the means of two \
         such ratios, which a few bad rounds change more than A and B."
            .to_owned()
    })
}

/// The reason why a group is not compared; the names are those of both sides.
fn ambiguous(of: &AmbiguousGroup, [a, b]: [&str; 2]) -> String {
    let (side, other) = if of.is_of_b { (b, a) } else { (a, b) };
    let similar = of.similar.join("; ");
    format!("{} of {side} is not compared, because these groups of {other} are equally similar: {similar}.", of.group)
}

/// The groups that only some records of a side have, in one sentence.
fn uneven(side: &str, groups: &[UnevenGroup]) -> Option<String> {
    let files = |records: &[String]| match records {
        [only] => only.clone(),
        [first, .., last] => format!("{} from {first} to {last}", counted(records.len() as u64, "record")),
        [] => "none".to_owned(),
    };
    let each: Vec<String> = groups.iter().map(|of| format!("{} is in {}", of.group, files(&of.records))).collect();
    (!each.is_empty()).then(|| {
        format!(
            "{side}: its records have different groups of threads, which are compared separately: {}.",
            each.join("; ")
        )
    })
}

/// The records of a side that are left out, and the caveats of its imported ones, one sentence each.
fn doubts(all: &[LeftOut], caveats: &[Caveat]) -> Vec<String> {
    left_out(all).into_iter().chain(compare::caveats(caveats)).collect()
}

/// Each sentence once, with the names that share it.
fn shared<Name: AsRef<str>>(each: &[(Name, Vec<String>)]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, sentences) in each {
        for sentence in sentences {
            match all.iter_mut().find(|(known, _)| known == sentence) {
                Some((_, names)) => names.push(name.as_ref()),
                None => all.push((sentence, vec![name.as_ref()])),
            }
        }
    }
    all.into_iter().map(|(sentence, names)| format!("{}: {sentence}", listed(&names))).collect()
}

/// The records left out, by their reason.
fn left_out(all: &[LeftOut]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for LeftOut { record, why } in all {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, records)) => records.push(record),
            None => reasons.push((why, vec![record])),
        }
    }
    let sentence = |(why, records): (&str, Vec<&str>)| match &records[..] {
        [only] => format!("{only} is left out, because {why}."),
        [first, ..] => format!("{} records are left out, e.g. {first}, because {why}.", records.len()),
        [] => String::new(),
    };
    reasons.into_iter().map(sentence).collect()
}

/// Remarks on the judgements across the values of a condition; one sentence each.
pub(crate) fn across_notes(across: &Across) -> Vec<String> {
    let is_judged = is_any_judged(across);
    let of_pair = |(before, after, versus): (&AcrossStep, &AcrossStep, &Versus)| {
        let few = (is_judged && versus.change == Change::TooFewRounds)
            .then(|| format!("Too few rounds for a judgement: at least {} of each are needed.", versus.least_rounds));
        let ambiguous = versus.ambiguous.iter().map(|group| ambiguous(group, [&before.value, &after.value]));
        let sentences = [order(versus, "value"), needed(versus, "value"), few].into_iter().flatten().chain(ambiguous);
        (format!("{} against {}", after.value, before.value), sentences.collect::<Vec<_>>())
    };
    let of_pairs: Vec<(String, Vec<String>)> = compared(across).map(of_pair).collect();
    let uneven = across.steps.iter().filter_map(|step| uneven(&step.value, &step.uneven));
    let of_steps = across.steps.iter().map(|step| (&step.value, doubts(&step.left_out, &step.caveats)));
    let of_steps = shared(&of_steps.collect::<Vec<_>>());
    shared(&of_pairs).into_iter().chain(uneven).chain(of_steps).chain(left_out(&across.left_out)).collect()
}

/// True if a drift of the machine may look like a difference in this order, so that more rounds in it need not show more.
fn may_drift(order: RoundOrder) -> bool {
    match order {
        RoundOrder::OneAfterTheOther
        | RoundOrder::InBlocks
        | RoundOrder::Untimed
        | RoundOrder::AlternatingSameFirst => true,
        RoundOrder::Unknown | RoundOrder::Mixed | RoundOrder::Alternating => false,
    }
}

/// The number of rounds that would show the difference that the user asks for. `side` is the word for a side.
fn needed(versus: &Versus, side: &str) -> Option<String> {
    if versus.change != Change::NoDifference {
        return None;
    }
    let percent = (versus.least_ratio * 100.0).round();
    let times = || Measure::ALL.into_iter().filter(|&measure| measure != Measure::Missed);
    let is_judged = |measure: Measure| {
        let mut effects = versus.groups.iter().filter_map(|group| group.effects.get(&measure));
        effects.any(|effect| effect.why_not.is_empty())
    };
    // The remarks on the groups contain the reasons.
    if !times().any(is_judged) {
        return None;
    }
    let largest = |measure: Measure| {
        let of_groups = || {
            versus
                .groups
                .iter()
                .filter_map(|group| group.effects.get(&measure))
                .filter(|effect| effect.why_not.is_empty())
        };
        let is_known = of_groups().next().is_some() && of_groups().all(|effect| effect.rounds_needed.is_some());
        is_known.then(|| of_groups().filter_map(|effect| effect.rounds_needed).max()).flatten()
    };
    let known: Vec<String> =
        times().filter_map(|measure| Some(format!("{} {}", largest(measure)?, measure.name()))).collect();
    Some(match known.is_empty() {
        true => {
            format!("These rounds vary so much that more than 200 of each {side} are needed to see {percent} % more.")
        }
        false => {
            format!(
                "Rounds of each {side}{} that show {percent} % more, if they vary as these did: {}.",
                if may_drift(versus.order) { " in the order A B B A" } else { "" },
                known.join(", ")
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use record::versus::MeasureEffect;

    use super::*;
    use crate::versus::{
        answer, side,
        tests::{effect, versus},
    };

    #[test]
    fn without_a_difference_it_says_how_many_rounds_show_one() {
        let known = MeasureEffect { rounds_needed: Some(22), ..effect(1.0, Change::NoDifference) };
        let none = versus(&[(Measure::P99, known), (Measure::Max, effect(1.0, Change::NoDifference))]);
        assert_eq!(answer(&none).sentence, "6 rounds of A and 6 rounds of B show no difference.");
        assert_eq!(notes(&none), ["Rounds of each side that show 20 % more, if they vary as these did: 22 p99."]);
    }

    #[test]
    fn rounds_of_times_that_are_not_judged_are_not_counted() {
        let vary = effect(1.0, Change::NoDifference);
        let cell = MeasureEffect { why_not: "both are in one cell".to_owned(), ..vary };
        assert_eq!(notes(&versus(&[(Measure::P99, cell.clone()), (Measure::Max, cell.clone())])), [""; 0]);
        let note = &notes(&versus(&[(Measure::P99, cell), (Measure::Max, vary)]))[0];
        assert!(note.starts_with("These rounds vary so much that more than 200 of each side"), "{note}");
    }

    #[test]
    fn sides_in_blocks_can_drift_and_need_another_order() {
        let known = MeasureEffect { rounds_needed: Some(22), ..effect(1.0, Change::NoDifference) };
        let in_order = |order| notes(&Versus { order, ..versus(&[(Measure::P99, known.clone())]) });
        let asks = |order| {
            in_order(order).iter().any(|note| note.starts_with("Rounds of each side in the order A B B A that"))
        };
        assert!(
            in_order(RoundOrder::InBlocks)[0].starts_with("The sides were measured in a few long blocks, so a drift")
        );
        assert!(asks(RoundOrder::InBlocks) && asks(RoundOrder::Untimed) && !asks(RoundOrder::Alternating));
    }

    #[test]
    fn values_of_a_condition_have_the_notes_of_a_comparison() {
        let known = MeasureEffect { rounds_needed: Some(22), ..effect(1.0, Change::NoDifference) };
        let none = Versus { order: RoundOrder::OneAfterTheOther, ..versus(&[(Measure::P99, known)]) };
        let few = Versus { least_rounds: 6, ..versus(&[(Measure::P99, effect(1.0, Change::TooFewRounds))]) };
        let step = |value: &str, versus: Option<&Versus>| AcrossStep {
            value: value.to_owned(),
            versus: versus.map(|versus| Box::new(versus.clone())),
            ..AcrossStep::default()
        };
        let of = Across {
            steps: vec![step("6.1", None), step("6.2", Some(&none)), step("6.3", Some(&few))],
            overall: Some(Box::new(none.clone())),
            left_out: vec![LeftOut { record: "x".to_owned(), why: "it does not contain the kernel".to_owned() }],
            ..Across::default()
        };
        assert_eq!(
            across_notes(&of),
            [
                "6.2 against 6.1 and 6.3 against 6.1: All rounds of one value came before those of the other, so a drift of the machine \
                 may look like a difference. Only differences well beyond the drift within a value, for the distance of the values in time, are \
                 judged; alternate the values to see smaller ones.",
                "6.2 against 6.1 and 6.3 against 6.1: Rounds of each value in the order A B B A that show 20 % more, if they vary as these did: 22 p99.",
                "6.3 against 6.2: Too few rounds for a judgement: at least 6 of each are needed.",
                "x is left out, because it does not contain the kernel.",
            ]
        );
    }

    #[test]
    fn records_with_different_groups_are_no_rounds_of_one() {
        let uneven = UnevenGroup { group: "ping".to_owned(), records: vec!["n1".to_owned()] };
        let mut of = versus(&[(Measure::P99, effect(1.0, Change::NoDifference))]);
        of.groups[0].rounds_a = 1;
        of.a.uneven = vec![uneven];
        assert_eq!(answer(&of).sentence, "1 round of A and 6 rounds of B show no difference.");
        assert_eq!(side(&of.a), "6 records with different groups: a to a");
        let note = "A: its records have different groups of threads, which are compared separately: ping is in n1.";
        assert!(notes(&of).iter().any(|of| of == note), "{:?}", notes(&of));
        of.ambiguous = vec![AmbiguousGroup { group: "x".to_owned(), is_of_b: true, similar: vec!["y".to_owned()] }];
        let note = "x of B is not compared, because these groups of A are equally similar: y.";
        assert!(notes(&of).iter().any(|of| of == note), "{:?}", notes(&of));
    }
}
