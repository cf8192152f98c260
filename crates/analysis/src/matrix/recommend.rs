//! Recommends a pair of CPUs.

use record::{Cell, CellThread, NOLOAD, Placement, Recommendation, Record, counted, grouped};

use super::{
    facts::{self, PairFacts},
    pairs::Pair,
};
use crate::format_ns;

/// The number of pairs that are named; more are counted.
const NAMED: usize = 4;

/// Recommends a pair that is not worse than another pair throughout, and that no other pair beat in every round.
///
/// Between pairs that their rounds do not separate, the facts about their CPUs decide, then the worst round. `None` if
/// the run is invalid or ended early, or no pair ran as requested under every load, see [`why_none`].
#[must_use]
pub fn recommend(record: &Record) -> Option<Recommendation> {
    if record.run_obstacle().is_some() {
        return None;
    }
    let pairs = Pair::all(record);
    let eligible: Vec<&Pair> =
        pairs.iter().filter(|pair| !pairs.iter().any(|other| pair.is_worse_throughout(other))).collect();
    let chosen = choose(record, &eligible)?;
    let others = || pairs.iter().filter(|pair| pair.cpus() != chosen.cpus());
    let equal: Vec<&Pair> = others().filter(|pair| chosen.round_count() > 1 && !chosen.beats(pair)).collect();
    let mut why = vec![figures(chosen)];
    if pairs.len() > 1 {
        why.push(comparison(chosen, &equal, pairs.len()));
        why.extend(tie_break(record, chosen, &equal));
        why.extend(avoid(chosen, &pairs));
        why.extend(worst(chosen, &pairs));
    } else {
        why.push("it is the only pair that ran as requested under every load".to_owned());
    }
    Some(Recommendation {
        pair: chosen.cells[0].pair(),
        equal: equal.iter().map(|pair| pair.cells[0].pair()).collect(),
        certain: chosen.round_count() > 1 && equal.is_empty(),
        text: text(chosen, &equal),
        why,
        facts: facts::describe(record, chosen.cpus()),
    })
}

/// The reason why there is no recommendation.
#[must_use]
pub fn why_none(record: &Record) -> String {
    match record.run_obstacle() {
        Some(obstacle) => obstacle.to_string(),
        None => "no pair ran as requested under every load".to_owned(),
    }
}

/// The least bad pair, or one that its rounds do not separate from it and whose CPUs suit better.
fn choose<'a>(record: &Record, eligible: &[&'a Pair<'a>]) -> Option<&'a Pair<'a>> {
    let least_bad = eligible.iter().copied().min_by(|a, b| a.severity().compare(&b.severity()))?;
    if least_bad.round_count() < 2 {
        return Some(least_bad);
    }
    let unbeaten = eligible.iter().copied().filter(|pair| !eligible.iter().any(|other| other.beats(pair)));
    let facts = |pair: &Pair| PairFacts::of(record, pair.cpus());
    unbeaten.min_by(|a, b| facts(a).cmp(&facts(b)).then(a.severity().compare(&b.severity())))
}

/// A placement as text: `base on CPU 1 and servo on CPU 2`, `base and servo on CPU 1`.
fn placement_text(pair: &[Placement]) -> String {
    match pair {
        [row, column] if row.cpu == column.cpu => format!("{} and {} on CPU {}", row.role, column.role, row.cpu),
        _ => {
            let each: Vec<_> = pair.iter().map(|place| format!("{} on CPU {}", place.role, place.cpu)).collect();
            each.join(" and ")
        }
    }
}

fn name(pair: &Pair) -> String {
    placement_text(&pair.cells[0].pair())
}

/// The advice in one sentence.
fn text(chosen: &Pair, equal: &[&Pair]) -> String {
    let placement = name(chosen);
    match chosen.round_count() {
        ..2 => format!("Put {placement}; each pair was measured only once."),
        _ if equal.is_empty() => format!("Put {placement}."),
        _ => format!("No pair is better than all others; put {placement}."),
    }
}

/// The results of a pair under all loads.
fn figures(pair: &Pair) -> String {
    let loads = match &pair.cells[..] {
        [cell] => load_text(cell),
        _ => "under all loads".to_owned(),
    };
    format!("{loads}, {}, {}", role(pair, 0), role(pair, 1))
}

/// The load of a cell: `at rest`, `with cpu:shell`.
fn load_text(cell: &Cell) -> String {
    if cell.load == NOLOAD { "at rest".to_owned() } else { format!("with {}", cell.load) }
}

/// The results of a thread of a pair under all loads: `base was at most 7.5 us late (0.30 periods, at rest) and missed
/// none of 4,800,000 deadlines`.
fn role(pair: &Pair, thread: usize) -> String {
    let under = |cell: &&Cell| cell.threads[thread].max_ns.unwrap_or(0);
    let latest = pair.cells.iter().max_by_key(|cell| under(cell)).map_or(pair.cells[0], |cell| *cell);
    let CellThread { role, max_ns, .. } = &latest.threads[thread];
    let threads = || pair.cells.iter().map(|cell| &cell.threads[thread]);
    let missed: u64 = threads().map(|thread| thread.missed).sum();
    let deadlines = missed + threads().map(|thread| thread.samples).sum::<u64>();
    let late = format_ns(max_ns.unwrap_or(0));
    let periods = latest.threads[thread].periods_late();
    let load = if pair.cells.len() > 1 { format!(", {}", load_text(latest)) } else { String::new() };
    let percent = 100.0 * missed as f64 / deadlines as f64;
    let deadlines = grouped(deadlines);
    let missed = match missed {
        0 => format!("missed none of {deadlines} deadlines"),
        _ => format!("missed {} of {deadlines} deadlines ({percent:.2} %)", grouped(missed)),
    };
    format!("{role} was at most {late} late ({periods:.2} periods{load}) and {missed}")
}

fn comparison(chosen: &Pair, equal: &[&Pair], all: usize) -> String {
    let rounds = chosen.round_count();
    let beaten = all - 1 - equal.len();
    if rounds < 2 {
        return "each pair was measured once, so a difference may be chance: measure again with `--rounds 3`"
            .to_owned();
    }
    if equal.is_empty() {
        return format!(
            "each of its {rounds} rounds was better than any round of the {}",
            counted(beaten as u64, "other pair")
        );
    }
    let names: Vec<String> = equal.iter().take(NAMED).map(|pair| name(pair)).collect();
    let others = if equal.len() > NAMED { format!(" and {} more", equal.len() - NAMED) } else { String::new() };
    let beaten_pairs = match beaten {
        0 => String::new(),
        _ => format!("; it was better in every round than {}", counted(beaten as u64, "other pair")),
    };
    format!("no real difference from {}{others}: their rounds overlap{beaten_pairs}", names.join("; "))
}

/// The facts that decided between pairs with overlapping rounds.
fn tie_break(record: &Record, chosen: &Pair, equal: &[&Pair]) -> Option<String> {
    let ours = PairFacts::of(record, chosen.cpus());
    let mut reasons: Vec<&str> =
        equal.iter().filter_map(|pair| ours.better_because(&PairFacts::of(record, pair.cpus()))).collect();
    reasons.sort_unstable();
    reasons.dedup();
    (!reasons.is_empty()).then(|| format!("it is chosen among them because {}", reasons.join(", and ")))
}

/// The CPUs whose pairs were all worse than the chosen one in every round.
fn avoid(chosen: &Pair, pairs: &[Pair]) -> Option<String> {
    let mut cpus: Vec<u32> = pairs.iter().flat_map(Pair::cpus).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus.retain(|cpu| pairs.iter().filter(|pair| pair.cpus().contains(cpu)).all(|pair| chosen.beats(pair)));
    let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let cpus = match &list[..] {
        [] => return None,
        [one] => format!("CPU {one}"),
        several => format!("CPU {}", several.join(" or ")),
    };
    Some(format!("each pair with a thread on {cpus} was worse in every round"))
}

/// The result of the worst pair, unless its rounds overlap with those of the chosen one.
fn worst(chosen: &Pair, pairs: &[Pair]) -> Option<String> {
    let worst = pairs.iter().max_by(|a, b| a.severity().compare(&b.severity()))?;
    let differs = worst.cpus() != chosen.cpus() && (chosen.round_count() < 2 || chosen.beats(worst));
    differs.then(|| format!("the worst pair is {}: {}", name(worst), figures(worst)))
}

#[cfg(test)]
mod tests;
