//! The state of one thread, and the sums of its times.

mod accounting;
mod boundaries;
mod kernel;
mod series;

use std::{collections::BTreeSet, mem};

use record::{CycleCause, Histogram, Monitor, Rule, Spike, ThreadTimes};

use self::accounting::TimePart;
use super::{
    calls::Source,
    cycles::{Cycles, Released},
    history::History,
    locks::{LockSums, Wait, WaitsForLock},
    preempters::Preempters,
    releases::Releases,
    rivals::Rivals,
    rules::{Breaches, Reports, STALL_NS, is_realtime},
    selection::RunConfig,
    waits::{InKernel, WaitFor},
    wakeups::WakeUps,
};
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
    /// Preempted at this time (ns on CLOCK_MONOTONIC), without a CPU.
    Preempted { since_ns: u64 },
    /// Asleep, or waiting for something other than a CPU.
    Blocked,
    /// Ended, or its id was reused.
    Ended,
}

/// A wait that has not ended.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    wait_for: WaitFor,
    since_ns: u64,
    call: &'static str,
    /// The object that it waits for; `None` outside a known system call.
    source: Option<Source>,
    /// The thread that released the lock that it waits for.
    released_by: Option<u32>,
}

/// What ended the wait of a thread, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct WokenBy {
    /// The thread that ended it.
    pub task: Option<Task>,
    /// The whole wait, if it was for a lock of the program.
    pub lock: Option<Wait>,
    /// True if the waiting thread had woken that thread in its current cycle, so that this is its answer.
    pub is_answer: bool,
}

/// One thread.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    task: Task,
    /// True if it sleeps until an event shows otherwise.
    asleep: bool,
    /// Id of its process; `None` if it is unknown.
    process: Option<u32>,
    /// True if the numbers of its system calls have another meaning.
    has_other_calls: bool,
    /// Id of the thread that started it; `None` if it ran before the run.
    started_by: Option<u32>,
    /// True if it has its real-time policy from that thread; `None` before its first event.
    inherits: Option<bool>,
    /// Relative deadline of its policy, ns; `None` for other policies than the deadline policy.
    deadline_ns: Option<u64>,
    /// Its priority without one that it inherits; `None` if it is unknown.
    own_priority: Option<i32>,
    breaches: Breaches,
    reports: Reports,
    /// True if marks of the program delimit its cycles.
    is_marked: bool,
    /// True if marks also show the ends of its cycles.
    marks_ends: bool,
    /// True if it was not asleep when following it started.
    was_awake: bool,
    selected: bool,
    /// The name that the selection depends on.
    selected_as: Comm,
    period_ns: Option<u64>,
    state: State,
    /// Its time is accounted for up to this time, ns on CLOCK_MONOTONIC.
    accounted_ns: u64,
    /// Earlier events are ignored, ns on CLOCK_MONOTONIC: it was not followed yet, or events are missing.
    since_ns: u64,
    /// The waker of its current run.
    woken_early: Option<WokenBy>,
    is_exiting: bool,
    /// When it ended, ns on CLOCK_MONOTONIC.
    ended_ns: Option<u64>,
    times: ThreadTimes,
    cycles: Cycles,
    wake_ups: WakeUps,
    preemptions: u64,
    preempted: Histogram,
    preempters: Preempters,
    migrations: u64,
    cpu: Option<u32>,
    cpus: BTreeSet<u32>,
    /// True if the end of a yield of the deadline policy started a cycle.
    begins_at_yields: bool,
    /// True if it runs, and its switch to this CPU is missing in the trace.
    is_switch_missing: bool,
    switches_missing: u64,
    switches_missing_on: BTreeSet<u32>,
    in_kernel: InKernel,
    releases: Releases,
    /// Duration of the relative sleep before the next cycle, ns.
    sleep_ns: Option<u64>,
    fd_timer: kernel::FdTimer,
    /// True if it entered a sleep that may continue the one that a signal interrupted.
    may_continue_sleep: bool,
    /// The end of its last stop by a signal or a debugger, ns on CLOCK_MONOTONIC.
    stopped_until_ns: u64,
    /// The end of the sleep that a signal interrupted last, ns on CLOCK_MONOTONIC, and when that was.
    interrupted_sleep: Option<(u64, u64)>,
    /// The current wait; `None` if it is unknown.
    waiting: Option<Waiting>,
    /// The threads that had its CPU while it was ready to run.
    rivals: Rivals,
    history: History,
    locks: LockSums,
    /// The futex word that it waited for last, and the number of these waits in a row in which the holder slept.
    slept_on: (u64, u32),
    handler: kernel::Handler,
    page_faults: u64,
    /// The longest CPU time that its last page fault can have taken, ns; 0 if another event followed.
    fault_ns: u64,
    signals: u64,
}

impl Thread {
    pub fn new(info: ThreadInfo, since_ns: u64, config: &RunConfig) -> Self {
        let ThreadInfo { tid, comm, asleep } = info;
        Self {
            task: Task { pid: tid, priority: 120, comm },
            asleep,
            process: None,
            has_other_calls: false,
            started_by: None,
            inherits: None,
            deadline_ns: None,
            own_priority: None,
            breaches: Breaches::default(),
            reports: Reports::default(),
            is_marked: false,
            marks_ends: false,
            was_awake: !asleep,
            selected: config.selection.selects(tid, comm),
            selected_as: comm,
            period_ns: config.selection.period_ns(tid, comm),
            state: State::Unobserved,
            accounted_ns: since_ns,
            since_ns,
            woken_early: None,
            is_exiting: false,
            ended_ns: None,
            times: ThreadTimes::default(),
            cycles: Cycles::default(),
            wake_ups: WakeUps::default(),
            preemptions: 0,
            preempted: Histogram::default(),
            preempters: Preempters::default(),
            migrations: 0,
            cpu: None,
            cpus: BTreeSet::new(),
            begins_at_yields: false,
            is_switch_missing: false,
            switches_missing: 0,
            switches_missing_on: BTreeSet::new(),
            in_kernel: InKernel::default(),
            releases: Releases::default(),
            sleep_ns: None,
            fd_timer: kernel::FdTimer::default(),
            may_continue_sleep: false,
            stopped_until_ns: 0,
            interrupted_sleep: None,
            waiting: None,
            rivals: Rivals::default(),
            history: History::default(),
            locks: LockSums::default(),
            slept_on: (0, 0),
            handler: kernel::Handler::default(),
            page_faults: 0,
            fault_ns: 0,
            signals: 0,
        }
    }

    pub fn tid(&self) -> u32 {
        self.task.pid
    }

    pub fn comm(&self) -> Comm {
        self.task.comm
    }

    pub fn selected_as(&self) -> Comm {
        self.selected_as
    }

    pub fn is_selected(&self) -> bool {
        self.selected
    }

    /// Orders ended threads by the interest in their figures: the longest cycle or the latest wake-up of a selected
    /// thread, ns.
    pub fn interest(&self) -> (bool, u64, u64) {
        let longest_ns = self.cycles.longest_ns().max(self.wake_ups.max_ns());
        (self.selected, self.cycles.missed(), longest_ns)
    }

    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// True if it has ended or is about to.
    pub fn is_ending(&self) -> bool {
        self.is_exiting || self.has_ended()
    }

    /// True if it did anything but sleep.
    pub fn was_active(&self) -> bool {
        self.was_awake || self.cpu.is_some() || !self.cycles.is_empty()
    }

    /// Handles its wake-up.
    pub fn woken(&mut self, at_ns: u64, task: Task, by: &WokenBy, config: &RunConfig) {
        let Some(at_ns) = self.update_task(at_ns, task, config) else { return };
        match self.state {
            State::Unobserved | State::Blocked => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.released_by = by.task.map(|task| task.pid);
                }
                self.judge_waker(at_ns, by, config);
                self.end_wait(at_ns, by, config);
            }
            State::Running => self.woken_early = Some(WokenBy { lock: None, ..by.clone() }),
            State::Ready { .. } | State::Preempted { .. } | State::Ended => {}
        }
    }

    /// Handles its switch to a CPU, which `from` had before.
    pub fn switched_in(&mut self, at_ns: u64, cpu: u32, task: Task, from: Task, config: &RunConfig) {
        let Some(at_ns) = self.update_task(at_ns, task, config) else { return };
        if self.state == State::Blocked
            && let Some(by) = self.woken_early.take()
        {
            // The wake-up came before the switch-out completed, so it was runnable at once.
            self.end_wait(self.accounted_ns, &by, config);
        }
        match self.state {
            State::Unobserved => self.account_for(at_ns, TimePart::Ready),
            State::Ready { since_ns } => {
                self.loses_time_to(from, at_ns);
                self.judge_stall(since_ns, at_ns, config);
                self.wake_ups.note(since_ns, at_ns.saturating_sub(since_ns), cpu, config);
                for (rival, ns) in self.rivals.take() {
                    self.add_part(CycleCause::WakeUp, ns, Some(rival), "");
                }
            }
            State::Preempted { since_ns } => self.resumed(at_ns, from, since_ns, config),
            // In a `sched_yield`, only one until the next period is a wait.
            State::Blocked if self.in_kernel.is_yield() => {
                // The kernel does not trace the start of that period.
                self.begins_at_yields = true;
                self.end_wait(at_ns, &WokenBy::default(), config);
            }
            // An event is missing.
            State::Running | State::Blocked => self.account_unknown(at_ns),
            State::Ended => return,
        }
        self.note_cpu(cpu);
        (self.state, self.woken_early, self.waiting) = (State::Running, None, None);
        self.is_switch_missing = false;
    }

    /// Handles the end of a preemption; `from` had the CPU before.
    fn resumed(&mut self, at_ns: u64, from: Task, since_ns: u64, config: &RunConfig) {
        self.loses_time_to(from, at_ns);
        self.judge_stall(since_ns, at_ns, config);
        let (mut begun_ns, priority) = (since_ns, self.rivals.priority);
        let mut is_preemption = None;
        for (rival, ns) in self.rivals.take() {
            let cause = config.quota.cause(priority, rival, begun_ns, begun_ns + ns);
            let by_rival = matches!(cause, CycleCause::Preemption | CycleCause::Withheld);
            if is_preemption.is_none() && by_rival {
                self.preempters.add(rival);
            }
            is_preemption.get_or_insert(by_rival);
            if by_rival {
                self.preempters.add_waiting(rival, ns);
            }
            self.add_part(cause, ns, Some(rival), "");
            begun_ns += ns;
        }
        if is_preemption != Some(false) {
            self.preemptions += 1;
            self.preempted.record(signed_ns(at_ns.saturating_sub(since_ns)));
        }
    }

    /// Handles a switch of another thread from or to the CPU that it waits for. Returns false if it no longer waits for
    /// this CPU.
    pub fn rival_changes(&mut self, at_ns: u64, cpu: u32, from: Task, to: Task) -> bool {
        if self.waits_for_cpu() != Some(cpu) {
            return false;
        }
        if at_ns >= self.since_ns {
            self.loses_time_to(from, at_ns.max(self.accounted_ns));
            self.rivals.now = Some(to);
        }
        true
    }

    /// The CPU that it waits for, as far as it is known.
    pub fn waits_for_cpu(&self) -> Option<u32> {
        let waits = matches!(self.state, State::Ready { .. } | State::Preempted { .. });
        self.rivals.cpu.filter(|_| waits)
    }

    /// Accounts for the time up to `at_ns`, in which it was ready to run, but `from`, or the thread before it, ran.
    fn loses_time_to(&mut self, from: Task, at_ns: u64) {
        let part = if let State::Ready { .. } = self.state { TimePart::Ready } else { TimePart::Preempted };
        let rival = *self.rivals.now.get_or_insert(from);
        let lost_ns = at_ns.saturating_sub(self.accounted_ns);
        self.account_for(at_ns, part);
        self.rivals.add(rival, lost_ns);
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
        if mem::take(&mut self.is_switch_missing) {
            self.switches_missing += 1;
            self.switches_missing_on.insert(cpu);
        }
        self.state = match prev_state {
            PrevState::Preempted if self.yields_until_release(at_ns, config) => self.blocks(at_ns, WaitFor::Sleep),
            PrevState::Preempted => {
                self.rivals = Rivals::of(Some(cpu), Some(to), self.task.priority);
                State::Preempted { since_ns: at_ns }
            }
            PrevState::Uninterruptible | PrevState::Stopped => {
                self.blocks(at_ns, self.in_kernel.wait_for(prev_state, self.times.running_ns))
            }
            PrevState::Sleeping | PrevState::Other => {
                let wait_for = self.in_kernel.wait_for(prev_state, self.times.running_ns);
                self.decide_on_sleep(at_ns, None, config);
                if self.is_exiting || !self.knows_calls(config) && !self.is_marked {
                    self.end_cycle(at_ns, config);
                }
                if !self.is_exiting && self.in_kernel.sleeps_unsafely(wait_for) {
                    self.note_breach(Rule::Sleep, self.in_kernel.call_name(), at_ns, config);
                }
                if self.is_exiting {
                    self.ended_ns = Some(at_ns);
                    State::Ended
                } else {
                    self.blocks(at_ns, wait_for)
                }
            }
        };
    }

    fn blocks(&mut self, since_ns: u64, wait_for: WaitFor) -> State {
        self.in_kernel.note_wait();
        self.waiting = Some(Waiting {
            wait_for,
            since_ns,
            call: self.in_kernel.call_name(),
            source: self.in_kernel.call().map(|call| call.source),
            released_by: None,
        });
        State::Blocked
    }

    /// Handles the end of a wait: the thread is ready to run, and a cycle begins unless the wait was part of one.
    fn end_wait(&mut self, at_ns: u64, by: &WokenBy, config: &RunConfig) {
        self.note_freeze(at_ns, config);
        self.complete_before_wait(at_ns, by, config);
        self.account_for(at_ns, TimePart::Blocked);
        self.state = State::Ready { since_ns: at_ns };
        self.rivals = Rivals::of(self.cpu, None, self.task.priority);
        let waiting = self.waiting.take();
        if let Some(Waiting { wait_for: WaitFor::Continue, .. }) = waiting {
            self.stopped_until_ns = at_ns;
        }
        if let Some(Waiting { wait_for: WaitFor::Sleep | WaitFor::Event, .. }) = waiting {
            self.slept_on = (0, 0);
        }
        if let Some(Waiting { wait_for, since_ns, call, .. }) = waiting {
            match &by.lock {
                Some(wait) => self.add_lock_wait(wait, config),
                None => {
                    let stopped_ns = config.freezes.stopped_ns(self.process, since_ns, at_ns);
                    let rest_ns = at_ns.saturating_sub(since_ns).saturating_sub(stopped_ns);
                    if stopped_ns > 0 {
                        self.add_part(CycleCause::Stopped, stopped_ns, None, "");
                    }
                    if rest_ns > 0 || stopped_ns == 0 {
                        self.add_part(wait_for.cause(), rest_ns, by.task, call);
                    }
                }
            }
        }
        if self.is_marked {
            return;
        }
        let call = self.in_kernel.call();
        match waiting.map(|waiting| waiting.wait_for) {
            _ if !self.knows_calls(config) => self.begin_cycle(Released::at(at_ns), config),
            None if self.is_new() => self.cycles.begin_start(at_ns),
            None => self.begin_cycle(Released::at(at_ns), config),
            Some(WaitFor::Sleep) => {
                if let Some(call) = call.filter(|call| call.is_release) {
                    self.end_sleep(at_ns, call, config);
                }
            }
            Some(WaitFor::Event) => self.end_event_wait(at_ns, call, by.is_answer, config),
            Some(_) => {}
        }
    }

    /// Counts a breach of a rule, if it is under the rules.
    fn note_breach(&mut self, rule: Rule, by: &str, at_ns: u64, config: &RunConfig) {
        if is_realtime(self.task) {
            self.breaches.add(rule, by, at_ns.saturating_sub(config.start_ns));
        }
    }

    /// Counts a report of one of the kernel's monitors. The monitor for stalls reports ordinary threads, too, which are
    /// not under the rules.
    pub fn is_reported(&mut self, at_ns: u64, monitor: Monitor, config: &RunConfig) {
        if monitor != Monitor::Stall || is_realtime(self.task) {
            self.reports.add(monitor, at_ns.saturating_sub(config.start_ns));
        }
    }

    /// Counts the end of a wait by a thread of lower priority. The holder of a lock inherits the priority if the lock
    /// is of that kind.
    fn judge_waker(&mut self, at_ns: u64, by: &WokenBy, config: &RunConfig) {
        let inherits = self.waits_for_lock().is_some_and(|waiting| waiting.lock.inherits_priority);
        let Some(waker) = by.task.filter(|waker| !inherits && waker.priority > self.task.priority) else { return };
        self.note_breach(Rule::WakeUp, &waker.comm.to_string(), at_ns, config);
    }

    /// Counts a wait for a CPU that was too long.
    fn judge_stall(&mut self, since_ns: u64, at_ns: u64, config: &RunConfig) {
        if at_ns.saturating_sub(since_ns) > STALL_NS {
            self.note_breach(Rule::Stall, "", at_ns, config);
        }
    }

    /// Sets its process, and whether the numbers of its system calls have another meaning.
    pub fn set_process(&mut self, process: u32, has_other_calls: bool) {
        (self.process, self.has_other_calls) = (Some(process), has_other_calls);
    }

    pub fn process(&self) -> Option<u32> {
        self.process
    }

    pub fn has_other_calls(&self) -> bool {
        self.has_other_calls
    }

    /// True if the trace shows what it waits for. Else every sleep ends a cycle.
    fn knows_calls(&self, config: &RunConfig) -> bool {
        config.knows_calls && !self.has_other_calls
    }

    /// True if this thread started it.
    pub fn was_started_by(&self, tid: u32) -> bool {
        self.started_by == Some(tid)
    }

    /// Sets the id of the thread that started it.
    pub fn set_parent(&mut self, tid: u32) {
        self.started_by = Some(tid);
    }

    /// Notes that something set its policy.
    pub fn policy_was_set(&mut self) {
        self.inherits = Some(false);
        self.own_priority = None;
    }

    /// Id of the thread that it has its real-time policy from.
    pub fn has_policy_from(&self) -> Option<u32> {
        self.started_by.filter(|_| self.inherits == Some(true) && is_realtime(self.task))
    }

    /// Sets the relative deadline of its policy, ns; `None` for other policies.
    pub fn set_deadline(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    fn add_lock_wait(&mut self, wait: &Wait, config: &RunConfig) {
        let record = wait.to_record(self.task.priority, config);
        if let Some(open) = self.cycles.now() {
            open.parts.add_lock(wait, &record);
        }
        self.locks.add(&record);
    }

    fn add_part(&mut self, cause: CycleCause, ns: u64, by: Option<Task>, call: &'static str) {
        if let Some(open) = self.cycles.now() {
            open.parts.add(cause, ns, by, call);
        }
    }

    /// Its current wait for a lock, if it waits for one.
    pub fn waits_for_lock(&self) -> Option<WaitsForLock> {
        let Waiting { wait_for, since_ns, call, .. } = self.waiting?;
        match wait_for {
            WaitFor::Lock(lock) | WaitFor::KernelLock(lock) => Some(WaitsForLock { lock, since_ns, call }),
            _ => None,
        }
    }

    /// Its description as of the last event.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Its own priority, without one that it inherits from a thread that waits for it, as far as it is known.
    fn own_priority(&self) -> i32 {
        self.own_priority.unwrap_or(self.task.priority)
    }

    /// Sets its own priority, without an inherited one.
    pub fn set_own_priority(&mut self, priority: i32) {
        self.own_priority = Some(priority);
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
        (self.state, self.woken_early, self.asleep) = (State::Unobserved, None, false);
        self.is_switch_missing = false;
        (self.in_kernel, self.waiting, self.rivals) = (InKernel::default(), None, Rivals::default());
        self.since_ns = to_ns.max(config.start_ns);
    }

    /// Ends it, because another thread has its id now.
    pub fn replaced(&mut self, at_ns: u64) {
        self.account_until(at_ns);
        // Its end is missing in the trace.
        self.cycles.cut();
        self.ended_ns = self.ended_ns.or(Some(at_ns));
        self.state = State::Ended;
    }

    /// True if it has the CPU, as far as the events show.
    pub fn runs_on(&self, cpu: u32) -> bool {
        self.state == State::Running && self.cpu == Some(cpu)
    }

    /// Stores the thread's description from an event. Returns the time at which the event counts, ns; `None` if it is
    /// ignored.
    fn update_task(&mut self, at_ns: u64, task: Task, config: &RunConfig) -> Option<u64> {
        if task.comm != self.task.comm {
            let selection = &config.selection;
            // A thread has the name of its parent until it names itself, before its cycles. Later it stays selected.
            let stays = self.selected && self.cycles.count() > 0;
            if selection.selects(task.pid, task.comm) || !stays {
                (self.selected, self.selected_as) = (selection.selects(task.pid, task.comm), task.comm);
                self.period_ns = selection.period_ns(task.pid, task.comm);
            }
        }
        self.task = task;
        // The first event is its first wake-up, before it or its parent can set another policy.
        self.inherits.get_or_insert(self.started_by.is_some() && is_realtime(task));
        (at_ns >= self.since_ns).then_some(at_ns.max(self.accounted_ns))
    }

    /// The thread on its last CPU; `None` before it ran.
    pub fn measured_thread(&self, config: &RunConfig) -> Option<MeasuredThread> {
        let Task { pid, priority, .. } = self.task;
        let has_quota = config.quota.has_stopped();
        Some(MeasuredThread {
            pid,
            priority,
            cpu: self.cpu?,
            spins: false,
            awaits_device: false,
            slack_ns: 0,
            has_quota,
        })
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
    pub fn fresh_spikes(&mut self, config: &RunConfig) -> impl Iterator<Item = (MeasuredThread, &mut [Spike])> {
        let Task { pid, priority, .. } = self.task;
        let (selected, has_quota) = (self.selected, config.quota.has_stopped());
        let fresh = self.wake_ups.fresh.iter_mut().filter(move |(_, spikes)| selected && !spikes.is_empty());
        fresh.map(move |(&cpu, spikes)| {
            (
                MeasuredThread { pid, priority, cpu, spins: false, awaits_device: false, slack_ns: 0, has_quota },
                spikes.as_mut_slice(),
            )
        })
    }
}
