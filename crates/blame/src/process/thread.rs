//! One thread: what it was at, and how its time adds up.

mod told;

use std::collections::BTreeSet;

use record::{Histogram, Spike, ThreadTimes};

use super::{Known, Rules, cycles::Cycles, preempters::Preempters, wakeups::WakeUps};
use crate::{Comm, Task, Waiter, event::Left};

/// What a thread is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// No event has told yet. The next one does, also for the time before it.
    Untold,
    /// It has a CPU.
    Running,
    /// It was woken at this time (ns on CLOCK_MONOTONIC), and has no CPU yet.
    Ready { since_ns: u64 },
    /// It was preempted by the one in this place, and has no CPU again yet.
    Preempted { by: usize, since_ns: u64 },
    /// It sleeps, or waits for something else than a CPU.
    Blocked,
    /// It is no more.
    Ended,
}

/// The parts of a thread's time.
#[derive(Debug, Clone, Copy)]
enum Part {
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
    /// Whether it sleeps as long as no event tells otherwise.
    asleep: bool,
    /// Whether it was about to run, or ran, when it was first followed.
    was_up: bool,
    asked_for: bool,
    period_ns: Option<u64>,
    at: At,
    /// Up to when its time is accounted for, ns on CLOCK_MONOTONIC.
    told_ns: u64,
    /// Events before say nothing, ns on CLOCK_MONOTONIC: it was not followed yet, or others are missing.
    since_ns: u64,
    /// It was woken while it still had the CPU, since it got that.
    woken_early: bool,
    exits: bool,
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
    pub fn new(known: Known, since_ns: u64, rules: &Rules) -> Self {
        let Known { tid, comm, asleep } = known;
        Self {
            task: Task { pid: tid, priority: 120, comm },
            asleep,
            was_up: !asleep,
            asked_for: rules.selection.wants(tid, comm),
            period_ns: rules.selection.period_ns(tid, comm),
            at: At::Untold,
            told_ns: since_ns,
            since_ns,
            woken_early: false,
            exits: false,
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

    pub fn is_asked_for(&self) -> bool {
        self.asked_for
    }

    pub fn has_ended(&self) -> bool {
        self.at == At::Ended
    }

    /// Whether it did anything but sleep.
    pub fn did_something(&self) -> bool {
        self.was_up || self.cpu.is_some() || !self.cycles.is_empty()
    }

    /// It was made ready to run.
    pub fn woken(&mut self, at_ns: u64, task: Task, rules: &Rules) {
        let Some(at_ns) = self.heard(at_ns, task, rules) else { return };
        match self.at {
            At::Untold | At::Blocked => {
                self.pass(at_ns, Part::Blocked);
                self.ready(at_ns);
            }
            At::Running => self.woken_early = true,
            At::Ready { .. } | At::Preempted { .. } | At::Ended => {}
        }
    }

    /// It got a CPU.
    pub fn switched_in(&mut self, at_ns: u64, cpu: u32, task: Task, rules: &Rules) {
        let Some(at_ns) = self.heard(at_ns, task, rules) else { return };
        if self.at == At::Blocked && self.woken_early {
            // On its way to sleep, it was woken before it had left the CPU: it was ready as soon as it had.
            self.ready(self.told_ns);
        }
        match self.at {
            At::Untold => self.pass(at_ns, Part::Ready),
            At::Ready { since_ns } => {
                self.pass(at_ns, Part::Ready);
                self.wake_ups.note(since_ns, at_ns.saturating_sub(since_ns), cpu, rules);
            }
            At::Preempted { by, since_ns } => {
                self.pass(at_ns, Part::Preempted);
                let waited_ns = at_ns.saturating_sub(since_ns);
                self.preempted.record(i64::try_from(waited_ns).unwrap_or(i64::MAX));
                self.preempters.waited(by, waited_ns);
            }
            // An event that would tell how it came here is missing.
            At::Running | At::Blocked => self.unknown(at_ns),
            At::Ended => return,
        }
        self.is_on(cpu);
        (self.at, self.woken_early) = (At::Running, false);
    }

    /// It left its CPU to another one.
    pub fn switched_out(&mut self, at_ns: u64, cpu: u32, task: Task, (left, to): (Left, Task), rules: &Rules) {
        let Some(at_ns) = self.heard(at_ns, task, rules) else { return };
        match self.at {
            At::Untold | At::Running => self.pass(at_ns, Part::Running),
            At::Ready { .. } | At::Preempted { .. } | At::Blocked => self.unknown(at_ns),
            At::Ended => return,
        }
        self.is_on(cpu);
        self.at = match left {
            Left::Preempted => {
                self.preemptions += 1;
                At::Preempted { by: self.preempters.took(to), since_ns: at_ns }
            }
            // What it waits for now belongs to its cycle.
            Left::Uninterruptible | Left::Stopped => At::Blocked,
            Left::Sleeping | Left::Other => {
                self.cycles.end(rules.start_ns, self.period_ns);
                if self.exits { At::Ended } else { At::Blocked }
            }
        };
    }

    fn is_on(&mut self, cpu: u32) {
        let before = self.cpu.replace(cpu);
        if before != Some(cpu) {
            self.cpus.insert(cpu);
            self.migrations += u64::from(before.is_some());
        }
    }

    /// It is about to end.
    pub fn exits(&mut self) {
        self.exits = true;
    }

    /// Events between these times are missing.
    pub fn lost(&mut self, from_ns: u64, to_ns: u64, rules: &Rules) {
        if self.at == At::Ended {
            return;
        }
        self.stay(from_ns);
        self.pass(to_ns, Part::Unknown);
        self.cycles.cut();
        (self.at, self.woken_early, self.asleep) = (At::Untold, false, false);
        self.since_ns = to_ns.max(rules.start_ns);
    }

    /// Its id is that of another thread from now on.
    pub fn is_gone(&mut self, at_ns: u64) {
        self.stay(at_ns);
        self.at = At::Ended;
    }

    /// Takes in what an event tells of the thread itself. When it counts as, ns; `None` where it says nothing.
    fn heard(&mut self, at_ns: u64, task: Task, rules: &Rules) -> Option<u64> {
        if task.comm != self.task.comm {
            let selection = &rules.selection;
            self.asked_for = selection.wants(task.pid, task.comm);
            self.period_ns = selection.period_ns(task.pid, task.comm);
        }
        self.task = task;
        (at_ns >= self.since_ns).then_some(at_ns.max(self.told_ns))
    }

    fn ready(&mut self, since_ns: u64) {
        self.at = At::Ready { since_ns };
        self.cycles.begin(since_ns, self.period_ns);
    }

    fn unknown(&mut self, at_ns: u64) {
        self.pass(at_ns, Part::Unknown);
        self.cycles.cut();
    }

    /// Accounts for the time up to `at_ns` as that of what it is at.
    fn stay(&mut self, at_ns: u64) {
        let part = match self.at {
            At::Running => Part::Running,
            At::Ready { .. } => Part::Ready,
            At::Preempted { .. } => Part::Preempted,
            At::Blocked => Part::Blocked,
            At::Untold if self.asleep => Part::Blocked,
            At::Untold => Part::Unknown,
            At::Ended => return,
        };
        self.pass(at_ns, part);
    }

    fn pass(&mut self, at_ns: u64, part: Part) {
        let passed_ns = at_ns.saturating_sub(self.told_ns);
        self.told_ns += passed_ns;
        for times in [Some(&mut self.times), self.cycles.times()].into_iter().flatten() {
            *part.of(times) += passed_ns;
        }
    }

    /// The thread, where it ran last; `None` before it ran.
    pub fn waiter(&self) -> Option<Waiter> {
        let Task { pid, priority, .. } = self.task;
        Some(Waiter { pid, priority, cpu: self.cpu?, spins: false })
    }

    /// Spikes that were fresh are so no more; those of a thread that is not asked for are let go of.
    pub fn keep_spikes(&mut self) {
        if self.asked_for {
            self.wake_ups.keep_fresh();
        } else {
            self.wake_ups.fresh.clear();
        }
    }

    /// The fresh spikes, by the CPU that it woke on.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (Waiter, &mut [Spike])> {
        let Task { pid, priority, .. } = self.task;
        let asked_for = self.asked_for;
        let fresh = self.wake_ups.fresh.iter_mut().filter(move |(_, spikes)| asked_for && !spikes.is_empty());
        fresh.map(move |(&cpu, spikes)| (Waiter { pid, priority, cpu, spins: false }, spikes.as_mut_slice()))
    }
}

impl Part {
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
