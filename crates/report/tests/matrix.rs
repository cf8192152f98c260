//! The tables of a matrix, and the sizes of record and report of a very large one.

use record::{
    AskedThread, Cause, CauseKind, Culprit, LoadProof, Phase, Record, SCHEMA, Series, Spike, State, Validity,
};
use report::{
    Style, html,
    terminal::{self, MatrixFigure},
};

/// A matrix of `cpus` CPUs in so many rounds. `seen` returns lateness and jitter of a thread, ns, by load, CPUs and thread.
fn matrix(cpus: u32, rounds: u32, seen: impl Fn(usize, [u32; 2], usize) -> (i64, u64)) -> Record {
    let roles = [("base", 25_000), ("servo", 1_000_000)];
    let mut record = Record {
        schema: SCHEMA.to_owned(),
        state: State::Complete,
        validity: Validity { valid: true, reasons: Vec::new() },
        ..Record::default()
    };
    record.scenario.probe = "threads".to_owned();
    for (round, load, name) in (1..=rounds).flat_map(|round| [(round, 0, None), (round, 1, Some("cpu:shell"))]) {
        for row in 0..cpus {
            for column in 0..cpus {
                let places = [row, column];
                let phase = format!("base {row}, servo {column}, {}, round {round}", name.map_or("noload", |_| "load"));
                let asked = |((role, period_ns), cpu): ((&str, u64), u32)| AskedThread {
                    role: role.to_owned(),
                    cpu,
                    policy: "fifo:90".to_owned(),
                    period_ns,
                };
                record.phases.push(Phase {
                    name: phase.clone(),
                    threads: roles.into_iter().zip(places).map(asked).collect(),
                    planned_ns: Some(200_000_000),
                    duration_ns: 200_000_000,
                    asked_loads: name.iter().map(|&name| name.to_owned()).collect(),
                    loads: name
                        .iter()
                        .map(|&name| LoadProof { spec: name.to_owned(), ran: true, ..LoadProof::default() })
                        .collect(),
                    ..Phase::default()
                });
                for (thread, (role, period_ns)) in roles.into_iter().enumerate() {
                    let (max_ns, jitter_ns) = seen(load, places, thread);
                    let mut series = Series {
                        phase: phase.clone(),
                        role: role.to_owned(),
                        cpu: Some(places[thread]),
                        period_ns,
                        samples: 200_000_000 / period_ns,
                        max_ns: Some(max_ns),
                        jitter_ns,
                        cpu_checks: 1,
                        ..Series::default()
                    };
                    // From a fifth of the maximum up, as on a busy machine.
                    (0..series.samples.cast_signed())
                        .for_each(|n| series.raw.record(max_ns / 5 + max_ns * 4 / 5 * (n * n % 997) / 997));
                    series.corrected = series.raw.clone();
                    record.series.push(series);
                }
            }
        }
    }
    analysis::matrix::fill(&mut record);
    record
}

/// Two CPUs, the second one otherwise idle; jitter as in the tables of 2012 for isolated and ordinary CPUs.
fn small() -> Record {
    let jitter = [[[7_500, 7_700], [7_800, 14_800]], [[5_700, 15_000], [5_500, 2_900]]];
    matrix(2, 2, |load, [row, column], thread| {
        let jitter_ns = jitter[row as usize][column as usize][thread] + 100 * load as u64;
        ((jitter_ns * 2).cast_signed(), jitter_ns)
    })
}

#[test]
fn shows_tables_and_recommended_pair() {
    let text = terminal::matrix(&small(), &[MatrixFigure::Jitter], &Style::plain(), 80);
    let text = &text[text.find("At rest").unwrap()..text.find("Limits of").unwrap_or(text.len())];
    insta::assert_snapshot!(text);
}

#[test]
fn marks_and_explains_invalid_cells() {
    let mut record = small();
    record.series[7].cpu_checks = 0;
    analysis::matrix::fill(&mut record);
    let text = terminal::matrix(&record, &[MatrixFigure::Lateness], &Style::plain(), 80);
    assert!(text.contains("servo 1, noload: servo was never found on CPU 1"), "{text}");
    assert_eq!(text.matches("invalid").count(), 2, "in the table and below it: {text}");
    let page = html::render(&record);
    assert!(page.contains("class=\"invalid\">invalid") && page.contains("servo was never found on CPU 1"));
}

#[test]
fn html_shows_tables_marks_and_scale() {
    let page = html::render(&small());
    for part in [
        "id=\"matrix\"",
        "7.7 us / 7.5 us",
        "<b>best</b>",
        "<b>worst</b>",
        "heat5",
        "Put base and servo on CPU 1.",
        "</span>RECOMMENDED</p>",
        "recommended pair, missed",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!html::render(&Record::default()).contains("id=\"matrix\""));
}

#[test]
fn an_undecided_matrix_recommends_nothing() {
    // The pairs differ by less than the rounds do.
    let mut record = matrix(2, 2, |_, [row, column], _| (10_000 + i64::from(row + 2 * column), 5_000));
    for series in record.series.iter_mut().filter(|series| series.phase.ends_with("round 2")) {
        series.max_ns = series.max_ns.map(|max_ns| max_ns + 10_000);
    }
    let command = "/usr/bin/punctual measure threads --matrix --cell-duration=399ms --full";
    record.command = command.split(' ').map(str::to_owned).collect();
    analysis::matrix::fill(&mut record);
    assert!(record.recommendation.as_ref().is_some_and(|advice| advice.pair.is_empty() && advice.equal.len() == 4));
    insta::assert_snapshot!(terminal::answer(&record, "punctual show --full a.json", &Style::plain(), 80));
    let page = html::render(&record);
    assert!(page.contains("<title>NOT DECIDED: ") && page.contains("--cell-duration</span> 1600ms "));
    assert!(!page.contains("recommended pair") && !page.contains("<b>best</b>"));
}

#[test]
fn sixteen_cpus_fit_size_limits() {
    let mut record = matrix(16, 1, |load, [row, column], thread| {
        let ns = 20_000
            + 997
                * (i64::from(row * 31 + column * 17)
                    + 7 * i64::try_from(load).unwrap()
                    + i64::try_from(thread).unwrap());
        (ns, ns.unsigned_abs())
    });
    assert_eq!((record.cells.len(), record.series.len()), (512, 1024));
    for series in &mut record.series {
        (series.raw, series.corrected) = (series.raw.coarse(), series.corrected.coarse());
        series.spikes = (0..10).map(|n| Spike { lateness_ns: 30_000, at_ns: n, ..Default::default() }).collect();
    }
    let (document, page) = (record::file::to_json(&record).len(), html::render(&record).len());
    assert!(document < 8_000_000, "a record of {document} bytes");
    assert!(page < 2_000_000, "a page of {page} bytes");
    let text = terminal::summary(&record, &Style::plain(), 80);
    assert!(text.lines().count() < 400 && text.contains("Recommendation"));
}

#[test]
fn the_answer_names_the_cause_and_the_periods_of_the_recommended_pair() {
    let mut record = small();
    let pair = record.recommendation.as_ref().unwrap().pair.clone();
    let cell = record.cells.iter().find(|cell| cell.pair() == pair).unwrap();
    let phase = cell.phases[0].clone();
    let text = |record: &Record| terminal::answer(record, "punctual show --full a.json", &Style::plain(), 100);
    let shown = text(&record);
    assert!(!shown.contains("kworker"), "{shown}");
    assert!(shown.contains("\n  BASE_PERIOD = ") && shown.contains("\n  SERVO_PERIOD = 1000000\n"), "{shown}");
    for (series, ns) in record.series.iter_mut().filter(|series| series.phase == phase).zip([40_000, 30_000]) {
        let cause = Cause::new(CauseKind::Thread, format!("kworker/{ns}"));
        series.spikes =
            vec![Spike { lateness_ns: ns, culprits: vec![Culprit { cause, ns: 36_000 }], ..Spike::default() }];
    }
    let text = text(&record);
    assert!(text.contains("\n  why      base on CPU ") && text.contains("40 us late"), "{text}");
    assert!(text.contains("thread kworker/40000: 36 us, 90 %"), "{text}");
}
