//! Culprits from the kernel's trace, and the cleanup of the trace.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::Duration,
};

use blame::Tracefs;
use record::{BlameMode, BoundRefusal, CauseBound, CauseKind, Culprit, Evidence, Record, State};
use stalls::{Stall, repeat_if_stalled};

use crate::harness::{PUNCTUAL, Scratch, Start, alone, last_cpu, resume, signal, stop, wait_until};

/// The trace instances of one process; other runs on this machine have their own.
fn instances_of(pid: u32) -> Vec<PathBuf> {
    let tracefs = Tracefs::open().expect("the kernel's trace");
    let entries = fs::read_dir(tracefs.path("instances")).expect("its instances");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().contains(&format!("/punctual-{pid}-"))).collect()
}

/// Runs a command to its end; returns its process id and its output.
fn run(mut command: Command) -> (u32, Output) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    (child.id(), child.wait_with_output().expect("it ends"))
}

/// The mounts, and the settings of the kernel's global trace.
fn global_state() -> Vec<String> {
    let tracefs = Tracefs::open().expect("the kernel's trace");
    let files = ["tracing_on", "current_tracer", "set_event", "trace_clock", "buffer_size_kb", "tracing_cpumask"];
    let mut state: Vec<String> = files.iter().map(|name| fs::read_to_string(tracefs.path(name)).unwrap()).collect();
    state.push(fs::read_to_string("/proc/self/mounts").unwrap());
    state
}

fn shares_add_up(record: &Record) {
    // A spike that was passed over for lack of time has no shares.
    let explained = |spike: &&record::Spike| spike.evidence != Evidence::None;
    for spike in record.series.iter().flat_map(|series| &series.spikes).filter(explained) {
        let sum: u64 = spike.culprits.iter().map(|culprit| culprit.ns).sum();
        assert_eq!(sum, spike.lateness_ns.cast_unsigned(), "{spike:?}");
        // Only the worst spikes have a time line.
        if spike.timeline.is_empty() {
            continue;
        }
        let late = spike.timeline.iter().filter(|stretch| stretch.start_ns >= 0).map(|stretch| stretch.ns);
        assert_eq!(late.sum::<u64>(), spike.lateness_ns.cast_unsigned(), "{spike:?}");
    }
}

/// The bound from causes of a run of the timer probe on one CPU, and its largest lateness, ns.
fn bound(options: &str) -> (Scratch, Option<CauseBound>, u64) {
    let scratch = Scratch::new();
    let command = format!("measure timer --quiet --record a --cpus {} {options}", last_cpu());
    let (_, output) = run(scratch.punctual(&command));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = scratch.record();
    let series = &record.series[0];
    let max_ns = series.max_ns.expect("wake-ups").unsigned_abs();
    (scratch, series.cause_bound.clone(), max_ns)
}

#[test]
fn a_traced_run_has_a_bound_from_causes() {
    let _alone = alone();
    // The thread that reads the trace is an ordinary one.
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || {
        let (scratch, bound, max_ns) = bound("--duration 6s --load switch");
        let bound = bound.expect("a bound");
        let bound_ns = bound.bound_ns.unwrap_or_else(|| panic!("{bound:?}"));
        assert!(bound_ns >= max_ns, "{max_ns} ns: {bound:?}");
        assert_eq!(bound.parts.iter().map(|part| part.ns).sum::<u64>(), bound_ns);
        let is_handler = |part: &Culprit| part.cause.kind == CauseKind::Interrupt;
        assert!(bound.parts.iter().any(is_handler), "the timer's interrupt is missing: {bound:?}");
        assert!(bound.wake_ups > 5_000 && bound.events > 4 * bound.wake_ups && bound.read_ns > 0, "{bound:?}");
        let shown = scratch.punctual("show a.punctual.json --full").output().expect("it runs");
        let text = String::from_utf8_lossy(&shown.stdout);
        assert!(text.contains("from causes") && text.contains("if all meet:"), "{text}");
    });
    let refusal = |options| bound(options).1.map(|bound| (bound.bound_ns, bound.refused));
    assert_eq!(refusal("--duration 1s"), Some((None, Some(BoundRefusal::TooShort))));
    assert_eq!(refusal("--duration 1s --policy other"), Some((None, Some(BoundRefusal::NotRealTime))));
    assert_eq!(refusal("--duration 1s --blame=counters"), None);
}

#[test]
fn every_spike_has_culprits_and_nothing_is_left_behind() {
    let _alone = alone();
    // The thread that explains spikes is an ordinary one.
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), explain_every_spike);
}

fn explain_every_spike() {
    let before = global_state();
    let scratch = Scratch::new();
    let (pid, output) =
        run(scratch
            .punctual("measure timer --quiet --record a --threshold 1ns --period 2ms --samples 300 --blame-cost"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let record = scratch.record();
    let blame = record.blame.as_ref().expect("the culprits");
    assert_eq!((blame.mode, blame.why.as_str()), (BlameMode::Trace, ""));
    assert!(blame.events.contains(&"sched:sched_switch".to_owned()), "{:?}", blame.events);
    let total: u64 = record.series.iter().map(|series| series.spikes_total).sum();
    assert_eq!(blame.spikes + blame.passed_over, total);
    assert_eq!(blame.ledger.iter().map(|account| account.count).sum::<u64>(), blame.spikes);
    assert!(blame.ledger.iter().all(|account| account.count == 0 || !account.remedy.is_empty()));
    assert!(blame.cost.as_ref().is_some_and(|cost| cost.samples > 50), "{:?}", blame.cost);
    shares_add_up(&record);
    for series in &record.series {
        let time_lines = series.spikes.iter().filter(|spike| !spike.timeline.is_empty()).count();
        assert!((1..=record::TIME_LINES_KEPT / record.series.len()).contains(&time_lines), "{time_lines}");
    }
    // With a threshold of 1 ns every wake-up is a spike. The cause of nearly all is the kernel's wake-up itself.
    let spikes = || record.series.iter().flat_map(|series| &series.spikes);
    let explained = spikes().filter(|spike| spike.evidence != Evidence::None).count();
    assert!(explained * 2 >= spikes().count(), "{explained} of {}", spikes().count());
    assert_eq!(global_state(), before);
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn a_stopped_probe_is_distinguished_from_a_slow_machine() {
    let _alone = alone();
    // The thread that drains the trace is an ordinary one.
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), stop_the_probe);
}

fn stop_the_probe() {
    let scratch = Scratch::new();
    let child = scratch
        .punctual(&format!("measure timer --quiet --record a --cpus {} --endless", last_cpu()))
        .stdout(Stdio::null())
        .start();
    wait_until("the record exists", || scratch.record_path().exists());
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..10 {
        stop(&child);
        std::thread::sleep(Duration::from_millis(30));
        resume(&child, "timer");
        std::thread::sleep(Duration::from_millis(60));
    }
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let record = scratch.record();
    // The stops are too short for the checks of the run, but the spikes show them.
    assert_eq!(record.validity.reasons[0].id, "punctual.stopped");
    shares_add_up(&record);
    let stopped = |spike: &&record::Spike| {
        let main = spike.culprits.first().map(|culprit| &culprit.cause);
        spike.lateness_ns > 20_000_000
            && main.is_some_and(|cause| cause.kind == CauseKind::Stopped && cause.name == "SIGSTOP")
    };
    let long: Vec<_> = record.series[0].spikes.iter().filter(|spike| spike.lateness_ns > 20_000_000).collect();
    let found = long.iter().copied().filter(stopped).count();
    // Events may be lost on a busy machine. The strict version of this test runs in a guest with virtual time.
    assert!((8..=10).contains(&found), "{found} of 10: {long:#?}");
}

#[test]
fn the_trace_of_a_killed_run_is_removed_by_the_next_run() {
    let _alone = alone();
    let scratch = Scratch::new();
    let mut child = scratch.punctual("measure timer --quiet --record a --endless").start();
    let killed = child.id();
    wait_until("the trace instance exists", || !instances_of(killed).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel keeps the instance of a killed process. Any later run removes it.
    scratch.measure(0, "--samples 10");
    assert_eq!(instances_of(killed), Vec::<PathBuf>::new());
}

#[test]
fn a_run_that_stops_on_a_spike_writes_a_trace_for_other_tools() {
    let _alone = alone();
    let scratch = Scratch::new();
    let arguments = format!("measure timer --record a --cpus {} --stop-on 1ns --stop-trace t.dat", last_cpu());
    let mut command = scratch.punctual(&arguments);
    command.args(["--stop-run", "echo $PUNCTUAL_TRACE > ran"]);
    let (pid, output) = run(command);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("trace-cmd report t.dat"), "{stderr}");
    assert_eq!(fs::read_to_string(scratch.path().join("ran")).unwrap(), "t.dat\n");
    let record = scratch.record();
    assert_eq!(record.blame.unwrap().stopped_trace.as_deref(), Some("t.dat"));
    let spike = record.series[0].spikes.last().unwrap();
    assert_eq!(spike.at_ns, 0, "the first wake-up was late enough");
    // trace-cmd must find the wake-up of the probe that ended the run.
    let report = Command::new("trace-cmd").args(["report", "t.dat"]).current_dir(scratch.path()).output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    let probe = format!("comm=timer/{}", last_cpu());
    assert!(report.lines().any(|line| line.contains("sched_waking") && line.contains(&probe)), "{report}");
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn traces_are_saved_at_spikes_while_the_run_goes_on() {
    let _alone = alone();
    // Some kernels of virtual machines leave the switches of an idle CPU out of the trace: this CPU is never idle.
    let cpu = last_cpu().to_string();
    let _busy =
        Command::new("taskset").args(["-c", &cpu, "nice", "-n", "19", "sh", "-c", "while :; do :; done"]).start();
    let scratch = Scratch::new();
    let options = format!("measure timer --record a --cpus {cpu} --threshold 1ns --samples 3000");
    scratch.run(&format!("{options} --on-spike trace:late"));
    let record = scratch.record();
    assert_eq!((record.state, record.series[0].samples), (State::Complete, 3000), "the run went on");
    let caveat = record.caveats.iter().find(|caveat| caveat.kind == "on_spike").unwrap();
    assert!(caveat.text.contains(", see late-1.trace.dat to late-"), "{}", caveat.text);
    for name in ["late-1.trace.dat", "late-2.trace.dat"] {
        let report = Command::new("trace-cmd").args(["report", name]).current_dir(scratch.path()).output().unwrap();
        let report = String::from_utf8_lossy(&report.stdout).into_owned();
        let probe = format!("comm=timer/{}", last_cpu());
        assert!(report.lines().any(|line| line.contains("sched_waking") && line.contains(&probe)), "{name}");
    }
    let explained = record.series[0].spikes.iter().filter(|spike| spike.evidence == Evidence::Trace).count();
    let kept = record.series[0].spikes.len();
    assert!(explained > kept / 2, "{explained} of {kept}: saving a trace leaves the events for the explanations");

    scratch.run(&format!("{options} --on-spike trace:once --on-spike-once"));
    assert!(scratch.path().join("once-1.trace.dat").exists() && !scratch.path().join("once-2.trace.dat").exists());
    let refused = scratch.run(&format!("{options} --on-spike trace --blame=off")).expect_status(1).stderr();
    assert!(refused.contains("--blame=off was given"), "{refused}");
}

#[test]
fn counters_replace_a_refused_trace() {
    let _alone = alone();
    let scratch = Scratch::new();
    let binary = scratch.path().join("punctual");
    fs::copy(PUNCTUAL, &binary).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let run = |more: &str| {
        let arguments = format!("measure timer --quiet --cpus 0 --samples 100 --threshold 1ns {more}");
        let mut command = Command::new(&binary);
        command.args(arguments.split_whitespace()).current_dir(scratch.path()).uid(65_534).gid(65_534);
        command.output().unwrap()
    };
    run("--record a");
    let record = scratch.record();
    let blame = record.blame.unwrap();
    assert_eq!(blame.mode, BlameMode::Counters);
    assert!(blame.why.contains("root"), "{}", blame.why);
    let spikes = &record.series[0].spikes;
    assert!(spikes.iter().any(|spike| spike.evidence == Evidence::Counters));
    assert!(spikes.iter().all(|spike| [Evidence::Counters, Evidence::None].contains(&spike.evidence)));
    let refused = run("--no-record --blame");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("root"), "{stderr}");
}

#[test]
fn blame_can_be_turned_off() {
    let _alone = alone();
    let record = Scratch::new().measure(0, "--blame=off --threshold 1ns --samples 20");
    assert_eq!(record.blame.unwrap().mode, BlameMode::Off);
    assert!(record.series[0].spikes.iter().all(|spike| spike.culprits.is_empty()));
    let record = Scratch::new().measure(0, "--blame=counters --threshold 1ns --samples 200");
    assert_eq!(record.blame.unwrap().mode, BlameMode::Counters);
    assert!(record.series[0].spikes.iter().any(|spike| spike.culprits.len() == 1));
}
