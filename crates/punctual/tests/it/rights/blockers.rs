//! Delays of known length, put in front of the probe, are found: their number exactly, their length closely.

use std::{process::Stdio, thread, time::Duration};

use sys::{clock::Clock, sched};

use crate::harness::{Scratch, last_cpu};

const PERIOD_NS: i64 = 1_000_000;
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
    let scratch = Scratch::new();
    let cpu = last_cpu();
    let arguments = format!("measure timer --quiet --record a --cpus {cpu} --policy fifo:80 --period 1ms --threshold 50us --endless");
    let child = scratch.punctual(&arguments).stdout(Stdio::null()).spawn().unwrap();
    crate::harness::wait_until("the record exists", || scratch.record_path().exists());
    thread::sleep(Duration::from_millis(300));
    let delays = thread::spawn(move || block(cpu)).join().unwrap();
    thread::sleep(Duration::from_millis(100));
    crate::harness::signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));

    let record = scratch.record();
    let series = &record.series[0];
    for delay in &delays {
        // Only the first deadline inside a delay can make a spike; a short delay may lie between two deadlines.
        let k = (delay.begin_ns - series.first_deadline_ns).div_euclid(PERIOD_NS) + 1;
        let at_ns = k * PERIOD_NS;
        let expected_ns = delay.end_ns - (series.first_deadline_ns + at_ns);
        // Nearer to its end than the threshold is no spike, but an ordinary wake-up.
        if expected_ns < 100_000 {
            continue;
        }
        let found: Vec<_> = series.spikes.iter().filter(|spike| spike.at_ns as i64 == at_ns).collect();
        let [spike] = found[..] else { panic!("a delay of {expected_ns} ns at {at_ns}: found {found:?}") };
        let error_ns = (spike.lateness_ns - expected_ns).abs();
        assert!(error_ns <= expected_ns / 20 + 50_000, "a delay of {expected_ns} ns was measured as {}", spike.lateness_ns);
        // The deadlines that it ran over are no spikes of their own.
        let within = |at: i64| at > at_ns && at < at_ns + spike.lateness_ns / PERIOD_NS * PERIOD_NS;
        assert!(!series.spikes.iter().any(|other| within(other.at_ns as i64)));
    }
}
