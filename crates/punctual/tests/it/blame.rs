//! `punctual blame` on a made-up record.

use record::{
    Account, Blame, BlameMode, Cause, CauseKind, Culprit, Evidence, Record, SCHEMA, Scenario, Series, Spike, State,
    Stretch, Why,
};
use serde_json::Value;

use super::harness::Scratch;

fn i915() -> Cause {
    let (number, priority, why) = (Some(412), Some(49), Some(Why::HigherPriority));
    Cause { number, priority, why, ..Cause::new(CauseKind::Thread, "irq/125-i915") }
}

/// A record with three spikes of one culprit.
fn record() -> Record {
    let spike = |lateness_ns: u64, at_ns| Spike {
        lateness_ns: lateness_ns.cast_signed(),
        at_ns,
        culprits: vec![
            Culprit { cause: i915(), ns: lateness_ns - 6_000 },
            Culprit { cause: Cause::new(CauseKind::WakeUp, ""), ns: 6_000 },
        ],
        evidence: Evidence::Trace,
        timeline: vec![
            Stretch { start_ns: -9_000, ns: lateness_ns + 3_000, cause: i915() },
            Stretch {
                start_ns: lateness_ns.cast_signed() - 6_000,
                ns: 6_000,
                cause: Cause::new(CauseKind::WakeUp, ""),
            },
        ],
        ..Spike::default()
    };
    let account = Account {
        cause: i915(),
        count: 3,
        worst_ns: 412_000,
        total_ns: 700_000,
        cpus: "1".into(),
        phases: vec!["load".into()],
        remedy: "sudo chrt -f -p 40 412".into(),
        ..Account::default()
    };
    Record {
        schema: SCHEMA.into(),
        state: State::Complete,
        scenario: Scenario { threshold_ns: 80_000, ..Scenario::default() },
        series: vec![Series {
            phase: "load".into(),
            cpu: Some(1),
            spikes: vec![spike(99_000, 1_000_000), spike(412_000, 2_000_000), spike(207_000, 3_000_000)],
            spikes_total: 3,
            ..Series::default()
        }],
        blame: Some(Blame { mode: BlameMode::Trace, spikes: 3, ledger: vec![account], ..Blame::default() }),
        ..Record::default()
    }
}

/// A folder that contains this record as `a.punctual.json`.
fn stored(record: &Record) -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.record_path(), record::file::to_json(record)).unwrap();
    scratch
}

#[test]
fn the_ledger_of_a_record_is_printed() {
    let run = stored(&record()).run("blame a.punctual.json");
    run.expect_status(0);
    for text in [
        "Main cause of all 3 spikes above 80 us: i915 interrupt thread",
        // The record counts more spikes than wake-ups.
        "\n  invalid  ",
        "\n  3     99 us  CPU 1, under load",
        "punctual blame --full a.punctual.json",
    ] {
        assert!(run.stdout().contains(text), "{text}\n{}", run.stdout());
    }
    assert_eq!(run.stderr(), "");
    let full = stored(&record()).run("blame --full a.punctual.json");
    for text in ["Culprits of the spikes\n", "sudo chrt -f -p 40 412"] {
        assert!(full.expect_status(0).stdout().contains(text), "{text}\n{}", full.stdout());
    }
}

#[test]
fn quiet_prints_the_main_cause_only() {
    let mut record = record();
    let printed = |record: &Record| stored(record).run("blame a.punctual.json -q").expect_status(0).stdout();
    assert_eq!(printed(&record), "Main cause of all 3 spikes above 80 us: i915 interrupt thread.\n");
    record.blame.as_mut().unwrap().ledger.clear();
    assert_eq!(printed(&record), "No causes of the spikes were found.\n");
    record.series[0].spikes.clear();
    record.series[0].spikes_total = 0;
    assert_eq!(printed(&record), "No wake-up was later than 80 us.\n");
}

#[test]
fn a_spike_is_selected_by_its_number() {
    let scratch = stored(&record());
    for (number, text) in
        [(1, "Spike 1 of 3: 412 us late"), (2, "Spike 2 of 3: 207 us late"), (3, "Spike 3 of 3: 99 us")]
    {
        let run = scratch.run(&format!("blame a.punctual.json --around {number}"));
        run.expect_status(0);
        assert!(run.stdout().contains(text) && run.stdout().contains("the lateness"), "{}", run.stdout());
    }
}

#[test]
fn an_unknown_number_exits_with_64_and_names_the_range() {
    let mut record = record();
    for number in ["0", "4", "18446744073709551615"] {
        let run = stored(&record).run(&format!("blame a.punctual.json --around {number}"));
        run.expect_status(64);
        let error = format!("error: a.punctual.json contains no spike {number}: choose 1 (the worst) to 3\n");
        assert_eq!(run.stderr(), error);
    }
    record.series[0].spikes.clear();
    let run = stored(&record).run("blame a.punctual.json --around 1");
    run.expect_status(64);
    assert!(run.stderr().contains("a.punctual.json contains no spikes: leave out --around 1"), "{}", run.stderr());
}

#[test]
fn a_record_without_culprits_is_refused_with_the_remedy() {
    let off = Blame { mode: BlameMode::Off, ..Blame::default() };
    for blame in [None, Some(off)] {
        let run = stored(&Record { blame, ..record() }).run("blame a.punctual.json");
        run.expect_status(1);
        assert!(
            run.stderr().contains(
                "did not search for them: measure again with --blame, e.g. `sudo punctual measure timer --blame`"
            ),
            "{}",
            run.stderr()
        );
        assert_eq!(run.stdout(), "");
    }
    Scratch::new().run("blame nothing.punctual.json").expect_status(1);
}

#[test]
fn json_contains_the_ledger_and_the_numbered_spikes() {
    let scratch = stored(&record());
    let json = |arguments: &str| -> Value {
        let run = scratch.run(arguments);
        run.expect_status(0);
        serde_json::from_str(&run.stdout()).unwrap()
    };
    let all = json("blame a.punctual.json --json");
    assert_eq!(all["blame"]["ledger"][0]["name"], "irq/125-i915");
    assert_eq!(all["spikes"][0]["number"], 1);
    assert_eq!(all["spikes"][0]["spike"]["lateness_ns"], 412_000);
    assert_eq!(json("blame a.punctual.json --json --around 3")["spike"]["lateness_ns"], 99_000);
}

#[test]
fn the_export_is_a_trace_for_viewers() {
    let scratch = stored(&record());
    let run = scratch.run("blame a.punctual.json --export trace.json");
    run.expect_status(0);
    assert_eq!(run.stdout(), "");
    assert!(run.stderr().contains("ui.perfetto.dev"), "{}", run.stderr());
    let trace: Value = serde_json::from_slice(&std::fs::read(scratch.path().join("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let late =
        |event: &&Value| event["name"].as_str().is_some_and(|name| name.starts_with("412.0 us late: thread irq/125"));
    assert_eq!(events.iter().filter(late).count(), 1, "{events:#?}");
    scratch.run("blame a.punctual.json --export /nonexistent/trace.json").expect_status(1);
}
