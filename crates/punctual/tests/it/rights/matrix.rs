//! A matrix finds the CPU that something holds again and again: its row and its column are the bad ones.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use record::Cell;
use sys::{clock::Clock, sched};

use crate::harness::{Scratch, alone, last_cpu};

const HELD: Duration = Duration::from_millis(4);
const BETWEEN: Duration = Duration::from_millis(11);

/// Holds CPU 0 above the probe for 4 ms at a time, until told to stop.
fn block(stop: &AtomicBool) {
    sched::set_affinity(&[0]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    while !stop.load(Relaxed) {
        let until_ns = Clock::Monotonic.now_ns() + HELD.as_nanos() as i64;
        while Clock::Monotonic.now_ns() < until_ns {}
        thread::sleep(BETWEEN);
    }
}

#[test]
fn the_blocked_cpu_s_row_and_column_are_bad_and_the_recommendation_avoids_them() {
    let last = last_cpu();
    if last == 0 {
        eprintln!("SKIPPED: a matrix with a blocked CPU needs two CPUs");
        return;
    }
    let _alone = alone();
    let scratch = Scratch::new();
    let threads = "--thread base=200us --thread servo=1ms,policy=fifo:70";
    let arguments =
        format!("--matrix --cpus 0,{last} --cell-duration 1500ms --show lateness --blame=off --record a {threads}");
    let stop = Arc::new(AtomicBool::new(false));
    let blocker = thread::spawn({
        let stop = stop.clone();
        move || block(&stop)
    });
    let run = scratch.punctual(&format!("measure threads {arguments}")).stderr(Stdio::null()).output().unwrap();
    stop.store(true, Relaxed);
    blocker.join().unwrap();
    let shown = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{shown}");

    let record = scratch.record();
    assert_eq!((record.phases.len(), record.cells.len()), (4 * 2 * 3, 4 * 2));
    for cell in &record.cells {
        assert_eq!(cell.invalid, None);
        assert!(cell.threads.iter().all(|thread| thread.cpu_checks > 0));
    }
    for series in &record.series {
        let phase = record.phase(&series.phase).unwrap();
        let asked = phase.threads.iter().find(|thread| thread.role == series.role).unwrap();
        assert_eq!((series.cpu, series.period_ns), (Some(asked.cpu), asked.period_ns));
        assert_eq!(series.granted.policy, asked.policy);
    }
    let policies: Vec<_> = record.phases[0].threads.iter().map(|thread| thread.policy.as_str()).collect();
    assert_eq!(policies, ["fifo:90", "fifo:70"]);

    // The worst round tells what else this machine did; the middle one what was done to it.
    let middle = |cell: &Cell| {
        let mut rounds = cell.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    let on_zero = |cell: &&Cell| cell.threads.iter().any(|thread| thread.cpu == 0);
    for load in ["noload", "cpu:shell"] {
        let of_load: Vec<_> = record.cells.iter().filter(|cell| cell.load == load).collect();
        let free = of_load.iter().find(|cell| !on_zero(cell)).unwrap();
        for blocked in of_load.iter().filter(|cell| on_zero(cell)) {
            assert!(middle(blocked) > 2.0 * middle(free), "{blocked:?}\nis not worse than\n{free:?}");
            // Nearly each hold makes a thread miss; a quarter of the time is held.
            for thread in blocked.threads.iter().filter(|thread| thread.cpu == 0) {
                assert!(thread.missed_share() > 0.1, "{thread:?}");
                assert!(thread.max_ns > Some(3_000_000) && thread.jitter_ns > 2_000_000, "{thread:?}");
            }
        }
    }
    let advice = record.recommendation.unwrap();
    assert!(advice.pair.iter().all(|place| place.cpu == last), "{advice:?}");
    assert!(shown.contains(&format!("Put base and servo on CPU {last}.")), "{shown}");
    assert!(shown.contains("Each pair with a thread on CPU 0 was worse in every round"), "{shown}");
}
