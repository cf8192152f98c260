//! What the machine says about pairs of CPUs: it decides between pairs that the figures do not tell apart, and explains.

use record::{CpuFacts, Record};

/// How good a pair is by what is known of its CPUs: the smaller, the better, the first that differs decides. What is
/// unknown counts as good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    /// CPUs of the pair that the scheduler may use for other work, on a machine where others are isolated.
    not_isolated: usize,
    /// Whether the two are threads of one core, which share it.
    on_one_core: bool,
    /// Whether the two share no cache.
    no_common_cache: bool,
    /// Interrupts of devices that they serve, by power of two.
    interrupts: u32,
}

impl Standing {
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
            interrupts: (1.0 + interrupts).log2().round() as u32,
        }
    }

    /// Why this is better than `other`; `None` when it is not.
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
            Some("its CPUs serve fewer interrupts of devices")
        }
    }
}

fn facts_of(record: &Record, cpu: u32) -> Option<&CpuFacts> {
    record.cpu_facts.iter().find(|facts| facts.cpu == cpu)
}

/// Whether the list `of` one CPU names the other; `None` where it is not known.
fn share(record: &Record, cpu: u32, other: u32, of: fn(&CpuFacts) -> &String) -> Option<bool> {
    let list = of(facts_of(record, cpu)?);
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(first.parse().ok()?..=last.parse().ok()?),
        None => part.parse().ok().map(|one: u32| one..=one),
    };
    (!list.is_empty()).then(|| list.split(',').filter_map(range).any(|range| range.contains(&other)))
}

/// What is known of the CPUs of a pair, and of the others, in sentences.
pub(super) fn told(record: &Record, pair: [u32; 2]) -> Vec<String> {
    let [row, column] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
    let mut told = Vec::new();
    if row != column {
        told.push(match share(record, row, column, |facts| &facts.core) {
            Some(true) => format!("CPUs {row} and {column} are threads of one core and share it"),
            Some(false) => format!("CPUs {row} and {column} are cores of their own"),
            None => format!("the kernel does not tell whether CPUs {row} and {column} are one core"),
        });
        told.push(match share(record, row, column, |facts| &facts.cache) {
            Some(true) => format!("CPUs {row} and {column} share their largest cache"),
            Some(false) => format!("CPUs {row} and {column} share no cache"),
            None => format!("the kernel does not tell whether CPUs {row} and {column} share a cache"),
        });
    }
    let isolated: Vec<String> =
        record.cpu_facts.iter().filter(|facts| facts.isolated).map(|facts| facts.cpu.to_string()).collect();
    told.push(match &isolated[..] {
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
        told.push(format!("interrupts of devices each second: {}", each.join(", ")));
    }
    told
}

/// A rate with as many digits as it deserves.
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
    fn what_isolates_is_better_than_what_is_apart_and_that_than_few_interrupts() {
        let record = four();
        let standing = |pair| Standing::of(&record, pair);
        let because = |a, b| standing(a).better_because(&standing(b));
        assert_eq!(because([2, 3], [1, 1]), Some("more of its CPUs are isolated from other work"));
        assert_eq!(because([0, 1], [0, 2]), None, "one of 0 and 2 is isolated");
        assert_eq!(because([2, 1], [2, 0]), Some("its CPUs are not threads of one core"));
        assert_eq!(because([1, 1], [0, 0]), Some("its CPUs serve fewer interrupts of devices"));
        assert_eq!(because([2, 2], [3, 3]), None, "what is unknown counts as good");
    }

    #[test]
    fn a_common_cache_decides_only_where_it_is_known() {
        let mut record = four();
        record.cpu_facts[1].cache = "1".to_owned();
        record.cpu_facts.iter_mut().for_each(|facts| facts.isolated = false);
        let standing = |pair| Standing::of(&record, pair);
        assert_eq!(standing([0, 3]).better_because(&standing([1, 2])), Some("its CPUs share a cache"));
        assert!(!standing([3, 0]).no_common_cache);
    }

    #[test]
    fn facts_are_told_in_sentences() {
        assert_eq!(
            told(&four(), [0, 2]),
            [
                "CPUs 0 and 2 are threads of one core and share it",
                "CPUs 0 and 2 share their largest cache",
                "CPUs 2,3 are isolated from other work",
                "interrupts of devices each second: CPU 0 120, CPU 1 3.0, CPU 2 0.0",
            ]
        );
        assert_eq!(told(&Record::default(), [1, 1]), ["no CPU is isolated from other work"]);
    }
}
