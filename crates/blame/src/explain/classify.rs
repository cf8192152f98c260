//! Gives each time slice of a wake-up its cause.

use std::collections::HashMap;

use record::{Cause, CauseKind, Why};

use super::{
    analysis::{Analysis, Slice},
    causes::{Causes, idle_exit, waiting, why, with_detail},
    replay::{CpuState, Thread, is_real_time},
    shares::Segment,
    thread_state::{StateInterval, ThreadState},
};

/// Detail of a cause when the measuring thread itself had the CPU after its deadline.
pub(crate) const IN_PREVIOUS_CYCLE: &str = "the thread itself, still in its previous cycle";
/// The start of a cause's detail when the idle thread has the CPU; the number or name of the idle state follows.
pub(crate) const IDLE_STATE_PREFIX: &str = "idle state ";

/// Longest run of a thread of lower priority, or of the idle thread, that still counts as the normal path from the
/// timer's interrupt to the measuring thread, ns.
pub(crate) const MAX_SWITCH_NS: u64 = 15_000;
/// Additional time on that path for each interrupt or softirq, ns.
const PER_HANDLER_NS: u64 = 1_000;
/// Longest time between two events on that path, ns; a longer time has a cause outside the trace.
const MAX_STEP_NS: u64 = 50_000;
/// Longest time in which the kernel enters or leaves an interrupt or another thread, ns.
const MAX_ENTRY_EXIT_NS: u64 = 10_000;
/// Detail of a cause without trace events.
const UNTRACED: &str = "no trace event in this time";
/// The detail of a time whose trace events the kernel overwrote before they were read.
pub const LOST_EVENTS: &str = "the trace lost events of this time";

/// One stay of a thread on the CPU, during one interval of the measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Occupancy {
    interval: usize,
    timer_pending: bool,
    cpu: u32,
    /// When the thread got the CPU, ns.
    switched_ns: Option<u64>,
}

/// Sums of one occupancy.
#[derive(Debug, Default, Clone, Copy)]
struct OccupancyTimes {
    /// Time in the thread itself, ns.
    thread_ns: u64,
    /// Number of interrupts and softirqs on top of it.
    handlers: u64,
}

/// The slices of an analysis with their causes.
pub(super) fn segments(analysis: &Analysis, slices: &[Slice<'_>], causes: &Causes<'_>) -> Vec<Segment> {
    let disturbed = slices.iter().filter(|slice| slice.from_ns >= analysis.wake_up.deadline_ns).any(|slice| {
        let on_top = slice.nmi.is_some() || slice.cpu_state.is_some_and(|cpu_state| cpu_state.top.is_some());
        on_top || analysis.intervals[slice.interval].state != ThreadState::Running
    });
    let classifier = Classifier { analysis, causes, occupied: occupied(analysis, slices), disturbed };
    let segment = |slice: &Slice<'_>| {
        let cause = if slice.from_ns < analysis.wake_up.deadline_ns {
            classifier.before_deadline(slice)
        } else {
            classifier.after_deadline(slice)
        };
        Segment { from_ns: slice.from_ns, to_ns: slice.to_ns, cause, run: slice.run() }
    };
    slices.iter().map(segment).collect()
}

struct Classifier<'a> {
    analysis: &'a Analysis,
    causes: &'a Causes<'a>,
    occupied: HashMap<Occupancy, OccupancyTimes>,
    /// True if anything else had the CPU after the deadline.
    disturbed: bool,
}

fn occupied(analysis: &Analysis, slices: &[Slice<'_>]) -> HashMap<Occupancy, OccupancyTimes> {
    let mut all: HashMap<Occupancy, OccupancyTimes> = HashMap::new();
    let mut last = None;
    for slice in slices.iter().filter(|slice| slice.from_ns >= analysis.wake_up.deadline_ns) {
        let Some(cpu_state) = slice.cpu_state else { continue };
        let occupied = all.entry(occupancy(analysis, slice, cpu_state)).or_default();
        let top = cpu_state.top.map(|open| open.id);
        if top.is_some() {
            occupied.handlers += u64::from(top != last);
        } else if slice.nmi.is_none() {
            occupied.thread_ns += slice.to_ns - slice.from_ns;
        }
        last = top;
    }
    all
}

fn occupancy(analysis: &Analysis, slice: &Slice<'_>, cpu_state: &CpuState) -> Occupancy {
    Occupancy {
        interval: slice.interval,
        timer_pending: is_timer_pending(analysis, slice),
        cpu: slice.cpu,
        switched_ns: cpu_state.switched_ns,
    }
}

/// True if the measuring thread sleeps until its timer and the timer's interrupt has not begun.
fn is_timer_pending(analysis: &Analysis, slice: &Slice<'_>) -> bool {
    analysis.expiries.get(&slice.interval).is_some_and(|expiry| slice.from_ns < expiry.begun_ns)
}

impl Classifier<'_> {
    /// The user of the CPU before the deadline.
    fn before_deadline(&self, slice: &Slice<'_>) -> Cause {
        let Some(cpu_state) = slice.cpu_state else { return Cause::default() };
        if let Some(cause) = self.on_top(slice, cpu_state) {
            return cause;
        }
        let mut cause = self.causes.thread(CauseKind::Thread, cpu_state.thread);
        if let Some(state) = cpu_state.idle.filter(|idle| idle.left_ns.is_none()).and_then(|idle| idle.state) {
            cause.detail = format!("{IDLE_STATE_PREFIX}{state}");
        }
        cause
    }

    /// After the deadline: what kept the CPU from the measuring thread.
    fn after_deadline(&self, slice: &Slice<'_>) -> Cause {
        let Some(cpu_state) = slice.cpu_state else {
            let is_lost = slice.from_ns < self.analysis.known_since_ns;
            return with_detail(CauseKind::Unexplained, if is_lost { LOST_EVENTS } else { UNTRACED });
        };
        let interval = &self.analysis.intervals[slice.interval];
        match interval.state {
            ThreadState::Stopped { by } => {
                let sender = by.map(|sent| self.analysis.tasks.thread(sent.by));
                self.causes.stopped(by, sender, self.woken_by(interval))
            }
            ThreadState::Waiting { fault } => match self.analysis.kept_holder(slice) {
                Some((thread, kept)) => self.keeps_holder(slice, cpu_state, thread, kept),
                None => waiting(fault, self.woken_by(interval)),
            },
            ThreadState::Asleep => self.asleep(slice, cpu_state, interval),
            ThreadState::Ready => {
                // The thread may have another priority when its spike is explained.
                let priority = interval.priority.unwrap_or(self.analysis.measured.priority);
                self.kept_waiting(slice, cpu_state, priority, interval.from_ns)
            }
            ThreadState::Running => self.on_top(slice, cpu_state).unwrap_or_else(|| self.running(slice, cpu_state)),
            ThreadState::Faulting => {
                self.on_top(slice, cpu_state).unwrap_or_else(|| with_detail(CauseKind::PageFault, "minor"))
            }
            ThreadState::Unknown => self.unknown_state(slice, cpu_state),
        }
    }

    /// The measuring thread sleeps until its timer's interrupt, or until the thread that runs the timer; or until the
    /// interrupt of the awaited device, or its thread.
    fn asleep(&self, slice: &Slice<'_>, cpu_state: &CpuState, interval: &StateInterval) -> Cause {
        let Some(expiry) = self.analysis.expiries.get(&slice.interval) else {
            return match interval.woken {
                Some(_) => waiting(false, self.woken_by(interval)),
                None => self.unknown_state(slice, cpu_state),
            };
        };
        if is_timer_pending(self.analysis, slice) {
            return self.timer_pending(slice, cpu_state);
        }
        if expiry.handler_thread.is_some_and(|thread| thread.pid == cpu_state.thread.pid) {
            return self.on_top(slice, cpu_state).unwrap_or_else(|| self.wake_up_path(slice));
        }
        let priority = expiry.handler_thread.and_then(|thread| thread.known).map(|(priority, _)| priority);
        self.kept_waiting(slice, cpu_state, priority.unwrap_or(self.analysis.measured.priority), expiry.begun_ns)
    }

    /// The measuring thread has the CPU, and no context is on top of it.
    fn running(&self, slice: &Slice<'_>, cpu_state: &CpuState) -> Cause {
        if slice.from_ns >= self.analysis.wake_up.woke_ns {
            Cause::new(CauseKind::Work, "")
        } else if slice.from_ns < self.analysis.previous_cycle_until_ns {
            self.previous_cycle(cpu_state)
        } else if self.analysis.measured.spins {
            self.around_interruption(slice)
        } else {
            self.wake_up_path(slice)
        }
    }

    /// The context on top of the thread, if any. The contexts that wake the measuring thread are part of the wake-up
    /// path.
    fn on_top(&self, slice: &Slice<'_>, cpu_state: &CpuState) -> Option<Cause> {
        if let Some(nmi) = slice.nmi {
            return Some(self.causes.nmi(nmi.handler));
        }
        let open = cpu_state.top?;
        Some(match self.analysis.wake_contexts.contains(&(slice.cpu, open.id)) {
            true => self.wake_up_path(slice),
            false => self.causes.context(open, cpu_state.thread),
        })
    }

    /// The timer's interrupt is due but has not begun: another interrupt runs, or something outside the trace.
    fn timer_pending(&self, slice: &Slice<'_>, cpu_state: &CpuState) -> Cause {
        let deadline_ns = self.analysis.wake_up.deadline_ns;
        if slice.from_ns < self.analysis.slack_until_ns() {
            return Cause::new(CauseKind::TimerSlack, "");
        }
        let top = self.on_top(slice, cpu_state).filter(|_| cpu_state.in_interrupt || slice.nmi.is_some());
        if let Some(cause) = top {
            return cause;
        }
        match cpu_state.idle.filter(|idle| idle.left_ns.is_none_or(|left_ns| left_ns > deadline_ns)) {
            Some(idle) => idle_exit(idle),
            None => self.causes.late_interrupt(cpu_state),
        }
    }

    /// The measuring thread, with priority `own_priority`, is ready since `since_ns` but does not have the CPU.
    fn kept_waiting(&self, slice: &Slice<'_>, cpu_state: &CpuState, own_priority: i32, since_ns: u64) -> Cause {
        if let Some(cause) = self.on_top(slice, cpu_state) {
            return cause;
        }
        let thread = cpu_state.thread;
        let is_idle = thread.pid == 0;
        if thread.pid == self.analysis.measured.pid {
            return self.previous_cycle(cpu_state);
        }
        let why = why(thread, own_priority);
        if !is_idle && why != Some(Why::PreemptionOff) {
            return Cause { why, ..self.causes.thread(CauseKind::Thread, thread) };
        }
        let occupied = self.occupied.get(&occupancy(self.analysis, slice, cpu_state)).copied().unwrap_or_default();
        if occupied.thread_ns <= MAX_SWITCH_NS + occupied.handlers * PER_HANDLER_NS {
            return Cause::new(CauseKind::WakeUp, "");
        }
        let is_after = |at_ns: Option<u64>| at_ns.is_some_and(|at_ns| at_ns >= since_ns);
        let entered_idle = cpu_state.idle.is_some_and(|idle| is_after(idle.entered_ns));
        if cpu_state.passed_over || is_after(cpu_state.switched_ns) || entered_idle {
            let ran = format!("{} ran instead", self.causes.thread_name(thread));
            return with_detail(self.passed_over(own_priority, thread), ran);
        }
        if is_idle { idle_exit(cpu_state.idle.unwrap_or_default()) } else { self.causes.preemption_off(cpu_state) }
    }

    /// The measuring thread waits for another thread, which is ready in the interval `kept` but does not have the CPU.
    fn keeps_holder(&self, slice: &Slice<'_>, cpu_state: &CpuState, holder: Thread, kept: &StateInterval) -> Cause {
        let priority = kept.priority.or(holder.known.map(|(priority, _)| priority));
        let priority = priority.unwrap_or(self.analysis.measured.priority);
        let mut cause = self.kept_waiting(slice, cpu_state, priority, kept.from_ns);
        if cause.kind == CauseKind::Thread && cause.detail.is_empty() {
            cause.detail = format!("delayed {}, which the thread waited for", self.causes.thread_name(holder));
        }
        cause
    }

    /// Why the scheduler chose `instead`, or no thread, although the measuring thread was ready.
    fn passed_over(&self, own_priority: i32, instead: Thread) -> CauseKind {
        let ran_realtime = instead.known.is_some_and(|(priority, _)| is_real_time(priority));
        match own_priority {
            ..0 => CauseKind::Budget,
            0..100 if ran_realtime => CauseKind::Unexplained,
            0..100 => CauseKind::Throttled,
            _ if self.analysis.measured.has_quota => CauseKind::Quota,
            _ => CauseKind::Unexplained,
        }
    }

    /// The kernel's normal path from the timer's interrupt to the measuring thread.
    fn wake_up_path(&self, slice: &Slice<'_>) -> Cause {
        if slice.to_ns - slice.from_ns > MAX_STEP_NS {
            return with_detail(CauseKind::Unexplained, "no trace event on the way to the thread");
        }
        Cause::new(CauseKind::WakeUp, "")
    }

    /// A spinning thread has the CPU in a gap: the kernel enters or leaves whatever interrupted it.
    fn around_interruption(&self, slice: &Slice<'_>) -> Cause {
        if !self.disturbed || slice.to_ns - slice.from_ns > MAX_ENTRY_EXIT_NS {
            return with_detail(CauseKind::Unexplained, UNTRACED);
        }
        Cause::new(CauseKind::WakeUp, "")
    }

    /// The measuring thread still runs its previous cycle.
    fn previous_cycle(&self, cpu_state: &CpuState) -> Cause {
        let mut cause = self.causes.thread(CauseKind::Thread, cpu_state.thread);
        cause.detail = IN_PREVIOUS_CYCLE.to_owned();
        cause
    }

    /// The state of the measuring thread is unknown: events are missing, or another CPU woke it. Interrupts are known
    /// nevertheless.
    fn unknown_state(&self, slice: &Slice<'_>, cpu_state: &CpuState) -> Cause {
        let seen = self.on_top(slice, cpu_state);
        seen.unwrap_or_else(|| with_detail(CauseKind::Unexplained, "no trace event of the thread's wake-up"))
    }

    /// Name of the interrupt, softirq or thread that woke the measuring thread.
    fn woken_by(&self, interval: &StateInterval) -> Option<String> {
        let woken = self.analysis.waking_of(interval.woken?)?;
        Some(match woken.stack.last() {
            Some(&open) => self.causes.context(open, woken.by).title(),
            None => self.causes.thread_name(woken.by),
        })
    }
}
