//! Facts about a CPU that may explain latency.

use std::time::Duration;

use record::CpuFacts;

use crate::{CpuList, Interrupts, Root, isolated_cpus, topology};

/// The facts about each of `cpus`. The interrupt rate covers `elapsed`, the time since `before` was read.
#[must_use]
pub fn cpu_facts(root: &Root, cpus: &CpuList, before: &Interrupts, elapsed: Duration) -> Vec<CpuFacts> {
    let (isolated, now) = (isolated_cpus(root), Interrupts::read(root));
    let facts = |cpu: u32| CpuFacts {
        cpu,
        isolated: isolated.contains(cpu),
        core: topology::core_of(root, cpu).map_or_else(String::new, |core| core.to_string()),
        cache: topology::caches_of(root, cpu).last().map_or_else(String::new, |cache| cache.shared_by.to_string()),
        interrupts_per_s: now.since(before, cpu).map(|count| count as f64 / elapsed.as_secs_f64().max(1e-9)),
    };
    cpus.iter().map(facts).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn facts_of_a_recorded_machine() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/isolated", "1\n");
        for (cpu, core) in [(0, "0,2"), (1, "1,3")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            write(&format!("{folder}/topology/thread_siblings_list"), core);
            for (index, level, shared) in [("index0", "1", core), ("index3", "3", "0-3")] {
                for (file, text) in [("level", level), ("type", "Unified"), ("size", "8M"), ("shared_cpu_list", shared)]
                {
                    write(&format!("{folder}/cache/{index}/{file}"), text);
                }
            }
        }
        let interrupts = |count: u32| format!("      CPU0   CPU1\n 24:   {count}   0  PCI-MSI  eth0\n");
        write("proc/interrupts", &interrupts(10));
        let before = Interrupts::read(&root);
        write("proc/interrupts", &interrupts(40));
        let facts = cpu_facts(&root, &"0-2".parse().unwrap(), &before, Duration::from_secs(10));
        let facts_of = |cpu, isolated, core: &str, cache: &str, interrupts_per_s| CpuFacts {
            cpu,
            isolated,
            core: core.to_owned(),
            cache: cache.to_owned(),
            interrupts_per_s,
        };
        assert_eq!(
            facts,
            [
                facts_of(0, false, "0,2", "0-3", Some(3.0)),
                facts_of(1, true, "1,3", "0-3", Some(0.0)),
                facts_of(2, false, "", "", None)
            ]
        );
    }
}
