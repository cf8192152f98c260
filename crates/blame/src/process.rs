//! What the scheduler did with the threads of a program: its trace events in, figures of each thread out.
//!
//! Nothing here knows an operating system, and no event is kept: each is taken in as it comes.
//!
//! | module | holds |
//! |---|---|
//! | `thread` | what one thread was at, and how its time adds up; its figures |
//! | `cycles` | from being woken to going to sleep again: run times, response times, deadlines |
//! | `preempters` | who took the CPU from a thread |
//! | `wakeups` | wake-up latencies, and those to be explained |
//! | [`selection`] | which threads are asked for, and their periods |

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

/// The threads of a program, as far as their events were taken in.
#[derive(Debug, Clone)]
pub struct Process {
    config: RunConfig,
    threads: Vec<Thread>,
    /// By thread id; the last one of those that had it.
    of: HashMap<u32, usize>,
    threads_not_followed: u64,
}

impl Process {
    /// No thread yet. `start_ns` is the begin of the run on CLOCK_MONOTONIC; events before it are not counted.
    #[must_use]
    pub fn new(start_ns: u64, threshold_ns: u64, selection: Selection) -> Self {
        let config = RunConfig { start_ns, threshold_ns, selection };
        Self { config, threads: Vec::new(), of: HashMap::new(), threads_not_followed: 0 }
    }

    /// Follows a thread from the begin of the run on, or from `since_ns` on CLOCK_MONOTONIC if that is later.
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

    /// Whether a thread of this id is followed.
    #[must_use]
    pub fn follows(&self, tid: u32) -> bool {
        self.of.contains_key(&tid)
    }

    /// Takes in an event. Events come in order of time; one that is out of order counts as if it came at the time reached.
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
                    thread.exits();
                }
            }
            _ => {}
        }
    }

    /// Notes that events between these times (ns on CLOCK_MONOTONIC) are missing: what any thread did then is not known.
    pub fn lost(&mut self, from_ns: u64, to_ns: u64) {
        for thread in &mut self.threads {
            thread.lost(from_ns, to_ns, &self.config);
        }
    }

    fn thread(&mut self, tid: u32) -> Option<(&mut Thread, &RunConfig)> {
        Some((&mut self.threads[*self.of.get(&tid)?], &self.config))
    }

    /// The threads that have not ended, by their ids.
    pub fn living(&self) -> impl Iterator<Item = u32> + '_ {
        self.threads.iter().filter(|thread| !thread.has_ended()).map(Thread::tid)
    }

    /// The threads that are asked for and have not ended, each where it ran last, to keep events for their spikes.
    #[must_use]
    pub fn measured_threads(&self) -> Vec<MeasuredThread> {
        let asked = self.threads.iter().filter(|thread| thread.is_selected() && !thread.has_ended());
        asked.filter_map(Thread::measured_thread).collect()
    }

    /// Keeps the worst of the fresh spikes as they are now.
    pub fn keep_spikes(&mut self) {
        self.threads.iter_mut().for_each(Thread::keep_spikes);
    }

    /// The spikes since [`keep_spikes`](Self::keep_spikes), by the thread and the CPU that it woke on, in order of time;
    /// for others to explain. They count from the begin of the run.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (MeasuredThread, &mut [Spike])> {
        self.threads.iter_mut().flat_map(Thread::fresh_spikes)
    }

    /// The figures of each thread that is asked for and did something, as they are at `now_ns`. The role is the name of
    /// its command, with its id where others have the same name.
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

    /// How many threads have no series: they slept all the time, or were not asked for.
    #[must_use]
    pub fn threads_without_series(&self) -> u64 {
        (self.threads.len() - self.with_series().count()) as u64
    }

    /// How many threads came after so many that they were not followed.
    #[must_use]
    pub fn threads_not_followed(&self) -> u64 {
        self.threads_not_followed
    }
}
