//! Combines the states of the CPU and of the measuring thread for one wake-up.

use std::collections::{HashMap, HashSet};

use super::{
    context::{Context, Open},
    replay::{CpuHistory, CpuState, Tasks, Thread, Waking},
    thread_state::{StateInterval, ThreadState, Waker, intervals},
    wake_up::{MeasuredThread, WakeUp},
};
use crate::{Event, EventKind, event::PrevState};

/// A timer that woke the thread at most this long before the deadline belongs to it, ns, because converting clocks
/// rounds.
const EARLY_NS: u64 = 1_000;

/// One wake-up and its events.
pub(super) struct Analysis {
    pub measured: MeasuredThread,
    pub wake_up: WakeUp,
    pub tasks: Tasks,
    pub intervals: Vec<StateInterval>,
    /// The sleeps that a timer ended, or the awaited device, by index of their interval.
    pub expiries: HashMap<usize, Expiry>,
    /// The threads whose lock or answer the measuring thread waited for, by index of that interval.
    pub holders: HashMap<usize, Holder>,
    /// CPU and id of the contexts that woke the measuring thread.
    pub wake_contexts: HashSet<(u32, u32)>,
    /// Until this time the measuring thread is still in its previous cycle, ns.
    pub previous_cycle_until_ns: u64,
    /// No event is missing from this time on, ns.
    pub known_since_ns: u64,
    /// The histories of the thread's CPU and of the CPUs that woke it.
    histories: HashMap<u32, CpuHistory>,
    nmis: Vec<Nmi>,
}

/// The timer expiry that ended a sleep, or the interrupt of the awaited device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expiry {
    cpu: u32,
    /// Start of the interrupt's handler, ns.
    pub begun_ns: u64,
    /// The thread that woke the measuring thread, if the handler did not: a softirq thread of PREEMPT_RT, or the thread of
    /// the device's interrupt.
    pub handler_thread: Option<Thread>,
}

/// A thread that ended a wait of the measuring thread, which was not that for its deadline.
pub(super) struct Holder {
    /// The CPU on which it did so.
    cpu: u32,
    pub thread: Thread,
    states: Vec<StateInterval>,
}

impl Holder {
    /// The interval in which it is ready without the CPU at this time; `None` otherwise.
    fn kept_waiting(&self, at_ns: u64) -> Option<&StateInterval> {
        self.states.get(index_at(&self.states, at_ns)).filter(|interval| interval.state == ThreadState::Ready)
    }
}

/// A non-maskable interrupt.
pub(super) struct Nmi {
    from_ns: u64,
    to_ns: u64,
    pub handler: u64,
}

/// A time slice without a change of state.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub from_ns: u64,
    pub to_ns: u64,
    /// The relevant CPU: that of the measuring thread, or while it sleeps that of its timer.
    pub cpu: u32,
    /// State of that CPU; `None` if it is unknown.
    pub cpu_state: Option<&'a CpuState>,
    /// Index of the measuring thread's interval.
    pub interval: usize,
    /// The non-maskable interrupt that runs.
    pub nmi: Option<&'a Nmi>,
}

impl Slice<'_> {
    /// Distinguishes the runs of a handler or thread.
    pub fn run(&self) -> u64 {
        let of_state =
            |cpu_state: &CpuState| cpu_state.top.map_or(cpu_state.switched_ns.unwrap_or(0), |open| open.id.into());
        self.nmi.map_or_else(|| self.cpu_state.map_or(0, of_state), |nmi| nmi.from_ns)
    }
}

impl Analysis {
    /// `events` are in order of time and complete.
    pub fn new(events: &[&Event], measured: MeasuredThread, wake_up: WakeUp, known_since_ns: u64) -> Self {
        let tasks = Tasks::of(events);
        let intervals = intervals(events, measured.pid, measured.spins);
        let mut analysis = Self {
            measured,
            wake_up,
            tasks,
            intervals,
            expiries: HashMap::new(),
            holders: HashMap::new(),
            wake_contexts: HashSet::new(),
            previous_cycle_until_ns: 0,
            known_since_ns,
            histories: HashMap::new(),
            nmis: nmis(events, measured.cpu),
        };
        analysis.replay(events, measured.cpu);
        for index in 0..analysis.intervals.len() {
            if let Some(waker) = analysis.intervals[index]
                .woken
                .filter(|waker| waker.at_ns.saturating_add(EARLY_NS) >= wake_up.deadline_ns)
            {
                analysis.replay(events, waker.cpu);
                analysis.note_expiry(events, index, waker);
                analysis.note_holder(events, index, waker);
            }
        }
        if !measured.spins {
            analysis.note_previous_cycle();
        }
        analysis
    }

    fn replay(&mut self, events: &[&Event], cpu: u32) {
        self.histories.entry(cpu).or_insert_with(|| {
            let events: Vec<&Event> = events.iter().copied().filter(|event| event.cpu == cpu).collect();
            CpuHistory::of(&events, &self.tasks, self.measured.pid)
        });
    }

    /// True if the events explain the whole time from the deadline to the end.
    pub fn is_complete(&self) -> bool {
        let (deadline_ns, end_ns) = (self.wake_up.deadline_ns, self.wake_up.end_ns());
        let last = self.intervals.len() - 1;
        let is_known = |index: usize| match self.intervals[index].state {
            ThreadState::Running | ThreadState::Faulting => true,
            ThreadState::Unknown => false,
            ThreadState::Ready => index < last,
            ThreadState::Asleep | ThreadState::Waiting { .. } | ThreadState::Stopped { .. } => {
                self.intervals[index].woken.is_some()
            }
        };
        // A thread that has the CPU for itself may have no events.
        let has_the_cpu = self
            .cpu_state(self.measured.cpu, end_ns)
            .map_or(self.measured.spins, |cpu_state| cpu_state.thread.pid == self.measured.pid);
        self.known_since_ns <= deadline_ns && has_the_cpu && (self.interval_at(deadline_ns)..=last).all(is_known)
    }

    /// Finds what woke the measuring thread.
    pub fn waking_of(&self, waker: Waker) -> Option<&Waking> {
        self.histories.get(&waker.cpu)?.wakings.iter().find(|woken| woken.at_ns == waker.at_ns)
    }

    /// Until this time the kernel may delay the timer of the measuring thread, ns.
    pub fn slack_until_ns(&self) -> u64 {
        self.wake_up.deadline_ns.saturating_add(self.measured.slack_ns)
    }

    /// Splits the time from `from_ns` to the end into adjacent slices. The deadline and the wake-up are boundaries.
    pub fn slices(&self, from_ns: u64) -> Vec<Slice<'_>> {
        let (WakeUp { deadline_ns, woke_ns, .. }, end_ns) = (self.wake_up, self.wake_up.end_ns());
        let mut cuts = vec![from_ns, deadline_ns, woke_ns, end_ns, self.known_since_ns, self.previous_cycle_until_ns];
        cuts.push(self.slack_until_ns());
        cuts.extend(self.histories.values().flat_map(|history| &history.states).map(|cpu_state| cpu_state.from_ns));
        cuts.extend(self.intervals.iter().map(|interval| interval.from_ns));
        cuts.extend(self.expiries.values().map(|expiry| expiry.begun_ns));
        cuts.extend(self.holders.values().flat_map(|holder| &holder.states).map(|interval| interval.from_ns));
        cuts.extend(self.nmis.iter().flat_map(|nmi| [nmi.from_ns, nmi.to_ns]));
        cuts.retain(|cut| (from_ns..=end_ns).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| self.slice(cut[0], cut[1])).collect()
    }

    fn slice(&self, from_ns: u64, to_ns: u64) -> Slice<'_> {
        let interval = self.interval_at(from_ns);
        let of_holder = self.holders.get(&interval).map(|holder| holder.cpu);
        let cpu = self.expiries.get(&interval).map(|expiry| expiry.cpu).or(of_holder).unwrap_or(self.measured.cpu);
        let cpu_state = self.cpu_state(cpu, from_ns).filter(|_| from_ns >= self.known_since_ns);
        let nmi = self.nmis.partition_point(|nmi| nmi.to_ns <= from_ns);
        let nmi = self.nmis.get(nmi).filter(|nmi| nmi.from_ns <= from_ns);
        Slice { from_ns, to_ns, cpu, cpu_state, interval, nmi }
    }

    fn interval_at(&self, at_ns: u64) -> usize {
        index_at(&self.intervals, at_ns)
    }

    /// The thread that the measuring thread waits for in a slice, and the interval in which that thread is ready without
    /// the CPU; `None` if nothing keeps it waiting.
    pub fn kept_holder(&self, slice: &Slice<'_>) -> Option<(Thread, &StateInterval)> {
        let holder = self.holders.get(&slice.interval)?;
        Some((holder.thread, holder.kept_waiting(slice.from_ns)?))
    }

    fn cpu_state(&self, cpu: u32, at_ns: u64) -> Option<&CpuState> {
        let states = &self.histories.get(&cpu)?.states;
        states.get(states.partition_point(|cpu_state| cpu_state.from_ns <= at_ns).checked_sub(1)?)
    }

    /// Stores how a timer woke the measuring thread, if a timer did. It is recognised by the contexts on the stack,
    /// because names differ between architectures.
    fn note_expiry(&mut self, events: &[&Event], index: usize, waker: Waker) {
        let Some(woken) = self.waking_of(waker).filter(|_| self.intervals[index].state == ThreadState::Asleep) else {
            return;
        };
        let innermost = |is_it: fn(Context) -> bool| woken.stack.iter().rposition(|open| is_it(open.context));
        let mut wake_contexts: Vec<Open> = Vec::new();
        let expiry = if let Some(interrupt) = innermost(Context::is_hard) {
            wake_contexts.extend(&woken.stack[interrupt..]);
            Expiry { cpu: waker.cpu, begun_ns: wake_contexts[0].since_ns.unwrap_or(0), handler_thread: None }
        } else if let Some(softirq) = innermost(|context| matches!(context, Context::Softirq { .. })) {
            wake_contexts.extend(&woken.stack[softirq..]);
            // The timer's interrupt raised the softirq. It is unknown if it came before the first event.
            let raised = self.histories[&waker.cpu].raised_before(wake_contexts[0]);
            let begun_ns = raised.map(|raised| raised.interrupt.map_or(Some(raised.at_ns), |open| open.since_ns));
            wake_contexts.extend(raised.and_then(|raised| raised.interrupt));
            Expiry { cpu: waker.cpu, begun_ns: begun_ns.flatten().unwrap_or(0), handler_thread: Some(woken.by) }
        } else if woken.by.pid == 0 || !woken.stack.is_empty() {
            // The interrupt has no trace event.
            wake_contexts.extend(&woken.stack);
            Expiry {
                cpu: waker.cpu,
                begun_ns: wake_contexts.first().and_then(|open| open.since_ns).unwrap_or(waker.at_ns),
                handler_thread: None,
            }
        } else if self.measured.awaits_device {
            let by = woken.by;
            return self.note_device(events, index, by, waker.at_ns);
        } else {
            return;
        };
        self.wake_contexts.extend(wake_contexts.iter().map(|open| (waker.cpu, open.id)));
        self.expiries.insert(index, expiry);
    }

    /// Stores the thread that ended another wait of the measuring thread than that for its deadline, such as the holder of
    /// a lock of the kernel.
    fn note_holder(&mut self, events: &[&Event], index: usize, waker: Waker) {
        let is_wait = self.intervals[index].state == ThreadState::Waiting { fault: false };
        let Some(woken) = self.waking_of(waker).filter(|_| is_wait) else { return };
        if woken.by.pid != 0 && woken.stack.is_empty() {
            let thread = woken.by;
            // What keeps it waiting is known on this CPU only.
            let on_cpu: Vec<&Event> = events.iter().copied().filter(|event| event.cpu == waker.cpu).collect();
            let states = intervals(&on_cpu, thread.pid, false);
            self.holders.insert(index, Holder { cpu: waker.cpu, thread, states });
        }
    }

    /// Stores the interrupt of the awaited device, whose thread `by` woke the measuring thread at `at_ns`: the first one
    /// since the deadline whose handler woke that thread.
    fn note_device(&mut self, events: &[&Event], index: usize, by: Thread, at_ns: u64) {
        let deadline_ns = self.wake_up.deadline_ns;
        // Wake-ups of other threads than the measuring one are not always traced.
        let irq = by.known.and_then(|(_, comm)| interrupt_of(&comm.to_string()));
        let is_handler = |event: &Event| match event.kind {
            EventKind::IrqEntry { irq: begun, .. } => Some(begun) == irq,
            EventKind::Waking { task, .. } => task.pid == by.pid,
            _ => false,
        };
        let sleeps = |event: &Event| matches!(event.kind, EventKind::Switch { from, prev_state: PrevState::Sleeping, .. } if from.pid == by.pid);
        let until = |ns: u64| events.partition_point(|event| event.at_ns < ns);
        let (before, since) = events.split_at(until(deadline_ns.saturating_sub(EARLY_NS)));
        let since = &since[..since.partition_point(|event| event.at_ns <= at_ns)];
        // The interrupt is off until its thread has handled the one before.
        let last = before.iter().rfind(|event| is_handler(event) || sleeps(event));
        let (handler, begun_ns) = match (last.filter(|event| is_handler(event)), since.iter().find(|e| is_handler(e))) {
            (Some(&handler), _) => (handler, Some(deadline_ns)),
            (None, Some(&handler)) => (handler, None),
            (None, None) => return,
        };
        self.replay(events, handler.cpu);
        let open = self.cpu_state(handler.cpu, handler.at_ns).and_then(|state| state.top);
        let open = open.filter(|open| open.context.is_hard());
        self.wake_contexts.extend(open.map(|open| (handler.cpu, open.id)));
        let begun_ns = begun_ns.or(open.and_then(|open| open.since_ns)).unwrap_or(handler.at_ns);
        self.expiries.insert(index, Expiry { cpu: handler.cpu, begun_ns, handler_thread: Some(by) });
    }

    /// Stores until when the measuring thread is in the cycle before the deadline: until it sleeps, or until its timer
    /// expires while it still runs.
    fn note_previous_cycle(&mut self) {
        let deadline_ns = self.wake_up.deadline_ns;
        let is_awake = |interval: &StateInterval| {
            matches!(interval.state, ThreadState::Running | ThreadState::Faulting | ThreadState::Ready)
        };
        let (before, after) = self.intervals.split_at(self.interval_at(deadline_ns));
        let woken = before.iter().rfind(|interval| !is_awake(interval)).and_then(|interval| interval.woken);
        let woken_for_deadline = woken.is_some_and(|waker| waker.at_ns.saturating_add(EARLY_NS) >= deadline_ns);
        if woken_for_deadline || !is_awake(&after[0]) {
            return;
        }
        let asleep_ns = after.iter().find(|interval| !is_awake(interval)).map_or(u64::MAX, |interval| interval.from_ns);
        let cpu = self.measured.cpu;
        let wakings = self.histories.get(&cpu).map_or(&[][..], |history| &history.wakings);
        let expired = wakings.iter().find(|woken| (deadline_ns..asleep_ns).contains(&woken.at_ns));
        let interrupt = expired.and_then(|woken| {
            let interrupt = woken.stack.iter().rposition(|open| open.context.is_hard())?;
            Some(&woken.stack[interrupt..])
        });
        self.previous_cycle_until_ns = expired.map_or(asleep_ns, |woken| woken.at_ns);
        self.wake_contexts.extend(interrupt.unwrap_or(&[]).iter().map(|open| (cpu, open.id)));
    }
}

/// The index of the interval that contains this time.
fn index_at(intervals: &[StateInterval], at_ns: u64) -> usize {
    intervals.partition_point(|interval| interval.from_ns <= at_ns).saturating_sub(1)
}

/// The interrupt of a thread with this name: 24 for `irq/24-gpio`.
fn interrupt_of(name: &str) -> Option<u32> {
    name.strip_prefix("irq/")?.split('-').next()?.parse().ok()
}

/// The non-maskable interrupts of a CPU. Their events are written at their end.
fn nmis(events: &[&Event], cpu: u32) -> Vec<Nmi> {
    let mut nmis: Vec<Nmi> = Vec::new();
    for event in events.iter().filter(|event| event.cpu == cpu) {
        if let EventKind::Nmi { handler, took_ns } = event.kind {
            let last_ns = nmis.last().map_or(0, |nmi| nmi.to_ns);
            let from_ns = event.at_ns.saturating_sub(took_ns).max(last_ns);
            nmis.push(Nmi { from_ns, to_ns: event.at_ns, handler });
        }
    }
    nmis
}
