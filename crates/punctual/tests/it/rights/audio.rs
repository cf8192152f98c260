//! A thread of higher priority takes the CPU of an audio thread for longer than a period: each time is an xrun, and the
//! thread is named as its culprit.

use std::{process::Stdio, thread, time::Duration};

use record::{CauseKind, Why};
use stalls::{Stall, repeat_if_stalled};
use sys::{clock::Clock, sched};

use crate::harness::{Scratch, Start, alone, last_cpu, signal, wait_until};

const TIMES: usize = 40;
/// Three periods of 64 frames at 48 kHz, so no period during it can be on time.
const LENGTH_NS: i64 = 4_000_000;

/// Takes a CPU from all threads below priority 95 at irregular times; returns the begin and end of each time, ns.
fn take(cpu: u32) -> Vec<(i64, i64)> {
    sched::set_affinity(&[cpu]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    let taken = |round: usize| {
        thread::sleep(Duration::from_micros(30_000 + (round * 7_919 % 9_973) as u64));
        let begin_ns = Clock::Monotonic.now_ns();
        while Clock::Monotonic.now_ns() < begin_ns + LENGTH_NS {}
        (begin_ns, Clock::Monotonic.now_ns())
    };
    (0..TIMES).map(taken).collect()
}

#[test]
fn each_time_without_the_cpu_is_an_xrun_with_its_culprit() {
    let _alone = alone();
    repeat_if_stalled(Stall::Realtime(Duration::from_micros(500)), find_xruns);
}

fn find_xruns() {
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments =
        format!("measure audio --quiet --record a --cpu {cpu} --policy fifo:80 --model builtin:nano --endless --blame");
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(500));
    let taken = thread::Builder::new().name("taker".to_owned()).spawn(move || take(cpu)).unwrap().join().unwrap();
    thread::sleep(Duration::from_millis(200));
    signal(&child, "INT");
    child.wait_with_output().unwrap();

    let record = scratch.record();
    let series = &record.series[0];
    let audio = series.kind.audio().unwrap();
    assert!(audio.xruns >= TIMES as u64 && audio.lost >= 2 * TIMES as u64, "{} {}", audio.xruns, audio.lost);
    let (mut found, mut named) = (0, 0);
    for (begin_ns, end_ns) in taken {
        // The first period that is done afterwards: it was due before the CPU was free again.
        let at = |spike: &record::Spike| series.first_deadline_ns + spike.at_ns.cast_signed();
        let affected = series.spikes.iter().find(|spike| {
            let done_ns = at(spike) + spike.lateness_ns;
            spike.played.is_some_and(|played| played.xrun)
                && at(spike) < end_ns
                && done_ns >= end_ns
                && at(spike) > begin_ns - 4_000_000
        });
        let Some(spike) = affected else { continue };
        found += 1;
        let main = &spike.culprits[0].cause;
        named += usize::from(
            main.kind == CauseKind::Thread && main.name == "taker" && main.why == Some(Why::HigherPriority),
        );
    }
    assert_eq!(found, TIMES, "each time is an xrun");
    // A short stall of this machine may be the main culprit of a few.
    assert!(named * 10 >= TIMES * 9, "{named} of {TIMES} named");
}
