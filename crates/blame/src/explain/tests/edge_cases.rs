//! Scenarios with nested contexts, missing events and unusual names.

use record::{CauseKind, Evidence};

use super::scenario::{Scenario, complete, culprits};

#[test]
fn an_interrupt_in_a_softirq_in_a_thread() {
    complete(
        "runs probe
         400.0 switch probe(9):S->ksoftirqd/0(120)
         405.0 softirq+ NET_RX
         1000.0 deadline
         1002.0 vec+ local_timer
         1003.0 waking probe
         1004.0 vec- local_timer
         1024.0 irq+ 24 eth0
         1030.0 nmi perf_event_nmi_handler 2.0
         1034.0 irq- 24
         1074.0 softirq- NET_RX
         1074.5 softirq+ RCU
         1079.5 softirq- RCU
         1081.0 switch ksoftirqd/0->probe
         1082.0 stamp",
        &[
            "60 softirq NET_RX (nice 0, in ksoftirqd/0)",
            "8 interrupt eth0 (irq 24)",
            "5 the kernel's path to the probe",
            "5 softirq RCU (nice 0, in ksoftirqd/0)",
            "2 interrupt came late, while ksoftirqd/0 ran (pid 101, nice 0, in softirq NET_RX)",
            "2 non-maskable interrupt perf_event_nmi_handler",
        ],
    );
}

#[test]
fn infers_contexts_that_began_before_the_first_event() {
    complete(
        "runs dd
         1000.0 deadline
         1040.0 timer- tick_nohz_handler
         1060.0 irq- 24
         1061.0 vec+ local_timer
         1062.0 waking probe(9)
         1063.0 vec- local_timer
         1065.0 switch dd->probe
         1066.0 stamp",
        &[
            "40 kernel timer ?",
            "20 interrupt irq 24 (irq 24)",
            "5 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn explains_only_what_is_known_after_lost_events() {
    let lost_late = "runs dd
         990.0 irq+ 24 eth0
         1000.0 deadline
         1040.0 lost
         1050.0 irq+ 25 nvme0q1
         1060.0 irq- 25
         1061.0 vec+ local_timer
         1062.0 waking probe(9)
         1063.0 vec- local_timer
         1065.0 switch dd->probe
         1066.0 stamp";
    let explanation = culprits(
        lost_late,
        &[
            "40 unexplained (the trace lost events of this time)",
            "11 interrupt came late, while dd ran (pid 101, nice 0)",
            "10 interrupt nvme0q1 (irq 25)",
            "5 the kernel's path to the probe",
        ],
    );
    assert_eq!(explanation.evidence, Evidence::Incomplete);
    // Without the waking event, only handlers are known before the thread is switched in.
    let no_wake_up = "runs dd
         1000.0 deadline
         1050.0 irq+ 25 nvme0q1
         1060.0 irq- 25
         1065.0 switch dd->probe(9)
         1066.0 stamp";
    let explanation = culprits(
        no_wake_up,
        &[
            "55 unexplained (no trace event of the thread's wake-up)",
            "10 interrupt nvme0q1 (irq 25)",
            "1 the kernel's path to the probe",
        ],
    );
    assert_eq!(explanation.evidence, Evidence::Incomplete);
    let nothing = culprits("1000.0 deadline\n1066.0 stamp", &["66 unexplained (no trace event in this time)"]);
    assert_eq!(nothing.evidence, Evidence::Incomplete);
}

#[test]
fn detects_a_missing_switch() {
    let explanation = culprits(
        "runs dd
         400.0 switch probe(9):S->dd
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1103.0 stamp",
        &[
            "100 thread dd, with preemption off (pid 101, nice 0)",
            "2 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
    assert_eq!(explanation.evidence, Evidence::Incomplete, "the probe read the clock, so it had the CPU before");
}

#[test]
fn a_previous_cycle_without_its_switches() {
    // The thread is woken, although it had the CPU at the last event: its switch to sleep is missing.
    culprits(
        "runs probe
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe(50)
         1003.0 vec- local_timer
         1103.0 stamp",
        &[
            "100 unexplained (no trace event on the way to the thread)",
            "2 the kernel's path to the probe",
            "1 thread probe (pid 10, real-time 49, the thread itself, still in its previous cycle)",
        ],
    );
}

#[test]
fn preempted_between_the_switch_and_the_clock_reading() {
    complete(
        "runs dd
         400.0 switch probe(50):S->dd
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch dd->probe
         1006.0 irq+ 24 eth0
         1007.0 waking irq/24-eth0(40)
         1008.0 irq- 24
         1009.0 switch probe:R->irq/24-eth0
         1010.0 softirq+ NET_RX
         1110.0 softirq- NET_RX
         1115.0 switch irq/24-eth0:S->probe
         1117.0 stamp",
        &[
            "100 softirq NET_RX (real-time 59, in irq/24-eth0)",
            "8 the kernel's path to the probe",
            "6 thread irq/24-eth0, of higher priority (pid 102, real-time 59)",
            "2 interrupt eth0 (irq 24)",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn a_suspended_softirq_continues_with_its_thread() {
    let explanation = complete(
        "runs probe
         400.0 switch probe(120):S->ktimers/0(98)
         405.0 softirq+ TIMER
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1010.0 switch ktimers/0:R->hog(49)
         1060.0 switch hog:S->ktimers/0
         1090.0 softirq- TIMER
         1092.0 switch ktimers/0:S->probe
         1093.0 stamp",
        &[
            "50 thread hog, of higher priority (pid 102, real-time 50)",
            "37 softirq TIMER (real-time 1, in ktimers/0)",
            "3 the kernel's path to the probe",
            "2 thread ktimers/0, of higher priority (pid 101, real-time 1)",
            "1 interrupt came late, while ktimers/0 ran (pid 101, real-time 1, in softirq TIMER)",
        ],
    );
    assert_eq!(explanation.main().map(|cause| cause.name.as_str()), Some("hog"));
}

#[test]
fn soft_timers_of_preempt_rt() {
    // The timer of an ordinary thread: the interrupt raises the HRTIMER softirq, which runs in a thread.
    complete(
        "runs dd
         400.0 switch probe(120):S->dd
         1000.0 deadline
         1040.0 vec+ local_timer
         1041.0 raise HRTIMER
         1041.5 waking ktimers/0(98)
         1042.0 vec- local_timer
         1044.0 switch dd->hog(49)
         1144.0 switch hog:S->ktimers/0
         1145.0 softirq+ TIMER
         1165.0 softirq- TIMER
         1165.5 softirq+ HRTIMER
         1166.0 timer+ posix_cpu_timer
         1176.0 timer- posix_cpu_timer
         1176.0 timer+ hrtimer_wakeup
         1177.0 waking probe
         1178.0 timer- hrtimer_wakeup
         1179.0 softirq- HRTIMER
         1182.0 switch ktimers/0:S->dd
         2182.0 switch dd:R->probe
         2183.0 stamp",
        &[
            "1000 thread dd, of the same priority (pid 101, nice 0)",
            "100 thread hog, of higher priority (pid 103, real-time 50)",
            "40 interrupt came late, while dd ran (pid 101, nice 0)",
            "20 softirq TIMER (real-time 1, in ktimers/0)",
            "10 the kernel's path to the probe",
            "10 kernel timer posix_cpu_timer",
            "3 thread ktimers/0, of higher priority (pid 102, real-time 1)",
        ],
    );
}

#[test]
fn explains_events_with_the_names_of_arm64() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         985.0 vec+ Function_call_interrupts
         1000.0 deadline
         1030.0 vec- Function_call_interrupts
         1031.0 irq+ 11 arch_timer
         1031.5 timer+ hrtimer_wakeup
         1032.0 waking probe
         1032.5 timer- hrtimer_wakeup
         1033.0 irq- 11
         1036.0 switch dd->probe
         1037.0 stamp",
        &[
            "30 interrupt Function_call_interrupts",
            "6 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn another_timer_interrupt_is_an_interrupt() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         1005.0 switch dd->probe
         1005.5 vec+ local_timer
         1006.0 timer+ tick_nohz_handler
         1046.0 timer- tick_nohz_handler
         1056.0 vec- local_timer
         1057.0 stamp",
        &[
            "40 kernel timer tick_nohz_handler",
            "10.5 interrupt local_timer",
            "5.5 the kernel's path to the probe",
            "1 interrupt came late, while dd ran (pid 101, nice 0)",
        ],
    );
}

#[test]
fn a_timer_that_fires_on_another_cpu() {
    // The interrupt was late on the other CPU; this CPU was idle and needed a reschedule interrupt.
    complete(
        "runs swapper
         400.0 switch probe(9):S->swapper
         401.0 idle 1
         500.0 @1 switch swapper->dd
         1000.0 deadline
         1080.0 @1 vec+ local_timer
         1081.0 @1 waking probe
         1082.0 @1 vec- local_timer
         1083.0 idle out
         1084.0 vec+ reschedule
         1085.0 vec- reschedule
         1087.0 switch swapper->probe
         1088.0 stamp",
        &[
            "80 interrupt came late, while dd ran (pid 101, nice 0)",
            "7 the kernel's path to the probe",
            "1 interrupt reschedule",
        ],
    );
}

#[test]
fn a_deadline_during_the_previous_cycle() {
    let explanation = complete(
        "runs dd
         400.0 switch dd->probe(50)
         900.0 switch probe:R->hog(49)
         1000.0 deadline
         1300.0 switch hog:S->probe
         1310.0 vec+ local_timer
         1311.0 waking probe
         1312.0 vec- local_timer
         1313.0 stamp",
        &[
            "300 thread hog, of higher priority (pid 102, real-time 50)",
            "10 thread probe (pid 10, real-time 49, the thread itself, still in its previous cycle)",
            "3 the kernel's path to the probe",
        ],
    );
    assert_eq!(explanation.timeline.first().map(|stretch| stretch.start_ns), Some(-100_000));
    assert_eq!(explanation.timeline[0].cause.name, "hog");
}

#[test]
fn lateness_of_several_periods() {
    let explanation = complete(
        "runs hog
         400.0 switch probe(50):S->hog(49)
         1000.0 deadline
         1001.0 vec+ local_timer
         1002.0 waking probe
         1003.0 vec- local_timer
         2001.0 vec+ local_timer
         2002.0 timer+ tick_nohz_handler
         2006.0 timer- tick_nohz_handler
         2007.0 vec- local_timer
         9501.0 switch hog:S->probe
         9503.0 stamp",
        &[
            "8492 thread hog, of higher priority (pid 101, real-time 50)",
            "4 the kernel's path to the probe",
            "4 kernel timer tick_nohz_handler",
            "2 interrupt local_timer",
            "1 interrupt came late, while hog ran (pid 101, real-time 50)",
        ],
    );
    assert_eq!(explanation.main().map(|cause| cause.kind), Some(CauseKind::Thread));
}

#[test]
fn a_stall_of_the_machine_is_a_late_interrupt() {
    complete(
        "runs dd
         400.0 switch probe(9):S->dd
         1000.0 deadline
         9000.0 irq+ 24 eth0
         9002.0 irq- 24
         9003.0 vec+ local_timer
         9004.0 waking probe
         9005.0 vec- local_timer
         9006.0 switch dd->probe
         9007.0 stamp",
        &[
            "8001 interrupt came late, while dd ran (pid 101, nice 0)",
            "4 the kernel's path to the probe",
            "2 interrupt eth0 (irq 24)",
        ],
    );
}

#[test]
fn a_wake_up_that_is_not_late_has_no_culprit() {
    let early = Scenario::of("runs dd\n400.0 switch probe(9):S->dd\n1000.0 stamp\n1001.0 deadline").explain();
    assert_eq!((early.culprits.len(), early.main()), (0, None));
}

#[test]
fn ignores_signals_to_other_processes() {
    complete(
        "runs probe
         400.0 switch probe(9):S->bash
         510.0 signal 19 cat
         515.0 signal 19 probe
         516.0 waking probe
         517.0 switch bash->probe
         518.0 switch probe:T->kill
         520.0 signal 19 dd
         1000.0 deadline
         3001.0 waking probe
         3004.0 switch kill:S->probe
         3006.0 stamp",
        &["2001 stopped by SIGSTOP (pid 101, sent by bash, continued by kill)", "5 the kernel's path to the probe"],
    );
}

#[test]
fn woken_by_an_untraced_cpu() {
    let explanation = culprits(
        "runs probe
         513.0 switch dd->probe(9)
         515.0 switch probe:T->dd
         1000.0 deadline
         3004.0 switch dd->probe
         3006.0 stamp",
        &["2004 stopped by a signal", "2 the kernel's path to the probe"],
    );
    assert_eq!(explanation.evidence, Evidence::Incomplete, "it may have been ready before");
    culprits(
        "runs dd
         500.0 switch probe(9):S->dd
         1000.0 deadline
         1090.0 vec+ reschedule
         1092.0 vec- reschedule
         1095.0 switch dd->probe
         1096.0 stamp",
        &[
            "93 unexplained (no trace event of the thread's wake-up)",
            "2 interrupt reschedule",
            "1 the kernel's path to the probe",
        ],
    );
}
