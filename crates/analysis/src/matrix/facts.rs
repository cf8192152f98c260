//! Facts about pairs of CPUs: they explain results.

use record::{CpuFacts, Record};

use crate::cpu_list;

fn facts_of(record: &Record, cpu: u32) -> Option<&CpuFacts> {
    record.cpu_facts.iter().find(|facts| facts.cpu == cpu)
}

/// True if the list `of` one CPU contains the other; `None` if unknown.
fn share(record: &Record, cpu: u32, other: u32, of: fn(&CpuFacts) -> &String) -> Option<bool> {
    let list = of(facts_of(record, cpu)?);
    (!list.is_empty()).then(|| cpu_list::contains(list, other))
}

/// Describes isolation and interrupts of all CPUs in sentences, and before them what the CPUs of the `pair` share.
pub(super) fn describe(record: &Record, pair: Option<[u32; 2]>) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some([row, column]) = pair.map(|[row, column]| [row.min(column), row.max(column)])
        && row != column
    {
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
    fn describes_facts_in_sentences() {
        assert_eq!(
            describe(&four(), Some([0, 2])),
            [
                "CPUs 0 and 2 are threads of one core",
                "CPUs 0 and 2 share their largest cache",
                "CPUs 2,3 are isolated from other work",
                "device interrupts per second: CPU 0 120, CPU 1 3.0, CPU 2 0.0",
            ]
        );
        assert_eq!(describe(&four(), None)[0], "CPUs 2,3 are isolated from other work");
        assert_eq!(describe(&Record::default(), Some([1, 1])), ["no CPU is isolated from other work"]);
    }
}
