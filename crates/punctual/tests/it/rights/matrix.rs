//! A matrix finds the CPU that a thread blocks repeatedly: its row and its column are the worst ones.

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
use stalls::{Stall, repeat_if_stalled};
use sys::{clock::Clock, sched};

use crate::harness::{Scratch, alone, last_cpu, skip};

const HELD: Duration = Duration::from_millis(4);
const BETWEEN: Duration = Duration::from_millis(11);

/// Takes CPU 0 from the probe for 4 ms at a time, until `stop` is set.
fn block(stop: &AtomicBool) {
    sched::set_affinity(&[0]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    while !stop.load(Relaxed) {
        let until_ns = Clock::Monotonic.now_ns() + i64::try_from(HELD.as_nanos()).unwrap();
        while Clock::Monotonic.now_ns() < until_ns {}
        thread::sleep(BETWEEN);
    }
}

#[test]
fn a_matrix_recommends_the_cpu_that_is_not_blocked() {
    if last_cpu() == 0 {
        return skip("a matrix with a blocked CPU needs two CPUs");
    }
    let _alone = alone();
    // A stall of half the blocked time in a cell without blocking makes that cell look blocked.
    repeat_if_stalled(Stall::Realtime(HELD / 2), compare_cells);
}

fn compare_cells() {
    let last = last_cpu();
    let scratch = Scratch::new();
    let threads = "--thread base=200us --thread servo=1ms,policy=fifo:70";
    let arguments =
        format!("--matrix --cpus 0,{last} --cell-duration 1500ms --show lateness --blame=off --record a {threads}");
    let stop = Arc::new(AtomicBool::new(false));
    let blocker = thread::spawn({
        let stop = stop.clone();
        move || block(&stop)
    });
    let run = scratch.punctual(&format!("measure threads --full {arguments}")).stderr(Stdio::null()).output().unwrap();
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
        let planned = phase.threads.iter().find(|thread| thread.role == series.role).unwrap();
        assert_eq!((series.cpu, series.period_ns), (Some(planned.cpu), planned.period_ns));
        assert_eq!(series.granted.policy, planned.policy);
    }
    let policies: Vec<_> = record.phases[0].threads.iter().map(|thread| thread.policy.as_str()).collect();
    assert_eq!(policies, ["fifo:90", "fifo:70"]);

    // The worst round includes the stalls of this machine, so the median is compared.
    let median = |cell: &Cell| {
        let mut rounds = cell.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    let on_zero = |cell: &&Cell| cell.threads.iter().any(|thread| thread.cpu == 0);
    for load in ["noload", "cpu:shell"] {
        let of_load: Vec<_> = record.cells.iter().filter(|cell| cell.load == load).collect();
        let free = of_load.iter().find(|cell| !on_zero(cell)).unwrap();
        for blocked in of_load.iter().filter(|cell| on_zero(cell)) {
            assert!(median(blocked) > 2.0 * median(free), "{blocked:?}\nis not worse than\n{free:?}");
            // The CPU is blocked a quarter of the time, and the thread misses most deadlines in it.
            for thread in blocked.threads.iter().filter(|thread| thread.cpu == 0) {
                assert!(thread.missed_share() > 0.1, "{thread:?}");
                assert!(thread.max_ns > Some(3_000_000) && thread.jitter_ns > 2_000_000, "{thread:?}");
            }
        }
    }
    let advice = record.recommendation.unwrap();
    assert!(advice.pair.iter().all(|thread| thread.cpu == last), "{advice:?}");
    assert!(shown.contains(&format!("Put base and servo on CPU {last}.")), "{shown}");
    assert!(shown.contains("Each pair with a thread on CPU 0 was worse in every round"), "{shown}");
}
