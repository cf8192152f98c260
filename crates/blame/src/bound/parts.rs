//! The parts of the scheduling latency of one thread, from the events of its CPU.

use record::{Cause, CauseKind, Why};

use super::{sections::Sections, workload::Workload};
use crate::{
    Comm, Event, EventKind, Name, Names, Task,
    event::{PrevState, softirq_name},
    trace::Gap,
};

/// The thread whose latency is bounded.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Thread id.
    pub pid: u32,
    /// Priority as the kernel counts.
    pub priority: i32,
    /// The first deadline, ns on CLOCK_MONOTONIC.
    pub first_deadline_ns: u64,
    /// Time between two deadlines, ns; at least 1.
    pub period_ns: u64,
    /// True if the thread can preempt softirqs, as on PREEMPT_RT. Otherwise they are interference.
    pub preempts_softirqs: bool,
    /// True if the trace contains all sections with interrupts or preemption off.
    pub has_sections: bool,
}

/// The parts seen so far.
#[derive(Debug)]
pub struct Parts {
    pub(super) target: Target,
    pub(super) sources: Vec<(Source, Workload)>,
    longest: Longest,
    pub(super) sections: Sections,
    pub(super) wake_ups: u64,
    pub(super) events: u64,
    /// True if events are missing after the first deadline.
    pub(super) lost: bool,
    /// True if the events are no longer read.
    pub(super) given_up: bool,
    pub(super) lost_events: u64,
    /// CPU time that reading the events took, ns.
    pub read_ns: u64,
    first_ns: Option<u64>,
    /// Time of the latest event, ns.
    now_ns: u64,
    /// The thread on the CPU; `None` before the first switch.
    current: Option<Task>,
    /// Interrupts and softirqs on top of the thread, the innermost last.
    stack: Vec<Execution>,
    /// The thread on the CPU if it is interference.
    rival: Option<Execution>,
    state: State,
    wake_up: WakeUp,
    /// The latest times when the target left the CPU, ns, oldest first.
    left_ns: [u64; KEPT_WAKE_UPS],
}

/// The wake-ups whose events are kept to explain a spike: a stop signal shows itself in several.
const KEPT_WAKE_UPS: usize = 4;

/// A source of interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The handler of a device's interrupt, with its name.
    Irq(u32, Name),
    /// An interrupt of the CPU itself.
    Vector(Name),
    Softirq(u32),
    /// The threads of this name, whose priority is at least that of the target.
    Thread(Comm, i32),
}

/// An execution of a source that has not ended.
#[derive(Debug, Clone, Copy)]
struct Execution {
    source: Source,
    start_ns: u64,
    /// Time so far, without the sources on top of it, ns.
    ns: u64,
}

/// The state of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has the CPU.
    Running,
    /// It sleeps until its deadline, ns.
    Asleep(u64),
    /// It waits for the CPU.
    Ready,
    /// It left the CPU for another reason, or has not been seen yet.
    Away,
}

/// The delays of one wake-up without interference, ns.
#[derive(Debug, Clone, Copy, Default)]
struct WakeUp {
    delays: Delays,
    /// True if the CPU was idle when the delay began; `None` before the deadline.
    idle: Option<bool>,
    /// Time on the CPU, until it sleeps again, ns.
    own_ns: u64,
    /// Time of the delays outside all sections, ns.
    outside_ns: u64,
}

/// The delays of wake-ups without interference.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delays {
    /// From the deadline until the thread was ready, ns.
    pub late_ns: u64,
    /// The thread that had the CPU then.
    pub late_by: Option<Comm>,
    /// From when the thread was ready until it had the CPU, ns.
    pub blocked_ns: u64,
    /// The thread that had the CPU then.
    pub blocked_by: Option<Comm>,
}

/// The largest of each delay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Longest {
    /// Of wake-ups on an idle CPU.
    pub idle: Delays,
    /// Of wake-ups while another thread had the CPU.
    pub busy: Delays,
    /// Time on the CPU of one wake-up, ns.
    pub own_ns: u64,
    /// Delay of one wake-up outside all sections, ns.
    pub outside_ns: u64,
}

impl Source {
    /// The source as a cause; `priority` is that of the target.
    pub fn cause(&self, names: &Names, priority: i32) -> Cause {
        match *self {
            Self::Irq(irq, name) => Cause { number: Some(irq), ..Cause::new(CauseKind::Interrupt, names.text(name)) },
            Self::Vector(name) => Cause::new(CauseKind::Interrupt, names.text(name)),
            Self::Softirq(vec) => Cause::new(CauseKind::Softirq, softirq_name(vec)),
            Self::Thread(comm, of_thread) => {
                let why = if of_thread == priority { Why::SamePriority } else { Why::HigherPriority };
                let cause = Cause::new(CauseKind::Thread, comm.to_string());
                Cause { priority: Some(of_thread), why: Some(why), ..cause }
            }
        }
    }
}

impl Delays {
    fn raise_to(&mut self, other: &Self) {
        if other.late_ns > self.late_ns {
            (self.late_ns, self.late_by) = (other.late_ns, other.late_by);
        }
        if other.blocked_ns > self.blocked_ns {
            (self.blocked_ns, self.blocked_by) = (other.blocked_ns, other.blocked_by);
        }
    }
}

impl Longest {
    /// Raises the delays to those of another thread of the CPU, without its own time.
    pub fn raise_to(&mut self, other: &Self) {
        self.idle.raise_to(&other.idle);
        self.busy.raise_to(&other.busy);
        self.outside_ns = self.outside_ns.max(other.outside_ns);
    }
}

impl Parts {
    /// No parts yet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            sources: Vec::new(),
            longest: Longest::default(),
            sections: Sections::default(),
            wake_ups: 0,
            events: 0,
            lost: false,
            given_up: false,
            lost_events: 0,
            read_ns: 0,
            first_ns: None,
            now_ns: 0,
            current: None,
            stack: Vec::new(),
            rival: None,
            state: State::Away,
            wake_up: WakeUp::default(),
            left_ns: [0; KEPT_WAKE_UPS],
        }
    }

    /// The time when the target left the CPU some wake-ups ago, ns; 0 if it had fewer.
    #[must_use]
    pub fn left_ns(&self) -> u64 {
        self.left_ns[0]
    }

    /// Time from the first event after the first deadline to the last one, ns.
    #[must_use]
    pub fn traced_ns(&self) -> u64 {
        self.first_ns.map_or(0, |first_ns| self.now_ns.saturating_sub(first_ns))
    }

    /// Takes the next events of the CPU, and the gaps before or between them.
    pub fn take_all(&mut self, events: &[Event], gaps: &[Gap]) {
        gaps.iter().for_each(|gap| self.note_gap(gap));
        events.iter().for_each(|event| self.take(event));
    }

    /// The delays of the target, none of whose wake-ups was later than `max_ns`.
    #[must_use]
    pub fn longest(&self, max_ns: u64) -> Longest {
        let Longest { idle, busy, own_ns, outside_ns } = self.longest;
        let clipped = |delays: Delays| Delays {
            late_ns: delays.late_ns.min(max_ns),
            blocked_ns: delays.blocked_ns.min(max_ns),
            ..delays
        };
        Longest {
            idle: clipped(idle),
            busy: clipped(busy),
            own_ns: own_ns.min(max_ns),
            outside_ns: outside_ns.min(max_ns),
        }
    }

    /// Takes no more events, because reading them takes too long.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Completes the curves after the last event.
    pub fn finish(&mut self) {
        self.sources.iter_mut().for_each(|(_, workload)| workload.finish());
    }

    fn note_gap(&mut self, gap: &Gap) {
        if gap.to_ns > self.target.first_deadline_ns {
            self.lost = true;
            self.lost_events += gap.lost;
        }
    }

    fn take(&mut self, event: &Event) {
        self.charge(event.at_ns);
        if event.at_ns >= self.target.first_deadline_ns {
            self.events += 1;
            self.first_ns.get_or_insert(event.at_ns);
        }
        let thread = self.current.map_or_else(Comm::default, |current| current.comm);
        if self.target.has_sections {
            self.sections.take(&event.kind, thread);
        }
        match event.kind {
            EventKind::IrqEntry { irq, name } => self.begin(Source::Irq(irq, name)),
            EventKind::IrqExit { irq } => self.end(|source| matches!(source, Source::Irq(of, _) if of == irq)),
            EventKind::VectorEntry { name } => self.begin(Source::Vector(name)),
            EventKind::VectorExit { name } => self.end(|source| source == Source::Vector(name)),
            EventKind::SoftirqEntry { vec } if !self.target.preempts_softirqs => self.begin(Source::Softirq(vec)),
            EventKind::SoftirqExit { vec } => self.end(|source| source == Source::Softirq(vec)),
            EventKind::Waking { task, .. } if task.pid == self.target.pid => self.wake(),
            EventKind::Switch { from, prev_state, to } => self.switch(from, prev_state, to),
            _ => {}
        }
    }

    /// Adds the time since the previous event to the one that used it.
    fn charge(&mut self, at_ns: u64) {
        // Before the first switch, it is unknown what used the CPU.
        let from_ns = if self.current.is_some() { self.now_ns } else { at_ns };
        self.now_ns = at_ns.max(from_ns);
        let elapsed_ns = self.now_ns - from_ns;
        if let Some(top) = self.stack.last_mut().or(self.rival.as_mut()) {
            top.ns += elapsed_ns;
            return;
        }
        let comm = self.current.map(|current| current.comm);
        let delays = &mut self.wake_up.delays;
        let delayed_ns = match self.state {
            State::Asleep(deadline_ns) => {
                let late_ns = self.now_ns.saturating_sub(from_ns.max(deadline_ns));
                delays.late_ns += late_ns;
                if late_ns > 0 && delays.late_by.is_none() {
                    delays.late_by = comm;
                }
                late_ns
            }
            State::Ready => {
                delays.blocked_ns += elapsed_ns;
                delays.blocked_by = delays.blocked_by.or(comm);
                elapsed_ns
            }
            State::Running => {
                self.wake_up.own_ns += elapsed_ns;
                0
            }
            State::Away => 0,
        };
        if delayed_ns > 0 {
            let is_idle = self.current.is_some_and(|current| current.pid == 0);
            self.wake_up.idle.get_or_insert(is_idle);
        }
        if self.sections.is_open() {
            self.sections.charge(elapsed_ns);
        } else {
            self.wake_up.outside_ns += delayed_ns;
        }
    }

    fn begin(&mut self, source: Source) {
        self.stack.push(Execution { source, start_ns: self.now_ns, ns: 0 });
    }

    /// Ends the innermost such execution, and those inside it whose end is missing.
    fn end(&mut self, is_it: impl Fn(Source) -> bool) {
        let Some(index) = self.stack.iter().rposition(|execution| is_it(execution.source)) else { return };
        let inside_ns: u64 = self.stack.drain(index + 1..).map(|execution| execution.ns).sum();
        if let Some(ended) = self.stack.pop() {
            self.add(Execution { ns: ended.ns + inside_ns, ..ended });
        }
    }

    fn add(&mut self, ended: Execution) {
        let index = self.sources.iter().position(|(source, _)| *source == ended.source).unwrap_or_else(|| {
            self.sources.push((ended.source, Workload::default()));
            self.sources.len() - 1
        });
        self.sources[index].1.add(ended.start_ns, self.now_ns, ended.ns);
    }

    fn wake(&mut self) {
        if let State::Asleep(_) | State::Away = self.state {
            self.state = State::Ready;
        }
    }

    fn switch(&mut self, from: Task, prev_state: PrevState, to: Task) {
        // Interrupts end before a switch: the end of these is missing.
        self.stack.clear();
        if let Some(rival) = self.rival.take() {
            self.add(rival);
        }
        if from.pid == self.target.pid {
            self.leave(prev_state);
        }
        if to.pid == self.target.pid {
            self.state = State::Running;
        } else if to.pid != 0 && is_rival(&to, self.target.priority) {
            let source = Source::Thread(to.comm, to.priority);
            self.rival = Some(Execution { source, start_ns: self.now_ns, ns: 0 });
        }
        self.current = Some(to);
    }

    /// The target left the CPU.
    fn leave(&mut self, prev_state: PrevState) {
        self.left_ns.rotate_left(1);
        self.left_ns[KEPT_WAKE_UPS - 1] = self.now_ns;
        if prev_state == PrevState::Preempted {
            self.state = State::Ready;
            return;
        }
        let WakeUp { delays, idle, own_ns, outside_ns } = std::mem::take(&mut self.wake_up);
        let Target { first_deadline_ns, period_ns, .. } = self.target;
        if self.now_ns >= first_deadline_ns {
            let longest = &mut self.longest;
            if idle == Some(true) { &mut longest.idle } else { &mut longest.busy }.raise_to(&delays);
            // Otherwise its last run would count, which ends the thread.
            if prev_state == PrevState::Sleeping {
                longest.own_ns = longest.own_ns.max(own_ns);
            }
            longest.outside_ns = longest.outside_ns.max(outside_ns);
            self.wake_ups += 1;
        }
        let passed = self.now_ns.checked_sub(first_deadline_ns).map_or(0, |ns| ns / period_ns + 1);
        self.state = match prev_state {
            PrevState::Sleeping => State::Asleep(first_deadline_ns + passed * period_ns),
            _ => State::Away,
        };
    }
}

/// True if the thread may delay a thread of this priority. The thread that stops a CPU is above all priorities, but has the
/// highest real-time priority in events.
fn is_rival(task: &Task, priority: i32) -> bool {
    task.priority <= priority || task.comm.0.starts_with(b"migration/")
}
