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

use crate::{Comm, Event, Waiter, What};
pub use selection::{Pattern, Selection};
use thread::Thread;

/// What is the same for all threads.
#[derive(Debug, Clone)]
struct Rules {
    /// When the run began, ns on CLOCK_MONOTONIC.
    start_ns: u64,
    /// A wake-up latency above this is a spike, ns.
    threshold_ns: u64,
    selection: Selection,
}

/// The threads of a program, as far as their events were taken in.
#[derive(Debug, Clone)]
pub struct Process {
    rules: Rules,
    threads: Vec<Thread>,
    /// By thread id; the last one of those that had it.
    of: HashMap<u32, usize>,
    left_out: u64,
}

/// What is known of a thread when it is first followed.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its thread id.
    pub tid: u32,
    /// Name of its command.
    pub comm: Comm,
    /// Whether it slept then. This says what it did if no event does.
    pub asleep: bool,
}

impl Process {
    /// No thread yet. `start_ns` is the begin of the run on CLOCK_MONOTONIC; events before it are not counted.
    #[must_use]
    pub fn new(start_ns: u64, threshold_ns: u64, selection: Selection) -> Self {
        let rules = Rules { start_ns, threshold_ns, selection };
        Self { rules, threads: Vec::new(), of: HashMap::new(), left_out: 0 }
    }

    /// Follows a thread from the begin of the run on, or from `since_ns` on CLOCK_MONOTONIC if that is later.
    pub fn follow(&mut self, known: Known, since_ns: u64) {
        if self.threads.len() >= THREADS_FOLLOWED {
            self.left_out += 1;
            return;
        }
        if let Some(before) = self.of.insert(known.tid, self.threads.len()) {
            self.threads[before].is_gone(since_ns);
        }
        self.threads.push(Thread::new(known, since_ns.max(self.rules.start_ns), &self.rules));
    }

    /// Whether a thread of this id is followed.
    #[must_use]
    pub fn follows(&self, tid: u32) -> bool {
        self.of.contains_key(&tid)
    }

    /// Takes in an event. Events come in order of time; one that is out of order counts as if it came at the time reached.
    pub fn take(&mut self, event: &Event) {
        let Event { at_ns, cpu, pid, what } = *event;
        match what {
            What::Switch { from, left, to } => {
                if let Some((thread, rules)) = self.thread(from.pid) {
                    thread.switched_out(at_ns, cpu, from, (left, to), rules);
                }
                if let Some((thread, rules)) = self.thread(to.pid) {
                    thread.switched_in(at_ns, cpu, to, rules);
                }
            }
            What::Waking { task, .. } => {
                if let Some((thread, rules)) = self.thread(task.pid) {
                    thread.woken(at_ns, task, rules);
                }
            }
            What::Fork { child } => {
                if let Some(&parent) = self.of.get(&pid) {
                    let comm = self.threads[parent].comm();
                    self.follow(Known { tid: child, comm, asleep: true }, at_ns);
                }
            }
            What::Exit => {
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
            thread.lost(from_ns, to_ns, &self.rules);
        }
    }

    fn thread(&mut self, tid: u32) -> Option<(&mut Thread, &Rules)> {
        Some((&mut self.threads[*self.of.get(&tid)?], &self.rules))
    }

    /// The threads that have not ended, by their ids.
    pub fn living(&self) -> impl Iterator<Item = u32> + '_ {
        self.threads.iter().filter(|thread| !thread.has_ended()).map(Thread::tid)
    }

    /// The threads that are asked for and have not ended, each where it ran last, to keep events for their spikes.
    #[must_use]
    pub fn waiters(&self) -> Vec<Waiter> {
        let asked = self.threads.iter().filter(|thread| thread.is_asked_for() && !thread.has_ended());
        asked.filter_map(Thread::waiter).collect()
    }

    /// Keeps the worst of the fresh spikes as they are now.
    pub fn keep_spikes(&mut self) {
        self.threads.iter_mut().for_each(Thread::keep_spikes);
    }

    /// The spikes since [`keep_spikes`](Self::keep_spikes), by the thread and the CPU that it woke on, in order of time;
    /// for others to explain. They count from the begin of the run.
    pub fn fresh_spikes(&mut self) -> impl Iterator<Item = (Waiter, &mut [Spike])> {
        self.threads.iter_mut().flat_map(Thread::fresh_spikes)
    }

    /// The figures of each thread that is asked for and did something, as they are at `now_ns`. The role is the name of
    /// its command, with its id where others have the same name.
    #[must_use]
    pub fn series(&self, phase: &str, now_ns: u64) -> Vec<Series> {
        let told: Vec<&Thread> = self.told().collect();
        let mut names = HashSet::new();
        let twice: HashSet<Comm> = told.iter().map(|t| t.comm()).filter(|&comm| !names.insert(comm)).collect();
        let series = |thread: &&Thread| {
            let (comm, tid) = (thread.comm(), thread.tid());
            let role = if twice.contains(&comm) { format!("{comm}/{tid}") } else { comm.to_string() };
            Series { phase: phase.to_owned(), role, ..thread.series(now_ns, &self.rules) }
        };
        told.iter().map(series).collect()
    }

    /// The threads that have a series.
    fn told(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| thread.is_asked_for() && thread.did_something())
    }

    /// How many threads have no series: they slept all the time, or were not asked for.
    #[must_use]
    pub fn others(&self) -> u64 {
        (self.threads.len() - self.told().count()) as u64
    }

    /// How many threads came after so many that they were not followed.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}
