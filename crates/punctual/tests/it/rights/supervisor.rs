//! Changes that somebody else makes during a run.

use std::{
    fs,
    hint::spin_loop,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant},
};

use record::{Campaign, Record, State};
use stalls::{Stall, repeat_if_stalled};
use sys::sched::{self, Policy};

use crate::harness::{Scratch, Start, alone, last_cpu, signal_process, skip, threads, wait_until};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// Runs punctual for a few seconds, calls `change` about a second after its measuring thread exists, and returns the
/// record.
fn changed(status: i32, options: &str, change: impl FnOnce(&Child)) -> Record {
    let scratch = Scratch::new();
    let arguments = format!("measure timer --quiet --record a --period 1ms --duration 5s {options}");
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).start();
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
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).start();
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
    assert!(text.starts_with("the load cpu was stopped by a signal or a debugger (seen after "), "{text}");
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
    let record = changed(4, "--cpus 0 --policy other --load cpu", |child| {
        freezer.write("cgroup.procs", &loads(child)[0]);
        freezer.write("freezer.state", "FROZEN");
        sleep(Duration::from_millis(1800));
        freezer.write("freezer.state", "THAWED");
    });
    let load = &record.phases[0].loads[0];
    assert!(!load.ran && load.note.as_ref().unwrap().starts_with("it did not run for 1."), "{load:?}");
    let text = reason(&record, "load.failed");
    assert!(text.starts_with("the load cpu did not run as requested: it did not run for 1."), "{text}");
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

#[test]
fn a_change_in_a_run_of_less_than_a_second_makes_it_invalid() {
    let _alone = alone();
    let scratch = Scratch::new();
    let child = scratch
        .punctual("measure timer --quiet --record a --period 1ms --duration 400ms --cpus 0")
        .stdout(Stdio::null())
        .start();
    wait_until("a thread measures", || threads(&child).iter().any(|path| comm(path).starts_with("timer/")));
    wait_until("it has its policy", || sched::policy_of(measuring_thread(&child, 0)).unwrap() == Policy::Fifo(90));
    sleep(Duration::from_millis(150));
    sched::set_policy_of(measuring_thread(&child, 0), Policy::Fifo(10)).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let text = reason(&scratch.record(), "policy.changed");
    assert!(text.starts_with("the policy of CPU 0 was changed from fifo:90 to fifo:10"), "{text}");
}

#[test]
fn a_killed_load_makes_the_run_invalid() {
    let _alone = alone();
    let record = changed(4, "--cpus 0 --load cpu", |child| {
        let load = &loads(child)[0];
        assert_eq!(comm(&Path::new("/proc").join(load)), "load/cpu", "its name in the trace");
        signal_process(load, "KILL");
    });
    let text = reason(&record, "load.failed");
    assert!(text.starts_with("the load cpu did not run as requested: its worker was killed by signal 9"), "{text}");
}

#[test]
fn a_killed_load_makes_the_run_of_a_watched_program_invalid() {
    let _alone = alone();
    let scratch = Scratch::new();
    let child = scratch
        .punctual("measure process --quiet --record a --load cpu --duration 2s -- sleep 5")
        .stdout(Stdio::null())
        .start();
    wait_until("the run began", || scratch.record_path().exists());
    // The command is also a child.
    let is_load = |id: &String| fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap().contains("__load");
    let load = loads(&child).into_iter().find(is_load);
    signal_process(&load.expect("a load"), "KILL");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let text = reason(&scratch.record(), "load.failed");
    assert!(text.starts_with("the load cpu did not run as requested: its worker was killed by signal 9"), "{text}");
}

#[test]
fn a_reason_names_the_cell_of_a_matrix() {
    let _alone = alone();
    let scratch = Scratch::new();
    let arguments = "measure threads --matrix --quiet --record a --cpus 0 --cell-duration 3s --load cpu --blame=off";
    let child = scratch.punctual(arguments).stdout(Stdio::null()).start();
    wait_until("a load runs", || !loads(&child).is_empty());
    sleep(Duration::from_millis(200));
    signal_process(&loads(&child)[0], "KILL");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let record = scratch.record();
    let cell = &record.phases.iter().find(|phase| phase.loads.iter().any(|load| !load.ran)).unwrap().name;
    let text = reason(&record, "load.failed");
    assert!(cell.contains("round 1") && text.starts_with(&format!("{cell}: the load cpu did not run")), "{text}");
}

#[test]
fn a_moved_load_makes_the_run_invalid() {
    let _alone = alone();
    let cpu = last_cpu();
    if cpu == 0 {
        return skip("a moved load, because there is only one CPU");
    }
    let record = changed(4, "--cpus 0 --load cpu", |child| {
        for thread in fs::read_dir(format!("/proc/{}/task", loads(child)[0])).unwrap().flatten() {
            let id = thread.file_name().to_str().unwrap().parse().unwrap();
            sched::set_affinity_of(Some(id), &[cpu]).unwrap();
        }
    });
    let text = reason(&record, "load.changed");
    let expected = format!("the load cpu has a thread that was moved from CPU 0 to CPU {cpu} (seen after ");
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn loads_that_share_a_cpu_with_each_other_are_valid() {
    let _alone = alone();
    let record = changed(0, "--cpus 0 --load cpu --load switch --load cache --load timer", |_| ());
    assert!(
        record.validity.valid && record.phases[0].loads.iter().all(|load| load.ran),
        "{:?}",
        record.phases[0].loads
    );
}

#[test]
fn a_stopped_punctual_makes_the_run_invalid() {
    let _alone = alone();
    let record = changed(4, "--cpus 0", |child| {
        let process = child.id().to_string();
        signal_process(&process, "STOP");
        sleep(Duration::from_millis(700));
        signal_process(&process, "CONT");
    });
    let text = reason(&record, "punctual.stopped");
    assert!(text.starts_with("punctual itself was stopped or frozen for 0."), "{text}");
}

#[test]
fn a_frozen_punctual_makes_the_run_invalid() {
    let _alone = alone();
    let Some(freezer) = Freezer::new() else {
        return skip("a frozen punctual, because there is no freezer group of version 1");
    };
    let record = changed(4, "--cpus 0", |child| {
        freezer.write("cgroup.procs", &child.id().to_string());
        freezer.write("freezer.state", "FROZEN");
        sleep(Duration::from_millis(700));
        freezer.write("freezer.state", "THAWED");
    });
    let text = reason(&record, "punctual.stopped");
    assert!(text.starts_with("punctual itself was stopped or frozen for 0."), "{text}");
}

/// A thread of the highest priority occupies the CPU for a while, which delays punctual, but does not stop it.
#[test]
fn a_starved_punctual_is_not_said_to_be_stopped() {
    let _alone = alone();
    repeat_if_stalled(Stall::Stolen, || {
        let occupy_all = |_: &Child| {
            let cpus = sched::affinity().unwrap().into_iter();
            let spinning: Vec<_> = cpus.map(|cpu| occupy(cpu, Duration::from_millis(700))).collect();
            spinning.into_iter().for_each(|thread| thread.join().unwrap());
        };
        let record = changed(0, "--cpus 0", occupy_all);
        assert!(record.series[0].max_ns.unwrap() > 300_000_000, "{:?}", record.series[0].max_ns);
    });
}

/// Occupies a CPU with a thread of the highest priority.
fn occupy(cpu: u32, time: Duration) -> JoinHandle<()> {
    spawn(move || {
        sched::set_affinity(&[cpu]).unwrap();
        sched::set_policy(Policy::Fifo(99)).unwrap();
        let began = Instant::now();
        while began.elapsed() < time {
            spin_loop();
        }
    })
}

#[test]
fn a_stall_in_progress_at_the_stop_is_counted() {
    let _alone = alone();
    if last_cpu() == 0 {
        return skip("a stall at the stop, because there is only one CPU");
    }
    let scratch = Scratch::new();
    let command = "measure timer --quiet --record a --period 10ms --endless --cpus 0";
    let child = scratch.punctual(command).stdout(Stdio::null()).start();
    wait_until("a thread measures", || threads(&child).iter().any(|path| comm(path).starts_with("timer/")));
    sleep(Duration::from_secs(1));
    let spinning = occupy(0, Duration::from_millis(2500));
    sleep(Duration::from_secs(1));
    signal_process(&child.id().to_string(), "INT");
    child.wait_with_output().unwrap();
    spinning.join().unwrap();
    let series = &scratch.record().series[0];
    assert!(series.max_ns.unwrap() > 500_000_000 && series.missed > 50, "{:?} {}", series.max_ns, series.missed);
    assert!(series.spikes.iter().any(|spike| Some(spike.lateness_ns) == series.max_ns), "no spike");
}

#[test]
fn an_invalid_scenario_of_a_campaign_keeps_its_reason_and_status() {
    let _alone = alone();
    let cpu = last_cpu();
    if cpu == 0 {
        return skip("a moved thread, because there is only one CPU");
    }
    let scratch = Scratch::new();
    let file = format!(
        "name = \"c\"\nrest = \"0s\"\n[probe]\nperiod = \"1ms\"\nduration = \"3s\"\n[[placement]]\nname = \"p\"\ncpus = \"{cpu}\"\n"
    );
    fs::write(scratch.path().join("c.toml"), file).unwrap();
    let child = scratch.punctual("run c.toml --quiet --dir d").stdout(Stdio::null()).start();
    wait_until("a thread measures", || threads(&child).iter().any(|path| comm(path).starts_with("timer/")));
    sleep(Duration::from_secs(1));
    sched::set_affinity_of(Some(measuring_thread(&child, cpu)), &[0]).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let campaign: Campaign = record::file::read_campaign(&scratch.path().join("d/campaign.json")).unwrap();
    let entry = &campaign.scenarios[0];
    assert!(!entry.result.as_ref().unwrap().valid);
    assert!(entry.reason.as_ref().unwrap().contains("was moved"), "{:?}", entry.reason);
}
