//! Which pair of CPUs to choose, and how sure that is.

use record::{Cell, CellThread, NOLOAD, Placement, Recommendation, Record};

use super::{
    facts::{self, Standing},
    pairs::Pair,
};
use crate::format_ns;

/// How many pairs are named; more are counted.
const NAMED: usize = 4;

/// Recommends a pair: never one that is worse throughout than another, and never one that another beat in each round.
///
/// Between pairs that their rounds do not tell apart, what is known of the CPUs decides, and after that the worst round.
/// `None` where no pair was measured under every load as asked.
#[must_use]
pub fn recommend(record: &Record) -> Option<Recommendation> {
    let pairs = Pair::all(record);
    let worth: Vec<&Pair> =
        pairs.iter().filter(|pair| !pairs.iter().any(|other| pair.is_worse_throughout(other))).collect();
    let chosen = choose(record, &worth)?;
    let others = || pairs.iter().filter(|pair| pair.cpus() != chosen.cpus());
    let equal: Vec<&Pair> = others().filter(|pair| chosen.times() > 1 && !chosen.beats(pair)).collect();
    let mut why = vec![figures(chosen)];
    if pairs.len() > 1 {
        why.push(comparison(chosen, &equal, pairs.len()));
        why.extend(tie_break(record, chosen, &equal));
        why.extend(avoid(chosen, &pairs));
        why.extend(worst(chosen, &pairs));
    } else {
        why.push("it is the only pair that was measured under every load as asked".to_owned());
    }
    Some(Recommendation {
        pair: chosen.cells[0].pair(),
        equal: equal.iter().map(|pair| pair.cells[0].pair()).collect(),
        certain: chosen.times() > 1 && equal.is_empty(),
        text: format!("Put {}.", in_words(&chosen.cells[0].pair())),
        why,
        facts: facts::told(record, chosen.cpus()),
    })
}

/// The least bad pair, or the one of those not told apart from it that stands best.
fn choose<'a>(record: &Record, worth: &[&'a Pair<'a>]) -> Option<&'a Pair<'a>> {
    let least_bad = worth.iter().copied().min_by(|a, b| a.severity().compare(&b.severity()))?;
    if least_bad.times() < 2 {
        return Some(least_bad);
    }
    let unbeaten = worth.iter().copied().filter(|pair| !worth.iter().any(|other| other.beats(pair)));
    let standing = |pair: &Pair| Standing::of(record, pair.cpus());
    unbeaten.min_by(|a, b| standing(a).cmp(&standing(b)).then(a.severity().compare(&b.severity())))
}

/// `base on CPU 1 and servo on CPU 2`, `base and servo on CPU 1`.
fn in_words(pair: &[Placement]) -> String {
    match pair {
        [row, column] if row.cpu == column.cpu => format!("{} and {} on CPU {}", row.role, column.role, row.cpu),
        _ => {
            let each: Vec<_> = pair.iter().map(|place| format!("{} on CPU {}", place.role, place.cpu)).collect();
            each.join(" and ")
        }
    }
}

fn named(pair: &Pair) -> String {
    in_words(&pair.cells[0].pair())
}

/// What the threads of a pair saw under the load that it bore worst.
fn figures(pair: &Pair) -> String {
    let cell = pair.worst_cell();
    format!("at worst, {}, {}", beside(cell), threads(cell))
}

/// `at rest`, `with cpu:shell`.
fn beside(cell: &Cell) -> String {
    if cell.load == NOLOAD { "at rest".to_owned() } else { format!("with {}", cell.load) }
}

fn threads(cell: &Cell) -> String {
    cell.threads.iter().map(thread).collect::<Vec<_>>().join(", ")
}

/// `base was 7.5 us late (0.30 of its period) and missed no deadline of 4800000`.
fn thread(thread: &CellThread) -> String {
    let CellThread { role, samples, missed, .. } = thread;
    let late = format_ns(thread.max_ns.unwrap_or(0));
    let deadlines = samples + missed;
    let missed = match missed {
        0 => format!("missed none of {deadlines} deadlines"),
        _ => format!("missed {missed} of {deadlines} deadlines ({:.2} %)", 100.0 * thread.missed_share()),
    };
    format!("{role} was {late} late ({:.2} periods) and {missed}", thread.periods_late())
}

fn comparison(chosen: &Pair, equal: &[&Pair], all: usize) -> String {
    let times = chosen.times();
    let beaten = all - 1 - equal.len();
    if times < 2 {
        return "each pair was measured once, so a difference may be chance: measure again with `--rounds 3`"
            .to_owned();
    }
    if equal.is_empty() {
        return format!(
            "each of its {times} rounds was better than any round of the {}",
            counted(beaten, "other pair")
        );
    }
    let names: Vec<String> = equal.iter().take(NAMED).map(|pair| named(pair)).collect();
    let more = if equal.len() > NAMED { format!(" and {} more", equal.len() - NAMED) } else { String::new() };
    let rest = match beaten {
        0 => String::new(),
        _ => format!("; it was better in every round than {}", counted(beaten, "other pair")),
    };
    format!("no real difference to {}{more}: their rounds overlap{rest}", names.join("; "))
}

/// What decided between pairs that the figures do not tell apart.
fn tie_break(record: &Record, chosen: &Pair, equal: &[&Pair]) -> Option<String> {
    let ours = Standing::of(record, chosen.cpus());
    let mut reasons: Vec<&str> =
        equal.iter().filter_map(|pair| ours.better_because(&Standing::of(record, pair.cpus()))).collect();
    reasons.sort_unstable();
    reasons.dedup();
    (!reasons.is_empty()).then(|| format!("it is chosen among them because {}", reasons.join(", and ")))
}

/// CPUs with which each pair was worse than the chosen one in every round.
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

/// What the worst pair saw.
fn worst(chosen: &Pair, pairs: &[Pair]) -> Option<String> {
    let worst = pairs.iter().max_by(|a, b| a.severity().compare(&b.severity()))?;
    let cell = worst.worst_cell();
    let differs = worst.cpus() != chosen.cpus();
    differs.then(|| format!("the worst pair is {}: {}, {}", named(worst), beside(cell), threads(cell)))
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
