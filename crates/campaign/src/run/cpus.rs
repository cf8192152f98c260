//! Prepares the measured CPUs: moves this thread off them, and keeps them awake.

use machine::{AwakeHold, CpuList, Root, usable_cpus};
use record::Record;
use sys::sched;

use crate::{changes::Changes, validity};

/// Moves this thread, and threads that it creates, off the measured CPUs, unless all CPUs are measured.
pub(crate) fn leave_measured_cpus(root: &Root, cpus: &CpuList) {
    let others: Vec<u32> = usable_cpus(root, None).unwrap_or_default().difference(cpus).iter().collect();
    if !others.is_empty() {
        // If this is refused, the collector stays on its CPU, as it does if all CPUs are measured.
        let _ = sched::set_affinity(&others);
    }
}

/// Keeps the CPUs out of their idle states, if that is requested. A refusal makes the run invalid.
pub(crate) fn hold_awake(record: &mut Record, changes: &mut Changes, requested: bool, root: &Root, cpus: &CpuList) {
    if !requested {
        return;
    }
    match AwakeHold::take(root, cpus) {
        Ok(hold) => changes.awake = Some(hold),
        Err(error) => {
            let text = format!("the CPUs were not held awake as requested: {error}");
            validity::add(record, "cpu_awake.refused", text, "run as root, or leave out --hold-cpu-awake");
        }
    }
}
