//! `pod` with the rights of a container: real-time priority and locked memory only, and no tracefs.

use std::process::Command;

use record::BlameMode;

use crate::harness::{PUNCTUAL, Run, Scratch};

/// Hides tracefs, gives up the other rights, and runs the rest of the arguments.
const LIKE_A_POD: &str = "mount -t tmpfs none /sys/kernel && \
    exec setpriv --bounding-set=-all,+sys_nice,+ipc_lock --inh-caps=-all -- \"$@\"";

fn in_a_pod(scratch: &Scratch, test: &str, limit_us: &str) -> Run {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", LIKE_A_POD, "sh", PUNCTUAL, "pod"]).args(test.split(' '));
    command.envs([("LATENCY_TEST_RUNTIME", "1"), ("MAXIMUM_LATENCY", limit_us), ("NO_COLOR", "1")]);
    Run(command.current_dir(scratch.path()).output().expect("unshare, of util-linux"))
}

#[test]
fn counters_replace_the_trace_without_tracefs() {
    let scratch = Scratch::new();
    let run = in_a_pod(&scratch, "cyclictest --record a --threshold 1us", "1000000000");
    assert!(run.expect_status(0).stderr().contains("; the latency must be below"), "{}", run.stderr());
    assert!(run.stdout().contains("PASS  The largest latency was "), "{}", run.stdout());
    let shown = scratch.run("show a.punctual.json --quiet").stdout();
    assert!(shown.starts_with("✔ PASS  The largest latency was "), "{shown}");
    let blame = scratch.record().blame.expect("a search for causes");
    assert_eq!(blame.mode, BlameMode::Counters);
    assert!(blame.why.contains("no right to use the kernel's trace"), "{}", blame.why);
}

#[test]
fn a_latency_above_the_limit_fails() {
    // No kernel wakes a thread in less than 1 us each time.
    let scratch = Scratch::new();
    let run = in_a_pod(&scratch, "cyclictest --record a --export a.xml", "1");
    assert!(run.expect_status(2).stdout().contains("FAIL  The largest latency was "), "{}", run.stdout());
    let exported = std::fs::read_to_string(scratch.path().join("a.xml")).unwrap();
    assert!(exported.contains("failures=\"1\"") && exported.contains("not below the limit of 1 us"), "{exported}");
}
