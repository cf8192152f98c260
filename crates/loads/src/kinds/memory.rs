//! Maps memory, touches every page and unmaps it: page faults, page-table work, and the interrupts that tell other CPUs
//! to forget the addresses.

use machine::{CpuList, Root};
use rustix::param::page_size;
use sys::mapping::Mapping;

use super::Plan;
use crate::LoadError;

const DEFAULT_SIZE: u64 = 16 << 20;

pub(super) fn plan(size: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let bytes = size.unwrap_or(DEFAULT_SIZE);
    let (needed, usable) = (bytes.saturating_mul(cpus.len() as u64), usable_bytes(&Root::system()));
    if needed > usable {
        return Err(LoadError::Memory { load: "memory", needed, usable });
    }
    Ok(Plan::each_cpu("pages mapped, touched and unmapped", cpus, move |meter| {
        while meter.running() {
            let mut mapping =
                Mapping::new(bytes as usize).map_err(LoadError::kernel("memory", "a mapping of its size"))?;
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

/// Memory that a load may use: half of what is available, so that the machine does not swap or kill.
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
    fn available_memory_is_read() {
        let text = "MemTotal:       24683984 kB\nMemFree:        1000 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available_bytes(text), Some(2 << 20));
        assert_eq!(available_bytes("MemTotal: 1 kB\n"), None);
        let here = usable_bytes(&Root::system());
        assert!(here > 0 && here < u64::MAX);
    }
}
