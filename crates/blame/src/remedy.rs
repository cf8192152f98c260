//! What to do about a cause: one sentence, with a command or a kernel argument where there is one.

use record::{BlameMode, Cause, Record};

/// What a remedy depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemedyFacts {
    /// Priority of the measuring thread as the kernel counts; `None` for an ordinary one of no special priority.
    pub priority: Option<i32>,
    /// CPUs that were measured, rising.
    pub measured: Vec<u32>,
    /// CPUs that are online, rising.
    pub online: Vec<u32>,
    /// CPUs without a periodic tick, as the kernel writes a list; empty for none.
    pub nohz_full: String,
    /// Whether the kernel is PREEMPT_RT.
    pub realtime_kernel: bool,
    /// The hypervisor that this machine is a guest of; `None` on bare metal or when that is not known.
    pub hypervisor: Option<String>,
    /// Whether the measured CPUs were held out of their idle states.
    pub hold_cpu_awake: bool,
    /// Whether every section with interrupts or preemption off was traced.
    pub deep: bool,
    /// Shortest time between two deadlines, ns; 0 when not known.
    pub period_ns: u64,
    /// The command that runs this tool.
    pub command: String,
}

impl RemedyFacts {
    /// The facts that stand in a record.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let cpus = |list: &Option<String>| list.as_deref().map(cpus_of).unwrap_or_default();
        let mut measured: Vec<u32> = record.series.iter().filter_map(|series| series.cpu).collect();
        measured.sort_unstable();
        measured.dedup();
        Self {
            priority: kernel_priority(&record.scenario.policy),
            measured,
            online: cpus(&record.machine.cpus_online),
            nohz_full: record.machine.cpus_nohz_full.clone().unwrap_or_default(),
            realtime_kernel: record.machine.preempt.as_deref() == Some("PREEMPT_RT"),
            hypervisor: record.machine.hypervisor.clone().filter(|hypervisor| hypervisor != "none"),
            hold_cpu_awake: record.scenario.hold_cpu_awake,
            deep: record.blame.as_ref().is_some_and(|blame| blame.mode == BlameMode::Deep),
            period_ns: record.phases.iter().map(|phase| phase.period_ns).min().unwrap_or(0),
            command: record.command.first().cloned().unwrap_or_else(|| "punctual".to_owned()),
        }
    }
}

/// The CPUs of a list as the kernel writes it; none when it is not one.
fn cpus_of(list: &str) -> Vec<u32> {
    list.parse::<machine::CpuList>().map(|cpus| cpus.iter().collect()).unwrap_or_default()
}

/// The kernel's count of a policy's priority: `fifo:90` is 9.
fn kernel_priority(policy: &str) -> Option<i32> {
    let (name, number) = policy.split_once(':')?;
    match name {
        "fifo" | "rr" => Some(99 - number.parse::<i32>().ok()?),
        "deadline" => Some(-1),
        _ => None,
    }
}

/// What to do about a cause, in one sentence with a command or a kernel argument where there is one.
#[must_use]
pub fn remedy(cause: &Cause, facts: &RemedyFacts) -> String {
    let _ = (cause, facts);
    String::new()
}
