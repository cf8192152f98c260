//! Delays of known length, put in front of the probe, are found: their number exactly, their length closely.

use std::{process::Stdio, thread, time::Duration};

use sys::{clock::Clock, sched};

use crate::harness::{Scratch, alone, last_cpu};

const PERIOD_NS: i64 = 200_000;
/// Lengths of the delays; shorter ones would drown in this machine's own.
const LENGTHS_NS: [i64; 4] = [200_000, 1_000_000, 3_000_000, 20_000_000];
const ROUNDS: i64 = 12;

/// When one delay began and ended, as the thread that made it saw the clock.
struct Delay {
    begin_ns: i64,
    end_ns: i64,
}

/// Keeps `cpu` from everything below priority 95 for known lengths at irregular times.
fn block(cpu: u32) -> Vec<Delay> {
    sched::set_affinity(&[cpu]).expect("the right to pin a thread");
    sched::set_policy(sched::Policy::Fifo(95)).expect("the right to real-time policies: run as root");
    let clock = Clock::Monotonic;
    (0..ROUNDS * LENGTHS_NS.len() as i64)
        .map(|round| {
            // Irregular against the period, far enough apart for the probe to recover.
            thread::sleep(Duration::from_micros(31_000 + (round * 7_919 % 997) as u64));
            let begin_ns = clock.now_ns();
            let until_ns = begin_ns + LENGTHS_NS[round as usize % LENGTHS_NS.len()];
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
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments = format!(
        "measure timer --quiet --record a --cpus {cpu} --policy fifo:80 --period 200us --threshold 50us --endless"
    );
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).spawn().unwrap();
    crate::harness::wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(move || block(cpu)).join().unwrap();
    thread::sleep(Duration::from_millis(100));
    crate::harness::signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));

    let record = scratch.record();
    let series = &record.series[0];
    let (mut looked_for, mut within) = (0, 0);
    for delay in &delays {
        // Only a deadline inside a delay can make a spike; a short delay may lie between two, and one that ends right
        // after a deadline makes no more than an ordinary wake-up.
        let (begin_ns, end_ns) = (delay.begin_ns - series.first_deadline_ns, delay.end_ns - series.first_deadline_ns);
        let first_inside_ns = (begin_ns.div_euclid(PERIOD_NS) + 1) * PERIOD_NS;
        if end_ns - first_inside_ns < 100_000 {
            continue;
        }
        looked_for += 1;
        // The probe may not have been awake yet from the deadline before; the end of the spike is the delay's in any case.
        let over = |spike: &&record::Spike| {
            let at_ns = spike.at_ns as i64;
            at_ns < end_ns && at_ns + spike.lateness_ns > begin_ns
        };
        let found: Vec<_> =
            series.spikes.iter().filter(over).filter(|s| s.at_ns as i64 + s.lateness_ns >= end_ns).collect();
        let [spike] = found[..] else {
            let near: Vec<_> =
                series.spikes.iter().filter(|s| (s.at_ns as i64 - begin_ns).abs() < 50_000_000).collect();
            panic!("a delay from {begin_ns} to {end_ns}: found {found:?}, nearby {near:?}")
        };
        let expected_ns = end_ns - spike.at_ns as i64;
        let error_ns = spike.lateness_ns - expected_ns;
        assert!(error_ns >= 0, "a delay of {expected_ns} ns was measured as {}", spike.lateness_ns);
        within += i64::from(error_ns <= expected_ns / 20 + 50_000);
    }
    // The way from the end of a delay to the probe is this machine's own, and now and then it is long.
    assert!(within * 10 >= looked_for * 9, "{within} of {looked_for} were measured within 5 % and 50 us");
    assert!(looked_for >= ROUNDS * 3, "{looked_for} delays were long enough to be seen");
}
