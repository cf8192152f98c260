//! The pairs of CPUs of two matrices: the jitter of their threads.

use record::{NOLOAD, Placement, Record, versus::VersusPair};

use super::median;

/// A pair of CPUs under one load, in all rounds of a side.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    load: String,
    places: Vec<Placement>,
    /// Largest |interval - period| of each thread in each round, ns.
    jitter_ns: Vec<Vec<f64>>,
}

/// Adds the cells of a round, except those that did not run as requested. Published cells are invalid as well, because they
/// have only a jitter.
pub(super) fn add(pairs: &mut Vec<Pair>, record: &Record) {
    for cell in record.cells.iter().filter(|cell| cell.invalid.is_none() || record.published.is_some()) {
        let jitter_ns: Vec<f64> = cell.threads.iter().map(|thread| thread.jitter_ns as f64).collect();
        let places = cell.pair();
        match pairs.iter_mut().find(|pair| pair.load == cell.load && pair.places == places) {
            Some(pair) => pair.jitter_ns.iter_mut().zip(jitter_ns).for_each(|(all, one)| all.push(one)),
            None => pairs.push(Pair {
                load: cell.load.clone(),
                places,
                jitter_ns: jitter_ns.into_iter().map(|ns| vec![ns]).collect(),
            }),
        }
    }
}

/// The pairs that both sides have. `loads` are the loads of compared groups: of the first side, and of the second.
pub(super) fn compared(a: &[Pair], b: &[Pair], loads: &[[Option<Vec<String>>; 2]]) -> Vec<VersusPair> {
    let name = |loads: &Option<Vec<String>>| {
        loads.as_ref().map(|loads| if loads.is_empty() { NOLOAD.to_owned() } else { loads.join(", ") })
    };
    let is_compared = |a: &str, b: &str| {
        loads.iter().any(|[ours, theirs]| name(ours).as_deref() == Some(a) && name(theirs).as_deref() == Some(b))
    };
    let of = |ours: &Pair| {
        let theirs = b.iter().find(|theirs| theirs.places == ours.places && is_compared(&ours.load, &theirs.load))?;
        let medians = |pair: &Pair| pair.jitter_ns.iter().filter_map(|rounds| median(rounds.clone())).collect();
        Some(VersusPair {
            load_a: ours.load.clone(),
            load_b: theirs.load.clone(),
            places: ours.places.clone(),
            jitter_a_ns: medians(ours),
            jitter_b_ns: medians(theirs),
        })
    };
    a.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use record::{Cell, CellThread, Published};

    use super::*;

    fn cell(load: &str, cpus: [u32; 2], jitter_ns: [u64; 2]) -> Cell {
        let thread = |(role, index): (&str, usize)| CellThread {
            role: role.to_owned(),
            cpu: cpus[index],
            jitter_ns: jitter_ns[index],
            ..CellThread::default()
        };
        Cell { load: load.to_owned(), threads: [("base", 0), ("servo", 1)].map(thread).into(), ..Cell::default() }
    }

    #[test]
    fn pairs_of_the_same_cpus_and_of_compared_loads_are_compared() {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let of = |cells: &[Cell]| Record { cells: cells.to_vec(), ..Record::default() };
        for jitter_ns in [[10, 20], [30, 60], [20, 40]] {
            add(&mut a, &of(&[cell(NOLOAD, [0, 1], jitter_ns), cell("cpu:shell", [0, 1], [7, 8])]));
        }
        let invalid = |cell: Cell| Cell { invalid: Some("base was not measured".to_owned()), ..cell };
        add(&mut a, &of(&[invalid(cell(NOLOAD, [0, 1], [1, 1])), cell(NOLOAD, [1, 1], [5, 5])]));
        let published = Some(Published::default());
        let cells = vec![invalid(cell(NOLOAD, [0, 1], [4, 10])), cell("cpu:shell@0-1", [0, 1], [14, 4])];
        add(&mut b, &Record { cells, published, ..Record::default() });
        add(&mut b, &of(&[cell("io", [1, 1], [1, 1])]));
        let loads = |a: &[&str], b: &[&str]| [a, b].map(|of| Some(of.iter().map(|load| (*load).to_owned()).collect()));
        let found = compared(&a, &b, &[loads(&[], &[]), loads(&["cpu:shell"], &["cpu:shell@0-1"]), [None, None]]);
        let figures = |pair: &VersusPair| (pair.load_b.clone(), pair.jitter_a_ns.clone(), pair.jitter_b_ns.clone());
        let expected = [
            (NOLOAD.to_owned(), vec![20.0, 40.0], vec![4.0, 10.0]),
            ("cpu:shell@0-1".to_owned(), vec![7.0, 8.0], vec![14.0, 4.0]),
        ];
        assert_eq!(found.iter().map(figures).collect::<Vec<_>>(), expected);
    }
}
