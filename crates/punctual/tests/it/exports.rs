//! `--export`: each suffix, for a run, a record and the findings about a machine.

use std::fs;

use serde_json::Value;

use super::harness::Scratch;

const SUFFIXES: [&str; 10] = ["json", "csv", "hgrm", "hlog", "html", "md", "xml", "lava", "prom", "sarif"];
const RUN: &str = "measure timer --cpus 0 --policy other --period 1ms --samples 50 --blame=off --quiet --record a";

/// The arguments that export to a file of each suffix.
fn exports(stem: &str) -> String {
    SUFFIXES.iter().map(|suffix| format!(" --export {stem}.{suffix}")).collect()
}

#[test]
fn a_run_and_its_record_export_the_same() {
    let scratch = Scratch::new();
    // No profile is required, so the run has no verdict.
    scratch.run(&format!("{RUN} {}", exports("run"))).expect_status(0);
    scratch.run(&format!("show a.punctual.json {}", exports("shown"))).expect_status(0);
    let read = |name: String| fs::read_to_string(scratch.path().join(name)).unwrap();
    for suffix in SUFFIXES {
        assert_eq!(read(format!("run.{suffix}")), read(format!("shown.{suffix}")), "{suffix}");
    }
    for (suffix, part) in [
        ("hlog", "\nTag=rest-timer-cpu0,"),
        ("md", "**No verdict.** Not judged, because no profile was requested."),
        ("xml", "<skipped message=\"Not judged, because no profile was requested."),
        ("lava", "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=punctual-run RESULT=skip>\n"),
        ("prom", "verdict=\"NONE\"} 1\n"),
        ("sarif", "\"verdict\": \"NONE\""),
    ] {
        assert!(read(format!("run.{suffix}")).contains(part), "{suffix}: {}", read(format!("run.{suffix}")));
    }
    let left = fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(left, 2 * SUFFIXES.len() + 1, "no temporary file is left");
}

#[test]
fn an_invalid_run_is_exported_as_invalid() {
    let scratch = Scratch::new();
    // No period passes, so the run is invalid.
    let run = "measure timer --cpus 0 --period 1s --policy other --duration 200ms --blame=off --quiet --no-record";
    scratch.run(&format!("{run} {}", exports("run"))).expect_status(4);
    let read = |suffix: &str| fs::read_to_string(scratch.path().join(format!("run.{suffix}"))).unwrap();
    for (suffix, part) in [
        ("hlog", "#[Verdict: INVALID: "),
        ("md", "**INVALID** "),
        ("xml", "<error type=\"INVALID\""),
        ("lava", "TEST_CASE_ID=punctual-run RESULT=unknown>"),
        ("prom", "verdict=\"INVALID\"} 1\n"),
        ("sarif", "\"executionSuccessful\": false"),
    ] {
        assert!(read(suffix).contains(part), "{suffix}: {}", read(suffix));
    }
    assert!(!read("lava").contains("pass") && !read("md").contains("PASS"));
}

#[test]
fn findings_are_exported_for_code_scanners() {
    let scratch = Scratch::new();
    let run = scratch.run("machine --export m.sarif");
    assert_eq!(run.expect_status(0).stdout(), "");
    let sarif: Value = serde_json::from_slice(&fs::read(scratch.path().join("m.sarif")).unwrap()).unwrap();
    let run = &sarif["runs"][0];
    let json: Value = serde_json::from_str(&scratch.run("machine --json").stdout()).unwrap();
    let ids = |list: &Value, key: &str| list.as_array().unwrap().iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&run["results"], "ruleId"), ids(&json["findings"], "id"));
    assert!(!run["tool"]["driver"]["rules"].as_array().unwrap().is_empty());
}
