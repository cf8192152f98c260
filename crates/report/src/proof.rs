//! Searches for the changes that help, as text for terminal and HTML.

use analysis::{format_ns, prove::ROUNDS};
use record::{
    Proof, State, counted,
    proof::{CONTROL, Compares, Effect, Figure, Interval, Judgement},
};

use crate::{compare, style::Ink};

/// One candidate, or all kept ones together.
pub(crate) struct Row<'a> {
    /// Name of the change.
    pub name: &'a str,
    /// The figure that shows the effect best.
    pub figure: &'static str,
    /// The ratio or difference.
    pub effect: String,
    /// Its interval.
    pub interval: String,
    pub judgement: String,
    pub ink: Ink,
}

/// The answer, and what supports it.
pub(crate) struct Answer {
    /// The word of the headline.
    pub word: &'static str,
    /// One sentence.
    pub sentence: String,
    /// Further sentences; empty if there are none.
    pub reason: String,
    /// True if a set of changes was confirmed.
    pub is_found: bool,
}

/// The answer of a search.
pub(crate) fn answer(proof: &Proof) -> Answer {
    let blocks = proof.rounds.len() / ROUNDS as usize;
    let Some(conclusion) = &proof.conclusion else {
        return Answer {
            word: "NOT FINISHED",
            sentence: format!("{} of {} were measured.", blocks, counted(u64::from(proof.blocks), "block")),
            reason: String::new(),
            is_found: false,
        };
    };
    let names = |indices: &[usize]| {
        indices.iter().map(|&index| proof.candidates[index].id.as_str()).collect::<Vec<_>>().join(", ")
    };
    let harmful: Vec<usize> = (0..conclusion.effects.len())
        .filter(|&index| conclusion.effects[index].judgement == Judgement::Harms)
        .filter(|&index| proof.candidates[index].id != CONTROL)
        .collect();
    let harms = if harmful.is_empty() { String::new() } else { format!("Harmful here: {}.", names(&harmful)) };
    let control = proof.is_restless(&conclusion.effects).then_some(
        "The control changes nothing and shows a difference, so do not trust this search: repeat it on a quiet machine.",
    );
    let chosen = proof.chosen.as_deref().unwrap_or_default();
    let (word, sentence) = match (&conclusion.why_not, &conclusion.together) {
        (Some(why), _) => ("NOT CONFIRMED", format!("{} seemed to help, but {why}.", names(chosen))),
        (None, Some(together)) if !conclusion.kept.is_empty() => {
            let dropped: Vec<usize> = chosen.iter().copied().filter(|index| !conclusion.kept.contains(index)).collect();
            let verb = if conclusion.kept.len() == 1 { "helps" } else { "help" };
            let how = match best(together) {
                // The figures of all chosen ones are not those of the kept ones.
                _ if !dropped.is_empty() => {
                    format!("; {} harms together with the others, and is not kept", names(&dropped))
                }
                Some((figure, interval)) => {
                    let (effect, interval) = (shown(figure, &interval), interval_text(figure, &interval));
                    format!(": {} {effect} ({interval})", figure.name())
                }
                None => String::new(),
            };
            ("FOUND", format!("{} {verb}{how}.", names(&conclusion.kept)))
        }
        _ => ("NOTHING HELPS", format!("No change made a measurable difference for the better.{}", seen(proof))),
    };
    let reason =
        [control.unwrap_or_default(), &harms].iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>();
    Answer { word, sentence, reason: reason.join(" "), is_found: word == "FOUND" && control.is_none() }
}

/// The largest improvement that the intervals leave possible; empty if one has no end.
fn seen(proof: &Proof) -> String {
    let effects = proof.conclusion.iter().flat_map(|conclusion| &conclusion.effects);
    let most = |figure: Figure| {
        let lows: Option<Vec<f64>> = effects.clone().map(|effect| effect.on.get(&figure)?.low).collect();
        lows?.into_iter().reduce(f64::min).map(|low| (1.0 - low).max(0.0))
    };
    let known = [Figure::P99, Figure::P9999].into_iter().filter_map(|figure| Some((figure, most(figure)?)));
    let each: Vec<String> =
        known.map(|(figure, most)| format!("{} by more than {:.0} %", figure.name(), most * 100.0)).collect();
    if each.is_empty() { String::new() } else { format!(" At 98 %, none improves {}.", each.join(" or ")) }
}

/// The measurement of each round, in words.
pub(crate) fn measurement(proof: &Proof) -> String {
    let rounds = counted(proof.rounds.len() as u64, "round");
    let length = format_ns(i64::try_from(proof.round_ns).unwrap_or(i64::MAX));
    format!("{rounds} of {length} with the probe {}", proof.scenario.probe)
}

/// A row for each candidate, those that matter first, then one for all kept ones together.
pub(crate) fn rows(proof: &Proof) -> Vec<Row<'_>> {
    let Some(conclusion) = &proof.conclusion else { return Vec::new() };
    let mut rows: Vec<(u8, Row)> = Vec::new();
    for (index, effect) in conclusion.effects.iter().enumerate() {
        let is_kept = conclusion.kept.contains(&index);
        let (order, judgement, ink) = match effect.judgement {
            Judgement::Helps if is_kept => (0, "helps: kept", Ink::Good),
            Judgement::Helps => (1, "helps, not kept", Ink::Plain),
            Judgement::Harms => (2, "harms", Ink::Bad),
            Judgement::Mixed => (3, "better and worse", Ink::Alarm),
            Judgement::RareHarm => (3, "rarely much worse", Ink::Alarm),
            Judgement::NoDifference => (4, "no difference", Ink::Plain),
        };
        rows.push((order, row(&proof.candidates[index].id, effect, judgement.to_owned(), ink)));
    }
    rows.sort_by_key(|(order, _)| *order);
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    if let Some(together) = conclusion.together.as_ref().filter(|together| !together.on.is_empty()) {
        let judgement = if conclusion.why_not.is_none() { "confirmed" } else { "not confirmed" };
        let ink = if conclusion.why_not.is_none() { Ink::Good } else { Ink::Alarm };
        rows.push(row("all chosen together", together, judgement.to_owned(), ink));
    }
    rows
}

fn row<'a>(name: &'a str, effect: &Effect, judgement: String, ink: Ink) -> Row<'a> {
    let Some((figure, interval)) = best(effect) else {
        let unknown = || "-".to_owned();
        return Row { name, figure: "", effect: unknown(), interval: unknown(), judgement, ink };
    };
    let (effect, interval) = (shown(figure, &interval), interval_text(figure, &interval));
    Row { name, figure: figure.name(), effect, interval, judgement, ink }
}

/// All figures of all candidates.
pub(crate) struct Details {
    pub headings: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

/// All figures of all candidates. Only a search that compared some without each of them has the last column.
pub(crate) fn details(proof: &Proof) -> Details {
    let mut headings = vec!["change", "figure", "effect", "interval", "blocks", "beside the others"];
    let Some(conclusion) = &proof.conclusion else { return Details { headings, rows: Vec::new() } };
    let together = conclusion.together.iter().map(|effect| ("all chosen together", effect));
    let named = proof.candidates.iter().map(|candidate| candidate.id.as_str()).zip(&conclusion.effects);
    let mut rows = Vec::new();
    for (name, effect) in named.chain(together) {
        for (figure, interval) in &effect.on {
            let beside = effect.beside.get(figure);
            let beside = beside.map_or_else(
                || "-".to_owned(),
                |beside| format!("{} ({})", shown(*figure, beside), interval_text(*figure, beside)),
            );
            rows.push(vec![
                name.to_owned(),
                figure.name().to_owned(),
                shown(*figure, interval),
                interval_text(*figure, interval),
                interval.blocks.to_string(),
                beside,
            ]);
        }
    }
    if conclusion.effects.iter().all(|effect| effect.beside.is_empty()) {
        headings.pop();
        rows.iter_mut().for_each(|row| _ = row.pop());
    }
    Details { headings, rows }
}

/// Number of whole blocks of the screening and of the confirmation.
pub(crate) fn blocks(proof: &Proof) -> (usize, usize) {
    let halves = proof.rounds.iter().filter(|round| round.compares == Compares::Halves).count() / ROUNDS as usize;
    (halves, proof.rounds.len() / ROUNDS as usize - halves)
}

/// A sentence if the search is not finished; else empty.
pub(crate) fn ending(proof: &Proof) -> &'static str {
    match proof.state {
        State::Complete => "",
        _ => "The search is not finished.",
    }
}

/// The figure to show of an effect: the first one that certainly differs in the direction of the judgement, else the first
/// that differs, else the first known one.
fn best(effect: &Effect) -> Option<(Figure, Interval)> {
    const ORDER: [Figure; 4] = [Figure::P9999, Figure::Max, Figure::P99, Figure::Missed];
    let known = || ORDER.iter().filter_map(|figure| Some((*figure, *effect.on.get(figure)?)));
    let is_better =
        |figure: Figure, interval: &Interval| interval.estimate < if figure == Figure::Missed { 0.0 } else { 1.0 };
    let wants_better = match effect.judgement {
        Judgement::Helps | Judgement::RareHarm => true,
        Judgement::Harms | Judgement::Mixed | Judgement::NoDifference => false,
    };
    let in_direction = |(figure, interval): &(Figure, Interval)| {
        differs(*figure, interval) && is_better(*figure, interval) == wants_better
    };
    let differing = || known().find(|(figure, interval)| differs(*figure, interval));
    known().find(in_direction).or_else(differing).or_else(|| known().next())
}

fn differs(figure: Figure, interval: &Interval) -> bool {
    let nothing = if figure == Figure::Missed { 0.0 } else { 1.0 };
    interval.low.is_some_and(|low| low > nothing) || interval.high.is_some_and(|high| high < nothing)
}

/// A ratio as `x 0.62`, a difference of shares as `-0.120 %`.
fn shown(figure: Figure, interval: &Interval) -> String {
    let value = value_text(figure, interval.estimate, differs(figure, interval));
    if figure == Figure::Missed { value } else { format!("x {value}") }
}

fn interval_text(figure: Figure, interval: &Interval) -> String {
    let is_difference = differs(figure, interval);
    let end = |value: Option<f64>| value.map_or("?".to_owned(), |value| value_text(figure, value, is_difference));
    match (interval.low, interval.high) {
        (None, None) => "too few blocks".to_owned(),
        (low, high) => format!("{} to {}", end(low), end(high)),
    }
}

/// An estimate or the end of an interval. If it counts as a difference, it is not shown as the value of no difference.
fn value_text(figure: Figure, value: f64, is_difference: bool) -> String {
    match (figure, is_difference) {
        (Figure::Missed, _) => share(value, is_difference),
        (_, true) => compare::times_apart(value).trim_end_matches('x').to_owned(),
        (_, false) => compare::times(value).trim_end_matches('x').to_owned(),
    }
}

/// A difference of shares in per cent, with three decimals, or more if it counts and would be rounded to 0.
fn share(value: f64, is_difference: bool) -> String {
    const USUAL: usize = 3;
    let percent = value * 100.0;
    let decimals = if is_difference { compare::decimals_apart(percent, 0.0, USUAL) } else { USUAL };
    let text = format!("{percent:+.decimals$} %");
    if text[1..] == *"0.000 %" { "0 %".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_shares_that_counts_is_not_0() {
        assert_eq!([share(0.1, false), share(0.0, false), share(-0.000_002, false)], ["+10.000 %", "0 %", "0 %"]);
        assert_eq!([share(0.000_002, true), share(-0.001, true)], ["+0.0002 %", "-0.100 %"]);
    }

    #[test]
    fn a_ratio_that_counts_is_not_1() {
        let interval = Interval { estimate: 1.003, low: Some(1.001), high: Some(1.2), blocks: 8 };
        assert_eq!(shown(Figure::Max, &interval), "x 1.003");
        assert_eq!(interval_text(Figure::Max, &interval), "1.001 to 1.20");
        let interval = Interval { low: Some(0.9), ..interval };
        assert_eq!(
            (shown(Figure::Max, &interval), interval_text(Figure::Max, &interval)),
            ("x 1.00".to_owned(), "0.90 to 1.20".to_owned())
        );
    }
}
