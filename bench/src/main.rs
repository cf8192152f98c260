//! punctual beside cyclictest in one run, in turn, many rounds: a table of ratios with their spread.
//!
//! | module | holds |
//! |---|---|
//! | `comparison` | what is compared, and how much |
//! | `blame` | what looking for culprits costs |
//! | `reading` | how fast a trace is read |
//! | `ledger` | how long the ledger of very many spikes takes |
//! | `planning` | how long a campaign of very many scenarios takes to plan |
//! | `threads` | what very many threads cost |
//! | `capture` | how fast a capture of the wire is read, beside tshark |
//! | `udp`, `sockperf` | round trips of datagrams, beside a bare loop and beside sockperf |
//! | `stream` | frames of a stream under way, with AF_XDP and with sockets, and how soon after its slot one is sent |
//! | `costs` | CPU time a cycle |
//! | `scenario` | what both programs are asked to do |
//! | `oslat` | two programs that never sleep |
//! | `punctual`, `cyclictest` | one run of each |
//! | `instructions` | instructions, counted by callgrind |
//! | `run` | any program run to its end, with its cost |
//! | `rounds` | the two in turn |
//! | `statistics` | medians and their spread |
//! | `row`, `table` | what is printed |

#![forbid(unsafe_code)]

mod blame;
mod capture;
mod comparison;
mod costs;
mod cyclictest;
mod instructions;
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

/// Compares punctual with cyclictest: both in one run, in turn, many rounds.
#[derive(Debug, Parser)]
struct Options {
    /// The punctual to be measured.
    punctual: PathBuf,
    /// Few rounds: less than a minute instead of about five.
    #[arg(long)]
    quick: bool,
    /// Take these parts alone.
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = comparison::parts())]
    only: Vec<String>,
    /// Write the rows there as JSON too.
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
    let scene = scene(&punctual, &scenario)?;
    println!("{scene}\n");
    let say = |what: &str, seconds| eprintln!("{what}; about {seconds} s left");
    let rows = comparison::measure(&punctual, &scenario, effort, &options.only, say)?;
    print!("{}", table::text(&rows));
    if let Some(path) = &options.json {
        fs::write(path, format!("{:#}\n", table::json(&scene, &rows)))
            .with_context(|| format!("cannot write {}; choose another place with --json FILE", path.display()))?;
    }
    Ok(())
}

/// The last CPU is measured, since the first is where most of the machine's own work happens.
fn scenario() -> Result<Scenario> {
    let mut others = sys::sched::affinity().context("cannot read which CPUs may be used")?;
    let cpu = others.pop().context("no CPU may be used")?;
    Ok(Scenario { cpu, others, period_us: 1000, length: Length::Cycles(10) })
}

/// What runs where; a short run of each shows it, and warms both up.
fn scene(punctual: &Punctual, scenario: &Scenario) -> Result<String> {
    let ours = punctual.measure(scenario)?;
    let theirs = cyclictest::measure(scenario, Buckets::None)?;
    let unknown = || "unknown".to_owned();
    let machine = ours.machine;
    Ok(format!(
        "punctual {} beside cyclictest {}: CPU {}, fifo:90, memory locked, CPU held awake\n\
         Linux {} (preemption: {}), {}, {} CPUs, hypervisor {}, load average {:.1} before\n\
         ratio = punctual / cyclictest, of each pair of runs",
        ours.version,
        theirs.version,
        scenario.cpu,
        machine.kernel.unwrap_or_else(unknown),
        machine.preempt.unwrap_or_else(unknown),
        machine.cpu_model.unwrap_or_else(unknown),
        scenario.others.len() + 1,
        machine.hypervisor.unwrap_or_else(unknown),
        // The kernel counts in parts of 2^16.
        rustix::system::sysinfo().loads[0] as f64 / 65536.0,
    ))
}
