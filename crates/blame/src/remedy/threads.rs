//! Remedies against threads.

use record::{Cause, Why};

use super::{facts::RemedyFacts, handlers};

/// Against a thread that had the CPU.
pub(super) fn thread(cause: &Cause, facts: &RemedyFacts) -> String {
    let (name, measured) = (cause.name.as_str(), facts.measured_list());
    if let Some((number, device)) = interrupt_thread(name) {
        return interrupt_of(device, number, cause, facts);
    }
    match name.split('/').next().unwrap_or(name) {
        _ if cause.detail.starts_with("the probe itself") => {
            "the thread was late from the cycle before: look at the spike before this one, or give it a longer period"
                .to_owned()
        }
        "kworker" => format!(
            "keep work queues off this CPU: `echo {} > /sys/devices/virtual/workqueue/cpumask`, and kernel argument \
             `isolcpus=domain,managed_irq,{measured}` for those bound to a CPU",
            facts.others_mask()
        ),
        "ksoftirqd" | "ktimers" | "ktimersd" => {
            format!("softirqs that were put off, mostly of the network: {}", handlers::softirq("NET_RX", facts))
        }
        "rcuc" | "rcub" | "rcu_preempt" | "rcu_sched" | "rcuop" | "rcuog" | "rcuos" => {
            format!("move the callbacks of RCU to other CPUs: kernel argument `rcu_nocbs={measured} rcu_nocb_poll`")
        }
        "timerlat" => {
            "this is the kernel's own measurement, above every probe: measure without `--timerlat`".to_owned()
        }
        "migration" | "stopper" | "cpuhp" => format!(
            "the kernel stops a CPU to move threads or to change its own code: load no modules, start no tracing and change \
             no affinities while it matters, and use kernel argument `isolcpus=domain,managed_irq,{measured}`"
        ),
        _ => match cause.why {
            Some(Why::PreemptionOff) => preemption_off(cause, facts),
            Some(Why::SamePriority) => same_priority(cause, facts),
            _ => higher_priority(cause, facts),
        },
    }
}

/// `irq/24-eth0`: the interrupt's number and the device.
fn interrupt_thread(name: &str) -> Option<(u32, &str)> {
    let (number, device) = name.strip_prefix("irq/")?.split_once('-')?;
    // A handler in several parts has one thread for each: `irq/24-s-ahci`.
    Some((number.parse().ok()?, device.strip_prefix("s-").unwrap_or(device)))
}

fn interrupt_of(device: &str, number: u32, cause: &Cause, facts: &RemedyFacts) -> String {
    let moved = handlers::device(device, number, facts);
    match (cause.why, lower_than(facts), cause.number) {
        (Some(Why::HigherPriority | Why::SamePriority), Some(lower), Some(pid)) => {
            format!("{moved}; or put it below: `chrt -f -p {lower} {pid}`")
        }
        _ => moved,
    }
}

fn preemption_off(cause: &Cause, facts: &RemedyFacts) -> String {
    let name = &cause.name;
    if !facts.realtime_kernel {
        return format!(
            "this kernel does not preempt everywhere: use a PREEMPT_RT kernel, or at least kernel argument `preempt=full`, or \
             keep {name} off this CPU, {}",
            facts.pin(cause.number)
        );
    }
    if let Some(place) = cause.detail.strip_prefix("turned off in ") {
        return format!(
            "preemption was off in {place}: keep {name} off this CPU, {}, and report it to the maintainers of that code",
            facts.pin(cause.number)
        );
    }
    format!(
        "`{} --blame=deep` tells which function turned preemption off; until then keep {name} off this CPU, {}",
        facts.command,
        facts.pin(cause.number)
    )
}

fn same_priority(cause: &Cause, facts: &RemedyFacts) -> String {
    let Some(ours) = facts.priority.filter(|&ours| ours >= 0) else {
        return format!(
            "ordinary threads share the CPU: run the one that must be on time with real-time priority, {}, or send {} \
             elsewhere, {}",
            facts.make_realtime(),
            cause.name,
            facts.pin(cause.number)
        );
    };
    let moved = facts.pin(cause.number);
    if ours == 0 {
        return format!("it has the highest priority as well: send it elsewhere, {moved}, or lower it with `chrt`");
    }
    format!("be one above it, {}, or send it elsewhere, {moved}", facts.raise_to(100 - ours))
}

fn higher_priority(cause: &Cause, facts: &RemedyFacts) -> String {
    let (name, moved) = (&cause.name, facts.pin(cause.number));
    let Some(priority @ ..100) = cause.priority else { return format!("keep {name} off this CPU: {moved}") };
    if priority < 0 {
        return format!(
            "{name} runs under the deadline policy, above every priority: send it elsewhere with a cpuset, or reduce its \
             runtime with `chrt -d`"
        );
    }
    if facts.priority.is_none() {
        return format!(
            "run the thread that must be on time with real-time priority, {}, or send {name} elsewhere, {moved}",
            facts.make_realtime()
        );
    }
    let above = (priority > 0).then(|| format!("be above it, {}", facts.raise_to(100 - priority)));
    let lower = lower_than(facts).zip(cause.number);
    let below = lower.map(|(lower, pid)| format!("put {name} below, `chrt -f -p {lower} {pid}`"));
    let elsewhere = Some(format!("send it elsewhere, {moved}"));
    [above, below, elsewhere].into_iter().flatten().collect::<Vec<_>>().join("; or ")
}

/// The real-time priority one below that of the measuring thread, if there is one.
fn lower_than(facts: &RemedyFacts) -> Option<i32> {
    let ours = 99 - facts.priority.filter(|&priority| priority >= 0)?;
    (ours > 1).then_some(ours - 1)
}
