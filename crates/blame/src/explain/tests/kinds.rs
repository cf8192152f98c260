//! One scenario for each kind of culprit.

use super::scenario::{Scenario, complete};

#[test]
fn an_undisturbed_wake_up() {
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         401.0 idle 1
         1000.0 deadline
         1001.5 idle out
         1002.0 vec+ local_timer
         1002.5 timer+ hrtimer_wakeup
         1003.0 waking probe
         1003.5 timer- hrtimer_wakeup
         1004.0 vec- local_timer
         1006.0 switch swapper->probe
         1008.0 stamp",
        &["2 return from idle state 1", "6 the kernel's path to the probe"],
    );
}

#[test]
fn interrupts_off_in_a_thread() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         1000.0 deadline
         1080.0 vec+ local_timer
         1081.0 waking probe
         1082.0 vec- local_timer
         1084.0 switch dd->probe
         1085.0 stamp",
        &["80 interrupt came late, while dd ran (pid 101, nice 0)", "5 the kernel's path to the probe"],
    );
}

#[test]
fn deep_mode_names_the_function_that_disabled_interrupts() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         990.0 irqsoff ata_scsi_queuecmd
         1000.0 deadline
         1080.0 irqson ata_scsi_queuecmd
         1080.5 vec+ local_timer
         1081.0 waking probe
         1082.0 vec- local_timer
         1084.0 switch dd->probe
         1085.0 stamp",
        &[
            "80 interrupt came late, while dd ran (pid 101, nice 0, turned off in ata_scsi_queuecmd)",
            "4.5 the kernel's path to the probe",
            "0.5 interrupt came late, while dd ran (pid 101, nice 0, interrupts were on: hardware, firmware or hypervisor)",
        ],
    );
}

#[test]
fn a_deep_idle_state() {
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         401.0 idle 3
         1000.0 deadline
         1133.0 idle out
         1134.0 vec+ local_timer
         1135.0 waking probe
         1136.0 vec- local_timer
         1138.0 switch swapper->probe
         1140.0 stamp",
        &["134 return from idle state 3", "6 the kernel's path to the probe"],
    );
}

#[test]
fn a_slow_idle_exit_after_a_timely_interrupt() {
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         401.0 idle 2
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1090.0 idle out
         1091.0 switch swapper->probe
         1093.0 stamp",
        &["89 return from idle state 2", "4 the kernel's path to the probe"],
    );
}

#[test]
fn a_device_interrupt_before_the_timer() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         990.0 irq+ 24 eth0
         1000.0 deadline
         1050.0 irq- 24
         1051.0 vec+ local_timer
         1052.0 waking probe
         1053.0 vec- local_timer
         1053.5 irq+ 25 nvme0q1
         1073.5 irq- 25
         1075.0 switch dd->probe
         1076.0 irq+ 24 eth0
         1082.0 irq- 24
         1083.0 stamp",
        &[
            "56 interrupt eth0 (irq 24, ran 2 times)",
            "20 interrupt nvme0q1 (irq 25)",
            "6 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn a_softirq_storm() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         950.0 softirq+ NET_RX
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1150.0 softirq- NET_RX
         1150.5 softirq+ TIMER
         1160.5 softirq- TIMER
         1163.0 switch dd->probe
         1164.0 stamp",
        &[
            "147 softirq NET_RX",
            "10 softirq TIMER",
            "6 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0, in softirq NET_RX)",
        ],
    );
}

#[test]
fn a_non_maskable_interrupt() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         1000.0 deadline
         1001.0 vec+ local_timer
         1001.5 waking probe
         1041.0 nmi perf_event_nmi_handler 39.0
         1042.0 vec- local_timer
         1044.0 switch dd->probe
         1045.0 stamp",
        &[
            "39 non-maskable interrupt perf_event_nmi_handler",
            "5 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn the_callback_of_another_timer() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         1000.0 deadline
         1001.0 vec+ local_timer
         1001.5 timer+ tick_nohz_handler
         1071.5 timer- tick_nohz_handler
         1072.0 timer+ hrtimer_wakeup
         1072.5 waking probe
         1073.0 timer- hrtimer_wakeup
         1073.0 timer+ sched_rt_period_timer
         1083.0 timer- sched_rt_period_timer
         1084.0 vec- local_timer
         1086.0 switch dd->probe
         1087.0 stamp",
        &[
            "70 kernel timer tick_nohz_handler",
            "10 kernel timer sched_rt_period_timer",
            "6 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn threads_of_higher_and_same_priority() {
    complete(
        "runs hog
         400.0 switch probe(50):S->hog(49)
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1203.0 switch hog:S->peer(50)
         1303.0 switch peer:S->migration/0(0)
         1323.0 switch migration/0:S->probe
         1325.0 stamp",
        &[
            "200 thread hog, of higher priority (pid 101, real-time 50)",
            "100 thread peer, of the same priority (pid 102, real-time 49)",
            "20 thread migration/0, of higher priority (pid 103, real-time 99)",
            "4 the kernel's path to the probe",
            "1 interrupt came late, while hog ran (pid 101, real-time 50)",
        ],
    );
}

#[test]
fn preemption_off_in_a_thread_of_lower_priority() {
    let expected = "300 thread dd, with preemption off (pid 101, nice 0";
    let scenario = |deep: &str| {
        format!(
            "runs dd
             400.0 switch probe(9):S->dd
             {deep}
             1000.0 deadline
             1001.0 vec+ local_timer
             1002.0 waking probe
             1003.0 vec- local_timer
             1303.0 switch dd->probe
             1304.0 stamp"
        )
    };
    let rest = ["3 the kernel's path to the probe", "1 interrupt came late, while dd ran (pid 101, nice 0)"];
    complete(&scenario(""), &[&format!("{expected})"), rest[0], rest[1]]);
    let deep = scenario("990.0 preemptoff zap_pte_range");
    complete(&deep, &[&format!("{expected}, turned off in zap_pte_range)"), rest[0], rest[1]]);
}

#[test]
fn an_ordinary_probe_among_ordinary_threads() {
    complete(
        "runs dd
         400.0 switch probe(120):S->dd(130)
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         4003.0 switch dd->probe
         4004.0 stamp",
        &[
            "3000 thread dd, of the same priority (pid 101, nice 10)",
            "3 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 10)",
        ],
    );
}

#[test]
fn a_minor_and_a_major_page_fault() {
    let woken = "runs swapper
         400.0 switch probe(9):S->swapper
         401.0 idle 1
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch swapper->probe
         1006.0 fault";
    let rest = ["5 the kernel's path to the probe", "1 return from idle state 1"];
    complete(&format!("{woken}\n1046.0 stamp"), &["40 page fault of the probe (minor)", rest[0], rest[1]]);
    let major = format!(
        "{woken}
         1010.0 switch probe:D->swapper
         1011.0 idle 1
         5000.0 irq+ 25 nvme0q1
         5001.0 waking probe
         5002.0 irq- 25
         5002.5 idle out
         5004.0 switch swapper->probe
         5006.0 stamp"
    );
    complete(
        &major,
        &[
            "3995 page fault of the probe (major: the page had to be fetched)",
            "9 the kernel's path to the probe",
            "1 return from idle state 1",
            "1 interrupt nvme0q1 (irq 25)",
        ],
    );
}

#[test]
fn stopped_and_continued() {
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         500.0 switch swapper->bash
         510.0 signal 19 probe
         511.0 waking probe
         513.0 switch bash->probe
         515.0 switch probe:T->bash
         1000.0 deadline
         3000.0 signal 18 probe
         3001.0 waking probe
         3004.0 switch bash->probe
         3006.0 stamp",
        &["2001 stopped by SIGSTOP (pid 101, sent by bash, continued by bash)", "5 the kernel's path to the probe"],
    );
}

#[test]
fn the_way_of_a_device_has_the_part_that_was_delayed() {
    // The handler is late, and its thread has to wait for a busy thread of higher priority.
    complete(
        "device
         runs hog
         400.0 switch probe(9):S->hog(120)
         1000.0 deadline
         1200.0 irq+ 24 gpio
         1202.0 irq- 24
         1203.0 switch hog->rt(20)
         1503.0 switch rt:S->irq/24-gpio(49)
         1510.0 waking probe
         1512.0 switch irq/24-gpio->probe
         1515.0 stamp",
        &[
            "300 thread rt, of higher priority (pid 102, real-time 79)",
            "200 interrupt came late, while hog ran (pid 101, nice 0)",
            "15 the kernel's path to the probe",
        ],
    );
}

#[test]
fn an_interrupt_is_off_until_its_thread_has_handled_the_one_before() {
    complete(
        "device
         runs hog
         400.0 switch probe(9):S->hog(120)
         900.0 irq+ 24 gpio
         901.0 irq- 24
         902.0 switch hog->rt(20)
         1000.0 deadline
         1300.0 switch rt:S->irq/24-gpio(49)
         1302.0 irq+ 24 gpio
         1303.0 irq- 24
         1310.0 waking probe
         1312.0 switch irq/24-gpio->probe
         1315.0 stamp",
        &[
            "300 thread rt, of higher priority (pid 102, real-time 79)",
            "14 the kernel's path to the probe",
            "1 interrupt gpio (irq 24)",
        ],
    );
}

#[test]
fn a_device_whose_handler_wakes_the_probe() {
    complete(
        "device
         runs hog
         400.0 switch probe(9):S->hog(120)
         1000.0 deadline
         1003.0 irq+ 24 gpio
         1004.0 waking probe
         1005.0 irq- 24
         1007.0 switch hog->probe
         1010.0 stamp",
        &["3 interrupt came late, while hog ran (pid 101, nice 0)", "7 the kernel's path to the probe"],
    );
}

#[test]
fn waiting_for_something_else() {
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch swapper->probe
         1007.0 switch probe:D->kworker/0:1
         1107.0 waking probe
         1109.0 switch kworker/0:1->probe
         1110.0 stamp",
        &[
            "100 the probe waited for something else (woken by kworker/0:1)",
            "9 the kernel's path to the probe",
            "1 return from idle",
        ],
    );
}

#[test]
fn what_delays_the_holder_of_a_lock_is_the_cause() {
    // The probe waits for a lock of the interrupt's thread, which another thread delays.
    complete(
        "device
         runs swapper
         400.0 switch probe(9):S->swapper
         1000.0 deadline
         1001.0 irq+ 24 gpio
         1002.0 irq- 24
         1003.0 switch swapper->irq/24-gpio(49)
         1005.0 waking probe
         1006.0 switch irq/24-gpio:R->probe
         1009.0 switch probe:D->irq/24-gpio(9)
         1010.0 switch irq/24-gpio(9):R->intruder(5)
         1410.0 switch intruder:S->irq/24-gpio(9)
         1413.0 waking probe
         1415.0 switch irq/24-gpio->probe
         1416.0 stamp",
        &[
            "400 thread intruder, of higher priority (pid 102, real-time 94, delayed irq/24-gpio, which the thread waited for)",
            "9 the kernel's path to the probe",
            "4 the probe waited for something else (woken by irq/24-gpio)",
            "2 thread irq/24-gpio, of the same priority (pid 101, real-time 90)",
            "1 return from idle",
        ],
    );
}

#[test]
fn real_time_throttling() {
    // The scheduler chooses the idle thread although `hog` is ready.
    complete(
        "runs hog
         100.0 switch probe(50):S->hog(49)
         900.0 switch hog:R->swapper
         901.0 idle 1
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1004.0 idle out
         1005.0 idle 1
         41000.0 idle out
         41002.0 switch swapper->hog
         41102.0 switch hog:S->probe
         41104.0 stamp",
        &[
            "39999 real-time throttling (swapper/0 ran instead)",
            "100 thread hog, of higher priority (pid 101, real-time 50)",
            "4 the kernel's path to the probe",
            "1 return from idle state 1",
        ],
    );
    // The scheduler chooses an ordinary thread although the probe is ready.
    complete(
        "runs probe
         100.0 switch swapper->probe(50)
         900.0 switch probe:R->dd
         1000.0 deadline
         40900.0 switch dd->probe
         40910.0 stamp",
        &[
            "39900 real-time throttling (dd ran instead)",
            "10 thread probe (pid 10, real-time 49, the thread itself, still in its previous cycle)",
        ],
    );
}

#[test]
fn a_thread_that_becomes_real_time_later_was_not_throttled() {
    // The kernel chooses between ordinary threads.
    complete(
        "runs hog
         400.0 switch probe:S->hog
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         4000.0 switch hog->other
         9000.0 switch other->probe(19)
         9005.0 stamp",
        &[
            "5000 thread other, of the same priority (pid 102, nice 0)",
            "2997 thread hog, of the same priority (pid 101, nice 0)",
            "7 the kernel's path to the probe",
            "1 interrupt came late, while hog ran (pid 101, nice 0)",
        ],
    );
    // A thread of lower real-time priority runs, so real-time threads are not throttled.
    complete(
        "runs dd
         400.0 switch probe(19):S->dd
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1010.0 switch dd->mid(49)
         9000.0 switch mid:S->probe(19)
         9005.0 stamp",
        &[
            "7990 unexplained (mid ran instead)",
            "14 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

/// Why the probe, of this priority, did not run from 1041 us on, although it was ready and the CPU idle.
fn passed_over(priority: &str, also: &str) -> String {
    let text = format!(
        "runs probe({priority})
         {also}
         900.0 switch probe({priority}):S->swapper
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1004.0 idle out
         1005.0 idle 1
         41000.0 idle out
         41102.0 switch swapper->probe
         41104.0 stamp"
    );
    let explanation = Scenario::of(&text).explain();
    explanation.culprits.into_iter().max_by_key(|culprit| culprit.ns).unwrap().cause.in_full()
}

#[test]
fn the_policy_and_the_quota_tell_why_a_ready_thread_does_not_run() {
    assert_eq!(passed_over("120", "quota"), "CPU quota of the control group (swapper/0 ran instead)");
    assert_eq!(passed_over("120", ""), "unexplained (swapper/0 ran instead)");
    assert_eq!(passed_over("49", ""), "real-time throttling (swapper/0 ran instead)");
    assert_eq!(passed_over("-1", "quota"), "CPU time of the deadline policy (swapper/0 ran instead)");
}

#[test]
fn a_stall_without_events() {
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch swapper->probe
         9005.0 stamp",
        &[
            "8000 unexplained (no trace event on the way to the thread)",
            "4 the kernel's path to the probe",
            "1 return from idle",
        ],
    );
}

#[test]
fn timer_slack_is_not_a_late_interrupt() {
    let text = "slack 50.0
         runs probe
         400.0 switch probe(120):S->swapper
         1000.0 deadline
         1053.0 vec+ local_timer
         1054.0 waking probe
         1055.0 vec- local_timer
         1057.0 switch swapper->probe
         1058.0 stamp";
    let slack = "50 timer slack of an ordinary thread";
    complete(text, &[slack, "5 the kernel's path to the probe", "3 return from idle"]);
    let another_timer = [("1053", "1020"), ("1054", "1021"), ("1055", "1022"), ("1057", "1024"), ("1058", "1025")];
    let woken_early = another_timer.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    complete(&woken_early, &["20 timer slack of an ordinary thread", "5 the kernel's path to the probe"]);
}
