//! Scheduling statistics of a program's threads, from trace events.
//!
//! Pure functions of events: no system calls, and no event is kept.
//!
//! | module | contents |
//! |---|---|
//! | `thread` | the state of one thread, and the sums of its times |
//! | `calls` | the system calls that wait |
//! | `releases` | the waits that start cycles |
//! | `wakers` | the threads that woke others: questions and answers |
//! | `futexes` | the futex words that are locks |
//! | [`clocks`] | times of other clocks |
//! | `waits` | what a thread waits for |
//! | `cycles` | from release to completion: run times, response times, deadlines |
//! | `parts` | what the time of a cycle was spent on |
//! | `locks` | waits for locks: who held them, and what kept the holders |
//! | `history` | what a thread did in the recent past |
//! | `fault_time` | the CPU time of a page fault |
//! | `rules` | the rules for real-time threads that a thread broke |
//! | `rivals` | the threads that have the CPU that a thread waits for |
//! | `freezes` | when control groups of the program were frozen |
//! | `quota` | how long a CPU quota stopped the program |
//! | `preempters` | the threads that preempted it |
//! | `wakeups` | wake-up latencies and their spikes |
//! | [`selection`] | the threads to report, and their periods |

mod calls;
pub mod clocks;
mod cycles;
mod fault_time;
mod freezes;
mod futexes;
mod history;
mod locks;
mod parts;
mod preempters;
mod quota;
mod releases;
mod rivals;
mod rules;
pub mod selection;
#[cfg(test)]
mod tests;
mod thread;
mod waits;
mod wakers;
mod wakeups;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
};

use record::{Series, Spike, THREADS_FOLLOWED};

use crate::{Comm, Event, EventKind, MeasuredThread, Task};
use calls::{Call, Lock};
pub use clocks::ClockOffsets;
pub use fault_time::fault_time_ns;
use futexes::{Finding, Futexes};
use locks::Wait;
use selection::RunConfig;
pub use selection::{Pattern, Selection};
pub use thread::ThreadInfo;
use thread::{Thread, WokenBy};
use waits::InCall;
use wakers::Wakers;

/// The threads of a program.
#[derive(Debug, Clone)]
pub struct Process {
    config: RunConfig,
    threads: Vec<Thread>,
    /// Index of the latest thread with each id.
    of: HashMap<u32, usize>,
    /// Indices of the threads that wait for each CPU, and of some that no longer do.
    waiting_for_cpu: HashMap<u32, Vec<usize>>,
    wakers: Wakers,
    futexes: Futexes,
    threads_not_followed: u64,
    /// Ended threads whose figures were dropped.
    ended_dropped: u64,
    /// Threads whose policy a system call set.
    policies_set: Vec<u32>,
}

impl Process {
    /// Creates statistics without threads. `start_ns` is the start of the run on CLOCK_MONOTONIC; earlier events are
    /// not counted.
    #[must_use]
    pub fn new(start_ns: u64, threshold_ns: u64, selection: Selection) -> Self {
        let config = RunConfig::new(start_ns, threshold_ns, selection);
        Self {
            config,
            threads: Vec::new(),
            of: HashMap::new(),
            waiting_for_cpu: HashMap::new(),
            wakers: Wakers::default(),
            futexes: Futexes::default(),
            threads_not_followed: 0,
            ended_dropped: 0,
            policies_set: Vec::new(),
        }
    }

    /// Tells cycles apart by system calls: the trace contains those that can wait. Otherwise every sleep ends a cycle.
    pub fn expect_calls(&mut self) {
        self.config.knows_calls = true;
    }

    /// Sets the CPU time of a page fault that waits for nothing, ns.
    pub fn set_fault_time(&mut self, fault_ns: u64) {
        self.config.fault_ns = fault_ns;
    }

    /// Sets how far other clocks are ahead of CLOCK_MONOTONIC, to know when sleeps on them end.
    pub fn set_clocks(&mut self, offsets: ClockOffsets) {
        self.config.clocks = offsets;
    }

    /// Adds a reading of the time for which the CPU quota of the program's control group stopped threads, ns since the
    /// group was created. `at_ns` is the time of the reading on CLOCK_MONOTONIC, before that of later events.
    pub fn note_quota(&mut self, at_ns: u64, stopped_ns: u64) {
        self.config.quota.add(at_ns, stopped_ns);
    }

    /// Adds a reading of the state of a process: true if its control group is frozen. `at_ns` is the time of the reading
    /// on CLOCK_MONOTONIC, before that of later events.
    pub fn note_freeze(&mut self, process: u32, at_ns: u64, is_frozen: bool) {
        self.config.freezes.add(process, at_ns, is_frozen);
    }

    /// About how long the control group of a process was frozen, ns: the longest time of all processes.
    #[must_use]
    pub fn frozen_ns(&self) -> u64 {
        self.config.freezes.longest_ns()
    }

    /// Sets the relative deadline of a thread's policy, ns; `None` for other policies.
    pub fn set_deadline(&mut self, tid: u32, deadline_ns: Option<u64>) {
        if let Some((thread, _)) = self.thread(tid) {
            thread.set_deadline(deadline_ns);
        }
    }

    /// Sets the process of a thread, and whether its system calls have other numbers than those of this program, as in a
    /// 32-bit program on a 64-bit kernel. Without its calls, every sleep ends a cycle.
    pub fn set_process(&mut self, tid: u32, process: u32, has_other_calls: bool) {
        if let Some((thread, _)) = self.thread(tid) {
            thread.set_process(process, has_other_calls);
        }
    }

    /// Sets the priority of a thread as the kernel counts, without one that it inherits from a thread that waits for it.
    pub fn set_own_priority(&mut self, tid: u32, priority: i32) {
        if let Some((thread, _)) = self.thread(tid) {
            thread.set_own_priority(priority);
        }
    }

    /// Takes the ids of the threads whose policy a system call has set.
    pub fn take_policies_set(&mut self) -> Vec<u32> {
        mem::take(&mut self.policies_set)
    }

    /// Adds ids of threads of punctual, whose CPU time is an overhead of the measurement.
    pub fn note_own_threads(&mut self, tids: impl IntoIterator<Item = u32>) {
        self.config.own_threads.extend(tids);
    }

    /// Follows a thread from the start of the run, or from `since_ns` on CLOCK_MONOTONIC if that is later.
    pub fn follow(&mut self, info: ThreadInfo, since_ns: u64) {
        if let Some(&before) = self.of.get(&info.tid) {
            self.threads[before].replaced(since_ns);
        }
        let thread = Thread::new(info, since_ns.max(self.config.start_ns), &self.config);
        if self.threads.len() < THREADS_FOLLOWED {
            self.of.insert(info.tid, self.threads.len());
            self.threads.push(thread);
        } else if let Some(index) = self.least_ended() {
            let ended = mem::replace(&mut self.threads[index], thread);
            self.of.retain(|&tid, &mut known| tid != ended.tid() || known != index);
            self.of.insert(info.tid, index);
            self.ended_dropped += u64::from(ended.is_selected() && ended.was_active());
        } else {
            self.threads_not_followed += 1;
        }
    }

    /// The ended thread whose figures are of least interest.
    fn least_ended(&self) -> Option<usize> {
        let ended = (0..self.threads.len()).filter(|&index| self.threads[index].has_ended());
        ended.min_by_key(|&index| self.threads[index].interest())
    }

    /// True if a thread with this id is followed.
    #[must_use]
    pub fn follows(&self, tid: u32) -> bool {
        self.of.contains_key(&tid)
    }

    /// Handles an event. An event that is older than the previous one counts at the time of the previous one.
    pub fn handle_event(&mut self, event: &Event) {
        let Event { at_ns, cpu, pid, kind } = *event;
        match kind {
            EventKind::Switch { from, prev_state, to } => {
                if let Some((thread, config)) = self.thread(from.pid) {
                    thread.switched_out(at_ns, cpu, from, (prev_state, to), config);
                }
                self.change_rivals(at_ns, cpu, from, to);
                self.note_waiting(from.pid);
                if let Some((thread, config)) = self.thread(to.pid) {
                    thread.switched_in(at_ns, cpu, to, from, config);
                }
            }
            EventKind::Waking { task, .. } => {
                let by = self.woken_by(task.pid, pid, at_ns);
                if let Some((thread, config)) = self.thread(task.pid) {
                    thread.woken(at_ns, task, &by, config);
                }
                self.judge_lock(task.pid, &by);
                match self.waking_thread(pid) {
                    Some(_) => self.wakers.note(task.pid, pid, at_ns),
                    None => self.wakers.forget(task.pid),
                }
                self.note_waiting(task.pid);
            }
            EventKind::Fork { child } => {
                if let Some(&parent) = self.of.get(&pid) {
                    let comm = self.threads[parent].comm();
                    self.follow(ThreadInfo { tid: child, comm, asleep: true }, at_ns);
                    if let Some((thread, _)) = self.thread(child) {
                        thread.set_parent(pid);
                    }
                }
            }
            EventKind::MonitorReport { monitor, tid } => {
                if let Some((thread, config)) = self.thread(tid) {
                    thread.is_reported(at_ns, monitor, config);
                }
            }
            EventKind::Exit => {
                if let Some((thread, _)) = self.thread(pid) {
                    thread.note_exit();
                }
            }
            EventKind::Exec => self.take_over(at_ns, cpu, pid),
            _ => self.handle_event_of_running(at_ns, pid, kind),
        }
    }

    /// Follows the thread that executes a program. If it was not the first thread of its process, it has the id of that
    /// one from now on, and the first thread has ended.
    fn take_over(&mut self, at_ns: u64, cpu: u32, pid: u32) {
        let Some(first) = self.followed(pid).filter(|first| first.is_ending()) else { return };
        let (comm, process, has_other_calls) = (first.comm(), first.process(), first.has_other_calls());
        if let Some(before) = self.threads.iter_mut().find(|thread| thread.process() == process && thread.runs_on(cpu))
        {
            before.replaced(at_ns);
        }
        self.follow(ThreadInfo { tid: pid, comm, asleep: false }, at_ns);
        if let Some(process) = process {
            self.set_process(pid, process, has_other_calls);
        }
    }

    /// Handles an event of the thread on the CPU.
    fn handle_event_of_running(&mut self, at_ns: u64, pid: u32, kind: EventKind) {
        if let EventKind::CallEntry { call, arguments } = kind {
            return self.handle_call(at_ns, pid, call, arguments);
        }
        let Some((thread, config)) = self.thread(pid) else { return };
        match kind {
            EventKind::Mark { begins } => thread.is_at_mark(at_ns, begins, config),
            EventKind::CallExit { .. } => thread.leaves(at_ns, config),
            EventKind::TimerStart { expires_ns, latest_ns, .. } => {
                thread.starts_timer(at_ns, [expires_ns, latest_ns], config);
            }
            EventKind::FdTimerStart { timer, expires_ns } => thread.starts_fd_timer(at_ns, timer, expires_ns, config),
            EventKind::PageFault { .. } => thread.faults(at_ns, config),
            EventKind::SignalDelivered { handled, .. } => thread.receives_signal(at_ns, handled),
            EventKind::BlockRequest => thread.requests_disk(),
            EventKind::LockWait { lock } => thread.contends(Some(Lock::of_kernel(lock))),
            EventKind::LockWaitEnd { .. } => thread.contends(None),
            _ => {}
        }
    }

    /// Handles the entry of a thread into a system call.
    fn handle_call(&mut self, at_ns: u64, pid: u32, number: u32, arguments: [u64; 3]) {
        let Some(&index) = self.of.get(&pid) else { return };
        let thread = &mut self.threads[index];
        if thread.has_other_calls() {
            return;
        }
        let process = thread.process();
        let call = Call::of(number, arguments).in_process(process);
        let (call, finding) = self.futexes.correct(process, pid, call, thread.cpu_ns(at_ns));
        thread.enters(at_ns, InCall::new(number, call, arguments), &self.config);
        if let Finding::NoLock { address } = finding {
            self.forget_lock(process, address);
        }
        if let Call::SetPolicy { tid } = call {
            self.note_policy_set(pid, tid);
        }
    }

    /// Drops the waits of a process at a futex word that turned out to be no lock.
    fn forget_lock(&mut self, process: Option<u32>, address: u64) {
        let same_process = self.threads.iter_mut().filter(|thread| thread.process() == process);
        same_process.for_each(|thread| thread.forget_lock(address));
    }

    /// Checks if the futex word that a thread waited for is a lock.
    fn judge_lock(&mut self, tid: u32, by: &WokenBy) {
        let Some(wait) = &by.lock else { return };
        let Some((thread, _)) = self.thread(tid) else { return };
        let (process, address) = (thread.process(), wait.lock.address);
        if thread.waits_for_sleeper(wait) && self.futexes.note_other((process, address)) {
            self.forget_lock(process, address);
        }
    }

    /// Handles a system call of the thread `by` that sets the policy of the thread `tid`; 0 is the calling thread.
    fn note_policy_set(&mut self, by: u32, tid: u64) {
        let tid = if tid == 0 { Some(by) } else { u32::try_from(tid).ok() };
        match tid.and_then(|tid| self.of.get(&tid)) {
            Some(&index) => {
                let thread = &mut self.threads[index];
                thread.policy_was_set();
                if !self.policies_set.contains(&thread.tid()) {
                    self.policies_set.push(thread.tid());
                }
            }
            // In another namespace of process ids, any thread that the caller started can have this id.
            None => {
                let started = self.threads.iter_mut().filter(|thread| thread.was_started_by(by));
                started.for_each(Thread::policy_was_set);
            }
        }
    }

    /// Tells the threads that wait for a CPU that another one has it now.
    fn change_rivals(&mut self, at_ns: u64, cpu: u32, from: Task, to: Task) {
        let Some(waiting) = self.waiting_for_cpu.get_mut(&cpu) else { return };
        let threads = &mut self.threads;
        waiting.retain(|&index| threads[index].tid() != to.pid && threads[index].rival_changes(at_ns, cpu, from, to));
    }

    /// Notes the CPU that a thread waits for, if it does.
    fn note_waiting(&mut self, tid: u32) {
        let Some(&index) = self.of.get(&tid) else { return };
        let Some(cpu) = self.threads[index].waits_for_cpu() else { return };
        let waiting = self.waiting_for_cpu.entry(cpu).or_default();
        if !waiting.contains(&index) {
            waiting.push(index);
        }
    }

    /// What ends the wait of a thread: `waker` is on the CPU that wakes it.
    fn woken_by(&self, tid: u32, waker: u32, at_ns: u64) -> WokenBy {
        let Some(thread) = self.followed(tid) else { return WokenBy::default() };
        let Some(waiting) = thread.waits_for_lock() else {
            let asked = |since_ns| self.wakers.have_asked(tid, waker, since_ns);
            let is_interrupt = self.followed(waker).is_some_and(|waker| !waker.is_in_call());
            let is_answer = !is_interrupt && thread.cycle_begun_ns().is_some_and(asked);
            return WokenBy { task: self.waking_thread(waker).map(Thread::task), lock: None, is_answer };
        };
        let waker = self.followed(waker).filter(|waker| waker.releases_lock(waiting.lock));
        let holder = |tid, from_ns, to_ns| Some(self.followed(tid)?.as_holder(from_ns, to_ns));
        let wait = Wait::explain(waiting, at_ns, waker.map(Thread::tid), &holder);
        WokenBy { task: waker.map(Thread::task), lock: Some(wait), is_answer: false }
    }

    /// The thread on a CPU that wakes others. Outside a system call, an interrupt on its CPU wakes them.
    fn waking_thread(&self, tid: u32) -> Option<&Thread> {
        self.followed(tid).filter(|thread| thread.is_in_call())
    }

    fn followed(&self, tid: u32) -> Option<&Thread> {
        Some(&self.threads[*self.of.get(&tid)?])
    }

    /// Marks the time between these points (ns on CLOCK_MONOTONIC) as unknown, because events are missing.
    pub fn lost(&mut self, from_ns: u64, to_ns: u64) {
        for thread in &mut self.threads {
            thread.lost(from_ns, to_ns, &self.config);
        }
    }

    fn thread(&mut self, tid: u32) -> Option<(&mut Thread, &RunConfig)> {
        Some((&mut self.threads[*self.of.get(&tid)?], &self.config))
    }

    /// Ids of the threads that have not ended.
    pub fn living(&self) -> impl Iterator<Item = u32> + '_ {
        self.threads.iter().filter(|thread| !thread.has_ended()).map(Thread::tid)
    }

    /// The selected threads that have not ended, each on its last CPU. Their next spikes may need events.
    #[must_use]
    pub fn measured_threads(&self) -> Vec<MeasuredThread> {
        let selected = self.threads.iter().filter(|thread| thread.is_selected() && !thread.has_ended());
        selected.filter_map(|thread| thread.measured_thread(&self.config)).collect()
    }

    /// Moves the new spikes to the kept ones; only the worst are kept.
    pub fn keep_spikes(&mut self) {
        self.threads.iter_mut().for_each(Thread::keep_spikes);
    }

    /// The spikes since [`keep_spikes`](Self::keep_spikes), by thread and by the CPU that it woke on, in order of time.
    /// Their times count from the start of the run. The caller may explain them.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (MeasuredThread, &mut [Spike])> {
        let config = &self.config;
        self.threads.iter_mut().flat_map(|thread| thread.fresh_spikes(config))
    }

    /// The figures of each selected thread that ran, as of `now_ns`. The role is the name of its command, followed by
    /// its id if several threads have that name.
    #[must_use]
    pub fn series(&self, phase: &str, now_ns: u64) -> Vec<Series> {
        let with_series: Vec<&Thread> = self.with_series().collect();
        let mut names = HashSet::new();
        let twice: HashSet<Comm> = with_series.iter().map(|t| t.comm()).filter(|&comm| !names.insert(comm)).collect();
        let series = |thread: &&Thread| {
            let (comm, tid) = (thread.comm(), thread.tid());
            let role = if twice.contains(&comm) { format!("{comm}/{tid}") } else { comm.to_string() };
            let parent = thread.has_policy_from().and_then(|tid| self.followed(tid));
            let parent = parent.map(|parent| format!("{}/{}", parent.comm(), parent.tid()));
            Series { phase: phase.to_owned(), role, ..thread.series(now_ns, parent, &self.config) }
        };
        with_series.iter().map(series).collect()
    }

    /// The threads that have a series.
    fn with_series(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| thread.is_selected() && thread.was_active())
    }

    /// Number of threads without a series: they only slept, or were not selected.
    #[must_use]
    pub fn threads_without_series(&self) -> u64 {
        (self.threads.len() - self.with_series().count()) as u64
    }

    /// The names and ids in the selection without a thread that ran.
    #[must_use]
    pub fn unmatched(&self) -> Vec<&Pattern> {
        let is_matched =
            |pattern: &Pattern| self.with_series().any(|thread| pattern.matches(thread.tid(), thread.selected_as()));
        self.config.selection.patterns().filter(|pattern| !is_matched(pattern)).collect()
    }

    /// The names of the threads that ran, each once.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let ran = self.threads.iter().filter(|thread| thread.was_active());
        let names: BTreeSet<String> = ran.map(|thread| thread.comm().to_string()).collect();
        names.into_iter().collect()
    }

    /// Number of ended threads without figures, because there were too many. Those of the others are larger.
    #[must_use]
    pub fn ended_threads_dropped(&self) -> u64 {
        self.ended_dropped
    }

    /// Number of threads that were not followed because as many as the limit lived.
    #[must_use]
    pub fn threads_not_followed(&self) -> u64 {
        self.threads_not_followed
    }
}
