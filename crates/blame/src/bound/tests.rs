//! The bound against a simulated CPU, whose sections and interrupts are known.

use proptest::{collection::vec, prelude::*};
use record::{CauseKind, Culprit, Series, Why};

use super::{
    culprits,
    parts::{Parts, Target},
    refusal,
};
use crate::{Comm, Event, EventKind, Names, Task, event::PrevState, trace::Gap};

const PROBE: Task = Task { pid: 10, priority: 9, comm: Comm(*b"probe\0\0\0\0\0\0\0\0\0\0\0") };
const WORKER: Task = Task { pid: 20, priority: 120, comm: Comm(*b"worker\0\0\0\0\0\0\0\0\0\0") };
const PERIOD_US: u64 = 1_000;
/// Time that the probe runs after each wake-up, and until it reads the clock, us.
const OWN_US: u64 = 8;
const READS_AFTER_US: u64 = 5;
/// Run time of the handler of the probe's timer, us.
const TIMER_US: u64 = 4;
const TIMER: usize = usize::MAX;

/// What the worker does in turn, for a number of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    Open(u64),
    IrqsOff(u64),
    PreemptOff(u64),
}

/// A source of interrupts: run time of its handler, and the shortest time between two of them, us.
#[derive(Debug, Clone, Copy)]
struct Interrupts {
    handler_us: u64,
    every_us: u64,
}

#[derive(Debug, Clone)]
struct Machine {
    script: Vec<Segment>,
    sources: Vec<Interrupts>,
}

/// A simulated CPU in steps of 1 us: the probe, a worker of lower priority, and interrupts.
struct Cpu<'a> {
    machine: &'a Machine,
    /// Time of the next interrupt of each source, us.
    next_us: Vec<u64>,
    /// The segment of the worker, and its time left, us.
    segment: usize,
    left_us: u64,
    pending: Vec<usize>,
    handler: Option<(usize, u64)>,
    /// Time since the probe began to run, us.
    runs: Option<u64>,
    ready: bool,
    asleep_until_us: u64,
    names: Names,
    events: Vec<Event>,
    lateness_us: Vec<u64>,
}

impl<'a> Cpu<'a> {
    fn new(machine: &'a Machine, next_us: Vec<u64>, segment: usize) -> Self {
        let mut cpu = Self {
            machine,
            next_us,
            segment,
            left_us: 0,
            pending: Vec::new(),
            handler: None,
            runs: Some(0),
            ready: false,
            asleep_until_us: 0,
            names: Names::default(),
            events: Vec::new(),
            lateness_us: Vec::new(),
        };
        cpu.left_us = cpu.length_us();
        cpu
    }

    fn length_us(&self) -> u64 {
        let (Segment::Open(us) | Segment::IrqsOff(us) | Segment::PreemptOff(us)) = self.machine.script[self.segment];
        us
    }

    fn emit(&mut self, at_us: u64, kind: EventKind) {
        let pid = if self.runs.is_some() { PROBE.pid } else { WORKER.pid };
        self.events.push(Event { at_ns: at_us * 1_000, cpu: 0, pid, kind });
    }

    fn vector(&mut self, source: usize) -> crate::Name {
        self.names.name(&format!("source{source}"))
    }

    fn run(mut self, until_us: u64) -> Self {
        (0..until_us).for_each(|now_us| self.step(now_us));
        self
    }

    fn step(&mut self, now_us: u64) {
        for source in 0..self.next_us.len() {
            if self.next_us[source] == now_us {
                self.pending.push(source);
                // The time between two interrupts varies, but is never shorter than the shortest.
                let every_us = self.machine.sources[source].every_us;
                self.next_us[source] += every_us + (now_us * 7_919 + source as u64 * 31) % (every_us / 4);
            }
        }
        if self.runs.is_none() && !self.ready && self.asleep_until_us == now_us {
            self.pending.push(TIMER);
        }
        let in_script = self.runs.is_none();
        let segment = self.machine.script[self.segment];
        let irqs_off = in_script && matches!(segment, Segment::IrqsOff(_)) && self.left_us < self.length_us();
        if self.handler.is_none() && !irqs_off && !self.pending.is_empty() {
            let source = self.pending.remove(0);
            let us = if source == TIMER { TIMER_US } else { self.machine.sources[source].handler_us };
            let name = self.vector(source);
            self.emit(now_us, EventKind::VectorEntry { name });
            self.handler = Some((source, us));
        }
        if let Some((source, left_us)) = self.handler.take() {
            if left_us > 1 {
                self.handler = Some((source, left_us - 1));
                return;
            }
            if source == TIMER {
                self.emit(now_us + 1, EventKind::Waking { task: PROBE, target_cpu: 0 });
                self.ready = true;
            }
            let name = self.vector(source);
            return self.emit(now_us + 1, EventKind::VectorExit { name });
        }
        let preempt_off = matches!(segment, Segment::PreemptOff(_)) && self.left_us < self.length_us();
        if self.ready && !preempt_off && !irqs_off {
            self.emit(now_us, EventKind::Switch { from: WORKER, prev_state: PrevState::Preempted, to: PROBE });
            (self.ready, self.runs) = (false, Some(0));
        }
        match self.runs {
            Some(us) => self.step_probe(now_us, us),
            None => self.step_worker(now_us),
        }
    }

    fn step_probe(&mut self, now_us: u64, us: u64) {
        self.runs = Some(us + 1);
        if us == READS_AFTER_US {
            self.lateness_us.push(now_us.saturating_sub(self.asleep_until_us));
        }
        if us >= OWN_US {
            self.emit(now_us + 1, EventKind::Switch { from: PROBE, prev_state: PrevState::Sleeping, to: WORKER });
            (self.runs, self.asleep_until_us) = (None, (now_us + 1) / PERIOD_US * PERIOD_US + PERIOD_US);
        }
    }

    fn step_worker(&mut self, now_us: u64) {
        let (segment, begins) = (self.machine.script[self.segment], self.left_us == self.length_us());
        let ends = self.left_us == 1;
        self.left_us -= 1;
        match segment {
            Segment::IrqsOff(_) if begins => self.emit(now_us, EventKind::IrqsOff { caller: 1 }),
            Segment::PreemptOff(_) if begins => self.emit(now_us, EventKind::PreemptOff { caller: 2 }),
            _ => {}
        }
        if ends {
            match segment {
                Segment::Open(_) => {}
                Segment::IrqsOff(_) => self.emit(now_us + 1, EventKind::IrqsOn { caller: 1 }),
                Segment::PreemptOff(_) => self.emit(now_us + 1, EventKind::PreemptOn { caller: 2 }),
            }
            self.segment = (self.segment + 1) % self.machine.script.len();
            self.left_us = self.length_us();
        }
    }

    fn worst_us(&self) -> u64 {
        self.lateness_us.iter().copied().max().unwrap_or(0)
    }

    fn parts(&self, has_sections: bool) -> Parts {
        let mut parts = Parts::new(Target { has_sections, ..target() });
        parts.take_all(&self.events, &[]);
        parts.finish();
        parts
    }

    /// The bound of this run, ns, and its parts.
    fn bound(&self, has_sections: bool) -> (u64, Vec<Culprit>) {
        let series = Series { max_ns: Some((self.worst_us() * 1_000).cast_signed()), ..Series::default() };
        let parts = self.parts(has_sections);
        let longest = parts.longest(self.worst_us() * 1_000);
        let culprits =
            culprits(&parts, &longest, &series, &self.names, &|address| Some(format!("f{address}"))).unwrap();
        (culprits.iter().map(|culprit| culprit.ns).sum(), culprits)
    }
}

fn target() -> Target {
    Target {
        pid: PROBE.pid,
        priority: PROBE.priority,
        first_deadline_ns: 0,
        period_ns: PERIOD_US * 1_000,
        preempts_softirqs: false,
        has_sections: false,
    }
}

/// The worst lateness that this machine can be brought to: a deadline or an earlier moment of a source meets the start of
/// each segment, with all sources at once.
fn provoked_us(machine: &Machine) -> u64 {
    let Machine { script, sources } = machine;
    // A segment begins `later_us` after the deadline of 1 ms; all interrupts come at `at_us`.
    let worst_us = &|segment: usize, later_us: u64, at_us: u64| {
        let open = Segment::Open(PERIOD_US - OWN_US - 2 + later_us);
        let script = [&[open], &script[segment..]].concat();
        let machine = Machine { script, sources: sources.clone() };
        Cpu::new(&machine, vec![at_us; sources.len()], 0).run(3 * PERIOD_US).worst_us()
    };
    let of_segment = |segment: usize| {
        [0, 1, TIMER_US + 1].into_iter().flat_map(move |later_us| {
            let at_us = [PERIOD_US, PERIOD_US + later_us, PERIOD_US + TIMER_US];
            at_us.into_iter().map(move |at_us| worst_us(segment, later_us, at_us))
        })
    };
    (0..script.len()).flat_map(of_segment).max().unwrap_or(0)
}

fn machine() -> impl Strategy<Value = Machine> {
    let segment = prop_oneof![
        (20..700u64).prop_map(Segment::Open),
        (2..300u64).prop_map(Segment::IrqsOff),
        (2..300u64).prop_map(Segment::PreemptOff),
    ];
    // With all of them together, the CPU is at most a quarter busy with interrupts.
    let source = (2..80u64, 1_200..9_000u64).prop_map(|(handler_us, every_us)| Interrupts { handler_us, every_us });
    (vec(segment, 1..6), vec(source, 0..4)).prop_map(|(mut script, sources)| {
        script.push(Segment::Open(211));
        Machine { script, sources }
    })
}

/// A run of 400 ms with the interrupts at unrelated times.
fn observed(machine: &Machine) -> Cpu<'_> {
    let next_us = (0..machine.sources.len() as u64).map(|source| 333 + source * 577).collect();
    Cpu::new(machine, next_us, 0).run(400_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The parts explain every lateness of their run, and the bound is at most twice what the machine can be brought to.
    #[test]
    fn the_bound_contains_what_was_seen_and_is_at_most_twice_the_worst(machine in machine()) {
        let cpu = observed(&machine);
        prop_assert!(cpu.lateness_us.len() > 200);
        let provoked_us = provoked_us(&machine).max(cpu.worst_us());
        for has_sections in [false, true] {
            let (bound_ns, parts) = cpu.bound(has_sections);
            prop_assert!(bound_ns >= cpu.worst_us() * 1_000, "{bound_ns}: {parts:#?}");
            let unexplained = |part: &Culprit| part.cause.kind == CauseKind::Unexplained && part.cause.detail.starts_with("measured");
            prop_assert!(!parts.iter().any(unexplained), "{parts:#?}");
            prop_assert!(bound_ns <= 2 * provoked_us * 1_000, "{bound_ns} of {provoked_us} us: {parts:#?}");
        }
    }

    /// With every section traced, the bound is not below what can be made of the same parts in another run.
    #[test]
    fn the_bound_of_sections_contains_what_can_be_provoked(machine in machine()) {
        let (bound_ns, parts) = observed(&machine).bound(true);
        let provoked_us = provoked_us(&machine);
        prop_assert!(bound_ns >= provoked_us * 1_000, "{bound_ns} of {provoked_us} us: {parts:#?}");
    }
}

/// Parts that never meet in the run: a section of each kind, and two sources.
fn known() -> Machine {
    let script = [Segment::Open(301), Segment::IrqsOff(150), Segment::Open(409), Segment::PreemptOff(250)];
    let sources = [Interrupts { handler_us: 40, every_us: 3_000 }, Interrupts { handler_us: 20, every_us: 5_000 }];
    Machine { script: script.to_vec(), sources: sources.to_vec() }
}

#[test]
fn the_parts_are_named() {
    let machine = known();
    let of = |has_sections| {
        let (_, parts) = observed(&machine).bound(has_sections);
        let line = |part: &Culprit| (part.ns / 1_000, part.cause.in_full());
        parts.iter().map(line).collect::<Vec<_>>()
    };
    let of_sections = of(true);
    assert_eq!(
        of_sections[0],
        (250, "thread worker, with preemption off (turned off in f2)".into()),
        "{of_sections:?}"
    );
    assert!(of_sections.contains(&(40, "interrupt source0".into())), "{of_sections:?}");
    let of_wake_ups = of(false);
    let preempt = &of_wake_ups[0];
    assert!((240..=250).contains(&preempt.0), "{of_wake_ups:?}");
    assert_eq!(preempt.1, "thread worker, with preemption off");
    assert!(
        of_wake_ups
            .iter()
            .any(|(us, name)| (130..=150).contains(us) && name == "interrupt came late, while worker ran")
    );
}

#[test]
fn the_delays_of_another_thread_count() {
    let machine = known();
    let cpu = observed(&machine);
    let parts = cpu.parts(false);
    let series = Series { max_ns: Some(30_000), ..Series::default() };
    let sum_ns = |others_ns: u64| {
        let mut longest = parts.longest(30_000);
        longest.raise_to(&parts.longest(others_ns));
        let culprits = culprits(&parts, &longest, &series, &cpu.names, &|_| None).unwrap();
        culprits.iter().map(|culprit| culprit.ns).sum::<u64>()
    };
    let (clipped_ns, all_ns) = (sum_ns(0), sum_ns(u64::MAX));
    assert_eq!(sum_ns(30_000), clipped_ns);
    // Of the interrupt, 120 us or more are cut off, and of the section with preemption off, 210 us.
    assert!(all_ns >= clipped_ns + 300_000, "{clipped_ns} and {all_ns}");
}

#[test]
fn threads_of_higher_priority_are_interference() {
    let other = Task { pid: 30, priority: 4, comm: Comm::new("other") };
    let mut parts = Parts::new(target());
    for (at_us, from, prev_state, to) in [
        (500, PROBE, PrevState::Sleeping, WORKER),
        (990, WORKER, PrevState::Preempted, other),
        (1_090, other, PrevState::Sleeping, PROBE),
        (1_098, PROBE, PrevState::Sleeping, WORKER),
    ] {
        let kind = EventKind::Switch { from, prev_state, to };
        parts.take_all(&[Event { at_ns: at_us * 1_000, cpu: 0, pid: from.pid, kind }], &[]);
    }
    parts.finish();
    let series = Series { max_ns: Some(95_000), ..Series::default() };
    let found = culprits(&parts, &parts.longest(95_000), &series, &Names::default(), &|_| None).unwrap();
    assert_eq!(found[0].ns, 100_000);
    assert_eq!(found[0].cause.why, Some(Why::HigherPriority));
    assert_eq!(found[0].cause.title(), "thread other, of higher priority");
    assert!(found[1..].iter().all(|part| part.cause.kind == CauseKind::WakeUp), "{found:?}");
}

#[test]
fn idle_time_is_no_section() {
    let idle = Task { pid: 0, priority: 120, comm: Comm::new("swapper/0") };
    let mut parts = Parts::new(Target { has_sections: true, ..target() });
    let switch = |from, to| EventKind::Switch { from, prev_state: PrevState::Sleeping, to };
    for (at_us, kind) in [
        (100, EventKind::PreemptOff { caller: 7 }),
        (103, switch(PROBE, idle)),
        (105, EventKind::IrqsOff { caller: 8 }),
        (106, EventKind::Idle { state: Some(1) }),
        (1_020, EventKind::Idle { state: None }),
        (1_022, EventKind::IrqsOn { caller: 8 }),
        (1_030, switch(idle, PROBE)),
        (1_034, EventKind::PreemptOn { caller: 7 }),
    ] {
        parts.take_all(&[Event { at_ns: at_us * 1_000, cpu: 0, pid: 0, kind }], &[]);
    }
    let sections = &parts.sections;
    assert_eq!((sections.longest.ns, sections.before_switch_ns, sections.after_switch_ns), (0, 10_000, 4_000));
}

#[test]
fn a_source_that_keeps_the_cpu_has_no_bound() {
    let machine =
        Machine { script: vec![Segment::Open(100)], sources: vec![Interrupts { handler_us: 930, every_us: 1_000 }; 2] };
    let cpu = Cpu::new(&machine, vec![100, 700], 0).run(200_000);
    let series = Series { max_ns: Some(0), ..Series::default() };
    let parts = cpu.parts(false);
    let found = culprits(&parts, &parts.longest(0), &series, &cpu.names, &|_| None);
    assert_eq!(found, Err(record::BoundRefusal::Overload));
}

#[test]
fn a_bound_needs_a_complete_trace_of_a_real_time_thread() {
    use record::BoundRefusal::{LostEvents, NotRealTime, PartOfTheTime, TooCostly, TooShort};
    let machine = known();
    let cpu = observed(&machine);
    let series = |samples| Series { samples, period_ns: 1_000_000, ..Series::default() };
    let refused = |parts: &Parts, samples| refusal(parts, &series(samples));
    assert_eq!(refused(&cpu.parts(false), 999), Some(TooShort));
    assert_eq!(refused(&cpu.parts(false), 4_999), Some(TooShort));
    assert_eq!(refused(&cpu.parts(false), 5_000), Some(PartOfTheTime), "400 ms of 5 s");
    let mut parts = cpu.parts(false);
    parts.take_all(&[], &[Gap { from_ns: 0, to_ns: 0, lost: 4 }]);
    assert!(!parts.lost, "before the first deadline");
    parts.take_all(&[], &[Gap { from_ns: 1, to_ns: 2, lost: 4 }]);
    assert_eq!((refused(&parts, 5_000), parts.lost_events), (Some(LostEvents), 4));
    parts.give_up();
    assert_eq!(refused(&parts, 5_000), Some(TooCostly));
    parts.target.priority = 120;
    assert_eq!(refused(&parts, 5_000), Some(NotRealTime));
}
