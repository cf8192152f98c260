use proptest::prelude::*;
use record::{CpuFacts, NOLOAD, Reason, State};

use super::*;

/// The result of one thread in one round: largest lateness in us, and missed deadlines of 1000.
type Seen = (i64, u64);

/// A cell with rounds, each with the results of base and servo.
fn cell(load: &str, cpus: [u32; 2], rounds: &[[Seen; 2]]) -> Cell {
    let roles = [("base", 25_000), ("servo", 1_000_000)];
    let of_round = |seen: &[Seen; 2]| -> Vec<CellThread> {
        let of = |((&(role, period_ns), cpu), &(late_us, missed)): ((&(&str, u64), u32), &Seen)| CellThread {
            role: role.to_owned(),
            cpu,
            period_ns,
            samples: 1000 - missed,
            missed,
            max_ns: Some(late_us * 1000),
            jitter_ns: 0,
            cpu_checks: 1,
        };
        roles.iter().zip(cpus).zip(seen).map(of).collect()
    };
    let bad = |thread: &CellThread| thread.periods_late().min(1.0) + 1000.0 * thread.missed_share();
    let each: Vec<Vec<CellThread>> = rounds.iter().map(of_round).collect();
    let mut threads = each[0].clone();
    for round in &each[1..] {
        for (all, one) in threads.iter_mut().zip(round) {
            all.samples += one.samples;
            all.missed += one.missed;
            all.max_ns = all.max_ns.max(one.max_ns);
        }
    }
    let thread_rounds = vec![0, 1].into_iter().map(|thread| each.iter().map(|round| bad(&round[thread])).collect());
    let thread_rounds: Vec<Vec<f64>> = thread_rounds.collect();
    let rounds: Vec<f64> = (0..each.len()).map(|round| thread_rounds[0][round].max(thread_rounds[1][round])).collect();
    let badness = rounds.iter().copied().fold(0.0, f64::max);
    Cell { load: load.to_owned(), threads, rounds, thread_rounds, badness, ..Cell::default() }
}

/// A valid matrix that is complete.
fn matrix(cells: Vec<Cell>) -> Record {
    let mut record = Record { cells, state: State::Complete, ..Record::default() };
    record.validity.valid = true;
    record
}

fn pair(recommendation: &Recommendation) -> [u32; 2] {
    [0, 1].map(|thread| recommendation.pair[thread].cpu)
}

fn same(late_us: i64) -> [Seen; 2] {
    [(late_us, 0), (late_us, 0)]
}

/// Two CPUs; something blocks CPU 0 repeatedly.
fn blocked() -> Record {
    let blocked: Seen = (4000, 300);
    let cells = ["noload", "cpu:shell"].into_iter().flat_map(|load| {
        [[0, 0], [0, 1], [1, 0], [1, 1]].map(|cpus: [u32; 2]| {
            let seen = |late_us| [0, 1].map(|thread| if cpus[thread] == 0 { blocked } else { (late_us, 0) });
            cell(load, cpus, &[seen(5), seen(8), seen(6)])
        })
    });
    matrix(cells.collect())
}

#[test]
fn avoids_and_names_a_blocked_cpu() {
    let advice = recommend(&blocked()).unwrap();
    assert_eq!((pair(&advice), advice.certain, advice.equal.len()), ([1, 1], true, 0));
    assert_eq!(advice.text, "Put base and servo on CPU 1.");
    assert_eq!(
        advice.why[0],
        "under all loads, base was at most 8 us late (0.32 periods, with cpu:shell) and missed none of 6,000 deadlines, \
         servo was at most 8 us late (0.01 periods, with cpu:shell) and missed none of 6,000 deadlines"
    );
    assert_eq!(advice.why[1], "each of its 3 rounds was better than any round of the 3 other pairs");
    assert_eq!(advice.why[2], "each pair with a thread on CPU 0 was worse in every round");
    assert!(advice.why[3].contains("missed 1,800 of 6,000 deadlines (30.00 %)"), "{}", advice.why[3]);
}

#[test]
fn judges_a_pair_by_its_worse_load() {
    let record = matrix(vec![
        cell(NOLOAD, [0, 0], &[same(2), same(2)]),
        cell(NOLOAD, [1, 1], &[same(5), same(5)]),
        cell("cpu", [0, 0], &[same(20), same(20)]),
        cell("cpu", [1, 1], &[same(6), same(6)]),
    ]);
    assert_eq!(pair(&recommend(&record).unwrap()), [1, 1]);
}

#[test]
fn names_the_latest_load_and_all_missed_deadlines() {
    let missed = [[(30, 2), (4, 0)], [(30, 0), (4, 0)]];
    let record = matrix(vec![cell(NOLOAD, [0, 1], &missed), cell("cpu", [0, 1], &[same(900), same(6)])]);
    assert_eq!(
        recommend(&record).unwrap().why[0],
        "under all loads, base was at most 900 us late (36.00 periods, with cpu) and missed 2 of 4,000 deadlines \
         (0.05 %), servo was at most 900 us late (0.90 periods, with cpu) and missed none of 4,000 deadlines"
    );
}

#[test]
fn overlapping_rounds_are_undecided_whatever_the_facts() {
    let cells = vec![
        cell(NOLOAD, [0, 0], &[same(5), same(9), same(6)]),
        cell(NOLOAD, [0, 1], &[same(6), same(8), same(5)]),
        cell(NOLOAD, [1, 0], &[[(7, 0), (4, 0)], [(10, 0), (4, 0)], [(7, 0), (4, 0)]]),
        cell(NOLOAD, [1, 1], &[same(50), same(60), same(50)]),
    ];
    let mut record = matrix(cells);
    // The pair with both threads on CPU 0 would be the only one on an isolated CPU.
    record.cpu_facts = vec![CpuFacts { cpu: 0, isolated: true, ..CpuFacts::default() }];
    let advice = recommend(&record).unwrap();
    assert_eq!((advice.pair.len(), advice.certain), (0, false));
    let equal: Vec<Vec<u32>> = advice.equal.iter().map(|pair| pair.iter().map(|place| place.cpu).collect()).collect();
    assert_eq!(equal, [[0, 1], [0, 0], [1, 0]], "all undecided pairs");
    assert_eq!(advice.text, "Undecided between 3 pairs, because their rounds overlap: measure longer.");
    assert_eq!(
        advice.why,
        [
            "no real difference between base on CPU 0 and servo on CPU 1; base and servo on CPU 0; base on CPU 1 and servo \
          on CPU 0; the first was better in every round than 1 other pair"
        ]
    );
    assert_eq!(advice.facts, ["CPU 0 is isolated from other work"]);
    record.recommendation = Some(advice);
    assert_eq!((record.recommended_pair(), crate::outcome(&record)), (None, Some(record::Outcome::Inconclusive)));
}

#[test]
fn both_roles_count_whatever_their_periods() {
    // The base thread differs a little, the servo thread by a factor of ten; both are far from their periods.
    let rounds = |base_us, servo_us| [[(base_us, 0), (servo_us, 0)], [(base_us + 1, 0), (servo_us + 1, 0)]];
    let mut record = matrix(vec![
        cell(NOLOAD, [0, 1], &rounds(6, 200)),
        cell(NOLOAD, [1, 0], &rounds(8, 20)),
        cell(NOLOAD, [1, 1], &rounds(15, 90)),
    ]);
    record.recommendation = recommend(&record);
    assert_eq!(pair(record.recommendation.as_ref().unwrap()), [1, 0]);
    let tables = crate::matrix::tables(&record);
    assert_eq!((tables[0].best, tables[0].worst), (Some((1, 0)), Some((0, 1))));
    // A missed deadline counts more than any lateness.
    let one_missed = [[(8, 0), (20, 1)], [(8, 0), (20, 0)]];
    let record = matrix(vec![cell(NOLOAD, [0, 1], &rounds(6, 200)), cell(NOLOAD, [1, 0], &one_missed)]);
    assert_eq!(pair(&recommend(&record).unwrap()), [0, 1]);
}

#[test]
fn marks_only_real_differences() {
    let marks = |mut record: Record| {
        record.recommendation = recommend(&record);
        crate::matrix::tables(&record).iter().map(|table| (table.best, table.worst)).collect::<Vec<_>>()
    };
    let overlapping = vec![
        cell(NOLOAD, [0, 0], &[same(5), same(9)]),
        cell(NOLOAD, [1, 1], &[same(6), same(8)]),
        cell(NOLOAD, [2, 2], &[same(20), same(30)]),
    ];
    assert_eq!(marks(matrix(overlapping)), [(None, Some((2, 2)))]);
    let one_round = vec![cell(NOLOAD, [0, 0], &[same(5)]), cell(NOLOAD, [1, 1], &[same(50)])];
    assert_eq!(marks(matrix(one_round)), [(None, None)]);
    // Recommended because of the load, and the later one at rest.
    let by_load = vec![
        cell(NOLOAD, [0, 0], &[same(2), same(2)]),
        cell(NOLOAD, [1, 1], &[same(5), same(5)]),
        cell("cpu", [0, 0], &[same(20), same(20)]),
        cell("cpu", [1, 1], &[same(6), same(6)]),
    ];
    assert_eq!(marks(matrix(by_load)), [(Some((0, 0)), None), (Some((1, 1)), Some((0, 0)))]);
}

#[test]
fn one_round_is_not_certain() {
    let record = matrix(vec![cell(NOLOAD, [0, 0], &[same(5)]), cell(NOLOAD, [1, 1], &[same(50)])]);
    let advice = recommend(&record).unwrap();
    assert_eq!((advice.pair.len(), advice.certain, advice.equal.len()), (0, false, 2));
    assert_eq!(
        advice.text,
        "Undecided between 2 pairs, because each was measured only once: measure in several rounds."
    );
}

#[test]
fn ignores_invalid_pairs() {
    let mut record = blocked();
    for cell in &mut record.cells {
        let good = cell.pair().iter().all(|place| place.cpu == 1);
        cell.invalid = (good && cell.load == NOLOAD).then(|| "base was never found on CPU 1".to_owned());
    }
    assert_eq!(pair(&recommend(&record).unwrap()), [0, 1], "the best of the three that ran");
    record.cells.iter_mut().for_each(|cell| cell.invalid = Some("no".to_owned()));
    assert_eq!(recommend(&record), None);
    // Stopped before the second load ended: only one pair has run under both.
    let mut record = blocked();
    record.cells.truncate(5);
    assert_eq!(recommend(&record), None);
    assert_eq!(why_none(&record), "only 1 of 4 pairs ran as requested under every load");
    record.cells.retain(|cell| cell.pair().iter().all(|place| place.cpu == 0));
    let advice = recommend(&record).unwrap();
    assert_eq!((pair(&advice), advice.why[1].as_str()), ([0, 0], "it is the only pair"));
    assert_eq!(recommend(&Record::default()), None);
}

#[test]
fn invalid_and_interrupted_runs_have_no_recommendation() {
    let mut invalid = blocked();
    invalid.validity.valid = false;
    invalid.validity.reasons = vec![Reason { id: "policy.changed".to_owned(), ..Reason::default() }];
    let interrupted = Record { state: State::Interrupted, ..blocked() };
    for (record, why) in
        [(invalid, "the run is invalid: policy.changed"), (interrupted, "the run ended early, in the phase ``")]
    {
        assert_eq!((recommend(&record), why_none(&record).as_str()), (None, why));
        let tables = crate::matrix::tables(&record);
        assert!(!tables.is_empty() && tables.iter().all(|table| (table.best, table.worst) == (None, None)));
    }
    let mut none = blocked();
    none.cells.iter_mut().for_each(|cell| cell.invalid = Some("no".to_owned()));
    assert_eq!(why_none(&none), "no pair ran as requested under every load");
}

fn seen() -> impl Strategy<Value = Seen> {
    (0i64..100, prop_oneof![3 => Just(0u64), 1 => 1u64..400])
}

proptest! {
    #[test]
    fn recommends_only_a_pair_that_beats_all_others(
        rounds in prop::collection::vec(prop::collection::vec([seen(), seen()], 1..4), 8),
    ) {
        let cpus = [[0, 0], [0, 1], [1, 0], [1, 1]];
        let cells = rounds.iter().enumerate().map(|(index, rounds)| {
            cell(if index < 4 { NOLOAD } else { "cpu:shell" }, cpus[index % 4], rounds)
        });
        let mut record = matrix(cells.collect());
        let advice = recommend(&record).unwrap();
        let pairs = Pair::all(&record);
        let recommended = pairs.iter().find(|pair| pair.cells[0].pair() == advice.pair);
        let best = pairs.iter().find(|pair| pairs.iter().all(|other| other.cpus() == pair.cpus() || pair.beats(other)));
        prop_assert_eq!(recommended.map(Pair::cpus), best.map(Pair::cpus));
        prop_assert!(best.is_some() == advice.equal.is_empty() && advice.equal.len() != 1);
        record.recommendation = Some(advice.clone());
        for table in crate::matrix::tables(&record) {
            let marked = |at: Option<(usize, usize)>| at.and_then(|(row, column)| table.cells[row][column]).map(Cell::pair);
            prop_assert!(marked(table.worst).is_none_or(|worst| worst != advice.pair));
        }
    }
}
