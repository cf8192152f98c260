//! Comparison of the run with other records, figure by figure.

use analysis::{NOT_AS_REQUESTED, is_response};
use record::{ComparedPair, Comparison, Figures, INTERRUPT, Record, counted};

use super::cell;
use super::page::Page;
use super::table::Table;
use crate::compare::{YOURS, caveats, conditions, name, origin, rows, theirs};
use crate::style::Ink;

/// One section per record that this one is compared with.
pub(super) fn section(page: &mut Page, record: &Record) {
    record.against.iter().for_each(|against| comparison(page, against));
}

/// The largest lateness against that of each other record, in one line each: of the group where the ratio is largest, and
/// of equal ratios the largest lateness. Responses to an outside judge are compared before the way to the thread, which is a
/// part of them. The jitter instead if the other record has no lateness, such as a published matrix.
pub(super) fn brief(page: &mut Page, record: &Record, column: usize) {
    for against in &record.against {
        let text = worst(against, "max", |pair| pair.ratios.max)
            .or_else(|| worst(against, "jitter", |pair| pair.ratios.jitter))
            .unwrap_or_else(|| format!("no figure to compare with {}", against.name));
        page.fact("against", column, &text);
    }
}

/// The group with the largest ratio of a figure, in words; `None` if no group has it on both sides.
fn worst(against: &Comparison, figure: &str, ratio: impl Fn(&ComparedPair) -> Option<f64>) -> Option<String> {
    let has_responses = against.pairs.iter().any(|pair| is_response(&pair.ours));
    let pairs = against.pairs.iter().filter(|pair| is_response(&pair.ours) == has_responses);
    let ratios = pairs.filter_map(|pair| Some((pair, ratio(pair)?)));
    let (pair, _) =
        ratios.max_by(|(a, of_a), (b, of_b)| of_a.total_cmp(of_b).then(a.ours.max_ns.cmp(&b.ours.max_ns)))?;
    let [_, ours, theirs, ratio] = rows(pair).into_iter().find(|row| row[0] == figure)?;
    let what = if figure == "max" { largest(&pair.ours) } else { figure };
    // Published times of interrupts begin and end at different points.
    let note = match &*pair.theirs.note {
        note if pair.ours.probe == INTERRUPT && !note.is_empty() => format!("; theirs is {note}"),
        _ => String::new(),
    };
    // That of the run is the reason why it is not judged.
    let doubts = against.caveats.iter().filter(|caveat| caveat.kind != NOT_AS_REQUESTED && against.source.is_empty());
    let doubts = match caveats(&doubts.cloned().collect::<Vec<_>>()).len() as u64 {
        0 => String::new(),
        number => format!("; {}: --full", counted(number, "caveat")),
    };
    let (group, other) = (name(&pair.ours), &against.name);
    let run = against.caveats.iter().find(|caveat| caveat.kind == NOT_AS_REQUESTED);
    let why = run.map_or("one run is not judged", |caveat| &caveat.text);
    Some(format!("{other} ({group}): {what} {theirs}, here {ours} ({ratio}; {why}{doubts}){note}"))
}

/// The name of the largest time of a group.
fn largest(ours: &Figures) -> &'static str {
    match &*ours.probe {
        INTERRUPT if is_response(ours) => "longest response",
        INTERRUPT => "longest time from the interrupt to the thread",
        _ => "largest lateness",
    }
}

fn comparison(page: &mut Page, against: &Comparison) {
    page.heading(&format!("Compared with {}: {}", against.name, against.on));
    page.text(Ink::Quiet, &origin(against));
    caveats(&against.caveats).iter().for_each(|caveat| page.text(Ink::Quiet, &format!("Caveat: {caveat}")));
    for pair in &against.pairs {
        page.gap();
        page.text(Ink::Plain, &format!("{} / {}", name(&pair.ours), name(&pair.theirs)));
        let mut table = Table::new(&["", YOURS, theirs(against), "ratio"]);
        for row in rows(pair) {
            table.row(row.map(cell).to_vec());
        }
        page.table(&table);
        page.below(4, Ink::Quiet, &conditions(pair));
    }
    if !against.alone.is_empty() {
        page.text(Ink::Plain, &format!("Without a counterpart: {}.", against.alone.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use record::{Caveat, Ratios};

    use super::*;

    #[test]
    fn the_short_answer_compares_responses_first_and_names_what_it_compares() {
        let pair = |role: &str, note: &str, max_ns, ratio| {
            let (probe, phase, role) = (INTERRUPT.to_owned(), "rest".to_owned(), role.to_owned());
            let ours = Figures { probe, phase, role, max_ns: Some(max_ns), ..Figures::default() };
            let theirs = Figures { max_ns: Some(30_000), note: note.to_owned(), ..Figures::default() };
            ComparedPair { ours, theirs, ratios: Ratios { max: Some(ratio), ..Ratios::default() }, differs: Vec::new() }
        };
        let text = |pairs: Vec<ComparedPair>| {
            let against = Comparison { name: "board".to_owned(), pairs, ..Comparison::default() };
            worst(&against, "max", |pair| pair.ratios.max).unwrap()
        };
        let way = pair(INTERRUPT, "to the callback", 90_000, 3.0);
        let why = "one run is not judged";
        assert_eq!(
            text(vec![way.clone()]),
            format!(
                "board (at rest, interrupt): longest time from the interrupt to the thread 30 us, here 90 us (3.00x; {why}); \
                 theirs is to the callback"
            )
        );
        let whole = pair(record::RESPONSE, "", 60_000, 2.0);
        let expected = format!("board (at rest, response): longest response 30 us, here 60 us (2.00x; {why})");
        assert_eq!(text(vec![way, whole]), expected);
    }

    #[test]
    fn the_short_answer_counts_the_caveats_of_an_imported_file() {
        let caveat = |kind: &str, text: &str| Caveat { kind: kind.to_owned(), text: text.to_owned() };
        let figures = Figures { max_ns: Some(2_000), ..Figures::default() };
        let ratios = Ratios { max: Some(1.0), ..Ratios::default() };
        let pairs = vec![ComparedPair { ours: figures.clone(), theirs: figures, ratios, differs: Vec::new() }];
        let caveats =
            vec![caveat("units", "microseconds are assumed"), caveat("units", "thread 0: its mean is too long")];
        let against = Comparison { name: "n.txt".to_owned(), pairs, caveats, ..Comparison::default() };
        let text = worst(&against, "max", |pair| pair.ratios.max).unwrap();
        assert!(text.ends_with("; 2 caveats: --full)"), "{text}");
    }
}
