//! Campaign files: checked, planned and listed.

use std::{fs, time::Instant};

use serde_json::Value;

use super::harness::Scratch;

/// A recorded machine with four CPUs, the last of them isolated.
const PI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../machine/tests/machines/raspberry-pi-rt");

#[test]
fn validate_reports_every_mistake_of_every_file_and_exits_with_1() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("bad.toml"), "name = \"a\"\nrepeats = 0\n[load]\nrun = \"swich\"\n").unwrap();
    fs::write(scratch.path().join("good.toml"), "name = \"a\"\nrepeats = 3\n").unwrap();
    let run = scratch.run("validate bad.toml good.toml missing.toml vim3l-ladder");
    run.expect_status(1);
    let stdout = run.stdout();
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("bad.toml:2:11: repeats: 0 must be a whole number from 1 to 1000"), "{stdout}");
    assert!(lines[1].starts_with("bad.toml:4:7: run: unknown load `swich`, did you mean `switch`?"), "{stdout}");
    assert!(lines[2].starts_with("good.toml is valid: 3 scenarios, 30"), "{stdout}");
    assert!(lines[3].starts_with("cannot read the campaign missing.toml"), "{stdout}");
    assert!(lines[4].starts_with("vim3l-ladder is valid: 4 scenarios, 2 min"), "{stdout}");

    let json: Value = serde_json::from_str(&scratch.run("validate --json bad.toml").stdout()).unwrap();
    assert_eq!((&json["valid"], &json["files"][0]["mistakes"][1]["line"]), (&Value::Bool(false), &4.into()));
    scratch.run("validate good.toml").expect_status(0);
}

#[test]
fn a_file_is_valid_on_one_machine_and_invalid_on_another() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("a.toml"), "name = \"a\"\n[placement]\ncpus = \"isolated\"\n").unwrap();
    scratch.run(&format!("validate a.toml --root {PI}")).expect_status(0);
    let cloud = PI.replace("raspberry-pi-rt", "cloud-vm");
    let run = scratch.run(&format!("validate a.toml --root {cloud}"));
    run.expect_status(1);
    assert!(run.stdout().contains(
        "a.toml:3:8: the kernel isolates no CPU here: boot with `isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1`"
    ));
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_no_file() {
    let scratch = Scratch::new();
    let run = scratch.run(&format!("run isolated-or-ordinary --dry-run --dir records --root {PI}"));
    run.expect_status(0);
    let stdout = run.stdout();
    for line in [
        "records    records/",
        "1    isolated        1  3       3     40 s",
        "3    ordinary        2  none    2     40 s",
    ] {
        assert!(stdout.contains(line), "{stdout}");
    }
    let json = scratch.run(&format!("run cnc-matrix --dry-run --json --duration 3s --root {PI}")).stdout();
    let plan: Value = serde_json::from_str(&json).unwrap();
    let scenarios = plan["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 96);
    assert!(
        scenarios.iter().all(|scenario| scenario["planned_ns"] == 3_000_000_000_u64 && scenario["result"].is_null())
    );
    assert!(fs::read_dir(scratch.path()).unwrap().next().is_none(), "a dry run must write no file");
}

#[test]
fn campaigns_are_listed_and_a_printed_one_is_valid() {
    let scratch = Scratch::new();
    let listed = scratch.run("campaigns").stdout();
    assert!(listed.contains("cnc-matrix ") && listed.contains("vim3l-ladder "), "{listed}");
    fs::write(scratch.path().join("mine.toml"), scratch.run("campaigns cnc-matrix").stdout()).unwrap();
    scratch.run("validate mine.toml").expect_status(0);
    for arguments in ["campaigns cnc-matrx", "run cnc-matrx"] {
        let run = scratch.run(arguments);
        run.expect_status(64);
        assert!(run.stderr().contains("did you mean `cnc-matrix`?"), "{}", run.stderr());
    }
}

#[test]
fn the_time_of_planning_is_proportional_to_the_number_of_scenarios() {
    let scratch = Scratch::new();
    let loads = |count: usize| -> String {
        (0..count).map(|index| format!("[[load]]\nname = \"{index}\"\nrun = [\"cpu\"]\n")).collect()
    };
    for count in [100, 2000] {
        fs::write(scratch.path().join(format!("{count}.toml")), format!("name = \"a\"\n{}", loads(count))).unwrap();
    }
    let time = |count: usize| {
        let begin = Instant::now();
        scratch.run(&format!("validate {count}.toml")).expect_status(0);
        begin.elapsed()
    };
    // The shortest times are those without disturbance; a time that grew with the square would be 400 times as long.
    let (mut few, mut many) = (time(100), time(2000));
    for _ in 0..20 {
        (few, many) = (few.min(time(100)), many.min(time(2000)));
        if many < few * 40 {
            return;
        }
    }
    panic!("{few:?} for 100 and {many:?} for 2000");
}
