//! Properties that hold for arbitrary events, including sequences that no kernel writes.

use proptest::{collection::vec, prelude::*, sample::select};
use record::{CauseKind, Evidence};

use super::scenario::PROBE;
use crate::{
    Comm, Event, EventKind, MeasuredThread, Names, Task, WakeUp, Work,
    event::PrevState,
    explain,
    explain::{BEFORE_NS, MAX_STRETCHES},
};

const WOKE_NS: u64 = 3_000_000;

fn task() -> impl Strategy<Value = Task> {
    let comm = |pid| if pid == 0 { "swapper/0".to_owned() } else { format!("t{pid}") };
    let pid = select(vec![0, PROBE, PROBE, 20, 21, 22]);
    (pid, select(vec![-1, 9, 50, 98, 120])).prop_map(move |(pid, priority)| Task {
        pid,
        priority,
        comm: Comm::new(&comm(pid)),
    })
}

fn kind() -> impl Strategy<Value = EventKind> {
    let prev_state = select(vec![
        PrevState::Preempted,
        PrevState::Sleeping,
        PrevState::Sleeping,
        PrevState::Uninterruptible,
        PrevState::Stopped,
        PrevState::Other,
    ]);
    let mut names = Names::default();
    let name = select(vec![names.name("a"), names.name("b")]);
    let (small, wide) = (0..4_u32, 0..4_u64);
    prop_oneof![
        6 => (task(), prev_state, task()).prop_map(|(from, prev_state, to)| EventKind::Switch { from, prev_state, to }),
        4 => task().prop_map(|task| EventKind::Waking { task, target_cpu: 0 }),
        2 => (small.clone(), name.clone()).prop_map(|(irq, name)| EventKind::IrqEntry { irq, name }),
        2 => small.clone().prop_map(|irq| EventKind::IrqExit { irq }),
        2 => name.clone().prop_map(|name| EventKind::VectorEntry { name }),
        2 => name.prop_map(|name| EventKind::VectorExit { name }),
        2 => small.clone().prop_map(|vec| EventKind::SoftirqEntry { vec }),
        2 => small.clone().prop_map(|vec| EventKind::SoftirqExit { vec }),
        1 => small.clone().prop_map(|vec| EventKind::SoftirqRaise { vec }),
        1 => (wide.clone(), 0..500_000_u64).prop_map(|(handler, took_ns)| EventKind::Nmi { handler, took_ns }),
        1 => (wide.clone(), wide.clone()).prop_map(|(timer, function)| EventKind::TimerEntry { timer, function }),
        1 => wide.clone().prop_map(|timer| EventKind::TimerExit { timer }),
        1 => proptest::option::of(small.clone()).prop_map(|state| EventKind::Idle { state }),
        1 => wide.clone().prop_map(|caller| EventKind::IrqsOff { caller }),
        1 => wide.clone().prop_map(|caller| EventKind::IrqsOn { caller }),
        1 => wide.clone().prop_map(|caller| EventKind::PreemptOff { caller }),
        1 => wide.clone().prop_map(|caller| EventKind::PreemptOn { caller }),
        1 => wide.prop_map(|address| EventKind::PageFault { address, in_kernel: false }),
        1 => (17..23_u32, small).prop_map(|(signal, pid)| EventKind::Signal { signal, pid }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let pid = select(vec![0, PROBE, 20, 21]);
    // Half of the switches have the true id of the thread on the CPU.
    (0..4_000_000_u64, select(vec![0, 0, 0, 1]), pid, kind(), any::<bool>()).prop_map(
        |(at_ns, cpu, pid, kind, true_pid)| {
            let pid = match kind {
                EventKind::Switch { from, .. } if true_pid => from.pid,
                _ => pid,
            };
            Event { at_ns, cpu, pid, kind }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_shares_add_up_to_the_lateness(
        events in vec(event(), 0..120),
        deadline_ns in 0..3_200_000_u64,
        complete_since_ns in proptest::option::of(0..2_000_000_u64),
        priority in select(vec![-1, 0, 50, 120]),
    ) {
        let measured = MeasuredThread { pid: PROBE, priority, cpu: 0, spins: false, awaits_device: false, slack_ns: 0, has_quota: false };
        let wake_up = WakeUp { deadline_ns, woke_ns: WOKE_NS, work: Work::default() };
        let symbol = |address| (address % 2 == 0).then(|| format!("function_{address}"));
        let explanation = explain(&events, &Names::default(), &symbol, &measured, wake_up, complete_since_ns);
        let lateness_ns = WOKE_NS.saturating_sub(deadline_ns);

        let shares: u64 = explanation.culprits.iter().map(|culprit| culprit.ns).sum();
        prop_assert_eq!(shares, lateness_ns);
        prop_assert!(explanation.culprits.iter().all(|culprit| culprit.ns > 0));
        let rest = explanation.culprits.get(1..).unwrap_or(&[]);
        prop_assert!(rest.is_sorted_by(|a, b| a.ns >= b.ns));
        if let Some(main) = explanation.culprits.first() {
            let largest = rest.first().map_or(0, |culprit| culprit.ns);
            prop_assert!(main.ns >= largest || rest[0].cause.kind == CauseKind::WakeUp && main.ns >= lateness_ns / 4);
        }

        prop_assert!(explanation.timeline.len() <= MAX_STRETCHES);
        for pair in explanation.timeline.windows(2) {
            prop_assert_eq!(pair[0].start_ns.saturating_add_unsigned(pair[0].ns), pair[1].start_ns);
        }
        let (before, late): (Vec<_>, Vec<_>) = explanation.timeline.iter().partition(|stretch| stretch.start_ns < 0);
        prop_assert_eq!(late.iter().map(|stretch| stretch.ns).sum::<u64>(), lateness_ns);
        prop_assert!(before.iter().map(|stretch| stretch.ns).sum::<u64>() <= BEFORE_NS);

        if complete_since_ns.is_none_or(|since_ns| since_ns > deadline_ns) {
            prop_assert_eq!(explanation.evidence, Evidence::Incomplete);
        }
    }
}
