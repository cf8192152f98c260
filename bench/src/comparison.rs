//! The parts of the comparison: each measures the rows of one kind of run.

use std::process::Command;

use anyhow::Result;
use record::Histogram;

use crate::{
    blame, capture, commands,
    costs::Costs,
    cyclictest::{self, Buckets},
    instructions, interrupts, ledger, oslat, planning,
    punctual::Punctual,
    reading,
    rounds::{Pair, alternate},
    row::{Row, Unit},
    scenario::{Length, PERIOD_US, Scenario},
    sockperf, stream, threads, udp,
};

/// A period that is short for most machines, us.
const SHORT_PERIOD_US: u64 = 20;
/// Upper limit for the time from start to first sample.
const START_LIMIT_NS: f64 = 30e6;
/// Upper limit for the peak memory.
const MEMORY_LIMIT_BYTES: f64 = 16.0 * MIB;
/// Upper limit for the size of the binary.
const SIZE_LIMIT_BYTES: f64 = 10.0 * MIB;
const MIB: f64 = 1_048_576.0;

/// Number and length of the runs of each part.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Pairs of runs for lateness, and wake-ups in each.
    lateness: (usize, u64),
    /// Pairs for CPU time, and wake-ups of a short and a long run.
    cpu_time: (usize, [u64; 2]),
    /// Pairs of whole commands of 2 s and of 60 s.
    commands: (usize, usize),
    /// Pairs for the cost of blame, for lateness and CPU time each.
    blame: usize,
    /// Pairs for reading a trace.
    reading: usize,
    /// Pairs of runs with many threads.
    threads: usize,
    /// Pairs for missed deadlines, 1 s each.
    missed: usize,
    /// Pairs for the noise probe, 1 s each.
    noise: usize,
    /// Pairs for round trips of datagrams.
    udp: usize,
    /// Pairs of streams of frames.
    streams: usize,
    /// Rounds of capture analysis.
    captures: usize,
    /// Number of starts.
    starts: usize,
    /// Runs for peak memory.
    memory: usize,
    /// Pairs for instructions.
    instructions: usize,
}

/// About five minutes.
pub const FULL: Effort = Effort {
    lateness: (20, 2000),
    cpu_time: (11, [500, 4500]),
    commands: (11, 2),
    blame: 8,
    reading: 5,
    threads: 9,
    missed: 14,
    noise: 9,
    udp: 7,
    streams: 7,
    captures: 5,
    starts: 30,
    memory: 5,
    instructions: 5,
};
/// Less than a minute.
pub const QUICK: Effort = Effort {
    lateness: (5, 1000),
    cpu_time: (3, [300, 2000]),
    commands: (2, 0),
    blame: 2,
    reading: 2,
    threads: 3,
    missed: 5,
    noise: 3,
    udp: 3,
    streams: 3,
    captures: 2,
    starts: 10,
    memory: 1,
    instructions: 1,
};

/// Period under callgrind. Many cycles are needed, because the number of instructions of the setup varies.
const COUNTED_PERIOD_US: u64 = 100;
/// Wake-ups of the short and the long run under callgrind.
const COUNTED_CYCLES: [u64; 2] = [1000, 8000];

/// Rows that are measured together.
struct Part {
    name: &'static str,
    /// Approximate duration, s.
    seconds: fn(&Effort) -> u64,
    measure: fn(&Punctual, &Scenario, &Effort) -> Result<Vec<Row>>,
}

/// In this order. `reading` is last: the memory that this program then allocates would count for programs that it
/// starts later.
const PARTS: [Part; 14] = [
    Part {
        name: "lateness",
        seconds: |effort| effort.lateness.0 as u64 * effort.lateness.1 * 22 / 10_000,
        measure: |punctual, scenario, effort| Ok(lateness(punctual, scenario, effort)?.into()),
    },
    Part {
        name: "cpu-time",
        seconds: |effort| effort.cpu_time.0 as u64 * (effort.cpu_time.1.iter().sum::<u64>() * 2 / 1000 + 1),
        measure: |punctual, scenario, effort| Ok(cpu_time(punctual, scenario, effort)?.into()),
    },
    Part {
        name: "commands",
        seconds: |effort| commands::seconds(effort.commands),
        measure: |punctual, _, effort| commands::measure(punctual, effort.commands),
    },
    Part {
        name: "blame",
        seconds: |effort| blame::seconds(effort.blame, effort.lateness.1),
        measure: |punctual, scenario, effort| {
            Ok(blame::measure(punctual, scenario, effort.blame, effort.lateness.1)?.into_iter().collect())
        },
    },
    Part {
        name: "threads",
        seconds: |effort| threads::seconds(effort.threads),
        measure: |punctual, _, effort| {
            let mut rows = vec![threads::measure(punctual, effort.threads)?];
            rows.extend(threads::measure_record(punctual, effort.threads)?);
            Ok(rows)
        },
    },
    Part {
        name: "missed",
        seconds: |effort| effort.missed as u64 * 11 / 5,
        measure: |punctual, scenario, effort| Ok(vec![missed(punctual, scenario, effort)?]),
    },
    Part {
        name: "noise",
        seconds: |effort| oslat::seconds(effort.noise),
        measure: |punctual, scenario, effort| Ok(vec![oslat::measure(punctual, scenario, effort.noise)?]),
    },
    Part {
        name: "udp",
        seconds: |effort| udp::seconds(effort.udp) + sockperf::seconds(effort.udp),
        measure: |punctual, scenario, effort| {
            let mut rows = Vec::from(udp::measure(punctual, scenario, effort.udp)?);
            rows.extend(sockperf::measure(punctual, scenario, effort.udp)?);
            rows.extend(udp::measure_xdp(punctual, scenario, effort.udp)?);
            Ok(rows)
        },
    },
    Part {
        name: "stream",
        seconds: |effort| stream::seconds(effort.streams),
        measure: |punctual, scenario, effort| Ok(stream::measure(punctual, scenario, effort.streams)?.into()),
    },
    Part {
        name: "interrupts",
        seconds: |_| interrupts::seconds(),
        measure: |_, _, _| match interrupts::measure() {
            Ok(rows) => Ok(rows),
            // An error here must not discard the rows measured so far.
            Err(error) => {
                eprintln!("interrupts were not measured: {error:#}");
                Ok(Vec::new())
            }
        },
    },
    Part {
        name: "program",
        seconds: |effort| (effort.starts / 12 + effort.memory * 11 / 10) as u64,
        measure: |punctual, _, effort| {
            let size = punctual.size()? as f64;
            Ok(vec![
                start(punctual, effort)?,
                memory(punctual, effort)?,
                Row::alone("size of the static binary", Unit::Bytes, [size], SIZE_LIMIT_BYTES),
            ])
        },
    },
    Part {
        name: "instructions",
        seconds: |effort| effort.instructions as u64 * 10,
        measure: |punctual, scenario, effort| match instructions(punctual, scenario, effort) {
            Ok(row) => Ok(vec![row]),
            // An error here must not discard the rows measured so far.
            Err(error) => {
                eprintln!("instructions were not counted: {error:#}");
                Ok(Vec::new())
            }
        },
    },
    Part {
        name: "capture",
        seconds: |effort| capture::seconds(effort.captures),
        measure: |punctual, _, effort| capture::measure(punctual, effort.captures),
    },
    Part {
        name: "reading",
        seconds: |effort| 4 + effort.reading as u64 * 3,
        measure: |_, _, effort| {
            Ok(vec![
                reading::measure(effort.reading)?,
                ledger::measure(effort.reading),
                planning::measure(effort.reading),
                planning::measure_report(effort.reading),
            ])
        },
    },
];

/// The names of the parts, for `--only`.
pub fn parts() -> [&'static str; 14] {
    PARTS.each_ref().map(|part| part.name)
}

/// Measures all rows, or those of the parts in `only`. Calls `progress` before each part with its name and the
/// remaining time, s.
pub fn measure(
    punctual: &Punctual,
    scenario: &Scenario,
    effort: &Effort,
    only: &[String],
    progress: impl Fn(&str, u64),
) -> Result<Vec<Row>> {
    let chosen = |part: &&Part| only.is_empty() || only.iter().any(|name| name == part.name);
    let parts: Vec<&Part> = PARTS.iter().filter(chosen).collect();
    let mut rows = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        progress(part.name, parts[at..].iter().map(|part| (part.seconds)(effort)).sum());
        rows.extend((part.measure)(punctual, scenario, effort)?);
    }
    Ok(rows)
}

fn lateness(punctual: &Punctual, scenario: &Scenario, effort: &Effort) -> Result<[Row; 2]> {
    let (rounds, cycles) = effort.lateness;
    let scenario = Scenario { period_us: PERIOD_US, ..scenario.lasting(Length::Cycles(cycles)) };
    let pairs = alternate(
        rounds,
        || Ok(punctual.measure(&scenario)?.lateness),
        || Ok(cyclictest::measure(&scenario, Buckets::Nanoseconds)?.lateness),
    )?;
    let row = |name, percent| {
        let figure = |lateness: &Histogram| lateness.percentile(percent).map_or(f64::NAN, |late_ns| late_ns as f64);
        let pairs = pairs.iter().map(|pair| Pair { own: figure(&pair.own), peer: figure(&pair.peer) });
        Row::compared(name, Unit::Time, pairs).with_target(1.0)
    };
    Ok([row("median lateness, 1 ms period", 50.0), row("p99 lateness, 1 ms period", 99.0)])
}

/// The CPU time of a whole run divided by its cycles, and the CPU time of one more cycle.
fn cpu_time(punctual: &Punctual, scenario: &Scenario, effort: &Effort) -> Result<[Row; 2]> {
    let (rounds, lengths) = effort.cpu_time;
    let lengths = lengths.map(|cycles| Scenario { period_us: PERIOD_US, ..scenario.lasting(Length::Cycles(cycles)) });
    let pairs = alternate(rounds, || Costs::of_punctual(punctual, &lengths), || Costs::of_cyclictest(&lengths))?;
    let row = |name, figure: fn(&Costs) -> f64| {
        let pairs = pairs.iter().map(|pair| Pair { own: figure(&pair.own), peer: figure(&pair.peer) });
        Row::compared(name, Unit::Time, pairs).with_target(1.0)
    };
    Ok([
        row("CPU time a cycle, with start", Costs::a_cycle_with_start_ns),
        row("CPU time a cycle, without start", Costs::a_cycle_ns),
    ])
}

fn missed(punctual: &Punctual, scenario: &Scenario, effort: &Effort) -> Result<Row> {
    let scenario = Scenario { period_us: SHORT_PERIOD_US, ..scenario.lasting(Length::Seconds(1)) };
    // As a fraction of the deadlines, because runs differ slightly in length.
    let share = |missed: u64, cycles: u64| missed as f64 / (missed + cycles) as f64;
    let mut notes = Vec::new();
    let pairs = alternate(
        effort.missed,
        || {
            let seen = punctual.measure(&scenario)?;
            notes.extend(seen.notes);
            Ok(share(seen.missed, seen.cycles))
        },
        || {
            let seen = cyclictest::measure(&scenario, Buckets::Microseconds)?;
            Ok(share(seen.skipped, seen.cycles))
        },
    )?;
    let row = Row::compared("deadlines missed, 20 us period", Unit::Share, pairs).with_target(1.0);
    Ok(match notes.first() {
        Some(note) => {
            row.with_remark(format!("{} notes in {} runs of punctual, e.g.: {note}", notes.len(), effort.missed))
        }
        None => row,
    })
}

fn start(punctual: &Punctual, effort: &Effort) -> Result<Row> {
    let start = |_| Ok(punctual.measure_every_cpu(PERIOD_US, Length::Cycles(1))?.to_first_sample_ns as f64);
    let figures = (0..effort.starts).map(start).collect::<Result<Vec<_>>>()?;
    Ok(Row::alone("start to first sample, every CPU", Unit::Time, figures, START_LIMIT_NS))
}

fn memory(punctual: &Punctual, effort: &Effort) -> Result<Row> {
    let peak = |_| {
        let seen = punctual.measure_every_cpu(PERIOD_US, Length::Seconds(1))?;
        Ok(seen.usage.peak_memory_bytes as f64)
    };
    let figures = (0..effort.memory).map(peak).collect::<Result<Vec<_>>>()?;
    Ok(Row::alone("peak memory, every CPU", Unit::Bytes, figures, MEMORY_LIMIT_BYTES))
}

/// User-space instructions of the measuring thread: the difference between a long and a short run.
fn instructions(punctual: &Punctual, scenario: &Scenario, effort: &Effort) -> Result<Row> {
    let lengths = COUNTED_CYCLES
        .map(|cycles| Scenario { period_us: COUNTED_PERIOD_US, ..scenario.lasting(Length::Cycles(cycles)) });
    let a_cycle = |command: &dyn Fn(&Scenario) -> Command| {
        let [short, long] = lengths.each_ref().map(|scenario| instructions::of_measuring_thread(&command(scenario)));
        Ok((long? as f64 - short? as f64) / (COUNTED_CYCLES[1] - COUNTED_CYCLES[0]) as f64)
    };
    let pairs = alternate(
        effort.instructions,
        || a_cycle(&|scenario| punctual.command(scenario)),
        || a_cycle(&|scenario| cyclictest::command(scenario, Buckets::None)),
    )?;
    Ok(Row::compared("instructions a cycle, user space", Unit::Count, pairs))
}
