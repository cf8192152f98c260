//! Which events are traced.

/// An event of the kernel that says something about lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Its system.
    pub system: &'static str,
    /// Its name; `*` stands for all `..._entry` and `..._exit` of the system.
    pub name: &'static str,
    /// Only when every section that turns interrupts or preemption off is asked for.
    pub deep: bool,
}

const fn always(system: &'static str, name: &'static str) -> Wanted {
    Wanted { system, name, deep: false }
}

const fn deep(name: &'static str) -> Wanted {
    Wanted { system: "preemptirq", name, deep: true }
}

/// Every event that is wanted; no kernel has all of them.
pub const WANTED: &[Wanted] = &[
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

/// Those that tell what threads are at: which have a CPU, wake, begin and end.
pub const OF_THREADS: &[Wanted] = &[
    always("sched", "sched_switch"),
    always("sched", "sched_waking"),
    always("sched", "sched_wakeup_new"),
    always("sched", "sched_process_fork"),
    always("sched", "sched_process_exit"),
];

impl Wanted {
    /// Its names among those that a kernel has in its system.
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
    fn of_the_vectors_only_handlers_are_wanted() {
        let existing = ["enable", "local_timer_entry", "local_timer_exit", "vector_alloc"].map(str::to_owned);
        let vectors = always("irq_vectors", "*");
        assert_eq!(vectors.names(&existing).collect::<Vec<_>>(), ["local_timer_entry", "local_timer_exit"]);
        assert_eq!(always("irq", "irq_handler_entry").names(&existing).count(), 0);
    }
}
