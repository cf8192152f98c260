//! The figures of pairs of CPUs under all loads, for a short table.

use record::Record;

use super::pairs::Pair;

/// A pair of CPUs with its figures under all loads and in all rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairFigures<'a> {
    /// The rank of the pair.
    pub rank: PairRank,
    /// The figures of the row's thread and of the column's thread.
    pub threads: [ThreadFigures<'a>; 2],
}

/// The rank of a pair among all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairRank {
    /// The recommended pair.
    Best,
    /// It may be the best: its rounds overlap with those of the other pairs of this rank.
    Equal,
    /// Any other pair.
    Other,
    /// The pair with the worst round, if it has none of these ranks.
    Worst,
}

/// The figures of one thread of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadFigures<'a> {
    /// Its role.
    pub role: &'a str,
    /// Its CPU.
    pub cpu: u32,
    /// Largest |interval - period|, ns.
    pub jitter_ns: u64,
    /// Missed deadlines.
    pub missed: u64,
}

/// The pairs that ran as requested under every load: the recommended pair or those that may be it, then the others, from
/// the best to the worst.
#[must_use]
pub fn ranked_pairs(record: &Record) -> Vec<PairFigures<'_>> {
    let mut pairs = Pair::all(record);
    pairs.sort_by(|a, b| a.severity().compare(&b.severity()));
    // Without a recommendation, no pair is marked. A single pair is neither the best nor the worst.
    let (advice, several) = (record.recommendation.as_ref(), pairs.len() > 1);
    let rank = |pair: &Pair| {
        let places = pair.cells[0].pair();
        match advice {
            Some(advice) if advice.pair == places && several => PairRank::Best,
            Some(advice) if advice.equal.contains(&places) => PairRank::Equal,
            _ => PairRank::Other,
        }
    };
    let mut all: Vec<PairFigures> =
        pairs.iter().map(|pair| PairFigures { rank: rank(pair), threads: threads(pair) }).collect();
    if let [_, .., last] = &mut all[..]
        && last.rank == PairRank::Other
        && advice.is_some()
    {
        last.rank = PairRank::Worst;
    }
    // The order within each rank remains.
    all.sort_by_key(|pair| match pair.rank {
        PairRank::Best => 0,
        PairRank::Equal => 1,
        PairRank::Other | PairRank::Worst => 2,
    });
    all
}

fn threads<'a>(pair: &Pair<'a>) -> [ThreadFigures<'a>; 2] {
    [0, 1].map(|index| {
        let of_cells = || pair.cells.iter().map(|cell| &cell.threads[index]);
        let first = &pair.cells[0].threads[index];
        ThreadFigures {
            role: &first.role,
            cpu: first.cpu,
            jitter_ns: of_cells().map(|thread| thread.jitter_ns).max().unwrap_or(0),
            missed: of_cells().map(|thread| thread.missed).fold(0, u64::saturating_add),
        }
    })
}

#[cfg(test)]
mod tests {
    use record::{Cell, CellThread, Placement, Recommendation};

    use super::*;

    /// A cell of two threads on these CPUs with this badness.
    fn cell(load: &str, cpus: [u32; 2], badness: f64) -> Cell {
        let thread = |(role, cpu): (&str, u32)| CellThread {
            role: role.to_owned(),
            cpu,
            period_ns: 1_000_000,
            samples: 100,
            missed: 3,
            jitter_ns: if load == "noload" { 10 } else { 20 },
            ..CellThread::default()
        };
        Cell {
            load: load.to_owned(),
            threads: [("base", cpus[0]), ("servo", cpus[1])].map(thread).into(),
            rounds: vec![badness],
            ..Cell::default()
        }
    }

    #[test]
    fn pairs_are_ranked_with_their_figures_under_all_loads() {
        let places = |cpus: [u32; 2]| {
            [("base", cpus[0]), ("servo", cpus[1])].map(|(role, cpu)| Placement { role: role.into(), cpu })
        };
        let pairs = [([0, 0], 0.9), ([0, 1], 0.2), ([1, 0], 0.3), ([1, 1], 0.5)];
        let cells = ["noload", "cpu"].map(|load| pairs.map(|(cpus, badness)| cell(load, cpus, badness)));
        let mut record = Record { cells: cells.concat(), ..Record::default() };
        let ranks = |record: &Record| {
            let ranked = ranked_pairs(record);
            ranked.iter().map(|pair| (pair.threads.map(|thread| thread.cpu), pair.rank)).collect::<Vec<_>>()
        };
        use PairRank::{Best, Equal, Other, Worst};
        assert_eq!(ranks(&record), [([0, 1], Other), ([1, 0], Other), ([1, 1], Other), ([0, 0], Other)]);
        record.recommendation = Some(Recommendation {
            equal: vec![places([1, 1]).into(), places([1, 0]).into()],
            ..Recommendation::default()
        });
        assert_eq!(ranks(&record), [([1, 0], Equal), ([1, 1], Equal), ([0, 1], Other), ([0, 0], Worst)]);
        record.recommendation = Some(Recommendation { pair: places([1, 0]).into(), ..Recommendation::default() });
        assert_eq!(ranks(&record), [([1, 0], Best), ([0, 1], Other), ([1, 1], Other), ([0, 0], Worst)]);
        let [base, _] = ranked_pairs(&record)[0].threads;
        assert_eq!((base.role, base.jitter_ns, base.missed), ("base", 20, 6));
        record.cells.retain(|cell| cell.pair() == places([1, 0]));
        assert_eq!(ranks(&record), [([1, 0], Other)], "the only pair");
    }
}
