//! A user's own program: what its threads did, according to the scheduler.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Extra, Histogram, count::is_zero};

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
    /// Threads that were not watched, because 1024 others lived.
    #[serde(default)]
    pub threads_left_out: u64,
    /// Ended threads without figures, because more than 1024 threads were watched. Their cycles were shorter than those of
    /// the others.
    #[serde(default)]
    pub ended_threads_left_out: u64,
    /// Processes that the command started and that still ran when it ended.
    #[serde(default)]
    pub processes_left: u64,
    /// CPU time of punctual itself during the run, ns.
    #[serde(default)]
    pub own_cpu_ns: u64,
    /// The file of the CPU quota that stopped its control group for the longest time; absent if no quota did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_file: Option<String>,
    /// About how long the control group of one of its processes was frozen, ns: the longest time of all processes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frozen_ns: u64,
    /// The kernel's runtime verification monitors for real-time threads; empty without `--monitors`, or if the kernel has
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<MonitorUse>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Limits for a watched program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProgramLimits {
    /// Largest wake-up latency of any thread, ns; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<u64>,
    /// Most missed deadlines, of all threads together; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Longest response time of a cycle of any thread, ns; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<u64>,
}

impl ProgramLimits {
    /// True if a limit is about cycles, whose starts must be known.
    #[must_use]
    pub fn limit_cycles(&self) -> bool {
        self.missed.is_some() || self.response_ns.is_some()
    }

    /// The longest that a cycle of a thread with this period may take, ns; `None` without such a limit. A period of 0 is none.
    #[must_use]
    pub fn cycle_ns(&self, period_ns: u64) -> Option<u64> {
        let period_ns = self.missed.filter(|_| period_ns > 0).map(|_| period_ns);
        [self.response_ns, period_ns].into_iter().flatten().min()
    }
}

/// The largest number of threads of a program that are watched at the same time, and that have a series.
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
    /// Cycles that were seen from start to end. A cycle lasts from its release to its completion.
    pub cycles: u64,
    /// The wait after which its cycles start.
    #[serde(default)]
    pub release: Release,
    /// CPU time of each cycle, ns.
    pub run_time: Histogram,
    /// Response time of each cycle, ns: from its release to its completion.
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
    /// The main causes of its long cycles, the most frequent first: of the overruns if it has a period, else of all
    /// cycles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseCount>,
    /// The cycles with the longest response times, the longest first; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_cycles: Vec<Cycle>,
    /// Its waits for each lock, the longest total first; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockWaits>,
    /// Number of page faults.
    #[serde(default)]
    pub page_faults: u64,
    /// The rules for real-time threads that it broke, the most frequent first; at most 16. Empty for other threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<Breach>,
    /// The reports of the kernel's monitors about it. They concern the same events as `breaches`, so the counts must not be
    /// added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitor_reports: Vec<MonitorReports>,
    /// The thread that started it, in the form `NAME/TID`, if it inherited its real-time policy from that thread and
    /// nothing set one since; absent otherwise and for threads that ran before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_inherited_from: Option<String>,
    /// Number of signals that it handled.
    #[serde(default)]
    pub signals: u64,
    /// Number of times that another thread took its CPU while it was runnable. Stops by a quota or by another limit of
    /// the CPU time do not count.
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
    /// The cycle that had not ended at the end of the run, so far; absent without one, and if its end cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Cycle>,
    /// Time from its last release to its end, ns. It is no cycle. 0 if the thread has not ended.
    #[serde(default)]
    pub ending_ns: u64,
    /// Time that it ran or waited for a CPU from its last release to its end, ns.
    #[serde(default)]
    pub ending_work_ns: u64,
    /// Cycles that were cut off, because events were lost or their start was not seen.
    #[serde(default)]
    pub cycles_cut: u64,
    /// The longest time that a cycle can have taken that was cut off, or that is not counted because its start and its end
    /// are different kinds of waits, ns; 0 without any. Also the longest time in which a signal interrupted a sleep that
    /// continued.
    #[serde(default)]
    pub longest_cut_ns: u64,
    /// Switches to it that the kernel did not trace: it ran on a CPU although its last event was a wait.
    #[serde(default)]
    pub switches_missing: u64,
    /// The CPUs of these switches, as the kernel writes a list; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub switches_missing_on: String,
    /// True if it ended during the run.
    #[serde(default)]
    pub ended: bool,
    /// When it ended, ns after the start of the run; absent if it did not, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ns: Option<u64>,
    /// True if the user named it, also by a prefix. Limits are about each named thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// The longest time from the start to the end of several cycles that may be one, ns: another event than usual started the
    /// later ones, such as a lock that is seldom taken. 0 if each cycle is one.
    #[serde(default)]
    pub longest_row_ns: u64,
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

/// The number of different breaches that are kept per thread.
pub const BREACHES_KEPT: usize = 16;

/// The breaches of one rule by one real-time thread, with the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// The cause: the system call of a sleep, or the name of the thread that ended a wait; empty for other rules.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Number of breaches.
    pub count: u64,
    /// The first time, ns after the start of the run.
    pub first_ns: u64,
    /// The last time, ns after the start of the run.
    pub last_ns: u64,
}

/// A rule for real-time threads, from the kernel's runtime verification monitors (Documentation/trace/rv).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// It must not fault pages (`rtapp`, `pagefault`).
    #[default]
    PageFault,
    /// It must wait only for a futex, in `epoll_wait`, or until a time on CLOCK_MONOTONIC or CLOCK_TAI (`rtapp`,
    /// `sleep`).
    Sleep,
    /// Its waits must be ended by an interrupt or by a thread of at least its own priority (`rtapp`, `sleep`).
    WakeUp,
    /// With the deadline policy, it must finish before its deadline (`nomiss`).
    Deadline,
    /// It must get a CPU within 1 s (`stall`).
    Stall,
}

/// A runtime verification monitor of the kernel that checks rules for real-time threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Monitor {
    /// Page faults. It reports a thread once, and only if it saw an earlier page fault of the thread with an ordinary
    /// policy.
    #[default]
    Pagefault,
    /// Waits and wake-ups that may delay a thread. It reports a thread that ran before the monitor only after a
    /// contended lock of the kernel.
    Sleep,
    /// Wake-ups by threads of lower priority and by softirqs, with the same limit.
    Wakeup,
    /// Missed deadlines of the deadline policy.
    Nomiss,
    /// Waits for a CPU of more than 1000 ticks of the kernel.
    Stall,
}

impl Monitor {
    /// All monitors.
    pub const ALL: [Self; 5] = [Self::Pagefault, Self::Sleep, Self::Wakeup, Self::Nomiss, Self::Stall];

    /// The kernel's name of the monitor.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pagefault => "pagefault",
            Self::Sleep => "sleep",
            Self::Wakeup => "wakeup",
            Self::Nomiss => "nomiss",
            Self::Stall => "stall",
        }
    }

    /// The monitor with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|monitor| monitor.name() == name)
    }
}

/// A monitor that the kernel has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MonitorUse {
    /// The monitor.
    pub monitor: Monitor,
    /// The reason why its reports are missing or incomplete; empty if it watched the whole run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// The reports of one monitor about one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MonitorReports {
    /// The monitor.
    pub monitor: Monitor,
    /// Number of reports.
    pub count: u64,
    /// The first time, ns after the start of the run.
    pub first_ns: u64,
    /// The last time, ns after the start of the run.
    pub last_ns: u64,
}

/// The wait after which a thread's cycles start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// Every sleep: the kernel does not trace system calls, so a wait within a cycle also ends it.
    #[default]
    AnySleep,
    /// A sleep until a point in time. The cycle starts at that point.
    AbsoluteSleep,
    /// A sleep for a duration. The cycle starts at the end of that duration.
    RelativeSleep,
    /// A timer file descriptor. The cycle starts at the expiry of the timer.
    Timer,
    /// A wait for an event, except for a lock and for the answer of a thread that this one woke in its cycle. The cycle
    /// starts at the wake-up.
    Event,
    /// As `event`, but the trace does not show which of the waits starts a cycle: the thread waits for several events in
    /// turn, or each event follows from its own work. Only marks show its cycles.
    AnyEvent,
    /// Waits of one kind at different distances, such as 8 ms, 4 ms, 8 ms: a cycle may contain several of them. Each starts
    /// a cycle here. Only marks show its cycles.
    Alternating,
    /// As `relative_sleep` or `timer`, but the thread also waits for other timers, or for events that other programs or
    /// devices cause: each of them may be the wait for its next cycle. Only marks show its cycles.
    Mixed,
    /// A yield of the deadline policy. The kernel does not trace the start of the thread's next period, so the cycle starts
    /// when the thread has a CPU again. It may have waited for that.
    Yield,
    /// A mark in the program.
    Mark,
}

/// One cycle of a thread, from its release to its completion. Its parts add up to its response time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cycle {
    /// Start, ns after the start of the run.
    pub at_ns: u64,
    /// Time spent in each state since the thread was woken for this cycle.
    pub times: ThreadTimes,
    /// Time from the release until the thread was woken, or until its previous cycle was complete, ns.
    #[serde(default)]
    pub before_ns: u64,
    /// What the response time was spent on, the longest part first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CyclePart>,
    /// The longest wait for a lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockWait>,
    /// If its longest part is the wait for the previous cycle: the longest part of the first cycle in that row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_by: Option<CyclePart>,
}

/// What a part of a cycle was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CycleCause {
    /// Computation of the thread, with the interrupts on its CPU.
    OwnWork,
    /// Computation in signal handlers of the thread.
    SignalHandler,
    /// Page faults: waits for pages, and an estimate of the CPU time of all other faults.
    PageFaults,
    /// The previous cycle of the thread was not complete at the release.
    PreviousCycle,
    /// The timer slack of the thread, which delays its timers to save power.
    TimerSlack,
    /// The timer woke the thread later than requested.
    LateTimer,
    /// The thread was woken, and waited for a CPU.
    WakeUp,
    /// Another thread took the CPU.
    Preemption,
    /// The limit of the CPU time of all real-time threads.
    RealtimeLimit,
    /// The CPU time that the deadline policy grants was used up.
    DeadlineBudget,
    /// The CPU quota of a control group.
    Quota,
    /// The kernel withheld the CPU for an unknown reason: no other thread ran on it.
    Withheld,
    /// A thread of lower priority kept the holder of a lock off the CPU.
    PriorityInversion,
    /// One other thread held a lock, or it is unknown who held it.
    LockHeld,
    /// Several other threads held a lock, one after the other.
    LockConvoy,
    /// A lock of the kernel.
    KernelLock,
    /// A block device.
    Disk,
    /// A sleep for a time within the cycle.
    Sleep,
    /// A wait within the cycle for another thread, program or device.
    Event,
    /// The thread was stopped by a signal or a debugger, or its control group was frozen.
    Stopped,
    /// Unknown.
    #[default]
    Unknown,
}

/// The time that a cycle spent on one cause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CyclePart {
    /// The cause.
    pub cause: CycleCause,
    /// Its time, ns.
    pub ns: u64,
    /// Number of waits, preemptions, page faults or signals.
    #[serde(default)]
    pub count: u64,
    /// The thread that took the CPU, or that ended the wait, in the longest of them; empty if none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Id of that thread; 0 if none is known.
    #[serde(default)]
    pub by_tid: u32,
    /// True if that thread is one of punctual.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// The system call of the longest wait; empty if none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
}

/// The cycles with one main cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CauseCount {
    /// The cause of the longest part of each cycle.
    pub cause: CycleCause,
    /// Number of cycles.
    pub cycles: u64,
    /// Total time of that part in these cycles, ns.
    pub ns: u64,
}

/// The waits of a thread for one lock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LockWaits {
    /// Number of waits.
    pub count: u64,
    /// Their total time, ns.
    pub waited_ns: u64,
    /// The longest wait, ns.
    pub longest_ns: u64,
    /// Part of the total time in which threads of lower priority than the waiting thread kept a holder off the CPU, ns.
    pub inverted_ns: u64,
    /// The wait with the longest priority inversion, or else the longest wait.
    pub worst: LockWait,
}

/// One wait for a lock: a lock of the program, such as a mutex, or a lock of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LockWait {
    /// Address of the lock in the program, as `0x7ffd5a10`; empty for a lock of the kernel.
    pub lock: String,
    /// The system call that waited for a lock of the kernel; empty if none is known, and for locks of the program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// True if the holder of the lock inherits the priority of those who wait for it; false if that is unknown.
    pub inherits_priority: bool,
    /// Priority of the waiting thread as the kernel counts.
    pub priority: i32,
    /// The thread that held the lock last; empty if it is unknown.
    pub holder: String,
    /// Its id; 0 if it is unknown.
    pub holder_tid: u32,
    /// Its priority as the kernel counts, without an inherited one.
    pub holder_priority: i32,
    /// The thread that kept a holder off the CPU for the longest time; absent without one. Threads of lower priority than
    /// the waiting thread come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempter: Option<LockPreempter>,
    /// Time of the wait, ns.
    pub waited_ns: u64,
    /// Part of it in which threads of lower priority than the waiting thread kept a holder off the CPU, ns.
    pub inverted_ns: u64,
    /// Part of it in which a holder ran, ns.
    pub ran_ns: u64,
    /// Part of it in which a holder waited for something other than a CPU, ns.
    pub holder_waited_ns: u64,
    /// Part of it in which it is unknown what a holder did, ns.
    pub unknown_ns: u64,
    /// Number of threads that held the lock, one after the other; 0 if unknown.
    pub holders: u64,
}

/// A thread that kept the holder of a lock off the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LockPreempter {
    /// Its command name.
    pub comm: String,
    /// Thread id.
    pub tid: u32,
    /// Its priority as the kernel counts.
    pub priority: i32,
    /// True for a thread of punctual.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// The thread that it kept off the CPU: the holder of the lock, or of another lock that this holder waited for.
    pub kept: String,
    /// How long it kept the holder off the CPU, ns.
    pub ns: u64,
    /// The locks from that of the wait to that of `kept`: the holder of each waited for the next one.
    #[serde(default)]
    pub locks: Vec<HeldLock>,
}

/// A lock with its holder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HeldLock {
    /// Address of the lock in the program; empty for a lock of the kernel.
    pub lock: String,
    /// True if its holder inherits the priority of those who wait for it; false if that is unknown.
    pub inherits_priority: bool,
    /// The thread that held it.
    pub holder: String,
    /// Id of that thread.
    pub holder_tid: u32,
}

/// The number of locks that are kept per thread.
pub const LOCKS_KEPT: usize = 8;
/// The number of cycles that are kept per thread.
pub const CYCLES_KEPT: usize = 100;

/// Cycles that were longer than the period, counted by their main reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Overruns {
    /// The thread's own work.
    pub by_work: u64,
    /// The thread's signal handlers.
    #[serde(default)]
    pub by_handlers: u64,
    /// The thread's page faults.
    #[serde(default)]
    pub by_faults: u64,
    /// Waiting for a CPU after a wake-up or preemption.
    pub by_waiting: u64,
    /// The late timer, or the timer slack, of the sleep before the cycle.
    #[serde(default)]
    pub by_late_timer: u64,
    /// Waiting for something other than a CPU.
    pub by_blocking: u64,
}

impl Overruns {
    /// Their number.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_work + self.by_handlers + self.by_faults + self.by_waiting + self.by_late_timer + self.by_blocking
    }
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
    /// True for a thread of punctual.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
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
    /// Response time, ns: from the release to the completion.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.times.total_ns().saturating_add(self.before_ns)
    }

    /// The cause of the longest part; `None` for records of older versions.
    #[must_use]
    pub fn main_cause(&self) -> Option<CycleCause> {
        self.parts.first().map(|part| part.cause)
    }
}
