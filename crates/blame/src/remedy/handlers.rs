//! Remedies against interrupts, softirqs and timers.

use super::facts::RemedyFacts;

/// Drivers of graphics cards: their interrupts come with every frame.
const GRAPHICS: [&str; 7] = ["i915", "xe", "amdgpu", "radeon", "nvidia", "nouveau", "vc4"];

/// Whether a handler's name is that of a graphics driver, or of one of its interrupts: `nvidia`, `i915`, `vc4 hdmi`.
fn is_graphics(name: &str) -> bool {
    GRAPHICS.iter().any(|driver| {
        name.strip_prefix(driver).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

/// Against an interrupt. The name is that of the device's handler or the CPU's vector; devices' have a number.
pub(super) fn interrupt(name: &str, number: Option<u32>, facts: &RemedyFacts) -> String {
    let measured = facts.measured_list();
    match (name, number) {
        ("local_timer" | "arch_timer", _) => timer("tick", facts),
        (_, Some(number)) => device(name, number, facts),
        ("reschedule", _) => {
            format!(
                "other CPUs wake threads here: keep other work off this CPU, kernel argument `isolcpus=domain,managed_irq,{measured}`"
            )
        }
        ("thermal_apic" | "threshold_apic" | "deferred_error_apic" | "error_apic", _) => {
            "the CPU reports heat or an error of its hardware: see `dmesg`, and cool it or set a lower frequency"
                .to_owned()
        }
        _ => format!(
            "other CPUs call this one, to forget addresses, take over work or run code: keep the threads of one process off \
             this CPU when it shares memory with others, kernel argument `isolcpus=domain,managed_irq,{measured} nohz_full={measured}`"
        ),
    }
}

/// Against a device's interrupt.
pub(super) fn device(name: &str, number: u32, facts: &RemedyFacts) -> String {
    let others = facts.others_list();
    let affinity = format!("`echo {others} > /proc/irq/{number}/smp_affinity_list`");
    if is_graphics(name) {
        return format!(
            "send the graphics card's interrupt to another CPU: {affinity}, and show no animated picture meanwhile"
        );
    }
    format!("send it to another CPU: {affinity}, and stop irqbalance, which would send it back")
}

/// Against a softirq, by the kernel's name.
pub(super) fn softirq(name: &str, facts: &RemedyFacts) -> String {
    let (measured, others) = (facts.measured_list(), facts.others_list());
    match name {
        "NET_RX" | "NET_TX" => format!(
            "send the network card's interrupts to other CPUs, `echo {others} > /proc/irq/NUMBER/smp_affinity_list` (numbers \
             in /proc/interrupts), and keep its packets there, `echo 0 > /sys/class/net/INTERFACE/queues/rx-0/rps_cpus`"
        ),
        "BLOCK" | "IRQ_POLL" => format!(
            "send the disk's interrupts to other CPUs, `echo {others} > /proc/irq/NUMBER/smp_affinity_list`, and do its disk \
             work there"
        ),
        "TIMER" | "HRTIMER" => timer("tick", facts),
        "SCHED" => {
            format!("the scheduler balances load here: kernel argument `isolcpus=domain,managed_irq,{measured}`")
        }
        "RCU" => format!("move the callbacks of RCU to threads on other CPUs: kernel argument `rcu_nocbs={measured}`"),
        _ => format!(
            "a driver's tasklet: /proc/softirqs and /proc/interrupts rise together for its device, whose interrupt belongs on \
             another CPU, `echo {others} > /proc/irq/NUMBER/smp_affinity_list`"
        ),
    }
}

/// Against a timer's callback, by the name of the function.
pub(super) fn timer(function: &str, facts: &RemedyFacts) -> String {
    let measured = facts.measured_list();
    match function {
        _ if function.starts_with("tick") => format!(
            "stop the tick on this CPU and keep other work off it: kernel argument `nohz_full={measured} \
             isolcpus=domain,managed_irq,{measured}`"
        ),
        "watchdog_timer_fn" => "turn off the watchdog against lockups: `sysctl -w kernel.watchdog=0`".to_owned(),
        "sched_rt_period_timer" => {
            "turn off the throttling of real-time threads: `sysctl -w kernel.sched_rt_runtime_us=-1`".to_owned()
        }
        "hrtimer_wakeup" => {
            "it wakes other threads that sleep on this CPU: move them to other CPUs with `taskset`".to_owned()
        }
        _ => format!(
            "keep the work that starts this timer off this CPU: kernel argument `isolcpus=domain,managed_irq,{measured} \
             nohz_full={measured}`"
        ),
    }
}
