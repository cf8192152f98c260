//! Remedies: one sentence for each cause, with a command or kernel argument if there is one.
//!
//! | module | contents |
//! |---|---|
//! | `facts` | facts about the run that remedies depend on |
//! | `handlers` | remedies for interrupts, softirqs and timers |
//! | `threads` | remedies for threads |

mod facts;
mod handlers;
mod threads;

use record::{Cause, CauseKind, Why, shell::with_options};

use machine::FAIR_SERVERS_OFF;

use crate::explain::{LOST_EVENTS, TURNED_OFF_IN};

/// Turns off the limit of real-time threads of kernels before Linux 6.12, which have no fair server.
const REALTIME_LIMIT_OFF: &str = "sudo sysctl -w kernel.sched_rt_runtime_us=-1";
/// The risk without a limit of real-time threads, as the end of a sentence.
const STARVES: &str = "without which a real-time thread that never sleeps starves its CPU";

pub use facts::RemedyFacts;

/// Returns what to do about a cause: one sentence, with a command or kernel argument if there is one.
#[must_use]
pub fn remedy(cause: &Cause, facts: &RemedyFacts) -> String {
    match cause.kind {
        CauseKind::LateInterrupt => late_interrupt(cause, facts),
        CauseKind::IdleExit => idle_exit(facts),
        CauseKind::TimerSlack => format!(
            "give the thread a real-time priority, {}, whose timers have no slack; an ordinary thread can reduce it with \
             prctl (PR_SET_TIMERSLACK)",
            facts.raise_to(80)
        ),
        CauseKind::Interrupt => handlers::interrupt(&cause.name, cause.number, facts),
        CauseKind::Softirq => handlers::softirq(&cause.name, facts),
        CauseKind::Nmi => "turn off profilers and watchdogs that use non-maskable interrupts: stop perf, and \
                           `sudo sysctl -w kernel.nmi_watchdog=0`"
            .to_owned(),
        CauseKind::Timer => handlers::timer(&cause.name, facts),
        CauseKind::Thread => threads::thread(cause, facts),
        CauseKind::PageFault => "lock the program's memory and touch it before the first deadline: \
                                 `mlockall(MCL_CURRENT | MCL_FUTURE)`, after `ulimit -l unlimited` if that is refused"
            .to_owned(),
        CauseKind::Stopped => "a signal stopped the thread, which no setting prevents: use neither job control nor a \
                               debugger on it"
            .to_owned(),
        CauseKind::Blocked if cause.detail.starts_with("woken by irq/") => {
            "the thread of an interrupt held a lock of its driver, which sleeps only on a PREEMPT_RT kernel: this is the \
             driver's normal cost"
                .to_owned()
        }
        CauseKind::Blocked => {
            "the thread waited in a system call of its own: let it only sleep between its deadlines, \
                               and take no lock that a thread of lower priority holds"
                .to_owned()
        }
        CauseKind::Throttled => throttled(facts),
        CauseKind::Quota => quota(),
        CauseKind::Budget => "the thread needs more CPU time than its deadline policy grants: increase the runtime of \
                              the policy (sched_runtime of sched_setattr(2))"
            .to_owned(),
        CauseKind::AllCpus => all_cpus(facts),
        CauseKind::Stolen => hypervisor("the hypervisor"),
        CauseKind::Firmware => firmware(),
        CauseKind::WakeUp => match facts.constant_frequency() {
            Some(command) => {
                format!("this is the kernel's normal cost: reduce it with a constant CPU frequency, {command}")
            }
            None => "this is the kernel's normal cost on this CPU".to_owned(),
        },
        CauseKind::Work => {
            let model = "the model takes this long on this CPU: choose a smaller one, whose size `punctual amp info` \
                         shows, or a larger buffer";
            match facts.constant_frequency() {
                Some(command) => format!("{model}; and set a constant CPU frequency, {command}"),
                None => model.to_owned(),
            }
        }
        CauseKind::Unexplained if cause.detail == LOST_EVENTS => {
            "events came faster than punctual could read them from the kernel's trace, so that the cause is not known: \
             measure with a longer --period or less load"
                .to_owned()
        }
        CauseKind::Unexplained => unexplained(facts),
    }
}

fn late_interrupt(cause: &Cause, facts: &RemedyFacts) -> String {
    let name = &cause.name;
    if cause.why == Some(Why::InterruptsOff) {
        let place = cause.detail.strip_prefix(TURNED_OFF_IN).unwrap_or("that code");
        return format!(
            "interrupts were disabled in {place}: {}, and report it to the maintainers of that code",
            facts.moved(name, cause.number)
        );
    }
    if let Some(name) = &facts.hypervisor {
        return hypervisor(name);
    }
    if facts.deep {
        return firmware();
    }
    format!(
        "interrupts were disabled while {name} ran, or firmware had the CPU: repeat the run with `--blame=deep` to find the \
         function that disabled them"
    )
}

fn idle_exit(facts: &RemedyFacts) -> String {
    if let (Some(name), true) = (&facts.hypervisor, facts.hold_cpu_awake) {
        return hypervisor(name);
    }
    if facts.hold_cpu_awake {
        return "the CPU halted although it was kept out of its idle states: boot with `idle=poll`".to_owned();
    }
    let measure = match &facts.bare_command {
        Some(command) => format!("measure the effect with `{command} measure timer --hold-cpu-awake`"),
        None if facts.in_campaign => {
            "measure the effect: repeat the campaign with `hold_cpu_awake = true` in its file".to_owned()
        }
        None => format!("measure the effect: repeat the run with `{}`", facts.option("hold-cpu-awake")),
    };
    if let Some(name) = &facts.hypervisor {
        return format!(
            "the hypervisor {name} continues a halted CPU when it can: {measure}; on the host, give each virtual CPU a \
             core of its own{}",
            pinning(name)
        );
    }
    match facts.no_idle_states() {
        Some(command) => format!("keep the CPU out of deep idle states, {command}; {measure}"),
        None => format!("keep the CPU out of its idle states: boot with `idle=poll`, on arm64 with `nohlt`; {measure}"),
    }
}

fn throttled(facts: &RemedyFacts) -> String {
    if let Some(period_ns) = facts.polls_each_ns {
        let half_us = period_ns / 2_000;
        return format!(
            "this is the limit for punctual's own polling thread: with a real-time policy, let it poll for a smaller part of \
             its period, `--runtime {half_us}us`"
        );
    }
    if let Some(load) = facts.full_talker {
        let (percent, offset) = (load.percent, format!("{}us", load.longest_offset_ns / 1_000));
        let command = &facts.policy_command;
        let shorter = match command.is_empty() {
            true => format!("a wake-up offset of {offset}"),
            false => format!("`{}`", with_options(command, &[("--wakeup-offset", &offset)])),
        };
        return format!(
            "the wake-up offset of punctual's own talker is too long: with it the talker used {percent} % of its CPU, and \
             the kernel stopped it for waiting ordinary threads; use a shorter one, {shorter}"
        );
    }
    let off = if facts.has_fair_server { FAIR_SERVERS_OFF } else { REALTIME_LIMIT_OFF };
    format!(
        "real-time threads used up the time that the kernel allows them in each second: find the one that did, or turn off the \
         limit, {STARVES}: `{off}`"
    )
}

fn quota() -> String {
    "the thread's control group has used up its CPU time: raise the limit of its service, container or session, which is \
     cpu.max below /sys/fs/cgroup, or cpu.cfs_quota_us of older systems"
        .to_owned()
}

fn all_cpus(facts: &RemedyFacts) -> String {
    facts.hypervisor.as_deref().map_or_else(firmware, hypervisor)
}

fn hypervisor(name: &str) -> String {
    format!(
        "the hypervisor {name} can take a CPU at any time, and no setting in this guest prevents it: on the host, give each virtual CPU a \
         core of its own{}, and isolate these cores",
        pinning(name)
    )
}

/// The setting of the hypervisor for that, in brackets.
fn pinning(name: &str) -> String {
    machine::pinning(name).map(|setting| format!(" ({setting})")).unwrap_or_default()
}

fn firmware() -> String {
    "firmware or hardware had the CPU, which no kernel can prevent: confirm it with `sudo hwlatdetect --duration=60`; turn off \
     USB legacy support, power saving and error reporting in the firmware setup, or ask the vendor"
        .to_owned()
}

fn unexplained(facts: &RemedyFacts) -> String {
    match &facts.hypervisor {
        Some(name) => hypervisor(name),
        None if facts.deep => firmware(),
        None => "no trace event explains this time: repeat the run with `--blame=deep`, which traces more".to_owned(),
    }
}

#[cfg(test)]
mod tests;
