//! Remedies for interrupts, softirqs and timers.

use super::{REALTIME_LIMIT_OFF, STARVES, facts::RemedyFacts};

/// Drivers of graphics cards, which have interrupts for every frame.
const GRAPHICS: [&str; 7] = ["i915", "xe", "amdgpu", "radeon", "nvidia", "nouveau", "vc4"];

/// Where interrupts are moved, if their numbers are unknown.
const AFFINITY: &str = "in smp_affinity_list below /proc/irq (numbers in /proc/interrupts)";

/// True if a handler belongs to a graphics driver: `nvidia`, `i915`, `vc4 hdmi`.
fn is_graphics(name: &str) -> bool {
    GRAPHICS.iter().any(|driver| {
        name.strip_prefix(driver).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

/// Remedy for an interrupt. The name is the device's handler or the CPU's vector; only devices have a number.
pub(super) fn interrupt(name: &str, number: Option<u32>, facts: &RemedyFacts) -> String {
    match (name, number) {
        ("local_timer" | "arch_timer", _) => timer("tick", facts),
        (_, Some(number)) => device(name, number, facts),
        ("reschedule", _) => {
            format!("other CPUs wake threads on this CPU, so keep other work off it: {}", facts.isolated())
        }
        ("thermal_apic" | "threshold_apic" | "deferred_error_apic" | "error_apic", _) => {
            "the CPU reports heat or a hardware error: see `sudo dmesg`, and cool it or set a lower frequency"
                .to_owned()
        }
        _ => format!(
            "other CPUs send work to this one, such as TLB flushes, so keep the threads of one process off \
             this CPU when it shares memory with others: {}",
            facts.isolated()
        ),
    }
}

/// Remedy for the interrupt of a device.
pub(super) fn device(name: &str, number: u32, facts: &RemedyFacts) -> String {
    let affinity = facts.write_others(&format!("/proc/irq/{number}/smp_affinity_list"));
    if is_graphics(name) {
        return format!(
            "move the graphics card's interrupt to another CPU: {affinity}, and show no animations meanwhile"
        );
    }
    format!("move the interrupt of {name} to another CPU: {affinity}, and stop irqbalance, which would move it back")
}

/// Remedy for a softirq, by the kernel's name.
pub(super) fn softirq(name: &str, facts: &RemedyFacts) -> String {
    let elsewhere = facts.elsewhere();
    match name {
        "NET_RX" | "NET_TX" => format!(
            "move the interrupts of the network card to {elsewhere}, {AFFINITY}, and keep its packets there: write 0 into \
             rps_cpus of its queues below /sys/class/net; packets of lo and veth are handled on the CPU that sends them"
        ),
        "BLOCK" | "IRQ_POLL" => {
            format!("move the interrupts of the disk to {elsewhere}, {AFFINITY}, and do its disk work there")
        }
        "TIMER" | "HRTIMER" => timer("tick", facts),
        "SCHED" => {
            format!("keep the scheduler from balancing load on this CPU: {}", facts.isolated())
        }
        "RCU" => format!("move the callbacks of RCU to threads on other CPUs: {}", facts.isolated()),
        _ => format!(
            "find the device whose counts in /proc/interrupts rise with those in /proc/softirqs, and move its interrupt to \
             {elsewhere}, {AFFINITY}"
        ),
    }
}

/// Remedy for a timer callback, by the name of its function.
pub(super) fn timer(function: &str, facts: &RemedyFacts) -> String {
    match function {
        _ if function.starts_with("tick") => {
            format!("stop the tick on this CPU and keep other work off it: {}", facts.isolated())
        }
        "watchdog_timer_fn" => "turn off the lockup watchdog: `sudo sysctl -w kernel.watchdog=0`".to_owned(),
        "sched_rt_period_timer" => {
            format!("turn off real-time throttling, {STARVES}: `{REALTIME_LIMIT_OFF}`")
        }
        "hrtimer_wakeup" => format!("this timer wakes other threads on this CPU: move them to {}", facts.elsewhere()),
        _ => format!("keep the work that starts this timer off this CPU: {}", facts.isolated()),
    }
}
