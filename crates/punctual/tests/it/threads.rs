//! `measure threads`, with the ordinary policy, which needs no rights.

use std::time::Duration;

use record::{Record, State};
use stalls::{Stall, repeat_if_stalled};

use super::harness::Scratch;

fn measure(scratch: &Scratch, arguments: &str) -> Record {
    scratch.run(&format!("measure threads --quiet --blame=off --record a {arguments}")).expect_status(0);
    scratch.record()
}

#[test]
fn each_thread_has_its_own_period_and_cpu() {
    let scratch = Scratch::new();
    let threads = "--thread fast=500us,cpu=0,policy=other --thread slow=3ms,cpu=0,policy=other";
    let record = measure(&scratch, &format!("{threads} --duration 600ms"));
    assert_eq!((record.scenario.probe.as_str(), record.scenario.policy.as_str()), ("threads", "other"));
    let planned: Vec<_> = record.phases[0].threads.iter().map(|t| (t.role.as_str(), t.cpu, t.period_ns)).collect();
    assert_eq!(planned, [("fast", 0, 500_000), ("slow", 0, 3_000_000)]);
    for (series, deadlines) in record.series.iter().zip([1201, 201]) {
        let overrun = series.max_ns.unwrap().cast_unsigned() / series.period_ns;
        assert!((deadlines..=deadlines + overrun).contains(&(series.samples + series.missed)), "{series:?}");
        assert_eq!((series.granted.policy.as_str(), series.cpu), ("other", Some(0)));
        assert!(series.cpu_checks > 0, "the thread checked its CPU");
        // The jitter is the largest change of lateness between two wake-ups, so at least the mean change.
        assert!(
            series.jitter_ns.cast_signed()
                >= (series.max_ns.unwrap() - series.min_ns.unwrap()) / series.samples.cast_signed()
        );
    }
    let text = scratch.run("show --full a.punctual.json").stdout();
    assert!(text.contains("fast on 0") && text.contains("fast every 500 us, slow every 3 ms"), "{text}");
}

#[test]
fn threads_are_distributed_over_the_cpus() {
    let record = measure(&Scratch::new(), "--threads 5 --cpus 0 --period 2ms --policy other --duration 300ms");
    let roles: Vec<_> = record.series.iter().map(|series| series.role.as_str()).collect();
    assert_eq!(roles, ["thread-1", "thread-2", "thread-3", "thread-4", "thread-5"]);
    assert!(record.series.iter().all(|series| series.cpu == Some(0) && series.samples > 0));
}

#[test]
fn a_matrix_on_one_cpu_has_one_cell_for_each_load() {
    // A cell lasts 300 ms.
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), matrix_on_one_cpu);
}

fn matrix_on_one_cpu() {
    let scratch = Scratch::new();
    let threads = "--thread base=1ms,policy=other --thread servo=2ms,policy=other";
    let matrix = format!("--matrix --cpus 0 --cell-duration 600ms --rounds 2 --load cpu --load-cpus 0 {threads}");
    let run = scratch.run(&format!("measure threads --blame=off --record a --export a.html {matrix}"));
    run.expect_status(0);
    // Wrapped to the terminal.
    let said = run.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "1 pair of CPU 0, at rest and with cpu, 300 ms for each cell in each of 2 rounds: 1.32 s in total"
        ),
        "{said}"
    );
    let record = scratch.record();
    assert_eq!((record.state, record.phases.len(), record.series.len()), (State::Complete, 4, 8));
    let cells: Vec<_> = record.cells.iter().map(|cell| (cell.load.as_str(), cell.rounds.len())).collect();
    assert_eq!(cells, [("noload", 2), ("cpu", 2)]);
    for cell in &record.cells {
        assert_eq!(cell.invalid, None);
        assert!(cell.threads.iter().all(|thread| thread.cpu_checks >= 2 && thread.samples > 0), "{cell:?}");
    }
    let advice = record.recommendation.as_ref().unwrap();
    assert_eq!(advice.text, "Put base and servo on CPU 0.");
    let shown = scratch.run("show a.punctual.json --show lateness,missed");
    shown.expect_status(0);
    for part in
        ["With cpu: max jitter of servo/base", "At rest (noload): max lateness", "missed deadlines", &advice.text]
    {
        assert!(shown.stdout().contains(part), "{part} is missing in\n{}", shown.stdout());
    }
    let html = std::fs::read_to_string(scratch.path().join("a.html")).unwrap();
    assert!(html.contains("id=\"matrix\"") && html.contains(&advice.text));
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    assert!(validator.is_valid(&value));
}
