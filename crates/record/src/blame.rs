//! Who made the spikes: causes, the time line of one spike, and the ledger of all of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Extra;

/// What kept a CPU from the measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The deadline was past, and the timer's interrupt not yet taken, while a thread had the CPU: interrupts off in
    /// the kernel, the timer hardware, firmware, or a hypervisor. The name is that of the thread.
    LateInterrupt,
    /// As before, but the CPU was idle: the way out of an idle state. The name is that of the state.
    IdleExit,
    /// An interrupt's handler. The name is that of the device or of the CPU's vector.
    Interrupt,
    /// A softirq. The name is the kernel's: `NET_RX`.
    Softirq,
    /// A non-maskable interrupt. The name is that of the handler.
    Nmi,
    /// The callback of another kernel timer. The name is that of the function.
    Timer,
    /// Another thread. The name is its command's.
    Thread,
    /// A page fault of the measuring thread.
    PageFault,
    /// The measuring thread was stopped by a signal. The name is that of the signal.
    Stopped,
    /// The measuring thread waited for something else than its deadline.
    Blocked,
    /// The measuring thread was ready and the CPU idle: the kernel withheld it (real-time throttling).
    Throttled,
    /// Every CPU stood still at once: firmware or a hypervisor.
    AllCpus,
    /// The hypervisor gave the CPU to another guest: its clock of stolen time says so.
    Stolen,
    /// Firmware took the CPU: its counter of system management interrupts says so.
    Firmware,
    /// The kernel's own way from the timer's interrupt to the measuring thread's next instruction.
    WakeUp,
    /// The measuring thread's own work: a period of audio that it plays.
    Work,
    /// Nothing that was traced.
    #[default]
    Unexplained,
}

/// Why a thread ran although the measuring thread was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its priority is higher.
    HigherPriority,
    /// Its priority is the same, and it was first.
    SamePriority,
    /// Its priority is lower: preemption was off, or the kernel has none here.
    PreemptionOff,
    /// Its interrupts were off.
    InterruptsOff,
}

/// One cause, in the terms of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Kind of cause.
    pub kind: CauseKind,
    /// Name of the thread, interrupt, softirq, function, state or signal; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Process id of the thread; number of the interrupt; process that sent the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Priority of the thread as the kernel counts: -1 deadline, 0 to 98 real-time (99 minus it), 100 to 139 ordinary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Why the thread ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// More about it: who sent the signal, which function turned interrupts off, how often it ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// A cause and its share of a spike's lateness.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Culprit {
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// Its share of the lateness, ns. All shares of a spike add up to its lateness.
    pub ns: u64,
}

/// A stretch of a spike's time line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Its begin, ns after the deadline; negative before it.
    pub start_ns: i64,
    /// Its length, ns.
    pub ns: u64,
    /// What had the CPU.
    #[serde(flatten)]
    pub cause: Cause,
}

/// What a spike's culprits were found from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The kernel's trace, without a gap.
    Trace,
    /// The kernel's trace, with events lost in or before the window: the culprits may be incomplete.
    Incomplete,
    /// Counters before and after: a likely culprit, to which the whole lateness is put.
    Counters,
    /// Nothing was looked at.
    #[default]
    None,
}

impl Evidence {
    /// Whether nothing was looked at; such a spike says nothing about evidence in its JSON.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How the culprits of a run were looked for, and the ledger of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Blame {
    /// From what.
    pub mode: BlameMode,
    /// Why it was not the kernel's trace, with the remedy; empty when it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The trace events that were on, as `system:name`.
    #[serde(default)]
    pub events: Vec<String>,
    /// Spikes that were looked at.
    pub spikes: u64,
    /// Those whose window had lost events.
    pub incomplete: u64,
    /// Those that were not looked at, because they came faster than they could be.
    pub passed_over: u64,
    /// Trace events that the kernel overwrote or dropped inside a window that was looked at.
    pub lost_events: u64,
    /// What looking costs; absent when it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<BlameCost>,
    /// The file that keeps the trace, for trace-cmd and KernelShark, where the run was to stop on a spike and did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_trace: Option<String>,
    /// The causes, the heaviest first.
    #[serde(default)]
    pub ledger: Vec<Account>,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

/// From what culprits are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlameMode {
    /// Nothing.
    #[default]
    Off,
    /// Counters of interrupts, softirqs, context switches, stolen time and page faults.
    Counters,
    /// The kernel's trace.
    Trace,
    /// The kernel's trace, with every section that turns interrupts or preemption off, where the kernel tells them.
    Deep,
}

/// What the trace costs: wake-ups with it off and on, alternating, after the run and without its loads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlameCost {
    /// Wake-ups compared, of each kind.
    pub samples: u64,
    /// Median lateness with the trace off, ns.
    pub off_ns: i64,
    /// Median lateness with the trace on, ns.
    pub on_ns: i64,
}

/// One line of the ledger: all spikes whose largest share had the same cause.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// The cause; its number and detail are those of the worst spike.
    #[serde(flatten)]
    pub cause: Cause,
    /// Spikes that it made.
    pub count: u64,
    /// Largest lateness among them, ns.
    pub worst_ns: i64,
    /// Its shares of the lateness of all spikes, also of those that it is not the main cause of, ns.
    pub total_ns: u64,
    /// CPUs on which it struck, as the kernel writes a list.
    pub cpus: String,
    /// Phases in which it struck.
    pub phases: Vec<String>,
    /// Time between two strikes where that is regular, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
    /// What to do about it, in one sentence with a command or a kernel argument where there is one.
    pub remedy: String,
    /// Fields that a newer version wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Cause {
    /// A cause of this kind and name.
    #[must_use]
    pub fn new(kind: CauseKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), ..Self::default() }
    }

    /// The cause in a few words, without number and priority: `interrupt eth0`, `thread stress-ng, of higher priority`.
    #[must_use]
    pub fn title(&self) -> String {
        let name = &self.name;
        match self.kind {
            CauseKind::LateInterrupt => format!("timer interrupt late, {name} had the CPU"),
            CauseKind::IdleExit if name.is_empty() => "return from idle".to_owned(),
            CauseKind::IdleExit => format!("return from idle state {name}"),
            CauseKind::Interrupt => format!("interrupt {name}"),
            CauseKind::Softirq => format!("softirq {name}"),
            CauseKind::Nmi => format!("non-maskable interrupt {name}"),
            CauseKind::Timer => format!("kernel timer {name}"),
            CauseKind::Thread => match self.why {
                Some(Why::HigherPriority) => format!("thread {name}, of higher priority"),
                Some(Why::SamePriority) => format!("thread {name}, of the same priority"),
                Some(Why::PreemptionOff) => format!("thread {name}, with preemption off"),
                Some(Why::InterruptsOff) => format!("thread {name}, with interrupts off"),
                None => format!("thread {name}"),
            },
            CauseKind::PageFault => "page fault of the probe".to_owned(),
            CauseKind::Stopped => format!("stopped by {name}"),
            CauseKind::Blocked => "the probe waited for something else".to_owned(),
            CauseKind::Throttled => "real-time throttling".to_owned(),
            CauseKind::AllCpus => "all CPUs at once: firmware or hypervisor".to_owned(),
            CauseKind::Stolen => "stolen by the hypervisor".to_owned(),
            CauseKind::Firmware => "firmware: system management interrupt".to_owned(),
            CauseKind::WakeUp => "the kernel's own way to the probe".to_owned(),
            CauseKind::Work => "the signal processing itself".to_owned(),
            CauseKind::Unexplained => "unexplained".to_owned(),
        }
    }

    /// The cause with number and priority: `thread stress-ng, of higher priority (pid 412, real-time 50)`.
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

/// A kernel priority in the terms in which it is set: `real-time 50`, `nice 0`, `deadline`.
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
    fn a_cause_speaks_the_terms_of_the_machine() {
        let mut thread = Cause::new(CauseKind::Thread, "stress-ng");
        (thread.number, thread.priority, thread.why) = (Some(412), Some(49), Some(Why::HigherPriority));
        assert_eq!(thread.in_full(), "thread stress-ng, of higher priority (pid 412, real-time 50)");
        let mut interrupt = Cause::new(CauseKind::Interrupt, "eth0");
        interrupt.number = Some(17);
        assert_eq!(interrupt.in_full(), "interrupt eth0 (irq 17)");
        assert_eq!(priority_in_words(120), "nice 0");
        assert_eq!(priority_in_words(-1), "deadline");
    }

    #[test]
    fn a_culprit_is_flat_json() {
        let culprit = Culprit { cause: Cause::new(CauseKind::Softirq, "NET_RX"), ns: 81_000 };
        let value = serde_json::to_value(&culprit).expect("it is JSON");
        assert_eq!(value, serde_json::json!({"kind": "softirq", "name": "NET_RX", "ns": 81_000}));
        assert_eq!(serde_json::from_value::<Culprit>(value).expect("it is a culprit"), culprit);
    }
}
