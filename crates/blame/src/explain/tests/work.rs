//! Spikes that include the thread's work: periods of audio.

use super::scenario::complete;

#[test]
fn long_work() {
    complete(
        "runs swapper
         1000.0 deadline
         1000.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch swapper->probe
         1006.0 stamp
         2406.0 done",
        &["1400 the signal processing itself", "6 the kernel's path to the probe"],
    );
}

#[test]
fn separates_work_from_interruptions() {
    complete(
        "runs swapper
         1000.0 deadline
         1000.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch swapper->probe(49)
         1006.0 stamp
         1100.0 irq+ 24 eth0
         1150.0 irq- 24
         1200.0 switch probe(49):R->hog(9)
         2200.0 switch hog:S->probe
         2500.0 done",
        &[
            "1000 thread hog, of higher priority (pid 101, real-time 90)",
            "444 the signal processing itself",
            "50 interrupt eth0 (irq 24)",
            "6 the kernel's path to the probe",
        ],
    );
}

#[test]
fn a_period_that_waited_for_the_previous_one() {
    complete(
        "runs swapper
         300.0 vec+ local_timer
         302.0 waking probe
         303.0 vec- local_timer
         305.0 switch swapper->probe
         1000.0 deadline
         1400.0 stamp
         1500.0 done",
        &[
            "400 thread probe (pid 10, nice 0, the thread itself, still in its previous cycle)",
            "100 the signal processing itself",
        ],
    );
}
