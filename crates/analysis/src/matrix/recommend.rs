//! Recommends a pair of CPUs.

use record::{Cell, CellThread, NOLOAD, Placement, Recommendation, Record, counted, grouped};

use super::{facts, pairs::Pair};
use crate::{badness::contenders, format_ns};

/// The number of undecided pairs that are named; more are counted.
const NAMED: usize = 8;

/// Recommends the pair each of whose rounds was better than every round of all other pairs.
///
/// If there is no such pair, nothing is recommended: `pair` is empty, and `equal` contains the pairs that may be the best.
/// `None` if the run is invalid or ended early, or if fewer than two of several pairs ran as requested under every load,
/// see [`why_none`].
#[must_use]
pub fn recommend(record: &Record) -> Option<Recommendation> {
    if record.run_obstacle().is_some() {
        return None;
    }
    let pairs = Pair::all(record);
    if pairs.len() < 2 && measured_pairs(record) > 1 {
        return None;
    }
    let rounds: Vec<_> = pairs.iter().map(Pair::rounds).collect();
    let contenders: Vec<&Pair> = contenders(&rounds).into_iter().map(|index| &pairs[index]).collect();
    match contenders[..] {
        [] => None,
        [chosen] => Some(decided(record, chosen, &pairs)),
        _ => Some(undecided(record, &contenders, pairs.len())),
    }
}

fn decided(record: &Record, chosen: &Pair, pairs: &[Pair]) -> Recommendation {
    let mut why = vec![figures(chosen)];
    if pairs.len() > 1 {
        why.push(format!(
            "each of its {} rounds was better than any round of the {}",
            chosen.round_count(),
            counted(pairs.len() as u64 - 1, "other pair")
        ));
        why.extend(avoid(chosen, pairs));
        why.extend(worst(chosen, pairs));
    } else {
        why.push("it is the only pair".to_owned());
    }
    Recommendation {
        pair: chosen.cells[0].pair(),
        equal: Vec::new(),
        certain: true,
        text: format!("Put {}.", name(chosen)),
        why,
        facts: facts::describe(record, Some(chosen.cpus())),
    }
}

fn undecided(record: &Record, contenders: &[&Pair], all: usize) -> Recommendation {
    let names: Vec<String> = contenders.iter().take(NAMED).map(|pair| name(pair)).collect();
    let left_out = contenders.len().saturating_sub(NAMED);
    let more = if left_out > 0 { format!("; and {left_out} more") } else { String::new() };
    let beaten = match all - contenders.len() {
        0 => String::new(),
        others => format!("; the first was better in every round than {}", counted(others as u64, "other pair")),
    };
    let pairs = counted(contenders.len() as u64, "pair");
    let (text, reason) = match contenders.iter().map(|pair| pair.round_count()).min() {
        Some(2..) => (
            format!("Undecided between {pairs}, because their rounds overlap: measure longer."),
            "no real difference between",
        ),
        _ => (
            format!("Undecided between {pairs}, because each was measured only once: measure in several rounds."),
            "a difference may be chance between",
        ),
    };
    Recommendation {
        equal: contenders.iter().map(|pair| pair.cells[0].pair()).collect(),
        text,
        why: vec![format!("{reason} {}{more}{beaten}", names.join("; "))],
        facts: facts::describe(record, None),
        ..Recommendation::default()
    }
}

/// The reason why there is no recommendation.
#[must_use]
pub fn why_none(record: &Record) -> String {
    if let Some(obstacle) = record.run_obstacle() {
        return obstacle.to_string();
    }
    match Pair::all(record).len() {
        0 => "no pair ran as requested under every load".to_owned(),
        ran => format!("only {ran} of {} pairs ran as requested under every load", measured_pairs(record)),
    }
}

/// The number of pairs with a cell, also if it is invalid.
fn measured_pairs(record: &Record) -> usize {
    let mut pairs: Vec<Vec<Placement>> = record.cells.iter().map(Cell::pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len()
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

/// The result of the worst pair.
fn worst(chosen: &Pair, pairs: &[Pair]) -> Option<String> {
    let others = pairs.iter().filter(|pair| pair.cpus() != chosen.cpus());
    let worst = others.max_by(|a, b| a.severity().compare(&b.severity()))?;
    Some(format!("the worst pair is {}: {}", name(worst), figures(worst)))
}

#[cfg(test)]
mod tests;
