//! The amplifier beside its peers in one run, in turn, many rounds: a table of ratios with their spread, and a gate.
//!
//! | module | holds |
//! |---|---|
//! | `cabinet` | cabinets, beside fft-convolver |
//! | `models` | models of every kind, beside nam-rs |
//! | `rounds` | engines in turn, each block timed |
//! | `row` | figures, ratios, targets, and how they are printed |

#![forbid(unsafe_code)]

mod cabinet;
mod models;
mod rounds;
mod row;

use std::{env, process::ExitCode};

use amp::InstructionSet;
use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::rounds::Effort;

const USAGE: &str = "usage: bench-amp [--quick] [--check] [--ours] [--level=NAME] [NAME...]
  --quick   few rounds
  --check   exit with 2 where a target is missed by more than the noise margin
  --ours    without the peers
  --level   the amplifier with these instructions: AVX-512, AVX2, NEON, portable; else the best there are
  NAME      only the rows whose name has it";

/// What was asked for.
#[derive(Debug)]
pub struct Asked {
    check: bool,
    ours: bool,
    level: InstructionSet,
    effort: Effort,
    names: Vec<String>,
}

impl Asked {
    fn new(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let (level, effort, names) = (InstructionSet::best(), Effort::default(), Vec::new());
        let mut asked = Self { check: false, ours: false, level, effort, names };
        for argument in arguments {
            match argument.as_str() {
                "--quick" => asked.effort = Effort::QUICK,
                "--check" => asked.check = true,
                "--ours" => asked.ours = true,
                other if other.starts_with("--level=") => asked.level = level_named(&other["--level=".len()..])?,
                other if other.starts_with('-') => bail!("{other} is no option\n{USAGE}"),
                name => asked.names.push(name.to_owned()),
            }
        }
        Ok(asked)
    }

    /// Whether a subject of this name is to be measured.
    pub fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| name.contains(part.as_str()))
    }
}

fn level_named(name: &str) -> Result<InstructionSet> {
    let all = InstructionSet::all();
    let named = all.iter().find(|level| level.name().eq_ignore_ascii_case(name));
    named.copied().with_context(|| {
        format!(
            "this processor has no {name}; it has {}",
            all.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
        )
    })
}

fn main() -> ExitCode {
    match Asked::new(env::args().skip(1)).and_then(|asked| compare(&asked)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("bench-amp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is as it should be, as far as that was asked.
fn compare(asked: &Asked) -> Result<bool> {
    println!("{}\n", scene(asked.level)?);
    let mut rows = Vec::new();
    // One file a subject.
    rows.extend(models::rows(asked)?);
    rows.extend(cabinet::rows(asked)?);
    print!("{}", row::table(&rows));
    let missed: Vec<&str> = rows.iter().filter(|row| row.is_missed()).map(|row| row.name.as_str()).collect();
    if asked.check && !missed.is_empty() {
        eprintln!("missed by more than {:.0} %: {}", row::MARGIN * 100.0, missed.join(", "));
        return Ok(false);
    }
    Ok(true)
}

/// Goes to one CPU, and says what runs where and how it was built.
fn scene(level: InstructionSet) -> Result<String> {
    let there = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| there.is_set(cpu)).unwrap_or_default();
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one)?;
    let built = match cfg!(target_feature = "avx2") || cfg!(target_arch = "aarch64") {
        true => "all built for newer processors alone (-C target-cpu)",
        false => "all built for the oldest processor of the kind; the amplifier chooses its instructions when it runs",
    };
    Ok(format!(
        "CPU {last}; amplifier with {}; {built}; one thread, blocks in turn\n\
         ratio = amplifier / peer of the medians of each round; its median and quartiles over the rounds",
        level.name(),
    ))
}
