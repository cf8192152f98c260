//! Compares the amplifier with other implementations: alternating runs, a table of ratios with their spread, and a
//! check against targets.
//!
//! | module | contents |
//! |---|---|
//! | `cabinet` | cabinets, compared with fft-convolver |
//! | `linear` | a Linear model, compared with fft-convolver |
//! | `models` | models of each kind, compared with nam-rs |
//! | `rounds` | alternates between engines and times each block |
//! | `row` | figures, ratios and targets, and their output |

#![forbid(unsafe_code)]

mod cabinet;
mod linear;
mod models;
mod rounds;
mod row;

use std::{env, process::ExitCode};

use amp::InstructionSet;
use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::rounds::Effort;

const USAGE: &str = "usage: bench-amp [--quick] [--check] [--ours] [--level=NAME] [NAME...]
  --quick   measure few rounds
  --check   exit with 2 if a target is missed by more than the noise margin
  --ours    measure only the amplifier
  --level   use this instruction set: AVX-512, AVX2, NEON or portable [default: the best available]
  NAME      measure only the rows whose name contains NAME";

/// Options of the command line.
#[derive(Debug)]
pub struct Arguments {
    check: bool,
    ours: bool,
    level: InstructionSet,
    effort: Effort,
    names: Vec<String>,
}

impl Arguments {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let (level, effort, names) = (InstructionSet::best(), Effort::default(), Vec::new());
        let mut arguments = Self { check: false, ours: false, level, effort, names };
        for word in words {
            match word.as_str() {
                "--quick" => arguments.effort = Effort::QUICK,
                "--check" => arguments.check = true,
                "--ours" => arguments.ours = true,
                other if other.starts_with("--level=") => arguments.level = level_named(&other["--level=".len()..])?,
                other if other.starts_with('-') => bail!("unknown option {other}\n{USAGE}"),
                name => arguments.names.push(name.to_owned()),
            }
        }
        Ok(arguments)
    }

    /// True if a cabinet or model of this name is selected.
    pub fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| name.contains(part.as_str()))
    }
}

fn level_named(name: &str) -> Result<InstructionSet> {
    let all = InstructionSet::all();
    let named = all.iter().find(|level| level.name().eq_ignore_ascii_case(name));
    named.copied().with_context(|| {
        format!(
            "this processor lacks {name}; choose one of {}",
            all.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
        )
    })
}

fn main() -> ExitCode {
    match Arguments::parse(env::args().skip(1)).and_then(|arguments| compare(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("bench-amp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and prints all selected rows. Returns false if `--check` was given and a target was missed.
fn compare(arguments: &Arguments) -> Result<bool> {
    println!("{}\n", description(arguments.level)?);
    let mut rows = Vec::new();
    // One module for each subject.
    rows.extend(models::rows(arguments)?);
    rows.extend(linear::rows(arguments)?);
    rows.extend(cabinet::rows(arguments)?);
    print!("{}", row::table(&rows));
    let missed: Vec<&str> = rows.iter().filter(|row| row.is_missed()).map(|row| row.name.as_str()).collect();
    if arguments.check && !missed.is_empty() {
        eprintln!("missed by more than {:.0} %: {}", row::MARGIN * 100.0, missed.join(", "));
        return Ok(false);
    }
    Ok(true)
}

/// Pins the process to one CPU, and describes the CPU and the build.
fn description(level: InstructionSet) -> Result<String> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)).unwrap_or_default();
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one)?;
    let built = match cfg!(target_feature = "avx2") || cfg!(target_arch = "aarch64") {
        true => "built for newer processors only (-C target-cpu)",
        false => "built for the oldest processor of its kind; the amplifier selects its instruction set at run time",
    };
    Ok(format!(
        "CPU {last}; amplifier with {}; {built}; one thread, blocks in turn\n\
         ratio = amplifier / peer of the medians of each round; its median and quartiles over the rounds",
        level.name(),
    ))
}
