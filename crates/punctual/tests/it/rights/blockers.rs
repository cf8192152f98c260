//! Delays of known length are found by the probe: their number exactly, their length within a tolerance.

use std::{process::Stdio, thread, time::Duration};

use stalls::{Stall, repeat_if_stalled};
use sys::{clock::Clock, sched};

use crate::harness::{Scratch, Start, alone, last_cpu, signal, wait_until};

const PERIOD_NS: i64 = 200_000;
/// Lengths of the delays. Shorter ones could not be distinguished from the delays of this machine.
const LENGTHS_NS: [i64; 4] = [200_000, 1_000_000, 3_000_000, 20_000_000];
const ROUNDS: i64 = 12;

/// The begin and the end of a delay by the clock of the thread that made it.
struct Delay {
    begin_ns: i64,
    end_ns: i64,
}

/// Takes a CPU from all threads below priority 95 for known lengths at irregular times.
fn block(cpu: u32) -> Vec<Delay> {
    sched::set_affinity(&[cpu]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    let clock = Clock::Monotonic;
    (0..ROUNDS * i64::try_from(LENGTHS_NS.len()).unwrap())
        .map(|round| {
            // Not a multiple of the period, and long enough for the probe to recover.
            thread::sleep(Duration::from_micros(31_000 + (round * 7_919 % 997).cast_unsigned()));
            let begin_ns = clock.now_ns();
            let until_ns = begin_ns + LENGTHS_NS[usize::try_from(round).unwrap() % LENGTHS_NS.len()];
            let mut end_ns = begin_ns;
            while end_ns < until_ns {
                end_ns = clock.now_ns();
            }
            Delay { begin_ns, end_ns }
        })
        .collect()
}

#[test]
fn known_delays_are_found() {
    let _alone = alone();
    repeat_if_stalled(Stall::Realtime(Duration::from_micros(100)), find_delays);
}

fn find_delays() {
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments = format!(
        "measure timer --quiet --record a --cpus {cpu} --policy fifo:80 --period 200us --threshold 50us --endless"
    );
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).start();
    wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(move || block(cpu)).join().unwrap();
    thread::sleep(Duration::from_millis(100));
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));

    let record = scratch.record();
    let series = &record.series[0];
    let (mut expected, mut exact) = (0, 0);
    for delay in &delays {
        // A delay makes a spike only if a deadline is inside it. If the delay ends right after that deadline, the
        // wake-up is hardly later than usual.
        let (begin_ns, end_ns) = (delay.begin_ns - series.first_deadline_ns, delay.end_ns - series.first_deadline_ns);
        let first_inside_ns = (begin_ns.div_euclid(PERIOD_NS) + 1) * PERIOD_NS;
        if end_ns - first_inside_ns < 100_000 {
            continue;
        }
        expected += 1;
        // The spike may have begun at an earlier deadline, but it ends with the delay.
        let over = |spike: &&record::Spike| {
            let at_ns = spike.at_ns.cast_signed();
            at_ns < end_ns && at_ns + spike.lateness_ns > begin_ns
        };
        let found: Vec<_> =
            series.spikes.iter().filter(over).filter(|s| s.at_ns.cast_signed() + s.lateness_ns >= end_ns).collect();
        let [spike] = found[..] else {
            let near: Vec<_> =
                series.spikes.iter().filter(|s| (s.at_ns.cast_signed() - begin_ns).abs() < 50_000_000).collect();
            panic!("a delay from {begin_ns} to {end_ns}: found {found:?}, nearby {near:?}")
        };
        let expected_ns = end_ns - spike.at_ns.cast_signed();
        let error_ns = spike.lateness_ns - expected_ns;
        assert!(error_ns >= 0, "a delay of {expected_ns} ns was measured as {}", spike.lateness_ns);
        exact += i64::from(error_ns <= expected_ns / 20 + 50_000);
    }
    // The wake-up after a delay takes time of its own, which is sometimes long.
    assert!(exact * 10 >= expected * 9, "{exact} of {expected} were measured within 5 % and 50 us");
    assert!(expected >= ROUNDS * 3, "only {expected} delays contained a deadline");
}
