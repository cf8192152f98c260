//! A spinning probe loses its CPU to a thread of higher priority, and finds each gap with its length.

use std::{process::Stdio, thread, time::Duration};

use record::{CauseKind, Evidence, Why};
use stalls::{Stall, repeat_if_stalled};
use sys::{clock::Clock, sched};

use crate::harness::{Scratch, Start, alone, last_cpu, signal, wait_until};

/// How long the CPU is taken.
const LENGTHS_NS: [i64; 3] = [300_000, 1_000_000, 4_000_000];
const TIMES: usize = 60;

/// Takes a CPU from all threads below priority 95 at irregular times; returns the begin and end of each time, ns.
fn take(cpu: u32) -> Vec<(i64, i64)> {
    sched::set_affinity(&[cpu]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    let taken = |round: usize| {
        thread::sleep(Duration::from_micros(21_000 + (round * 7_919 % 9_973) as u64));
        let begin_ns = Clock::Monotonic.now_ns();
        let mut end_ns = begin_ns;
        while end_ns < begin_ns + LENGTHS_NS[round % LENGTHS_NS.len()] {
            end_ns = Clock::Monotonic.now_ns();
        }
        (begin_ns, end_ns)
    };
    (0..TIMES).map(taken).collect()
}

#[test]
fn gaps_of_known_length_are_found() {
    let _alone = alone();
    repeat_if_stalled(Stall::Realtime(Duration::from_micros(100)), find_gaps);
}

fn find_gaps() {
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments =
        format!("measure noise --quiet --record a --cpus {cpu} --policy fifo:80 --threshold 50us --endless --blame");
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(500));
    let taken = thread::Builder::new().name("taker".to_owned()).spawn(move || take(cpu)).unwrap().join().unwrap();
    thread::sleep(Duration::from_millis(200));
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));

    let record = scratch.record();
    let series = &record.series[0];
    let noise = series.kind.noise().unwrap();
    assert_eq!(series.granted.policy, "fifo:80");
    let (mut expected, mut seen, mut named, mut taken_ns) = (0, 0, 0, 0);
    let mut ratios = Vec::new();
    for (begin_ns, end_ns) in taken {
        // The probe sees nothing while it sleeps, and wakes up late if the CPU is taken then.
        let in_period_ns = (begin_ns - series.first_deadline_ns).rem_euclid(series.period_ns.cast_signed());
        if !(6_000_000..90_000_000).contains(&in_period_ns) {
            continue;
        }
        expected += 1;
        let around = |spike: &&record::Spike| {
            let at_ns = series.first_deadline_ns + spike.at_ns.cast_signed();
            at_ns <= begin_ns && at_ns + spike.lateness_ns >= end_ns
        };
        let found: Vec<_> = series.spikes.iter().filter(around).collect();
        // The CPU may have been taken before the probe began to spin.
        let Some((gap, more)) = found.split_first() else { continue };
        assert!(more.is_empty(), "taken from {begin_ns} to {end_ns}: found {found:?}");
        seen += 1;
        taken_ns += end_ns - begin_ns;
        ratios.push(gap.lateness_ns as f64 / (end_ns - begin_ns) as f64);
        let main = gap.culprits.first();
        named += usize::from(main.is_some_and(|main| {
            let cause = &main.cause;
            (cause.kind, cause.name.as_str(), cause.why) == (CauseKind::Thread, "taker", Some(Why::HigherPriority))
        }));
        if gap.evidence == Evidence::Trace {
            let sum_ns: u64 = gap.culprits.iter().map(|culprit| culprit.ns).sum();
            assert_eq!(sum_ns, gap.lateness_ns.cast_unsigned(), "{gap:?}");
        }
    }
    assert!(expected >= TIMES / 2, "{expected}");
    // This machine has gaps of its own, some of them long.
    assert!(seen * 10 >= expected * 9, "{seen} of {expected} were found");
    // The excess over the taken time depends on this machine. The test in a guest allows 2 us.
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[0] >= 1.0 && ratios[seen / 2] < 1.5, "gap over taken time: {ratios:?}");
    assert!(named * 10 >= seen * 9, "{named} of {seen} have the right culprit");
    assert!(noise.lost_ns.cast_signed() >= taken_ns, "{} lost, {taken_ns} taken", noise.lost_ns);
}
