//! Maps memory, touches every page and unmaps it: page faults, page-table changes, and the interrupts that flush the
//! TLBs of other CPUs.

use machine::{CpuList, Root};
use rustix::param::page_size;
use sys::mapping::Mapping;

use super::kind::{Kind, LoadKind, Plan};
use crate::{
    LoadError, SpecError,
    options::{Options, join, size},
    units::show_size,
};

const DEFAULT_SIZE: u64 = 16 << 20;

/// Maps, touches and unmaps memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// Bytes per thread.
    pub size: Option<u64>,
}

impl LoadKind for Memory {
    const KIND: Kind = Kind {
        name: "memory",
        description: "map, touch and unmap memory",
        options: &[("size=BYTES", "memory mapped at a time by each thread, 64K to 64G (default 16M)")],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let load = Self { size: options.value("size", size(64 << 10..=64 << 30))? };
        options.finish(load)
    }

    fn options(&self) -> String {
        join([self.size.map(|size| format!("size={}", show_size(size)))])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        plan(self.size, cpus)
    }

    fn is_busy(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("", Self { size: None }), ("size=1M", Self { size: Some(1 << 20) })]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{option, prelude::*};

        option::of((64u64 << 10)..=(64 << 30)).prop_map(|size| Self { size }).boxed()
    }
}

fn plan(size: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let bytes = size.unwrap_or(DEFAULT_SIZE);
    let (needed, usable) = (bytes.saturating_mul(cpus.len() as u64), usable_bytes(&Root::system()));
    if needed > usable {
        return Err(not_enough(Memory::KIND.name, needed, usable));
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(Plan::each_cpu("pages mapped, touched and unmapped", cpus, move |meter| {
        while meter.running() {
            let mut mapping = Mapping::new(bytes).map_err(LoadError::kernel("memory", "a mapping of its size"))?;
            for page in mapping.chunks_mut(page_size()) {
                page[0] = 1;
                meter.add(1);
                if !meter.running() {
                    break;
                }
            }
        }
        Ok(())
    }))
}

/// The error that a load needs more memory than it may use.
pub(super) fn not_enough(load: &'static str, needed: u64, usable: u64) -> LoadError {
    let (needed, usable) = (show_size(needed), show_size(usable));
    let reason = format!("needs {needed} of memory but may use {usable}: give it a smaller size, e.g. {load}:size=1M");
    LoadError::Failed { load, reason }
}

/// Memory that a load may use: half of the available memory, so that the machine neither swaps nor kills processes.
pub(super) fn usable_bytes(root: &Root) -> u64 {
    let available = root.read("proc/meminfo").and_then(|text| available_bytes(&text));
    available.map_or(u64::MAX, |bytes| bytes / 2)
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_available_memory() {
        let text = "MemTotal:       24683984 kB\nMemFree:        1000 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available_bytes(text), Some(2 << 20));
        assert_eq!(available_bytes("MemTotal: 1 kB\n"), None);
        let here = usable_bytes(&Root::system());
        assert!(here > 0 && here < u64::MAX);
    }
}
