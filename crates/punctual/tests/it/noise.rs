//! `measure noise`, with the ordinary policy, which needs no rights.

use std::time::Duration;

use record::{Outcome, State};
use stalls::{Stall, repeat_if_stalled};

use super::harness::Scratch;

#[test]
fn a_record_matches_its_schema_and_is_shown() {
    let scratch = Scratch::new();
    scratch
        .run(
            "measure noise --quiet --record a --cpus 0 --duration 600ms --export a.csv --export a.hgrm --export a.html",
        )
        .expect_status(0);
    let record = scratch.record();
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((record.state, record.scenario.probe.as_str()), (State::Complete, "noise"));
    assert_eq!((record.scenario.policy.as_str(), record.scenario.threshold_ns), ("other", 1_000));
    assert!(record.validity.valid && record.verdict.is_none());
    let [series] = &record.series[..] else { panic!("one series") };
    let noise = series.kind.noise().unwrap();
    assert_eq!(
        (series.role.as_str(), series.granted.policy.as_str(), noise.runtime_ns),
        ("noise", "other", 95_000_000)
    );
    assert!(noise.iterations > 10_000 && noise.observed_ns > 0 && noise.lost_ns <= noise.observed_ns, "{noise:?}");
    assert_eq!((series.missed, series.early, series.jitter_ns, noise.strikes_of_all), (0, 0, 0, None));
    assert!(series.cpu_checks > 0);

    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert!(shown.contains("reads its") && shown.contains(" lost "), "{shown}");
    for word in ["wake-up", "deadline", "lateness", "missed", "jitter"] {
        assert!(!shown.contains(word), "{word} in {shown}");
    }
    let exported = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    assert!(exported("a.csv").contains(",noise,0,100000000,raw,") && !exported("a.csv").contains("corrected"));
    assert!(exported("a.hgrm").contains("(noise), raw, us"));
    assert!(exported("a.html").contains("longest gap") && !exported("a.html").contains("missed deadlines"));
}

#[test]
fn a_profile_judges_a_polling_thread() {
    let scratch = Scratch::new();
    let options = "--cpus 0 --duration 200ms --blame=off --profile avb-class-a --profile udp-control-1ms";
    let run = scratch.run(&format!("measure noise --quiet --record a {options}"));
    let record = scratch.record();
    let (uses, series) = (&record.uses, &record.series[0]);
    // 200 ms are too short for PASS, and a gap above 50 us is a FAIL.
    let failed = series.max_ns > Some(50_000);
    let began_late = series.kind.noise().unwrap().latest_start_ns > Some(50_000);
    let outcome = if failed { Outcome::Fail } else { Outcome::Inconclusive };
    assert_eq!((uses[0].outcome, uses[0].over_limit > 0), (outcome, failed), "{}", uses[0].reason);
    let of_thread = if began_late && !failed { "the thread began to observe" } else { "a polling thread" };
    assert!(uses[0].reason.contains(of_thread), "{}", uses[0].reason);
    assert_eq!(uses[1].outcome, Outcome::Inconclusive, "gaps decide nothing about round trips");
    run.expect_status(i32::from(outcome.exit_status()));
    let shown = scratch.run("show a.punctual.json --profile avb-class-a --full").stdout();
    assert!(shown.contains(of_thread), "{shown}");
}

#[test]
fn loads_run_during_the_measurement_and_the_live_line_counts_gaps() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(200)), || {
        let scratch = Scratch::new();
        let run =
            scratch.run("measure noise --record a --cpus 0 --load cpu --duration 1200ms --period 50ms --runtime 20ms");
        let live = run.expect_status(0).stderr();
        assert!(live.contains(" gaps, lost "), "{live}");
        let record = scratch.record();
        assert!(record.phases[0].loads[0].ran);
        let noise = record.series[0].kind.noise().unwrap();
        // 20 of every 50 ms, plus the part of a gap that reaches beyond them.
        let longest_ns = record.series[0].max_ns.unwrap_or(0).cast_unsigned();
        assert!(noise.observed_ns < 24 * (22_000_000 + longest_ns), "{noise:?}");
    });
}

#[test]
fn options_that_would_block_the_machine_are_refused() {
    for (options, error) in [
        ("--policy fifo:90 --runtime 100ms", "let it sleep for 5 % of each period"),
        ("--policy fifo:90 --period 10s", "at most 950ms at a time"),
        ("--period 1ms --runtime 2ms", "runs for a part of each period"),
        ("--policy deadline:200us/1ms/1ms", "cannot run under a deadline policy"),
        ("--period 0s", "must be 1us to 1h"),
    ] {
        let run = Scratch::new().run(&format!("measure noise --no-record --duration 1s {options}"));
        assert!(run.expect_status(64).stderr().contains(error), "{}", run.stderr());
    }
}
