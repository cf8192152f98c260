//! The measured CPUs before measuring: left to the measuring threads, and held awake.

use machine::{AwakeHold, CpuList, Root, usable_cpus};
use record::Record;
use sys::sched;

use crate::{
    changes::{Change, Changes},
    validity,
};

/// Moves this thread, and those it will make, off the measured CPUs where there are others.
pub(crate) fn make_room(root: &Root, cpus: &CpuList) {
    let others: Vec<u32> = usable_cpus(root, None).unwrap_or_default().difference(cpus).iter().collect();
    if !others.is_empty() {
        // Where it is refused the collector stays where it is, as on a machine that is measured whole.
        let _ = sched::set_affinity(&others);
    }
}

/// Holds the CPUs out of their idle states, where that is asked for. A refusal makes the run invalid.
pub(crate) fn hold_awake(record: &mut Record, changes: &mut Changes, asked: bool, root: &Root, cpus: &CpuList) {
    if !asked {
        return;
    }
    match AwakeHold::take(root, cpus) {
        Ok(hold) => changes.push(Change::Awake(hold)),
        Err(error) => {
            let text = format!("the CPUs were not held awake as asked: {error}");
            validity::add(record, "cpu_awake.refused", text, "run as root, or leave out --hold-cpu-awake");
        }
    }
}
