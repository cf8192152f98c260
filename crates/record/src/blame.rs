//! Causes of spikes: the culprits, the time line of one spike, and the ledger of all spikes of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// The kind of thing that kept a CPU from the measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The deadline had passed and the timer interrupt was still pending while a thread had the CPU: interrupts
    /// disabled in the kernel, the timer hardware, firmware or a hypervisor. `name` is the name of that thread.
    LateInterrupt,
    /// The timer interrupt was late and the CPU was idle: it had to leave an idle state. `name` is the idle state.
    IdleExit,
    /// The kernel delayed the thread's timer by the thread's timer slack, as it may for ordinary threads.
    TimerSlack,
    /// An interrupt handler. `name` is the device or the CPU's vector.
    Interrupt,
    /// A softirq. `name` is the kernel's name for it: `NET_RX`.
    Softirq,
    /// A non-maskable interrupt. `name` is its handler.
    Nmi,
    /// The callback of another kernel timer. `name` is the function.
    Timer,
    /// Another thread. `name` is its command name.
    Thread,
    /// A page fault of the measuring thread.
    PageFault,
    /// A signal stopped the measuring thread. `name` is the signal.
    Stopped,
    /// The measuring thread waited for something other than its deadline.
    Blocked,
    /// The measuring thread, a real-time thread, was runnable, but the CPU was idle or ran an ordinary thread: the kernel
    /// limits the CPU time of real-time threads (real-time throttling, fair server).
    Throttled,
    /// The measuring thread, an ordinary thread, was runnable and the CPU idle: the CPU quota of its control group.
    Quota,
    /// The measuring thread, of the deadline policy, was runnable while another thread or none ran: it had used up the
    /// CPU time that its policy grants in each period.
    Budget,
    /// All CPUs stalled at the same time: firmware or a hypervisor.
    AllCpus,
    /// The hypervisor gave the CPU to another guest, as its steal time shows.
    Stolen,
    /// Firmware took the CPU, as its counter of system management interrupts shows.
    Firmware,
    /// The kernel's wake-up path: from the timer interrupt to the measuring thread's next instruction.
    WakeUp,
    /// The measuring thread's own work: the processing of a period of audio.
    Work,
    /// No traced event explains it.
    #[default]
    Unexplained,
}

/// The reason why a thread ran although the measuring thread was runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its priority is higher.
    HigherPriority,
    /// Its priority is the same, and it was queued first.
    SamePriority,
    /// Its priority is lower: preemption was disabled, or this kernel does not preempt at that point.
    PreemptionOff,
    /// It had interrupts disabled.
    InterruptsOff,
}

/// One cause of lateness, named as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Kind of cause.
    pub kind: CauseKind,
    /// Name of the thread, interrupt, softirq, function, idle state or signal; empty if it has no name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Process id of the thread, number of the interrupt, or process that sent the signal; absent for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Priority of the thread as the kernel counts: -1 deadline, 0 to 98 real-time (99 - N for `fifo:N`), 100 to 139
    /// ordinary. Absent for causes that are not threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Why the thread ran; absent for causes that are not threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// True for another thread of this run of punctual: an ordinary one is overhead of the measurement, a real-time one
    /// belongs to the probe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Details, e.g. who sent the signal, which function disabled interrupts, or how often it ran; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// A cause and its share of a spike's lateness.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Culprit {
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// Its share of the lateness, ns. The shares of a spike add up to its lateness.
    pub ns: u64,
}

/// One interval of a spike's time line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Start, ns after the deadline; negative before it.
    pub start_ns: i64,
    /// Length, ns.
    pub ns: u64,
    /// The cause that occupied the CPU.
    #[serde(flatten)]
    pub cause: Cause,
}

/// The data that a spike's culprits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The kernel trace, without lost events.
    Trace,
    /// The kernel trace, with events lost in or before the window: culprits may be missing.
    Incomplete,
    /// Counters before and after the spike: the likely culprit gets the whole lateness.
    Counters,
    /// The spike was not analysed.
    #[default]
    None,
}

impl Evidence {
    /// True if the spike was not analysed; its JSON then has no `evidence`.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The analysis of a run's spikes, and the ledger of their causes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Blame {
    /// The source of the analysis.
    pub mode: BlameMode,
    /// Why the kernel trace was not used, with the remedy; empty if it was used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The enabled trace events, as `system:name`.
    #[serde(default)]
    pub events: Vec<String>,
    /// Spikes that were analysed.
    pub spikes: u64,
    /// Analysed spikes with lost events in their window.
    pub incomplete: u64,
    /// Spikes that were not analysed because they came too fast.
    pub passed_over: u64,
    /// Trace events that the kernel overwrote or dropped inside an analysed window.
    pub lost_events: u64,
    /// Overhead of the trace; absent unless `--blame-cost` requested its measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<BlameCost>,
    /// The trace file, for trace-cmd and KernelShark; absent unless a spike stopped the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_trace: Option<String>,
    /// The causes, by total lateness, largest first.
    #[serde(default)]
    pub ledger: Vec<Account>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The source that culprits are found from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlameMode {
    /// None: culprits are not searched for.
    #[default]
    Off,
    /// Counters of interrupts, softirqs, context switches, stolen time and page faults.
    Counters,
    /// The kernel trace.
    Trace,
    /// The kernel trace, with every section that disables interrupts or preemption, if the kernel traces those.
    Deep,
}

/// Overhead of the trace: wake-ups with the trace alternately off and on, measured after the run and without its loads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlameCost {
    /// Wake-ups compared of each kind.
    pub samples: u64,
    /// Median lateness with the trace off, ns.
    pub off_ns: i64,
    /// Median lateness with the trace on, ns.
    pub on_ns: i64,
}

/// One line of the ledger: all spikes with the same main cause, which is the cause with the largest share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// The cause; its number and detail come from the worst spike.
    #[serde(flatten)]
    pub cause: Cause,
    /// Spikes whose main cause this is.
    pub count: u64,
    /// Largest lateness among them, ns.
    pub worst_ns: i64,
    /// Sum of its shares of the lateness of all spikes, ns, including spikes with another main cause.
    pub total_ns: u64,
    /// CPUs with an occurrence, as the kernel writes a list.
    pub cpus: String,
    /// Phases with an occurrence.
    pub phases: Vec<String>,
    /// Time between two occurrences, ns; absent if they are not periodic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
    /// Remedy: one sentence, with a command or a kernel argument if one helps.
    pub remedy: String,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Cause {
    /// Creates a cause of this kind and name.
    #[must_use]
    pub fn new(kind: CauseKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), ..Self::default() }
    }

    /// Describes the cause without number and priority: `interrupt eth0`, `thread stress-ng, of higher priority`.
    #[must_use]
    pub fn title(&self) -> String {
        let name = &self.name;
        let thread = if self.own { format!("punctual's own thread {name}") } else { format!("thread {name}") };
        match self.kind {
            CauseKind::LateInterrupt if self.own => format!("interrupt came late, while {thread} ran"),
            CauseKind::LateInterrupt => format!("interrupt came late, while {name} ran"),
            CauseKind::IdleExit if name.is_empty() => "return from idle".to_owned(),
            CauseKind::IdleExit => format!("return from idle state {name}"),
            CauseKind::TimerSlack => "timer slack of an ordinary thread".to_owned(),
            CauseKind::Interrupt => format!("interrupt {name}"),
            CauseKind::Softirq => format!("softirq {name}"),
            CauseKind::Nmi => format!("non-maskable interrupt {name}"),
            CauseKind::Timer => format!("kernel timer {name}"),
            CauseKind::Thread => match self.why {
                Some(Why::HigherPriority) => format!("{thread}, of higher priority"),
                Some(Why::SamePriority) => format!("{thread}, of the same priority"),
                Some(Why::PreemptionOff) => format!("{thread}, with preemption off"),
                Some(Why::InterruptsOff) => format!("{thread}, with interrupts off"),
                None => thread,
            },
            CauseKind::PageFault => "page fault of the probe".to_owned(),
            CauseKind::Stopped => format!("stopped by {name}"),
            CauseKind::Blocked => "the probe waited for something else".to_owned(),
            CauseKind::Throttled => "real-time throttling".to_owned(),
            CauseKind::Quota => "CPU quota of the control group".to_owned(),
            CauseKind::Budget => "CPU time of the deadline policy".to_owned(),
            CauseKind::AllCpus => "all CPUs at once: firmware or hypervisor".to_owned(),
            CauseKind::Stolen => "stolen by the hypervisor".to_owned(),
            CauseKind::Firmware => "firmware: system management interrupt".to_owned(),
            CauseKind::WakeUp => "the kernel's path to the probe".to_owned(),
            CauseKind::Work => "the signal processing itself".to_owned(),
            CauseKind::Unexplained => "unexplained".to_owned(),
        }
    }

    /// Describes the cause with number and priority: `thread stress-ng, of higher priority (pid 412, real-time 50)`.
    #[must_use]
    pub fn in_full(&self) -> String {
        let mut notes: Vec<String> = Vec::new();
        match (self.kind, self.number) {
            (CauseKind::Interrupt, Some(number)) => notes.push(format!("irq {number}")),
            (_, Some(number)) => notes.push(format!("pid {number}")),
            (_, None) => {}
        }
        notes.extend(self.priority.map(priority_in_words));
        notes.extend((!self.detail.is_empty()).then(|| self.detail.clone()));
        if notes.is_empty() { self.title() } else { format!("{} ({})", self.title(), notes.join(", ")) }
    }
}

/// Formats a kernel priority as users set it: `real-time 50`, `nice 0`, `deadline`.
#[must_use]
pub fn priority_in_words(priority: i32) -> String {
    match priority {
        ..0 => "deadline".to_owned(),
        0..=99 => format!("real-time {}", 99 - priority),
        _ => format!("nice {}", priority - 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_a_cause_with_priority_and_number() {
        let mut thread = Cause::new(CauseKind::Thread, "stress-ng");
        (thread.number, thread.priority, thread.why) = (Some(412), Some(49), Some(Why::HigherPriority));
        assert_eq!(thread.in_full(), "thread stress-ng, of higher priority (pid 412, real-time 50)");
        let own = Cause { own: true, ..thread };
        assert_eq!(own.title(), "punctual's own thread stress-ng, of higher priority");
        let mut interrupt = Cause::new(CauseKind::Interrupt, "eth0");
        interrupt.number = Some(17);
        assert_eq!(interrupt.in_full(), "interrupt eth0 (irq 17)");
        assert_eq!(priority_in_words(120), "nice 0");
        assert_eq!(priority_in_words(-1), "deadline");
    }

    #[test]
    fn writes_a_culprit_as_flat_json() {
        let culprit = Culprit { cause: Cause::new(CauseKind::Softirq, "NET_RX"), ns: 81_000 };
        let value = serde_json::to_value(&culprit).expect("it is JSON");
        assert_eq!(value, serde_json::json!({"kind": "softirq", "name": "NET_RX", "ns": 81_000}));
        assert_eq!(serde_json::from_value::<Culprit>(value).expect("it is a culprit"), culprit);
    }
}
