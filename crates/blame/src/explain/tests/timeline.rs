//! Complete time lines in text form.

use super::scenario::Scenario;

#[test]
fn the_time_line_of_a_spike_with_many_events() {
    let explanation = Scenario::of(
        "runs swapper
         400.0 switch probe(9):S->swapper
         401.0 idle 1
         920.0 idle out
         921.0 irq+ 24 eth0
         923.0 raise NET_RX
         925.0 irq- 24
         926.0 softirq+ NET_RX
         970.0 softirq- NET_RX
         972.0 switch swapper->dd
         1000.0 deadline
         1030.0 vec+ local_timer
         1031.0 timer+ hrtimer_wakeup
         1031.5 waking probe
         1032.0 timer- hrtimer_wakeup
         1033.0 vec- local_timer
         1040.0 irq+ 24 eth0
         1046.0 irq- 24
         1046.5 softirq+ NET_RX
         1086.5 softirq- NET_RX
         1090.0 nmi perf_event_nmi_handler 3.0
         1130.0 switch dd->hog(4)
         1150.0 switch hog:S->probe
         1151.0 fault
         1153.0 stamp",
    )
    .explain();
    let lines: Vec<String> = explanation
        .timeline
        .iter()
        .map(|stretch| {
            let (start, length) = (stretch.start_ns as f64 / 1000.0, stretch.ns as f64 / 1000.0);
            format!("{start:7.1} {length:5.1}  {}", stretch.cause.in_full())
        })
        .collect();
    assert_eq!(
        lines.join("\n"),
        " -100.0  21.0  thread swapper/0 (idle state 1)
  -79.0   4.0  interrupt eth0 (irq 24)
  -75.0   1.0  thread swapper/0
  -74.0  44.0  softirq NET_RX
  -30.0   2.0  thread swapper/0
  -28.0  28.0  thread dd (pid 101, nice 0)
    0.0  30.0  interrupt came late, while dd ran (pid 101, nice 0)
   30.0   3.0  the kernel's path to the probe
   33.0   7.0  thread dd, with preemption off (pid 101, nice 0)
   40.0   6.0  interrupt eth0 (irq 24)
   46.0   0.5  thread dd, with preemption off (pid 101, nice 0)
   46.5  40.0  softirq NET_RX
   86.5   0.5  thread dd, with preemption off (pid 101, nice 0)
   87.0   3.0  non-maskable interrupt perf_event_nmi_handler
   90.0  40.0  thread dd, with preemption off (pid 101, nice 0)
  130.0  20.0  thread hog, of higher priority (pid 102, real-time 95)
  150.0   1.0  the kernel's path to the probe
  151.0   2.0  page fault of the probe (minor)"
    );
}
