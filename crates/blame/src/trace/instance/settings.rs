//! Selects the traced CPUs and the size of their rings, and configures an instance.

use machine::{CpuList, Root};
use rustix::{io::Errno, system::sysinfo};

use crate::trace::{error::TraceError, folder::Folder};

/// Size of a ring, KiB: several hundred ms of a busy CPU at best, because the reader is an ordinary thread that may be
/// delayed.
const RING_KIB: std::ops::RangeInclusive<u32> = 1024..=4096;
/// All rings together use at most 1/`MEMORY_DIVISOR` of the memory.
const MEMORY_DIVISOR: u64 = 64;

/// Settings of an instance.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings<'a> {
    /// The CPUs to trace; empty for all.
    pub cpus: &'a [u32],
    /// True to also trace every section that disables interrupts or preemption, if the kernel has these events.
    pub deep: bool,
    /// Ring size for each of these CPUs, KiB; at least two pages are used.
    pub buffer_kb_per_cpu: u32,
    /// Ring size for each other CPU, KiB; 0 to leave them untraced.
    pub others_kb_per_cpu: u32,
}

impl Settings<'_> {
    /// Ring size for a CPU, KiB; 0 if it is not traced.
    pub(super) fn kb_of(&self, cpu: u32) -> u32 {
        let requested = self.cpus.is_empty() || self.cpus.contains(&cpu);
        if requested { self.buffer_kb_per_cpu } else { self.others_kb_per_cpu }
    }
}

/// The CPUs that get a ring, sorted. The requested CPUs must be online.
pub(super) fn traced_cpus(folder: &Folder, settings: &Settings<'_>) -> Result<Vec<u32>, TraceError> {
    // `per_cpu` contains a folder for every possible CPU.
    let online = Root::system().read("sys/devices/system/cpu/online").and_then(|list| list.parse::<CpuList>().ok());
    let names = folder.files.list("per_cpu");
    let mut available: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    available.retain(|&cpu| online.as_ref().is_none_or(|online| online.contains(cpu)));
    available.sort_unstable();
    if settings.cpus.is_empty() {
        return Ok(available);
    }
    if let Some(&cpu) = settings.cpus.iter().find(|cpu| available.binary_search(cpu).is_err()) {
        return Err(TraceError::NoCpu { cpu });
    }
    available.retain(|&cpu| settings.kb_of(cpu) > 0);
    Ok(available)
}

/// Configures everything except the events, with tracing off.
pub(super) fn configure(folder: &Folder, settings: &Settings<'_>, cpus: &[u32]) -> Result<(), TraceError> {
    let files = &folder.files;
    files.write("tracing_on", "0")?;
    files.write("trace_clock", "mono")?;
    files.write("options/overwrite", "1")?;
    let resize = |part: &str, kb: u32| {
        files.try_write(part, &kb.to_string()).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOMEM) => TraceError::NoMemory { kb_per_cpu: kb },
            _ => TraceError::of(part, error),
        })
    };
    if settings.cpus.is_empty() {
        return resize("buffer_size_kb", settings.buffer_kb_per_cpu);
    }
    files.write("tracing_cpumask", &mask(cpus))?;
    // Each change of a size waits for all CPUs, so CPUs with equal rings get them at once.
    let kb = settings.kb_of(cpus.first().copied().unwrap_or_default());
    if cpus.iter().all(|&cpu| settings.kb_of(cpu) == kb) && all_possible(folder, cpus) {
        return resize("buffer_size_kb", kb);
    }
    resize("buffer_size_kb", 1)?;
    cpus.iter().try_for_each(|&cpu| resize(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), settings.kb_of(cpu)))
}

/// True if the kernel has no ring for another CPU, not even for one that is offline.
fn all_possible(folder: &Folder, cpus: &[u32]) -> bool {
    folder.files.list("per_cpu").iter().filter(|name| name.starts_with("cpu")).count() == cpus.len()
}

/// The kernel's form of a CPU mask: groups of 32 bits, the highest first.
fn mask(cpus: &[u32]) -> String {
    let highest = cpus.iter().max().map_or(0, |cpu| cpu / 32);
    let group =
        |group: u32| cpus.iter().filter(|&cpu| cpu / 32 == group).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
    (0..=highest).rev().map(|index| format!("{:08x}", group(index))).collect::<Vec<_>>().join(",")
}

/// Ring size for this number of CPUs, KiB; smaller on machines with little memory.
pub(crate) fn ring_kib(cpus: usize) -> u32 {
    let memory = sysinfo();
    let kib = memory.totalram as u64 * u64::from(memory.mem_unit) / 1024;
    let share = kib / MEMORY_DIVISOR / cpus.max(1) as u64;
    u32::try_from(share).unwrap_or(u32::MAX).clamp(*RING_KIB.start(), *RING_KIB.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_starts_with_the_highest_cpus() {
        assert_eq!(mask(&[0, 3]), "00000009");
        assert_eq!(mask(&[1, 33, 64]), "00000001,00000002,00000002");
    }
}
