//! Gaps of a probe that never sleeps.

use record::Evidence;

use super::scenario::{Scenario, complete};

#[test]
fn an_interrupt_and_its_softirq() {
    complete(
        "spins
         runs probe
         1000.0 deadline
         1001.0 vec+ local_timer
         1003.0 vec- local_timer
         1003.0 softirq+ TIMER
         1005.0 softirq- TIMER
         1006.0 stamp",
        &["2 interrupt local_timer", "2 the kernel's path to the probe", "2 softirq TIMER"],
    );
}

#[test]
fn another_thread() {
    complete(
        "spins
         runs probe
         1000.0 deadline
         1001.0 vec+ reschedule
         1002.0 waking hog
         1003.0 vec- reschedule
         1005.0 switch probe(120):R->hog(49)
         3005.0 switch hog:S->probe
         3007.0 stamp",
        &[
            "2000 thread hog, of higher priority (pid 101, real-time 50)",
            "5 the kernel's path to the probe",
            "2 interrupt reschedule",
        ],
    );
    complete(
        "spins
         runs probe
         1000.0 deadline
         1005.0 switch probe(120):R->make(120)
         4005.0 switch make:R->probe
         4007.0 stamp",
        &["3000 thread make, of the same priority (pid 101, nice 0)", "7 the kernel's path to the probe"],
    );
}

#[test]
fn gaps_without_events_are_unexplained() {
    let nothing = ["30 unexplained (no trace event in this time)"];
    complete(
        "spins
         runs probe
         900.0 vec+ local_timer
         902.0 vec- local_timer
         1000.0 deadline
         1030.0 stamp",
        &nothing,
    );
    complete("spins\n1000.0 deadline\n1030.0 stamp", &nothing);
    complete(
        "spins
         runs probe
         1000.0 deadline
         1300.0 vec+ local_timer
         1303.0 vec- local_timer
         1304.0 stamp",
        &[
            "300 unexplained (no trace event in this time)",
            "3 interrupt local_timer",
            "1 the kernel's path to the probe",
        ],
    );
}

#[test]
fn a_rest_before_the_gap_is_not_part_of_it() {
    complete(
        "spins
         runs probe
         400.0 switch probe(120):S->swapper
         700.0 waking probe
         701.0 switch swapper->probe
         1000.0 deadline
         1001.0 irq+ 24 eth0
         1090.0 irq- 24
         1091.0 stamp",
        &["89 interrupt eth0 (irq 24)", "2 the kernel's path to the probe"],
    );
}

#[test]
fn lost_events_make_the_evidence_incomplete() {
    let lost = "spins\nruns probe\n1005.0 lost\n1000.0 deadline\n1006.0 vec+ local_timer\n1009.0 vec- local_timer\n1010.0 stamp";
    assert_eq!(Scenario::of(lost).explain().evidence, Evidence::Incomplete);
}
