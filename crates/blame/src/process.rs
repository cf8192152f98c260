//! Scheduling statistics of a program's threads, from trace events.
//!
//! Pure functions of events: no system calls, and no event is kept.
//!
//! | module | contents |
//! |---|---|
//! | `thread` | the state of one thread, and the sums of its times |
//! | `cycles` | from wake-up to sleep: run times, response times, deadlines |
//! | `preempters` | the threads that preempted it |
//! | `wakeups` | wake-up latencies and their spikes |
//! | [`selection`] | the threads to report, and their periods |

mod cycles;
mod preempters;
pub mod selection;
#[cfg(test)]
mod tests;
mod thread;
mod wakeups;

use std::collections::{HashMap, HashSet};

use record::{Series, Spike, THREADS_FOLLOWED};

use crate::{Comm, Event, EventKind, MeasuredThread};
use selection::RunConfig;
pub use selection::{Pattern, Selection};
use thread::Thread;
pub use thread::ThreadInfo;

/// The threads of a program.
#[derive(Debug, Clone)]
pub struct Process {
    config: RunConfig,
    threads: Vec<Thread>,
    /// Index of the latest thread with each id.
    of: HashMap<u32, usize>,
    threads_not_followed: u64,
}

impl Process {
    /// Creates statistics without threads. `start_ns` is the start of the run on CLOCK_MONOTONIC; earlier events are
    /// not counted.
    #[must_use]
    pub fn new(start_ns: u64, threshold_ns: u64, selection: Selection) -> Self {
        let config = RunConfig { start_ns, threshold_ns, selection };
        Self { config, threads: Vec::new(), of: HashMap::new(), threads_not_followed: 0 }
    }

    /// Follows a thread from the start of the run, or from `since_ns` on CLOCK_MONOTONIC if that is later.
    pub fn follow(&mut self, info: ThreadInfo, since_ns: u64) {
        if self.threads.len() >= THREADS_FOLLOWED {
            self.threads_not_followed += 1;
            return;
        }
        if let Some(before) = self.of.insert(info.tid, self.threads.len()) {
            self.threads[before].replaced(since_ns);
        }
        self.threads.push(Thread::new(info, since_ns.max(self.config.start_ns), &self.config));
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
                if let Some((thread, config)) = self.thread(to.pid) {
                    thread.switched_in(at_ns, cpu, to, config);
                }
            }
            EventKind::Waking { task, .. } => {
                if let Some((thread, config)) = self.thread(task.pid) {
                    thread.woken(at_ns, task, config);
                }
            }
            EventKind::Fork { child } => {
                if let Some(&parent) = self.of.get(&pid) {
                    let comm = self.threads[parent].comm();
                    self.follow(ThreadInfo { tid: child, comm, asleep: true }, at_ns);
                }
            }
            EventKind::Exit => {
                if let Some((thread, _)) = self.thread(pid) {
                    thread.note_exit();
                }
            }
            _ => {}
        }
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
        selected.filter_map(Thread::measured_thread).collect()
    }

    /// Moves the new spikes to the kept ones; only the worst are kept.
    pub fn keep_spikes(&mut self) {
        self.threads.iter_mut().for_each(Thread::keep_spikes);
    }

    /// The spikes since [`keep_spikes`](Self::keep_spikes), by thread and by the CPU that it woke on, in order of time.
    /// Their times count from the start of the run. The caller may explain them.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (MeasuredThread, &mut [Spike])> {
        self.threads.iter_mut().flat_map(Thread::fresh_spikes)
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
            Series { phase: phase.to_owned(), role, ..thread.series(now_ns, &self.config) }
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

    /// Number of threads that were not followed because the limit was reached.
    #[must_use]
    pub fn threads_not_followed(&self) -> u64 {
        self.threads_not_followed
    }
}
