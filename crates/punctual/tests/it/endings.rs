//! The ends of a run, and the record of each.

use std::{
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use record::{EndedBy, Record, State};
use stalls::{Stall, repeat_if_stalled};

use super::harness::{Scratch, Start, Started, resume, signal, stop, wait_until};

const ENDLESS: &str = "measure timer --quiet --record a --cpus 0 --policy other --period 1ms --endless";

/// Starts a run and waits until its record contains samples.
fn start(scratch: &Scratch, arguments: &str) -> Started {
    let child = launch(scratch, arguments);
    wait_for_samples(scratch);
    child
}

/// Starts a run. It handles signals as if a terminal started it, also if the tests run below nohup.
fn launch(scratch: &Scratch, arguments: &str) -> Started {
    let punctual = scratch.punctual(arguments);
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT").arg(punctual.get_program()).args(punctual.get_args());
    command.current_dir(scratch.path()).env("NO_COLOR", "1").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).start()
}

fn wait_for_samples(scratch: &Scratch) {
    wait_until("the record contains samples", || {
        record::file::read(&scratch.record_path())
            .is_ok_and(|record| record.series.iter().any(|series| series.samples > 0))
    });
}

fn deadlines(record: &Record) -> u64 {
    record.series.iter().map(|series| series.samples + series.missed).sum()
}

#[test]
fn one_signal_ends_the_run_with_a_report() {
    let started = ["INT", "TERM", "HUP", "XCPU", "USR1", "RTMIN"].map(|name| {
        let scratch = Scratch::new();
        let child = launch(&scratch, ENDLESS);
        (name, scratch, child)
    });
    for (name, scratch, child) in started {
        wait_for_samples(&scratch);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let record = scratch.record();
        assert_eq!((record.state, record.ended_by), (State::Interrupted, Some(EndedBy::Signal)));
        assert!(record.ending_signal.is_some_and(|signal| signal.contains(name)), "{name}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("CPU 0"));
    }
}

#[test]
fn a_file_that_cannot_be_written_does_not_hide_the_answer() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("gone");
    std::fs::create_dir(&folder).unwrap();
    let child = start(&scratch, &format!("{ENDLESS} --export gone/a.csv --export a.hgrm"));
    std::fs::remove_dir(&folder).unwrap();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains("CPU 0") && scratch.path().join("a.hgrm").exists(), "{stdout}");
    let error = "error: cannot write gone/a.csv: No such file or directory (os error 2); create its folder";
    assert!(stderr.contains(error), "{stderr}");
}

#[test]
fn a_record_without_its_folder_is_written_to_the_temporary_one() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("gone");
    std::fs::create_dir(&folder).unwrap();
    let mut command = scratch.punctual("measure timer --cpus 0 --policy other --period 1ms --endless --record gone/b");
    let child = command.env("TMPDIR", scratch.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    wait_until("a record is written", || folder.join("b.punctual.json").exists());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let kept = scratch.path().join("b.punctual.json");
    assert!(stderr.contains(&format!("the record is in {} instead", kept.display())), "{stderr}");
    assert!(stdout.contains(&format!("punctual show --full {}", kept.display())), "{stdout}");
    assert!(record::file::read(&kept).unwrap().state == State::Interrupted);
}

#[test]
fn a_matrix_that_a_signal_ends_recommends_nothing() {
    let scratch = Scratch::new();
    let threads = "--thread a=1ms,policy=other --thread b=2ms,policy=other";
    let arguments =
        format!("measure threads --matrix {threads} --cpus 0 --cell-duration 6s --load cpu --record a --quiet");
    let child = start(&scratch, &arguments);
    wait_until("a cell is measured", || scratch.record().phases.len() > 1);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("because the run ended early"), "{text}");
}

#[test]
fn a_signal_ends_a_run_that_sleeps_for_an_hour() {
    let scratch = Scratch::new();
    let child = start(&scratch, &ENDLESS.replace("1ms", "1h"));
    let begin = Instant::now();
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(scratch.record().series[0].samples, 1);
}

#[test]
fn two_signals_discard_the_run() {
    let scratch = Scratch::new();
    let child = start(&scratch, ENDLESS);
    // Both signals stay pending while the process is stopped, and arrive together.
    stop(&child);
    signal(&child, "INT");
    signal(&child, "TERM");
    signal(&child, "CONT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted twice: the run was discarded"));
    assert!(!scratch.record_path().exists());
}

#[test]
fn a_killed_run_leaves_a_record_that_lacks_at_most_five_seconds() {
    for after_ms in [20, 700, 7_900] {
        // The thread that writes the record is an ordinary one.
        repeat_if_stalled(Stall::Ordinary(Duration::from_millis(500)), || kill_after(after_ms));
    }
}

fn kill_after(after_ms: u64) {
    let scratch = Scratch::new();
    let mut child = scratch.punctual(ENDLESS).start();
    wait_until("the record exists", || scratch.record_path().exists());
    let begin = Instant::now();
    sleep(Duration::from_millis(after_ms));
    let ran = begin.elapsed();
    signal(&child, "KILL");
    child.wait().unwrap();
    let record = scratch.record();
    assert_eq!(record.state, State::Partial);
    let lacks_ms = u64::try_from(ran.as_millis()).unwrap().saturating_sub(deadlines(&record));
    assert!(lacks_ms <= 5_000, "killed after {ran:?} with {} deadlines", deadlines(&record));
}

#[test]
fn a_stop_of_one_second_misses_a_thousand_deadlines() {
    let scratch = Scratch::new();
    let child = start(&scratch, ENDLESS);
    stop(&child);
    let begin = Instant::now();
    sleep(Duration::from_secs(1));
    let stopped = begin.elapsed();
    // The run must not end before the thread has run again and counted the missed deadlines.
    resume(&child, "timer");
    signal(&child, "INT");
    // The stop is counted, but it is not the lateness of the machine.
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let record = scratch.record();
    let reasons: Vec<_> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
    assert_eq!(reasons, ["punctual.stopped"]);
    let series = &record.series[0];
    // The test measured the length of the stop; other stalls of this machine can only add to it.
    let expected = u64::try_from(stopped.as_millis()).unwrap();
    assert!(
        series.max_ns.unwrap().cast_unsigned() >= (expected - 2) * 1_000_000,
        "{:?} of {expected} ms",
        series.max_ns
    );
    assert!(series.missed >= expected - 2, "{} of {expected}", series.missed);
    assert_eq!(series.corrected.total(), series.samples + series.missed);
    // The stop covers more than 1 % of the deadlines, so the corrected p99 must show it; the raw one cannot.
    assert!(series.missed * 100 > series.samples + series.missed);
    assert!(series.corrected.percentile(99.0) > Some(500_000_000), "{:?}", series.corrected.percentile(99.0));
    assert!(series.raw.percentile(99.0) < series.corrected.percentile(99.0));
}
