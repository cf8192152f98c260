//! `pod`: the variables of OpenShift's latency tests.

use super::harness::{Run, Scratch};

fn pod(variables: &[(&str, &str)], arguments: &str) -> Run {
    let scratch = Scratch::new();
    let mut command = scratch.punctual(&format!("pod {arguments}"));
    Run(command.envs(variables.iter().copied()).output().expect("the binary runs"))
}

#[test]
fn wrong_variables_are_usage_errors() {
    let run = pod(&[("LATENCY_TEST_RUNTIME", "10m")], "");
    assert!(run.expect_status(64).stderr().contains("LATENCY_TEST_RUNTIME must be a number of seconds"));
    let run = pod(&[("LATENCY_TEST_CPUS", "100000")], "");
    assert!(run.expect_status(64).stderr().contains("request 100000 CPUs"), "{}", run.stderr());
    let run = pod(&[], "cyclictest --lod cpu");
    assert!(run.expect_status(64).stderr().contains("'--lod'"), "{}", run.stderr());
}

#[test]
fn a_run_begins_with_its_length_and_limit() {
    let said =
        |variables: &[(&str, &str)]| pod(variables, "cyclictest --policy other --blame=off --no-record").stderr();
    let unjudged = said(&[("LATENCY_TEST_RUNTIME", "1")]);
    let beginning = "cyclictest runs for 1 s (LATENCY_TEST_RUNTIME); not judged, because neither MAXIMUM_LATENCY nor ";
    assert!(unjudged.starts_with(beginning), "{unjudged}");
    let judged = said(&[("LATENCY_TEST_RUNTIME", "1"), ("MAXIMUM_LATENCY", "20")]);
    assert!(
        judged.starts_with("cyclictest runs for 1 s (LATENCY_TEST_RUNTIME); the latency must be below 20 us"),
        "{judged}"
    );
}

#[test]
fn a_run_that_is_not_wanted_is_no_success() {
    let run = pod(&[("LATENCY_TEST_RUN", "false")], "");
    assert!(run.expect_status(3).stderr().contains("nothing was measured"), "{}", run.stderr());
}
