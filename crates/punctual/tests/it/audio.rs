//! `measure audio`, with the ordinary policy that everybody may use.

use std::{process::Stdio, thread::sleep, time::Duration};

use record::{Audio, CauseKind, Part, Record, State};

use super::harness::{Scratch, signal, stop, wait_until};

const NANO: &str = "measure audio --quiet --record a --policy other --model builtin:nano";

fn audio(record: &Record) -> &Audio {
    record.series[0].audio.as_deref().expect("a series of audio")
}

#[test]
fn a_run_tells_when_each_period_was_done_and_is_shown() {
    let scratch = Scratch::new();
    scratch
        .run(&format!("{NANO} --frames 48 --rate 44100 --periods 3 --duration 700ms --export a.html --export a.csv"))
        .expect_status(0);
    let record = scratch.record();
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((record.state, record.scenario.probe.as_str()), (State::Complete, "audio"));
    let [series] = &record.series[..] else { panic!("one series") };
    let told = audio(&record);
    assert_eq!((told.rate_hz, told.frames, told.periods), (44_100, 48, 3));
    assert_eq!((told.model.as_str(), told.pacer.as_str(), told.silent), ("builtin:nano", "clock", 0));
    assert_eq!((series.role.as_str(), series.period_ns), ("audio", 1_088_435));
    // 700 ms are 643 periods of 48 frames, whatever became of each.
    assert!(told.due().abs_diff(643) <= 3 + told.lost, "{} of {} lost", told.lost, told.due());
    let total = |times: &Option<record::Times>| times.as_ref().unwrap().histogram.total();
    assert_eq!((total(&told.dsp), total(&told.completion)), (told.played, told.played));
    for spike in &series.spikes {
        let played = spike.played.unwrap();
        assert_eq!(played.completion_ns(), spike.lateness_ns);
        let shares: u64 = spike.culprits.iter().map(|culprit| culprit.ns).sum();
        assert!(spike.culprits.is_empty() || shares == spike.lateness_ns as u64, "{spike:?}");
    }
    let shown = scratch.run("show a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("48 frames at 44100 Hz") && shown.contains("done after the deadline"), "{shown}");
}

#[test]
fn a_program_that_was_stopped_had_one_xrun_and_lost_what_passed() {
    let scratch = Scratch::new();
    let child = scratch.punctual(&format!("{NANO} --endless")).stdout(Stdio::null()).spawn().unwrap();
    wait_until("periods are played", || {
        record::file::read(&scratch.record_path()).is_ok_and(|record| record.series.iter().any(|s| s.samples > 0))
    });
    stop(&child);
    sleep(Duration::from_millis(400));
    signal(&child, "CONT");
    sleep(Duration::from_millis(200));
    signal(&child, "INT");
    child.wait_with_output().unwrap();
    let record = scratch.record();
    let told = audio(&record);
    // 300 periods of 64 frames at 48 kHz.
    assert!(told.xruns >= 1 && told.lost >= 299, "{} xruns, {} lost", told.xruns, told.lost);
    let longest = record.series[0].spikes.iter().max_by_key(|spike| spike.lateness_ns).unwrap();
    let played = longest.played.unwrap();
    assert!(played.xrun && played.completion_ns() >= 400_000_000, "{played:?}");
    let usual = analysis::audio::Usual::of(&record.series[0]);
    assert_eq!(usual.at_fault(played, told.limit_ns as i64), Part::Wake);
    if let Some(main) = longest.culprits.first().filter(|_| longest.evidence == record::Evidence::Trace) {
        assert_eq!(main.cause.kind, CauseKind::Stopped);
    }
}

#[test]
fn what_no_card_plays_is_refused() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../amp/tests/vectors");
    for (options, status, told) in [
        ("--frames 4".to_owned(), 64, "must be 8 to 4096, as 64"),
        ("--periods 1".to_owned(), 64, "must be 2 to 16, as 2"),
        ("--model builtin:huge".to_owned(), 64, "no built-in model is called `huge`"),
        ("--model nowhere.nam".to_owned(), 1, "cannot read the model nowhere.nam"),
        (format!("--model {vectors}/nan_weight.bad.nam"), 1, "nan_weight.bad.nam"),
        (format!("--model {vectors}/wn_a1_nano.nam --rate 44100"), 1, "use --rate 48000"),
    ] {
        let scratch = Scratch::new();
        let run = scratch.run(&format!("measure audio --quiet --record a --duration 50ms {options}"));
        let said = run.expect_status(status).stderr();
        assert!(said.contains(told), "{options}: {said}");
        assert!(!scratch.record_path().exists(), "{options}");
    }
}
