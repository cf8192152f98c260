//! Computes the cells of a matrix from phases and series.

use record::{AskedThread, Cell, CellThread, NOLOAD, Phase, Record, Series};

/// The cells, in the order of their first measurement. All rounds of a cell are merged.
#[must_use]
pub fn cells(record: &Record) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for phase in record.phases.iter().filter(|phase| phase.threads.len() == 2) {
        let round = round(record, phase);
        let same = |cell: &&mut Cell| cell.load == round.load && cell.pair() == round.pair();
        match cells.iter_mut().find(same) {
            Some(cell) => add(cell, round),
            None => cells.push(round),
        }
    }
    cells
}

/// One round of a cell.
fn round(record: &Record, phase: &Phase) -> Cell {
    let series_of = |asked: &AskedThread| record.series.iter().find(|s| s.phase == phase.name && s.role == asked.role);
    let threads: Vec<CellThread> = phase.threads.iter().map(|asked| thread(asked, series_of(asked))).collect();
    let of_threads = phase.threads.iter().find_map(|asked| misplaced(asked, series_of(asked)));
    let load = phase.asked_loads.join(", ");
    let each: Vec<f64> = threads.iter().map(badness).collect();
    let badness = each.iter().copied().fold(0.0, f64::max);
    Cell {
        load: if load.is_empty() { NOLOAD.to_owned() } else { load },
        phases: vec![phase.name.clone()],
        badness,
        rounds: vec![badness],
        thread_rounds: each.into_iter().map(|of_thread| vec![of_thread]).collect(),
        invalid: of_threads.or_else(|| failed_load(phase)).or_else(|| obstacle(record, phase)),
        threads,
    }
}

fn thread(asked: &AskedThread, seen: Option<&Series>) -> CellThread {
    let empty = Series::default();
    let seen = seen.unwrap_or(&empty);
    CellThread {
        role: asked.role.clone(),
        cpu: asked.cpu,
        period_ns: asked.period_ns,
        samples: seen.samples,
        missed: seen.missed,
        max_ns: seen.max_ns,
        jitter_ns: seen.jitter_ns,
        cpu_checks: seen.cpu_checks,
    }
}

/// The reason why a series does not show its thread on the requested CPU.
fn misplaced(asked: &AskedThread, seen: Option<&Series>) -> Option<String> {
    let AskedThread { role, cpu, .. } = asked;
    match seen {
        None => Some(format!("{role} was not measured")),
        Some(series) if series.samples == 0 => Some(format!("{role} never woke on CPU {cpu}")),
        Some(series) if series.cpu != Some(*cpu) => Some(format!("{role} could not be pinned to CPU {cpu}")),
        Some(series) if series.was_migrated() => Some(format!("{role} was found on another CPU than {cpu}")),
        Some(series) if series.cpu_checks == 0 => Some(format!("{role} was never found on CPU {cpu}")),
        Some(_) => None,
    }
}

/// The reason why a load was not as requested.
fn failed_load(phase: &Phase) -> Option<String> {
    let load = phase.loads.iter().find(|load| !load.ran)?;
    Some(format!("load {} did not run: {}", load.spec, load.note.as_deref().unwrap_or("no reason known")))
}

/// The reason why the phase supports no good result.
fn obstacle(record: &Record, phase: &Phase) -> Option<String> {
    record.phase_obstacle(phase).map(|obstacle| obstacle.to_string())
}

fn add(cell: &mut Cell, round: Cell) {
    for (all, one) in cell.threads.iter_mut().zip(round.threads) {
        all.samples += one.samples;
        all.missed += one.missed;
        all.max_ns = all.max_ns.max(one.max_ns);
        all.jitter_ns = all.jitter_ns.max(one.jitter_ns);
        all.cpu_checks += one.cpu_checks;
    }
    cell.badness = cell.badness.max(round.badness);
    cell.phases.extend(round.phases);
    cell.rounds.extend(round.rounds);
    cell.thread_rounds.iter_mut().zip(round.thread_rounds).for_each(|(all, one)| all.extend(one));
    cell.invalid = cell.invalid.take().or(round.invalid);
}

/// The badness of a thread in one round, see [`super`]; 0 is perfect.
fn badness(thread: &CellThread) -> f64 {
    thread.periods_late().min(1.0) + 1000.0 * thread.missed_share()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::LoadProof;

    fn phase(name: &str, cpus: [u32; 2], load: Option<bool>) -> Phase {
        let thread = |role: &str, cpu, period_ns| AskedThread {
            role: role.to_owned(),
            cpu,
            policy: "fifo:90".to_owned(),
            period_ns,
        };
        let loads = load.map(|ran| LoadProof { spec: "cpu:shell".to_owned(), ran, ..LoadProof::default() });
        Phase {
            name: name.to_owned(),
            threads: vec![thread("base", cpus[0], 25_000), thread("servo", cpus[1], 1_000_000)],
            asked_loads: loads.iter().map(|load| load.spec.clone()).collect(),
            loads: loads.into_iter().collect(),
            ..Phase::default()
        }
    }

    fn series(phase: &str, role: &str, cpu: u32, (max_ns, missed, jitter_ns): (i64, u64, u64)) -> Series {
        Series {
            phase: phase.to_owned(),
            role: role.to_owned(),
            cpu: Some(cpu),
            samples: 1000 - missed,
            missed,
            max_ns: Some(max_ns),
            jitter_ns,
            cpu_checks: 2,
            ..Series::default()
        }
    }

    fn two_rounds() -> Record {
        Record {
            phases: vec![phase("a", [0, 1], None), phase("b", [0, 1], Some(true)), phase("c", [0, 1], None)],
            series: vec![
                series("a", "base", 0, (5_000, 0, 7_000)),
                series("a", "servo", 1, (20_000, 0, 9_000)),
                series("b", "base", 0, (25_000, 1, 8_000)),
                series("b", "servo", 1, (30_000, 0, 9_000)),
                series("c", "base", 0, (10_000, 0, 6_000)),
                series("c", "servo", 1, (10_000, 0, 11_000)),
            ],
            ..Record::default()
        }
    }

    #[test]
    fn merges_rounds_and_separates_loads() {
        let cells = cells(&two_rounds());
        let found: Vec<_> = cells.iter().map(|cell| (cell.load.as_str(), cell.phases.join(" "))).collect();
        assert_eq!(found, [("noload", "a c".to_owned()), ("cpu:shell", "b".to_owned())]);
        let [base, servo] = &cells[0].threads[..] else { panic!("two threads") };
        assert_eq!((base.cpu, base.max_ns, base.jitter_ns, base.samples), (0, Some(10_000), 7_000, 2000));
        assert_eq!((servo.cpu, servo.max_ns, servo.jitter_ns, servo.cpu_checks), (1, Some(20_000), 11_000, 4));
        assert_eq!((cells[0].rounds.clone(), cells[0].badness), (vec![0.2, 0.4], 0.4));
        assert_eq!(cells[0].thread_rounds, [[0.2, 0.4], [0.02, 0.01]]);
        // A whole period late, and one missed deadline in a thousand.
        assert_eq!(cells[1].badness, 2.0);
        assert!(cells.iter().all(|cell| cell.invalid.is_none()));
    }

    #[test]
    fn marks_cells_that_did_not_run_as_requested() {
        type Change = fn(&mut Record);
        let changes: [(Change, &str); 8] = [
            (|r| r.series[0].cpu_checks = 0, "base was never found on CPU 0"),
            (|r| r.series[5].cpu = None, "servo could not be pinned to CPU 1"),
            (
                |r| r.series[1].notes.push(format!("some wake-ups {}", record::ON_ANOTHER_CPU)),
                "servo was found on another CPU",
            ),
            (|r| r.series[4].samples = 0, "base never woke on CPU 0"),
            (|r| drop(r.series.remove(4)), "base was not measured"),
            (|r| r.phases[1].loads[0].ran = false, "load cpu:shell did not run"),
            (
                |r| {
                    r.state = record::State::Complete;
                    r.phases[1].loads.clear();
                },
                "the load cpu:shell did not run to its end",
            ),
            (|r| r.phases[2].planned_ns = Some(1_000_000_000), "the run ended early, in the phase `c`"),
        ];
        for (change, why) in changes {
            let mut record = two_rounds();
            change(&mut record);
            let reasons: Vec<_> = cells(&record).into_iter().filter_map(|cell| cell.invalid).collect();
            assert_eq!(reasons.len(), 1, "{why}: {reasons:?}");
            assert!(reasons[0].contains(why), "{reasons:?}");
        }
    }
}
