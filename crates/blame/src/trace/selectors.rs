//! Selects the events to trace.

/// Selects one event, or several of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSelector {
    /// System of the event.
    pub system: &'static str,
    /// Name of the event; `*` selects all `..._entry` and `..._exit` events of the system.
    pub name: &'static str,
    /// True if the event is traced only in deep mode.
    pub deep: bool,
}

const fn always(system: &'static str, name: &'static str) -> EventSelector {
    EventSelector { system, name, deep: false }
}

const fn deep(name: &'static str) -> EventSelector {
    EventSelector { system: "preemptirq", name, deep: true }
}

/// The events that explain latencies; no kernel has all of them.
pub const LATENCY_EVENTS: &[EventSelector] = &[
    always("sched", "sched_switch"),
    always("sched", "sched_waking"),
    always("sched", "sched_wakeup_new"),
    always("irq", "irq_handler_entry"),
    always("irq", "irq_handler_exit"),
    always("irq", "softirq_entry"),
    always("irq", "softirq_exit"),
    always("irq", "softirq_raise"),
    always("irq_vectors", "*"),
    always("ipi", "ipi_entry"),
    always("ipi", "ipi_exit"),
    always("nmi", "nmi_handler"),
    always("timer", "hrtimer_expire_entry"),
    always("timer", "hrtimer_expire_exit"),
    always("timer", "timer_expire_entry"),
    always("timer", "timer_expire_exit"),
    always("power", "cpu_idle"),
    always("exceptions", "page_fault_user"),
    always("exceptions", "page_fault_kernel"),
    always("signal", "signal_generate"),
    deep("irq_disable"),
    deep("irq_enable"),
    deep("preempt_disable"),
    deep("preempt_enable"),
];

/// The events of the scheduling of threads, and of what they wait for; no kernel has all of them.
pub const THREAD_EVENTS: &[EventSelector] = &[
    always("sched", "sched_switch"),
    always("sched", "sched_waking"),
    always("sched", "sched_wakeup_new"),
    always("sched", "sched_process_fork"),
    always("sched", "sched_process_exec"),
    always("sched", "sched_process_exit"),
    always("raw_syscalls", "sys_enter"),
    always("raw_syscalls", "sys_exit"),
    always("timer", "hrtimer_start"),
    always("lock", "contention_begin"),
    always("lock", "contention_end"),
    always("exceptions", "page_fault_user"),
    always("exceptions", "page_fault_kernel"),
    always("signal", "signal_deliver"),
    always("block", "block_bio_queue"),
];

/// The reports of the runtime verification monitors (kernel/trace/rv/rv_trace.h of Linux). The events `error_nomiss` and
/// `error_stall` are not selected: they report an unexpected event, not a missed time.
pub const MONITOR_EVENTS: &[EventSelector] = &[
    always("rv", "error_pagefault"),
    always("rv", "error_sleep"),
    always("rv", "error_wakeup"),
    always("rv", "error_env_nomiss"),
    always("rv", "error_env_stall"),
];

impl EventSelector {
    /// The selected names among those that exist in the system.
    pub fn names<'a>(&self, existing: &'a [String]) -> impl Iterator<Item = &'a str> {
        existing.iter().map(String::as_str).filter(|name| match self.name {
            "*" => name.ends_with("_entry") || name.ends_with("_exit"),
            wanted => *name == wanted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_only_handlers_of_vectors() {
        let existing = ["enable", "local_timer_entry", "local_timer_exit", "vector_alloc"].map(str::to_owned);
        let vectors = always("irq_vectors", "*");
        assert_eq!(vectors.names(&existing).collect::<Vec<_>>(), ["local_timer_entry", "local_timer_exit"]);
        assert_eq!(always("irq", "irq_handler_entry").names(&existing).count(), 0);
    }
}
