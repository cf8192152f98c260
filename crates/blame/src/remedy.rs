//! What to do about a cause: one sentence, with a command or a kernel argument where there is one.
//!
//! | module | holds |
//! |---|---|
//! | `facts` | what a remedy depends on |
//! | `handlers` | remedies against interrupts, softirqs and timers |
//! | `threads` | remedies against threads |

mod facts;
mod handlers;
mod threads;

use record::{Cause, CauseKind, Why};

pub use facts::RemedyFacts;

/// What to do about a cause, in one sentence with a command or a kernel argument where there is one.
#[must_use]
pub fn remedy(cause: &Cause, facts: &RemedyFacts) -> String {
    match cause.kind {
        CauseKind::LateInterrupt => late_interrupt(cause, facts),
        CauseKind::IdleExit => idle_exit(facts),
        CauseKind::Interrupt => handlers::interrupt(&cause.name, cause.number, facts),
        CauseKind::Softirq => handlers::softirq(&cause.name, facts),
        CauseKind::Nmi => {
            "turn off what profiles or watches by non-maskable interrupts: `sysctl -w kernel.nmi_watchdog=0`, \
                           and no perf while it matters"
                .to_owned()
        }
        CauseKind::Timer => handlers::timer(&cause.name, facts),
        CauseKind::Thread => threads::thread(cause, facts),
        CauseKind::PageFault => "lock the program's memory and touch it before it matters: \
                                 `mlockall(MCL_CURRENT | MCL_FUTURE)`, with `ulimit -l unlimited` where that is refused"
            .to_owned(),
        CauseKind::Stopped => {
            "somebody stopped the thread: keep signals of job control and debuggers away from it, no \
                               setting helps"
                .to_owned()
        }
        CauseKind::Blocked => {
            "the thread waited in a system call of its own: let it make none between its deadlines but \
                               the one that sleeps, and take no lock that a thread of lower priority holds"
                .to_owned()
        }
        CauseKind::Throttled => throttled(facts),
        CauseKind::AllCpus => all_cpus(facts),
        CauseKind::Stolen => hypervisor("the hypervisor"),
        CauseKind::Firmware => firmware(),
        CauseKind::WakeUp => format!(
            "this is the kernel's normal cost: a constant clock makes it shorter, `cpupower -c {} frequency-set -g \
             performance`",
            facts.measured_list()
        ),
        CauseKind::Work => format!(
            "the model takes this long on this CPU: choose a smaller one, see `punctual amp info FILE`, or a larger buffer; and a \
             constant clock makes it shorter, `cpupower -c {} frequency-set -g performance`",
            facts.measured_list()
        ),
        CauseKind::Unexplained => unexplained(facts),
    }
}

fn late_interrupt(cause: &Cause, facts: &RemedyFacts) -> String {
    let name = &cause.name;
    if cause.why == Some(Why::InterruptsOff) {
        let place = cause.detail.strip_prefix("turned off in ").unwrap_or("that code");
        return format!(
            "interrupts were off in {place}: keep {name} off this CPU, {}, and report it to the maintainers of that code",
            facts.pin(cause.number)
        );
    }
    if let Some(name) = &facts.hypervisor {
        return hypervisor(name);
    }
    if facts.deep {
        return firmware();
    }
    format!(
        "interrupts were off while {name} ran, or firmware had the CPU: `{} --blame=deep` tells which function turned them \
         off",
        facts.command
    )
}

fn idle_exit(facts: &RemedyFacts) -> String {
    if let (Some(name), true) = (&facts.hypervisor, facts.hold_cpu_awake) {
        return hypervisor(name);
    }
    if facts.hold_cpu_awake {
        return "the CPU was held out of its idle states and halted all the same: boot with `idle=poll`".to_owned();
    }
    format!(
        "keep the CPU out of deep idle states: `cpupower -c {} idle-set -D 1`, or hold /dev/cpu_dma_latency open at 0 while \
         it matters; `{} measure timer --hold-cpu-awake` shows what that brings",
        facts.measured_list(),
        facts.command
    )
}

fn throttled(facts: &RemedyFacts) -> String {
    match facts.priority {
        Some(_) => "the kernel keeps a part of each second from real-time threads: find who used up the rest, then \
                    `sysctl -w kernel.sched_rt_runtime_us=-1`"
            .to_owned(),
        None => "the thread's control group has used up its CPU time: `echo max > cpu.max` in its folder below \
                 /sys/fs/cgroup"
            .to_owned(),
    }
}

fn all_cpus(facts: &RemedyFacts) -> String {
    facts.hypervisor.as_deref().map_or_else(firmware, hypervisor)
}

fn hypervisor(name: &str) -> String {
    format!(
        "{name} can take a CPU at any time, which no setting in here changes: give each virtual CPU a core of its own on the \
         host, `virsh vcpupin GUEST VCPU CORE`, and isolate these cores there"
    )
}

fn firmware() -> String {
    "firmware or hardware had the CPU, which no kernel can prevent: `hwlatdetect --duration=60` shows it by itself; turn off \
     USB legacy support, power saving and error reporting in the firmware's setup, or ask its maker"
        .to_owned()
}

fn unexplained(facts: &RemedyFacts) -> String {
    match &facts.hypervisor {
        Some(name) => hypervisor(name),
        None if facts.deep => firmware(),
        None => format!("nothing that was traced: `{} --blame=deep` sees more", facts.command),
    }
}

#[cfg(test)]
mod tests;
