//! The effect of each load, as the kernel counts it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

use std::{fs, process::Command};

use common::{as_root, below, eventually, exe, let_it_work, number, online, pause, proof, run, start, worker_of};
use record::LoadProof;

#[track_caller]
fn assert_ran(proof: &LoadProof) {
    assert!(proof.ran, "{proof:?}");
    assert!(proof.operations > 0 && proof.cpu_time_ns > 0 && proof.threads > 0, "{proof:?}");
    assert!(!proof.unit.is_empty());
}

#[test]
fn every_load_proves_that_it_ran() {
    let names = loads::KINDS.iter().map(|kind| kind.name).filter(|name| !["idle", "stress-ng"].contains(name));
    let with_options = ["cpu:shell", "cache:size=1M", "memory:size=1M", "disk:size=2M", "stress-ng:--cpu 1"];
    for spec in names.chain(with_options) {
        let proof = proof(spec);
        assert_ran(&proof);
        assert!(proof.wall_ns >= 300_000_000, "{proof:?}");
        assert_eq!((proof.spec.as_str(), proof.cpus), (spec, online().to_string()));
        assert_eq!(proof.name, spec.split(':').next().unwrap());
    }
}

#[test]
fn idle_does_nothing() {
    let proof = proof("idle");
    assert!(proof.ran && proof.operations == 0 && proof.threads == 0 && proof.cpu_time_ns == 0);
}

#[test]
fn busy_load_uses_only_its_cpus() {
    let first = online().first().unwrap();
    let spec = format!("cpu@{first}");
    let running = start(&spec).unwrap();
    let_it_work(&worker_of(&spec));
    let proof = running.stop().remove(0);
    assert_ran(&proof);
    assert_eq!((proof.cpus, proof.threads), (first.to_string(), 1));
    assert!(proof.cpu_time_ns < 2 * proof.wall_ns, "one CPU has no more time than this");
}

#[test]
fn threads_have_the_given_cpus_and_ordinary_priority() {
    let (first, all) = (online().first().unwrap(), online());
    for kind in ["cpu", "cpu:shell", "cache:size=2M", "memory:size=2M", "switch:1ms", "disk:size=3M", "net", "irq"] {
        let spec = format!("{kind}@{first}");
        let running = start(&spec).unwrap();
        let worker = worker_of(&spec);
        // The worker is ready a moment before its shell exists.
        eventually("the shell exists", || kind != "cpu:shell" || !below(worker.pid).is_empty());
        let mut processes = below(worker.pid);
        assert_eq!(processes.is_empty(), kind != "cpu:shell");
        processes.push(worker);
        for process in &processes {
            for thread in process.threads() {
                assert_eq!(process.status(thread, "Cpus_allowed_list"), first.to_string(), "{spec}");
                assert_eq!(process.scheduling(thread), (0, 0), "{spec}");
            }
        }
        drop(running);
    }
    let spec = format!("cpu@{all}");
    let running = start(&spec).unwrap();
    let worker = worker_of(&spec);
    let mut cpus: Vec<u32> = worker
        .threads()
        .into_iter()
        .filter(|thread| *thread != worker.pid)
        .map(|thread| worker.status(thread, "Cpus_allowed_list").parse().expect("one CPU per thread"))
        .collect();
    cpus.sort_unstable();
    assert_eq!(cpus, all.iter().collect::<Vec<_>>());
    drop(running);
}

#[test]
fn switch_switches_at_its_interval_and_leaves_no_cpu_idle() {
    let spec = "switch:100us";
    let running = start(spec).unwrap();
    let worker = worker_of(spec);
    let idle_before = idle_ticks();
    pause(500);
    let idle = idle_ticks() - idle_before;
    let_it_work(&worker);
    let voluntary = |thread| worker.status(thread, "voluntary_ctxt_switches").parse::<u64>().unwrap();
    let seen: u64 = worker.threads().into_iter().map(voluntary).sum();
    let proof = running.stop().remove(0);
    assert_ran(&proof);
    assert!(seen >= proof.operations / 2, "the kernel counted {seen} switches: {proof:?}");
    let most = proof.wall_ns / 100_000 * online().len() as u64;
    assert!(proof.operations <= most + most / 10, "at most one switch each 100 us: {proof:?}");
    assert!(proof.operations >= most / 20, "{proof:?}");
    // A tick is 10 ms.
    assert!(idle * 10 <= 500 * online().len() as u64 / 4, "{idle} ticks idle");
}

/// Idle time of all CPUs, in ticks of 1/100 s.
fn idle_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<u64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    fields[3] + fields[4]
}

#[test]
fn net_floods_loopback() {
    let received = || number("/sys/class/net/lo/statistics/rx_packets");
    let before = received();
    let proof = proof("net");
    assert_ran(&proof);
    assert!(received() - before >= proof.operations, "{proof:?}");
}

#[test]
fn memory_causes_page_faults() {
    let faults = |worker: &common::Process| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", worker.pid)).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(7).unwrap().parse::<u64>().unwrap()
    };
    let spec = "memory:size=512K";
    let running = start(spec).unwrap();
    let worker = worker_of(spec);
    let_it_work(&worker);
    let seen = faults(&worker);
    let proof = running.stop().remove(0);
    assert_ran(&proof);
    assert!(seen >= proof.operations / 2, "{seen} page faults for {proof:?}");
}

#[test]
fn disk_writes_to_the_disk_and_leaves_no_file() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let empty = || fs::read_dir(folder.path()).unwrap().next().is_none();
    let spec = format!("disk:dir={},size=4M", folder.path().display());
    let running = start(&spec).unwrap();
    let worker = worker_of(&spec);
    assert!(empty(), "the file has no name");
    let written = || {
        let io = fs::read_to_string(format!("/proc/{}/io", worker.pid)).unwrap();
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse::<u64>().unwrap()
    };
    eventually("the kernel counts written bytes", || written() > 8 << 20);
    pause(300);
    let written = written();
    let proof = running.stop().remove(0);
    assert_ran(&proof);
    assert!(written >= proof.operations / 2 * (256 << 10), "{written} bytes for {proof:?}");

    let running = start(&spec).unwrap();
    let worker = worker_of(&spec);
    run(Command::new("kill").args(["-9", &worker.pid.to_string()]));
    eventually("the worker is gone", || !worker.runs());
    assert!(empty(), "no file remains after SIGKILL");
    assert!(!running.stop()[0].ran);
}

#[test]
fn stress_ng_reports_wrong_arguments() {
    let error = start("stress-ng:--no-such-option").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no-such-option") && error.contains("man stress-ng"), "{error}");
    let output = Command::new(exe()).env("PATH", "/nowhere").args(["run", "1", "0", "stress-ng:--cpu 1"]).output();
    let stderr = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    assert!(stderr.contains("sudo apt-get install stress-ng"), "{stderr}");
    let running = start("stress-ng:--cpu 1 --timeout 1").unwrap();
    pause(1600);
    let proof = running.stop().remove(0);
    assert!(!proof.ran && proof.note.as_ref().unwrap().contains("ended before"), "{proof:?}");
}

/// Tests that need root. For other users `tools/test` skips them and reports their number.
mod rights {
    use super::*;

    #[test]
    fn disk_refuses_full_and_read_only_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        for (options, spec, expected) in [
            ("size=1M", "size=8M", "it is full, or smaller than the requested size"),
            ("size=64M", "size=1M", "held in memory (tmpfs)"),
            ("ro", "size=1M", "it is mounted read-only"),
        ] {
            as_root(&format!("mount -t tmpfs -o {options} punctual-test {path}"));
            let error = start(&format!("disk:dir={path},{spec}")).map(|_| ()).unwrap_err().to_string();
            as_root(&format!("umount {path}"));
            assert!(error.contains(expected) && error.contains("disk:dir="), "{error}");
        }
    }

    #[test]
    fn timer_threads_have_the_given_priority() {
        let spec = "timer:42,period=500us";
        let running = start(spec).expect("real-time priority needs CAP_SYS_NICE");
        let worker = worker_of(spec);
        let realtime = || worker.threads().into_iter().filter(|thread| worker.scheduling(*thread) == (42, 1)).count();
        eventually("one real-time thread per CPU", || realtime() == online().len());
        let limits = fs::read_to_string(format!("/proc/{}/limits", worker.pid)).unwrap();
        let guard = limits.lines().find(|line| line.starts_with("Max realtime timeout")).unwrap();
        assert!(guard.contains("200000"), "the kernel limits it to 0.2 s without sleep: {guard}");
        pause(300);
        let proof = running.stop().remove(0);
        assert_ran(&proof);
        let most = proof.wall_ns / 500_000 * online().len() as u64;
        assert!(proof.operations <= most + most / 10, "each cycle sleeps: {proof:?}");

        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-sys_nice"]).arg(exe());
        let refused = run(command.args(["run", "100", &online().to_string(), spec]));
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "a missing capability is an error");
        assert!(
            stderr.contains("SCHED_FIFO priority 42") && stderr.contains("setcap cap_sys_nice,cap_ipc_lock+ep"),
            "{stderr}"
        );
    }

    #[test]
    fn load_started_by_a_realtime_thread_is_ordinary() {
        let spec = "memory:size=3M";
        let starter = std::thread::spawn(move || {
            sys::sched::set_policy(sys::sched::Policy::Fifo(3)).expect("real-time priority needs CAP_SYS_NICE");
            start(spec).unwrap()
        });
        let running = starter.join().unwrap();
        // The thread that started the load has ended; the load must go on.
        pause(100);
        let worker = worker_of(spec);
        let_it_work(&worker);
        assert!(worker.threads().into_iter().all(|thread| worker.scheduling(thread) == (0, 0)));
        assert!(running.stop()[0].ran);
    }
}
