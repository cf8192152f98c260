//! What holds for any stream of events, also one that no kernel could write.

use proptest::{collection::vec, prelude::*, sample::select};
use record::{CauseKind, Evidence};

use super::scenario::PROBE;
use crate::{
    Comm, Event, Names, Task, Waiter, Wake, What, Work,
    event::Left,
    explain,
    explain::{BEFORE_NS, STRETCHES},
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

fn what() -> impl Strategy<Value = What> {
    let left = select(vec![
        Left::Preempted,
        Left::Sleeping,
        Left::Sleeping,
        Left::Uninterruptible,
        Left::Stopped,
        Left::Other,
    ]);
    let mut names = Names::default();
    let name = select(vec![names.name("a"), names.name("b")]);
    let (small, wide) = (0..4_u32, 0..4_u64);
    prop_oneof![
        6 => (task(), left, task()).prop_map(|(from, left, to)| What::Switch { from, left, to }),
        4 => task().prop_map(|task| What::Waking { task, target_cpu: 0 }),
        2 => (small.clone(), name.clone()).prop_map(|(irq, name)| What::IrqEntry { irq, name }),
        2 => small.clone().prop_map(|irq| What::IrqExit { irq }),
        2 => name.clone().prop_map(|name| What::VectorEntry { name }),
        2 => name.prop_map(|name| What::VectorExit { name }),
        2 => small.clone().prop_map(|vec| What::SoftirqEntry { vec }),
        2 => small.clone().prop_map(|vec| What::SoftirqExit { vec }),
        1 => small.clone().prop_map(|vec| What::SoftirqRaise { vec }),
        1 => (wide.clone(), 0..500_000_u64).prop_map(|(handler, took_ns)| What::Nmi { handler, took_ns }),
        1 => (wide.clone(), wide.clone()).prop_map(|(timer, function)| What::TimerEntry { timer, function }),
        1 => wide.clone().prop_map(|timer| What::TimerExit { timer }),
        1 => proptest::option::of(small.clone()).prop_map(|state| What::Idle { state }),
        1 => wide.clone().prop_map(|caller| What::IrqsOff { caller }),
        1 => wide.clone().prop_map(|caller| What::IrqsOn { caller }),
        1 => wide.clone().prop_map(|caller| What::PreemptOff { caller }),
        1 => wide.clone().prop_map(|caller| What::PreemptOn { caller }),
        1 => wide.prop_map(|address| What::PageFault { address, in_kernel: false }),
        1 => (17..23_u32, small).prop_map(|(signal, pid)| What::Signal { signal, pid }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let pid = select(vec![0, PROBE, 20, 21]);
    // Half of them tell the truth about who has the CPU when it is left.
    (0..4_000_000_u64, select(vec![0, 0, 0, 1]), pid, what(), any::<bool>()).prop_map(
        |(at_ns, cpu, pid, what, true_pid)| {
            let pid = match what {
                What::Switch { from, .. } if true_pid => from.pid,
                _ => pid,
            };
            Event { at_ns, cpu, pid, what }
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
        let waiter = Waiter { pid: PROBE, priority, cpu: 0, spins: false };
        let wake = Wake { deadline_ns, woke_ns: WOKE_NS, work: Work::default() };
        let symbol = |address| (address % 2 == 0).then(|| format!("function_{address}"));
        let explanation = explain(&events, &Names::default(), &symbol, &waiter, wake, complete_since_ns);
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

        prop_assert!(explanation.timeline.len() <= STRETCHES);
        for pair in explanation.timeline.windows(2) {
            prop_assert_eq!(pair[0].start_ns + pair[0].ns as i64, pair[1].start_ns);
        }
        let (before, late): (Vec<_>, Vec<_>) = explanation.timeline.iter().partition(|stretch| stretch.start_ns < 0);
        prop_assert_eq!(late.iter().map(|stretch| stretch.ns).sum::<u64>(), lateness_ns);
        prop_assert!(before.iter().map(|stretch| stretch.ns).sum::<u64>() <= BEFORE_NS);

        if complete_since_ns.is_none_or(|since_ns| since_ns > deadline_ns) {
            prop_assert_eq!(explanation.evidence, Evidence::Incomplete);
        }
    }
}
