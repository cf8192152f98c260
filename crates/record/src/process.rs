//! A user's own program: what the scheduler did with each of its threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram};

/// The program that was watched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its process id.
    pub pid: u32,
    /// Its command line; of a kernel thread its name.
    pub command: String,
    /// Whether it was started for the run; else it ran before.
    #[serde(default)]
    pub started: bool,
    /// Its exit status; absent when it did not end by itself, or when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether it ended during the run.
    #[serde(default)]
    pub ended: bool,
    /// Trace events of it that were read.
    pub events: u64,
    /// Trace events of it that the kernel overwrote before they were read: figures are incomplete unless 0.
    pub lost_events: u64,
    /// Threads of it that slept all the time, or were not asked for; they have no series.
    #[serde(default)]
    pub other_threads: u64,
    /// Threads beyond the first [`THREADS_FOLLOWED`], which were not looked at.
    #[serde(default)]
    pub threads_left_out: u64,
    /// CPU time that punctual itself took meanwhile, ns.
    #[serde(default)]
    pub own_cpu_ns: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How many threads of a program are followed.
pub const THREADS_FOLLOWED: usize = 1024;

/// What the scheduler did with one thread of a program, beside its wake-up latency, which is what its series holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessThread {
    /// Its process id (that of the thread).
    pub tid: u32,
    /// Name of its command, as seen last.
    pub comm: String,
    /// Its priority as seen last, as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus it), 100 to 139
    /// ordinary. With priority inheritance it may be that of another thread.
    pub priority: i32,
    /// What it did with its time.
    pub times: ThreadTimes,
    /// Cycles that were seen from their begin to their end.
    pub cycles: u64,
    /// Run time of each cycle.
    pub run_time: Histogram,
    /// Response time of each cycle: from being woken to going to sleep again.
    pub response: Histogram,
    /// Time between the begins of two cycles that follow on each other.
    pub interval: Histogram,
    /// The cycle with the longest response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<Cycle>,
    /// Cycles whose response time was longer than the period; 0 without one.
    #[serde(default)]
    pub overruns: u64,
    /// Of those, by what took the largest part of them; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun_by: Option<Overruns>,
    /// Cycles that did not come: they would have begun in intervals of more than one and a half periods.
    #[serde(default)]
    pub skipped: u64,
    /// How often it lost its CPU while it could have run on.
    pub preemptions: u64,
    /// How long it waited for a CPU after each of them.
    pub preempted: Histogram,
    /// By whom, the one that cost most first; at most [`PREEMPTERS_KEPT`].
    #[serde(default)]
    pub preempted_by: Vec<Preempter>,
    /// How often it went on on another CPU.
    pub migrations: u64,
    /// CPUs that it ran on, as the kernel writes a list.
    pub cpus: String,
    /// Cycles that were cut off, because events were lost or the thread was not seen from their begin.
    #[serde(default)]
    pub cycles_cut: u64,
    /// Whether it ended during the run.
    #[serde(default)]
    pub ended: bool,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How many preempters a thread keeps.
pub const PREEMPTERS_KEPT: usize = 8;

/// What a thread did with its time. All parts add up to the time for which it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTimes {
    /// It had a CPU, interrupts included, ns.
    pub running_ns: u64,
    /// It was woken, and had no CPU yet, ns.
    pub ready_ns: u64,
    /// It was preempted, and had no CPU again yet, ns.
    pub preempted_ns: u64,
    /// It slept, or waited for something else than a CPU, ns.
    pub blocked_ns: u64,
    /// Events were lost, or none told what it did, ns.
    pub unknown_ns: u64,
}

/// One cycle of a thread: from being woken to going to sleep again. Its times add up to its response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cycle {
    /// When it began, ns after the run began.
    pub at_ns: u64,
    /// Where its time went. Blocked here means: it waited inside the cycle for a page, a device or a lock of the kernel, or was
    /// stopped.
    pub times: ThreadTimes,
}

/// Cycles that were longer than the period, by what took the largest part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overruns {
    /// The thread's own work.
    pub by_work: u64,
    /// Waiting for a CPU, woken or preempted.
    pub by_waiting: u64,
    /// Waiting for something else.
    pub by_blocking: u64,
}

/// A thread that took the CPU from another one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Preempter {
    /// Name of its command.
    pub comm: String,
    /// Its process id (that of the thread), the last one of this name; 0 for the idle thread: no thread was to run.
    pub tid: u32,
    /// Its priority as the kernel counts.
    pub priority: i32,
    /// How often.
    pub count: u64,
    /// How long the other one then waited for a CPU, all told, ns.
    pub waited_ns: u64,
}

impl ThreadTimes {
    /// All of it, ns: the time for which the thread was observed.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let Self { running_ns, ready_ns, preempted_ns, blocked_ns, unknown_ns } = *self;
        [ready_ns, preempted_ns, blocked_ns, unknown_ns].iter().fold(running_ns, |sum, ns| sum.saturating_add(*ns))
    }

    /// How long the thread waited for a CPU, ns.
    #[must_use]
    pub fn waiting_ns(&self) -> u64 {
        self.ready_ns.saturating_add(self.preempted_ns)
    }
}

impl Cycle {
    /// From being woken to going to sleep again, ns.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.times.total_ns()
    }
}
