//! Facts about pairs of CPUs: they decide between pairs with equal figures, and explain results.

use record::{CpuFacts, Record};

use crate::{cpu_list, float::to_i32};

/// The quality of a pair according to its CPUs, compared field by field: smaller is better. Unknown facts count as
/// good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PairFacts {
    /// CPUs of the pair that are not isolated, on a machine with isolated CPUs.
    not_isolated: usize,
    /// True if the two CPUs are threads of one core.
    on_one_core: bool,
    /// True if the two CPUs share no cache.
    no_common_cache: bool,
    /// Interrupts of devices per second on these CPUs, as a power of two.
    interrupts: i32,
}

impl PairFacts {
    pub fn of(record: &Record, [row, column]: [u32; 2]) -> Self {
        let mut cpus = vec![row, column];
        cpus.dedup();
        let of_pair: Vec<&CpuFacts> = cpus.iter().filter_map(|&cpu| facts_of(record, cpu)).collect();
        let some_isolated = record.cpu_facts.iter().any(|facts| facts.isolated);
        let interrupts: f64 = of_pair.iter().filter_map(|facts| facts.interrupts_per_s).sum();
        Self {
            not_isolated: of_pair.iter().filter(|facts| some_isolated && !facts.isolated).count(),
            on_one_core: row != column && share(record, row, column, |facts| &facts.core) == Some(true),
            no_common_cache: row != column && share(record, row, column, |facts| &facts.cache) == Some(false),
            interrupts: to_i32((1.0 + interrupts).log2().round()),
        }
    }

    /// The reason why `self` is better than `other`; `None` if it is not.
    pub fn better_because(&self, other: &Self) -> Option<&'static str> {
        if self >= other {
            None
        } else if self.not_isolated != other.not_isolated {
            Some("more of its CPUs are isolated from other work")
        } else if self.on_one_core != other.on_one_core {
            Some("its CPUs are not threads of one core")
        } else if self.no_common_cache != other.no_common_cache {
            Some("its CPUs share a cache")
        } else {
            Some("its CPUs handle fewer device interrupts")
        }
    }
}

fn facts_of(record: &Record, cpu: u32) -> Option<&CpuFacts> {
    record.cpu_facts.iter().find(|facts| facts.cpu == cpu)
}

/// True if the list `of` one CPU contains the other; `None` if unknown.
fn share(record: &Record, cpu: u32, other: u32, of: fn(&CpuFacts) -> &String) -> Option<bool> {
    let list = of(facts_of(record, cpu)?);
    (!list.is_empty()).then(|| cpu_list::contains(list, other))
}

/// Describes the CPUs of a pair, isolation and interrupts, in sentences.
pub(super) fn describe(record: &Record, pair: [u32; 2]) -> Vec<String> {
    let [row, column] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
    let mut sentences = Vec::new();
    if row != column {
        sentences.push(match share(record, row, column, |facts| &facts.core) {
            Some(true) => format!("CPUs {row} and {column} are threads of one core"),
            Some(false) => format!("CPUs {row} and {column} are on separate cores"),
            None => format!("it is unknown whether CPUs {row} and {column} share a core"),
        });
        sentences.push(match share(record, row, column, |facts| &facts.cache) {
            Some(true) => format!("CPUs {row} and {column} share their largest cache"),
            Some(false) => format!("CPUs {row} and {column} share no cache"),
            None => format!("it is unknown whether CPUs {row} and {column} share a cache"),
        });
    }
    let isolated: Vec<String> =
        record.cpu_facts.iter().filter(|facts| facts.isolated).map(|facts| facts.cpu.to_string()).collect();
    sentences.push(match &isolated[..] {
        [] => "no CPU is isolated from other work".to_owned(),
        [one] => format!("CPU {one} is isolated from other work"),
        several => format!("CPUs {} are isolated from other work", several.join(",")),
    });
    let each = record
        .cpu_facts
        .iter()
        .filter_map(|facts| Some(format!("CPU {} {}", facts.cpu, rate(facts.interrupts_per_s?))));
    let each: Vec<String> = each.collect();
    if !each.is_empty() {
        sentences.push(format!("device interrupts per second: {}", each.join(", ")));
    }
    sentences
}

/// A rate with a useful number of digits.
fn rate(per_s: f64) -> String {
    if per_s < 9.95 { format!("{per_s:.1}") } else { format!("{per_s:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu: u32, isolated: bool, core: &str, cache: &str, interrupts: Option<f64>) -> CpuFacts {
        CpuFacts { cpu, isolated, core: core.into(), cache: cache.into(), interrupts_per_s: interrupts }
    }

    fn four() -> Record {
        let cpu_facts = vec![
            cpu(0, false, "0,2", "0-3", Some(120.0)),
            cpu(1, false, "1,3", "0-3", Some(3.0)),
            cpu(2, true, "0,2", "0-3", Some(0.0)),
            cpu(3, true, "1,3", "", None),
        ];
        Record { cpu_facts, ..Record::default() }
    }

    #[test]
    fn prefers_isolation_then_separate_cores_then_few_interrupts() {
        let record = four();
        let facts = |pair| PairFacts::of(&record, pair);
        let because = |a, b| facts(a).better_because(&facts(b));
        assert_eq!(because([2, 3], [1, 1]), Some("more of its CPUs are isolated from other work"));
        assert_eq!(because([0, 1], [0, 2]), None, "one of 0 and 2 is isolated");
        assert_eq!(because([2, 1], [2, 0]), Some("its CPUs are not threads of one core"));
        assert_eq!(because([1, 1], [0, 0]), Some("its CPUs handle fewer device interrupts"));
        assert_eq!(because([2, 2], [3, 3]), None, "unknown facts count as good");
    }

    #[test]
    fn compares_caches_only_if_known() {
        let mut record = four();
        record.cpu_facts[1].cache = "1".to_owned();
        record.cpu_facts.iter_mut().for_each(|facts| facts.isolated = false);
        let facts = |pair| PairFacts::of(&record, pair);
        assert_eq!(facts([0, 3]).better_because(&facts([1, 2])), Some("its CPUs share a cache"));
        assert!(!facts([3, 0]).no_common_cache);
    }

    #[test]
    fn describes_facts_in_sentences() {
        assert_eq!(
            describe(&four(), [0, 2]),
            [
                "CPUs 0 and 2 are threads of one core",
                "CPUs 0 and 2 share their largest cache",
                "CPUs 2,3 are isolated from other work",
                "device interrupts per second: CPU 0 120, CPU 1 3.0, CPU 2 0.0",
            ]
        );
        assert_eq!(describe(&Record::default(), [1, 1]), ["no CPU is isolated from other work"]);
    }
}
