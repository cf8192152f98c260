//! The threads that preempted a thread, and how long it waited then.

use std::cmp::Reverse;

use record::{PREEMPTERS_KEPT, Preempter};

use super::selection::RunConfig;
use crate::{Comm, Task};

/// Maximum number of distinct names; all further names are counted as one.
const NAMES: usize = 64;

/// The threads that preempted another one.
#[derive(Debug, Clone, Default)]
pub(super) struct Preempters {
    all: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    task: Task,
    count: u64,
    waited_ns: u64,
}

impl Preempters {
    /// Adds a preemption by `by`.
    pub fn add(&mut self, by: Task) {
        let index = self.index_of(by);
        let entry = &mut self.all[index];
        (entry.task.pid, entry.task.priority) = (by.pid, by.priority);
        entry.count += 1;
    }

    /// Index of a thread's entry, which is added if it is new.
    fn index_of(&mut self, by: Task) -> usize {
        // Each CPU's idle thread has another name.
        let by = if by.pid == 0 { Task { comm: Comm::new("idle"), ..by } } else { by };
        let known = self.all.iter().position(|entry| entry.task.comm == by.comm);
        known.unwrap_or_else(|| {
            let task = if self.all.len() + 1 < NAMES { by } else { Task { comm: Comm::new("others"), ..by } };
            if self.all.len() < NAMES {
                self.all.push(Entry { task, count: 0, waited_ns: 0 });
            }
            self.all.len() - 1
        })
    }

    /// Adds time in which `by` had the CPU after a preemption, by it or by another thread.
    pub fn add_waiting(&mut self, by: Task, ns: u64) {
        let index = self.index_of(by);
        self.all[index].waited_ns += ns;
    }

    /// The threads with the longest waiting time, the longest first.
    pub fn to_record(&self, config: &RunConfig) -> Vec<Preempter> {
        let mut all = self.all.clone();
        all.sort_by_key(|entry| Reverse((entry.waited_ns, entry.count)));
        let to_record = |entry: &Entry| Preempter {
            comm: entry.task.comm.to_string(),
            tid: entry.task.pid,
            priority: entry.task.priority,
            own: config.is_own(entry.task.pid),
            count: entry.count,
            waited_ns: entry.waited_ns,
        };
        all.iter().take(PREEMPTERS_KEPT).map(to_record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;

    fn config() -> RunConfig {
        RunConfig::new(0, 0, Selection::default())
    }

    #[test]
    fn sorts_by_waiting_time_and_bounds_names() {
        let mut preempters = Preempters::default();
        for number in 0..200 {
            let by = Task { pid: number + 1, priority: 120, comm: Comm::new(&format!("t{number}")) };
            preempters.add(by);
            preempters.add_waiting(by, u64::from(number));
        }
        assert_eq!(preempters.all.len(), NAMES);
        let to_record = preempters.to_record(&config());
        assert_eq!(to_record.len(), PREEMPTERS_KEPT);
        assert_eq!((to_record[0].comm.as_str(), to_record[0].count), ("others", 137));
        assert_eq!((to_record[1].comm.as_str(), to_record[1].waited_ns), ("t62", 62));
        let all: u64 = preempters.all.iter().map(|entry| entry.waited_ns).sum();
        assert_eq!(all, (0..200).sum::<u64>());
    }

    #[test]
    fn idle_threads_are_counted_as_one() {
        let mut preempters = Preempters::default();
        for cpu in 0..3 {
            preempters.add(Task { pid: 0, priority: 120, comm: Comm::new(&format!("swapper/{cpu}")) });
        }
        let [idle] = &preempters.to_record(&config())[..] else { panic!("{preempters:?}") };
        assert_eq!((idle.comm.as_str(), idle.tid, idle.count), ("idle", 0, 3));
    }
}
