//! Start and end of loads: they start together and never outlive the process that started them.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use common::{Process, below, eventually, exe, let_it_work, online, pause, run, start, worker_of};
use loads::{LoadSpec, Running};

#[test]
fn loads_end_when_their_parent_is_killed() {
    let mut command = Command::new(exe());
    command.args(["run", "60000", &online().to_string(), "cpu:shell", "memory", "switch", "stress-ng:--cpu 2"]);
    let mut parent = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "at work\n");
    // Four workers, one shell per CPU, stress-ng and its two stressors.
    let expected = 4 + online().len() + 3;
    eventually("all loads run", || below(parent.id()).len() >= expected);
    let processes = below(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("all loads have ended", || !processes.iter().any(Process::runs));
}

#[test]
fn dropping_loads_ends_them_and_no_others() {
    let kept = start("memory:size=4M").unwrap();
    let dropped = start("memory:size=5M").unwrap();
    let worker = worker_of("memory:size=5M");
    drop(dropped);
    assert!(!worker.runs());
    let_it_work(&worker_of("memory:size=4M"));
    assert!(kept.stop()[0].ran);
}

#[test]
fn load_that_is_killed_did_not_run() {
    let specs: Vec<LoadSpec> = ["cpu", "cache:size=3M"].iter().map(|spec| spec.parse().unwrap()).collect();
    let running = Running::start(&exe(), &specs, &online()).unwrap();
    specs.iter().for_each(|spec| let_it_work(&worker_of(&spec.to_string())));
    run(Command::new("kill").args(["-9", &worker_of("cache:size=3M").pid.to_string()]));
    pause(100);
    let proofs = running.stop();
    assert!(proofs[0].ran && proofs[0].note.is_none(), "{proofs:?}");
    assert!(!proofs[1].ran, "{proofs:?}");
    assert!(proofs[1].note.as_ref().unwrap().contains("killed by signal 9"), "{proofs:?}");
    assert!(proofs[1].cpu_time_ns > 0, "the kernel still counts its CPU time");
}

#[test]
fn the_terminal_cannot_interrupt_a_load() {
    let spec = "memory:size=6M";
    let running = start(spec).unwrap();
    let group = run(Command::new("ps").args(["-o", "pgid=", "-p", &worker_of(spec).pid.to_string()]));
    assert_eq!(String::from_utf8_lossy(&group.stdout).trim(), worker_of(spec).pid.to_string());
    let_it_work(&worker_of(spec));
    assert!(running.stop()[0].ran);
}

#[test]
fn failed_start_is_explained_and_ends_the_other_loads() {
    let error = |exe: &Path, specs: &[&str]| {
        let specs: Vec<LoadSpec> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
        Running::start(exe, &specs, &online()).map(|_| ()).unwrap_err().to_string()
    };
    for (exe, specs, expected) in [
        (exe(), vec!["cpu@4000"], "CPU 4000 is not on this machine"),
        (exe(), vec!["idle", "cpu"], "leave it out"),
        (exe(), vec!["cache:size=64G"], "give it a smaller size"),
        (exe(), vec!["disk:dir=/no/such/folder"], "there is no such folder"),
        (exe(), vec!["memory:size=7M", "disk:dir=/no/such/folder"], "there is no such folder"),
        ("/no/such/program".into(), vec!["cpu"], "cannot start a worker for load `cpu`"),
        ("/bin/true".into(), vec!["cpu"], "load `cpu` ended at once"),
        ("/bin/false".into(), vec!["cpu"], "exit status 1"),
    ] {
        let error = error(&exe, &specs);
        assert!(error.contains(expected), "{error}");
    }
    assert!(!below(std::process::id()).iter().any(|process| process.command.contains("memory:size=7M")));
}
