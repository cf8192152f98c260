//! Remedies for threads.

use record::{Cause, Why};

use super::{facts::RemedyFacts, handlers};
use crate::{
    counters::UNKNOWN,
    explain::{IN_PREVIOUS_CYCLE, TURNED_OFF_IN},
};

/// The effect of a preemptible kernel that is not PREEMPT_RT.
const LESS_LATE: &str = "kernel argument `preempt=full` makes it less late, but not real-time";

/// Remedy for a thread that had the CPU.
pub(super) fn thread(cause: &Cause, facts: &RemedyFacts) -> String {
    let name = cause.name.as_str();
    if let Some((number, device)) = interrupt_thread(name) {
        return interrupt_of(device, number, cause, facts);
    }
    if cause.number.is_none() && name == UNKNOWN {
        return "the counters do not name the thread: repeat the run with `--blame=trace`, as root".to_owned();
    }
    if name.strip_prefix("load/").is_some_and(|load| facts.loads.contains(load)) {
        return load(cause, facts);
    }
    match name.split('/').next().unwrap_or(name) {
        _ if cause.detail == IN_PREVIOUS_CYCLE => {
            let whose = if facts.thread_id.is_some() { name } else { "the measuring thread of punctual" };
            format!(
                "the previous cycle of {whose} was still running: remove what delayed that cycle, or choose a longer period"
            )
        }
        _ if cause.own && cause.priority.is_some_and(|priority| priority < 100) => {
            "this is another thread of the measurement: give each thread a CPU of its own, or this one a lower priority: \
             cpu= and policy= of its --thread or --traffic-class"
                .to_owned()
        }
        _ if cause.own && facts.thread_id.is_some() => {
            "this is punctual itself, which reads the trace: pin the threads of the program to some of the CPUs, and it leaves \
             these"
                .to_owned()
        }
        _ if cause.own => {
            "this is punctual itself, which collects and stores the samples: leave it a CPU that is not measured, with the \
             option of the CPUs to measure (`--cpus`, `--cpu`)"
                .to_owned()
        }
        "kworker" => {
            let bound = facts.isolated();
            match facts.others_mask() {
                Some(mask) => format!(
                    "keep work queues off this CPU: `echo {mask} | sudo tee /sys/devices/virtual/workqueue/cpumask`, and for \
                     those bound to a CPU {bound}"
                ),
                None => format!("keep work queues off this CPU: {bound}"),
            }
        }
        "ksoftirqd" | "ktimers" | "ktimersd" => {
            format!("deferred softirqs ran, mostly of the network: {}", handlers::softirq("NET_RX", facts))
        }
        "rcuc" | "rcub" | "rcu_preempt" | "rcu_sched" | "rcuop" | "rcuog" | "rcuos" => {
            format!("move the callbacks of RCU to other CPUs: {}", facts.isolated())
        }
        "timerlat" => {
            "this thread is the kernel's own measurement and outranks every probe: measure without `--timerlat`"
                .to_owned()
        }
        "migration" | "stopper" | "cpuhp" => format!(
            "the kernel stops a CPU to move threads or to change its own code: load no modules, start no tracing and change \
             no affinities during the run; also {}",
            facts.isolated()
        ),
        _ => match cause.why {
            Some(Why::PreemptionOff) => preemption_off(cause, facts),
            Some(Why::SamePriority) => same_priority(cause, facts),
            _ => higher_priority(cause, facts),
        },
    }
}

/// A load of the measurement is there on request.
fn load(cause: &Cause, facts: &RemedyFacts) -> String {
    let load = "this is a load of the measurement, as requested";
    if cause.why == Some(Why::PreemptionOff) && !facts.realtime_kernel {
        return format!("{load}, in a kernel without real-time preemption: use a PREEMPT_RT kernel; {LESS_LATE}");
    }
    format!("{load}: compare with a run without it")
}

/// Parses `irq/24-eth0`: the interrupt's number and the device.
fn interrupt_thread(name: &str) -> Option<(u32, &str)> {
    let (number, device) = name.strip_prefix("irq/")?.split_once('-')?;
    // A handler with a second thread has both: `irq/24-ahci` and `irq/24-s-ahci`.
    Some((number.parse().ok()?, device.strip_prefix("s-").unwrap_or(device)))
}

fn interrupt_of(device: &str, number: u32, cause: &Cause, facts: &RemedyFacts) -> String {
    let moved = handlers::device(device, number, facts);
    if let Some(command) = cause.priority.and_then(|priority| facts.raise_interrupt(priority)) {
        return format!("{moved}; or raise the interrupt's thread above it, {command}");
    }
    match (cause.why, lower_than(facts), cause.number) {
        (Some(Why::HigherPriority | Why::SamePriority), Some(lower), Some(pid)) if !facts.ended.contains(&pid) => {
            format!("{moved}; or give it a lower priority: `sudo chrt -f -p {lower} {pid}`")
        }
        _ => moved,
    }
}

fn preemption_off(cause: &Cause, facts: &RemedyFacts) -> String {
    let moved = facts.moved(&cause.name, cause.number);
    if !facts.realtime_kernel {
        return format!("this kernel has no real-time preemption: use a PREEMPT_RT kernel, or {moved}; {LESS_LATE}");
    }
    if let Some(place) = cause.detail.strip_prefix(TURNED_OFF_IN) {
        return format!("preemption was disabled in {place}: {moved}, and report it to the maintainers of that code");
    }
    format!("repeat the run with `--blame=deep` to find the function that disabled preemption; until then {moved}")
}

fn same_priority(cause: &Cause, facts: &RemedyFacts) -> String {
    let Some(ours) = facts.priority.filter(|&ours| ours >= 0) else {
        return format!(
            "ordinary threads share the CPU: {}, or give the one that must be on time a real-time priority: {}",
            facts.moved(&cause.name, cause.number),
            facts.raise_to(80)
        );
    };
    let (name, moved) = (&cause.name, facts.moved("it", cause.number));
    if ours == 0 {
        return format!("{name} also has the highest priority: {moved}, or lower it with chrt");
    }
    format!("raise the measured thread one above {name}, {}, or {moved}", facts.raise_to(100 - ours))
}

fn higher_priority(cause: &Cause, facts: &RemedyFacts) -> String {
    let name = &cause.name;
    let Some(priority @ ..100) = cause.priority else {
        return format!("keep {name} off this CPU: {}", facts.moved("it", cause.number));
    };
    if priority < 0 {
        return format!(
            "{name} has the deadline policy, which outranks every priority: move it with a cpuset, or reduce its \
             runtime with chrt -d"
        );
    }
    if facts.priority.is_none() {
        let moved = facts.moved(name, cause.number);
        return match priority {
            0 => moved,
            _ => format!(
                "{moved}, or give the thread that must be on time a real-time priority: {}",
                facts.raise_to((100 - priority).max(80))
            ),
        };
    }
    if let Some(command) = facts.raise_interrupt(priority) {
        let moved = facts.moved("it", cause.number);
        return format!("raise the interrupt's thread above {name}, {command}; or {moved}");
    }
    let above =
        (priority > 0).then(|| format!("raise the measured thread above {name}, {}", facts.raise_to(100 - priority)));
    let lower = lower_than(facts).zip(cause.number);
    let below = lower.map(|(lower, pid)| match facts.ended.contains(&pid) {
        true => format!("lower {name} to fifo:{lower}"),
        false => format!("lower {name}, `sudo chrt -f -p {lower} {pid}`"),
    });
    let is_named = above.is_some() || below.is_some();
    let elsewhere = Some(facts.moved(if is_named { "it" } else { name }, cause.number));
    [above, below, elsewhere].into_iter().flatten().collect::<Vec<_>>().join("; or ")
}

/// The real-time priority one below that of the measured thread, if there is one.
fn lower_than(facts: &RemedyFacts) -> Option<i32> {
    let ours = 99 - facts.priority.filter(|&priority| priority >= 0)?;
    (ours > 1).then_some(ours - 1)
}
