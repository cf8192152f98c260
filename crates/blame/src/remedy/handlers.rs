//! Remedies for interrupts, softirqs and timers.

use super::facts::RemedyFacts;

/// Drivers of graphics cards, which have interrupts for every frame.
const GRAPHICS: [&str; 7] = ["i915", "xe", "amdgpu", "radeon", "nvidia", "nouveau", "vc4"];

/// True if a handler belongs to a graphics driver: `nvidia`, `i915`, `vc4 hdmi`.
fn is_graphics(name: &str) -> bool {
    GRAPHICS.iter().any(|driver| {
        name.strip_prefix(driver).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

/// Remedy for an interrupt. The name is the device's handler or the CPU's vector; only devices have a number.
pub(super) fn interrupt(name: &str, number: Option<u32>, facts: &RemedyFacts) -> String {
    let measured = facts.measured_list();
    match (name, number) {
        ("local_timer" | "arch_timer", _) => timer("tick", facts),
        (_, Some(number)) => device(name, number, facts),
        ("reschedule", _) => {
            format!(
                "other CPUs wake threads on this CPU: keep other work off it, kernel argument `isolcpus=domain,managed_irq,{measured}`"
            )
        }
        ("thermal_apic" | "threshold_apic" | "deferred_error_apic" | "error_apic", _) => {
            "the CPU reports heat or a hardware error: see `dmesg`, and cool it or set a lower frequency".to_owned()
        }
        _ => format!(
            "other CPUs send work to this one, such as TLB flushes: keep the threads of one process off \
             this CPU when it shares memory with others, kernel argument `isolcpus=domain,managed_irq,{measured} nohz_full={measured}`"
        ),
    }
}

/// Remedy for the interrupt of a device.
pub(super) fn device(name: &str, number: u32, facts: &RemedyFacts) -> String {
    let others = facts.others_list();
    let affinity = format!("`echo {others} > /proc/irq/{number}/smp_affinity_list`");
    if is_graphics(name) {
        return format!(
            "move the graphics card's interrupt to another CPU: {affinity}, and show no animations meanwhile"
        );
    }
    format!("move it to another CPU: {affinity}, and stop irqbalance, which would move it back")
}

/// Remedy for a softirq, by the kernel's name.
pub(super) fn softirq(name: &str, facts: &RemedyFacts) -> String {
    let (measured, others) = (facts.measured_list(), facts.others_list());
    match name {
        "NET_RX" | "NET_TX" => format!(
            "move the network card's interrupts to other CPUs, `echo {others} > /proc/irq/NUMBER/smp_affinity_list` (numbers \
             in /proc/interrupts), and keep its packets there, `echo 0 > /sys/class/net/INTERFACE/queues/rx-0/rps_cpus`"
        ),
        "BLOCK" | "IRQ_POLL" => format!(
            "move the disk's interrupts to other CPUs, `echo {others} > /proc/irq/NUMBER/smp_affinity_list`, and do its disk \
             work there"
        ),
        "TIMER" | "HRTIMER" => timer("tick", facts),
        "SCHED" => {
            format!(
                "keep the scheduler from balancing load on this CPU: kernel argument `isolcpus=domain,managed_irq,{measured}`"
            )
        }
        "RCU" => format!("move the callbacks of RCU to threads on other CPUs: kernel argument `rcu_nocbs={measured}`"),
        _ => format!(
            "find the device whose counts in /proc/interrupts rise with those in /proc/softirqs, and move its interrupt to \
             another CPU, `echo {others} > /proc/irq/NUMBER/smp_affinity_list`"
        ),
    }
}

/// Remedy for a timer callback, by the name of its function.
pub(super) fn timer(function: &str, facts: &RemedyFacts) -> String {
    let measured = facts.measured_list();
    match function {
        _ if function.starts_with("tick") => format!(
            "stop the tick on this CPU and keep other work off it: kernel argument `nohz_full={measured} \
             isolcpus=domain,managed_irq,{measured}`"
        ),
        "watchdog_timer_fn" => "turn off the lockup watchdog: `sysctl -w kernel.watchdog=0`".to_owned(),
        "sched_rt_period_timer" => {
            "turn off real-time throttling: `sysctl -w kernel.sched_rt_runtime_us=-1`".to_owned()
        }
        "hrtimer_wakeup" => "it wakes other threads on this CPU: move them to other CPUs with `taskset`".to_owned(),
        _ => format!(
            "keep the work that starts this timer off this CPU: kernel argument `isolcpus=domain,managed_irq,{measured} \
             nohz_full={measured}`"
        ),
    }
}
