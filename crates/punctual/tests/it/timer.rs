//! `measure timer` and `show`, with the ordinary policy, which needs no rights.

use std::{collections::BTreeSet, fs, process, process::Stdio, time::Duration};

use record::{EndedBy, Outcome, Record, State};
use stalls::{Stall, repeat_if_stalled};

use super::harness::{Run, Scratch, Start, skip};

const ORDINARY: &str = "--cpus 0 --policy other --period 1ms";

#[test]
fn a_record_matches_its_schema() {
    let scratch = Scratch::new();
    let record = scratch.measure(0, &format!("{ORDINARY} --samples 200"));
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let [series] = &record.series[..] else { panic!("one series") };
    assert_eq!((record.state, series.samples, series.cpu), (State::Complete, 200, Some(0)));
    assert_eq!((series.granted.policy.as_str(), series.granted.cpus.as_str()), ("other", "0"));
    assert!(record.validity.valid && record.verdict.is_none());
    assert!(record.machine.kernel.is_some() && !record.findings.is_empty());
}

#[test]
fn runs_that_start_at_once_keep_their_records() {
    let scratch = Scratch::new();
    let start = |_| {
        let mut command = scratch.punctual("measure timer --duration 50ms --policy other --blame=off");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).start()
    };
    let runs: Vec<_> = (0..4).map(start).collect();
    let outputs = runs.into_iter().map(|run| String::from_utf8(run.wait_with_output().unwrap().stderr).unwrap());
    let name =
        |output: String| output.lines().find_map(|line| Some(line.strip_prefix("record  ")?.to_owned())).unwrap();
    let names: BTreeSet<String> = outputs.map(name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|name| record::file::read(&scratch.path().join(name)).is_ok()), "{names:?}");
}

#[test]
fn every_deadline_is_counted_on_every_clock_and_with_every_wait() {
    for options in
        ["--wait timerfd", "--clock realtime", "--clock tai", "--clock boottime --wait timerfd", "--offset 100us"]
    {
        let record = Scratch::new().measure(0, &format!("{ORDINARY} --duration 300ms {options}"));
        let series = &record.series[0];
        let overrun = series.max_ns.unwrap().cast_unsigned() / series.period_ns;
        let deadlines = series.samples + series.missed;
        assert!((301..=301 + overrun).contains(&deadlines), "{options}: {deadlines} deadlines");
    }
}

#[test]
fn loads_prove_that_they_ran() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(200)), || {
        let loads = "--load cpu --load switch:100us";
        let record = Scratch::new().measure(0, &format!("{ORDINARY} --duration 1s {loads}"));
        let phase = &record.phases[0];
        assert_eq!((phase.name.as_str(), phase.loads.len()), ("load", 2));
        for load in &phase.loads {
            assert!(load.ran && load.operations > 0 && load.cpu_time_ns > 0, "{load:?}");
            assert_eq!(load.cpus, "0");
        }
    });
}

#[test]
fn the_profile_determines_verdict_and_exit_status() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(500)), judge_by_profiles);
}

fn judge_by_profiles() {
    // Every wake-up is more than 1 ns late, and less than a second.
    let scratch = Scratch::new();
    for (name, limit, tolerates) in
        [("strict", "1ns", "1 per hour"), ("lenient", "999ms", "30 per minute"), ("patient", "999ms", "1 per hour")]
    {
        let text = format!(
            "title = \"{name}\"\ngroup = \"test\"\nperiod = \"1s\"\nlimit = \"{limit}\"\ntolerates = \"{tolerates}\"\n\
             meaning = \"for this test\"\n[[sources]]\nwhat = \"limit\"\nwhere = \"this test\"\n"
        );
        fs::write(scratch.path().join(format!("{name}.toml")), text).unwrap();
    }
    // Only PASS needs a long run.
    for (name, samples, status, outcome) in [
        ("strict", 1500, 2, Outcome::Fail),
        ("lenient", 7000, 0, Outcome::Pass),
        ("patient", 1500, 3, Outcome::Inconclusive),
    ] {
        let options = format!("--samples {samples} --profile ./{name}.toml");
        let run = scratch.run(&format!("measure timer --full --record a {ORDINARY} {options}"));
        assert_eq!(run.0.status.code(), Some(status), "{name}: {}{}", run.stdout(), run.stderr());
        assert_eq!(scratch.record().verdict.unwrap().outcome, outcome);
        assert!(run.stdout().contains(outcome.name()), "{}", run.stdout());
        assert_eq!(run.stdout().contains("? so far"), name == "patient", "{}", run.stdout());
    }
}

#[test]
fn a_run_until_decided_ends_with_its_verdict() {
    let scratch = Scratch::new();
    for (name, limit, tolerates) in [("late", "1ns", "1 per hour"), ("timely", "999ms", "30 per minute")] {
        let text = format!(
            "title = \"{name}\"\ngroup = \"test\"\nperiod = \"1s\"\nlimit = \"{limit}\"\ntolerates = \"{tolerates}\"\n\
             meaning = \"for this test\"\n[[sources]]\nwhat = \"limit\"\nwhere = \"this test\"\n"
        );
        fs::write(scratch.path().join(format!("{name}.toml")), text).unwrap();
    }
    for (name, outcome) in [("late", Outcome::Fail), ("timely", Outcome::Pass)] {
        let options = format!("--duration 10m --until-decided --profile ./{name}.toml");
        let run = scratch.run(&format!("measure timer --record a {ORDINARY} {options}"));
        assert_eq!(run.0.status.code(), Some(outcome.exit_status().into()), "{name}: {}{}", run.stdout(), run.stderr());
        let record = scratch.record();
        assert!(record.scenario.until_decided && record.state == State::Complete);
        assert!(record.phases[0].duration_ns < record.phases[0].planned_ns.unwrap(), "{:?}", record.phases);
        assert_eq!(record.verdict.unwrap().outcome, outcome);
    }
    let without_end = scratch.run("measure timer --until-decided --profile control-1khz");
    without_end.expect_status(64);
    assert!(without_end.stderr().contains("--duration"), "{}", without_end.stderr());
}

#[test]
fn a_run_shorter_than_its_period_is_invalid() {
    for probe in ["timer --cpus 0 --period 1s", "udp --self --period 1s", "threads --threads 1 --period 1s"] {
        let run =
            Scratch::new().run(&format!("measure {probe} --policy other --duration 500ms --blame=off --no-record"));
        run.expect_status(4);
        assert!(run.stdout().contains("measured less than one period"), "{probe}: {}", run.stdout());
    }
}

#[test]
fn exports_agree_with_the_record() {
    let scratch = Scratch::new();
    let record = scratch.measure(
        0,
        &format!("{ORDINARY} --samples 100 --export r.csv --export r.hgrm --export r.html --export r.json"),
    );
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    let counted: u64 = read("r.csv")
        .lines()
        .filter(|line| line.contains(",raw,"))
        .map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(counted, 100);
    assert!(read("r.hgrm").contains("TotalCount"));
    assert!(read("r.html").contains("</html>"));
    assert_eq!(read("r.json"), read("a.punctual.json"));
    let shown = scratch.run("show a.punctual.json --export s.csv --json");
    shown.expect_status(0);
    assert_eq!(read("s.csv"), read("r.csv"));
    assert_eq!(record::file::parse(shown.stdout().as_bytes()).unwrap(), record);
}

#[test]
fn last_is_the_newest_record_of_the_folder() {
    let scratch = Scratch::new();
    for arguments in ["show", "blame LAST", "show LAST --json"] {
        let run = scratch.run(arguments);
        assert!(
            run.expect_status(64).stderr().contains("no record of yours in the current folder"),
            "{}",
            run.stderr()
        );
    }
    for (name, samples) in [("b", 20), ("a", 30)] {
        let run = format!("measure timer --record {name} {ORDINARY} --samples {samples} --blame=off --quiet");
        scratch.run(&run).expect_status(0);
    }
    for arguments in ["show --json", "show LAST --json", "show a.punctual.json --json"] {
        let record = record::file::parse(scratch.run(arguments).expect_status(0).stdout().as_bytes()).unwrap();
        assert_eq!(record.series[0].samples, 30, "{arguments}");
    }
    let compared = scratch.run("show b.punctual.json --against LAST --json").expect_status(0).stdout();
    let compared = record::file::parse(compared.as_bytes()).unwrap();
    assert_eq!(compared.against[0].name, "a.punctual.json");
}

#[test]
fn the_default_run_measures_three_phases_and_writes_a_report() {
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(200)), default_run);
}

fn default_run() {
    let scratch = Scratch::new();
    let run = scratch.run("--duration 3s --full --record a");
    let status = run.0.status.code().unwrap();
    assert!(status == 0 || status == 4, "{status}: {}", run.stderr());
    let record = scratch.record();
    let phases: Vec<_> = record.phases.iter().map(|phase| (phase.name.as_str(), phase.period_ns)).collect();
    assert_eq!(phases, [("rest", 1_000_000), ("rest-fast", 125_000), ("load", 125_000)]);
    assert!(record.phases[2].loads.iter().all(|load| load.ran), "{:?}", record.phases[2].loads);
    assert!(record.uses.len() >= 6);
    let text = run.stdout();
    for use_ in ["1 ms control loop", "AVB class A", "CNC step generation"] {
        assert!(text.contains(use_), "{use_} is missing in\n{text}");
    }
    assert!(scratch.path().join("a.punctual.html").exists());
    assert!(run.stderr().contains("a.punctual.json") && run.stderr().contains("a.punctual.html"));
    assert_eq!(scratch.run("show --full a.punctual.json").0.status.code(), Some(status));
}

#[test]
fn an_evl_run_is_refused_without_the_evl_core() {
    if std::path::Path::new("/dev/evl/control").exists() {
        return skip("this kernel has the EVL core, which `make lab` tests");
    }
    for probe in ["timer --core evl", "timer --core both", "audio --core evl"] {
        let scratch = Scratch::new();
        let run = scratch.run(&format!("measure {probe} --quiet --record a --duration 50ms"));
        let errors = run.expect_status(1).stderr();
        assert!(errors.contains("no EVL core") && errors.contains("leave out --core"), "{errors}");
        assert!(!scratch.record_path().exists());
    }
    let threads = Scratch::new().run("measure threads --core both --no-record --duration 50ms");
    assert!(threads.expect_status(64).stderr().contains("only `measure timer` measures with both cores"));
    let ordinary = Scratch::new().run(&format!("measure timer {ORDINARY} --core evl --no-record"));
    assert!(ordinary.expect_status(64).stderr().contains("fifo:1 to fifo:99"));
}

#[test]
fn a_gravity_is_not_calibrated_without_the_evl_core() {
    if std::path::Path::new("/dev/evl/control").exists() {
        return skip("this kernel has the EVL core, which `make lab` tests");
    }
    let scratch = Scratch::new();
    let refused = |arguments: &str, status| scratch.run(arguments).expect_status(status).stderr();
    assert!(refused("evl gravity --set", 1).contains("this kernel has no EVL core"));
    assert!(refused("evl gravity --period 20ms", 64).contains("--period must be 10us to 10ms (got 20 ms)"));
    assert!(refused("evl gravity --context sirq", 64).contains("irq, kernel or user"));
    let json = scratch.run("evl gravity --json").expect_status(1).stdout();
    assert!(json.contains("\"exit_status\": 1"), "{json}");
}

/// A run with this action at spikes; every wake-up is one.
fn acting(scratch: &Scratch, action: &str, options: &str) -> (Record, Run) {
    let mut command = scratch.punctual(&format!(
        "measure timer --full --record a --cpus 0 --period 1ms --policy other --threshold 1ns --blame=off {options}"
    ));
    command.args(["--on-spike", action]);
    let run = Run(command.output().unwrap());
    (scratch.record(), run)
}

#[test]
fn acts_at_spikes() {
    let scratch = Scratch::new();
    let done = |record: &Record| {
        let caveat = record.caveats.iter().find(|caveat| caveat.kind == "on_spike").expect("a caveat");
        caveat.text.rsplit_once(": done ").unwrap().1.to_owned()
    };
    let command = "command:echo $PUNCTUAL_PLACE $PUNCTUAL_LATENESS_NS >> seen; printf 'said\\033[2J\\n'";
    let (record, run) = acting(&scratch, command, "--duration 1s --on-spike-once");
    assert_eq!(done(&record), "once");
    let seen = fs::read_to_string(scratch.path().join("seen")).unwrap();
    let (place, lateness_ns) = seen.trim().rsplit_once(' ').unwrap();
    assert_eq!((place, lateness_ns.parse::<u64>().unwrap() > 0), ("CPU 0", true), "{seen}");
    assert!(run.stdout().contains("done once"), "{}", run.stdout());
    assert!(run.stderr().contains("said\\u{1b}[2J\n"), "{}", run.stderr());

    let (record, _) = acting(&scratch, &format!("signal:CONT:{}", process::id()), "--duration 1s");
    let times = done(&record);
    assert!(times.split(' ').next().unwrap().replace(',', "").parse::<u64>().unwrap() > 3, "{times}");

    let (record, run) = acting(&scratch, "stop", "--duration 60s");
    assert_eq!((done(&record).as_str(), record.state), ("once", State::Interrupted));
    assert_eq!(record.ended_by, Some(EndedBy::Spike));
    assert!(run.stdout().contains("A spike ended the run"), "{}", run.stdout());
    scratch.run("measure timer --on-spike halt").expect_status(64);
}
