//! Changes that somebody else makes during a run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use record::{Record, State};
use sys::sched::{self, Policy};

use crate::harness::{Scratch, alone, last_cpu, signal_process, skip, threads, wait_until};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// Runs punctual for a few seconds, calls `change` about a second after its measuring thread exists, and returns the
/// record.
fn changed(status: i32, options: &str, change: impl FnOnce(&Child)) -> Record {
    let scratch = Scratch::new();
    let arguments = format!("measure timer --quiet --record a --period 1ms --duration 5s {options}");
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).spawn().unwrap();
    wait_until("a thread measures", || threads(&child).iter().any(|path| comm(path).starts_with("timer/")));
    sleep(Duration::from_secs(1));
    change(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(status));
    scratch.record()
}

/// The id of the measuring thread on this CPU.
fn measuring_thread(child: &Child, cpu: u32) -> u32 {
    let name = format!("timer/{cpu}");
    let path = threads(child).into_iter().find(|path| comm(path) == name).expect("a measuring thread");
    path.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// The name of a thread; empty if it has ended.
fn comm(thread: &Path) -> String {
    fs::read_to_string(thread.join("comm")).unwrap_or_default().trim().to_owned()
}

/// The ids of its loads.
fn loads(child: &Child) -> Vec<String> {
    let of_thread = |path: PathBuf| fs::read_to_string(path.join("children")).unwrap_or_default();
    let loads: String = threads(child).into_iter().map(of_thread).collect();
    loads.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn reason(record: &Record, id: &str) -> String {
    assert!(!record.validity.valid);
    let found = record.validity.reasons.iter().find(|reason| reason.id == id);
    found.unwrap_or_else(|| panic!("no {id} in {:?}", record.validity)).text.clone()
}

#[test]
fn another_policy_makes_the_run_invalid() {
    let _alone = alone();
    let cpu = last_cpu();
    let record = changed(4, &format!("--cpus {cpu} --policy fifo:80 --profile control-100hz"), |child| {
        sched::set_policy_of(measuring_thread(child, cpu), Policy::Other).unwrap();
    });
    let text = reason(&record, "policy.changed");
    let expected = format!("the policy of CPU {cpu} was changed from fifo:80 to other (seen after ");
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(record.state, State::Complete);
    assert_eq!(record.verdict.unwrap().outcome, record::Outcome::Invalid);
}

#[test]
fn a_moved_thread_ends_the_run_and_no_cpu_is_said_to_be_offline() {
    let _alone = alone();
    let cpu = last_cpu();
    if cpu == 0 {
        return skip("a moved thread, because there is only one CPU");
    }
    for probe in ["", "--policy other"] {
        let record = changed(4, &format!("--cpus {cpu} {probe}"), |child| {
            sched::set_affinity_of(Some(measuring_thread(child, cpu)), &[0]).unwrap();
        });
        let text = reason(&record, "cpu.moved");
        assert!(text.contains(&format!("CPU {cpu}")) && text.contains("was moved"), "{text}");
        assert_eq!(record.state, State::Interrupted);
        assert!(record.caveats.iter().all(|caveat| caveat.kind != "offline"), "{:?}", record.caveats);
        assert!(record.series[0].notes[0].starts_with(&format!("the thread left CPU {cpu}")));
    }
}

#[test]
fn only_measuring_threads_are_realtime_below_chrt() {
    let _alone = alone();
    let scratch = Scratch::new();
    let plain = scratch.punctual("measure timer --quiet --record a --period 1ms --duration 2s --cpus 0");
    let mut command = Command::new("chrt");
    command.args(["-f", "60"]).arg(plain.get_program()).args(plain.get_args()).current_dir(scratch.path());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a thread measures", || threads(&child).iter().any(|path| comm(path).starts_with("timer/")));
    wait_until("it has its policy", || sched::policy_of(measuring_thread(&child, 0)).unwrap() == Policy::Fifo(90));
    for path in threads(&child).iter().filter(|path| !comm(path).starts_with("timer/")) {
        let id = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(sched::policy_of(id).unwrap(), Policy::Other, "{}", comm(path));
    }
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("started with fifo:60"));
    assert_eq!(scratch.record().series[0].granted.policy, "fifo:90");
}

#[test]
fn a_stopped_load_makes_the_run_invalid() {
    let _alone = alone();
    let record = changed(4, "--cpus 0 --policy other --load cpu", |child| {
        let load = &loads(child)[0];
        signal_process(load, "STOP");
        sleep(Duration::from_millis(1500));
        signal_process(load, "CONT");
    });
    let text = reason(&record, "load.stopped");
    assert!(text.starts_with("the load cpu was stopped by a signal (seen after "), "{text}");
}

/// A control group of version 1 that freezes its processes, removed on drop.
struct Freezer(PathBuf);

impl Freezer {
    fn new() -> Option<Self> {
        let folder = Path::new("/sys/fs/cgroup/freezer").join(format!("punctual-test-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        // A group with a process that has just ended is busy for a moment.
        wait_until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_frozen_load_did_not_run() {
    let _alone = alone();
    let Some(freezer) = Freezer::new() else {
        return skip("a frozen load, because there is no freezer group of version 1");
    };
    let record = changed(0, "--cpus 0 --policy other --load cpu", |child| {
        freezer.write("cgroup.procs", &loads(child)[0]);
        freezer.write("freezer.state", "FROZEN");
        sleep(Duration::from_millis(1800));
        freezer.write("freezer.state", "THAWED");
    });
    let load = &record.phases[0].loads[0];
    assert!(!load.ran && load.note.as_ref().unwrap().starts_with("it did not run for 1."), "{load:?}");
}

#[test]
fn another_clock_source_for_a_while_makes_the_run_invalid() {
    let _alone = alone();
    let read = |file: &str| fs::read_to_string(format!("{CLOCKSOURCE}/{file}")).unwrap().trim().to_owned();
    let (current, available) = (read("current_clocksource"), read("available_clocksource"));
    let Some(other) = available.split(' ').find(|&name| name != current) else {
        return skip("a change of the clock source, because there is only one");
    };
    let set = |name: &str| fs::write(format!("{CLOCKSOURCE}/current_clocksource"), name).unwrap();
    let record = changed(4, "--cpus 0", |_| {
        set(other);
        sleep(Duration::from_millis(1500));
        set(&current);
    });
    let text = reason(&record, "clock.changed");
    assert!(text.starts_with(&format!("the kernel changed its clock source from {current} to {other}")), "{text}");
}
