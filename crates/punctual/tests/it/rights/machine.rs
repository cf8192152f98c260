//! The measuring loop and the machine: system calls, the guard, a CPU that goes offline.

use std::{fs, process::Command, thread, time::Duration};

use record::State;
use stalls::{Stall, repeat_if_stalled};

use crate::harness::{PUNCTUAL, Scratch, Start, alone, last_cpu, wait_until};

#[test]
fn the_measuring_loop_makes_no_system_call_but_its_sleep() {
    let _alone = alone();
    let scratch = Scratch::new();
    let trace = scratch.path().join("trace");
    let status = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&trace)
        .arg(PUNCTUAL)
        .args("measure timer --no-record --quiet --cpus 0 --samples 300".split(' '))
        .stdout(std::process::Stdio::null())
        .status()
        .expect("strace is missing: sudo apt-get install strace");
    // strace stops the thread at each call, which can make the run INVALID.
    assert!(matches!(status.code(), Some(0 | 4)), "{status}");
    let text = fs::read_to_string(&trace).unwrap();
    // The measuring thread is the one that set a real-time policy.
    let thread = text.lines().find(|line| line.contains("sched_setattr")).unwrap().split_whitespace().next().unwrap();
    let calls: Vec<&str> = text.lines().filter(|line| line.starts_with(thread)).collect();
    let is_sleep = |line: &str| line.contains("clock_nanosleep");
    let first = calls.iter().position(|line| is_sleep(line)).unwrap();
    let last = calls.iter().rposition(|line| is_sleep(line)).unwrap();
    let others: Vec<_> = calls[first..last].iter().filter(|line| !is_sleep(line)).collect();
    assert!(last - first >= 299, "{} sleeps", last - first);
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_guard_throttles_a_period_too_short_for_the_machine() {
    let _alone = alone();
    // The guard throttles a thread that uses over 90 % of its CPU, which is impossible while the hypervisor takes a
    // tenth of it. Canaries are no help, because this thread delays them.
    repeat_if_stalled(Stall::Stolen, || {
        let scratch = Scratch::new();
        let options = format!("--cpus {} --policy fifo:99 --period 1us --duration 3s", last_cpu());
        let record = scratch.measure(4, &options);
        assert!(record.validity.reasons.iter().any(|reason| reason.id == "guard.rested"), "{:?}", record.validity);
        assert!(record.series[0].notes[0].contains("the guard throttled the thread"), "{:?}", record.series[0].notes);
        assert_eq!(record.state, State::Complete);
    });
}

#[test]
fn a_cpu_that_goes_offline_ends_its_series_with_a_note() {
    let _alone = alone();
    let cpu = last_cpu();
    let switch = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    if cpu == 0 {
        panic!("needs a second CPU");
    }
    let scratch = Scratch::new();
    let options = format!("measure timer --quiet --record a --cpus 0,{cpu} --policy fifo:80 --duration 5s");
    let child = scratch.punctual(&options).stdout(std::process::Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(1500));
    let online = BackOnline(switch.clone());
    fs::write(&switch, "0").expect("the right to take a CPU offline");
    let output = child.wait_with_output().unwrap();
    drop(online);
    assert_eq!(output.status.code(), Some(0));
    let record = scratch.record();
    let gone = record.series.iter().find(|series| series.cpu == Some(cpu)).unwrap();
    let stayed = record.series.iter().find(|series| series.cpu == Some(0)).unwrap();
    assert!(gone.notes.iter().any(|note| note.contains("the thread left CPU")), "{:?}", gone.notes);
    assert!(gone.samples > 0 && gone.samples < stayed.samples);
    assert!(stayed.notes.is_empty(), "{:?}", stayed.notes);
    assert!(record.caveats.iter().any(|caveat| caveat.kind == "offline"));

    fs::write(&switch, "0").unwrap();
    let _online = BackOnline(switch);
    let run = scratch.run(&format!("measure timer --no-record --cpus {cpu}"));
    run.expect_status(1);
    assert!(run.stderr().contains("offline"), "{}", run.stderr());
}

/// Sets a CPU online when dropped.
struct BackOnline(String);

impl Drop for BackOnline {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "1");
    }
}

#[test]
fn a_run_changes_settings_of_the_machine_and_restores_them() {
    const FILE: &str = "/proc/sys/vm/stat_interval";
    let _alone = alone();
    let scratch = Scratch::new();
    let now = || fs::read_to_string(FILE).unwrap().trim().to_owned();
    let before = now();
    // Differs from any value that is likely.
    let command = "measure timer --cpus 0 --policy other --duration 2s --setting cpu.statistics=17 --record a";
    let child = scratch.punctual(command).stdout(std::process::Stdio::null()).start();
    wait_until("the setting is changed", || now() == "17");
    let second = scratch.run("measure timer --duration 1s --no-record --setting cpu.statistics=18");
    second.expect_status(1);
    assert!(second.stderr().contains("changes settings of this machine now"), "{}", second.stderr());
    child.wait_with_output().unwrap();
    assert_eq!(now(), before);
    let record = record::file::read(&scratch.path().join("a.punctual.json")).unwrap();
    let setting = &record.settings[0];
    assert_eq!((&*setting.before, &*setting.during, setting.after.as_deref()), (&*before, "17", Some(&*before)));
    assert_eq!(record.scenario.settings, ["cpu.statistics=17"]);

    // After SIGKILL, the next measurement restores the value.
    let mut child = scratch.punctual(command).stdout(std::process::Stdio::null()).start();
    wait_until("the setting is changed", || now() == "17");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(now(), "17");
    let next = scratch.run("measure timer --cpus 0 --policy other --duration 100ms --no-record");
    assert!(next.stderr().contains("restored 1 setting"), "{}", next.stderr());
    assert_eq!(now(), before);
}
