//! The EVL core (Xenomai 4), where the kernel has one.

use record::EvlCore;

use crate::{CpuList, Root};

const CONTROL: &str = "sys/devices/virtual/evl/control";

/// What the core tells of itself; `None` where there is none.
pub(crate) fn core(root: &Root) -> Option<EvlCore> {
    let file = |name: &str| root.read(&format!("{CONTROL}/{name}"));
    root.exists(CONTROL).then(|| EvlCore { abi: file("abi"), cpus: file("cpus"), state: file("state") })
}

/// CPUs that the core schedules threads on; `None` where there is none, or it does not tell.
#[must_use]
pub fn evl_cpus(root: &Root) -> Option<CpuList> {
    core(root)?.cpus?.parse().ok()
}
