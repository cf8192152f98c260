//! Compares punctual with cyclictest and other programs: alternating runs, and a table of ratios with their spread.
//!
//! | module | contents |
//! |---|---|
//! | `comparison` | the parts of the comparison |
//! | `blame` | cost of blame |
//! | `reading` | speed of reading a trace |
//! | `ledger` | time to build a ledger of many spikes |
//! | `planning` | time to plan a campaign of many scenarios |
//! | `threads` | cost of many threads |
//! | `capture` | speed of analysing a capture, compared with tshark |
//! | `udp`, `sockperf` | round trips of datagrams, compared with a minimal loop and with sockperf |
//! | `stream` | transit times of frames with AF_XDP and with sockets, and how soon after its slot a frame is sent |
//! | `interrupts` | CPU time of an interrupt, compared with gpiomon and ppstest |
//! | `commands` | CPU time of whole commands |
//! | `costs` | CPU time of a cycle |
//! | `scenario` | settings of a run, the same for both programs |
//! | `oslat` | the noise probe, compared with oslat |
//! | `punctual`, `cyclictest` | run one of the programs |
//! | `instructions` | instruction counts from callgrind |
//! | `run` | runs a program to its end, with its resource usage |
//! | `rounds` | alternates between two programs |
//! | `statistics` | medians and their spread |
//! | `row`, `table` | output |

#![forbid(unsafe_code)]

mod blame;
mod capture;
mod commands;
mod comparison;
mod costs;
mod cyclictest;
mod instructions;
mod interrupts;
mod ledger;
mod oslat;
mod planning;
mod punctual;
mod reading;
mod rounds;
mod row;
mod run;
mod scenario;
mod sockperf;
mod statistics;
mod stream;
mod table;
mod threads;
mod udp;

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Parser;

use crate::{
    cyclictest::Buckets,
    punctual::Punctual,
    scenario::{Length, Scenario},
};

/// Compares punctual with cyclictest in alternating runs.
#[derive(Debug, Parser)]
struct Options {
    /// Path of the punctual binary.
    punctual: PathBuf,
    /// Measure fewer rounds: less than a minute instead of about five.
    #[arg(long)]
    quick: bool,
    /// Measure only these parts.
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = comparison::parts())]
    only: Vec<String>,
    /// Also write the rows as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<()> {
    let effort = if options.quick { &comparison::QUICK } else { &comparison::FULL };
    let punctual = Punctual::new(&options.punctual);
    let scenario = scenario()?;
    let description = description(&punctual, &scenario)?;
    println!("{description}\n");
    let progress = |what: &str, seconds| eprintln!("{what}; about {seconds} s left");
    let rows = comparison::measure(&punctual, &scenario, effort, &options.only, progress)?;
    print!("{}", table::text(&rows));
    if let Some(path) = &options.json {
        fs::write(path, format!("{:#}\n", table::json(&description, &rows)))
            .with_context(|| format!("cannot write {}; choose another path with --json FILE", path.display()))?;
    }
    Ok(())
}

/// Measures the last CPU, because the first one does most of the machine's own work.
fn scenario() -> Result<Scenario> {
    let mut others = sys::sched::affinity().context("cannot read the allowed CPUs")?;
    let cpu = others.pop().context("no CPU is allowed")?;
    Ok(Scenario { cpu, others, period_us: 1000, length: Length::Cycles(10) })
}

/// Describes the programs and the machine. Runs both programs briefly, which also warms up the caches.
fn description(punctual: &Punctual, scenario: &Scenario) -> Result<String> {
    let own = punctual.measure(scenario)?;
    let peer = cyclictest::measure(scenario, Buckets::None)?;
    let unknown = || "unknown".to_owned();
    let machine = own.machine;
    Ok(format!(
        "punctual {} compared with cyclictest {}: CPU {}, fifo:90, memory locked, CPU held awake\n\
         Linux {} (preemption: {}), {}, {} CPUs, hypervisor {}, load average {:.1} before\n\
         ratio = punctual / cyclictest, of each pair of runs",
        own.version,
        peer.version,
        scenario.cpu,
        machine.kernel.unwrap_or_else(unknown),
        machine.preempt.unwrap_or_else(unknown),
        machine.cpu_model.unwrap_or_else(unknown),
        scenario.others.len() + 1,
        machine.hypervisor.unwrap_or_else(unknown),
        // The kernel's unit is 2^-16.
        rustix::system::sysinfo().loads[0] as f64 / 65536.0,
    ))
}
