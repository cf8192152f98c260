//! Caches with their sizes and the CPUs that share them; cores with their threads.

use crate::{CpuList, Root, cpus};

/// A cache of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Level; 1 is the nearest to the CPU.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size, bytes.
    pub bytes: u64,
    /// The CPUs that share the cache.
    pub shared_by: CpuList,
}

/// The caches of one CPU, nearest first; empty if the kernel does not know them, e.g. on some ARM boards.
#[must_use]
pub fn caches_of(root: &Root, cpu: u32) -> Vec<Cache> {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let mut caches: Vec<Cache> = root
        .list(&folder)
        .iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(|name| {
            let file = |file: &str| root.read(&format!("{folder}/{name}/{file}"));
            Some(Cache {
                level: file("level")?.parse().ok()?,
                kind: file("type")?,
                bytes: bytes(&file("size")?)?,
                shared_by: file("shared_cpu_list")?.parse().ok()?,
            })
        })
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// The CPUs that are threads of the same core as `cpu`, including `cpu`; `None` if the kernel does not report them.
#[must_use]
pub fn core_of(root: &Root, cpu: u32) -> Option<CpuList> {
    // A CPU is among its own siblings.
    let list = |text: &str| text.parse::<CpuList>().ok().filter(|list| list.contains(cpu));
    root.parsed(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list).ok()
}

/// The cores with several online threads, and true if the kernel reports the core of every online CPU.
#[must_use]
pub fn shared_cores(root: &Root) -> (Vec<CpuList>, bool) {
    let online = cpus::online_cpus(root);
    let known: Vec<CpuList> = online.iter().filter_map(|cpu| core_of(root, cpu)).collect();
    let is_complete = !online.is_empty() && known.len() == online.len();
    let mut cores: Vec<CpuList> = known.iter().map(|core| core.intersection(&online)).collect();
    cores.retain(|core| core.len() > 1);
    cores.sort_by_key(CpuList::first);
    cores.dedup();
    (cores, is_complete)
}

/// The size of the largest cache of any online CPU, bytes; `None` if the kernel knows no cache.
#[must_use]
pub fn largest_cache_bytes(root: &Root) -> Option<u64> {
    cpus::online_cpus(root).iter().flat_map(|cpu| caches_of(root, cpu)).map(|cache| cache.bytes).max()
}

/// Parses a size: `512K`, `32768K`, or `8M` on some kernels.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(['K', 'M', 'G']);
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    #[test]
    fn parses_sizes() {
        assert_eq!(super::bytes("32K"), Some(32 << 10));
        assert_eq!(super::bytes("8M"), Some(8 << 20));
        assert_eq!(super::bytes("64"), Some(64));
        assert_eq!(super::bytes("8KK"), None);
        assert_eq!(super::bytes("K"), None);
    }
}
