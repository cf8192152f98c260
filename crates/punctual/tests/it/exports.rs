//! `--export`: each suffix, for a run, a record and the findings about a machine.

use std::{fs, process::Command};

use serde_json::Value;

use super::harness::{Scratch, skip};

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
    let shown = scratch.run(&format!("show a.punctual.json {}", exports("shown")));
    let paths: String = SUFFIXES.iter().map(|suffix| format!("export  shown.{suffix}\n")).collect();
    assert_eq!(shown.expect_status(0).stderr(), paths);
    let refused = scratch.run("blame a.punctual.json --export trace.txt");
    assert!(
        refused.expect_status(64).stderr().contains("trace.txt: its name must end in .json"),
        "{}",
        refused.stderr()
    );
    let read = |name: String| fs::read_to_string(scratch.path().join(name)).unwrap();
    for suffix in SUFFIXES {
        assert_eq!(read(format!("run.{suffix}")), read(format!("shown.{suffix}")), "{suffix}");
    }
    for (suffix, part) in [
        ("hlog", "\nTag=rest-timer-cpu0,"),
        ("md", "There is no verdict, because no profile was requested."),
        ("xml", "There is no verdict, because no profile was requested.\"/>"),
        ("lava", "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=punctual-run RESULT=skip>\n"),
        ("prom", "verdict=\"NONE\"} 1\n"),
        ("sarif", "\"verdict\": \"NONE\""),
    ] {
        assert!(read(format!("run.{suffix}")).contains(part), "{suffix}: {}", read(format!("run.{suffix}")));
    }
    let left = fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(left, 2 * SUFFIXES.len() + 2, "only the record and its report are left, and no temporary file");
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
    let run = scratch.run("check --fail-on never --export m.sarif");
    assert_eq!(run.expect_status(0).stdout(), "");
    let sarif: Value = serde_json::from_slice(&fs::read(scratch.path().join("m.sarif")).unwrap()).unwrap();
    let run = &sarif["runs"][0];
    let json: Value = serde_json::from_str(&scratch.run("check --json").stdout()).unwrap();
    let ids = |list: &Value, key: &str| list.as_array().unwrap().iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&run["results"], "ruleId"), ids(&json["findings"], "id"));
    assert!(!run["tool"]["driver"]["rules"].as_array().unwrap().is_empty());
}

/// Executes the code of a notebook without windows, then prints facts that it has found.
const EXECUTE: &str = r#"
import json, sys, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
cells = json.load(open(sys.argv[1]))["cells"]
exec("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
totals = [histogram(one["corrected"]) for one in record["series"]]
lines = [len(figure.axes[0].lines) for figure in map(plt.figure, plt.get_fignums())]
print(json.dumps([[int(counts.sum()), int(counts.index.max())] for counts in totals]))
print(json.dumps([series["samples"].tolist(), lines, len(uses)]))
"#;

#[test]
fn the_notebook_reads_a_record() {
    let scratch = Scratch::new();
    scratch.run(&format!("{RUN} --profile hifi-streamer"));
    let notebook = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/records.ipynb");
    // Another Python than that of the system may come first in the path, and lack the packages.
    let has_packages = |python: &&str| {
        let imported = Command::new(python).args(["-c", "import pandas, matplotlib"]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_packages) else {
        return skip("the notebook: install its packages: sudo apt-get install python3-pandas python3-matplotlib");
    };
    let mut command = Command::new(python);
    command.args(["-c", EXECUTE, notebook]).current_dir(scratch.path());
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let mut printed = stdout.lines().rev();
    let mut next = || serde_json::from_str::<Value>(printed.next().unwrap()).unwrap();
    let record = scratch.record();
    let series = &record.series[0];
    assert_eq!(next(), serde_json::json!([[50], [1, 1], 1]));
    let worst_ns = series.corrected.iter().next_back().unwrap().0;
    assert_eq!(next(), serde_json::json!([[series.corrected.total(), worst_ns]]));
}
