//! Time to plan a campaign of many scenarios (read and check its file, and expand each scenario), and to render its
//! report.

use std::{fmt::Write, time::Instant};

use campaign::{Cpus, ExpandOptions, Scenarios, expand, file, runner};
use machine::{CpuList, Isolation, Root};
use record::{RoleResult, ScenarioResult};

use crate::row::{Row, Unit};

const LIMIT_NS: f64 = 100e6;
const REPORT_LIMIT_NS: f64 = 2e9;
/// Number of loads in the file. Each runs on every pair of CPUs.
const LOADS: usize = 40;
const CPUS: u32 = 5;

/// Measures the row of the plan.
pub fn measure(rounds: usize) -> Row {
    let name = "campaign of 1000 scenarios planned";
    let text = text();
    Row::alone(name, Unit::Time, (0..rounds).map(|_| plan_ns(&text)), LIMIT_NS)
}

/// Measures the row of the report.
pub fn measure_report(rounds: usize) -> Row {
    let scenarios = plan(&text());
    Row::alone(
        "  and reported, terminal and HTML",
        Unit::Time,
        (0..rounds).map(|_| report_ns(&scenarios)),
        REPORT_LIMIT_NS,
    )
}

fn report_ns(scenarios: &Scenarios) -> f64 {
    let mut campaign = runner::document(scenarios, Vec::new(), &Root::system());
    for (max_ns, entry) in (10_000..).step_by(37).zip(&mut campaign.scenarios) {
        let of = |role: &str| RoleResult { role: role.to_owned(), max_ns: Some(max_ns), ..RoleResult::default() };
        entry.result = Some(ScenarioResult { valid: true, roles: vec![of("base"), of("servo")], ..Default::default() });
    }
    let begin = Instant::now();
    let page = report::html::render_campaign(&campaign);
    let text = report::terminal::campaign(&campaign, &report::Style::plain(), 160);
    assert!(page.len() > 1000 && text.len() > 1000, "the report is rendered");
    begin.elapsed().as_nanos() as f64
}

/// A campaign file with a matrix of CPUs under many loads.
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
    let begin = Instant::now();
    let scenarios = plan(text);
    assert_eq!(scenarios.list.len(), 1000, "40 loads on 25 pairs");
    begin.elapsed().as_nanos() as f64
}

fn plan(text: &str) -> Scenarios {
    let cpus = Cpus { usable: (0..CPUS).collect(), isolated: CpuList::new(), isolation: Isolation::default() };
    let file = file::parse("matrix.toml", text).expect("the file is valid");
    expand(&file, &cpus, &ExpandOptions::default()).expect("the file fits every machine")
}

#[cfg(test)]
mod tests {
    #[test]
    fn plans_a_thousand_scenarios() {
        super::plan_ns(&super::text());
    }

    #[test]
    fn reports_all_scenarios() {
        super::report_ns(&super::plan(&super::text()));
    }
}
