//! How long a campaign of very many scenarios takes to plan: its file read and checked, and each scenario worked out.

use std::{fmt::Write, time::Instant};

use campaign::{Asked, Cpus, expand, file};
use machine::CpuList;

use crate::row::{Row, Unit};

const LIMIT_NS: f64 = 100e6;
/// Loads of the file; each runs on every pair of CPUs.
const LOADS: usize = 40;
const CPUS: u32 = 5;

/// Takes the row.
pub fn measure(rounds: usize) -> Row {
    let name = "campaign of 1000 scenarios planned";
    let text = text();
    Row::alone(name, Unit::Time, (0..rounds).map(|_| plan_ns(&text)), LIMIT_NS)
}

/// A matrix of CPUs under many loads.
fn text() -> String {
    let mut text =
        "name = \"matrix\"\nrest = \"1s\"\n[probe]\nkind = \"threads\"\n[placement]\ncpus = \"pairs\"\n".to_owned();
    for index in 0..LOADS {
        let _ = writeln!(text, "[[load]]\nname = \"load {index}\"\nrun = [\"cpu\", \"switch:{}us\"]", 10 + index);
        let _ = writeln!(text, "cpus = \"others or all\"\nthreads = 8");
    }
    text
}

fn plan_ns(text: &str) -> f64 {
    let cpus = Cpus { usable: (0..CPUS).collect(), isolated: CpuList::new() };
    let begin = Instant::now();
    let file = file::parse("matrix.toml", text).expect("the file is right");
    let scenarios = expand(&file, &cpus, &Asked::default()).expect("its words fit every machine");
    assert_eq!(scenarios.list.len(), 1000, "40 loads on 25 pairs");
    begin.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_a_thousand_scenarios() {
        super::plan_ns(&super::text());
    }
}
