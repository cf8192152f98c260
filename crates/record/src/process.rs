//! A user's own program: what its threads did, according to the scheduler.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram};

/// The watched program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Process id.
    pub pid: u32,
    /// Command line; for a kernel thread, its name.
    pub command: String,
    /// True if punctual started it for the run, false if it was running before.
    #[serde(default)]
    pub started: bool,
    /// Exit status; absent if it did not exit by itself, or if the status is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// The signal that ended it; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// True if it ended during the run.
    #[serde(default)]
    pub ended: bool,
    /// Trace events about it that were read.
    pub events: u64,
    /// Trace events about it that the kernel overwrote before they were read; the figures are incomplete unless this is
    /// 0.
    pub lost_events: u64,
    /// Threads without a series, because they slept all the time or were not selected.
    #[serde(default)]
    pub other_threads: u64,
    /// Threads beyond the first 1024, which were not watched.
    #[serde(default)]
    pub threads_left_out: u64,
    /// CPU time of punctual itself during the run, ns.
    #[serde(default)]
    pub own_cpu_ns: u64,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The largest number of threads of a program that are watched.
pub const THREADS_FOLLOWED: usize = 1024;

/// Figures of one thread of a program, in addition to its wake-up latency, which is in its series.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessThread {
    /// Thread id.
    pub tid: u32,
    /// Last seen command name.
    pub comm: String,
    /// Last seen priority as the kernel counts: -1 deadline, 0 to 98 real-time (99 - N for `fifo:N`), 100 to 139
    /// ordinary. With priority inheritance it may be that of another thread.
    pub priority: i32,
    /// Time spent in each scheduling state.
    pub times: ThreadTimes,
    /// Cycles that were seen from start to end. A cycle lasts from a wake-up to the next sleep.
    pub cycles: u64,
    /// CPU time of each cycle, ns.
    pub run_time: Histogram,
    /// Response time of each cycle, ns: from its wake-up to its next sleep.
    pub response: Histogram,
    /// Time between the starts of two consecutive cycles, ns.
    pub interval: Histogram,
    /// The cycle with the longest response time; absent without cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<Cycle>,
    /// Cycles with a response time longer than the period; 0 without a period.
    #[serde(default)]
    pub overruns: u64,
    /// The overruns by their main reason; absent without a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun_by: Option<Overruns>,
    /// Skipped cycles: those missing from intervals longer than one and a half periods.
    #[serde(default)]
    pub skipped: u64,
    /// Number of times that it lost its CPU while it was runnable.
    pub preemptions: u64,
    /// Time until it had a CPU again after each preemption, ns.
    pub preempted: Histogram,
    /// The threads that preempted it, the one that cost most time first; at most 8.
    #[serde(default)]
    pub preempted_by: Vec<Preempter>,
    /// Number of migrations to another CPU.
    pub migrations: u64,
    /// CPUs that it ran on, as the kernel writes a list.
    pub cpus: String,
    /// Cycles that were cut off, because events were lost or their start was not seen.
    #[serde(default)]
    pub cycles_cut: u64,
    /// True if it ended during the run.
    #[serde(default)]
    pub ended: bool,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The number of preempting threads that are kept per thread.
pub const PREEMPTERS_KEPT: usize = 8;

/// Time that a thread spent in each state. The parts add up to its observation time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTimes {
    /// Running on a CPU, including interrupts, ns.
    pub running_ns: u64,
    /// Runnable after a wake-up, waiting for a CPU, ns.
    pub ready_ns: u64,
    /// Runnable after a preemption, waiting for a CPU, ns.
    pub preempted_ns: u64,
    /// Sleeping or waiting for something other than a CPU, ns.
    pub blocked_ns: u64,
    /// State unknown because events were lost or missing, ns.
    pub unknown_ns: u64,
}

/// One cycle of a thread, from its wake-up to its next sleep. Its times add up to its response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cycle {
    /// Start, ns after the start of the run.
    pub at_ns: u64,
    /// Time spent in each state. Blocked time within a cycle is waiting for a page, a device or a kernel lock, or being
    /// stopped.
    pub times: ThreadTimes,
}

/// Cycles that were longer than the period, counted by their main reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overruns {
    /// The thread's own work.
    pub by_work: u64,
    /// Waiting for a CPU after a wake-up or preemption.
    pub by_waiting: u64,
    /// Waiting for something other than a CPU.
    pub by_blocking: u64,
}

/// A thread that preempted another one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Preempter {
    /// Its command name.
    pub comm: String,
    /// Thread id of the last thread with this name; 0 for the idle thread, which means that no thread was allowed to
    /// run.
    pub tid: u32,
    /// Its priority as the kernel counts.
    pub priority: i32,
    /// Number of preemptions.
    pub count: u64,
    /// Total time that the preempted thread then waited for a CPU, ns.
    pub waited_ns: u64,
}

impl ThreadTimes {
    /// Sum of all states, ns: the observation time of the thread.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let Self { running_ns, ready_ns, preempted_ns, blocked_ns, unknown_ns } = *self;
        [ready_ns, preempted_ns, blocked_ns, unknown_ns].iter().fold(running_ns, |sum, ns| sum.saturating_add(*ns))
    }

    /// Time that the thread waited for a CPU, ns.
    #[must_use]
    pub fn waiting_ns(&self) -> u64 {
        self.ready_ns.saturating_add(self.preempted_ns)
    }
}

impl Cycle {
    /// Response time, ns: from the wake-up to the next sleep.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.times.total_ns()
    }
}
