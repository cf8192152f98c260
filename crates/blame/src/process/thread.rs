//! The state of one thread, and the sums of its times.

mod series;

use std::collections::BTreeSet;

use record::{Histogram, Spike, ThreadTimes};

use super::{cycles::Cycles, preempters::Preempters, selection::RunConfig, wakeups::WakeUps};
use crate::{Comm, MeasuredThread, Task, event::PrevState, time::signed_ns};

/// A thread as it is when following it starts.
#[derive(Debug, Clone, Copy)]
pub struct ThreadInfo {
    /// Thread id.
    pub tid: u32,
    /// Name of its command.
    pub comm: Comm,
    /// True if it slept at that time. Decides its state until the first event.
    pub asleep: bool,
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No event yet. The next event also shows the state before it.
    Unobserved,
    /// On a CPU.
    Running,
    /// Woken at this time (ns on CLOCK_MONOTONIC), without a CPU.
    Ready { since_ns: u64 },
    /// Preempted by the entry with this index, without a CPU.
    Preempted { by: usize, since_ns: u64 },
    /// Asleep, or waiting for something other than a CPU.
    Blocked,
    /// Ended, or its id was reused.
    Ended,
}

/// The parts of a thread's time.
#[derive(Debug, Clone, Copy)]
enum TimePart {
    Running,
    Ready,
    Preempted,
    Blocked,
    Unknown,
}

/// One thread.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    task: Task,
    /// True if it sleeps until an event shows otherwise.
    asleep: bool,
    /// True if it was not asleep when following it started.
    was_awake: bool,
    selected: bool,
    period_ns: Option<u64>,
    state: State,
    /// Its time is accounted for up to this time, ns on CLOCK_MONOTONIC.
    accounted_ns: u64,
    /// Earlier events are ignored, ns on CLOCK_MONOTONIC: it was not followed yet, or events are missing.
    since_ns: u64,
    /// True if it was woken during its current run.
    woken_early: bool,
    is_exiting: bool,
    times: ThreadTimes,
    cycles: Cycles,
    wake_ups: WakeUps,
    preemptions: u64,
    preempted: Histogram,
    preempters: Preempters,
    migrations: u64,
    cpu: Option<u32>,
    cpus: BTreeSet<u32>,
}

impl Thread {
    pub fn new(info: ThreadInfo, since_ns: u64, config: &RunConfig) -> Self {
        let ThreadInfo { tid, comm, asleep } = info;
        Self {
            task: Task { pid: tid, priority: 120, comm },
            asleep,
            was_awake: !asleep,
            selected: config.selection.selects(tid, comm),
            period_ns: config.selection.period_ns(tid, comm),
            state: State::Unobserved,
            accounted_ns: since_ns,
            since_ns,
            woken_early: false,
            is_exiting: false,
            times: ThreadTimes::default(),
            cycles: Cycles::default(),
            wake_ups: WakeUps::default(),
            preemptions: 0,
            preempted: Histogram::default(),
            preempters: Preempters::default(),
            migrations: 0,
            cpu: None,
            cpus: BTreeSet::new(),
        }
    }

    pub fn tid(&self) -> u32 {
        self.task.pid
    }

    pub fn comm(&self) -> Comm {
        self.task.comm
    }

    pub fn is_selected(&self) -> bool {
        self.selected
    }

    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// True if it did anything but sleep.
    pub fn was_active(&self) -> bool {
        self.was_awake || self.cpu.is_some() || !self.cycles.is_empty()
    }

    /// Handles its wake-up.
    pub fn woken(&mut self, at_ns: u64, task: Task, config: &RunConfig) {
        let Some(at_ns) = self.update_task(at_ns, task, config) else { return };
        match self.state {
            State::Unobserved | State::Blocked => {
                self.account_for(at_ns, TimePart::Blocked);
                self.ready(at_ns);
            }
            State::Running => self.woken_early = true,
            State::Ready { .. } | State::Preempted { .. } | State::Ended => {}
        }
    }

    /// Handles its switch to a CPU.
    pub fn switched_in(&mut self, at_ns: u64, cpu: u32, task: Task, config: &RunConfig) {
        let Some(at_ns) = self.update_task(at_ns, task, config) else { return };
        if self.state == State::Blocked && self.woken_early {
            // The wake-up came before the switch-out completed, so it was runnable at once.
            self.ready(self.accounted_ns);
        }
        match self.state {
            State::Unobserved => self.account_for(at_ns, TimePart::Ready),
            State::Ready { since_ns } => {
                self.account_for(at_ns, TimePart::Ready);
                self.wake_ups.note(since_ns, at_ns.saturating_sub(since_ns), cpu, config);
            }
            State::Preempted { by, since_ns } => {
                self.account_for(at_ns, TimePart::Preempted);
                let waited_ns = at_ns.saturating_sub(since_ns);
                self.preempted.record(signed_ns(waited_ns));
                self.preempters.add_waiting(by, waited_ns);
            }
            // An event is missing.
            State::Running | State::Blocked => self.account_unknown(at_ns),
            State::Ended => return,
        }
        self.note_cpu(cpu);
        (self.state, self.woken_early) = (State::Running, false);
    }

    /// Handles its switch from a CPU.
    pub fn switched_out(
        &mut self,
        at_ns: u64,
        cpu: u32,
        task: Task,
        (prev_state, to): (PrevState, Task),
        config: &RunConfig,
    ) {
        let Some(at_ns) = self.update_task(at_ns, task, config) else { return };
        match self.state {
            State::Unobserved | State::Running => self.account_for(at_ns, TimePart::Running),
            State::Ready { .. } | State::Preempted { .. } | State::Blocked => self.account_unknown(at_ns),
            State::Ended => return,
        }
        self.note_cpu(cpu);
        self.state = match prev_state {
            PrevState::Preempted => {
                self.preemptions += 1;
                State::Preempted { by: self.preempters.add(to), since_ns: at_ns }
            }
            // This waiting time belongs to its cycle.
            PrevState::Uninterruptible | PrevState::Stopped => State::Blocked,
            PrevState::Sleeping | PrevState::Other => {
                self.cycles.end(config.start_ns, self.period_ns);
                if self.is_exiting { State::Ended } else { State::Blocked }
            }
        };
    }

    fn note_cpu(&mut self, cpu: u32) {
        let before = self.cpu.replace(cpu);
        if before != Some(cpu) {
            self.cpus.insert(cpu);
            self.migrations += u64::from(before.is_some());
        }
    }

    /// Notes that it is about to end.
    pub fn note_exit(&mut self) {
        self.is_exiting = true;
    }

    /// Marks the time between these points as unknown.
    pub fn lost(&mut self, from_ns: u64, to_ns: u64, config: &RunConfig) {
        if self.state == State::Ended {
            return;
        }
        self.account_until(from_ns);
        self.account_for(to_ns, TimePart::Unknown);
        self.cycles.cut();
        (self.state, self.woken_early, self.asleep) = (State::Unobserved, false, false);
        self.since_ns = to_ns.max(config.start_ns);
    }

    /// Ends it, because another thread has its id now.
    pub fn replaced(&mut self, at_ns: u64) {
        self.account_until(at_ns);
        self.state = State::Ended;
    }

    /// Stores the thread's description from an event. Returns the time at which the event counts, ns; `None` if it is
    /// ignored.
    fn update_task(&mut self, at_ns: u64, task: Task, config: &RunConfig) -> Option<u64> {
        if task.comm != self.task.comm {
            let selection = &config.selection;
            self.selected = selection.selects(task.pid, task.comm);
            self.period_ns = selection.period_ns(task.pid, task.comm);
        }
        self.task = task;
        (at_ns >= self.since_ns).then_some(at_ns.max(self.accounted_ns))
    }

    fn ready(&mut self, since_ns: u64) {
        self.state = State::Ready { since_ns };
        self.cycles.begin(since_ns, self.period_ns);
    }

    fn account_unknown(&mut self, at_ns: u64) {
        self.account_for(at_ns, TimePart::Unknown);
        self.cycles.cut();
    }

    /// Accounts for the time up to `at_ns` in its current state.
    fn account_until(&mut self, at_ns: u64) {
        let part = match self.state {
            State::Running => TimePart::Running,
            State::Ready { .. } => TimePart::Ready,
            State::Preempted { .. } => TimePart::Preempted,
            State::Blocked => TimePart::Blocked,
            State::Unobserved if self.asleep => TimePart::Blocked,
            State::Unobserved => TimePart::Unknown,
            State::Ended => return,
        };
        self.account_for(at_ns, part);
    }

    fn account_for(&mut self, at_ns: u64, part: TimePart) {
        let passed_ns = at_ns.saturating_sub(self.accounted_ns);
        self.accounted_ns += passed_ns;
        for times in [Some(&mut self.times), self.cycles.times()].into_iter().flatten() {
            *part.of(times) += passed_ns;
        }
    }

    /// The thread on its last CPU; `None` before it ran.
    pub fn measured_thread(&self) -> Option<MeasuredThread> {
        let Task { pid, priority, .. } = self.task;
        Some(MeasuredThread { pid, priority, cpu: self.cpu?, spins: false })
    }

    /// Moves the new spikes to the kept ones, or drops them if the thread is not selected.
    pub fn keep_spikes(&mut self) {
        if self.selected {
            self.wake_ups.keep_fresh();
        } else {
            self.wake_ups.fresh.clear();
        }
    }

    /// The new spikes, by the CPU that it woke on.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (MeasuredThread, &mut [Spike])> {
        let Task { pid, priority, .. } = self.task;
        let selected = self.selected;
        let fresh = self.wake_ups.fresh.iter_mut().filter(move |(_, spikes)| selected && !spikes.is_empty());
        fresh.map(move |(&cpu, spikes)| (MeasuredThread { pid, priority, cpu, spins: false }, spikes.as_mut_slice()))
    }
}

impl TimePart {
    fn of(self, times: &mut ThreadTimes) -> &mut u64 {
        match self {
            Self::Running => &mut times.running_ns,
            Self::Ready => &mut times.ready_ns,
            Self::Preempted => &mut times.preempted_ns,
            Self::Blocked => &mut times.blocked_ns,
            Self::Unknown => &mut times.unknown_ns,
        }
    }
}
