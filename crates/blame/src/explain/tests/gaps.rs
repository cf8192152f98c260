//! Gaps of a probe that never sleeps.

use record::Evidence;

use super::scenario::{Scenario, whole};

#[test]
fn an_interrupt_and_its_softirq() {
    whole(
        "spins
         runs probe
         1000.0 deadline
         1001.0 vec+ local_timer
         1003.0 vec- local_timer
         1003.0 softirq+ TIMER
         1005.0 softirq- TIMER
         1006.0 stamp",
        &["2 interrupt local_timer", "2 the kernel's own way to the probe", "2 softirq TIMER"],
    );
}

#[test]
fn another_thread() {
    whole(
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
            "5 the kernel's own way to the probe",
            "2 interrupt reschedule",
        ],
    );
    whole(
        "spins
         runs probe
         1000.0 deadline
         1005.0 switch probe(120):R->make(120)
         4005.0 switch make:R->probe
         4007.0 stamp",
        &["3000 thread make, of the same priority (pid 101, nice 0)", "7 the kernel's own way to the probe"],
    );
}

#[test]
fn what_no_event_tells_is_not_the_kernels_own_way() {
    let nothing = ["30 unexplained (nothing was traced in it)"];
    whole(
        "spins
         runs probe
         900.0 vec+ local_timer
         902.0 vec- local_timer
         1000.0 deadline
         1030.0 stamp",
        &nothing,
    );
    whole("spins\n1000.0 deadline\n1030.0 stamp", &nothing);
    whole(
        "spins
         runs probe
         1000.0 deadline
         1300.0 vec+ local_timer
         1303.0 vec- local_timer
         1304.0 stamp",
        &[
            "300 unexplained (nothing was traced in it)",
            "3 interrupt local_timer",
            "1 the kernel's own way to the probe",
        ],
    );
}

#[test]
fn the_time_of_a_rest_is_none_of_a_gap() {
    whole(
        "spins
         runs probe
         400.0 switch probe(120):S->swapper
         700.0 waking probe
         701.0 switch swapper->probe
         1000.0 deadline
         1001.0 irq+ 24 eth0
         1090.0 irq- 24
         1091.0 stamp",
        &["89 interrupt eth0 (irq 24)", "2 the kernel's own way to the probe"],
    );
}

#[test]
fn lost_events_are_told() {
    let lost = "spins\nruns probe\n1005.0 lost\n1000.0 deadline\n1006.0 vec+ local_timer\n1009.0 vec- local_timer\n1010.0 stamp";
    assert_eq!(Scenario::of(lost).explain().evidence, Evidence::Incomplete);
}
