//! The threads that have the CPU that a thread waits for.

use std::mem;

use crate::Task;

/// The threads that have the CPU that a thread waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct Rivals {
    /// The CPU that it waits for; `None` if it is unknown.
    pub cpu: Option<u32>,
    /// The thread that has it now; `None` if it is unknown.
    pub now: Option<Task>,
    /// Priority of the waiting thread at the start of its wait, because something may raise it meanwhile.
    pub priority: i32,
    /// Each of them with its time so far, ns, in the order in which they got the CPU.
    so_far: Vec<(Task, u64)>,
}

impl Rivals {
    /// Begins a wait of a thread with this priority for this CPU, which `now` has.
    pub fn of(cpu: Option<u32>, now: Option<Task>, priority: i32) -> Self {
        Self { cpu, now, priority, so_far: Vec::new() }
    }

    /// Adds a time that a thread had the CPU.
    pub fn add(&mut self, rival: Task, ns: u64) {
        match self.so_far.iter_mut().find(|(task, _)| task.pid == rival.pid) {
            Some((_, sum_ns)) => *sum_ns += ns,
            None => self.so_far.push((rival, ns)),
        }
    }

    /// Ends the wait. Returns the threads with their times, ns, also if the thread got another CPU than it waited for.
    pub fn take(&mut self) -> Vec<(Task, u64)> {
        mem::take(self).so_far
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Comm;

    #[test]
    fn each_thread_has_its_own_time() {
        let task = |pid| Task { pid, priority: 120, comm: Comm::new("x") };
        let mut rivals = Rivals::of(Some(1), None, 120);
        [(1, 10), (2, 20), (1, 30)].into_iter().for_each(|(pid, ns)| rivals.add(task(pid), ns));
        assert_eq!(rivals.take(), [(task(1), 40), (task(2), 20)]);
        assert_eq!(rivals.take(), []);
    }
}
